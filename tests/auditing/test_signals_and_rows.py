"""Audits of a tabular autoencoder and of one of signals, which were trained until they memorize."""

import json
import re
from pathlib import Path

import numpy as np
import pytest
import torch
from torch import nn

from recollect import FullyConnected, Images, InputError, audit, open_model
from recollect.auditing import Audit
from recollect.auditing.value_plots import HEIGHT, WIDTH
from recollect.checkpoints import save_checkpoint
from recollect.methods import DDNM, Biharmonic, Blind, Refined
from tests.cli.running import here, mistake

NAMES = [f"c{number}" for number in range(20)]
RAW_RANGE = (-4.0, 4.0)
ATTACKS = [Blind(limit=6), Refined(limit=6, restart_steps=20, polish_steps=20)]
TABULAR = """
from recollect import FullyConnected
from torch import nn

def build():
    return nn.Sequential(*FullyConnected((20,), layers=4, width=96).net[1:-1])
"""


def raw_rows(count: int, seed: int) -> np.ndarray:
    """Standardised rows of 20 columns that depend on each other."""
    mix = np.random.default_rng(0).normal(size=(6, 20)) / 3
    rng = np.random.default_rng(seed)
    return np.clip(rng.normal(size=(count, 6)) @ mix + 0.3 * rng.normal(size=(count, 20)), *RAW_RANGE)


def signals(count: int, seed: int) -> np.ndarray:
    """Sums of sines, two channels of 48 values in [0, 1]."""
    rng = np.random.default_rng(seed)
    frequency, phase = rng.uniform(1, 5, (2, count, 2, 3, 1))
    return 0.5 + np.sin(2 * np.pi * frequency * np.linspace(0, 1, 48) + 6 * phase).sum(2) / 6.5


def fitted(network: nn.Module, x: torch.Tensor, steps: int = 500) -> nn.Module:
    """Train a network until it reproduces x."""
    optimizer = torch.optim.Adam(network.parameters(), 2e-3)
    schedule = torch.optim.lr_scheduler.CosineAnnealingLR(optimizer, steps)
    for _ in range(steps):
        optimizer.zero_grad()
        (network(x) - x).square().mean().backward()
        optimizer.step()
        schedule.step()
    return network.eval()


@pytest.fixture(scope="module")
def tabular() -> nn.Module:
    """A network of standardised rows, as somebody else wrote it."""
    rows = torch.from_numpy(raw_rows(12, 1)).float()
    layers = list(FullyConnected((20,), layers=4, width=96).net.children())
    return fitted(nn.Sequential(*layers[1:-1]), rows)


@pytest.fixture(scope="module")
def of_signals() -> nn.Module:
    return fitted(FullyConnected((2, 48), layers=4, width=96), torch.from_numpy(signals(12, 1)).float())


def in_unit(rows: np.ndarray) -> torch.Tensor:
    low, high = RAW_RANGE
    return torch.from_numpy((rows - low) / (high - low)).float()


@pytest.fixture(scope="module")
def rows_audit(tabular: nn.Module, tmp_path_factory: pytest.TempPathFactory) -> Audit:
    train = Images(in_unit(raw_rows(12, 1)), columns=NAMES)
    control = Images(in_unit(raw_rows(10, 2)), columns=NAMES)
    model = open_model(tabular, input_range=RAW_RANGE)
    return audit(
        model, train=train, control=control, masks="block,columns:c0+c7+3-5", methods=ATTACKS, attractors=1,
        out=tmp_path_factory.mktemp("a"),
    )  # fmt: skip


def test_a_tabular_autoencoder_is_caught(rows_audit: Audit) -> None:
    assert rows_audit.headline.startswith("Attacks recover 12 of 12 training rows from this model")
    assert "Of 10 rows it never saw: " in rows_audit.headline
    assert rows_audit.finding.train.count == 12
    assert rows_audit.finding.control is not None
    assert rows_audit.finding.control.count <= 3
    assert rows_audit.masks == ["block", "columns:c0+c7+3-5"]
    assert rows_audit.attractors is not None
    assert "training rows" in str(rows_audit)


