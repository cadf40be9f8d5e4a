from pathlib import Path

from recollect.models.refusals import needs_pickle, unsafe_program, weights_alone


def test_a_pickle_is_refused_with_a_conversion_that_runs_as_it_stands() -> None:
    text = str(needs_pickle(Path("models/net.pt"), "it names code"))
    assert text.startswith("models/net.pt is refused: it names code.")
    code = "\n".join(line.strip() for line in text.splitlines() if line.startswith("    "))
    compile(code, "conversion", "exec")
    assert '"net.safetensors"' in code
    assert text.endswith("weights=net.safetensors.")


def test_weights_without_a_network_are_told_both_ways_to_give_them() -> None:
    text = str(weights_alone(Path("w.safetensors")))
    assert "weights='w.safetensors'" in text
    assert "--weights w.safetensors" in text


def test_a_program_is_refused_with_the_way_round() -> None:
    assert str(unsafe_program(Path("m.pt"), "it writes", "Export it.")) == (
        "m.pt is refused: it writes. Nothing of it was run. Export it."
    )
