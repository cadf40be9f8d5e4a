"""A real model of each kind gives, once opened, what it gave before it was written."""

import sys
from pathlib import Path

import pytest
import torch
from torch import Tensor, nn

from recollect import FullyConnected, InputError, Iterate
from recollect.checkpoints import save_checkpoint, write_tensors
from recollect.models import Adapted, open_model, probe_model
from tests.models.making import SIZE, Several, export, images, onnx_convolution, script, tiny

CODE = """
import torch
from tests.models.making import Tiny, tiny
ready = tiny()
number = 3
def half(): return tiny().half()
def plain(): return lambda x: x / 2
def needy(size): return size
def broken(): raise KeyError("no such setting")
def nothing(): return 5
"""


@pytest.fixture
def code(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A module of the user's own in the working folder."""
    (tmp_path / "own_code.py").write_text(CODE)
    monkeypatch.chdir(tmp_path)
    monkeypatch.delitem(sys.modules, "own_code", raising=False)
    yield tmp_path
    sys.modules.pop("own_code", None)


def agree(opened: nn.Module, model: nn.Module, count: int = 5) -> bool:
    with torch.no_grad():
        return torch.allclose(opened(images(count)), model(images(count)), atol=1e-6)


def test_a_module_passes_through_and_a_function_is_wrapped() -> None:
    model = tiny()
    assert open_model(model) is model
    assert open_model(model, device="cpu") is model
    assert torch.equal(open_model(lambda x: x / 2, device="cpu")(images()), images() / 2)
    with pytest.raises(InputError, match=r"got a int"):
        open_model(3)  # type: ignore[arg-type]
    with pytest.raises(InputError, match=r"weights go with package\.module:factory"):
        open_model(model, weights="w.safetensors")
    with pytest.raises(InputError, match="The device nonsense cannot be used"):
        open_model(model, device="nonsense")


def test_a_checkpoint(tmp_path: Path) -> None:
    network = FullyConnected(SIZE, layers=2, width=8)
    save_checkpoint(tmp_path / "a.safetensors", network, {"loss": 1e-4})
    opened = open_model(tmp_path / "a.safetensors")
    assert isinstance(opened, FullyConnected)
    assert not opened.training
    assert agree(opened, network)


@pytest.mark.parametrize("nested", [False, True])
@pytest.mark.parametrize("suffix", [".safetensors", ".pt", ".pth", ".ckpt"])
def test_a_factory_with_weights(code: Path, suffix: str, nested: bool) -> None:
    torch.manual_seed(77)
    trained = type(tiny())().eval()
    path = code / f"w{suffix}"
    if suffix == ".safetensors":
        write_tensors(path, trained.state_dict(), {})
    else:
        compiled = {f"module.{name}": tensor for name, tensor in trained.state_dict().items()}
        torch.save({"state_dict": compiled, "epoch": 3} if nested else trained.state_dict(), path)
    assert agree(open_model("own_code:Tiny", weights=path), trained)


def test_a_factory_alone(code: Path) -> None:
    assert agree(open_model("own_code:tiny"), tiny())
    assert agree(open_model("own_code:ready"), tiny())
    assert next(open_model("own_code:half").parameters()).dtype == torch.float32
    assert torch.equal(open_model("own_code:plain")(images()), images() / 2)
    assert str(code) not in sys.path


@pytest.mark.parametrize(
    ("what", "message"),
    [
        ("own_code:absent", "has no absent; it has"),
        ("no_code_here:tiny", "There is no module no_code_here"),
        ("own_code:number", "is a int"),
        ("own_code:needy", "called without arguments and raised TypeError"),
        ("own_code:broken", "raised KeyError: 'no such setting'"),
        ("own_code:nothing", "returned a int"),
        ("absent.pt", "does not exist"),
        (".", "is a folder"),
    ],
)
def test_what_cannot_be_opened_is_said(code: Path, what: str, message: str) -> None:
    with pytest.raises(InputError, match=message):
        open_model(what)


def test_weights_that_do_not_fit(code: Path) -> None:
    torch.save({"a": torch.ones(1)}, "a.pt")
    with pytest.raises(InputError, match="do not fit Tiny: Missing key"):
        open_model("own_code:Tiny", weights="a.pt")
    torch.save({"ema": {"a": torch.ones(1)}, "model": {"a": torch.ones(1)}}, "two.pt")
    with pytest.raises(InputError, match=r"several sets of weights \(ema, model\).*--weights-key ema"):
        open_model("own_code:Tiny", weights="two.pt")
    with pytest.raises(InputError, match=r"it has ema, model"):
        open_model("own_code:Tiny", weights="two.pt", weights_key="net")
    torch.save(3, "three.pt")
    with pytest.raises(InputError, match=r"no state dict .* a int"):
        open_model("own_code:Tiny", weights="three.pt")


def test_weights_without_a_network_say_what_is_missing(tmp_path: Path) -> None:
    write_tensors(tmp_path / "w.safetensors", tiny().state_dict(), {})
    torch.save(tiny().state_dict(), tmp_path / "w.pt")
    for name in ("w.safetensors", "w.pt"):
        with pytest.raises(InputError, match=r"weights without a network.*package.module:factory"):
            open_model(tmp_path / name)


@pytest.mark.parametrize("suffix", [".pt", ".ts"])
@pytest.mark.parametrize("traced", [False, True])
def test_torchscript(tmp_path: Path, traced: bool, suffix: str) -> None:
    path = script(tiny(), tmp_path / f"m{suffix}", images() if traced else None)
    opened = open_model(path)
    assert agree(opened, tiny())
    assert not opened.training
    assert probe_model(opened, images()).deterministic


def test_torchscript_of_a_vae(tmp_path: Path) -> None:
    torch.manual_seed(1)
    model = Several()
    opened = open_model(script(model, tmp_path / "m.pt"), output="1.image")
    assert torch.allclose(opened(images()), model(images())[1]["image"], atol=1e-6)


@pytest.mark.parametrize("batch", ["fixed", "open", "limited"])
def test_an_exported_program(tmp_path: Path, batch: str) -> None:
    dimension = {"fixed": None, "open": torch.export.Dim.DYNAMIC, "limited": torch.export.Dim("n", min=2, max=4)}[batch]
    opened = open_model(export(tiny(), tmp_path / "m.pt2", batch=dimension))
    assert agree(opened, tiny())
    assert agree(opened, tiny(), 1)
    assert isinstance(opened.train(), nn.Module)  # an exported module's own train() raises
    assert probe_model(opened, images()).deterministic


def test_an_exported_program_of_a_vae(tmp_path: Path) -> None:
    torch.manual_seed(1)
    model = Several().eval()
    path = export(model, tmp_path / "m.pt2")
    opened = open_model(path, output="1.image")
    assert torch.allclose(opened(images()), model(images())[1]["image"], atol=1e-6)
    with pytest.raises(InputError, match=r"of 2 parts"):
        open_model(path)(images())


@pytest.mark.parametrize("batch", ["n", 1, 4])
def test_onnx(tmp_path: Path, batch: int | str) -> None:
    path, same = onnx_convolution(tmp_path / "m.onnx", batch)
    opened = open_model(path)
    assert agree(opened, same)
    assert probe_model(opened, images()).deterministic
    assert len(Iterate(limit=2)(opened, images())) == 5


def test_onnx_with_two_outputs_and_without_derivatives(tmp_path: Path) -> None:
    path, same = onnx_convolution(tmp_path / "m.onnx", outputs=2)
    with pytest.raises(InputError, match=r"y: tensor 5x3x8x8, z: tensor.*--output y"):
        probe_model(open_model(path), images())
    opened = open_model(path, output="z")
    assert torch.allclose(opened(images()), -same(images()), atol=1e-6)
    with pytest.raises(InputError, match="no derivatives"):
        torch.func.vjp(opened, images())


def test_onnx_says_how_to_install_it(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    path, _ = onnx_convolution(tmp_path / "m.onnx")
    monkeypatch.setitem(sys.modules, "onnxruntime", None)
    with pytest.raises(InputError, match=r"pip install 'recollect\[onnx\]'"):
        open_model(path)


@pytest.mark.parametrize("name", ["m.onnx", "m.pt2", "m.pt", "m.safetensors", "m.ts", "m.h5", "m.npz"])
def test_a_broken_file_is_an_error_in_words(tmp_path: Path, name: str) -> None:
    for content in (b"", b"nonsense", b"PK\x03\x04 nonsense"):
        (tmp_path / name).write_bytes(content)
        with pytest.raises(InputError, match=name):
            open_model(tmp_path / name)


@pytest.mark.parametrize("name", ["m.pt2", "m.pt"])
def test_a_truncated_program_is_an_error_in_words(tmp_path: Path, name: str) -> None:
    path = export(tiny(), tmp_path / name) if name == "m.pt2" else script(tiny(), tmp_path / name)
    path.write_bytes(path.read_bytes()[:-200])
    with pytest.raises(InputError, match=name):
        open_model(path)


def test_derivatives_pass_through_an_adapted_file(tmp_path: Path) -> None:
    opened = open_model(script(tiny(), tmp_path / "m.pt"), input_range="-1,1", batch=2)
    x = images(3).requires_grad_()
    opened(x).sum().backward()
    assert x.grad is not None
    assert float(x.grad.abs().min()) > 0


def test_diffusers_autoencoder_kl() -> None:
    diffusers = pytest.importorskip("diffusers")
    model = diffusers.AutoencoderKL(block_out_channels=(8,), norm_num_groups=4, layers_per_block=1)
    with pytest.raises(InputError, match="--output sample"):
        probe_model(open_model(model), images())
    assert probe_model(open_model(model, output="sample", input_range="-1,1"), images()).deterministic


def test_a_function_may_live_on_a_device_of_its_own() -> None:
    def there(x: Tensor) -> Tensor:
        assert x.device.type == "meta"
        return x

    opened = open_model(there, device="meta")
    assert isinstance(opened, Adapted)
    with pytest.raises(NotImplementedError):  # meta tensors have no values to bring back; the way there was taken
        opened(images())
