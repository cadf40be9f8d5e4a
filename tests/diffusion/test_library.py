import textwrap
from importlib.util import find_spec
from pathlib import Path

from recollect.diffusion import can_open_priors
from tests import warm


def test_it_is_found_without_being_imported() -> None:
    assert can_open_priors() == (find_spec("diffusers") is not None)


def test_without_diffusers_one_sentence_says_how_to_get_it(written: Path) -> None:
    code = f"""
        import sys

        class Refuse:
            def find_spec(self, name, path=None, target=None):
                if name.split(".")[0] == "diffusers":
                    raise ModuleNotFoundError("No module named 'diffusers'", name="diffusers")

        sys.meta_path.insert(0, Refuse())
        from recollect import InputError
        from recollect.diffusion import open_denoiser
        try:
            open_denoiser({str(written)!r})
        except InputError as error:
            print(error)
    """
    done = warm.run(textwrap.dedent(code))
    expected = (
        "A diffusion model in diffusers' layout needs diffusers, and diffusers is not installed: "
        "pip install 'recollect[diffusion]'."
    )
    assert done.out.strip() == expected, done.err
