"""How much memory a device has free."""

from __future__ import annotations

import os
from pathlib import Path
from typing import NamedTuple

import torch


def free_memory(device: torch.device) -> int:
    """Return the bytes that can be allocated; on a GPU those that PyTorch has reserved and does not use count too."""
    if device.type != "cuda":
        return _free_on_host()
    own = pytorch_memory(device)
    return torch.cuda.mem_get_info(device)[0] + own.reserved - own.used


class PyTorchMemory(NamedTuple):
    """Bytes of a GPU's memory that PyTorch has reserved, uses, and has used at most since the last reset."""

    reserved: int
    used: int
    peak: int


def pytorch_memory(device: torch.device) -> PyTorchMemory:
    """Read PyTorch's own account of a GPU's memory."""
    statistics = torch.cuda.memory_stats_as_nested_dict(device)  # the flat form takes longer
    used = statistics["allocated_bytes"]["all"]
    return PyTorchMemory(statistics["reserved_bytes"]["all"]["current"], used["current"], used["peak"])


def _free_on_host() -> int:
    """Read Linux's estimate; elsewhere take a quarter of the memory, or 2 GiB if that is unknown."""
    meminfo = Path("/proc/meminfo")
    if meminfo.exists():
        for line in meminfo.read_text().splitlines():
            if line.startswith("MemAvailable:"):
                return int(line.split()[1]) * 1024
    pages = os.sysconf("SC_PHYS_PAGES") if hasattr(os, "sysconf") else 0
    if pages < 1:
        return 2**31
    return pages * os.sysconf("SC_PAGE_SIZE") // 4
