"""Operators, copies, gradients and files with tensors on a simulated device."""

import copy
import io
import pickle
import warnings

import numpy as np
import pytest

import taeda
import taeda.nn.functional as F
from taeda import _C


@pytest.fixture(autouse=True)
def quiet():
    _C._set_fallback("quiet")
    yield
    _C._set_fallback("quiet")


def on_cuda(values):
    return taeda.tensor(values, device="cuda")


def test_results_lie_on_the_device():
    x = on_cuda([[1.0, 2.0], [3.0, 4.0]])
    y = (x @ x + 1).softmax(-1)
    a = np.array([[1.0, 2.0], [3.0, 4.0]])
    e = np.exp((a @ a + 1) - (a @ a + 1).max(-1, keepdims=True))
    assert y.device == taeda.device("cuda:0")
    np.testing.assert_allclose(y.cpu().numpy(), e / e.sum(-1, keepdims=True), rtol=1e-6)


def test_the_second_device():
    x = taeda.ones(3, device="cuda:1")
    assert (x + x).device == taeda.device("cuda:1")
    with pytest.raises(RuntimeError, match="cuda:0"):
        x + taeda.ones(3, device="cuda:0")
    assert x.to("cuda:0").sum().item() == 3


def test_to_is_the_tensor_itself_where_it_is_there():
    x = taeda.ones(2, device="cuda")
    assert x.to("cuda") is x and x.to("cuda:0") is x and x.cuda() is x
    assert x.to("cuda", copy=True) is not x
    assert x.cpu().device.type == "cpu"
    assert x.to("cpu", taeda.float64).dtype == taeda.float64


def test_copies_convert_and_broadcast():
    x = taeda.zeros(2, 3, device="cuda")
    x[:, 1].copy_(taeda.tensor([1, 2]))
    x.t()[2] = 7
    assert x.tolist() == [[0, 1, 7], [0, 2, 7]]
    host = taeda.empty(3, 2).t()
    host.copy_(x)
    assert host.tolist() == x.tolist()


def test_reading():
    x = on_cuda([1.5, -2.0])
    before = _C._host_reads()
    assert x[1].item() == -2.0
    assert float(x[0]) == 1.5
    assert x.tolist() == [1.5, -2.0]
    assert repr(x) == "tensor([ 1.5000, -2.0000], device='cuda:0')"
    assert f"{x[0]:.2f}" == "1.50"
    assert bool(x[0] > 0)
    assert _C._host_reads() > before


def test_numpy_is_for_the_host():
    x = taeda.ones(2, device="cuda")
    with pytest.raises(TypeError, match="can't convert cuda:0 device type tensor to numpy"):
        x.numpy()
    assert x.numpy(force=True).tolist() == [1, 1]
    with pytest.raises(BufferError):
        memoryview(x)


def test_numbers_on_the_cpu_take_part():
    x = on_cuda([1.0, -2.0])
    assert taeda.where(x > 0, x, taeda.tensor(0.0)).tolist() == [1, 0]
    assert x.where(x > 0, taeda.tensor(9.0)).device == x.device
    with pytest.raises(RuntimeError, match="all tensors to be on the same device"):
        taeda.where(x > 0, x, taeda.ones(2))


ELSEWHERE = {
    "add": ("other", lambda x, y: x + y),
    "addcmul": ("tensor1", lambda x, y: taeda.addcmul(x, y, x)),
    "pow": ("exponent", lambda x, y: x**y),
    "lerp": ("end", lambda x, y: taeda.lerp(x, y, 0.5)),
    "clamp": ("max", lambda x, y: x.clamp(x, y)),
    "masked_fill": ("mask", lambda x, y: x.masked_fill(y > 0, 1)),
    "where": ("condition", lambda x, y: taeda.where(y > 0, x, x)),
    "embedding": ("weight", lambda x, y: F.embedding(x.long(), y.view(1, 2))),
    "einsum": ("operands", lambda x, y: taeda.einsum("i,i->", x, y)),
    "matmul": ("other", lambda x, y: x @ y),
    "linear": ("bias", lambda x, y: F.linear(x, x.view(1, 2), y[:1])),
}


