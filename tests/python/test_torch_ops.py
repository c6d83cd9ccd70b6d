"""torch.ops: every operator by name and overload, with its schema, compared with PyTorch's."""

import ast
import copy
import csv
import operator
import pickle
import re
from pathlib import Path

import pytest

import taeda
import taeda._ops
from taeda import _C

OPS = taeda.ops.aten


def test_an_overload_is_called_with_the_arguments_of_its_schema():
    x, y = taeda.tensor([1.0, 2.0]), taeda.tensor([10.0, 20.0])
    assert OPS.add.Tensor(x, y).tolist() == [11.0, 22.0]
    assert OPS.add.Tensor(x, y, alpha=2).tolist() == [21.0, 42.0]
    assert OPS.add.Tensor(self=x, other=y).tolist() == [11.0, 22.0]
    assert OPS.add.Tensor(x, 1).tolist() == [2.0, 3.0]
    assert OPS.cat.default([x, y], 0).shape == (4,)
    assert OPS.max.dim(x, 0)[1].item() == 1
    assert isinstance(OPS.max.dim(x, 0), tuple)
    assert isinstance(OPS.split.Tensor(x, 1), list)


def test_an_overload_writes_in_place_and_into_out():
    x = taeda.tensor([1.0, 2.0])
    assert OPS.add_.Tensor(x, 1) is x
    assert x.tolist() == [2.0, 3.0]
    out = taeda.empty(2)
    assert OPS.mul.out(x, x, out=out) is out
    assert out.tolist() == [4.0, 9.0]
    assert OPS.cumsum.out(x, 0, out=out) is out
    assert out.tolist() == [2.0, 5.0]


def test_a_packet_chooses_the_overload_that_the_arguments_fit():
    x = taeda.tensor([1.0, 2.0])
    assert OPS.add(x, x).tolist() == [2.0, 4.0]
    assert OPS.sum(x).item() == 3.0
    assert OPS.relu(-x).tolist() == [0.0, 0.0]
    with pytest.raises(RuntimeError, match="failed to match any schema"):
        OPS.add("x")


def test_names():
    op = OPS.add.Tensor
    assert str(op) == "aten.add.Tensor"
    assert repr(op) == "<OpOverload(op='aten.add', overload='Tensor')>"
    assert repr(OPS.add) == "<OpOverloadPacket(op='aten.add')>"
    assert op.name() == "aten::add.Tensor"
    assert op.namespace == "aten"
    assert op.overloadpacket is OPS.add
    assert OPS.relu.default.name() == "aten::relu"
    assert OPS.add.Tensor is op
    assert OPS.add.Scalar is not op  # although one entry of the table covers both
    assert OPS.add.Scalar is OPS.add.Scalar
    assert OPS.add.Scalar != op
    assert OPS.add.Scalar.name() == OPS.add.Scalar.__qualname__ == "aten::add.Scalar"
    assert OPS.add.Scalar.__module__ == "torch._ops.aten"
    assert "Tensor" in OPS.add.overloads()
    assert "default" in OPS.relu.overloads()
    assert "relu" in dir(OPS)
    assert copy.deepcopy(op) is op
    assert pickle.loads(pickle.dumps(op)) is op
    assert pickle.loads(pickle.dumps(OPS.add.Scalar)) is OPS.add.Scalar
    assert len({op, OPS.add.Scalar, OPS.add.Tensor}) == 2
    with pytest.raises(AttributeError, match="has no attribute 'nope'"):
        OPS.nope  # noqa: B018
    with pytest.raises(AttributeError, match="has no overload name 'nope'"):
        OPS.add.nope  # noqa: B018


