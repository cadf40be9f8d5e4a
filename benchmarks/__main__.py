"""`python -m benchmarks`: the tables and the chart of docs/research/performance.md."""

import sys
from pathlib import Path

sys.path.insert(0, str(Path(__file__).parent))  # benchmarks import each other by name

from performance_page import main

main()
