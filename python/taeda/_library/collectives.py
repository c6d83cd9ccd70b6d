"""PyTorch's operators between processes. Programs name them to say what their tensors do in them;
called, they raise, but for waiting, which has nothing to wait for."""

from __future__ import annotations

from typing import Any

from taeda import _C

_FUNCTIONAL = {
    "all_reduce": "Tensor input, str reduce_op, str group_name",
    "all_gather_into_tensor": "Tensor input, int group_size, str group_name",
    "reduce_scatter_tensor": "Tensor input, str reduce_op, int group_size, str group_name",
    "all_to_all_single": "Tensor input, int[] output_split_sizes, int[] input_split_sizes, "
    "str group_name",
    "broadcast": "Tensor input, int src, str group_name",
}


# The same in an older namespace, where ranks stand for a group's name.
_RANKS = "str tag, int[] ranks, int group_size"
_OLD = {
    "all_reduce": f"Tensor self, str reduceOp, {_RANKS}",
    "all_gather_into_tensor": f"Tensor shard, {_RANKS}",
    "reduce_scatter_tensor": f"Tensor input, str reduceOp, {_RANKS}",
    "broadcast": f"Tensor self, int src, {_RANKS}",
}
# Schemas have no types for groups of processes and lists of lists: names and lists stand here.
_IN_PLACE = {
    "allgather_": "Tensor[] output_tensors, Tensor[] input_tensors, str process_group",
    "allreduce_": "Tensor[] tensors, str process_group, str reduce_op",
    "broadcast_": "Tensor[] tensors, str process_group, int root_rank, int root_tensor",
    "scatter_": "Tensor[] output_tensors, Tensor[] input_tensors, str process_group, int root_rank",
}


def _define(name: str, schema: str) -> None:
    def raises(*args: Any, **kwargs: Any) -> Any:
        raise NotImplementedError(f"torch.ops.{name}: taeda has one process; leave the call out")

    _C._define_composite(schema, raises)


for _space, _signatures in (("_c10d_functional", _FUNCTIONAL), ("c10d_functional", _OLD)):
    for _name, _arguments in _signatures.items():
        _define(f"{_space}.{_name}", f"{_space}::{_name}({_arguments}) -> Tensor")
    _C._define_composite(
        f"{_space}::wait_tensor(Tensor(a) tensor) -> Tensor(a)", lambda tensor: tensor
    )
for _name, _arguments in _IN_PLACE.items():
    _define(f"c10d.{_name}", f"c10d::{_name}({_arguments}) -> ()")
_C._define_composite(
    "_c10d_functional::_wrap_tensor_autograd(Tensor input) -> Tensor", lambda input: input
)
