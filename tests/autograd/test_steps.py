"""Linear's node becomes PyTorch's steps when a program looks at its graph; gradients stay."""

from __future__ import annotations

import gc
import threading
from typing import Any

import pytest

import taeda

torch = pytest.importorskip("torch")

LIVE = taeda._C._live_autograd_nodes
# Sizes of input, weight and bias.
CASES = {
    "matrix": ((3, 4), (2, 4), (2,)),
    "matrix without bias": ((3, 4), (2, 4), None),
    "batch": ((5, 3, 4), (2, 4), (2,)),
    "batch without bias": ((5, 3, 4), (2, 4), None),
    "four dimensions": ((2, 5, 3, 4), (2, 4), (2,)),
    "vector": ((4,), (2, 4), (2,)),
    "vector without bias": ((4,), (2, 4), None),
    "bias of one row": ((3, 4), (2, 4), (1, 2)),
    "no rows": ((0, 3, 4), (2, 4), (2,)),
}
# Which of them require grad.
WANTED = ["iwb", "iw", "ib", "wb", "i", "w", "b"]


def leaves(library: Any, case: str, wanted: str = "iwb") -> list[Any]:
    generator, made = torch.Generator().manual_seed(5), []
    for name, sizes in zip("iwb", CASES[case], strict=True):
        if sizes is None:
            made.append(None)
            continue
        leaf = library.tensor(torch.randn(sizes, generator=generator).tolist()).reshape(sizes)
        made.append(leaf.requires_grad_(name in wanted))
    return made


def linear(library: Any, tensors: list[Any]) -> Any:
    return library.nn.functional.linear(*tensors)


def value(item: Any) -> Any:
    if hasattr(item, "tolist"):
        return [tuple(item.shape), item.detach().flatten().tolist()]
    return tuple(item) if isinstance(item, tuple) else item


def alike(ours: Any, theirs: Any) -> bool:
    """Equal but for rounding of floats."""
    if isinstance(ours, float):
        return ours == pytest.approx(theirs, rel=1e-5, abs=1e-6)
    if isinstance(ours, dict):
        return ours.keys() == theirs.keys() and all(alike(ours[k], theirs[k]) for k in ours)
    if isinstance(ours, (list, tuple)):
        return len(ours) == len(theirs) and all(map(alike, ours, theirs))
    return ours == theirs


def tree(node: Any) -> Any:
    """Names, saved sizes and values of a graph; strides are compared in a test of their own."""
    if node is None:
        return None
    names = [n for n in dir(node) if n.startswith("_saved_") and not n.endswith("strides")]
    saved = {n: value(getattr(node, n)) for n in names}
    return node.name(), saved, [(tree(next_), nr) for next_, nr in node.next_functions]


@pytest.mark.parametrize("wanted", WANTED)
@pytest.mark.parametrize("case", CASES)
def test_the_graph_is_pytorchs(case: str, wanted: str) -> None:
    if CASES[case][2] is None and wanted == "b":
        pytest.skip("nothing requires grad")
    if wanted == "b" and len(CASES[case][0]) != 2:
        wanted = "ib"  # the number of columns is not known where only the bias is differentiated
    ours, theirs = (linear(lib, leaves(lib, case, wanted)).grad_fn for lib in (taeda, torch))
    found, expected = tree(ours), tree(theirs)
    if wanted == "b":
        found[1].pop("_saved_mat1_sym_sizes"), found[1].pop("_saved_mat2_sym_sizes")
        expected[1].pop("_saved_mat1_sym_sizes"), expected[1].pop("_saved_mat2_sym_sizes")
    assert alike(found, expected), (found, expected)


def test_strides_are_those_of_the_matrices() -> None:
    for case in ("matrix", "batch"):
        nodes = [linear(lib, leaves(lib, case)).grad_fn for lib in (taeda, torch)]
        if case == "batch":
            nodes = [node.next_functions[0][0] for node in nodes]
        for name in ("_saved_mat1_sym_strides", "_saved_mat2_sym_strides"):
            ours, theirs = (tuple(getattr(node, name)) for node in nodes)
            assert ours == theirs


def gradients(library: Any, case: str, look: bool, wanted: str = "iwb") -> list[Any]:
    tensors = leaves(library, case, wanted)
    result = linear(library, tensors)
    if look:
        tree(result.grad_fn)
    (result * result).sum().backward()
    return [t.grad for t in tensors if t is not None]


@pytest.mark.parametrize("wanted", WANTED)
@pytest.mark.parametrize("case", CASES)
def test_gradients_are_the_same_bits_whether_or_not_the_graph_was_looked_at(
    case: str, wanted: str
) -> None:
    if CASES[case][2] is None and wanted == "b":
        pytest.skip("nothing requires grad")
    plain, seen = (gradients(taeda, case, look, wanted) for look in (False, True))
    theirs = gradients(torch, case, True, wanted)
    for a, b, c in zip(plain, seen, theirs, strict=True):
        assert (a is None) == (b is None) == (c is None)
        if a is not None:
            assert a.tolist() == b.tolist() and a.stride() == b.stride() == c.stride()
            assert a.flatten().tolist() == pytest.approx(c.flatten().tolist(), rel=1e-5, abs=1e-6)


