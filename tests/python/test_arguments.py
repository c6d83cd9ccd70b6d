# ruff: noqa: E501
"""Parsing of arguments: what is accepted, and the text of each refusal."""

import sys
import threading
import time

import pytest

import taeda as torch

np = pytest.importorskip("numpy")

REFUSALS = {
    "torch.add(x, 'a')": "add(): argument 'other' (position 2) must be Tensor, not str",
    "x.add('a')": "add(): argument 'other' (position 1) must be Tensor, not str",
    "torch.add(x, 1, alpha='s')": "add(): argument 'alpha' must be Number, not str",
    "x.add(1, foo=2)": "add() got an unexpected keyword argument 'foo'",
    "torch.relu('a')": "relu(): argument 'input' (position 1) must be Tensor, not str",
    "torch.relu(np.ones(3))": "relu(): argument 'input' (position 1) must be Tensor, not numpy.ndarray",
    "torch.relu(x, foo=2)": "relu() got an unexpected keyword argument 'foo'",
    "torch.relu(x, input=x)": "relu() got multiple values for argument 'input'",
    "torch.softmax(x, 'a')": "softmax(): argument 'dim' (position 2) must be int, not str",
    "torch.softmax(x, 1.0)": "softmax(): argument 'dim' (position 2) must be int, not float",
    "torch.flatten(x, 0, 'a')": "flatten(): argument 'end_dim' (position 3) must be int, not str",
    "torch.flatten(1)": "flatten(): argument 'input' (position 1) must be Tensor, not int",
    "torch.cat(x)": "cat(): argument 'tensors' (position 1) must be tuple of Tensors, not Tensor",
    "torch.cat(1)": "cat(): argument 'tensors' (position 1) must be tuple of Tensors, not int",
    "torch.zeros('a')": "zeros(): argument 'size' (position 1) must be tuple of ints, not str",
    "torch.zeros(2.0)": "zeros(): argument 'size' (position 1) must be tuple of ints, not float",
    "torch.zeros(2, dtype='float')": "zeros(): argument 'dtype' must be torch.dtype, not str",
    "torch.transpose(x, True, 1)": "transpose(): argument 'dim0' (position 2) must be int, not bool",
    "torch.full((2,), 'a')": "full(): argument 'fill_value' (position 2) must be Number, not str",
    "x.reshape(np.array([3, 2]))": "reshape(): argument 'shape' (position 1) must be tuple of ints, not numpy.ndarray",
    "x.reshape(torch.tensor([3, 2]))": "reshape(): argument 'shape' (position 1) must be tuple of ints, not Tensor",
    "x.index_select(0, 'a')": "index_select(): argument 'index' (position 2) must be Tensor, not str",
    "torch.mm(1, x)": "mm(): argument 'input' (position 1) must be Tensor, not int",
    "torch.abs(3)": "abs(): argument 'input' (position 1) must be Tensor, not int",
    "torch.abs(x, out='a')": "abs(): argument 'out' must be Tensor, not str",
    "x.view(2, 'a')": 'view(): argument \'size\' failed to unpack the object at pos 2 with error "type must be '
    'tuple of ints,but got str"',
    "torch.tensor([1], dtype='a')": "tensor(): argument 'dtype' must be torch.dtype, not str",
    "torch.tensor(1, 2)": "tensor() takes 1 positional argument but 2 were given",
}  # fmt: skip


@pytest.mark.parametrize(("text", "message"), REFUSALS.items())
def test_refusals(text, message):
    with pytest.raises(TypeError) as caught:
        eval(text, {"torch": torch, "np": np, "x": torch.ones(2, 3)})
    assert str(caught.value) == message


@pytest.mark.parametrize("text", REFUSALS)
def test_pytorch_refuses_in_the_same_words(text):
    oracle = pytest.importorskip("torch")
    if "mm(1" in text:
        pytest.skip("PyTorch has a second overload there")
    with pytest.raises(TypeError) as caught:
        eval(text, {"torch": oracle, "np": np, "x": oracle.ones(2, 3)})
    assert str(caught.value) == REFUSALS[text]


