from recollect.counting import counted, counted_kinds, of_kind, with_article


def test_one_thing_has_no_plural() -> None:
    assert [counted(count, "mask") for count in (0, 1, 2)] == ["0 masks", "1 mask", "2 masks"]


def test_the_last_kind_decides_the_plural_of_several() -> None:
    assert counted_kinds({"training": 1}, "image") == "1 training image"
    assert counted_kinds({"training": 1, "unseen": 20}, "image") == "1 training and 20 unseen images"
    assert counted_kinds({"training": 20, "unseen": 1}, "image") == "20 training and 1 unseen image"


def test_a_sentence_about_images_is_written_for_rows_and_signals() -> None:
    sentence = "Original images and one damaged image of other pictures; no pixel, nor pixels of an_image.png."
    assert of_kind(sentence, "images") == sentence
    expected = "Original rows and one damaged row of other rows; no value, nor values of an_image.png."
    assert of_kind(sentence, "rows") == expected
    assert of_kind("Images", "signals") == "Signals"


def test_a_name_has_the_article_that_it_is_spoken_with() -> None:
    names = ["AutoencoderKL", "Iterator", "int", "UNet2DModel", "Generator"]
    assert [with_article(name).split()[0] for name in names] == ["an", "an", "an", "a", "a"]
