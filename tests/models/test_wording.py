from recollect.models.wording import first_line, option, size


def test_an_option_is_written_as_in_python_and_as_on_the_command_line() -> None:
    assert option("input_range", "-1,1") == "input_range='-1,1' (--input-range -1,1)"
    assert option("flat", True) == "flat=True (--flat)"


def test_sizes_have_a_cross_between_numbers() -> None:
    assert size((3, 8, 8)) == "3x8x8"
    assert size(()) == "scalar"


def test_control_characters_of_a_file_do_not_reach_the_terminal() -> None:
    assert first_line(ValueError("a\x1b[31mb\nsecond")) == "a?[31mb"
    assert first_line(ValueError()) == "ValueError"
    assert len(first_line(ValueError("x" * 1000))) == 300
