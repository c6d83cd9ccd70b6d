"""Numbers beside tensors on simulated devices: dtypes and values are PyTorch's, of every pair."""

import numpy as np
import pytest

import taeda
from taeda import _C

oracle = pytest.importorskip("torch")
pytestmark = pytest.mark.usefixtures("quiet_fallback")
DTYPES = (
    "bool uint8 int8 int16 int32 int64 float16 bfloat16 float32 float64 complex64 complex128"
).split()
NUMBERS = {"bool": True, "int": 3, "float": 0.5, "complex": 0.5 + 2j}
CALLS = {
    "x * n": lambda lib, x, n: x * n,
    "n - x": lambda lib, x, n: n - x if x.dtype != lib.bool else n + x,
    "x / n": lambda lib, x, n: x / n,
    "where": lambda lib, x, n: lib.where(x != 0, x, n),
    "pow": lambda lib, x, n: lib.pow(x, n),
    "==": lambda lib, x, n: x == n,
    "0-d tensor": lambda lib, x, n: x * lib.tensor(n),
    "addcmul": lambda lib, x, n: lib.addcmul(x, x, x, value=n),
    "foreach": lambda lib, x, n: lib._foreach_mul([x, x], n)[1],
}


def result(lib, call, dtype, number, device):
    x = lib.tensor([1, 0, 1]).to(getattr(lib, dtype)).to(device)
    try:
        y = CALLS[call](lib, x, NUMBERS[number])
    except (RuntimeError, NotImplementedError) as error:
        return type(error).__name__, None
    wide = lib.complex128 if y.dtype.is_complex else lib.float64
    return str(y.dtype), y.cpu().to(wide).numpy()


@pytest.mark.parametrize("number", NUMBERS)
@pytest.mark.parametrize("dtype", DTYPES)
@pytest.mark.parametrize("call", CALLS)
def test_promotion_is_pytorchs(call, dtype, number):
    found = result(taeda, call, dtype, number, "cuda")
    expected = result(oracle, call, dtype, number, "cpu")
    if expected[1] is None or found[1] is None:
        assert found[0] == result(taeda, call, dtype, number, "cpu")[0]
        return
    assert found[0] == expected[0]
    tolerance = 1e-2 if "16" in dtype else 1e-5
    np.testing.assert_allclose(found[1], expected[1], rtol=tolerance, atol=tolerance)


def test_half_precision_beside_complex_numbers():
    x = taeda.tensor([1.0, 2.0], dtype=taeda.float16, device="cuda")
    y = x * 2j
    assert (y.dtype, y.device.type) == (taeda.complex32, "cuda")
    assert y.tolist() == [2j, 4j]
    assert (x.bfloat16() * 2j).dtype is taeda.complex64
    with pytest.raises(RuntimeError, match="can't be cast"):
        x.mul_(2j)
    _C._set_fallback("refuse")
    assert (x * 2.5).tolist() == [2.5, 5.0]  # others are computed there