@pytest.mark.parametrize("name", ELSEWHERE)
def test_errors_name_the_argument_on_another_device(name):
    argument, call = ELSEWHERE[name]
    with pytest.raises(RuntimeError, match=rf"\(in {name}, argument '{argument}' is on cpu\)"):
        call(on_cuda([1.0, 2.0]), taeda.tensor([1.0, 2.0]))


def test_types_name_the_device():
    x = on_cuda([1.0, 2.0])
    assert x.type() == "torch.cuda.FloatTensor"
    assert x.cpu().type("torch.cuda.DoubleTensor").device == x.device
    assert x.type("torch.FloatTensor").device.type == "cpu"
    assert x.type(taeda.float64).device == x.device
    assert isinstance(x, taeda.cuda.FloatTensor) and not isinstance(x, taeda.FloatTensor)
    assert taeda.cuda.LongTensor([1, 2]).type() == "torch.cuda.LongTensor"
    with pytest.warns(UserWarning, match="deprecated"):
        taeda.set_default_tensor_type("torch.cuda.DoubleTensor")
    try:
        assert taeda.zeros(1).type() == "torch.cuda.DoubleTensor"
    finally:
        with pytest.warns(UserWarning, match="deprecated"):
            taeda.set_default_tensor_type(taeda.FloatTensor)
    assert taeda.zeros(1).type() == "torch.FloatTensor"


def test_files_name_devices_that_are_not_there():
    file = io.BytesIO()
    taeda.save(on_cuda([1.0]), file)
    for location in ("cuda:5", {"cuda:0": "cuda:5"}):
        file.seek(0)
        with pytest.raises(
            RuntimeError, match=r"CUDA device 5 but torch\.cuda\.device_count\(\) is \d"
        ):
            taeda.load(file, map_location=location)


def test_memory_of_devices_counts_as_shared():
    x = on_cuda([1.0])
    assert x.is_shared() and x.share_memory_() is x


# Calls that raise; what they were given stays as the CPU leaves it. What kernels find wrong in
# values is raised later: test_indices.py, test_random_numbers.py.
RAISES = {
    "sizes": lambda z: z["o"].add_(taeda.ones(2, 4, device=z["o"].device)),
    "second of two": lambda z: taeda._foreach_add_([z["o"], z["two"]], [z["o"], z["o"]]),
    "resized": lambda z: taeda.sort(z["square"], out=(z["empty"], z["n"])),
    "inverse": lambda z: taeda.linalg.inv(z["square"], out=z["o"]),
    "deviation": lambda z: taeda.normal(z["o"], z["o"] - 2, out=z["o"]),
}


@pytest.mark.parametrize("name", RAISES)
def test_what_raises_leaves_its_arguments_as_on_the_cpu(name):
    def left(device):
        z = {
            "o": taeda.ones(4, device=device), "two": taeda.ones(2, device=device),
            "empty": taeda.empty(0, device=device),
            "n": taeda.ones(3, dtype=taeda.int64, device=device),
            "square": taeda.zeros(2, 2, device=device),
        }  # fmt: skip
        with warnings.catch_warnings():
            warnings.simplefilter("error")
            with pytest.raises((RuntimeError, IndexError, UserWarning)):
                RAISES[name](z)
        return {k: (t.tolist(), t._version) for k, t in z.items()}

    assert left("cuda") == left("cpu")


def test_numbers_on_the_cpu_are_put_among_a_devices_elements():
    for x in (taeda.zeros(3), on_cuda([0.0, 0.0, 0.0])):
        indices = (taeda.tensor([0, 2], device=x.device),)
        x.index_put_(indices, taeda.tensor(2.0)).index_put_(indices, taeda.tensor(1.0), True)
        assert x.tolist() == [3.0, 0.0, 3.0]
    with pytest.raises(RuntimeError, match="same device"):
        x.index_put_(indices, taeda.tensor([2.0, 1.0]))


