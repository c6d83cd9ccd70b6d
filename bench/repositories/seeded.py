"""Runs a program with the generators of Python, NumPy and torch seeded: seeded.py PROGRAM ARG...

SCALARS=1 prints what goes to TensorBoard.
PERTURBED=1 changes one weight by one unit in its last place when an optimizer first sees it, and
PERTURBED=all each weight that the optimizer has, up or down by chance: how far a program's numbers
move then is how far rounding alone moves them.
"""

import contextlib
import functools
import inspect
import os
import random
import runpy
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy
import torch


def one_weight(parameters: list[torch.Tensor]) -> None:
    first = parameters[0]
    first.view(-1)[0] *= 1 + 2 * torch.finfo(first.dtype).eps


def each_weight(parameters: list[torch.Tensor]) -> None:
    """By NumPy's generator: torch's goes on as it would without."""
    chance = numpy.random.default_rng(0)
    for parameter in parameters:
        ends = numpy.array([-numpy.inf, numpy.inf])[chance.integers(0, 2, tuple(parameter.shape))]
        towards = torch.from_numpy(ends).to(parameter)
        parameter.copy_(torch.nextafter(parameter, towards))


def perturb(change: Callable[[list[torch.Tensor]], None]) -> None:
    """Changes the parameters that an optimizer or Module.zero_grad first sees."""
    seen: list[torch.Tensor] = []

    def look(parameters: list[torch.Tensor]) -> None:
        if not seen:
            seen.extend(parameters)
            with torch.no_grad():
                change(parameters)

    def make(self, params, defaults, before=torch.optim.Optimizer.__init__):
        before(self, params, defaults)
        look([parameter for group in self.param_groups for parameter in group["params"]])

    def zero_grad(self, *args, before=torch.nn.Module.zero_grad, **kwargs):
        look(list(self.parameters()))
        before(self, *args, **kwargs)

    torch.optim.Optimizer.__init__ = make  # type: ignore[method-assign]
    torch.nn.Module.zero_grad = zero_grad  # type: ignore[method-assign]


def names_of_torchvision() -> None:
    """torchvision's compiled part is for another build of PyTorch: it needs operators' names."""
    for name in ("nms", "qnms"):
        schema = "(Tensor dets, Tensor scores, float d) -> Tensor"
        torch.library.define(f"torchvision::{name}", schema)


def old_names() -> None:
    """Names and defaults of NumPy, SciPy, Pillow and YAML when older programs were written."""
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
        import scipy.sparse.linalg

        for name in ("scipy.sparse.linalg.eigen", "scipy.sparse.linalg.eigen.arpack"):
            sys.modules[name] = scipy.sparse.linalg
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
    perturb(each_weight if os.environ["PERTURBED"] == "all" else one_weight)
random.seed(0)
numpy.random.seed(0)
torch.manual_seed(0)
sys.argv = sys.argv[1:]
sys.path[0] = str(Path(sys.argv[0]).resolve().parent)
runpy.run_path(sys.argv[0], run_name="__main__")
