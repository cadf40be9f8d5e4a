"""Recollect: how much of its training set can be read back out of an autoencoder?"""

from recollect.errors import InputError
from recollect.images import Images

__all__ = ["Images", "InputError"]
