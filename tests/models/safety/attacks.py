"""TorchScript archives with a line of code that a model has no need for."""

import zipfile
from pathlib import Path

import torch
from torch import Tensor, nn

from tests.models.making import script

SOURCE = "archive/code/__torch__.py"


class Scaled(nn.Module):
    """A model whose code is one source, the first of an archive."""

    __module__ = "__main__"

    def __init__(self) -> None:
        super().__init__()
        self.weight = nn.Parameter(torch.full((4,), 0.5))

    def forward(self, x: Tensor) -> Tensor:
        return x * self.weight.mean()


def honest_entries(folder: Path) -> dict[str, bytes]:
    """The entries of an honest file, which is written to a folder."""
    path = script(Scaled().eval(), folder / "m.pt")
    with zipfile.ZipFile(path) as file:
        entries = {f"archive/{name.partition('/')[2]}": file.read(name) for name in file.namelist()}
    return {name: content for name, content in entries.items() if not name.endswith(".debug_pkl")}


def write(entries: dict[str, bytes], path: Path, packing: int = zipfile.ZIP_STORED) -> Path:
    with zipfile.ZipFile(path, "w", packing) as file:
        for name, content in entries.items():
            file.writestr(name, content)
    return path


def with_line(archive: dict[str, bytes], line: str) -> dict[str, bytes]:
    """The honest file with lines of code before its first statement."""
    return {**archive, SOURCE: before_first_statement(archive[SOURCE], line)}


def before_first_statement(source: bytes, lines: str) -> bytes:
    at = source.index(b"    weight = self.weight")
    indented = "".join(f"    {line}\n" for line in lines.split("\n"))
    return source[:at] + indented.encode() + source[at:]


# Each writes the file "mark" when torch opens and calls it.
WRITES = {
    "plain": 'torch.save(x, "mark")',
    "octal": r'getattr(torch, "s\141ve")(x, "mark")',
    "octal throughout": r'getattr(torch, "\163\141\166\145")(x, "mark")',
    "joined literals": 'getattr(torch, "sa" "ve")(x, "mark")',
    "getattr": 'getattr(torch, "save")(x, "mark")',
    "single quotes": "getattr(torch, 'save')(x, 'mark')",
    "triple quotes": 'getattr(torch, """save""")(x, """mark""")',
    "ops": 'ops.aten.save(x, "mark")',
    "getattr of ops": 'getattr(ops.aten, "save")(x, "mark")',
    "nested getattr": 'getattr(getattr(ops, "aten"), "save")(x, "mark")',
    "octal in both": r'getattr(getattr(ops, "\141ten"), "s\141ve")(x, "mark")',
    "alias of the operator": 'write = torch.save\nwrite(x, "mark")',
    "alias by getattr": r'write = getattr(torch, "s\141ve")' + '\nwrite(x, "mark")',
    "alias of torch": 't = torch\nt.save(x, "mark")',
    "alias of ops": 'o = ops\no.aten.save(x, "mark")',
    "alias of the namespace": 'a = ops.aten\na.save(x, "mark")',
    "alias of an alias": 'a = ops\nb = a.aten\nc = b\nc.save(x, "mark")',
    "spaces": 'torch . save (x, "mark")',
    "line continuation": 'torch.\\\n    save(x, "mark")',
    "inside brackets": 'y = [\n      torch.save(x,\n  "mark")]',
    "keyword": 'torch.save(x, filename="mark")',
    "in a dictionary": 'y = {"a": torch.save(x, "mark")}',
    "in a comprehension": 'y = [torch.save(x, "mark") for i in [1]]',
    "in a loop": 'for i in range(1):\n  torch.save(x, "mark")',
    "in a condition": 'if True:\n  torch.save(x, "mark")\nelse:\n  pass',
    "conditional expression": 'torch.save(x, "mark") if True else None',
    "in an assertion": 'assert torch.save(x, "mark") is None',
    "in a thread": 'def g():\n  return torch.save(x, "mark")\nf = fork(g)\ntorch.wait(f)',
    "path built from parts": 'torch.save(x, torch.add("ma", "rk"))',
    "path by format": 'torch.save(x, torch.format("{}{}", "ma", "rk"))',
    "a mapped file": 'torch.add_(x, torch.from_file("mark", True, 1))',
    "a mapped file in octal": r'torch.add_(x, getattr(torch, "from\137file")("mark", True, 1))',
    "a mapped file by ops": 'torch.add_(x, ops.aten.from_file("mark", True, 1))',
    "overwriting": 'torch.save(x, "secret")',
}

