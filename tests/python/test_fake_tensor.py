"""FakeTensorMode: tensors with a device and no values, compared with PyTorch's."""

import copy

import numpy as np
import pytest

import taeda
from taeda import nn
from taeda._subclasses import fake_tensor as fake
from taeda._subclasses.fake_tensor import FakeTensor, FakeTensorMode
from taeda.utils._python_dispatch import TorchDispatchMode
from taeda.utils._pytree import tree_leaves

F = nn.functional


@pytest.fixture
def mode():
    with FakeTensorMode() as entered:
        yield entered


# --- beside PyTorch ---

MODELS = {
    "mlp": (
        "nn.Sequential(nn.Linear(8, 16), nn.ReLU(), nn.Dropout(0.1), nn.LayerNorm(16), "
        "nn.Linear(16, 4))",
        (5, 8),
    ),
    "convolutions": (
        "nn.Sequential(nn.Conv2d(3, 8, 3, padding=1), nn.BatchNorm2d(8), nn.ReLU(inplace=True), "
        "nn.MaxPool2d(2), nn.Conv2d(8, 4, 3, stride=2, groups=4), nn.GroupNorm(2, 4), "
        "nn.AdaptiveAvgPool2d(1), nn.Flatten())",
        (2, 3, 16, 16),
    ),
    "transformer": ("nn.TransformerEncoderLayer(16, 4, 32, batch_first=True)", (2, 5, 16)),
    "lstm": ("nn.LSTM(4, 6, 2, bidirectional=True)", (5, 2, 4)),
    "gru": ("nn.GRU(4, 6)", (5, 2, 4)),
    "rnn": ("nn.RNN(4, 6)", (5, 2, 4)),
    "transposed convolution": ("nn.ConvTranspose2d(3, 4, 3, stride=2)", (2, 3, 5, 5)),
    "1-d convolution": ("nn.Conv1d(3, 4, 3)", (2, 3, 9)),
    "3-d convolution": ("nn.Conv3d(3, 4, 3)", (2, 3, 9, 9, 9)),
    "pooling": ("nn.Sequential(nn.AvgPool2d(2), nn.Upsample(scale_factor=2))", (2, 3, 8, 8)),
    "upsampling": (
        "nn.Sequential(nn.Upsample(scale_factor=2, mode='bilinear'), nn.InstanceNorm2d(3, "
        "affine=True))",
        (2, 3, 8, 8),
    ),
}


def metadata(values):
    return [
        (tuple(x.shape), x.stride(), str(x.dtype), str(x.device), x.requires_grad) for x in values
    ]


def trained(package, mode_class, leaves, source, shape):
    """What a step of training gives, and the gradients."""
    with mode_class():
        model = eval(source, {"nn": package.nn})
        x = package.randn(*shape, requires_grad=True)
        results = leaves(model(x))
        sum(y.sum() for y in results).backward()
        parameters = list(model.parameters())
        if parameters:
            package.optim.Adam(parameters).step()
        return metadata([*results, x.grad, *parameters, *(p.grad for p in parameters)])


@pytest.mark.parametrize("name", MODELS)
def test_models_train_without_values_as_in_pytorch(name):
    torch = pytest.importorskip("torch")
    from torch._subclasses.fake_tensor import FakeTensorMode as Oracle
    from torch.utils._pytree import tree_leaves as leaves

    expected = trained(torch, Oracle, leaves, *MODELS[name])
    assert trained(taeda, FakeTensorMode, tree_leaves, *MODELS[name]) == expected


