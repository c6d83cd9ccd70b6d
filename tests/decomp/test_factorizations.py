"""PyTorch's private factorizations: their overloads with out=, and what their info means."""

import pytest

import taeda

torch = pytest.importorskip("torch")

CALLS = ["det(a)", "slogdet(a)", "eigh(a)", "svd(a)", "solve_ex(a, b)"]


@pytest.mark.parametrize("call", CALLS)
@pytest.mark.parametrize("given", ["empty", "of its size"])
def test_results_are_written_where_out_says(call, given):
    name, _, arguments = call.partition("(")
    found = []
    for lib in (torch, taeda):
        a, b = lib.tensor([[4.0, 1.0], [1.0, 3.0]]), lib.tensor([[1.0], [2.0]])
        args = eval(f"({arguments[:-1]},)", {"a": a, "b": b})
        packet = getattr(lib.ops.aten, f"_linalg_{name}")
        (overload,) = set(packet.overloads()) - {"default"}
        op, expected = getattr(packet, overload), packet(*args)
        names = [r.name for r in packet.default._schema.returns]
        outs = {
            n: lib.empty(0 if given == "empty" else r.shape, dtype=r.dtype)
            for n, r in zip(names, expected)
        }
        made = op(*args, **outs)
        assert all(x is y for x, y in zip(made, outs.values(), strict=True))
        assert all(lib.equal(x, y) for x, y in zip(made, expected))
        found.append((str(op._schema), [(x.shape, x.stride(), str(x.dtype)) for x in made]))
    assert found[0] == found[1]
    with pytest.raises(RuntimeError, match="expected an out tensor of"):
        op(*args, **{n: r.double() for n, r in outs.items()})


NAMES = "linalg.inv linalg.cholesky_ex linalg.solve linalg.svd linalg.eigvals lstsq".split()


@pytest.mark.parametrize("name", [*NAMES, "linalg.lu_factor", "linalg.qr"])
@pytest.mark.parametrize("codes", [[0, 0], [0, 2], [3], [-1, 0]])
def test_info_says_what_failed(name, codes):
    said = []
    for lib in (torch, taeda):
        check = lib.ops.aten._linalg_check_errors
        try:
            said.append(check(lib.tensor(codes, dtype=lib.int32), name, is_matrix=False))
        except RuntimeError as error:
            is_linalg = isinstance(error, lib.linalg.LinAlgError)
            known = "INTERNAL ASSERT" not in str(error) and "Unknown" not in str(error)
            said.append((is_linalg, str(error).split(". ")[0].rstrip(".") if known else ""))
    assert said[0] == said[1]


def test_histogramdds_parts_are_there_by_themselves():
    x, edges = [[1.0, 2.0], [3.0, 4.0], [2.0, 1.0]], [0.0, 2.0, 4.0]
    for call in (
        lambda t: t.ops.aten._histogramdd_bin_edges(t.tensor(x), [2, 3]),
        lambda t: [t.ops.aten._histogramdd_from_bin_cts(t.tensor(x), [2, 3], range=[0, 4, 1, 4])],
        lambda t: [t.ops.aten._histogramdd_from_bin_tensors(t.tensor(x), [t.tensor(edges)] * 2)],
    ):
        theirs, ours = ([e.tolist() for e in call(lib)] for lib in (torch, taeda))
        assert ours == theirs
