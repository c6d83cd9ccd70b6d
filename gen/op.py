"""The record of an operator: the keys that an entry of the table may have, and what follows.

A field made by :func:`key` is a key of entries. Each has one of ``BODIES`` (``expr`` beside another
is its definition); ``FILE_KEYS`` may stand in a file's first item for all (``- file: {...}``).
"""

# ruff: noqa: RUF009 (`key` makes fields)

from __future__ import annotations

import copy
from collections.abc import Iterable
from dataclasses import dataclass, field
from typing import Any

from .schema import Argument, SchemaError, Signature
from .text import enumerator

BODIES = {
    "expr": "definition in terms of other operators",
    "pointwise": "functor, or functors chosen by a string argument",
    "kernel": "function on Views in src/kernels/cpu",
    "cpp": "hand-written function on Tensors in src/ops",
}
FILE_KEYS = ("optimize", "out_dtype")
# The kinds of dtypes in each; some have storage types too, "any" all (include/taeda/dtype.h).
WITHOUT_UNSIGNED = ("all complex32", "all float8 complex32")  # uint16, uint32, uint64
TYPE_SETS = dict.fromkeys(("any", "all", *WITHOUT_UNSIGNED), "Bool Integer Floating Complex") | {
    **dict.fromkeys(("numeric", "numeric float8"), "Integer Floating Complex"),
    "real": "Bool Integer Floating",
    "inexact": "Floating Complex",
    "floating": "Floating",
    "integral": "Integer",
    "integral_bool": "Bool Integer",  # with uint16, uint32 and uint64
    "integral_bool floating": "Bool Integer Floating",
    "bool": "Bool",
}
PROMOTIONS = {
    "same": "the promoted type of the arguments",
    "float": "as same, integers becoming the default floating type",
    "bool": "computed in the promoted type, bool result",
    "real": "computed in the promoted type; complex arguments give real results",
    "masked": "as same, bool arguments aside: they choose among the others' elements",
}
AUTOCASTS = {
    "lower": "the block's dtype (bfloat16): fast, and exact enough for sums of products",
    "float32": "float32: losses, and what half precision has no kernel for",
    "widest": "the widest type among the arguments",
    "none": "nothing, nor do the operators that it is made of convert theirs",
    "result32": "nothing, but the result is float32 where the call gives no dtype",
    "banned": "an error: the call is unsafe in half precision",
    "no_rule": "nothing",
}
BATCHES = {
    "pointwise": "arguments broadcast: dimensions are put behind the batch's until ranks agree",
    "leading": "the batch goes in front of every tensor and of sizes; dim and dims count one more",
    "first": "as leading where only the first tensor has a batch, else by `expr` or sample by sample",
    "along": "as leading, but for `index`: all samples have the same, else sample by sample",
    "fold": "the batch is merged into the first dimension of every tensor and of sizes",
    "channels": "the batch is merged into dimension 1 (0 of vectors), the channels; groups multiply",
    "random": "as vmap's `randomness` says",
    "noise": "the same, where the numbers drawn follow from no argument: 'same' takes any batch",
    "definition": "`expr` beside a kernel, on the batched arguments",
    "own": "the function batching::NAME in src/ops/batching",
    "loop": "sample by sample",
    "refuse": "an error",
}
SPARSE = {
    "values": "on the values of the coalesced tensor, others' elements there: it takes 0 to 0",
    "linear": "the same without coalescing: it commutes with sums",
    "own": "the function sparse::NAME in src/ops/sparse",
    "body": "the body, which knows sparse tensors",
}
# How the base is computed again from what was written to its view (ops/functionalize/memory.cc).
VIEWS = {
    "strides": "by the strides of the view in the base's memory",
    "sizes": "the same elements in the base's sizes",
    "itself": "the operator with the same arguments",
    "order": "the operator with the inverse permutation",
    "dtype": "the operator with the base's dtype",
    "scatter": "NAME_scatter, a copy of the base with these elements",
    "complex": "view_as_complex of view_as_real, and the other way round",
}
# What each means: OutDtype and OutShape in src/ops/allocate.h.
OUT_DTYPES = "same scanned drawn argument averaged given any any_real castable real number "
OUT_DTYPES += "any_number of_real truth joined summed deviation"
OUT_SHAPES = "warned quiet count count_warned kept one_row copied index"


