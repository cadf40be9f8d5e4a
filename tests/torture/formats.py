"""Every kind of file that recollect opens: how a valid one is made, and what opens it."""

from __future__ import annotations

import json
import tarfile
import zipfile
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import torch
from PIL import Image
from safetensors.torch import save_file

from recollect.auditing.plan import read_plan
from recollect.checkpoints import save_checkpoint
from recollect.diffusion import open_denoiser
from recollect.diffusion.card import Card
from recollect.models import Probe, open_model, probe_model
from recollect.networks import NETWORKS
from recollect.records import Record, read_json, read_record, write_record
from recollect.sources import load, split
from tests.diffusion.folders import write_prior
from tests.diffusion.making import pictures
from tests.models.making import export, images, onnx_convolution, saved, script, tiny
from tests.sources.conftest import encoded, python2_batch

SHAPE = (3, 8, 8)
FACTORY = "tests.models.making:tiny"  # the network whose weights are read


@dataclass(frozen=True)
class Format:
    """One kind of file or folder."""

    name: str
    make: Callable[[Path], Path]  # in a folder; returns what is opened
    open: Callable[[Path], object]


def _checkpoint(folder: Path) -> Path:
    save_checkpoint(folder / "a.safetensors", NETWORKS["fc"].for_images(SHAPE, layers=2, width=8, seed=0), {})
    return folder / "a.safetensors"


def _weights(folder: Path) -> Path:
    save_file(tiny().state_dict(), folder / "w.safetensors")
    return folder / "w.safetensors"


def _state_dict(folder: Path) -> Path:
    (folder / "w.pt").write_bytes(saved(tiny().state_dict()))
    return folder / "w.pt"


def _onnx(folder: Path) -> Path:
    return onnx_convolution(folder / "m.onnx")[0]


def _array(suffix: str) -> Callable[[Path], Path]:
    def make(folder: Path) -> Path:
        path, values = folder / f"images{suffix}", np.random.default_rng(0).integers(0, 256, (6, *SHAPE), np.uint8)
        if suffix == ".npy":
            np.save(path, values)
        elif suffix == ".npz":
            np.savez_compressed(path, images=values)
        else:
            save_file({"images": torch.from_numpy(values)}, path)
        return path

    return make


def _mat(folder: Path) -> Path:
    from scipy.io import savemat

    values = np.random.default_rng(0).integers(0, 256, (32, 32, 3, 12), np.uint8)
    savemat(folder / "train_32x32.mat", {"X": values, "y": np.ones((12, 1), np.uint8)}, do_compression=True)
    return folder


def _cifar(folder: Path) -> Path:
    folder = folder / "cifar-10-batches-py"
    folder.mkdir()
    values = np.random.default_rng(0).integers(0, 256, (4, 3072), np.uint8)
    (folder / "data_batch_1").write_bytes(python2_batch(values, [0, 1, 2, 3]))
    return folder


def _cifar_tar(folder: Path) -> Path:
    inner = _cifar(folder)
    with tarfile.open(folder / "cifar-10-python.tar.gz", "w:gz") as tar:
        tar.add(inner, inner.name)
    for path in inner.iterdir():
        path.unlink()
    inner.rmdir()
    return folder / "cifar-10-python.tar.gz"


def _picture(size: int = 8) -> Image.Image:
    return Image.fromarray(np.random.default_rng(size).integers(0, 256, (size, size, 3), np.uint8))


def _tiny_imagenet(folder: Path) -> Path:
    with zipfile.ZipFile(folder / "tiny-imagenet-200.zip", "w", zipfile.ZIP_DEFLATED) as archive:
        for number in range(4):
            name = f"tiny-imagenet-200/train/n0000000{number}/images/n0000000{number}_0.JPEG"
            archive.writestr(name, encoded(_picture(64), "JPEG"))
    return folder / "tiny-imagenet-200.zip"


def _image_folder(folder: Path) -> Path:
    folder = folder / "pictures"
    folder.mkdir()
    for kind in ("PNG", "JPEG", "GIF", "BMP", "WEBP", "TIFF", "PPM", "TGA", "ICO", "JPEG2000"):
        suffix = {"JPEG2000": "jp2", "TIFF": "tif"}.get(kind, kind.lower())
        (folder / f"{kind}.{suffix}").write_bytes(encoded(_picture(8), kind))
    return folder


def _prior(folder: Path) -> Path:
    folder = folder / "prior"
    write_prior(folder)
    Card.of(pictures(), "invented").write(folder)
    return folder


def _record(folder: Path) -> Path:
    record = Record(
        {"set": "train", "mask": "half"}, {"gamma": 0.5}, ["a", "b"], [0.1, 0.2], [3, 4], [9, 9], ["done"] * 2
    )
    return write_record(folder, record)


