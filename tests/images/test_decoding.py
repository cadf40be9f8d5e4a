import contextlib
import struct
import zlib
from collections.abc import Callable
from pathlib import Path

import numpy as np
import pytest
from PIL import Image

from recollect.errors import InputError
from recollect.images.decoding import decode, formats, suffixes
from tests.sources.conftest import encoded

Values = Callable[..., np.ndarray]


def png(width: int, height: int, *, bits: int = 8, colour: int = 2, content: bytes | None = None) -> bytes:
    """A PNG written by hand, for what Pillow would not write."""

    def chunk(name: bytes, data: bytes) -> bytes:
        return struct.pack(">I", len(data)) + name + data + struct.pack(">I", zlib.crc32(name + data))

    header = struct.pack(">IIBBBBB", width, height, bits, colour, 0, 0, 0)
    data = zlib.compress(b"" if content is None else content)
    return b"\x89PNG\r\n\x1a\n" + chunk(b"IHDR", header) + chunk(b"IDAT", data) + chunk(b"IEND", b"")


def refusal(data: bytes) -> str:
    with pytest.raises(InputError) as error:
        decode(data, "my/file")
    assert str(error.value).startswith("my/file")
    return str(error.value)


@pytest.mark.parametrize("kind", ["PNG", "BMP", "TIFF", "PPM", "GIF", "WEBP"])
def test_lossless_colour_is_read_exactly(values: Values, kind: str) -> None:
    pixels = (values(5, 7, 3) // 128) * 255  # few enough colours for a GIF
    options = {"lossless": True} if kind == "WEBP" else {}
    assert np.array_equal(decode(encoded(Image.fromarray(pixels), kind, **options), "x"), pixels.transpose(2, 0, 1))


def test_grey_has_one_channel(values: Values) -> None:
    pixels = values(5, 7)
    assert np.array_equal(decode(encoded(Image.fromarray(pixels), "PNG"), "x"), pixels[None])
    assert decode(encoded(Image.fromarray(pixels > 99), "PNG"), "x").tolist() == ((pixels > 99) * 255)[None].tolist()


def test_palette_is_looked_up() -> None:
    image = Image.new("P", (2, 1))
    image.putpalette([10, 20, 30, 40, 50, 60])
    image.putpixel((1, 0), 1)
    assert decode(encoded(image, "PNG"), "x").tolist() == [[[10, 40]], [[20, 50]], [[30, 60]]]
    opaque = encoded(image, "PNG", transparency=b"\xff\xff")
    assert decode(opaque, "x").tolist() == [[[10, 40]], [[20, 50]], [[30, 60]]]


def test_cmyk_becomes_rgb() -> None:
    image = Image.new("CMYK", (16, 16), (0, 255, 255, 0))  # no cyan, all magenta and yellow: red
    for kind in ("TIFF", "JPEG"):
        means = decode(encoded(image, kind), "x").mean(axis=(1, 2))
        assert np.allclose(means, [255, 0, 0], atol=3), kind


def test_opaque_alpha_is_dropped_and_transparency_refused(values: Values) -> None:
    pixels = values(4, 4, 4)
    pixels[..., 3] = 255
    assert np.array_equal(decode(encoded(Image.fromarray(pixels), "PNG"), "x"), pixels[..., :3].transpose(2, 0, 1))
    pixels[1, 1, 3] = 254
    assert "transparent" in refusal(encoded(Image.fromarray(pixels), "PNG"))
    for mode, key in (("L", 0), ("1", 0), ("RGB", (0, 0, 0))):  # one value stands for transparent
        assert "transparent" in refusal(encoded(Image.new(mode, (2, 2)), "PNG", transparency=key)), mode
        unused = encoded(Image.new(mode, (2, 2), "white"), "PNG", transparency=key)
        assert decode(unused, "x").tolist() == [[[255] * 2] * 2] * len(Image.new(mode, (1, 1)).getbands()), mode
    palette = Image.new("P", (2, 2))
    assert "transparent" in refusal(encoded(palette, "PNG", transparency=b"\x00"))


def test_orientation_is_applied(values: Values) -> None:
    pixels = values(4, 6, 3)
    image = Image.fromarray(pixels)
    tags = image.getexif()
    tags[274] = 6  # to be turned a quarter, clockwise
    assert np.array_equal(decode(encoded(image, "PNG", exif=tags), "x"), np.rot90(pixels, -1).transpose(2, 0, 1))


@pytest.mark.parametrize(
    "data",
    [
        pytest.param(encoded(Image.new("I;16", (3, 3), 999), "PNG"), id="grey png"),
        pytest.param(png(2, 1, bits=16, content=b"\0" + b"\x01\x02" * 6), id="colour png"),
        pytest.param(png(2, 1, bits=16, colour=6, content=b"\0" + b"\xff\xff" * 8), id="colour and alpha png"),
        pytest.param(b"P6 2 1 65535\n" + b"\x01\x02" * 6, id="ppm"),
        pytest.param(encoded(Image.new("I;16", (3, 3), 999), "TIFF"), id="grey tiff"),
        pytest.param(encoded(Image.new("I;16", (32, 32), 999), "JPEG2000"), id="jpeg 2000"),
    ],
)
def test_sixteen_bits_are_refused(data: bytes) -> None:
    assert "16 bits" in refusal(data)


def test_sixteen_bit_colour_tiff_is_refused(tmp_path: Path, values: Values) -> None:
    tifffile = pytest.importorskip("tifffile")
    tifffile.imwrite(tmp_path / "deep.tif", values(4, 4, 3).astype(np.uint16), photometric="rgb")
    assert "16 bits" in refusal((tmp_path / "deep.tif").read_bytes())


def test_sixteen_bit_colour_jpeg_2000_is_refused(values: Values) -> None:
    data = bytearray(encoded(Image.fromarray(values(32, 32, 3)), "JPEG2000"))
    assert decode(bytes(data), "x").shape == (3, 32, 32)
    data[data.index(b"\xff\x4f\xff\x51") + 42] = 15  # the header now says 16 bits
    assert "16 bits" in refusal(bytes(data))


def test_floats_are_refused() -> None:
    assert "more than 8 bits" in refusal(encoded(Image.new("F", (3, 3)), "TIFF"))


def test_a_truncated_jpeg_is_refused(values: Values) -> None:
    whole = encoded(Image.fromarray(values(64, 64, 3)), "JPEG")
    for keep in (1, 30, len(whole) // 2, len(whole) - 40):
        refusal(whole[:keep])


@pytest.mark.parametrize(("side", "sentence"), [(8_000, "claims 8000x8000"), (12_000, "limit"), (60_000, "limit")])
def test_a_decompression_bomb_is_refused_from_its_header(side: int, sentence: str) -> None:
    assert sentence in refusal(png(side, side))


def test_several_pictures_in_one_file_are_refused() -> None:
    frames = [Image.new("L", (4, 4), shade) for shade in (0, 255)]
    for kind in ("GIF", "TIFF"):
        assert "several pictures" in refusal(encoded(frames[0], kind, save_all=True, append_images=frames[1:]))


def test_what_is_no_image_is_refused() -> None:
    assert "no image format" in refusal(b"hello")
    assert "no image format" in refusal(b"")
    postscript = b"%!PS-Adobe-3.0 EPSF-3.0\n%%BoundingBox: 0 0 9 9\n%%EndComments\n"
    assert "no image format" in refusal(postscript)  # Pillow would start another program for it


def test_random_damage_never_escapes_as_another_error(values: Values) -> None:
    rng = np.random.default_rng(0)
    for kind in ("PNG", "JPEG", "GIF", "TIFF", "BMP", "WEBP"):
        whole = np.frombuffer(encoded(Image.fromarray(values(16, 16, 3)), kind), np.uint8)
        for _ in range(40):
            broken = whole.copy()
            broken[rng.integers(0, len(whole), 4)] = rng.integers(0, 256, 4)
            with contextlib.suppress(InputError):  # anything else fails the test
                assert decode(broken.tobytes(), "x").dtype == np.uint8


def test_only_endings_of_formats_that_are_opened() -> None:
    assert {".png", ".jpg", ".jpeg", ".webp", ".tif", ".bmp", ".gif"} <= suffixes()
    assert not {".eps", ".ps", ".h5", ".pdf", ".txt"} & suffixes()
    assert "EPS" not in formats()


def test_a_file_is_read_by_path(tmp_path: Path, values: Values) -> None:
    pixels = values(3, 3)
    Image.fromarray(pixels).save(tmp_path / "a.png")
    assert np.array_equal(decode(tmp_path / "a.png", "a"), pixels[None])
    with pytest.raises(InputError, match=r"^b cannot be read"):
        decode(tmp_path / "b.png", "b")


def test_bytes_and_file_objects_are_not_left_open(values: Values, recwarn: pytest.WarningsRecorder) -> None:
    decode(encoded(Image.fromarray(values(3, 3)), "PNG"), "x")
    assert not recwarn.list
