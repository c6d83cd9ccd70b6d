"""Trees of containers, each function beside PyTorch's."""

import copy
import enum
import pickle
import time
import warnings
from collections import OrderedDict, defaultdict, deque, namedtuple
from dataclasses import dataclass
from importlib import import_module

import pytest

ours = import_module("taeda.utils._pytree")
pytest.importorskip("torch")
theirs = import_module("torch.utils._pytree")

Point = namedtuple("Point", "x y")


class Colour(enum.Enum):
    RED = 1


TREES = {
    "leaf": 1,
    "none": None,
    "list": [1, [2, 3], ()],
    "tuple": (1, {"a": 2, "b": [3, (4,)]}),
    "dict": {"x": 1, "y": {"z": [2, 3]}},
    "ordered": OrderedDict(b=1, a=(2, 3)),
    "default": defaultdict(list, {"a": 1, "b": [2]}),
    "deque": deque([1, [2]], maxlen=5),
    "namedtuple": Point(1, [2, Point(3, 4)]),
    "empty": [],
    "keys": {Colour.RED.name: 1, 3: 2},
}
each_tree = pytest.mark.parametrize("tree", TREES.values(), ids=TREES)


@each_tree
def test_flatten_and_unflatten(tree):
    for pytree in (ours, theirs):
        leaves, spec = pytree.tree_flatten(tree)
        assert pytree.tree_unflatten(leaves, spec) == tree
    got, expected = ours.tree_flatten(tree), theirs.tree_flatten(tree)
    assert got[0] == expected[0]
    assert repr(got[1]) == repr(expected[1])
    counts = ("num_leaves", "num_nodes", "num_children", "type", "context")
    assert [getattr(got[1], c) for c in counts] == [getattr(expected[1], c) for c in counts]


@each_tree
def test_specs_are_values(tree):
    spec = ours.tree_structure(tree)
    assert spec == ours.tree_structure(copy.deepcopy(tree))
    assert hash(spec) == hash(ours.tree_structure(copy.deepcopy(tree)))
    assert copy.deepcopy(spec) == spec == pickle.loads(pickle.dumps(spec))
    with pytest.raises(AttributeError):
        spec.num_leaves = 3


@each_tree
def test_paths(tree):
    def paths(pytree):
        return [(pytree.keystr(path), leaf) for path, leaf in pytree.tree_leaves_with_path(tree)]

    assert paths(ours) == paths(theirs)
    for path, leaf in ours.tree_flatten_with_path(tree)[0]:
        assert ours.key_get(tree, path) == leaf
    mapped = [
        p.tree_map_with_path(lambda k, x, p=p: (p.keystr(k), x), tree) for p in (ours, theirs)
    ]
    assert mapped[0] == mapped[1]


@pytest.mark.parametrize("name", [n for n in TREES if n not in ("namedtuple",)])
def test_json(name):
    texts = [p.treespec_dumps(p.tree_structure(TREES[name])) for p in (ours, theirs)]
    assert texts[0] == texts[1]
    assert ours.treespec_loads(texts[1]) == ours.tree_structure(TREES[name])
    shown = [p.treespec_pprint(p.tree_structure(TREES[name])) for p in (ours, theirs)]
    assert shown[0] == shown[1]


def test_json_of_named_tuples():
    spec = ours.tree_structure(Point(1, 2))
    with pytest.raises(NotImplementedError, match="_register_namedtuple"):
        ours.treespec_dumps(spec)
    ours._register_namedtuple(Point, serialized_type_name="tests.Point")
    assert ours.treespec_loads(ours.treespec_dumps(spec)) == spec
    ours._deregister_pytree_node(Point)


MAPS = [
    lambda p: p.tree_map(lambda x, y: [x, *y], [5, 6], [[7, 9], [1, 2]]),
    lambda p: p.tree_map(lambda x, y: (x, y), {"a": 1, "b": 2}, OrderedDict(b=3, a=4)),
    lambda p: p.tree_map(lambda x: x * 2, [(1, 2), (3, 4)], is_leaf=lambda x: x == (1, 2)),
    lambda p: p.tree_map_only(int, str, [1, 2.0, {"a": 3}]),
    lambda p: p.tree_map_only((int, float), str, [1, 2.0, "x"]),
    lambda p: p.tree_map_only(int | str, str, [1, 2.0, "x"]),
    lambda p: p.tree_map_only(lambda x: x == 1, str, [1, 2]),
    lambda p: p.tree_any(lambda x: x > 2, [1, (3,)]),
    lambda p: p.tree_all(lambda x: x > 2, [1, (3,)]),
    lambda p: p.tree_any_only(int, lambda x: x > 2, [1, (3.0,)]),
    lambda p: p.tree_all_only(int, lambda x: x > 0, [1, (-3.0,)]),
    lambda p: list(p.tree_iter({"a": [1, 2], "b": 3})),
    lambda p: p.arg_tree_leaves(1, [2, 3], k=(4,)),
    lambda p: p.tree_structure([1, (2, 3)]).flatten_up_to([[9], ({"a": 1}, 2)]),
    lambda p: p._broadcast_to_and_flatten([1, 2], p.tree_structure([(0, 0), 0])),
    lambda p: p._broadcast_to_and_flatten((1, 2), p.tree_structure([(0, 0), 0])),
    lambda p: p._broadcast_to_and_flatten(0, p.tree_structure({"a": (1, 2)})),
    lambda p: [p.is_namedtuple(x) for x in (Point, Point(1, 2), (1, 2), tuple)],
    lambda p: [p.is_structseq(x) for x in (time.localtime(), time.struct_time, (1,), Point)],
    lambda p: [p.tree_is_leaf(x) for x in (1, None, [1], Point(1, 2))],
    lambda p: repr(p.treespec_tuple([p.treespec_leaf(), p.treespec_dict(a=p.treespec_leaf())])),
    lambda p: p._dict_flatten_with_keys({"a": 1})[1],
    lambda p: [repr(k) for k, _ in p._dict_flatten_with_keys({"a": 1})[0]],
    lambda p: [repr(p.SequenceKey(1)), str(p.GetAttrKey("x")), str(p.MappingKey("x"))],
    lambda p: sorted(k.__name__ for k in p.BUILTIN_TYPES),
]


