from recollect.counting import counted, counted_kinds


def test_one_thing_has_no_plural() -> None:
    assert [counted(count, "mask") for count in (0, 1, 2)] == ["0 masks", "1 mask", "2 masks"]


def test_the_last_kind_decides_the_plural_of_several() -> None:
    assert counted_kinds({"training": 1}, "image") == "1 training image"
    assert counted_kinds({"training": 1, "unseen": 20}, "image") == "1 training and 20 unseen images"
    assert counted_kinds({"training": 20, "unseen": 1}, "image") == "20 training and 1 unseen image"