FUNCTIONS = [
    "t.cat([A(2, 3), A(4, 3)])",
    "t.stack([A(2, 3)] * 3, -1)",
    "t.einsum('bij,bjk->bik', A(2, 3, 4), A(2, 4, 5))",
    "t.sort(A(3, 4), 0)",
    "A(3, 9).topk(2)",
    "A(3, 4).max(1)",
    "A(3, 4).gather(1, t.zeros(3, 2, dtype=t.long))",
    "t.where(A(3) > 0, A(3), 0.0)",
    "A(5, 4)[t.tensor([0, 1])]",
    "A(5, 4).index_put_((t.tensor([0, 1]),), t.zeros(4))",
    "A(5, 4).masked_fill(A(5, 4) > 0, 1.0)",
    "t.randn(2, 3, 4, 5).to(memory_format=t.channels_last)",
    "A(2, 3, 4).permute(2, 0, 1) + 1",
    "t.ones(2, dtype=t.int) + t.ones(2, dtype=t.half)",
    "t.tensor(2.0) * A(3)",
    "t.tensor([1, 2])",
    "t.linalg.solve(A(3, 3), A(3))",
    "t.fft.rfft(A(8))",
    "t.stft(A(100), 16, window=t.ones(16), return_complex=True)",
    "F.interpolate(A(1, 2, 4, 4), size=7, mode='bicubic')",
    "F.pad(A(1, 2, 3), (1, 2), mode='reflect')",
    "F.cross_entropy(A(4, 5), t.randint(5, (4,)))",
    "F.scaled_dot_product_attention(A(2, 4, 5, 8), A(2, 4, 5, 8), A(2, 4, 5, 8))",
    "F.one_hot(t.zeros(3, dtype=t.long), 5)",
    "F.embedding(t.tensor([[1, 2], [3, 4]]), A(10, 3))",
    "A(7).split(3)",
    "t.meshgrid(t.arange(3), t.arange(4), indexing='ij')",
    "t.view_as_real(t.zeros(3, dtype=t.cfloat))",
    "t.zeros_like(A(3), device='meta')",
    "A(3).new_zeros(4)",
    "t.zeros(3).copy_(A(3).double())",
    "A(3).resize_(5, 2)",
    "A(3, 4).t_()",
    "A(3, 4).unsqueeze_(0)",
    "A(1, 4).squeeze_()",
    "t.vmap(t.sin)(A(3, 4))",
    "t.func.jacrev(t.sin)(A(3))",
    "t.autograd.functional.hessian(lambda x: (x**3).sum(), A(3))",
    "t._foreach_add([A(3), A(2)], 1)",
    "t.tensor(3.0).item()",
    "(t.tensor(3) + 1).item()",
    "t.tensor(3.0).add_(2).item()",
    "list(t.ones(5))[3]",
]
FAILURES = [
    "A(1).item()",
    "bool(A(1) > 0)",
    "A(3).tolist()",
    "A(3).nonzero()",
    "A(3)[A(3) > 0]",
    "A(3).masked_select(A(3) > 0)",
    "t.unique(A(3))",
    "t.bincount(t.ones(3, dtype=t.long))",
    "A(2).repeat_interleave(t.ones(2, dtype=t.long))",
    "t.equal(A(2), A(2))",
    "A(2).item()",
    "A(2).numpy()",
    "t.ones(2, device='cuda') + A(2)",
    "t.cat([t.ones(2, device='cuda'), A(2)])",
    "t.tensor([1.0]).fill_(A(1).view(())).item()",
    "A(2) + real",
    "A(2).add_(A(2, 2).sum(1).new_ones(3))",
]


def outcome(package, module, leaves, expression):
    """The metadata of an expression's tensors, or the exception's type."""
    real = package.ones(2)
    scope = {"t": package, "F": package.nn.functional, "A": package.randn, "real": real}
    try:
        with module.FakeTensorMode():
            found = leaves(eval(expression, scope))
    except Exception as error:
        return type(error).__name__, getattr(error, "func", None) and str(error.func)
    return [metadata([x])[0] if isinstance(x, package.Tensor) else x for x in found]


@pytest.mark.parametrize("expression", FUNCTIONS + FAILURES)
def test_functions_give_pytorchs_metadata_and_exceptions(expression):
    torch = pytest.importorskip("torch")
    from torch._subclasses import fake_tensor as oracle
    from torch.utils._pytree import tree_leaves as leaves

    expected = outcome(torch, oracle, leaves, expression)
    assert outcome(taeda, fake, tree_leaves, expression) == expected
    assert isinstance(expected, tuple) == (expression in FAILURES)


# --- devices ---


def test_tensors_are_on_devices_that_the_machine_lacks(mode):
    x = taeda.randn(2, 3, device="cuda", requires_grad=True)
    assert repr(x.detach()) == "FakeTensor(..., device='cuda:0', size=(2, 3))"
    y = F.cross_entropy(x @ taeda.ones(3, 4, device="cuda:0"), taeda.tensor([1, 2]).cuda())
    assert str(y.device) == "cuda:0"
    y.backward()
    assert str(x.grad.device) == "cuda:0"
    assert str((x.sum() + taeda.tensor(1.0)).device) == "cuda:0"
    assert str(x.to("cuda:1").device) == "cuda:1"
    assert str(x.cpu().device) == "cpu"
    assert str(nn.Linear(2, 3).cuda().weight.device) == "cuda:0"


def test_two_devices_do_not_mix(mode):
    with pytest.raises(fake.FakeTensorDeviceMismatchError, match="cuda:0 and cpu!"):
        taeda.ones(2, device="cuda") + taeda.ones(2)