@pytest.mark.parametrize("case", ["matrix", "batch", "vector without bias"])
def test_hooks_of_steps_run_with_pytorchs_gradients(case: str) -> None:
    seen: dict[Any, list[Any]] = {taeda: [], torch: []}

    def note(library: Any, node: Any) -> None:
        name = node.name()

        def hook(inputs: Any, outputs: Any) -> None:
            shown = [[None if g is None else value(g) for g in gs] for gs in (inputs, outputs)]
            seen[library].append((name, *shown))

        node.register_hook(hook)
        for next_, _ in node.next_functions:
            if next_ is not None and "Accumulate" not in next_.name():
                note(library, next_)

    for library in (taeda, torch):
        result = linear(library, leaves(library, case))
        note(library, result.grad_fn)
        result.exp().sum().backward()
    by_name = lambda entry: entry[0]  # noqa: E731 (the order of independent steps is free)
    ours, theirs = (sorted(seen[library], key=by_name) for library in (taeda, torch))
    assert alike(ours, theirs), (ours, theirs)


def test_a_hook_of_a_step_replaces_a_gradient() -> None:
    for library in (taeda, torch):
        x, w, b = leaves(library, "matrix")
        result = linear(library, [x, w, b])
        transposed = result.grad_fn.next_functions[2][0]
        assert transposed.name() == "TBackward0"
        transposed.register_hook(lambda inputs, outputs: (inputs[0] * 0 + 7,))
        result.sum().backward()
        assert w.grad.tolist() == [[7.0] * 4] * 2 and b.grad.tolist() == [3.0, 3.0]


def test_the_graph_may_be_run_twice_and_differentiated_again() -> None:
    results = []
    for library, look in ((torch, True), (taeda, False), (taeda, True)):
        tensors = leaves(library, "batch")
        result = linear(library, tensors)
        if look:
            tree(result.grad_fn)
        loss = (result**3).sum()
        first = library.autograd.grad(loss, tensors, retain_graph=True)
        again = library.autograd.grad(loss, tensors, create_graph=True)
        second = library.autograd.grad(sum((g**2).sum() for g in again), tensors)
        results.append([g.flatten().tolist() for g in (*first, *again, *second)])
    theirs, plain, seen = results
    assert plain == seen
    for ours, expected in zip(seen, theirs, strict=True):
        assert ours == pytest.approx(expected, rel=1e-4)


def test_only_what_is_asked_for_is_computed() -> None:
    for case in ("matrix", "batch"):
        x, w, b = leaves(taeda, case)
        result = linear(taeda, [x, w, b])
        tree(result.grad_fn)
        (of_w,) = taeda.autograd.grad(result.sum(), [w])
        assert of_w.shape == w.shape and x.grad is b.grad is None


def test_released_steps_say_so_when_they_are_run_again() -> None:
    for case in ("matrix", "batch"):
        result = linear(taeda, leaves(taeda, case))
        tree(result.grad_fn)
        result.sum().backward()
        with pytest.raises(RuntimeError, match="second time"):
            result.sum().backward()
        node = result.grad_fn if case == "matrix" else result.grad_fn.next_functions[0][0]
        with pytest.raises(RuntimeError, match=r"second time|already been freed"):
            node._saved_mat1  # noqa: B018


def test_looking_after_backward_and_from_within_it_is_fine() -> None:
    x, w, b = leaves(taeda, "matrix")
    result = linear(taeda, [x, w, b])
    seen = []
    result.register_hook(lambda gradient: seen.append(tree(result.grad_fn)[0]))
    result.sum().backward()
    assert seen == ["AddmmBackward0"] and w.grad is not None
    names = [next_.name() for next_, _ in result.grad_fn.next_functions]
    assert set(names) >= {"torch::autograd::AccumulateGrad"}


def test_packed_tensors_are_unpacked_by_the_same_hooks() -> None:
    unpacked = []

    def unpack(tensor: Any) -> Any:
        unpacked.append(tensor)
        return tensor

    with taeda.autograd.graph.saved_tensors_hooks(lambda t: t, unpack):
        result = linear(taeda, leaves(taeda, "batch"))
    assert result.grad_fn.next_functions and not unpacked  # looking unpacks nothing
    result.sum().backward()
    assert len(unpacked) == 2


def test_nodes_of_steps_go_with_their_graph() -> None:
    gc.collect()
    before = LIVE()
    for case in CASES:
        result = linear(taeda, leaves(taeda, case))
        tree(result.grad_fn)
        del result
    gc.collect()
    assert LIVE() == before


def test_threads_look_and_run_at_once() -> None:
    x, w, b = leaves(taeda, "batch")
    failures: list[BaseException] = []

    def work(look: bool) -> None:
        try:
            for _ in range(200):
                result = linear(taeda, [x, w, b])
                if look:
                    tree(result.grad_fn)
                (of_w,) = taeda.autograd.grad(result.sum(), [w])
                assert of_w.shape == w.shape
        except BaseException as error:
            failures.append(error)

    threads = [threading.Thread(target=work, args=(i % 2 == 0,)) for i in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert failures == []
