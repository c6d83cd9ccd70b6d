"""What the reference documents: modules, their public names, and the page each belongs to."""

from __future__ import annotations

import importlib
import inspect
import re
import sys
from collections.abc import Iterator
from functools import cache
from pathlib import Path
from typing import Any

ROOT = Path(__file__).resolve().parents[2]
# What has pages; a module that does not exist is left out.
MODULES = {
    "taeda": "Functions, dtypes and settings",
    "taeda.Tensor": "Methods and attributes of a tensor",
    "taeda.nn": "Layers and the Module they derive from",
    "taeda.nn.functional": "Layers as functions",
    "taeda.nn.init": "Initial values of weights",
    "taeda.nn.utils": "Helpers for parameters and gradients",
    "taeda.optim": "Optimizers",
    "taeda.optim.lr_scheduler": "Learning rate schedules",
    "taeda.utils.data": "Data sets, samplers and loaders",
    "taeda.utils.checkpoint": "Trading computation for memory",
    "taeda.autograd": "Gradients",
    "taeda.autograd.forward_ad": "Forward-mode derivatives",
    "taeda.linalg": "Linear algebra",
    "taeda.fft": "Fourier transforms",
    "taeda.special": "Special functions",
    "taeda.random": "Random numbers",
    "taeda.testing": "Comparing tensors in tests",
    "taeda.func": "Derivatives and vectorization of functions",
    "taeda.autograd.functional": "Jacobians and Hessians",
    "taeda.nn.utils.rnn": "Sequences of different lengths",
    "taeda.nn.utils.parametrize": "Parameters that are computed from others",
    "taeda.nn.utils.parametrizations": "Weight norm, spectral norm, orthogonal matrices",
    "taeda.nn.utils.prune": "Setting weights to zero",
    "taeda.nn.attention": "Choosing how attention is computed",
    "taeda.nn.attention.flex_attention": "Attention with scores and masks of one's own",
    "taeda.optim.swa_utils": "Averages of weights",
    "taeda.distributions": "Probability distributions",
    "taeda.amp": "Lower precision, automatically",
    "taeda.sparse": "Sparse tensors",
    "taeda.nested": "Tensors of rows of different lengths",
    "taeda.masked": "Tensors with masks",
    "taeda.signal.windows": "Windows of signal processing",
    "taeda.quasirandom": "Quasi-random numbers",
    "taeda.library": "Operators of one's own",
    "taeda.fx": "Programs as graphs",
    "taeda.profiler": "Where the time goes",
    "taeda.utils.benchmark": "Timing a few lines",
    "taeda.utils.tensorboard": "Records for TensorBoard",
    "taeda.serialization": "Options of saving and loading",
    "taeda.safetensors": "Files of tensors alone",
    "taeda.hub": "Models of folders and repositories",
    "taeda.cuda": "CUDA devices",
    "taeda.multiprocessing": "Tensors in several processes",
    "taeda.jit": "TorchScript's interface, run eagerly",
    "taeda.compiler": "torch.compile's interface, run eagerly",
}
SIGNATURE = re.compile(r"\w+\(.*\) -> .*")
# Files of the operator table -> the page of functions and methods that they fill.
FAMILIES = {
    "factory": "creation", "random": "creation", "fft": "signals", "image": "layers",
    "shape": "shapes", "view_copy": "shapes", "pointwise": "elementwise", "reduce": "reductions",
    "sort": "reductions", "index": "indexing", "linalg": "products", "lapack": "products",
    "algebra": "products", "sparse": "others", "optim": "others", "norm": "layers",
    "conv": "layers", "pool": "layers", "loss": "layers", "recurrent": "layers",
    "attention": "layers",
}  # fmt: skip
# Modules with functions written in Python -> the page of these; and of functions that have none.
HOMES = {
    "_functions.layers": "layers", "_functions.recurrent": "layers", "nn.functional": "layers",
    "_histogram": "reductions", "_unique": "reductions", "_lobpcg": "products",
    "_lowrank": "products", "functional": "shapes", "sparse._construct": "creation",
    "sparse._products": "products", "serialization": "creation",
    "autograd.grad_mode": "gradients", "amp.autocast_mode": "gradients",
    "amp.grad_scaler": "gradients", "func._vmap": "gradients",
}  # fmt: skip
WITHOUT_HOME = {
    "types": "device finfo iinfo result_type promote_types can_cast get_default_dtype "
    "set_default_dtype is_complex is_floating_point is_signed",
    "creation": "Generator as_tensor asarray default_generator from_dlpack from_file from_numpy "
    "frombuffer get_rng_state initial_seed manual_seed seed set_rng_state tensor",
    "gradients": "is_grad_enabled is_inference_mode_enabled is_inference set_anomaly_enabled "
    "is_anomaly_enabled is_anomaly_check_nan_enabled clear_autocast_cache",
    "products": "gradient frobenius_norm nuclear_norm",
    "elementwise": "real imag resolve_conj resolve_neg is_nonzero",
    "shapes": "column_stack row_stack combinations numel",
}
# Modules whose names others import, and no program looks for in a reference.
PLUMBING = {"_dispatch_keys", "_jit_internal", "overrides", "serialization._archive"}
TITLES = {
    "creation": "making, saving and loading tensors, random numbers",
    "gradients": "gradients and lower precision, on and off",
    "types": "dtypes, layouts, devices",
    "shapes": "shapes and views",
    "elementwise": "element by element",
    "reductions": "sums, extremes, sorting",
    "indexing": "indexing, gathering, searching",
    "products": "products and linear algebra",
    "layers": "layers",
    "signals": "signals",
    "others": "settings, types and what else there is",
}
# Modules of nn -> the page of their classes.
LAYERS = {
    "activation": "activations", "adaptive": "losses", "batchnorm": "normalization",
    "channelshuffle": "images", "container": "containers", "conv": "convolutions",
    "distance": "losses", "dropout": "dropout", "flatten": "shapes", "fold": "images",
    "instancenorm": "normalization", "linear": "linear", "loss": "losses", "module": "containers",
    "normalization": "normalization", "padding": "images", "pixelshuffle": "images",
    "pooling": "pooling", "rnn": "recurrent", "sparse": "linear", "transformer": "transformers",
    "upsampling": "images", "parameter": "containers",
}  # fmt: skip
LAYER_TITLES = {
    "containers": "Module, Parameter and containers",
    "linear": "linear layers and embeddings",
    "convolutions": "convolutions",
    "pooling": "pooling",
    "activations": "activations and attention",
    "normalization": "normalization",
    "dropout": "dropout",
    "recurrent": "recurrent layers",
    "transformers": "transformers",
    "losses": "losses and distances",
    "images": "padding, resizing, rearranging images",
    "shapes": "changing shapes",
    "others": "what else there is",
}