def _json(folder: Path) -> Path:
    (folder / "facts.json").write_text(json.dumps({"name": "fc", "width": 3, "rates": [0.5, None, {"a": True}]}))
    return folder / "facts.json"


def _table(suffix: str) -> Callable[[Path], Path]:
    def make(folder: Path) -> Path:
        rows = np.random.default_rng(0).random((6, 4))
        lines = ["abcd", *([f"{value:.4f}" for value in row] for row in rows)]
        separator = "," if suffix == ".csv" else "\t"
        (folder / f"rows{suffix}").write_text("\n".join(separator.join(line) for line in lines) + "\n")
        return folder / f"rows{suffix}"

    return make


def _split_record(folder: Path) -> Path:
    _array(".npy")(folder)
    made = split(f"{folder}/images.npy?count=3", f"{folder}/images.npy?count=2&part=control")
    beside = json.dumps(made.record()).replace(f"{folder}/", "")  # which is found beside the record
    (folder / "split.json").write_text(beside)
    return folder / "split.json"


def _plan(folder: Path) -> Path:
    text = 'model = "m.pt2"\ntrain = "a.npy"\nfail-above = "1%"\nthreshold = "approximate"\ngamma = 0.5\n'
    (folder / "audit.toml").write_text(text)
    return folder / "audit.toml"


def _read_plan(path: Path) -> object:
    return read_plan(path, ["model", "train", "control", "gamma", "fail_above", "threshold"])


def _autoencoder_folder(folder: Path) -> Path:
    import diffusers

    settings: dict[str, Any] = {"block_out_channels": (8,), "latent_channels": 4, "layers_per_block": 1}
    network: Any = diffusers.AutoencoderKL(**settings, norm_num_groups=4)
    network.save_pretrained(folder / "vae")
    return folder / "vae"


def _masked_folder(folder: Path) -> Path:
    import transformers

    part = {"hidden_size": 24, "num_hidden_layers": 1, "num_attention_heads": 2, "intermediate_size": 24}
    settings: dict[str, Any] = part | {f"decoder_{name}": value for name, value in part.items()}
    config = transformers.ViTMAEConfig(**settings, image_size=8, patch_size=4)
    transformers.ViTMAEForPreTraining(config).save_pretrained(folder / "mae")
    return folder / "mae"


def _open_and_run(path: Path) -> Probe:
    """Open a model and try it on two images, as an audit does first."""
    return probe_model(open_model(path), images(2))


def _load_and_run(path: Path) -> Probe:
    return probe_model(open_model(FACTORY, weights=path), images(2))


FORMATS = {
    form.name: form
    for form in [
        Format("checkpoint", _checkpoint, _open_and_run),
        Format("safetensors weights", _weights, _load_and_run),
        Format("state dict .pt", _state_dict, _load_and_run),
        Format("TorchScript", lambda folder: script(tiny(), folder / "m.pt"), _open_and_run),
        Format("torch.export .pt2", lambda folder: export(tiny(), folder / "m.pt2"), _open_and_run),
        Format("ONNX", _onnx, _open_and_run),
        Format(".npy", _array(".npy"), load),
        Format(".npz", _array(".npz"), load),
        Format("safetensors images", _array(".safetensors"), load),
        Format("SVHN .mat", _mat, lambda path: load(f"svhn:{path}")),
        Format("CIFAR-10 pickle", _cifar, lambda path: load(f"cifar10:{path}")),
        Format("CIFAR-10 tar", _cifar_tar, lambda path: load(f"cifar10:{path}")),
        Format("Tiny ImageNet zip", _tiny_imagenet, lambda path: load(f"tiny-imagenet:{path}")),
        Format("image folder", _image_folder, lambda path: load(f"folder:{path}?size=8")),
        Format("diffusion prior", _prior, open_denoiser),
        Format("autoencoder folder", _autoencoder_folder, _open_and_run),
        Format("masked autoencoder folder", _masked_folder, _open_and_run),
        Format(".csv", _table(".csv"), load),
        Format(".tsv", _table(".tsv"), load),
        Format("split record", _split_record, load),
        Format("plan", _plan, _read_plan),
        Format("record", _record, read_record),
        Format("JSON", _json, read_json),
    ]
}


def write_valid_files(folder: Path) -> None:
    """Write a valid file of every format, each in a folder called like it."""
    for name, form in FORMATS.items():
        (folder / name).mkdir(parents=True)
        opened = form.make(folder / name)
        (folder / f"{name}.txt").write_text(str(opened.relative_to(folder / name)))
