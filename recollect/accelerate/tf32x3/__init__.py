"""Float32 matrix multiplication on tensor cores, as three TF32 multiplications (Triton)."""
