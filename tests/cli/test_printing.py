import sys
import warnings

import pytest

from recollect.cli.printing import echo, output_on_stderr, plain_warnings, visible_console


def test_control_characters_are_printed_as_escapes(capsys: pytest.CaptureFixture[str]) -> None:
    echo("a\x1b[31mb")
    visible_console().print("c\x1b[31md", markup=False)
    printed = capsys.readouterr().out
    assert "\x1b" not in printed
    assert "a\\x1b[31mb" in printed


def test_a_warning_is_one_sentence_on_stderr(capsys: pytest.CaptureFixture[str]) -> None:
    with plain_warnings(UserWarning):
        warnings.warn("The images are dark.", stacklevel=1)
    assert capsys.readouterr().err == "The images are dark.\n"


def test_what_models_print_stays_out_of_results(capfd: pytest.CaptureFixture[str]) -> None:
    with output_on_stderr():
        sys.stdout.write("chatter\n")
    sys.stdout.write("result\n")
    printed = capfd.readouterr()
    assert (printed.out, printed.err) == ("result\n", "chatter\n")
