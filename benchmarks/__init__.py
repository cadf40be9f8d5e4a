"""Benchmarks: each is a script; `python -m benchmarks` makes the tables of docs/research/performance.md."""
