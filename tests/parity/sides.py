"""A sample called in PyTorch, in taeda, or in PyTorch with double precision.

A mode of calling (tests/parity/modes.py, derivatives.py) is written once against a `Side` and run
on each; what it returns is compared.
"""

from __future__ import annotations

import functools
from collections.abc import Callable
from typing import Any

import torch
from tests.parity import databases, mirror
from tests.parity.translate import Missing, translate

import taeda


class Side:
    """One library, one operator, one sample. `tensor` is the library's class of tensors."""

    def __init__(
        self,
        library: str,
        info: Any,
        sample: Any,
        grad: bool = False,
        double: bool = False,
        moved: mirror.Moved | mirror.Lifted | None = None,
    ) -> None:
        self.info, self.sample, self.grad, self.double = info, sample, grad, double
        self.taeda = library == "taeda"
        self.lib: Any = taeda if self.taeda else torch
        self.tensor: type = self.lib.Tensor
        self.seed = 0
        self.moved = moved
        self.refresh()

    def refresh(self) -> None:
        """New copies of all arguments, and the generator's first numbers."""
        library = "taeda" if self.taeda else "torch"
        self.copies = mirror.Copies(library, self.double, self.grad, self.moved)
        self.reseed()

    def reseed(self) -> None:
        """The generator's first numbers."""
        self.lib.default_generator.manual_seed(0)

    def own(self, value: Any) -> Any:
        return translate(value) if self.taeda else value

    def variant(self, name: str) -> Callable[..., Any] | None:
        """ "op", "method_variant" or "inplace_variant"; None where PyTorch has none."""
        value = getattr(self.info, name)
        return None if value is None else self.own(value)

    def arguments(self) -> tuple[Any, tuple[Any, ...], dict[str, Any]]:
        sample = self.sample
        return (self.copies(sample.input), self.copies(sample.args), self.copies(sample.kwargs))

    def call(self, name: str = "op", **more: Any) -> Any:
        function = self.variant(name)
        assert function is not None
        first, args, kwargs = self.arguments()
        return function(first, *args, **kwargs, **more)

    def processed(self, result: Any) -> Any:
        """What the database makes of a result before it compares or derives it."""
        try:
            return self.own(self.sample.output_process_fn_grad)(result)
        except Missing:
            return result

    def random(self, likes: list[Any], name: str) -> list[Any]:
        """The same random tensors on each side, in shapes and dtypes of `likes`."""
        made = []
        for i, like in enumerate(likes):
            with databases.seeded(name, i, tuple(like.shape)):
                complex_ = like.is_complex()
                dtype = torch.complex128 if complex_ else torch.float64
                value = torch.randn(tuple(like.shape), dtype=dtype)
            # Rounded to the sample's precision, also where it is computed in double.
            single = torch.complex64 if complex_ else torch.bfloat16
            value = value.to(single).to(getattr(torch, str(like.dtype).split(".")[1]))
            value = self.moved(value) if self.moved else value
            made.append(mirror.to_taeda(value) if self.taeda else value)
        return made

    def differentiable(self, value: Any) -> list[Any]:
        return [tensor for tensor in mirror.tensors(value, self.tensor) if tensor.requires_grad]

    @functools.cached_property
    def forward_ad(self) -> Any:
        return self.own(torch.autograd.forward_ad)