def test_a_schema_describes_its_arguments():
    schema = OPS.add_.Tensor._schema
    assert str(schema) == (
        "aten::add_.Tensor(Tensor(a!) self, Tensor other, *, Scalar alpha=1) -> Tensor(a!)"
    )
    assert (schema.name, schema.overload_name, schema.is_mutable) == ("aten::add_", "Tensor", True)
    first, _, alpha = schema.arguments
    assert first.alias_info.is_write
    assert first.alias_info.before_set == {"a"}
    assert (alpha.name, str(alpha.type), alpha.default_value) == ("alpha", "number", 1)
    assert alpha.kwarg_only
    assert alpha.has_default_value()
    assert OPS.view.default.is_view
    assert not OPS.add.Tensor.is_view


@pytest.mark.parametrize(
    ("call", "message"),
    [
        (lambda x: OPS.add.Tensor(x), "add() is missing value for argument 'other'"),
        (lambda x: OPS.add.Tensor(x, x, beta=1), "Unknown keyword argument 'beta'"),
        (lambda x: OPS.add.Tensor(x, x, other=x), "got multiple values for argument 'other'"),
        (lambda x: OPS.relu.default(x, x), "expected at most 1 argument(s) but received 2"),
        (lambda x: OPS.relu.default("a"), "Expected a value of type 'Tensor' for argument 'self'"),
        (lambda x: OPS.relu.default(None), "but instead found type 'NoneType'"),
        (lambda x: OPS.cat.default([x, None]), "Expected a value of type 'Tensor[]'"),
        (lambda x: OPS.view.default(x, "ab"), "Expected a value of type 'int[]'"),
    ],
)
def test_wrong_arguments(call, message):
    with pytest.raises(RuntimeError, match=re.escape(message)):
        call(taeda.tensor([1.0]))


def test_lists_of_schemas():
    schemas = _C._jit_get_all_schemas()
    names = {(s.name, s.overload_name) for s in schemas}
    assert len(names) == len(schemas) > 1000
    assert ("aten::add", "Tensor") in names
    assert any(s.overload_name == "Tensor" for s in _C._jit_get_schemas_for_operator("aten::add"))
    assert str(_C._get_schema("aten::relu", "")) == "aten::relu(Tensor self) -> Tensor"
    assert taeda._ops.parse_schema("f(Tensor x) -> Tensor").arguments[0].name == "x"
    with pytest.raises(RuntimeError, match="cannot be read at"):
        taeda._ops.parse_schema("f(")


def test_gradients_pass_through():
    x = taeda.tensor([1.0, 2.0], requires_grad=True)
    OPS.sum.default(OPS.mul.Tensor(x, x)).backward()
    assert x.grad.tolist() == [2.0, 4.0]


# --- compared with PyTorch ---


def _normal(schema: str) -> str:
    """Without differences of writing: SymInt, int[1], [1, 1] for 1, 2.0, names of results."""
    schema = schema.replace("SymInt", "int").replace("'", '"').replace("int[1]", "int[]")
    schema = re.sub(r"(-> \(.*)", lambda m: re.sub(r"(Tensor(\[\])?) \w+", r"\1", m[1]), schema)

    def default(match: re.Match) -> str:
        text = match[1]
        try:
            value = ast.literal_eval(text)
        except (ValueError, SyntaxError):
            return f"={text}"
        if isinstance(value, list) and value and len(set(value)) == 1:
            value = value[0]
        return f"={float(value) if isinstance(value, (int, float)) else value}"

    return re.sub(r"=(\[[^\]]*\]|[^,)]+)", default, schema)


def test_schemas_are_those_of_pytorch():
    torch = pytest.importorskip("torch")
    theirs = {(s.name, s.overload_name): str(s) for s in torch._C._jit_get_all_schemas()}
    same, other, ours_only = [], [], []
    for schema in _C._jit_get_all_schemas():
        if not schema.name.startswith("aten::") or schema.is_mutable:
            continue
        key = (schema.name, schema.overload_name)
        if key not in theirs:
            ours_only.append(key)
        elif _normal(str(schema)) == _normal(theirs[key]):
            same.append(key)
        else:
            other.append(key)
    assert ours_only == []  # what PyTorch has not is in namespace taeda
    # Losses take `reduction` as text, and some arguments bear the names of the public function.
    assert len(same) >= 480
    assert len(same) > 2 * len(other)


