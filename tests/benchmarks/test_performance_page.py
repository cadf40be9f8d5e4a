"""The page of performance shows what saved results say."""

import re
from pathlib import Path

import pytest

from recollect.records import read_json
from tests.benchmarks.running import ROOT, benchmark, refused, run

page = benchmark("performance_page")
TEXT = (ROOT / "docs" / "performance.md").read_text()


@pytest.mark.parametrize("device", page.RECORDS)
def test_the_page_has_the_table_of_a_device(device: str) -> None:
    assert page.page_table(device) in TEXT


def test_the_page_has_at_most_600_words_beside_its_tables() -> None:
    prose = re.sub(r"^\|.*$", "", TEXT, flags=re.M)
    assert len(prose.split()) <= 600


def test_memory_in_the_text_is_that_of_the_record() -> None:
    rows = read_json(ROOT / "results" / "speed-gpu.json")["growth"]["fc10"]
    first, last = (f"{rows[end]['peak_bytes'] / 2**20:,.0f}" for end in (0, -1))
    assert f"100 images took {first} MiB of working memory and 25,000 took {last}" in " ".join(TEXT.split())


def test_one_command_prints_the_tables_and_draws_the_committed_chart(tmp_path: Path) -> None:
    chart = tmp_path / "chart.svg"
    printed = run("performance_page", "--chart", str(chart))
    assert all(page.page_table(device) in printed for device in page.RECORDS)
    assert "network alone" in chart.read_text()
    assert chart.read_text() == (ROOT / "docs/figures/performance.svg").read_text()


def test_a_gpu_is_measured_on_data() -> None:
    assert "--measure gpu needs --data" in refused("performance_page", "--measure", "gpu")


@pytest.mark.parametrize("script", sorted({command[0] for commands in page.COMMANDS.values() for command in commands}))
def test_every_command_is_one_that_the_script_takes(script: str) -> None:
    module = benchmark(script.removesuffix(".py"))
    for commands in page.COMMANDS.values():
        for name, *arguments in commands:
            if name == script:
                module.parse([argument.format(data="DATA") for argument in arguments])
