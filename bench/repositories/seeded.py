"""Runs a program with the generators of Python, NumPy and torch seeded: seeded.py PROGRAM ARG...

SCALARS=1 prints what goes to TensorBoard.
PERTURBED=1 changes one weight by one unit in its last place when an optimizer first sees it: how
far a program's numbers move then is how far rounding alone moves them.
"""

import contextlib
import functools
import inspect
import os
import random
import runpy
import sys
from pathlib import Path
from typing import Any

import numpy
import torch


def perturb() -> None:
    """The first parameter that an optimizer or Module.zero_grad sees gets another first element."""
    once: list[torch.Tensor] = []

    def change(first) -> None:
        if not once:
            once.append(first)
            with torch.no_grad():
                first.view(-1)[0] *= 1 + 2 * torch.finfo(first.dtype).eps

    def make(self, params, defaults, before=torch.optim.Optimizer.__init__):
        before(self, params, defaults)
        change(self.param_groups[0]["params"][0])

    def zero_grad(self, *args, before=torch.nn.Module.zero_grad, **kwargs):
        change(next(self.parameters()))
        before(self, *args, **kwargs)

    torch.optim.Optimizer.__init__ = make  # type: ignore[method-assign]
    torch.nn.Module.zero_grad = zero_grad  # type: ignore[method-assign]


def names_of_torchvision() -> None:
    """torchvision's compiled part is for another build of PyTorch: it needs operators' names."""
    for name in ("nms", "qnms"):
        schema = "(Tensor dets, Tensor scores, float d) -> Tensor"
        torch.library.define(f"torchvision::{name}", schema)


def old_names() -> None:
    """Names and defaults of NumPy, Pillow and YAML when older programs were written."""
    for old in (int, float, object):
        setattr(numpy, old.__name__, old)
    numpy.Inf = numpy.inf  # type: ignore[attr-defined]
    kinds = {"int": numpy.signedinteger, "uint": numpy.unsignedinteger, "float": numpy.floating}
    types = [numpy.dtype(code).type for code in numpy.typecodes["AllInteger"] + "efd"]
    sctypes = {k: [t for t in types if issubclass(t, kind)] for k, kind in kinds.items()}
    numpy.sctypes = sctypes  # type: ignore[attr-defined]
    total: Any = numpy.sum

    def add(x: Any, *args: Any, **kwargs: Any) -> Any:
        return sum(x) if inspect.isgenerator(x) else total(x, *args, **kwargs)

    numpy.sum = add  # type: ignore[assignment]
    with contextlib.suppress(ImportError):
        import PIL.Image

        PIL.Image.ANTIALIAS = PIL.Image.LANCZOS  # type: ignore[attr-defined]
    with contextlib.suppress(ImportError):
        import yaml

        for name in ("load", "load_all"):
            load = getattr(yaml, name)
            setattr(yaml, name, functools.partial(load, Loader=yaml.FullLoader))


def print_scalars() -> None:
    """What goes to TensorBoard is printed too."""
    from torch.utils.tensorboard import SummaryWriter

    def add_scalar(self, tag, value, step=None, *args, before=SummaryWriter.add_scalar, **kwargs):
        print(tag, step, float(value))
        before(self, tag, value, step, *args, **kwargs)

    SummaryWriter.add_scalar = add_scalar  # type: ignore[method-assign, assignment]


old_names()
if os.environ.get("SCALARS"):
    print_scalars()
if "taeda" not in torch.__version__:
    names_of_torchvision()
if os.environ.get("PERTURBED"):
    perturb()
random.seed(0)
numpy.random.seed(0)
torch.manual_seed(0)
sys.argv = sys.argv[1:]
sys.path[0] = str(Path(sys.argv[0]).resolve().parent)
runpy.run_path(sys.argv[0], run_name="__main__")