def shared_overloads():
    """The overloads of namespace aten that both frameworks have, as pairs (ours, PyTorch's)."""
    torch = pytest.importorskip("torch")
    for name in dir(OPS):
        theirs = getattr(torch.ops.aten, name, None)
        ours = getattr(OPS, name)
        for overload in ours.overloads() if theirs else ():
            if overload in theirs.overloads():
                yield getattr(ours, overload), getattr(theirs, overload)


@pytest.mark.parametrize(
    "attribute",
    ["__name__", "__qualname__", "__module__", "_opname", "_overloadname", "namespace", "_name"],
)
def test_every_overload_is_an_operator_of_its_own(attribute):
    pairs = [*shared_overloads()]
    assert len(pairs) > 1300
    assert len({id(op) for op, _ in pairs}) == len({op.name() for op, _ in pairs}) == len(pairs)
    wrong = [op for op, other in pairs if getattr(op, attribute) != getattr(other, attribute)]
    assert wrong == []
    for op, other in pairs:
        assert (str(op), repr(op), op.name()) == (str(other), repr(other), other.name())
        assert str(op.overloadpacket) == str(other.overloadpacket)
        named = op._schema.name, op._schema.overload_name
        assert named == (other._schema.name, other._schema.overload_name)


# What shares memory in PyTorch's schemas only: overloads that one of the table's stands for, or
# written lists, which the table's schema does not mark.
WITHOUT_VIEWS = set()


def test_views_and_writes_are_those_of_pytorch():
    views = {op.name() for op, other in shared_overloads() if op.is_view != other.is_view}
    assert views == WITHOUT_VIEWS
    writes = {
        op.name()
        for op, other in shared_overloads()
        if op._schema.is_mutable != other._schema.is_mutable
    }
    assert writes == {
        "aten::_fused_adam_",
        "aten::_fused_adamw_",
        "aten::_fused_sgd_",
        "aten::_foreach_dummy",
    } - {"aten::_foreach_dummy"}


def test_types_of_arguments_are_named_as_in_pytorch():
    for op, other in shared_overloads():
        mine, theirs = op._schema.arguments, other._schema.arguments
        if _normal(str(op._schema)) != _normal(str(other._schema)):
            continue
        assert [str(a.type) for a in mine] == [str(a.type) for a in theirs], op
        assert [str(a.real_type) for a in mine] == [str(a.real_type) for a in theirs], op
        assert [a.is_out for a in mine] == [a.is_out for a in theirs], op


@pytest.mark.parametrize(
    ("call", "expected"),
    [
        (lambda aten, x: aten.add.Scalar(x, 2, 3), [7.0, 8.0]),
        (lambda aten, x: aten.rsub.Scalar(x, 2, 3), [-1.0, -4.0]),
        (lambda aten, x: aten.pow.Scalar(2, x), [2.0, 4.0]),
        (lambda aten, x: aten.pow.Tensor_Scalar(x, 2), [1.0, 4.0]),
        (lambda aten, x: aten.sum.default(x), 3.0),
        (lambda aten, x: aten.mean.default(x, dtype=x.dtype), 1.5),
        (lambda aten, x: aten.all.dim(x, 0), True),
        (lambda aten, x: aten.squeeze.dim(x.view(1, 2), 0), [1.0, 2.0]),
        (lambda aten, x: aten.squeeze.dims(x.view(1, 2, 1), [0, 2]), [1.0, 2.0]),
        (lambda aten, x: aten.clamp_min.default(x, 1.5), [1.5, 2.0]),
        (lambda aten, x: aten.clamp_min_.Tensor(x, x + 1), [2.0, 3.0]),
        (lambda aten, x: aten.bitwise_left_shift.Scalar_Tensor(1, x.long()), [2, 4]),
        (lambda aten, x: aten.arange.start(1, 4), [1, 2, 3]),
        (lambda aten, x: aten.movedim.int(x.view(1, 2), 0, 1), [[1.0], [2.0]]),
        (lambda aten, x: aten.lerp_.Scalar(x, x + 2, 0.5), [2.0, 3.0]),
    ],
)
def test_overloads_take_the_arguments_of_their_schema(call, expected):
    assert call(OPS, taeda.tensor([1.0, 2.0])).tolist() == expected
    torch = pytest.importorskip("torch")
    assert call(torch.ops.aten, torch.tensor([1.0, 2.0])).tolist() == expected