@pytest.mark.parametrize(
    "text",
    [
        "x.sum(axis=0, keepdims=True)",
        "torch.softmax(x=x, axis=1)",
        "torch.add(x1=x, x2=x)",
        "torch.add(input=x, other=1)",
        "x.permute(dims=(1, 0))",
        "x.permute((1, 0))",
        "x.permute(1, 0)",
        "x.reshape(torch.Size([3, 2]))",
        "x.reshape([3, -1])",
        "x.expand(2, torch.tensor(3))",
        "x.view(-1)",
        "x.repeat(2, 1)",
        "torch.zeros(torch.tensor(2), 3)",
        "torch.zeros(np.int64(3))",
        "torch.zeros((2,), dtype=float)",
        "torch.zeros(size=(2,))",
        "torch.transpose(x, 0, np.int64(1))",
        "torch.transpose(x, torch.tensor(0), 1)",
        "torch.add(x, np.float32(2))",
        "torch.mul(x, np.bool_(True))",
        "torch.full((2,), np.float64(3))",
        "torch.flatten(x, start_dim=0)",
        "torch.cat((x, x), dim=1)",
        "torch.cat([x, x], axis=-1)",
        "torch.stack(tensors=[x, x])",
        "x.sum(0)",
        "x.sum((0, 1))",
        "x.sum([0])",
        "x.sum(dim=None)",
        "torch.clamp(x, max=0.5)",
        "torch.where(x > 0, x, 2)",
    ],
)
def test_accepted_like_pytorch(text):
    oracle = pytest.importorskip("torch")
    results = []
    for module in (torch, oracle):
        y = eval(text, {"torch": module, "np": np, "x": module.ones(2, 3)})
        results.append((str(y.dtype), tuple(y.shape), y.tolist()))
    assert results[0] == results[1]


def test_keyword_only_arguments_without_default():
    with pytest.raises(TypeError, match="dtype"):
        torch.frombuffer(b"abcd")
    with pytest.raises(TypeError, match="weight_decay"):
        torch._fused_sgd_([], [], [])
    assert torch.round(torch.tensor([1.25, -2.5]), decimals=1).shape == (2,)


def test_overloads_are_listed():
    with pytest.raises(TypeError) as caught:
        torch.max(torch.ones(2), "a")
    text = str(caught.value)
    assert text.startswith(
        "max() received an invalid combination of arguments - got (Tensor, str), but expected one of:"
    )
    assert " * (Tensor input, int dim, bool keepdim = False" in text


def test_overflow():
    x = torch.ones(2, 3)
    with pytest.raises(ValueError, match="Overflow"):
        x.sum(2**70)
    with pytest.raises(TypeError, match="Overflow"):
        torch.zeros(2**70)
    with pytest.raises(OverflowError):
        x.fill_(2**70)


def test_out_argument_is_returned():
    x, out = torch.ones(2), torch.zeros(2)
    assert torch.add(x, 1, out=out) is out
    assert out.tolist() == [2.0, 2.0]
    assert x.add_(1) is x


def test_references_survive_refusals():
    x = torch.ones(2)
    before = sys.getrefcount(x)
    for _ in range(100):
        with pytest.raises(TypeError):
            torch.add(x, x, foo=x)
        with pytest.raises(TypeError):
            torch.cat([x, 1])
    assert sys.getrefcount(x) == before


class Subclass(torch.Tensor):
    pass


LARGE = 1 << 20
CALLS = {
    "by position": lambda x: torch.sort(x),
    "by keyword": lambda x: torch.sort(input=x),
    "a method": lambda x: x.sort(),
    "a second argument": lambda x: torch.where(torch.ones(1) > 0, x.exp(), x),
    "in a list": lambda x: torch.cat([torch.ones(1), x]),
    "a parameter": lambda x: torch.sort(torch.nn.Parameter(x)),
    "of a subclass": lambda x: torch.sort(x.as_subclass(Subclass)),
    "in place": lambda x: x.exp_(),
}


@pytest.fixture
def turns():
    """How often another thread has run. It runs only while this one has given the GIL away."""
    counted, stop = [0], threading.Event()

    def count():
        while not stop.is_set():
            counted[0] += 1
            time.sleep(0)

    interval = sys.getswitchinterval()
    thread = threading.Thread(target=count)
    thread.start()
    sys.setswitchinterval(100)
    yield counted
    stop.set()
    sys.setswitchinterval(interval)
    thread.join()


@pytest.mark.parametrize("call", CALLS.values(), ids=CALLS)
def test_other_threads_run_beside_large_tensors(turns, call):
    x = torch.rand(LARGE)
    before = turns[0]
    for _ in range(200):  # the other thread may not wake in time
        call(x)
        if turns[0] > before:
            return
    raise AssertionError("the GIL was never given away")


@pytest.mark.parametrize("call", CALLS.values(), ids=CALLS)
def test_small_tensors_keep_the_gil(turns, call):
    x = torch.rand(16)
    before = turns[0]
    for _ in range(20):
        call(x)
    assert turns[0] == before
