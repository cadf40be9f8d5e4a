from recollect.models.wording import option, size


def test_an_option_is_written_as_in_python_and_as_on_the_command_line() -> None:
    assert option("input_range", "-1,1") == "input_range='-1,1' (--input-range -1,1)"
    assert option("flat", True) == "flat=True (--flat)"


def test_sizes_have_a_cross_between_numbers() -> None:
    assert size((3, 8, 8)) == "3x8x8"
    assert size(()) == "scalar"