def test_an_overload_refuses_what_its_schema_does_not_take():
    x = taeda.ones(2)
    with pytest.raises(RuntimeError, match="of type 'Scalar' for argument 'other'"):
        OPS.add.Scalar(x, x)
    with pytest.raises(RuntimeError, match="expected at most 1 argument"):
        OPS.sum.default(x, 0)


@pytest.mark.parametrize(
    ("name", "overload", "args"),
    [
        ("add", "Tensor", ([[1.0, 2.0]], [[3.0], [4.0]])),
        ("mul", "Tensor", ([1.0, 2.0], 3.0)),
        ("sub", "Tensor", ([5.0], [2.0])),
        ("relu", "default", ([-1.0, 1.0],)),
        ("softmax", "int", ([[1.0, 2.0]], -1)),
        ("mm", "default", ([[1.0, 2.0]], [[3.0], [4.0]])),
        ("sum", "dim_IntList", ([[1.0, 2.0], [3.0, 4.0]], [0])),
        ("mean", "dim", ([[1.0, 2.0], [3.0, 4.0]], [1], True)),
        ("transpose", "int", ([[1.0, 2.0]], 0, 1)),
        ("var_mean", "correction", ([1.0, 2.0, 4.0],)),
        ("topk", "default", ([3.0, 1.0, 2.0], 2)),
        ("clamp", "default", ([1.0, 5.0], 2)),
        ("pow", "Tensor_Scalar", ([2.0, 3.0], 2)),
        ("where", "self", ([True, False], [1.0, 2.0], [3.0, 4.0])),
        ("unbind", "int", ([[1.0, 2.0], [3.0, 4.0]],)),
    ],
)
def test_results_are_those_of_pytorch(name, overload, args):
    torch = pytest.importorskip("torch")

    def run(framework):
        def holds_tensor(a):
            return isinstance(a, list) and not (
                isinstance(a[0], int) and isinstance(a[0], bool) is False
            )

        given = [framework.tensor(a) if holds_tensor(a) else a for a in args]
        found = getattr(getattr(framework.ops.aten, name), overload)(*given)
        kind = type(found).__name__ if isinstance(found, (tuple, list)) else "one"
        parts = found if isinstance(found, (tuple, list)) else [found]
        return kind, [p.tolist() for p in parts]

    ours, theirs = run(taeda), run(torch)
    assert ours[0] == theirs[0]
    for mine, other in zip(ours[1], theirs[1]):
        assert taeda.allclose(taeda.tensor(mine), taeda.tensor(other))


# Names that are no operators here: methods of tensors, and what PyTorch has for its compiler only.
NO_OPERATORS = set(
    "to item backward size data save tensor cpu device manual_seed numel grad cuda dim type_as "
    "requires_grad_ as_tensor".split()
)
# Overloads whose arguments PyTorch takes in its compiler, or on CUDA devices, only.
LEFT_OUT = {
    "copy_": {"Tensor", "int", "float"},
    "einsum": {"sublist"},
    "eq": {"Tensor_list"},
    "split": {"default"},
    "sort": {"Tensor"},
    "bmm": {"dtype"},
    "mm": {"dtype"},
}


