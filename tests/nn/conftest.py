"""What the tests of layers share: PyTorch as oracle, and tensors carried between the two."""

from types import SimpleNamespace

import pytest

import taeda


@pytest.fixture
def oracle():
    """PyTorch and helpers to compare with it; the test is skipped where there is none."""
    torch = pytest.importorskip("torch")

    def theirs(x):
        """A taeda tensor as PyTorch's."""
        return torch.from_numpy(x.detach().numpy().copy())

    def ours(x):
        return taeda.from_numpy(x.detach().numpy().copy())

    def assert_same(actual, expected, rtol=1e-5, atol=1e-6):
        """Tensors or (nested) tuples of them agree."""
        if isinstance(expected, (tuple, list)):
            assert len(actual) == len(expected)
            for a, e in zip(actual, expected):
                assert_same(a, e, rtol, atol)
            return
        if expected is None:
            assert actual is None
            return
        assert tuple(actual.shape) == tuple(expected.shape)
        assert str(actual.dtype).split(".")[1] == str(expected.dtype).split(".")[1]
        torch.testing.assert_close(theirs(actual), expected.detach(), rtol=rtol, atol=atol)

    return SimpleNamespace(torch=torch, theirs=theirs, ours=ours, assert_same=assert_same)
