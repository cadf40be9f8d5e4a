"""The paper's figures and tables, one file each: what is computed, what the paper reports, how it is drawn."""

from pathlib import Path

RESULTS, WORK = Path("results/paper"), Path("runs/paper")  # records to keep; checkpoints and pictures