def test_gradients_cross_devices():
    x = taeda.tensor([1.0, 2.0], requires_grad=True)
    y = x.to("cuda")
    assert "ToCopyBackward0" in str(y.grad_fn)
    (y * y).sum().backward()
    assert x.grad.device.type == "cpu" and x.grad.tolist() == [2, 4]


@pytest.mark.parametrize("fused", [False, True])
def test_a_model_trains_as_on_the_cpu(fused):
    def train(device):
        taeda.manual_seed(0)
        model = taeda.nn.Sequential(
            taeda.nn.Conv2d(1, 2, 3, bias=False), taeda.nn.BatchNorm2d(2), taeda.nn.ReLU(),
            taeda.nn.Flatten(), taeda.nn.Linear(18, 3),
        )  # fmt: skip
        x, target = taeda.randn(4, 1, 5, 5), taeda.tensor([0, 1, 2, 0])
        model.to(device)
        optimizer = taeda.optim.Adam(model.parameters(), lr=0.01, fused=fused)
        for _ in range(3):
            optimizer.zero_grad()
            loss = taeda.nn.functional.cross_entropy(model(x.to(device)), target.to(device))
            loss.backward()
            optimizer.step()
        return [p.detach().cpu().numpy() for p in model.parameters()], loss.item()

    (cpu, cpu_loss), (cuda, cuda_loss) = train("cpu"), train("cuda")
    assert cuda_loss == pytest.approx(cpu_loss, rel=1e-5)
    for a, b in zip(cpu, cuda, strict=True):
        np.testing.assert_allclose(a, b, rtol=1e-4, atol=1e-6)


def test_fallback_is_counted_and_warned_of_once():
    x = taeda.eye(2, device="cuda")
    _C._reset_fallback_counts()
    _C._set_fallback("warn")
    with pytest.warns(UserWarning, match="_linalg_inv has no kernel for device cuda:0"):
        x.inverse()
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        x.inverse()
    assert _C._fallback_counts() == {"_linalg_inv": 2}
    _C._set_fallback("refuse")
    with pytest.raises(NotImplementedError, match="_linalg_inv has no kernel"):
        x.inverse()


def test_random_numbers_follow_the_devices_generator():
    taeda.cuda.manual_seed(5)
    a = taeda.rand(4, device="cuda")
    taeda.cuda.manual_seed(5)
    assert taeda.equal(a, taeda.rand(4, device="cuda"))
    g = taeda.Generator(device="cuda")
    assert taeda.randn(3, device="cuda", generator=g).device.type == "cuda"
    with pytest.raises(RuntimeError, match="generator"):
        taeda.rand(3, generator=g)


@pytest.mark.parametrize("wrap", [copy.deepcopy, lambda x: pickle.loads(pickle.dumps(x))])
def test_copies_of_objects_stay_on_the_device(wrap):
    x = on_cuda([1.0, 2.0])
    y = wrap(x)
    assert y.device == x.device and y.tolist() == [1, 2]


def test_files():
    file = io.BytesIO()
    taeda.save({"x": on_cuda([1.0, 2.0])[1:]}, file)
    file.seek(0)
    x = taeda.load(file)["x"]
    assert x.device == taeda.device("cuda:0") and x.tolist() == [2]
    file.seek(0)
    assert taeda.load(file, map_location="cpu")["x"].device.type == "cpu"


LAYERS = {
    "conv": (lambda nn: nn.Conv2d(2, 3, 3, padding=1), (2, 2, 5, 5)),
    "conv_transpose": (lambda nn: nn.ConvTranspose1d(2, 3, 3, stride=2), (2, 2, 5)),
    "batch_norm": (lambda nn: nn.BatchNorm2d(2), (3, 2, 4, 4)),
    "layer_norm": (lambda nn: nn.LayerNorm(6), (3, 6)),
    "group_norm": (lambda nn: nn.GroupNorm(2, 4), (3, 4, 5)),
    "max_pool": (lambda nn: nn.MaxPool2d(2), (2, 2, 6, 6)),
    "adaptive_pool": (lambda nn: nn.AdaptiveAvgPool2d(2), (2, 2, 5, 5)),
    "linear": (lambda nn: nn.Bilinear(6, 6, 2), (3, 6)),
    "lstm": (lambda nn: nn.LSTM(6, 4, num_layers=2), (5, 3, 6)),
    "gru": (lambda nn: nn.GRU(6, 4, bidirectional=True), (5, 3, 6)),
    "transformer": (lambda nn: nn.TransformerEncoderLayer(6, 2, 8, dropout=0.0), (5, 3, 6)),
    "activation": (lambda nn: nn.Sequential(nn.PReLU(), nn.GELU(), nn.Softmax(-1)), (3, 6)),
    "upsample": (lambda nn: nn.Upsample(scale_factor=2, mode="bilinear"), (1, 2, 3, 3)),
}


