"""The page of performance shows what saved results say."""

import shutil
from pathlib import Path

import pytest

from recollect.records import read_json
from tests.benchmarks.running import ROOT, benchmark, refused, run

page = benchmark("performance_page")
TEXT = (ROOT / "docs" / "research" / "performance.md").read_text()


@pytest.mark.parametrize("heading", page.page_tables())
def test_the_page_has_the_table_of_its_records(heading: str) -> None:
    section = TEXT.partition(f"## {heading}\n")[2].partition("\n## ")[0]
    assert page.page_tables()[heading] in section


def test_a_whole_audit_on_a_gpu_has_a_row_once_it_is_measured(tmp_path: Path) -> None:
    before = page.whole_audits()
    for name in ("whole-audit-cpu-before", "whole-audit-cpu"):
        shutil.copy(ROOT / "results" / f"{name}.json", tmp_path)
    shutil.copy(ROOT / "results" / "whole-audit-cpu.json", tmp_path / "whole-audit-gpu.json")
    *rows, last = page.whole_audits(tmp_path).splitlines()
    assert last == rows[-1].replace("-cpu", "-gpu")
    assert rows == [row for row in before.splitlines() if "-gpu" not in row]


def test_memory_in_the_text_is_that_of_the_record() -> None:
    rows = read_json(ROOT / "results" / "speed-gpu.json")["growth"]["fc10"]
    first, last = (f"{rows[end]['peak_bytes'] / 2**20:,.0f}" for end in (0, -1))
    assert f"100 images took {first} MiB of working memory and 25,000 took {last}" in " ".join(TEXT.split())


def test_first_recoveries_are_those_of_the_record() -> None:
    cases = read_json(ROOT / "results" / "first-recovery.json")["cases"]
    assert all(case["fresh"]["estimate"] == case["later"]["estimate"] for case in cases.values())
    for name, label in (("unet50", "U-Net, 32x32"), ("fc10", "FC-10, 64x64")):
        first = [f"{cases[name][kind]['seconds']['first']:.1f}" for kind in ("PyTorch", "fresh", "later")]
        assert f"| {' | '.join([label, *first])} |" in TEXT


def test_refined_and_the_whole_audit_are_those_of_the_records() -> None:
    text = " ".join(TEXT.split())
    methods = read_json(ROOT / "results" / "refined-speed.json")["cases"]["fc10"]
    blind, refined = (methods[name]["seconds"] / methods[name]["image_steps"] for name in ("blind", "refined"))
    assert f"takes `refined` {refined / blind:.2f} times as long as `blind`, with FC-10 on the H200." in text
    calls = {}
    for name in ("whole-audit-cpu-before", "whole-audit-cpu"):
        audit = read_json(ROOT / "results" / f"{name}.json")["cases"]["demo"]
        (calls[name],) = (one["calls"] for one in audit["profile"] if one["function"] == "engine/runtime.py:__call__")
        assert (
            f"| `results/{name}.json` | {calls[name]:,} | {audit['audit_seconds']:.1f} | {audit['ratio']:.2f} |" in text
        )
    before, now = calls.values()
    assert f"on a CPU makes {now / before - 1:.0%} more network calls than the version of the first record" in text


def test_errors_of_multiplications_are_those_of_the_record() -> None:
    cases = read_json(ROOT / "results" / "layer-kernels.json")["cases"]
    for name, label in (("fc10", "FC-10"), ("unet50", "U-Net")):
        errors = cases[name]["errors"]
        assert f"| {label} | {errors['library']['mean']:.1e} | {errors['ours']['mean']:.1e} |" in TEXT
    gained = [
        abs(found["median_psnr"]["ours"] - found["median_psnr"]["library"])
        for case in cases.values()
        for found in case["recoveries"].values()
    ]
    assert max(gained) < 0.1


def test_the_time_of_a_report_is_that_of_the_record() -> None:
    saved = read_json(ROOT / "results" / "saved-audit.json")
    seconds = saved["commands"]["report"]["wall_seconds"]
    assert f"A report of {saved['images']:,} training and {saved['images']:,} unseen images takes {seconds:.1f} s." in (
        " ".join(TEXT.split())
    )


def test_one_command_writes_the_committed_tables_and_chart(tmp_path: Path) -> None:
    chart, copy = tmp_path / "chart.svg", tmp_path / "page.md"
    text = TEXT
    for table in page.page_tables().values():
        text = text.replace(table, table.replace(" |\n| ", "1 |\n| "))
    assert text != TEXT
    copy.write_text(text)
    printed = run("performance_page", "--chart", str(chart), "--page", str(copy))
    assert all(table in printed for table in page.page_tables().values())
    assert copy.read_text() == TEXT
    assert "network alone" in chart.read_text()
    assert chart.read_text() == (ROOT / "docs/figures/performance.svg").read_text()


def test_a_page_without_the_tables_is_refused(tmp_path: Path) -> None:
    (tmp_path / "page.md").write_text("# Another page\n")
    told = refused("performance_page", "--chart", str(tmp_path / "chart.svg"), "--page", str(tmp_path / "page.md"))
    assert "no table below the heading 'On a CPU'" in told


def test_a_gpu_is_measured_on_data() -> None:
    assert "--measure gpu needs --data" in refused("performance_page", "--measure", "gpu")


def test_chosen_benchmarks_share_a_trained_network(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.chdir(tmp_path)
    options = page.parse(["--measure", "gpu", "--data", "sets", "--only", "whole_audit", "refined_speed"])
    refined, audit = page.commands_of(options, "kept")
    assert (refined[0], audit[0]) == ("refined_speed.py", "whole_audit.py")
    for command in (refined, audit):
        assert command[command.index("--checkpoint") + 1] == "kept/fc10.safetensors"
        assert command[command.index("--data") + 1] == str(tmp_path / "sets")
    everything = [command[0] for command in page.commands_of(page.parse(["--measure", "cpu"]), "kept")]
    assert everything == [command[0] for command in page.COMMANDS["cpu"]]
    assert not list(page.commands_of(page.parse([]), "kept"))


@pytest.mark.parametrize("arguments", [["--measure", "cpu", "--only", "first_recovery"], ["--only", "recovery"]])
def test_a_benchmark_that_is_none_of_the_device_is_refused(arguments: list[str]) -> None:
    assert f"there is no {arguments[-1]} among" in refused("performance_page", *arguments)


@pytest.mark.parametrize("script", sorted({command[0] for commands in page.COMMANDS.values() for command in commands}))
def test_every_command_is_one_that_the_script_takes(script: str) -> None:
    module = benchmark(script.removesuffix(".py"))
    for commands in page.COMMANDS.values():
        for name, *arguments in commands:
            if name == script:
                module.parse([argument.format(data="DATA", work="kept") for argument in arguments])
