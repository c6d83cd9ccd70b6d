"""svd_lowrank, pca_lowrank and grouped_mm beside PyTorch's."""

import numpy as np
import pytest

import taeda

torch = pytest.importorskip("torch")


def both(call):
    results = []
    for library in (taeda, torch):
        library.manual_seed(5)
        results.append(call(library))
    return results


@pytest.mark.parametrize("shape", [(9, 5), (4, 8), (2, 7, 6)])
@pytest.mark.parametrize("name", ["svd_lowrank", "pca_lowrank"])
def test_factors_are_pytorchs(name, shape):
    values = np.random.default_rng(0).standard_normal(shape)
    ours, theirs = both(lambda lib: getattr(lib, name)(lib.from_numpy(values), q=3))
    np.testing.assert_allclose(ours[1].numpy(), theirs[1].numpy(), 1e-8)
    product = [(u * s.unsqueeze(-2) @ v.mT).numpy() for u, s, v in (ours, theirs)]
    np.testing.assert_allclose(*product, 1e-7, 1e-9)


def test_a_mean_is_taken_off():
    values = np.random.default_rng(1).standard_normal((8, 5))
    ours, theirs = both(
        lambda lib: lib.svd_lowrank(
            lib.from_numpy(values), q=5, M=lib.from_numpy(values).mean(0, keepdim=True)
        )[1]
    )
    np.testing.assert_allclose(ours.numpy(), theirs.numpy(), 1e-8)
    with pytest.raises(ValueError, match="q"):
        taeda.pca_lowrank(taeda.ones(3, 3), q=4)


SHAPES = [((7, 4), (3, 4, 8)), ((3, 5, 4), (4, 7)), ((5, 7), (7, 4)), ((3, 5, 4), (3, 4, 6))]


@pytest.mark.parametrize(("left", "right"), SHAPES)
def test_grouped_products_are_those_of_the_groups(left, right):
    generator = np.random.default_rng(2)
    a, b = generator.standard_normal(left), generator.standard_normal(right)
    a, b = (taeda.from_numpy(each).requires_grad_() for each in (a, b))
    ends = [2, 2, 7]
    offs = None if len(left) == len(right) == 3 else taeda.tensor(ends, dtype=taeda.int32)
    result = taeda.nn.functional.grouped_mm(a, b, offs=offs)
    assert taeda.equal(result, taeda._grouped_mm(a, b, offs))
    for group, part in enumerate(slice(*pair) for pair in ((0, 2), (2, 2), (2, 7))):
        if offs is None:
            expected, found = a[group] @ b[group], result[group]
        elif len(right) == 3:
            expected, found = a[part] @ b[group], result[part]
        elif len(left) == 3:
            expected, found = a[group] @ b[:, part], result[:, part]
        else:
            expected, found = a[:, part] @ b[part], result[group]
        assert taeda.allclose(expected, found)
    result.sum().backward()
    assert a.grad.shape == a.shape and b.grad.abs().sum() > 0


def test_grouped_products_are_pytorchs():
    generator = np.random.default_rng(3)
    a = generator.standard_normal((8, 16)).astype(np.float32)
    b = generator.standard_normal((2, 16, 8)).astype(np.float32)
    ours, theirs = (
        lib.nn.functional.grouped_mm(
            lib.from_numpy(a).to(lib.bfloat16),
            lib.from_numpy(b).to(lib.bfloat16),
            offs=lib.tensor([3, 8], dtype=lib.int32),
        ).float()
        for lib in (taeda, torch)
    )
    np.testing.assert_allclose(ours.numpy(), theirs.numpy(), 1e-2, 1e-2)


@pytest.mark.parametrize(
    "call",
    [
        lambda f, lib: f(lib.ones(4, 16), lib.ones(2, 16, 8)),
        lambda f, lib: f(
            lib.ones(2, 4, 16), lib.ones(2, 16, 8), offs=lib.tensor([1, 4], dtype=lib.int32)
        ),
        lambda f, lib: f(lib.ones(16), lib.ones(2, 16, 8)),
    ],
)
def test_groups_that_pytorch_refuses_are_refused(call):
    for library in (taeda, torch):
        with pytest.raises(RuntimeError):
            call(library.nn.functional.grouped_mm, library)
