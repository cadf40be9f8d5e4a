"""Devices: precision, memory, streams, and copies between host and GPU."""