def test_the_report_of_rows_has_bars_and_says_rows(rows_audit: Audit) -> None:
    folder = rows_audit.store.folder
    assert folder is not None
    with np.load(folder / "samples.npz") as samples:
        assert samples["original/train"].shape == (12, HEIGHT, WIDTH, 3)
        assert samples["mask/train/block/refined"].shape == (12, HEIGHT, WIDTH)
    page = (folder / "report.html").read_text()
    assert "Rows are drawn as bars" in page
    assert "training rows recovered" in page
    assert "of 255 parts of the range" in page
    assert re.search(r'"noun": ?"row"', page)
    assert "grey levels" not in page.partition("<script")[0]
    assert not re.search(r">shows (a|another) training image<", page)
    assert Audit.load(folder).kind == "rows"


def test_a_signal_autoencoder_is_caught(of_signals: nn.Module, tmp_path: Path) -> None:
    train, control = (torch.from_numpy(signals(count, seed)).float() for count, seed in ((12, 1), (10, 2)))
    result = audit(
        of_signals, train=train, control=control, masks="block", fill="zero,noise", methods=ATTACKS, out=tmp_path
    )
    assert result.headline.startswith("Attacks recover 12 of 12 training signals from this model")
    assert result.finding.control is not None
    assert result.finding.control.count == 0
    assert "Signals are drawn as lines" in (tmp_path / "report.html").read_text()


def test_both_through_the_command_line(
    tabular: nn.Module, of_signals: nn.Module, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    for name, count, seed in (("train", 12, 1), ("control", 10, 2)):
        header = ",".join([*NAMES, "label"])
        lines = [",".join(map(repr, [*row.tolist(), 1])) for row in raw_rows(count, seed)]
        Path(f"{name}.csv").write_text("\n".join([header, *lines]))
        np.save(f"{name}.npy", 10 * signals(count, seed) - 5)
    torch.save(tabular.state_dict(), "rows.pt")
    Path("tabular.py").write_text(TABULAR)
    save_checkpoint("signals.safetensors", of_signals, {})
    short = ["--masks", "block", "--methods", "blind", "--gamma", "0.5", "--start", "half_kept"]
    query, model = "range=-4,4&drop=label", ["tabular:build", "--weights", "rows.pt", "--input-range=-4,4"]
    train, control = (["--train", f"train.csv?{query}"], ["--control", f"control.csv?{query}"])
    result = here("audit", *model, *train, *control, *short)
    assert result.exit_code == 0, result.output
    assert "Attacks recover 12 of 12 training rows" in " ".join(result.stdout.split())
    verified = here("verify", "audit")
    assert verified.exit_code == 0, verified.output
    facts = json.loads(Path("audit/audit.json").read_text())
    assert "rows recovered by" in facts["finding"]["beside"]
    sentences = [facts["finding"]["beside"], *(check["sentence"] for check in facts["checks"])]
    assert not [sentence for sentence in sentences if "image" in sentence or "picture" in sentence]
    assert "biharmonic restores images, C x H x W" in mistake(
        "audit", *model, *train, *short, "--methods", "biharmonic"
    )
    train, control = (["--train", "train.npy?range=-5,5"], ["--control", "control.npy?range=-5,5"])
    result = here("audit", "signals.safetensors", *train, *control, *short, "--out", "b")
    assert result.exit_code == 0, result.output
    assert "Attacks recover 12 of 12 training signals" in " ".join(result.stdout.split())
    assert json.loads(Path("b/audit.json").read_text())["train"]["kind"] == "signals"


def test_methods_of_images_say_so() -> None:
    class Prior:
        shape, alphas_cumprod = (3, 8, 8), torch.linspace(0.9, 0.1, 1000)

        def noise(self, x: torch.Tensor, t: int) -> torch.Tensor:
            return x

    for method in (Biharmonic(), DDNM(Prior())):
        for shape in ((4, 2, 20), (4, 20)):
            with pytest.raises(InputError, match=f"{method.name} restores images, C x H x W"):
                method(None, torch.rand(shape))


def test_training_and_networks_take_signals_and_rows() -> None:
    for shape in ((2, 48), (20,)):
        network = FullyConnected.for_images(shape, layers=2, width=8)
        assert network(torch.rand(3, *shape)).shape == (3, *shape)


def test_rows_in_too_wide_a_range_are_refused() -> None:
    train, control = (Images(0.5 + in_unit(raw_rows(count, count)) / 100) for count in (12, 10))
    with pytest.raises(InputError, match=r"All rows of images are within an MSE of 0.002 of training rows.*clip=1"):
        audit(lambda x: x, train=train, control=control, masks="block", methods=ATTACKS)
