"""`python -m recollect.paper`: the same as `recollect paper`, where only torch, numpy and Pillow are installed."""

from __future__ import annotations

import sys

from recollect.paper.commands import main

if __name__ == "__main__":
    sys.exit(main())
