"""What the pages on scaling and on defences say, held against their tables, which are held against the records."""

import re
from pathlib import Path

RESEARCH = Path(__file__).parents[2] / "docs" / "research"
Row = dict[str, str]


def rows_of(page: str) -> list[Row]:
    lines = [line.strip("| ").split(" | ") for line in table_of(page).splitlines() if line.startswith("|")]
    head, _rule, *cells = lines
    return [dict(zip(head, (cell.strip(" |") for cell in row), strict=False)) for row in cells]


def table_of(page: str) -> str:
    return (RESEARCH / page).read_text().split("<!-- table")[1].split("<!-- end -->")[0]


def findings(page: str) -> str:
    text = (RESEARCH / page).read_text().split("## What is seen")[1].split("## How to read it")[0]
    return " ".join(text.split())


def percents(text: str) -> list[int]:
    return [int(number) for number in re.findall(r"\d+", text)]


def test_scaling_states_the_numbers_of_its_table() -> None:
    rows = {(row["images"], row["width"]): row for row in rows_of("scaling.md")}
    mean = {(*key, loss): percents(row[loss])[0] for key, row in rows.items() for loss in row if loss.startswith("1e-")}
    text, usual = findings("scaling.md"), ("48", "128")
    by_loss = [mean[(*usual, loss)] for loss in ("1e-02", "1e-03", "1e-04", "1e-05", "1e-08")]
    assert "recovers {}% at a loss of 1e-2, {}% at 1e-3 and {}% at 1e-4".format(*by_loss[:3]) in text
    assert f"it is {by_loss[3]}% there and {by_loss[4]}% at 1e-8" in text
    few, many = mean["12", "128", "1e-08"], mean["96", "128", "1e-08"]
    assert f"falls from {few}% for 12 images to {many}% for 96" in text
    widths = [rows["48", width] for width in ("64", "128", "256")]
    assert "the share is {}%, {}% and {}% for widths".format(*(percents(row["1e-08"])[0] for row in widths)) in text
    ranges = [percents(row["1e-08"])[1:] for row in widths]
    assert max(low for low, _high in ranges) < min(high for _low, high in ranges)
    spreads = [high - low for row in rows.values() for loss in row if loss.startswith("1e-")
               for _mean, low, high in [percents(row[loss])]]  # fmt: skip
    assert f"differ by up to {max(spreads)} points" in text
    assert all(row["unseen images"].startswith("0 of ") for row in rows.values())
    assert all(abs(int(row["zero-rule"]) - percents(row["1e-08"])[0]) <= 5 for row in rows.values())


def test_defences_state_the_numbers_of_their_table() -> None:
    rows = [row for row in rows_of("defences.md") if row.get("strength")]
    share = {(row["defence"], row["strength"]): percents(row["approximate, %"])[0] for row in rows}
    text = findings("defences.md")
    for sentence in (
        f"recovers {share['early stopping', '1e-08']}% of the training images",
        f"leave {share['shifts and mirror images', '1']}% with shifts of one pixel and "
        f"{share['shifts and mirror images', '4']}% with four",
        f"1e-3, {share['early stopping', '1e-03']}% are still recovered",
        f"At 1e-2 it is {share['early stopping', '1e-02']}%",
        f"raises the share to {share['noise on the input', '0.1']}%, and weak dropout to {share['dropout', '0.1']}%",
        f"from {share['weight decay, Muon', '0']}% to {share['weight decay, Muon', '0.15']}%",
        f"a decay of 10 leaves {share['weight decay', '10']}%",
        f"0.01 leaves {share['DP-SGD', '0.01']}%, 0.1 leaves {share['DP-SGD', '0.1']}%",
    ):
        assert sentence in text
    assert share["DP-SGD", "1"] == 0
    best = min(rows, key=lambda row: float(row["loss on unseen images"]))
    assert (best["defence"], best["strength"]) == ("shifts and mirror images", "4")
    assert next(row for row in rows if row["defence"] == "DP-SGD")["accurate, %"] == "0"
    assert float(next(r for r in rows if r["strength"] == "10")["train loss"]) > 1e-2
    assert all(row["unseen images"].startswith("0 of ") for row in rows)