# Each reads, prints, calls or names what a model has no need for; torch itself refuses some.
ACTS = {
    "reading a file": 'y = torch.from_file("secret", False, 16)',
    "hexadecimal": r'getattr(torch, "s\x61ve")(x, "mark")',
    "unicode escape": r'getattr(torch, "s\u0061ve")(x, "mark")',
    "named character": r'getattr(torch, "s\N{LATIN SMALL LETTER A}ve")(x, "mark")',
    "concatenation": 'getattr(torch, "sa" + "ve")(x, "mark")',
    "f-string": 'getattr(torch, f"save")(x, "mark")',
    "a variable": 'n = "save"\ngetattr(torch, n)(x, "mark")',
    "a method of a tensor": 'x.save("mark")',
    "torch.ops": 'torch.ops.aten.save(x, "mark")',
    "torch.classes": "y = torch.classes.profiler._RecordFunction",
    "a C++ class": "y = __torch__.torch.classes.profiler._RecordFunction",
    "a profiler": 'y = ops.profiler._record_function_enter("a")',
    "torch.hub": 'torch.hub.load("a", "b")',
    "torch.jit": 'torch.jit.save(x, "mark")',
    "shared memory": "y = ops.symm_mem.set_signal_pad_size(4)",
    "another process": 'y = ops._c10d_functional.all_reduce(x, "sum", "0")',
    "a remote call": 'y = ops.prim.rpc_async("worker", "f")',
    "quantized": "y = ops.quantized.linear_prepack(x, None)",
    "a Python operator": "y = ops.prim.PythonOp(x)",
    "the clock": "y = ops.prim.TimePoint()",
    "an address": "y = ops.prim.id(self)",
    "global seed": "torch.manual_seed(1)",
    "storage without bounds": "y = torch._reshape_alias(x, [1000000], [1])",
    "replaced storage": "torch.set_(x, x)",
    "writing beyond statistics": "y = torch.native_batch_norm(x, None, None, self.weight, self.weight, True, 0.1, 0.1)",
    "writing beyond norms": "y = torch._weight_norm(x, self.weight, 0)",
    "a dimension beyond the last": "y = ops.aten._fft_c2c(x, [90000], 0, True)",
    "reading beyond keys": "y = ops.aten._scaled_dot_product_flash_attention_for_cpu(x, x, x)",
    "print": r'print("\033[2J")',
    "print by operator": 'ops.aten._print("hello")',
    "a control character by number": "y = torch.chr(27)",
    "an escape in a message": r'ops.prim.RaiseException("\033[2J", "builtins.ValueError")',
    "a lambda": 'f = lambda y: torch.save(y, "mark")',
    "open": 'y = open("secret")',
    "import": 'y = __import__("os")',
    "eval": 'eval("1")',
    "builtins": "y = x.__class__.__bases__",
    "globals": "y = globals()",
    "an import statement": "import os",
    "exec of a name": "exec",
    "a walrus": '(t := torch).save(x, "mark")',
    "a starred call": "torch.add(*[x, x])",
    "a decorator": "@torch.save\ndef g():\n  return 1",
    "a class inside": "class G:\n  pass",
    "try": "try:\n  pass\nexcept:\n  pass",
    "shadowing": "torch = ops",
    "shadowing by a loop": "for torch in range(1):\n  pass",
    "a dunder getattr": 'y = getattr(self, "__class__.save")',
    "a supposed class": "y = unchecked_cast(__torch__.Scaled, x)",
    "a list of a supposed class": "y = unchecked_cast(List[__torch__.Scaled], [x])",
    "a text that doubles": 'y = "' + "a" * 16 + '"\n' + "\n".join(["y = torch.add(y, y)"] * 30),
    "a text in a tuple that doubles": 'y = ("aa", 1)\n' + "\n".join(["y = (torch.add(y[0], y[0]), 1)"] * 30),
    "a text that multiplies": 'y = torch.replace("aaaa", "a", "aaaa")',
    "a constant that doubles": "y = CONSTANTS.c0\n" + "\n".join(["y = torch.format('{}{}', y, y)"] * 30),
    "a factorial": "y = torch.factorial(20000000000)",
    "a deep type": "y = annotate(Optional[" + "Tuple[" * 80 + "int" + "]" * 80 + "], None)",
}