def key(default: Any, choices: Iterable[Any] = ()) -> Any:
    """A key of entries: its value where an entry lacks it, and the values that it may have."""
    return field(default_factory=lambda: copy.copy(default), metadata={"choices": (*choices,)})


@dataclass
class Op:
    sig: Signature  # `op`, in PyTorch's schema language; entries with twins have several
    file: str
    line: int
    body: str  # one of BODIES
    source: Any  # the value of that key

    # Names. `aten`: PyTorch's overloads that it stands for, the first its own in torch.ops.aten, with
    # their arguments, '' where those are the entry's; 'none' (here {}): it is not PyTorch's.
    aten: dict[str, str] | None = key(None)
    # PyTorch's overloads of the in-place form and of that with out=, where they are other ones
    aten_inplace: dict[str, str] = key({})
    aten_out: dict[str, str] = key({})
    aten_unseen: list[str] = key([])  # those of `aten` as which modes see formulas only
    # of one of the table's own: the call of PyTorch's as which modes see it, or several by condition
    # (here "condition => call" in lines); [i] behind it: which of its results is this one's
    seen_as: str = key("")
    seen_whole: bool = key(False)  # a composite that modes see as a call where it is not recorded
    # torch.NAME, Tensor.NAME, nn.functional.NAME, ..., foreach.NAME (NAME_: in place only)
    python: list[str] = key([])
    hidden: bool = key(False)  # of old programs, last of its name: not in messages, stubs, docs
    tags: list[str] = key([])  # torch.Tag's names that do not follow from the entry
    doc: str = key("")  # documentation with an example
    # the backward node's name where it is not the operator's, with or without 'Backward' and number;
    # an `expr` with one, or with `grad`, is recorded as one step (without `grad`, backward repeats it)
    node: str = key("")
    node_where: dict[str, str] = key({})  # name -> condition: the name where it holds
    steps: str = key("")  # the node's base in autograd/steps.h, where it is several of PyTorch's
    saved_as: dict[str, str] = key({})  # PyTorch's names of what the node keeps: _saved_result1
    variants: list[str] = key([])  # which of inplace and out exist
    # whose in-place forms are functions too (torch.relu_); else those of a pointwise one of a tensor
    inplace_python: list[str] = key([])
    out_python: bool = key(True)  # whether functions take out=; of nn.functional only if it says so
    out_needs: list[str] = key([])  # arguments with defaults that have to be given beside out=
    next_needs: list[str] = key([])  # those that have to be given beside the argument behind them
    second_names: dict[str, str] = key({})  # by argument: what Python's calls may name it too

    # What the arguments must be. A check is a condition and its message.
    types: str = key("all", TYPE_SETS)  # dtypes that the tensor arguments may have
    check: list[tuple[str, str]] = key([])
    # of a pointwise one, those of `types` that a check refuses, so that devices need no kernel for them
    refused: str = key("", ("", "bool", "half"))
    early_check: list[tuple[str, str]] = key([])  # made before dimensions are wrapped
    devices: str = key("same", ("same", "any"))  # whether the tensors must lie on the same one
    # tensor arguments for which Python may give a number; 'some': any but not all, 'all': any
    numbers: str | list[str] = key([])
    contiguous: list[str] = key([])  # tensor arguments that the kernel wants row-major
    ordered: list[str] = key([])  # those it wants without gaps, in the memory order of its result
    matrices: list[str] = key([])  # those it takes row- or column-major, the batch without gaps
    column_major: list[str] = key([])  # results whose matrices are, as LAPACK's routines leave them
    strides: dict[str, str] = key({})  # of results laid out otherwise; of pointwise ones a Layout
    # how out= may overlap arguments: 'exact', as one of them but not in part; 'none', not at all;
    # 'itself': as exact, and what is written in place may share elements, with a warning
    overlap: str = key("", ("", "exact", "none", "itself"))
    out_dtype: str = key("same", OUT_DTYPES.split())  # the dtypes that out= may have
    out_shape: str = key("warned", OUT_SHAPES.split())  # how out= is resized

    # What computes it, and the result.
    expr: str | None = key(None)  # the definition, also beside a kernel
    no_definition: str = key("")  # why a kernel or cpp has none, and the test that stands in for it
    promote: str = key("same", PROMOTIONS)  # result and compute dtype of a pointwise operator
    # sizes and dtype of each result of a kernel; when it is made, for one that may be undefined
    out: dict[str, list[str]] = key({})
    view: str = key("", ("", *VIEWS))  # results are views of the first argument, and how undone
    kernels: list[str] = key([])  # what a cpp launches (TD_KERNEL in headers of src/kernels/cpu)
    # a cpp without kernels touches elements itself; 'sizes': the result's sizes depend on them
    host: bool | str = key(False, (False, True, "sizes"))
    # 'size': compiled with -Os, as suits what is seldom called or spends its time in large kernels
    optimize: str = key("speed", ("speed", "size"))
    # what it converts floating arguments to; on CUDA devices, where that is another type
    autocast: str = key("no_rule", AUTOCASTS)
    autocast_cuda: str = key("", ("", *AUTOCASTS))
    batch: str | None = key(None, (None, *BATCHES))  # how vmap runs it, where that does not follow
    sparse: str | None = key(None, (None, *SPARSE))  # how it runs on sparse tensors, if it does

    # Derivatives. `grad`: formulas by argument, or 'none' (here {}).
    grad: dict[str, str] | None = key(None)
    # the formula of the in-place form, from the `result` that lies where the argument did, without
    # which a copy of the argument is kept; and what it needs, checked in backward
    inplace_grad: str = key("")
    inplace_check: list[tuple[str, str]] = key([])
    # beside `grad`: the functor on dual numbers computes the gradient, the formula where it is
    # differentiated or seen; or PyTorch's name of that gradient; 'seen': Python spells it as PyTorch's
    dual: bool | str = key(False)
    antiholomorphic: list[str] = key([])  # arguments of whose conjugates it is holomorphic
    jvp: Any = key(None)  # forward mode: formulas (by result or argument), linear, replay or none
    # bools that are true where the call is recorded, for results that only derivatives read
    recorded: list[str] = key([])

    test: dict[str, Any] = key({})  # inputs for the generated tests

    # What entries do not say.
    named: bool = False  # several results, named by the signature: a named tuple in Python
    dual_grad: dict[str, str] = field(default_factory=dict)  # calls that give it, see autograd.py
    partial: int | None = None  # computes the functors' derivative by this argument

    def __post_init__(self) -> None:
        sig, args, pointwise = self.sig, self.sig.args, self.body == "pointwise"
        self.name, self.ident, self.mutates = sig.name, sig.ident, sig.mutates
        self.where = f"ops/{self.file}:{self.line}"
        # The folder of the entry's file, or the file itself where it lies in none.
        self.family = self.file.split("/")[0].removesuffix(".yaml")
        # Whether calls go through a dispatch table: not those of composites of several recorded steps.
        computes = self.grad is not None or self.expr is not None
        one_step = self.body == "expr" and (self.grad is not None or self.node != "")
        leaf = self.body == "kernel" or (self.body == "cpp" and computes)
        self.dispatched = pointwise or leaf or one_step or self.view != ""
        # Whether its values come from code that is written by hand, which a definition checks.
        self.is_leaf = leaf and not self.view
        # Whether an element of the result depends on those at its index alone.
        self.is_pointwise = "pointwise" in (self.body, self.family) and len(sig.returns) == 1
        # Whether it takes dtype and device of its result.
        self.is_factory = any(a.type == "options" for a in args)
        # Whether the function that computes it is the in-place form too, where `into` is given.
        self.writes_into = pointwise and "inplace" in self.variants
        # Whether a call may write its first argument.
        self.may_write = self.mutates or self.writes_into
        # Whether backward differentiates the definition, since no formula is given; whether forward
        # mode runs it; whether one beside a kernel is compiled (tests evaluate the others' text).
        defined = self.expr is not None and not self.mutates
        self.replays_backward = self.grad is None and defined
        self.replays_forward = self.jvp in (None, "replay") and self.grad != {} and defined
        batched = self.batch in ("definition", "first") and self.expr is not None
        replayed = self.replays_backward or self.replays_forward or batched
        self.is_replayed = one_step or (self.is_leaf and replayed)
        # Whether the result is a list of tensors: one gradient an element.
        self.returns_list = sig.returns[0].type == "Tensor[]"
        # Value of the choosing string argument ('' when there is none) -> functor.
        self.functors = self.source if isinstance(self.source, dict) else {"": self.source}
        # The dense kernel of each.
        self.loops = {c: f"{self.ident}_{c}" if c else self.ident for c in self.functors}
        # The string argument that chooses among several functors.
        several = pointwise and isinstance(self.source, dict)
        self.selector = next((a for a in args if several and a.type == "str"), None)
        # The non-tensor arguments that a pointwise functor holds, in schema order.
        self.params = [a for a in args if not a.is_tensor and a is not self.selector]
        # Each formula with the arguments whose gradients it gives, in the order of its results.
        self.gradient_groups = [(k.split(", "), str(v)) for k, v in (self.grad or {}).items()]
        self.differentiated = [name for names, _ in self.gradient_groups for name in names]
        # Whether the in-place form changes sizes and strides, not values.
        copies = "inplace" in self.variants and not self.writes_into
        self.changes_layout = copies and bool(self.view or self.family == "shape")
        # The hand-written function in namespace impl, or the one in definition.
        self.implementation = self.ident if self.source is True or one_step else self.source
        # The set of dtypes that it takes: `integral_bool` is contract::kIntegralBool.
        self.type_mask = " | ".join(f"contract::{enumerator(t)}" for t in self.types.split())
        # The kernels that it launches, if it is dispatched; pointwise operators have one, with which a
        # device launches any functor or none.
        own = ["pointwise"] if pointwise else [self.source]
        self.launched = own if self.body in ("pointwise", "kernel") else self.kernels
        # What its C++ functions return and take; what out= forms take besides; what functions
        # behind the dispatch table take, those of pointwise operators with what they write.
        self.result, self.parameters = sig.return_cpp, sig.parameters()
        self.names = ", ".join(a.name for a in args)
        self.outs = [f"out_{r.name}" for r in sig.returns] if len(sig.returns) > 1 else ["out"]
        self.out_parameters = ", ".join([*filter(None, [self.parameters]), *_tensors(self.outs)])
        self.into = ["into"] if pointwise else []
        internal = ["KeySet keys", *_tensors(self.into), *filter(None, [self.parameters])]
        self.internal_parameters = ", ".join(internal)

    def overwritten(self, name: str) -> str:
        """C++ of whether a call writes the argument; empty: never."""
        if not self.may_write or name != self.sig.args[0].name:
            return ""
        return "true" if self.mutates else f"autograd::is_overwritten({name}, into)"

    def internal_names(self, keys: str = "keys", into: str = "into", recorded: bool = False) -> str:
        """The arguments of a call to a layer below; what a recorded call sets is true there."""
        args = ("true" if recorded and a.name in self.recorded else a.name for a in self.sig.args)
        return ", ".join([keys, *(into for _ in self.into), *args])

    def accepts_number(self, arg: Argument) -> bool:
        """Whether a Python number may stand for this tensor argument."""
        return arg.type == "Tensor" if isinstance(self.numbers, str) else arg.name in self.numbers

    def fail(self, message: str) -> SchemaError:
        return SchemaError(f"{self.where}: {self.sig.text}: {message}")


def _tensors(names: list[str]) -> list[str]:
    return [f"const Tensor& {name}" for name in names]
