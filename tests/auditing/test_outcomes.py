import math

from recollect.auditing.outcomes import Nearest, outcomes


def test_how_a_recovery_ended() -> None:
    near = Nearest(["a", "b", "b", "x", None], [1e-9, 1e-9, 1e-9, 0.1, None])
    own = [1e-9, 0.3, 1e-9, 0.2, math.nan]
    ids = ["a", "a", "b", "c", "d"]
    assert outcomes(ids, own, near, 1e-7, training=True) == [
        "recovered", "another training image", "recovered", "neither", "neither",
    ]  # fmt: skip
    # An unseen image may have the id of a training image and still be another picture.
    assert outcomes(["b"], [0.3], Nearest(["b"], [1e-9]), 1e-7, training=False) == ["another training image"]
    assert outcomes(["b"], [0.3], Nearest(["b"], [1e-9]), 1e-7, training=True) == ["neither"]