@pytest.mark.parametrize("name", LAYERS)
def test_layers_are_the_cpus(name):
    """The CPU's layers are tested against PyTorch; a device gives the same values and gradients."""
    make, sizes = LAYERS[name]
    taeda.manual_seed(1)
    layer, x = make(taeda.nn), taeda.randn(sizes)

    def run(device):
        module, given = copy.deepcopy(layer).to(device), x.detach().to(device).requires_grad_()
        inputs = (given, given) if name == "linear" else (given,)
        result = module(*inputs)
        out = result[0] if isinstance(result, tuple) else result
        assert out.device.type == device
        out.square().sum().backward()
        tensors = [out, given.grad, *(p.grad for p in module.parameters()), *module.buffers()]
        return [t.detach().cpu().numpy() for t in tensors]

    for a, b in zip(run("cpu"), run("cuda"), strict=True):
        # Gradients of normalisations are differences of numbers near 1.
        np.testing.assert_allclose(a, b, rtol=1e-5, atol=5e-6)


def test_ctc_loss():
    def run(device):
        taeda.manual_seed(2)
        x = taeda.randn(6, 2, 4).log_softmax(-1).to(device).requires_grad_()
        target = taeda.tensor([[1, 2, 1], [3, 3, 0]]).to(device)
        loss = taeda.nn.functional.ctc_loss(x, target, (6, 6), (3, 2))
        loss.backward()
        return loss.item(), x.grad.cpu().numpy()

    (cpu, cpu_grad), (cuda, cuda_grad) = run("cpu"), run("cuda")
    assert cuda == pytest.approx(cpu, rel=1e-6)
    np.testing.assert_allclose(cpu_grad, cuda_grad, rtol=1e-5, atol=1e-7)


@pytest.mark.parametrize(("where", "count"), [("cpu", 0), ("cuda", 1)])
def test_ctc_loss_reads_its_lengths_once(where, count):
    x = taeda.randn(6, 2, 4, device="cuda").log_softmax(-1)
    targets = taeda.tensor([1, 2, 1, 3, 3], device="cuda")  # one after the other
    lengths = [taeda.tensor(given, device=where) for given in ([6, 6], [3, 2])]
    before = taeda._C._host_reads()
    loss = taeda.nn.functional.ctc_loss(x, targets, *lengths)
    assert taeda._C._host_reads() - before == count
    listed = taeda.nn.functional.ctc_loss(x.cpu(), targets.cpu(), [6, 6], [3, 2])
    assert loss.item() == pytest.approx(listed.item(), rel=1e-6)


@pytest.mark.parametrize(
    "name", ["SGD", "Adam", "AdamW", "RMSprop", "Adagrad", "Adadelta", "NAdam", "LBFGS"]
)
def test_optimizers_step_as_on_the_cpu(name):
    def run(device):
        x = taeda.linspace(-1, 1, 8).to(device).requires_grad_()
        optimizer = getattr(taeda.optim, name)([x], lr=0.1)

        def closure():
            optimizer.zero_grad()
            loss = (x**2 + x.sin()).sum()
            loss.backward()
            return loss

        for _ in range(4):
            optimizer.step(closure)
        return x.detach().cpu().numpy()

    np.testing.assert_allclose(run("cpu"), run("cuda"), rtol=1e-5, atol=1e-6)