def most_used(torch, count):
    """The operators that public programs call most often (tools/data/usage.csv)."""
    path = Path(__file__).resolve().parents[2] / "tools" / "data" / "usage.csv"
    with open(path, newline="") as file:
        rows = [row for row in csv.DictReader(file) if row["kind"] in ("function", "method")]
    names = dict.fromkeys(row["api"].rpartition(".")[2] for row in rows)
    found = [n for n in names if not n.startswith("__") and hasattr(torch.ops.aten, n)]
    return found[:count]


def overloads_on_tensors(packet):
    """Those for programs: with tensors, without names of dimensions, and not of results."""
    for name in packet.overloads():
        schema = getattr(packet, name)._schema
        types = [str(a.type) for a in (*schema.arguments, *schema.returns)]
        if not any("Tensor" in t for t in types) or any(a.is_out for a in schema.arguments):
            continue
        others = ("name", "hacked_twin", "generator")
        if not any(word in name.lower() for word in others):
            yield name


def test_the_most_used_operators_have_pytorchs_overloads():
    torch = pytest.importorskip("torch")
    missing = {}
    for name in most_used(torch, 100):
        if name in NO_OPERATORS:
            continue
        wanted = set(overloads_on_tensors(getattr(torch.ops.aten, name)))
        there = set(getattr(OPS, name).overloads())
        assert all(getattr(getattr(OPS, name), o) for o in there)
        missing[name] = wanted - there
    assert {name: left for name, left in missing.items() if left} == LEFT_OUT


INPLACE = [
    "pow_", "floor_divide_", "remainder_", "xlogy_", "ldexp_", "transpose_", "bitwise_and_",
    "bitwise_left_shift_", "add_", "div_", "eq_",
]  # fmt: skip


@pytest.mark.parametrize("name", INPLACE)
def test_overloads_of_forms_in_place_are_pytorchs(name):
    torch = pytest.importorskip("torch")
    packet = getattr(OPS, name)
    assert set(packet.overloads()) <= set(getattr(torch.ops.aten, name).overloads())
    for overload in packet.overloads():
        assert getattr(packet, overload)._schema.name == f"aten::{name}"


def test_an_overload_in_place_writes():
    x = taeda.tensor([2.0, 3.0])
    assert OPS.pow_.Scalar(x, 2) is x and OPS.pow_.Tensor(x, x * 0 + 1).tolist() == [4.0, 9.0]
    assert not hasattr(OPS.pow_, "Tensor_Tensor") and OPS.pow.Tensor_Tensor(x, x * 0).sum() == 2


def test_floats_are_written_as_pytorch_writes_them():
    torch = pytest.importorskip("torch")
    for name, overload in [("cdist", ""), ("allclose", ""), ("normal_", ""), ("leaky_relu", "")]:
        ours, theirs = (str(c._get_schema(f"aten::{name}", overload)) for c in (_C, torch._C))
        assert re.findall(r"=[-\d.e]+", ours) == re.findall(r"=[-\d.e]+", theirs)


def test_overloads_that_one_entry_covers_are_listed():
    assert {"Tensor", "Scalar"} <= set(OPS.add.overloads())
    assert {"Tensor", "Scalar"} <= set(OPS.add_.overloads())
    assert {"default", "dim_IntList"} <= set(OPS.sum.overloads())
    assert len(OPS.add.overloads()) == len(set(OPS.add.overloads()))


@pytest.mark.parametrize(
    "call, message",
    [
        (lambda aten: aten._assert_scalar(0, "it is 0"), "it is 0"),
        (lambda aten: aten._assert_async.msg(taeda.zeros(1), "it is 0"), "it is 0"),
        (lambda aten: aten._assert_async(taeda.zeros(1)), "single nonzero value, but got zero"),
        (
            lambda aten: aten._assert_tensor_metadata(taeda.zeros(2, 3), [2, 4]),
            r"Tensor sizes mismatch! Expected: \[2, 4\], Got: \[2, 3\]",
        ),
        (
            lambda aten: aten._assert_tensor_metadata(taeda.zeros(2), dtype=taeda.int64),
            "Tensor dtype mismatch!",
        ),
        (lambda aten: aten.sym_constrain_range(5, min=7), "Invalid value range for 5 between"),
        (
            lambda aten: aten.sym_constrain_range_for_size(-1),
            r"Invalid value range for -1 between \[0",
        ),
        (lambda aten: aten.sym_constrain_range_for_size(1, max=2), "must be greater than 2"),
    ],
)
def test_assertions_that_fail(call, message):
    with pytest.raises(RuntimeError, match=message):
        call(taeda.ops.aten)


