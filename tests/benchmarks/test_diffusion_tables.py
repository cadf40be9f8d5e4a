"""The figure and the tables of docs/research/diffusion.md, from the committed records."""

import re
from pathlib import Path
from typing import Any

import pytest

from recollect.records import read_json
from recollect.scoring import APPROXIMATE
from tests.benchmarks.running import ROOT, benchmark, refused, run

tables = benchmark("diffusion_tables")
RECORDS = ROOT / "results" / "diffusion"
PAGE = (ROOT / "docs" / "research" / "diffusion.md").read_text()
WORDS = " ".join(PAGE.split())


@pytest.fixture(scope="module")
def records() -> list[dict[str, Any]]:
    return tables.read(RECORDS)


@pytest.fixture(scope="module")
def longest(records: list[dict[str, Any]]) -> dict[tuple[str, int], Any]:
    """The longest training of each part, by images and epochs."""
    return {(one.label, round(one.found["epochs"])): one for one in tables.longest(records)}


def test_figure_and_tables_are_drawn_from_records_and_are_the_committed_ones(
    records: list[dict[str, Any]], tmp_path: Path
) -> None:
    for path in (*RECORDS.glob("diffusion-*.json"), RECORDS / "speed.json"):
        (tmp_path / path.name).symlink_to(path)
    drawing = tmp_path / "figures" / "diffusion.svg"
    printed = run("diffusion_tables", str(tmp_path), str(drawing))
    assert printed.strip() == "\n\n".join(tables.page_tables(records).values())
    assert (tmp_path / "tables.md").read_text() == (RECORDS / "tables.md").read_text()
    drawn = drawing.read_text()
    assert [f">{share}<" in drawn for share in (100, 99, 98, 97, 93, 81, 12)] == [True] * 7
    committed = (ROOT / "docs" / "figures" / "diffusion.svg").read_text()
    assert re.findall(r"<text[^>]*>([^<]*)<", drawn) == re.findall(r"<text[^>]*>([^<]*)<", committed)


def test_a_folder_without_records_is_refused(tmp_path: Path) -> None:
    assert "There are no records in" in refused("diffusion_tables", str(tmp_path), str(tmp_path / "x.svg"))


def test_the_page_has_the_tables_and_is_short(records: list[dict[str, Any]]) -> None:
    for name, table in tables.page_tables(records).items():
        assert table in PAGE, name
        assert table.count("\n") <= 11, name
    assert len(PAGE.split()) <= 1500
    assert PAGE.index("![") < PAGE.index("|")  # a chart before any table


def test_the_page_says_what_was_trained(records: list[dict[str, Any]]) -> None:
    every = tables.trainings(records)
    assert f"It reports {len(every)} trained models" in WORDS
    assert {record["device"] for record in records} == {"NVIDIA H200"}
    assert {record["precision"] for record in records} == {"bfloat16"}
    assert {(record["rounds"], record["steps_a_round"]) for record in records} == {(4, 40)}
    assert {round(record["parameters"] / 1e6) for record in records} == {19}
    assert {record["scored"]["unseen"] for record in records} == {300}
    totals = {
        (one.found is one.record["checkpoints"][-1], one.cell(attack, mask, "unseen")["total"])
        for one in every for attack in ("blind", "known") for mask in tables.MASKS
    }  # fmt: skip
    assert totals == {(True, 300), (False, 64)}
    longest_of_10000 = max(one.found["epochs"] for one in every if one.record["images"] == 10_000)
    assert f"10,000 images were trained for {longest_of_10000:.0f} epochs at most" in WORDS
    assert "At 10,000 images no training was long enough." in WORDS
    assert "300 unseen ones (64 after shorter trainings)" in WORDS
    assert {(record["images"], record["scored"]["train"], record["left_out"]["train"]) for record in records} == {
        (100, 84, 16), (300, 100, 24), (1000, 100, 24), (3000, 100, 24), (10_000, 100, 24)
    }  # fmt: skip
    for images in (100, 300, 1000, 3000, 10_000):
        assert sum(one.record["images"] == images for one in every) >= 3