# --- identity, aliasing, history ---


def test_the_same_tensor_has_one_fake_form_and_views_share(mode):
    with fake.unset_fake_temporarily() as unset:
        x = taeda.ones(2, 3)
        assert type(x) is taeda.Tensor
    assert unset is mode
    made = mode.from_tensor(x)
    assert made is mode.from_tensor(x)
    assert fake.is_fake(made) and not fake.is_fake(x)
    assert fake.maybe_get_fake_mode(made) is mode
    with fake.unset_fake_temporarily():
        column = x[:, 1]
    other = mode.from_tensor(column)
    assert other.stride() == (3,) and other.storage_offset() == 1
    assert other.untyped_storage() is made.untyped_storage()


def test_views_share_their_version_and_history(mode):
    x = taeda.ones(3, requires_grad=True)
    y = x * 2
    view = y.view(3, 1)
    assert view._base is y
    view.mul_(2)
    assert y._version == view._version == 1
    assert "MulBackward" not in type(y.grad_fn).__name__
    y.relu_().sum().backward()
    assert x.grad.shape == (3,)


def test_parameters_modules_and_copies(mode):
    layer = nn.Linear(2, 3)
    assert isinstance(layer.weight, nn.Parameter) and isinstance(layer.weight, FakeTensor)
    assert repr(layer.weight) == "Parameter(FakeTensor(..., size=(3, 2), requires_grad=True))"
    twin = copy.deepcopy(layer)
    assert isinstance(twin.weight, nn.Parameter) and twin.weight is not layer.weight
    assert twin.weight.fake_mode is mode
    assert twin(taeda.ones(1, 2)).shape == (1, 3)
    assert layer.double()(taeda.ones(1, 2, dtype=taeda.float64)).dtype is taeda.float64


def test_real_modules_become_fake_with_their_history_and_gradients():
    real = nn.Linear(2, 3)
    real(taeda.ones(1, 2)).sum().backward()
    product = real.weight * 2
    mode = FakeTensorMode()
    weight = mode.from_tensor(real.weight)
    assert isinstance(weight, nn.Parameter) and weight.grad.shape == (3, 2)
    assert weight.is_leaf and not mode.from_tensor(product).is_leaf


def test_real_tensors_take_part_only_where_that_was_asked_for():
    real = taeda.ones(2)
    with FakeTensorMode(), pytest.raises(AssertionError, match="Please convert all Tensors"):
        taeda.ones(2) + real
    with FakeTensorMode(allow_non_fake_inputs=True):
        assert isinstance(taeda.ones(2) + real, FakeTensor)


def test_fake_tensors_compute_outside_of_the_block_and_modes_see_them():
    with FakeTensorMode() as mode:
        x = taeda.ones(2, 3)
    assert (x @ x.T).shape == (2, 2)
    seen = []

    class Log(TorchDispatchMode):
        def __torch_dispatch__(self, func, types, args=(), kwargs=None):
            seen.append((str(func), type(args[0])))
            return func(*args, **(kwargs or {}))

    with Log(), mode:
        x.mul(2)
    assert seen == [("aten.mul.Tensor", FakeTensor)]


def test_values_that_were_written_since_are_not_known(mode):
    number = taeda.tensor(3.0)
    assert number.item() == 3.0
    number.view(1).copy_(taeda.ones(1))
    with pytest.raises(fake.DataDependentOutputException):
        number.item()


def test_arrays_are_fake_in_the_mode():
    array = np.ones((2, 3))
    with FakeTensorMode():
        x = taeda.from_numpy(array)
    assert isinstance(x, FakeTensor) and x.shape == (2, 3) and x.dtype == taeda.float64
    assert not isinstance(taeda.from_numpy(array), FakeTensor)


def test_views_share_after_their_memory_has_moved(mode):
    x = taeda.ones(4)
    view = x[:2]
    first = mode.from_tensor(x)
    x.untyped_storage().resize_(4096)
    wide = taeda.as_strided(x, (1024,), (1,))
    for other in (mode.from_tensor(view), mode.from_tensor(wide)):
        assert other.untyped_storage()._cdata == first.untyped_storage()._cdata
    assert mode.from_tensor(wide).shape == (1024,)


def test_another_storage_in_the_same_memory_is_another(mode):
    seen = set()
    for _ in range(5):
        x = taeda.ones(4)
        fake_form = mode.from_tensor(x)
        seen.add(fake_form.untyped_storage()._cdata)
        assert fake_form.untyped_storage().nbytes() == 16
        del x, fake_form
    assert len(mode.fake_tensor_converter._storages) == 0