def test_assertions_and_sizes():
    aten, x = taeda.ops.aten, taeda.arange(6.0).reshape(2, 3)
    aten._assert_scalar(2, "")
    aten._assert_async(taeda.ones(1))
    aten._assert_tensor_metadata(x, [2, 3], [3, 1], taeda.float32, device="cpu")
    aten.sym_constrain_range_for_size(5, min=2, max=9)
    assert aten.sym_size.int(x, -1) == 3 and aten.sym_size(x) == [2, 3]
    assert aten.sym_stride(x) == [3, 1] and aten.sym_numel(x) == 6
    assert aten._unsafe_view(x, [3, 2]).tolist() == [[0, 1], [2, 3], [4, 5]]
    assert bool(aten._is_all_true(x > -1)) and not bool(aten._is_any_true(x < 0))
    values, inverse, counts = aten.unique_consecutive(taeda.tensor([1, 1, 2]), True, True)
    assert [t.tolist() for t in (values, inverse, counts)] == [[1, 2], [0, 0, 1], [2, 1]]


class StandIn:
    """Not a tensor; takes the calls that it is an argument of."""

    @classmethod
    def __torch_function__(cls, func, types, args=(), kwargs=None):
        return func, types, args, kwargs


@pytest.mark.parametrize("name", ["relu", "relu.default", "add", "add.Tensor", "cat", "sum"])
@pytest.mark.parametrize(
    "call",
    [
        lambda op, one: op(one),
        lambda op, one: op(taeda.ones(2), one),
        lambda op, one: op([taeda.ones(2), one], 1),
        lambda op, one: op(self=one, other=3),
        lambda op, one: op(taeda.ones(2), dim=one),
    ],
)
def test_an_argument_that_stands_for_a_tensor_takes_the_call(name, call):
    op = operator.attrgetter(name)(OPS)
    func, types, args, kwargs = call(op, StandIn())
    assert func is op and types == (StandIn,)
    given = [*args, *kwargs.values()]
    assert any(isinstance(x, StandIn) for x in given) or isinstance(args[0][1], StandIn)


def test_operators_by_name_are_traced():
    traced = taeda.fx.symbolic_trace(lambda x: OPS.add(OPS.relu(x), other=x))
    assert [node.target for node in traced.graph.find_nodes(op="call_function", target=OPS.relu)]
    assert traced(taeda.tensor([-1.0, 2.0])).tolist() == [-1.0, 4.0]


def test_convolutions_with_settings_are_convolutions():
    x, weight = taeda.rand(1, 2, 5, 5), taeda.rand(3, 2, 2, 2)
    args = (x, weight, taeda.rand(3), [2, 1], [0, 1], [1, 1], False, [0, 0], 1)
    expected = OPS.convolution(*args)
    for settings in ((False, True, True), (False, True, True, True)):
        assert (OPS._convolution(*args, *settings) == expected).all()


def test_pointwise_operators_are_tagged():
    torch = pytest.importorskip("torch")
    names = "add.Tensor sin.default where.self clamp.default lerp.Tensor sum.default mm.default "
    names += "cat.default view.default cumsum.default nan_to_num.default"

    def pointwise(library):
        split = [name.split(".") for name in names.split()]
        found = [getattr(getattr(library.ops.aten, name), overload) for name, overload in split]
        return [library.Tag.pointwise in op.tags for op in found]

    assert pointwise(taeda) == pointwise(torch)
