"""Call a model; a call that lacks memory or autograd is repeated with what it lacks."""

from __future__ import annotations

import logging
from collections.abc import Callable
from typing import Any
from weakref import WeakKeyDictionary

import torch
from torch import Tensor

from recollect.counting import counted, with_article
from recollect.errors import RAISED_BY_MODEL, InputError, exit_called, is_out_of_memory

NO_GRAPH = "does not require grad and does not have a grad_fn"  # torch's words for a derivative without autograd

FEW = 16  # images at once that a model is likely to take: as many are tried before an audit

log = logging.getLogger(__name__).warning


def check_output(out: Tensor, x: Tensor) -> None:
    """Raise an error that names the output for x if these are no images like x."""
    if not isinstance(out, Tensor):
        raise InputError(
            f"The autoencoder returned {with_article(type(out).__name__)}, not a tensor; wrap it so that it returns "
            "the image."
        )
    if out.shape != x.shape or out.dtype != x.dtype or out.device != x.device:
        raise InputError(
            f"The autoencoder was given {_describe(x)} and returned {_describe(out)}; "
            "it must return images of the shape and dtype it is given, on the same device."
        )


def leave_unchecked(_out: Tensor, _x: Tensor) -> None:
    """Take any output: the caller compares it with the images."""


def _describe(x: Tensor) -> str:
    return f"{'x'.join(map(str, x.shape))} {str(x.dtype).removeprefix('torch.')} on {x.device}"


Check = Callable[[Tensor, Tensor], None]  # of an output and the images that it belongs to


class ModelCall:
    """Calls a model, and remembers for later calls what it needs: smaller batches, or autograd."""

    def __init__(self, most: int | None = None) -> None:
        self.most = most  # images at once; None as long as memory sufficed
        self.with_autograd = False  # its forward pass takes derivatives, which `no_grad` would refuse

    def __call__(self, f: Callable[[Tensor], Tensor], x: Tensor, check: Check = check_output) -> Tensor:
        """Return f(x), called as the model needs it; an error says that the model raised it.

        All in one function: it lies between every method and its network, in the traceback of every error of a model.
        """
        if self.most is not None and len(x) > self.most:
            return torch.cat([self(f, part, check) for part in x.split(self.most)])
        version = _version(x)
        try:
            out = _with_autograd(f, x) if self.with_autograd else f(x)
        except SystemExit as error:
            raise exit_called("The model", error) from error
        except Exception as error:
            if not self._learns_from(error, x, version):
                _note_origin(error, x)
                raise
        else:
            check(out, x)
            return out
        if x.is_cuda:  # not in the except block: the error holds what the model had allocated
            torch.cuda.empty_cache()
        return self(f, x, check)

    def _learns_from(self, error: Exception, x: Tensor, version: int | None) -> bool:
        """Say whether the call may work if it is repeated differently, and remember how."""
        if not _can_be_repeated(x, version):
            return False
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


_calls: WeakKeyDictionary[Any, ModelCall] = WeakKeyDictionary()


def call_of(f: Any) -> ModelCall:
    """Return a call that knows what earlier calls of a model learnt, so that each thing is found out and said once."""
    try:
        return _calls.setdefault(f, ModelCall())
    except TypeError:  # not hashable, or without weak references
        return ModelCall()


def _with_autograd(f: Callable[[Tensor], Tensor], x: Tensor) -> Tensor:
    """Call f as it needs to be called without autograd; where autograd is on, derivatives go through f."""
    if torch.is_grad_enabled():
        return f(x)
    with torch.enable_grad():
        out = f(x.detach())
    return out.detach() if isinstance(out, Tensor) else out


def _note_origin(error: Exception, x: Tensor) -> None:
    """Note on an error that the model raised it; an InputError says itself what is wrong."""
    if not isinstance(error, InputError):
        error.add_note(f"{RAISED_BY_MODEL}{counted(len(x), 'image')}")
        if len(x) > FEW:
            error.add_note(f"chunk={FEW} gives the model at most {FEW} images at once")


def _can_be_repeated(x: Tensor, version: int | None) -> bool:
    """Say whether a batch is as it was, and no CUDA graph is being captured, which an error ends."""
    if version is None or version != _version(x):
        return False
    return not (x.is_cuda and torch.cuda.is_current_stream_capturing())


def _version(x: Tensor) -> int | None:
    """Return how often a tensor was written to; inference mode does not count."""
    return None if x.is_inference() else x._version
