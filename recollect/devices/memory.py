"""How much memory there is to be had."""

from __future__ import annotations

import os
from pathlib import Path
from typing import NamedTuple

import torch


def free_memory(device: torch.device) -> int:
    """Bytes that can be had. On a GPU: what nobody has, and what PyTorch holds without using it."""
    if device.type != "cuda":
        return _free_on_the_host()
    by_us = held(device)
    return torch.cuda.mem_get_info(device)[0] + by_us.reserved - by_us.used


class Held(NamedTuple):
    """Bytes of a GPU's memory that PyTorch has, uses, and has used at most since that was last reset."""

    reserved: int
    used: int
    peak: int


def held(device: torch.device) -> Held:
    of = torch.cuda.memory_stats_as_nested_dict(device)  # its flat form takes longer
    used = of["allocated_bytes"]["all"]
    return Held(of["reserved_bytes"]["all"]["current"], used["current"], used["peak"])


def _free_on_the_host() -> int:
    """By Linux's own estimate where there is one."""
    meminfo = Path("/proc/meminfo")
    if meminfo.exists():
        for line in meminfo.read_text().splitlines():
            if line.startswith("MemAvailable:"):
                return int(line.split()[1]) * 1024
    pages = os.sysconf("SC_PHYS_PAGES") if hasattr(os, "sysconf") else 0
    return pages * os.sysconf("SC_PAGE_SIZE") // 4 if pages else 2**31
