import pytest
import torch

from recollect import Images, Refined, mask, observe
from tests.planted import Memorizer


def test_pieces_give_the_answers_of_the_whole(monkeypatch: pytest.MonkeyPatch) -> None:
    images = Images(torch.rand(6, 1, 8, 8, generator=torch.Generator().manual_seed(0)))
    seen, f = observe(images, mask("block", images.shape)), Memorizer(images.pixels[:4])
    whole = Refined()(f, seen.y, chunk=2)
    monkeypatch.setenv("RECOLLECT_MAX_PIECE_BYTES", "1")
    numbers: list[int] = []
    done: list[tuple[int, int]] = []
    parts = Refined()(
        f, seen.y, chunk=2, trace=lambda s: numbers.extend(s.index.tolist()), progress=lambda *d: done.append(d)
    )
    assert torch.allclose(parts.estimate, whole.estimate, atol=1e-5)
    assert torch.equal(parts.stop, whole.stop)
    assert set(numbers) == set(range(6))
    assert done[-1] == (6, 6)
