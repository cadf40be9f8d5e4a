from recollect.training.outcome import format_loss


def test_losses_are_short_and_never_alike() -> None:
    assert [format_loss(loss) for loss in (1e-4, 1e-8, 0.5, 1.5e-5, 1.4e-4)] == [
        "1e-04",
        "1e-08",
        "5e-01",
        "1.5e-05",
        "0.00014",
    ]
    assert len({format_loss(loss) for loss in (1.4e-4, 1e-4, 1.04e-4)}) == 3