def test_what_the_page_concludes_of_recovery(
    records: list[dict[str, Any]], longest: dict[tuple[str, int], Any]
) -> None:
    for one in tables.trainings(records):
        shares = [tables.share(one.cell("blind", mask)) for mask in tables.MASKS]
        if round(one.found["epochs"]) <= 318:
            assert max(shares) < tables.BEGINS  # no model has 10%
    hundred = {round(one.found["epochs"]): one for one in tables.trainings(records) if one.record["images"] == 100}
    assert [tables.share(hundred[epochs].cell("blind", "block")) for epochs in (937, 2808)] == [0, 1]
    memorized = [longest["1,000", 954], longest["1,000, seed 43", 954], longest["3,000", 954]]
    assert min(tables.share(one.cell("blind", "block")) for one in memorized) == 0.93
    assert [tables.percent(one.cell("blind", "half")) for one in memorized] == ["38", "27", "12"]
    for one in [*memorized, longest["100", 2808], longest["300", 1586]]:
        assert all(one.cell("blind", mask, "unseen")["recovered"] == 0 for mask in tables.MASKS)
    of_known = [one.cell("known", mask, "unseen")["recovered"] for one in memorized for mask in tables.MASKS]
    assert sum(of_known) == 1
    assert "`blind` recovers no unseen image from models that memorized." in WORDS
    assert "`known` [recovers one](#recovery)." in WORDS
    assert f"at most {100 * tables.upper_bound({'recovered': 0, 'total': 300}):.1f}% (95%)" in WORDS


def test_what_the_page_concludes_of_samples(longest: dict[tuple[str, int], Any]) -> None:
    copies = {key: one.found["extraction"]["distinct"]["approximate"] for key, one in longest.items()}
    by_patches = {key: one.found["extraction"]["distinct"]["patches"] for key, one in longest.items()}
    assert (copies["1,000", 954], copies["3,000", 954]) == (3, 0)
    looser = "or {} and {} by [a looser rule]".format(by_patches["1,000", 954], by_patches["3,000", 954])
    assert f"hold 3 copies of 1,000 images and none of 3,000, {looser}" in WORDS
    for key in (("1,000", 954), ("3,000", 954)):
        cell = longest[key].cell("blind", "dust")
        assert (cell["recovered"], cell["total"]) == (100, 100)
    assert "From both, `blind` recovers all 100 attacked under `dust`." in WORDS
    assert {one.found["extraction"]["evaluations"] for one in longest.values()} == {39 * 2048}
    each = [one.found["extraction"]["evaluations_each"] for one in longest.values()]
    found = [value for value in each if value]
    assert f"Sampling costs {min(found):.0f} to {max(found):,.0f} for each copy" in WORDS
    costs = [one.cell("blind", mask)["evaluations_an_image"] for one in longest.values() for mask in tables.MASKS]
    assert sum(costs) / len(costs) == pytest.approx(130, abs=3)
    first = longest["10,000", 95].record["checkpoints"][0]
    patches, epochs = first["extraction"]["distinct"]["patches"], round(first["epochs"])
    assert f"counts {patches} copies at 10,000 images and {epochs} epochs" in WORDS


def ranks_of_unseen(one: Any, attack: str, easy: dict[str, Any]) -> list[int]:
    """For each unseen image that is recovered, how many biharmonic inpainting restores as well or better."""
    ranks = []
    for mask in tables.MASKS:
        errors, inpainted = one.cell(attack, mask, "unseen")["mse"], easy["masks"][mask]["unseen"]["mse"]
        recovered = [position for position, error in enumerate(errors) if error < APPROXIMATE]
        ranks += [sum(other <= inpainted[position] for other in inpainted) for position in recovered]
    return ranks


def test_unseen_images_that_are_recovered_are_easy_ones(
    records: list[dict[str, Any]], longest: dict[tuple[str, int], Any]
) -> None:
    easy = read_json(RECORDS / "biharmonic.json")
    assert {record["unseen_hash"] for record in records} == {easy["unseen_hash"]}
    found = {
        attack: {(one.label, round(one.found["epochs"])): ranks_of_unseen(one, attack, easy)
                 for one in tables.trainings(records)}
        for attack in ("blind", "known")
    }  # fmt: skip
    blind = {key: len(ranks) for key, ranks in found["blind"].items() if ranks}
    assert blind.keys() == {("3,000", 318), ("10,000", 95)}
    easiest = max(rank for ranks in found["blind"].values() for rank in ranks)
    assert (
        f"All {sum(blind.values())} are among the {easiest} images that biharmonic inpainting restores best." in WORDS
    )
    known = {key: len(ranks) for key, ranks in found["known"].items() if ranks}
    assert known.keys() == {("3,000", 954), ("3,000", 318), ("10,000", 95)}
    assert known["3,000", 954] == longest["3,000", 954].cell("known", "stripes", "unseen")["recovered"]
    memorized, begun, many = (known[key] for key in (("3,000", 954), ("3,000", 318), ("10,000", 95)))
    assert (
        f"`known` recovers {memorized} unseen image from 3,000 images at 954 epochs, {begun} at 318 epochs and {many} "
        f"from 10,000, all among the same {easiest}."
    ) in WORDS
    assert max(rank for ranks in found["known"].values() for rank in ranks) <= easiest
    counts = [easy["masks"][mask]["unseen"]["recovered"] for mask in ("dust", "stripes")]
    assert f"restores {sum(counts)} of 600 unseen images under `dust` and `stripes`" in WORDS
    assert tables.percent(easy["masks"]["stripes"]["train"]) == "4"
    assert tables.percent(longest["10,000", 95].cell("blind", "stripes")) == "4"


