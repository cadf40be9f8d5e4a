"""Call a model; a call that fails for lack of memory or of autograd is repeated in a way that works."""

from __future__ import annotations

import logging
from collections.abc import Callable

import torch
from torch import Tensor

from recollect.errors import is_out_of_memory

NO_GRAPH = "does not require grad and does not have a grad_fn"  # torch's words for a derivative without autograd

log = logging.getLogger(__name__).warning


class ModelCall:
    """Calls a model, and remembers for later calls what it needs: smaller batches, or autograd."""

    def __init__(self) -> None:
        self.most: int | None = None  # images at once; None as long as memory sufficed
        self.with_autograd = False  # its forward pass takes derivatives, which `no_grad` would refuse

    def __call__(self, f: Callable[[Tensor], Tensor], x: Tensor) -> Tensor:
        if self.most is not None and len(x) > self.most:
            return torch.cat([self(f, part) for part in x.split(self.most)])
        version = _version(x)
        try:
            return self._call(f, x)
        except Exception as error:
            if not _can_be_repeated(x, version) or not self._learns_from(error, x):
                raise
        if x.is_cuda:  # not in the except block: the error holds what the model had allocated
            torch.cuda.empty_cache()
        return self(f, x)

    def _call(self, f: Callable[[Tensor], Tensor], x: Tensor) -> Tensor:
        if not self.with_autograd:
            return f(x)
        with torch.enable_grad():
            return f(x.detach()).detach()

    def _learns_from(self, error: Exception, x: Tensor) -> bool:
        """Say whether the call may work another way, and remember that way."""
        if is_out_of_memory(error) and len(x) > 1:
            self.most = len(x) // 2
            log(
                "The memory does not suffice for %s images at once; the model is given %s from here on.",
                len(x), self.most,
            )  # fmt: skip
            return True
        if NO_GRAPH in str(error) and not torch.is_grad_enabled():
            x.requires_grad_(False)  # the model may have asked for it
            self.with_autograd = True
            return True
        return False


def _can_be_repeated(x: Tensor, version: int | None) -> bool:
    """Say whether a batch is as it was, and no CUDA graph is being captured, which an error ends."""
    if version is None or version != _version(x):
        return False
    return not (x.is_cuda and torch.cuda.is_current_stream_capturing())


def _version(x: Tensor) -> int | None:
    """Return how often a tensor was written to; inference mode does not count."""
    return None if x.is_inference() else x._version
