"""The paper's experiments, one figure or table a file."""