def test_what_the_page_concludes_of_membership_and_noise_levels(longest: dict[tuple[str, int], Any]) -> None:
    begun = longest["3,000", 318]
    aucs = [f"{tables.chosen_auc(begun.found, name):.2f}" for name in ("fixed_point", "loss", "secmi")]
    assert "an AUC of {}, the loss with {} and SecMI with {}".format(*aucs) in WORDS
    assert [begun.cell("blind", mask)["recovered"] for mask in ("block", "half")] == [0, 0]
    levels = longest["1,000", 954].found["noise_levels"]
    under_half = {row["sigma"]: tables.percent(row["blind"]["half"]["train"]) for row in levels}
    assert max(under_half.items(), key=lambda level: int(level[1])) == (0.2, "33")
    assert under_half[0.8] == "4"
    ratios = [row["denoising_loss"]["unseen"] / row["denoising_loss"]["train"] for row in levels]
    assert f"is {min(ratios):.0f} to {max(ratios):.0f} times that of training images" in WORDS


def test_what_the_page_concludes_of_annealing_and_precision(
    records: list[dict[str, Any]], longest: dict[tuple[str, int], Any]
) -> None:
    more, fewer = tables.changed_by_annealing(records, "blind")
    assert f"annealing recovers {more} damaged images that a fixed level misses, and misses {fewer}" in WORDS
    assert "the counts are {} and {}".format(*tables.changed_by_annealing(records, "known")) in WORDS
    annealed = [one for one in longest.values() if "annealed" in one.record]
    assert len(annealed) == 5
    means = [sum(one.cell("blind", m)["evaluations_an_image"] for m in tables.MASKS) / 4 for one in annealed]
    assert f"160 evaluations, against {min(means):.0f} to {max(means):.0f}" in WORDS
    timed = longest["3,000", 954]
    assert timed.record["speed"]["blind in float32"]["block"]["train"]["recovered"] == 93
    assert timed.cell("blind", "block")["recovered"] == 93


def test_what_the_page_concludes_of_other_attacks(records: list[dict[str, Any]]) -> None:
    iterated = [tables.share(cell["train"]) for record in records for cell in record.get("iterate", {}).values()]
    assert max(iterated) == 0.02
    refined = [one for one in tables.longest(records) if "refined" in one.record]
    assert len(refined) == 3
    under_half = 0
    for one in refined:
        own = {mask: one.record["refined"][mask]["train"] for mask in ("block", "half")}
        usual = {mask: one.cell("blind", mask) for mask in own}
        assert own["block"]["recovered"] > usual["block"]["recovered"]
        under_half += own["half"]["recovered"] < usual["half"]["recovered"]
        evaluations = [sum(cell["evaluations_an_image"] for cell in cells.values()) for cells in (own, usual)]
        assert evaluations[0] / evaluations[1] == pytest.approx(10, abs=1)
    assert under_half == 2


def test_what_the_page_concludes_of_speed() -> None:
    rows = [row for own in tables.read_speed(RECORDS).values() for row in own]
    fixed, annealed = (max(row["ratio"] for row in rows if row["annealed"] is kind) for kind in (False, True))
    assert fixed <= 1.10
    told = f"at most {fixed:.2f} times as long as the network alone at a fixed noise level, and {annealed:.2f} annealed"
    assert told in WORDS
    assert ("annealed steps ran without a CUDA graph" in WORDS) is (annealed > 1.10)
