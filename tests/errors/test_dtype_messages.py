"""Messages that name dtypes and arguments, word for word beside PyTorch's."""

import itertools
import warnings

import pytest

import taeda

torch = pytest.importorskip("torch")

# f and o make tensors of one dtype and of another.
CALLS = """
torch.mm(f(2, 2), o(2, 2))
torch.matmul(f(2, 2), o(2, 2))
torch.matmul(f(2), o(2))
torch.mv(f(2, 2), o(2))
torch.dot(f(2), o(2))
torch.bmm(f(1, 2, 2), o(1, 2, 2))
torch.addmm(f(2, 2), f(2, 2), o(2, 2))
torch.addmm(o(2, 2), f(2, 2), f(2, 2))
torch.addmv(f(2), f(2, 2), o(2))
torch.addmv(o(2), f(2, 2), f(2))
torch.baddbmm(f(1, 2, 2), f(1, 2, 2), o(1, 2, 2))
torch.baddbmm(o(1, 2, 2), f(1, 2, 2), f(1, 2, 2))
F.linear(f(2, 2), o(2, 2))
F.linear(f(1, 2, 2), o(2, 2))
F.linear(f(2, 2), f(2, 2), o(2))
F.conv2d(f(1, 1, 2, 2), f(1, 1, 1, 1), o(1))
torch.lerp(f(2), o(2), 0.5)
F.scaled_dot_product_attention(f(1, 2, 2), o(1, 2, 2), f(1, 2, 2))
F.binary_cross_entropy(f(2), o(2))
torch.linalg.solve(f(2, 2), o(2))
"""
PAIRS = [("float32", "float64"), ("float64", "float32"), ("bfloat16", "float32")]


def message(lib, call, first, second):
    def maker(dtype):
        return lambda *shape: lib.ones(shape, dtype=getattr(lib, dtype))

    names = {"torch": lib, "F": lib.nn.functional, "f": maker(first), "o": maker(second)}
    try:
        return repr(eval(call, names))
    except Exception as error:
        return type(error).__name__, str(error)


@pytest.mark.parametrize("pair", PAIRS, ids="-".join)
@pytest.mark.parametrize("call", CALLS.strip().split("\n"))
def test_different_dtypes_are_refused_in_pytorchs_words(call, pair):
    if "bfloat16" in pair and ("linalg" in call or "lerp" in call):
        pytest.skip("refused for the dtype itself")
    assert message(taeda, call, *pair) == message(torch, call, *pair)


@pytest.mark.parametrize("dtypes", itertools.permutations(["float32", "float64", "bfloat16"], 2))
def test_convolutions_with_another_weight_are_refused(dtypes):
    call = "F.conv2d(f(1, 1, 2, 2), o(1, 1, 1, 1))"
    own, theirs = (message(lib, call, *dtypes) for lib in (taeda, torch))
    assert own[0] == theirs[0] == "RuntimeError"
    if "MKLDNN" not in theirs[1]:  # which of two texts is the library's choice
        assert own == theirs


TARGETS = "int64 uint8 int32 bool".split()


@pytest.mark.parametrize("target", TARGETS)
@pytest.mark.parametrize("loss", ["binary_cross_entropy", "binary_cross_entropy_with_logits"])
def test_targets_that_are_no_real_numbers_are_refused(loss, target):
    call = f"F.{loss}(f(2), o(2))"
    assert message(taeda, call, "float32", target) == message(torch, call, "float32", target)
    assert message(taeda, call, "float32", target)[0] == "RuntimeError"


@pytest.mark.parametrize("dtype", ["int64", "int32", "bool"])
def test_scores_that_are_no_real_numbers_are_refused(dtype):
    call = "F.binary_cross_entropy_with_logits(f(2), o(2))"
    own, theirs = (message(lib, call, dtype, "float32") for lib in (taeda, torch))
    assert own == theirs and own[0] == "NotImplementedError"


class Declining:
    """An argument that handles nothing."""

    @classmethod
    def __torch_function__(cls, func, types, args=(), kwargs=None):
        return NotImplemented


def refusal(lib, call):
    class Mode(lib.overrides.TorchFunctionMode):
        def __torch_function__(self, func, types, args=(), kwargs=None):
            return NotImplemented

        def __repr__(self):
            return "a mode"

    with pytest.raises(TypeError) as error, warnings.catch_warnings():
        warnings.simplefilter("ignore")
        call(lib, Mode)
    return str(error.value)


def in_mode(lib, mode):
    with mode():
        lib.ones(1)


def in_mode_with_argument(lib, mode):
    with mode():
        lib.add(Declining(), 1)


@pytest.mark.parametrize(
    "call",
    [
        in_mode,
        in_mode_with_argument,
        lambda lib, mode: lib.add(lib.ones(1), Declining()),
        lambda lib, mode: lib.ones(1).add(Declining()),
        lambda lib, mode: lib.linalg.inv(Declining()),
        lambda lib, mode: lib.special.zeta(Declining(), Declining()),
        lambda lib, mode: lib.fft.fft(Declining()),
    ],
)
def test_what_nothing_handles_is_named_as_pytorch_does(call):
    own, theirs = (refusal(lib, call).split("\n\n")[:2] for lib in (taeda, torch))
    assert own == theirs


def test_functions_in_python_say_which_types_were_asked():
    own, theirs = (
        refusal(lib, lambda lib, mode: lib.nn.functional.softmax(Declining(), 0))
        for lib in (taeda, torch)
    )
    assert theirs.startswith("no implementation found for 'torch.nn.functional.softmax'")
    assert "torch.nn.functional.softmax" in own and "Declining" in own


def test_batch_norm_says_that_its_statistics_are_shared():
    words = "Batch norm got a batched tensor as input while the running_mean or running_var"
    for lib in (taeda, torch):
        with pytest.raises(RuntimeError, match=words):
            lib.vmap(lib.nn.BatchNorm1d(3))(lib.randn(4, 2, 3))
