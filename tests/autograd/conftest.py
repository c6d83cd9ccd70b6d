"""The oracle of these tests: the same program run by taeda and by PyTorch must say the same."""

import math
import warnings

import pytest

import taeda


def plain(value):
    """A result as nested Python values; tensors with their shape, dtype and requires_grad."""
    if hasattr(value, "detach") and hasattr(value, "requires_grad"):
        data = value.detach()
        return (
            "tensor",
            str(data.dtype),
            tuple(data.shape),
            bool(value.requires_grad),
            data.tolist(),
        )
    if isinstance(value, (tuple, list)):
        return tuple(plain(v) for v in value)
    if isinstance(value, dict):
        return {k: plain(v) for k, v in value.items()}
    return value


def close(a, b):
    if isinstance(a, float) and isinstance(b, float):
        return (
            a == b
            or (math.isnan(a) and math.isnan(b))
            or math.isclose(a, b, rel_tol=2e-6, abs_tol=1e-7)
        )
    if isinstance(a, complex) and isinstance(b, complex):
        return close(a.real, b.real) and close(a.imag, b.imag)
    if isinstance(a, (tuple, list)) and isinstance(b, (tuple, list)):
        return len(a) == len(b) and all(close(x, y) for x, y in zip(a, b))
    if isinstance(a, dict) and isinstance(b, dict):
        return a.keys() == b.keys() and all(close(a[k], b[k]) for k in a)
    return a == b


def outcome(program, framework):
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        try:
            return plain(program(framework))
        except Exception as error:
            return ("error", type(error).__name__, str(error))


@pytest.fixture
def both():
    """both(program): runs program(torch) under both, compares, and returns taeda's result.

    Of errors, the types must agree and `part`, if given, must stand in both messages."""
    torch = pytest.importorskip("torch")

    def run(program, part=None):
        ours, theirs = outcome(program, taeda), outcome(program, torch)
        is_error = [
            isinstance(r, tuple) and len(r) == 3 and r[0] == "error" for r in (ours, theirs)
        ]
        if all(is_error):
            assert ours[1] == theirs[1], (ours, theirs)
            if part is None:
                # The beginning of the message agrees; taeda may say more.
                start = theirs[2].split("Hint:")[0].strip()[:60]
                assert ours[2].startswith(start[:40]), (ours[2], theirs[2])
            else:
                assert part in theirs[2], theirs[2]
                assert part in ours[2], ours[2]
        else:
            assert close(ours, theirs), (ours, theirs)
        return ours

    return run


@pytest.fixture(autouse=True)
def restore_modes():
    yield
    taeda._C._set_grad_enabled(True)
    taeda._C._set_anomaly_enabled(False, True)