def resolve(path: str) -> Any:
    found: Any = importlib.import_module("taeda")
    for part in path.split(".")[1:]:
        try:
            found = getattr(found, part)
        except AttributeError:
            found = importlib.import_module(f"{found.__name__}.{part}")
    return found


def members(owner: Any) -> Iterator[tuple[str, Any]]:
    """Public names and values: what `__all__` or `dir` tells, less modules."""
    names = getattr(owner, "__all__", None) or dir(owner)
    names = [*names, "summary"] if getattr(owner, "__name__", "") == "taeda" else names
    for name in sorted(set(names), key=lambda name: (name.lower(), name)):
        if name.startswith("_"):
            continue
        try:
            value = inspect.getattr_static(owner, name, None)
            value = getattr(owner, name) if value is None or not isinstance(owner, type) else value
        except Exception:
            continue
        if inspect.ismodule(value) or value is owner:
            continue
        if not isinstance(owner, type) and not (callable(value) or value.__doc__):
            continue
        home = str(getattr(value, "__module__", None) or "")
        if hasattr(value, "_only_raises") or is_plumbing(owner, value, home):
            continue
        if not isinstance(owner, type) and home and not home.startswith(("taeda", "builtins")):
            continue
        yield name, value


def is_plumbing(owner: Any, value: Any, home: str) -> bool:
    """Whether a module has the name for other modules only; of a class, whether it is a class, as
    that which a lazy layer becomes."""
    if isinstance(owner, type):
        return isinstance(value, type)
    there = owner.__name__ == home
    return type(value) in (bool, tuple) or (home.removeprefix("taeda.") in PLUMBING and not there)


def described(value: Any) -> bool:
    """Whether there is a docstring that is the value's own and says more than signatures."""
    doc = inspect.getdoc(value) or ""
    if isinstance(value, type) and doc == inspect.getdoc(object):
        return False
    return any(line and not SIGNATURE.fullmatch(line) for line in doc.split("\n"))


KINDS = {True: "Floating point numbers", False: "Integers"}


def described_instance(name: str, value: Any) -> str:
    """What is said of a dtype, a layout or a memory format, whose class has the docstring; "" of
    anything else."""
    kind = type(value).__name__
    own = str(value).rpartition(".")[2]
    if kind not in ("dtype", "layout", "memory_format"):
        return ""
    if own != name:
        return f"Another name of `{own}`."
    if kind != "dtype":
        return f"A {kind.replace('_', ' ')}: see `{kind}`."
    if name == "bool":
        return "True or False, a byte each."
    bits = f"{value.itemsize} byte{'s' if value.itemsize > 1 else ''}"
    if name.startswith(("q", "bits")):
        return f"Elements of quantized tensors, {bits} each."
    if value.is_complex:
        return f"Complex numbers of {bits}."
    unsigned = "" if value.is_floating_point or value.is_signed else ", from 0 on"
    return f"{KINDS[value.is_floating_point]}, {bits} each{unsigned}."


@cache
def families() -> dict[str, str]:
    """Operator -> page, by the file of the table that its entry is in."""
    sys.path.insert(0, str(ROOT))
    from gen import table

    found: dict[str, str] = {}
    for op in table.load(ROOT / "ops"):
        first = re.split(r"[/.]", op.file)[0]
        for name in (op.sig.name, *(python.rpartition(".")[2] for python in op.python)):
            if found.get(name, "others") == "others":  # masked.sum is no family of sum
                found[name] = FAMILIES.get(first, "others")
    return found


def group(path: str, name: str, value: Any) -> str:
    """The page of a module's member, "" for modules of one page."""
    if path in ("taeda", "taeda.Tensor"):
        page = families().get(name) or families().get(name.removesuffix("_"), "others")
        return page if page != "others" or path != "taeda" else home_page(name, value)
    if path == "taeda.nn":
        module = str(getattr(value, "__module__", "")).rpartition(".")[2]
        return LAYERS.get(module, "others")
    return ""


def home_page(name: str, value: Any) -> str:
    """The page of a function of taeda that the operator table does not place."""
    home = str(getattr(value, "__module__", None) or "").removeprefix("taeda.")
    if type(value).__name__ in ("dtype", "layout", "memory_format", "qscheme"):
        return "types"
    listed = (page for page, names in WITHOUT_HOME.items() if name in names.split())
    return next(listed, HOMES.get(home, "others"))
