"""Calls that few programs make, against PyTorch."""

import numpy as np
import pytest

import taeda

torch = pytest.importorskip("torch")


def both(f):
    return f(taeda), f(torch)


def same(pair):
    ours, theirs = pair
    assert tuple(ours.shape) == tuple(theirs.shape)
    np.testing.assert_allclose(ours.numpy(), theirs.numpy(), rtol=1e-6)


def test_vmap_keeps_the_dimension_of_an_index_of_one_element():
    same(both(lambda t: t.vmap(lambda x: t.gather(x, 0, t.tensor([0])))(t.tensor([1.0, 2.0]))))


def test_vmap_joins_an_empty_vector_with_matrices():
    def run(t):
        x, y = t.zeros(2, 0), t.arange(25.0).reshape(5, 5)
        return t.vmap(lambda a: t.cat([a, y], 1))(x)

    same(both(run))


def test_vmap_selects_by_a_mask_that_all_samples_share():
    def run(t):
        mask = t.tensor([True, False, True])
        return t.vmap(lambda a: t.masked_select(a, mask))(t.arange(6.0).reshape(2, 3))

    same(both(run))
    with pytest.raises(RuntimeError, match="vmap"):
        taeda.vmap(taeda.masked_select)(taeda.ones(2, 3), taeda.ones(2, 3).bool())


def test_solutions_of_a_batch_of_vectors_are_column_major():
    def run(t):
        return t.linalg.solve(t.eye(5).expand(2, 5, 5), t.arange(10.0).reshape(2, 5))

    ours, theirs = both(run)
    same((ours, theirs))
    assert ours.stride() == theirs.stride() == (1, 2)


def test_mode_has_the_index_of_pytorch_among_many_equal_elements():
    x = np.random.default_rng(3).integers(0, 3, (4, 40))
    ours, theirs = both(lambda t: t.mode(t.tensor(x.tolist()), 1))
    assert ours.values.tolist() == theirs.values.tolist()
    assert ours.indices.tolist() == theirs.indices.tolist()


def test_the_tangent_of_a_quotient_does_not_overflow_on_the_way():
    def run(t):
        with t.autograd.forward_ad.dual_level():
            x = t.tensor([1e-3], dtype=t.float16)
            tangent = t.tensor([1e-3], dtype=t.float16)
            dual = t.autograd.forward_ad.make_dual(x, tangent)
            quotient = t.tensor([1e-2], dtype=t.float16) / dual
            return t.autograd.forward_ad.unpack_dual(quotient).tangent.float()

    same(both(run))


def test_out_that_is_an_empty_input_is_refused():
    def run(t):
        x = t.zeros(0)
        t.cat([x, t.ones(2, 2)], 0, out=x)

    for library in (taeda, torch):
        with pytest.raises(RuntimeError, match="memory location"):
            run(library)