@pytest.mark.parametrize("function", MAPS)
def test_functions(function):
    assert function(ours) == function(theirs)


ERRORS = [
    lambda p: p.tree_unflatten([1], p.tree_structure([1, 2])),
    lambda p: p.tree_unflatten([1], "no spec"),
    lambda p: p.tree_map(max, [1, 2], [1]),
    lambda p: p.tree_map(max, [1, 2], (1, 2)),
    lambda p: p.tree_map(max, {"a": 1}, {"b": 1}),
    lambda p: p.tree_map(max, Point(1, 2), (1, 2)),
    lambda p: p.map_only(3),
    lambda p: p.treespec_dumps([]),
    lambda p: p.treespec_dumps(p.tree_structure([1]), 7),
    lambda p: p.treespec_tuple([1]),
    lambda p: p.register_pytree_node(list, list, list),
    lambda p: p.register_constant(list),
    lambda p: p.register_dataclass(Point),
]


@pytest.mark.parametrize("function", ERRORS)
def test_errors(function):
    with pytest.raises(Exception) as expected:
        function(theirs)
    with pytest.raises(expected.type) as got:
        function(ours)
    assert str(got.value).replace("taeda", "torch") == str(expected.value)


def _with_new_classes(pytree):
    @dataclass
    class Pair:
        x: int
        y: object = None

    @dataclass(frozen=True)
    class Config:
        name: str

    class Own:
        def __init__(self, items):
            self.items = items

    pytree.register_dataclass(Pair)
    pytree.register_constant(Config)
    pytree.register_pytree_node(Own, lambda o: (o.items, "c"), lambda items, _: Own(items))
    leaves, spec = pytree.tree_flatten([Pair(1), Pair(2, [3]), Config("a"), Own([4, 5])])
    rebuilt = spec.unflatten(leaves)
    path = pytree.keystr(pytree.tree_leaves_with_path([Pair(1, [2])])[1][0])
    with pytest.raises(ValueError, match="flatten_with_keys_fn"):
        pytree.tree_leaves_with_path(Own([1]))
    with pytest.warns(UserWarning, match="already registered"):
        pytree._private_register_pytree_node(Own, lambda o: ([], None), lambda items, _: Own([]))
    return leaves, rebuilt[0].y, rebuilt[1].y, rebuilt[2].name, rebuilt[3].items, path


def test_classes_of_ones_own():
    assert _with_new_classes(ours) == _with_new_classes(theirs)


def _of_named_results(framework, pytree):
    x = framework.tensor([[1.0, 3.0], [2.0, 0.0]])
    tree = {"max": x.max(0), "svd": framework.linalg.svd(x), "size": x.shape}
    leaves, spec = pytree.tree_flatten(tree)
    paths = [pytree.keystr(path) for path, _ in pytree.tree_flatten_with_path(tree)[0]]
    same = pytree.tree_map(lambda leaf: leaf, tree)
    types = [type(same[key]) for key in tree]
    assert types == [framework.return_types.max, framework.return_types.linalg_svd, tuple]
    with pytest.raises(NotImplementedError, match="No registered serialization name"):
        pytree.treespec_dumps(spec)
    size = pytree.treespec_dumps(pytree.tree_structure(x.shape))
    return len(leaves), str(spec), paths, same["max"].indices.tolist(), same["size"], size


def test_results_with_names_and_sizes():
    framework = import_module("taeda")
    expected = _of_named_results(import_module("torch"), theirs)
    assert _of_named_results(framework, ours) == expected


@pytest.mark.parametrize("pytree", [ours, theirs])
def test_old_names_warn(pytree):
    with pytest.warns(FutureWarning):
        assert pytree.LeafSpec() == pytree.tree_structure(1)
    with pytest.warns(FutureWarning):
        assert pytree.tree_structure([1]).children_specs == [pytree.treespec_leaf()]
    kind = type("Old", (list,), {})
    with pytest.warns(FutureWarning):
        pytree._register_pytree_node(kind, lambda x: (list(x), None), lambda x, _: kind(x))
    assert pytree.tree_leaves(kind([1, 2])) == [1, 2]


def test_names():
    missing = {n for n in theirs.__all__ if not hasattr(ours, n)}
    assert not missing
    cxx = import_module("taeda.utils._cxx_pytree")
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        assert cxx.tree_map(str, [1]) == ["1"]
