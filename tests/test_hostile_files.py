"""Files that would hang or fill the memory: each is refused within 5 CPU seconds and 500 MB beyond the start."""

import bz2
import gzip
import json
import lzma
import os
import pickle
import re
import shutil
import struct
import tarfile
import zipfile
import zlib
from collections.abc import Callable, Iterator
from io import BytesIO
from pathlib import Path
from typing import Any

import numpy as np
import torch
from PIL import Image

from recollect.checkpoints import FORMAT, write_tensors
from recollect.diffusion.opening import BUNDLED
from tests.models.making import export, rewrite, script, tiny
from tests.opening_within_limits import SECONDS
from tests.warm import Ended, run

MEGABYTES = 500
GIGABYTES = 3
PROGRAM = "models/model.json"
OPENING = "import runpy; runpy.run_module('tests.opening_within_limits', run_name='__main__', alter_sys=True)"

Task = tuple[str, str, dict[str, Any], str]  # how it is opened, what, with which options, and what the refusal says
MAKERS: dict[str, Callable[[Path], Task]] = {}


def hostile(maker: Callable[[Path], Task]) -> Callable[[Path], Task]:
    MAKERS[maker.__name__] = maker
    return maker


def packed_zeros(size: int, start: bytes = b"", wbits: int = -15) -> bytes:
    """Some bytes and then zeros, deflated; one block is packed and repeated, since packing gigabytes takes long."""
    packer, zeros = zlib.compressobj(9, zlib.DEFLATED, wbits), bytes(2**20)
    first = packer.compress(start) + packer.flush(zlib.Z_FULL_FLUSH)
    block = packer.compress(zeros) + packer.flush(zlib.Z_FULL_FLUSH)
    return first + block * (size // len(zeros)) + packer.flush()


def refolded(path: Path, entry: str, start: bytes = b"") -> Path:
    """An archive with one entry added or replaced, which unpacks to gigabytes."""
    contents = {}
    if path.exists():
        with zipfile.ZipFile(path) as old:
            contents = {info.filename: old.read(info) for info in old.infolist() if info.filename != entry}
    size = GIGABYTES * 2**30
    with zipfile.ZipFile(path, "w") as new:
        for name, content in contents.items():
            new.writestr(name, content)
        new.writestr(entry, packed_zeros(size, start))
        info = new.filelist[-1]  # stored as it is; only the list of entries says that it is packed
        info.compress_type, info.file_size = zipfile.ZIP_DEFLATED, size + len(start)
    return path


def state_dict(path: Path) -> Path:
    torch.save(tiny().state_dict(), path)
    return path


def weights(path: Path, says: str) -> Task:
    return "model", "tests.models.making:tiny", {"weights": str(path)}, says


# Pickles


def batch(folder: Path, content: bytes) -> Task:
    (folder / "data_batch_1").write_bytes(content)
    return "images", f"cifar10:{folder}", {}, "500,000 steps"


@hostile
def shared_dicts(folder: Path) -> Task:
    part: Any = {}
    for _ in range(60):
        part = {"a": part, "b": part}
    return batch(folder, pickle.dumps(part, 2))


@hostile
def a_key_of_shared_tuples(folder: Path) -> Task:
    part: Any = ()
    for _ in range(60):
        part = (part, part)
    return batch(folder, pickle.dumps(part, 2)[:-1] + b"q\xff0}h\xffK\x01s.")


@hostile
def tens_of_millions_of_steps(folder: Path) -> Task:
    return batch(folder, b"\x80\x02(" + b"}" * 50_000_000 + b"t.")


@hostile
def one_text_many_times(folder: Path) -> Task:
    text = b"X" + struct.pack("<I", 1_000_000) + b"a" * 1_000_000 + b"q\x01"
    content = b"\x80\x02c_codecs\nencode\nq\x02" + text + b"0(" + b"h\x02h\x01\x85R" * 50_000 + b"t."
    return (*batch(folder, content)[:3], "more bytes than the file itself")


@hostile
def weights_with_shared_tuples(folder: Path) -> Task:
    part: Any = (1,)
    for _ in range(60):
        part = (part, part)
    path = folder / "w.pt"
    torch.save({"a": torch.ones(2)}, path)
    pickled = pickle.dumps(part, 2)[:-1] + b"q\xff0}h\xffK\x01s."
    with zipfile.ZipFile(path) as old:
        names = {info.filename: old.read(info) for info in old.infolist()}
    with zipfile.ZipFile(path, "w") as new:
        for name, content in names.items():
            new.writestr(name, pickled if name.endswith("data.pkl") else content)
    return weights(path, "500,000 steps")


# Archives


@hostile
def weights_that_unpack_to_gigabytes(folder: Path) -> Task:
    return weights(refolded(state_dict(folder / "w.pt"), "w/data/0"), "RECOLLECT_MAX_MODEL_GROWTH")


@hostile
def torchscript_that_unpacks_to_gigabytes(folder: Path) -> Task:
    path = refolded(script(tiny(), folder / "m.pt"), "m/data/9")
    return "model", str(path), {}, "RECOLLECT_MAX_MODEL_GROWTH"


@hostile
def an_exported_program_that_unpacks_to_gigabytes(folder: Path) -> Task:
    path = refolded(export(tiny(), folder / "m.pt2"), "m/data/weights/weight_0")
    return "model", str(path), {}, "RECOLLECT_MAX_MODEL_GROWTH"


@hostile
def an_archive_of_many_entries(folder: Path) -> Task:
    path = folder / "m.pt"
    entry = struct.pack("<IHHHHHHIIIHHHHHII", 0x02014B50, 20, 20, 0, 0, 0, 0, 0, 0, 0, 1, 0, 0, 0, 0, 0, 0) + b"a"
    listing = entry * 1_000_000
    path.write_bytes(listing + struct.pack("<IHHHHIIH", 0x06054B50, 0, 0, 65535, 65535, len(listing), 0, 0))
    return "model", str(path), {}, "RECOLLECT_MAX_MODEL_LISTING"


@hostile
def a_megabyte_of_code(folder: Path) -> Task:
    path = script(tiny(), folder / "m.pt")
    with zipfile.ZipFile(path, "a") as archive:
        archive.writestr("m/code/__torch__/more.py", "def f(x: Tensor) -> Tensor:\n  return x\n" * 30_000)
    return "model", str(path), {}, "RECOLLECT_MAX_MODEL_CODE"


@hostile
def a_bz2_tar_of_zeros(folder: Path) -> Task:
    path = folder / "a.tar.bz2"
    block = bz2.compress(bytes(2**24))  # streams can be joined, which is faster than packing gigabytes
    header = tarfile.TarInfo("readme")
    header.size = GIGABYTES * 2**30
    path.write_bytes(bz2.compress(header.tobuf()) + block * (GIGABYTES * 64))
    return "images", f"cifar10:{path}", {}, "RECOLLECT_MAX_SET_GROWTH"


@hostile
def a_gz_tar_of_zeros(folder: Path) -> Task:
    path = folder / "a.tar.gz"
    header = tarfile.TarInfo("readme")
    header.size = GIGABYTES * 2**30
    path.write_bytes(gzip.compress(header.tobuf()) + gzip.compress(bytes(2**24)) * (GIGABYTES * 64))
    return "images", f"cifar10:{path}", {}, "RECOLLECT_MAX_SET_GROWTH"


@hostile
def an_xz_tar_with_a_long_header(folder: Path) -> Task:
    path = folder / "a.tar.xz"
    header = tarfile.TarInfo("pax")
    header.type, header.size = tarfile.XHDTYPE, 2**31
    path.write_bytes(lzma.compress(header.tobuf()) + lzma.compress(bytes(2**24)) * 128)
    return "images", f"cifar10:{path}", {}, "RECOLLECT_MAX_SET_GROWTH"


@hostile
def a_tar_of_many_entries(folder: Path) -> Task:
    path = folder / "a.tar.gz"
    path.write_bytes(gzip.compress(b"".join(tarfile.TarInfo(f"{n}").tobuf() for n in range(2_000))))
    return "images", f"cifar10:{path}", {}, "more than 1,000 entries"


# Arrays


@hostile
def an_npz_of_zeros(folder: Path) -> Task:
    header = BytesIO()
    count = GIGABYTES * 2**30 // (3 * 8 * 8)
    np.lib.format.write_array_header_1_0(header, {"descr": "|u1", "fortran_order": False, "shape": (count, 3, 8, 8)})
    path = refolded(folder / "a.npz", "images.npy", header.getvalue())
    return "images", str(path), {}, "RECOLLECT_MAX_SET_GROWTH"


@hostile
def an_npy_of_a_billion_images(folder: Path) -> Task:
    path = folder / "a.npy"
    with path.open("wb") as file:
        shape = (10**9, 1, 1, 1)
        np.lib.format.write_array_header_1_0(file, {"descr": "|u1", "fortran_order": False, "shape": shape})
        file.truncate(file.tell() + 10**9)  # a hole: it takes no room on the disk
    return "images", str(path), {}, "RECOLLECT_MAX_IMAGES"


@hostile
def an_npy_that_claims_more_than_it_has(folder: Path) -> Task:
    path = folder / "a.npy"
    with path.open("wb") as file:
        shape = (10**9, 3, 10**4, 10**4)
        np.lib.format.write_array_header_1_0(file, {"descr": "|u1", "fortran_order": False, "shape": shape})
    return "images", str(path), {}, "cannot be read"


@hostile
def safetensors_with_a_long_header(folder: Path) -> Task:
    path = folder / "a.safetensors"
    one = b'"%07d":{"dtype":"U8","shape":[0],"data_offsets":[0,0]},'
    header = b"{" + b"".join(one % number for number in range(400_000)) + b'"z":' + one[6:-1] + b"}"
    path.write_bytes(struct.pack("<Q", len(header)) + header)
    return "images", str(path), {}, "RECOLLECT_MAX_MODEL_LISTING"


def mat_variable(name: bytes, shape: tuple[int, ...], content: bytes, claimed: int | None = None) -> bytes:
    dimensions = struct.pack(f"<{len(shape)}i", *shape)
    inner = struct.pack("<4I", 6, 8, 9, 0) + struct.pack("<II", 5, len(dimensions)) + dimensions
    inner += struct.pack("<HH", 1, len(name)) + name.ljust(4, b"\0")
    inner += struct.pack("<II", 2, len(content) if claimed is None else claimed) + content
    packed = zlib.compress(struct.pack("<II", 14, len(inner)) + inner)
    return struct.pack("<II", 15, len(packed)) + packed


MAT_HEADER = b"MATLAB 5.0 MAT-file".ljust(124) + struct.pack("<H", 0x0100) + b"IM"
DIGITS = mat_variable(b"y", (1, 1), b"\x01")


def mat(folder: Path, content: bytes, says: str) -> Task:
    (folder / "train_32x32.mat").write_bytes(MAT_HEADER + content)
    return "images", f"svhn:{folder}", {}, says


@hostile
def a_mat_with_two_arrays_of_one_name(folder: Path) -> Task:
    first = mat_variable(b"X", (32, 32, 3, 8_000), bytes(3072 * 8_000))
    return mat(folder, first + mat_variable(b"X", (32, 32, 3, 1), bytes(3072)) + DIGITS, "two variables 'X'")


@hostile
def a_mat_that_unpacks_to_gigabytes(folder: Path) -> Task:
    size = 3072 * 2**20
    start = bytearray(zlib.decompress(mat_variable(b"X", (32, 32, 3, 2**20), b"", size)[8:]))
    start[4:8] = struct.pack("<I", size + len(start) - 8)
    packed = packed_zeros(size, bytes(start), 15)
    return mat(folder, struct.pack("<II", 15, len(packed)) + packed + DIGITS, "RECOLLECT_MAX_SET_GROWTH")


@hostile
def a_mat_with_more_numbers_than_it_says(folder: Path) -> Task:
    start = zlib.decompress(mat_variable(b"X", (32, 32, 3, 1), b"", 3 * 2**30)[8:])
    packed = packed_zeros(3 * 2**30, start, 15)
    return mat(folder, struct.pack("<II", 15, len(packed)) + packed + DIGITS, "RECOLLECT_MAX_SET_GROWTH")


@hostile
def a_mat_of_many_variables(folder: Path) -> Task:
    return mat(folder, DIGITS * 100_000, "two variables 'y'")


# Pictures


def picture(path: Path, side: int = 7000, mode: str = "L") -> Path:
    Image.new(mode, (side, side)).save(path, compress_level=1)
    return path


@hostile
def forty_pictures_of_49_megapixels(folder: Path) -> Task:
    first = picture(folder / "00.png")
    for number in range(1, 40):
        os.link(first, folder / f"{number:02}.png")
    return "images", f"folder:{folder}", {}, "RECOLLECT_MAX_SET_BYTES"


@hostile
def forty_of_them_made_small(folder: Path) -> Task:
    forty_pictures_of_49_megapixels(folder)
    return "images", f"folder:{folder}?size=32", {}, "RECOLLECT_MAX_DECODED_GROWTH"


@hostile
def a_picture_of_a_billion_pixels(folder: Path) -> Task:
    path = picture(folder / "a.png", 8)
    content = path.read_bytes()
    header = struct.pack(">II", 2**15, 2**15) + content[24:29]
    path.write_bytes(content[:16] + header + struct.pack(">I", zlib.crc32(b"IHDR" + header)) + content[33:])
    return "images", f"folder:{folder}", {}, "cannot be read as an image|RECOLLECT_MAX_IMAGE_PIXELS"


@hostile
def a_gif_of_many_frames(folder: Path) -> Task:
    path = folder / "a.gif"
    Image.new("L", (8, 8)).save(path)
    content = path.read_bytes()
    frame = content[content.index(b",") : -1]
    path.write_bytes(content[:-1] + frame * 500_000 + b";")
    return "images", f"folder:{folder}", {}, "several pictures"


@hostile
def a_jpeg_of_many_scans(folder: Path) -> Task:
    path = folder / "a.jpg"
    Image.new("L", (7000, 7000)).save(path, progressive=True)
    content = path.read_bytes()
    last = content[content.rindex(b"\xff\xda") : -2]
    path.write_bytes(content[:-2] + last * 2_000 + b"\xff\xd9")
    return "images", f"folder:{folder}", {}, "more than 200 scans"


@hostile
def a_pipe_among_pictures(folder: Path) -> Task:
    picture(folder / "a.png", 8)
    os.mkfifo(folder / "b.png")
    return "images", f"folder:{folder}", {}, "no file, or a link to none"


@hostile
def a_folder_that_holds_itself(folder: Path) -> Task:
    (folder / "loop").symlink_to(folder)
    (folder / "a.png").symlink_to(folder / "a.png")
    return "images", f"folder:{folder}", {}, "no file, or a link to none"


# Programs


def with_shape(folder: Path, expression: str) -> Task:
    path = export(tiny(), folder / "m.pt2", batch=torch.export.Dim("batch", min=1, max=64))

    def change(content: Any) -> None:
        text = json.dumps(content)
        old = next(_expressions(content))
        new = json.loads(text.replace(json.dumps(old), json.dumps(expression)))
        content.clear()
        content.update(new)

    return "model", str(rewrite(path, {PROGRAM: change})), {}, "the shape"


def _expressions(part: Any) -> Iterator[str]:
    if isinstance(part, dict):
        if "expr_str" in part:
            yield part["expr_str"]
        for value in part.values():
            yield from _expressions(value)
    elif isinstance(part, list):
        for value in part:
            yield from _expressions(value)


@hostile
def a_tower_of_powers(folder: Path) -> Task:
    return with_shape(folder, "2**2**2**2**2**2")


@hostile
def a_power_with_many_digits(folder: Path) -> Task:
    return with_shape(folder, "10**400000000")


@hostile
def a_power_by_name(folder: Path) -> Task:
    return with_shape(folder, "Pow(Integer(10), Integer(400000000))")


@hostile
def a_shift(folder: Path) -> Task:
    return with_shape(folder, "1 << 10000000000")


@hostile
def a_remainder_of_many_sizes(folder: Path) -> Task:
    return with_shape(folder, f"Mod(({' + '.join(f'12*s{number}' for number in range(60))})*3, 7)")


@hostile
def brackets_in_brackets(folder: Path) -> Task:
    path = export(tiny(), folder / "m.pt2")
    return "model", str(rewrite(path, {PROGRAM: b"[" * 1_000_000})), {}, "cannot be opened as an exported program"


# Checkpoints and priors


def checkpoint(folder: Path, network: str, says: str) -> Task:
    path = folder / "c.safetensors"
    write_tensors(path, {"w": torch.zeros(4)}, {"format": FORMAT, "network": network, "about": "{}"})
    return "model", str(path), {}, says


@hostile
def a_wide_network(folder: Path) -> Task:
    return checkpoint(
        folder, '{"class": "FullyConnected", "shape": [3, 8, 8], "width": 1000000000}', "far more weights"
    )


@hostile
def a_network_of_a_width_that_memory_has(folder: Path) -> Task:
    return checkpoint(folder, '{"class": "FullyConnected", "shape": [3, 8, 8], "width": 20000}', "far more weights")


@hostile
def a_deep_network(folder: Path) -> Task:
    described = '{"class": "FullyConnected", "shape": [1, 1, 1], "width": 1, "layers": 5000000}'
    return checkpoint(folder, described, "far more weights")


@hostile
def a_network_of_too_many_layers_to_list(folder: Path) -> Task:
    described = '{"class": "FullyConnected", "shape": [1, 1, 1], "width": 1, "layers": 5000000000}'
    return checkpoint(folder, described, "far more weights")


@hostile
def a_description_in_brackets(folder: Path) -> Task:
    return checkpoint(folder, "[" * 100_000, "description is damaged")


def prior(folder: Path, says: str, part: str = "config.json", **changes: Any) -> Task:
    shutil.copytree(BUNDLED, folder / "prior")
    path = folder / "prior" / part
    path.write_text(json.dumps(json.loads(path.read_text()) | changes))
    return "prior", str(folder / "prior"), {}, says


@hostile
def a_prior_of_large_images(folder: Path) -> Task:
    return prior(folder, "RECOLLECT_MAX_PRIOR_SIDE", sample_size=10**6)


@hostile
def a_prior_of_wide_layers(folder: Path) -> Task:
    return prior(folder, "far more weights", block_out_channels=[16000, 16000, 16000])


@hostile
def a_prior_of_many_layers(folder: Path) -> Task:
    return prior(folder, "far more weights", layers_per_block=10**9)


@hostile
def a_prior_of_many_time_steps(folder: Path) -> Task:
    return prior(folder, "time steps", "scheduler_config.json", num_train_timesteps=10**10)


@hostile
def a_prior_with_a_pipe(folder: Path) -> Task:
    task = prior(folder, "no plain file")
    (folder / "prior" / "recollect-prior.json").unlink()
    os.mkfifo(folder / "prior" / "recollect-prior.json")
    return task


@hostile
def a_record_that_unpacks_to_gigabytes(folder: Path) -> Task:
    (folder / "a.json.gz").write_bytes(packed_zeros(GIGABYTES * 2**30, wbits=31))
    return "record", str(folder / "a.json.gz"), {}, "RECOLLECT_MAX_RECORD_BYTES"


@hostile
def a_record_of_many_objects(folder: Path) -> Task:
    (folder / "a.json.gz").write_bytes(gzip.compress(b"[" + b"{}," * 4_000_000 + b"0]", 1))
    return "record", str(folder / "a.json.gz"), {}, "RECOLLECT_MAX_RECORD_PARTS"


@hostile
def a_record_of_short_texts(folder: Path) -> Task:
    (folder / "a.json.gz").write_bytes(gzip.compress(b"[" + b'"ab",' * 5_000_000 + b"0]", 1))
    return "record", str(folder / "a.json.gz"), {}, "is not a record"


@hostile
def a_table_of_two_million_columns(folder: Path) -> Task:
    (folder / "a.csv").write_bytes(b"0," * 2_000_000 + b"0\n")
    return "images", str(folder / "a.csv"), {}, "RECOLLECT_MAX_COLUMNS"


@hostile
def a_table_of_one_long_text(folder: Path) -> Task:
    (folder / "a.tsv").write_bytes(b"a\tb\n1\t" + b"x" * 3_000_000)
    return "images", str(folder / "a.tsv"), {}, r"such as 'x{40}\.\.\.'; leave it out"


@hostile
def a_split_that_names_code(folder: Path) -> Task:
    entry = {"source": "code:antigravity:fly", "ids": ["0"], "sha256": ""}
    (folder / "split.json").write_text(json.dumps({"train": entry, "control": entry}))
    return "images", str(folder / "split.json"), {}, "which no file may name"


def plan(folder: Path, text: str, says: str) -> Task:
    (folder / "audit.toml").write_text(f'fail-above = "1%"\nthreshold = "exact"\n{text}\n')
    return "plan", str(folder / "audit.toml"), {}, says


@hostile
def a_plan_that_names_code(folder: Path) -> Task:
    return plan(folder, 'train = "antigravity:fly"', "names code for train")


@hostile
def a_plan_in_brackets(folder: Path) -> Task:
    return plan(folder, f"gamma = {'[' * 100_000}", "cannot be read as TOML")


def network_folder(folder: Path, says: str, **settings: Any) -> Task:
    write_tensors(folder / "model" / "diffusion_pytorch_model.safetensors", {"a": torch.zeros(1)}, {})
    (folder / "model" / "config.json").write_text(json.dumps(settings))
    return "model", str(folder / "model"), {}, says


@hostile
def a_wide_autoencoder_folder(folder: Path) -> Task:
    return network_folder(folder, "weights", _class_name="AutoencoderKL", block_out_channels=[64_000] * 4)


@hostile
def a_wide_masked_autoencoder_folder(folder: Path) -> Task:
    task = network_folder(folder, "weights", architectures=["ViTMAEForPreTraining"], hidden_size=960_000)
    (folder / "model" / "diffusion_pytorch_model.safetensors").rename(folder / "model" / "model.safetensors")
    return task


@hostile
def a_pipe_as_a_model(folder: Path) -> Task:
    os.mkfifo(folder / "m.pt")
    return "model", str(folder / "m.pt"), {}, "does not exist"


def open_all(folder: Path, tasks: dict[str, Task]) -> tuple[dict[str, list[Any]], Ended]:
    """Open each file in one process, since importing takes longer than refusing: seconds, megabytes and sentence."""
    honest = [["", "prior", str(BUNDLED), {}], ["", "model", str(script(tiny(), folder / "fine.pt")), {}]]
    honest += [["", "model", str(export(tiny(), folder / "fine.pt2")), {}], ["", "images", "photos?count=2", {}]]
    listed = [[name, *task[:3]] for name, task in tasks.items()]
    (folder / "tasks.json").write_text(json.dumps([listed, honest]))
    done = run(OPENING, str(folder / "tasks.json"))
    lines = [json.loads(line) for line in done.out.splitlines() if line.startswith("[")]
    return {line[1]: line[2:] for line in lines}, done


def problem_with(opened: list[Any], says: str) -> str | None:
    """Say why a file was not refused as it should be."""
    if not opened:
        return "the process ended at this file or before"
    seconds, megabytes, sentence = opened
    if not re.search(says, sentence):
        return f"said {sentence!r}"
    if seconds >= SECONDS or megabytes >= MEGABYTES:
        return f"took {seconds} s and {megabytes} MB"
    return None


def test_each_is_refused_in_time(tmp_path: Path) -> None:
    """One test for all: two workers that share them would make and open them twice."""
    tasks = {}
    for name, make in MAKERS.items():
        (tmp_path / name).mkdir()
        tasks[name] = make(tmp_path / name)
    opened, done = open_all(tmp_path, tasks)
    shutil.rmtree(tmp_path)
    problems = {name: problem_with(opened.get(name, []), task[3]) for name, task in tasks.items()}
    assert not {name: problem for name, problem in problems.items() if problem}, done
    assert len(problems) > 40
