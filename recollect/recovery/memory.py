"""How much memory there is to be had."""

from __future__ import annotations

import os
from pathlib import Path

import torch


def free_memory(device: torch.device) -> int:
    """Bytes that can be had. On a GPU: what nobody has, and what PyTorch holds without using it."""
    if device.type != "cuda":
        return _free_on_the_host()
    unused = torch.cuda.memory_reserved(device) - torch.cuda.memory_allocated(device)
    return torch.cuda.mem_get_info(device)[0] + unused


def _free_on_the_host() -> int:
    """By Linux's own estimate where there is one."""
    meminfo = Path("/proc/meminfo")
    if meminfo.exists():
        for line in meminfo.read_text().splitlines():
            if line.startswith("MemAvailable:"):
                return int(line.split()[1]) * 1024
    pages = os.sysconf("SC_PHYS_PAGES") if hasattr(os, "sysconf") else 0
    return pages * os.sysconf("SC_PAGE_SIZE") // 4 if pages else 2**31
