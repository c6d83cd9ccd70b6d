"""Module's protocol: registration, state, hooks, modes, text."""

import copy
import pickle
import warnings
from collections import OrderedDict

import pytest

import taeda
from taeda import nn


class Net(nn.Module):
    def __init__(self):
        super().__init__()
        self.fc = nn.Linear(3, 2)
        self.norm = nn.BatchNorm1d(2)
        self.scale = nn.Parameter(taeda.ones(2))
        self.register_buffer("offset", taeda.zeros(2), persistent=False)

    def forward(self, x, shift=0):
        return self.norm(self.fc(x)) * self.scale + self.offset + shift


NAMES = ["scale", "fc.weight", "fc.bias", "norm.weight", "norm.bias"]
STATE = [*NAMES, "norm.running_mean", "norm.running_var", "norm.num_batches_tracked"]


def test_members_come_in_registration_order():
    net = Net()
    assert [n for n, _ in net.named_parameters()] == NAMES
    assert [n for n, _ in net.named_parameters("net", recurse=False)] == ["net.scale"]
    assert [n for n, _ in net.named_buffers(recurse=False)] == ["offset"]
    assert [n for n, _ in net.named_modules()] == ["", "fc", "norm"]
    assert list(net.state_dict()) == STATE
    assert list(net.state_dict()._metadata) == ["", "fc", "norm"]
    assert net.state_dict()._metadata["norm"] == {"version": 2}


def test_shared_members_come_once():
    layer = nn.Linear(2, 2)
    net = nn.Sequential(layer, layer)
    assert len(list(net.parameters())) == 2
    assert len(list(net.named_parameters(remove_duplicate=False))) == 4
    assert len(list(net.modules())) == 2
    assert list(net.state_dict()) == ["0.weight", "0.bias", "1.weight", "1.bias"]


def test_assignment_rules():
    net = Net()
    with pytest.raises(TypeError, match=r"cannot assign .* as parameter 'scale'"):
        net.scale = taeda.ones(2)
    with pytest.raises(TypeError, match="cannot assign 'int' as child module 'fc'"):
        net.fc = 3
    with pytest.raises(TypeError, match="cannot assign 'str' as buffer 'offset'"):
        net.offset = "x"
    with pytest.raises(KeyError, match="attribute 'fc' already exists"):
        net.register_buffer("fc", None)
    with pytest.raises(KeyError, match=r"parameter name can.*t contain"):
        net.register_parameter("a.b", None)
    with pytest.raises(AttributeError, match="'Net' object has no attribute 'missing'"):
        _ = net.missing
    net.fc = nn.Parameter(taeda.ones(1))  # becomes a parameter
    assert "fc" in net._parameters and "fc" not in net._modules
    net.scale = None
    assert "scale" not in dict(net.named_parameters())
    del net.norm
    assert not hasattr(net, "norm")

    class NoInit(nn.Module):
        def __init__(self):
            self.fc = nn.Linear(1, 1)

    with pytest.raises(AttributeError, match=r"before Module.__init__"):
        NoInit()


def test_buffer_class():
    net = nn.Module()
    net.a = nn.Buffer(taeda.ones(1))
    net.b = nn.Buffer(taeda.ones(1), persistent=False)
    assert isinstance(net.a, nn.Buffer)
    assert list(net.state_dict()) == ["a"]


def test_non_leaf_is_no_parameter():
    net = nn.Module()
    x = taeda.ones(1, requires_grad=True)
    with pytest.raises(TypeError):
        net.register_parameter("p", x * 2)


def test_state_dict_round_trip_and_errors():
    a, b = Net(), Net()
    result = b.load_state_dict(a.state_dict())
    assert repr(result) == "<All keys matched successfully>"
    for p, q in zip(a.state_dict().values(), b.state_dict().values()):
        assert taeda.equal(p, q)
    state = a.state_dict()
    del state["fc.bias"]
    state["extra"] = taeda.ones(1)
    state["fc.weight"] = taeda.ones(5, 5)
    with pytest.raises(RuntimeError) as info:
        b.load_state_dict(state)
    text = str(info.value)
    assert text.startswith("Error(s) in loading state_dict for Net:\n\t")
    assert 'Missing key(s) in state_dict: "fc.bias". ' in text
    assert 'Unexpected key(s) in state_dict: "extra". ' in text
    assert (
        "size mismatch for fc.weight: copying a param with shape torch.Size([5, 5]) from "
        "checkpoint, the shape in current model is torch.Size([2, 3])." in text
    )
    state["fc.weight"] = a.fc.weight
    keys = b.load_state_dict(state, strict=False)
    assert keys.missing_keys == ["fc.bias"] and keys.unexpected_keys == ["extra"]
    with pytest.raises(TypeError, match="Expected state_dict to be dict-like"):
        b.load_state_dict([])


def test_state_dict_shares_memory_and_keeps_vars():
    net = Net()
    state = net.state_dict()
    with taeda.no_grad():
        net.scale.fill_(7)
    assert state["scale"].tolist() == [7, 7] and not state["scale"].requires_grad
    assert net.state_dict(keep_vars=True)["scale"] is net.scale
    assert list(net.fc.state_dict(prefix="p.")) == ["p.weight", "p.bias"]


def test_load_with_assign_takes_the_tensors():
    net = Net()
    state = {k: v.clone() for k, v in Net().state_dict().items()}
    net.load_state_dict(state, assign=True)
    assert net.scale.data_ptr() == state["scale"].data_ptr()
    assert isinstance(net.scale, nn.Parameter) and net.scale.requires_grad


def test_loading_into_meta_warns_and_changes_nothing():
    state = nn.Linear(3, 2).state_dict()
    layer = nn.Linear(3, 2, device="meta")
    with pytest.warns(UserWarning, match="which is a no-op"):
        keys = layer.load_state_dict(state)
    assert not keys.missing_keys and layer.weight.is_meta
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        layer.load_state_dict(state, assign=True)
    assert taeda.equal(layer.weight, state["weight"]) and layer.weight.requires_grad
    assert layer(taeda.ones(1, 3)).shape == (1, 2)


def test_extra_state():
    class Counter(nn.Module):
        def __init__(self):
            super().__init__()
            self.count = 0

        def get_extra_state(self):
            return {"count": self.count}

        def set_extra_state(self, state):
            self.count = state["count"]

    a, b = nn.Sequential(Counter()), nn.Sequential(Counter())
    a[0].count = 5
    assert list(a.state_dict()) == ["0._extra_state"]
    b.load_state_dict(a.state_dict())
    assert b[0].count == 5


def test_forward_hooks():
    layer = nn.Linear(2, 2)
    log = []
    x = taeda.ones(1, 2)

    def pre(module, args):
        log.append("pre")
        return (args[0] * 2,)

    def post(module, args, output):
        log.append("post")
        return output * 0 + args[0]

    h1 = layer.register_forward_pre_hook(pre)
    h2 = layer.register_forward_hook(post)
    assert layer(x).tolist() == [[2.0, 2.0]]
    assert log == ["pre", "post"]
    h1.remove()
    with h2:
        assert layer(x).tolist() == [[1.0, 1.0]]
    log.clear()
    layer(x)
    assert log == []


def test_hooks_with_kwargs_and_order():
    net = Net().eval()
    seen = []
    net.register_forward_pre_hook(lambda m, a, k: (a, {"shift": 1}), with_kwargs=True)
    net.register_forward_hook(lambda m, a, k, out: seen.append(("b", k)), with_kwargs=True)
    net.register_forward_hook(lambda m, a, out: seen.append("a"), prepend=True)
    net(taeda.ones(1, 3))
    assert seen == ["a", ("b", {"shift": 1})]


def test_always_called_hook_runs_after_an_error():
    layer = nn.Linear(2, 2)
    seen = []
    layer.register_forward_hook(lambda m, a, out: seen.append(out), always_call=True)
    with pytest.raises(RuntimeError):
        layer(taeda.ones(1, 3))
    assert seen == [None]


def test_backward_hooks():
    layer = nn.Linear(2, 2, bias=False)
    with taeda.no_grad():
        layer.weight.copy_(taeda.eye(2))
    seen = {}

    def hook(module, grad_input, grad_output):
        seen["in"], seen["out"] = grad_input, grad_output
        return (grad_input[0] * 10,)

    layer.register_full_backward_hook(hook)
    layer.register_full_backward_pre_hook(lambda m, grad_output: (grad_output[0] * 2,))
    x = taeda.ones(1, 2, requires_grad=True)
    layer(x).sum().backward()
    assert seen["out"][0].tolist() == [[2.0, 2.0]]
    assert seen["in"][0].tolist() == [[2.0, 2.0]]
    assert x.grad.tolist() == [[20.0, 20.0]]
    with pytest.raises(RuntimeError, match="Cannot use both"):
        layer.register_backward_hook(hook)


def test_backward_hook_without_input_gradient():
    layer = nn.Linear(2, 2)
    seen = []
    layer.register_full_backward_hook(lambda m, gi, go: seen.append(gi))
    layer(taeda.ones(1, 2)).sum().backward()
    assert seen == [(None,)]


def test_state_dict_hooks():
    net = nn.Sequential(nn.Linear(1, 1))
    order = []
    net.register_state_dict_pre_hook(lambda m, prefix, keep: order.append("pre"))
    net.register_state_dict_post_hook(lambda m, sd, prefix, meta: order.append("post"))
    net.register_load_state_dict_pre_hook(lambda m, *args: order.append("load pre"))
    net.register_load_state_dict_post_hook(lambda m, keys: order.append("load post"))
    net.load_state_dict(net.state_dict())
    assert order == ["pre", "post", "load pre", "load post"]


def test_global_hooks():
    seen = []
    handle = nn.modules.module.register_module_forward_hook(
        lambda m, a, out: seen.append(type(m).__name__)
    )
    try:
        nn.Sequential(nn.ReLU())(taeda.ones(1))
    finally:
        handle.remove()
    nn.ReLU()(taeda.ones(1))
    assert seen == ["ReLU", "Sequential"]


def test_modes_apply_and_zero_grad():
    net = Net()
    assert net.training and not net.eval().norm.training and net.train().norm.training
    with pytest.raises(ValueError):
        net.train(1)
    order = []
    net.apply(lambda m: order.append(type(m).__name__))
    assert order == ["Linear", "BatchNorm1d", "Net"]
    net(taeda.randn(4, 3)).sum().backward()
    net.zero_grad(set_to_none=False)
    assert net.fc.weight.grad.abs().sum().item() == 0
    net.zero_grad()
    assert net.fc.weight.grad is None
    net.requires_grad_(False)
    assert not any(p.requires_grad for p in net.parameters())


def test_conversion_keeps_parameters_identity():
    net = Net()
    weight = net.fc.weight
    net(taeda.randn(4, 3)).sum().backward()
    assert net.double() is net
    assert net.fc.weight is weight and weight.dtype == taeda.float64
    assert weight.grad.dtype == taeda.float64
    assert net.norm.num_batches_tracked.dtype == taeda.int64
    assert net.to(taeda.float32).scale.dtype == taeda.float32
    assert net.to("cpu", taeda.float64).scale.dtype == taeda.float64
    assert net.to(taeda.ones(1)).scale.dtype == taeda.float32
    with pytest.raises(TypeError, match="only accepts floating point or complex"):
        net.to(taeda.int64)


def test_meta_modules_get_memory_by_to_empty():
    layer = nn.Linear(3, 2, device="meta")
    assert layer.weight.is_meta
    with pytest.raises(NotImplementedError, match="to_empty"):
        layer.to("cpu")
    layer.to_empty(device="cpu")
    assert layer.weight.device.type == "cpu" and layer.weight.shape == (2, 3)
    assert nn.utils.skip_init(nn.Linear, 2, 2).weight.shape == (2, 2)


def test_access_by_path():
    net = nn.Sequential(OrderedDict(a=nn.Sequential(nn.Linear(1, 1))))
    assert net.get_submodule("a.0") is net.a[0]
    assert net.get_parameter("a.0.weight") is net.a[0].weight
    net.set_submodule("a.0", nn.ReLU())
    assert isinstance(net.a[0], nn.ReLU)
    with pytest.raises(AttributeError, match=r"has no attribute `b`"):
        net.get_submodule("a.b")
    with pytest.raises(AttributeError, match=r"is not an nn.Parameter"):
        net.get_parameter("a")


def test_copy_and_pickle():
    net = Net()
    net(taeda.randn(4, 3)).sum().backward()
    twin = copy.deepcopy(net)
    assert twin.fc.weight is not net.fc.weight
    assert taeda.equal(twin.fc.weight, net.fc.weight)
    assert isinstance(twin.fc.weight, nn.Parameter) and twin.fc.weight.requires_grad
    layer = pickle.loads(pickle.dumps(nn.Linear(2, 2)))
    assert isinstance(layer.weight, nn.Parameter)


@pytest.mark.cpu_only(reason="the operator is called by a mode, which notes no call")
def test_an_error_in_forward_names_the_module():
    net = nn.Sequential(OrderedDict(encoder=nn.Sequential(nn.Linear(3, 2), nn.Linear(5, 1))))
    with pytest.raises(RuntimeError) as info:
        net(taeda.ones(4, 3))
    assert info.value.__notes__ == [
        "In torch.nn.functional.linear(input=[4, 2] float32, weight=[1, 5] float32, "
        "bias=[1] float32)",
        "In module 'encoder.1' of Sequential: Linear(in_features=5, out_features=1, bias=True), "
        "called with ([4, 2] float32)",
        "Fix: in_features is 5 and the input's last size 2: make them equal",
    ]


@pytest.mark.parametrize(
    ("layer", "input", "words"),
    [
        (nn.Linear(3, 2), taeda.ones(3).double(), "convert the input, x.to(torch.float32)"),
        (
            nn.Conv1d(2, 3, 3),
            taeda.ones(4, 3, 8),
            "in_channels is 2 and the input's channels are 3",
        ),
        (nn.Conv2d(2, 3, 3), taeda.ones(8, 8), "(batch,) channels and 2 more dimensions"),
        (nn.Conv2d(2, 3, 9), taeda.ones(1, 2, 8, 8), "pad the input, or take a smaller kernel"),
        (nn.BatchNorm2d(3), taeda.ones(1, 4, 2, 2), "num_features is 3"),
        (nn.BatchNorm1d(3), taeda.ones(1, 3), "a batch of 2 or more"),
        (nn.LayerNorm([2, 3]), taeda.ones(4, 3, 2), "is (2, 3) and the input's last sizes (3, 2)"),
        (nn.GRU(3, 2), taeda.ones(4, 2), "input_size is 3 and the input's last size 2"),
        (nn.Embedding(3, 2), taeda.ones(2), "indices are integers: x.long()"),
        pytest.param(
            nn.Embedding(3, 2),
            taeda.tensor([3]),
            "num_embeddings is 3: indices run from 0",
            marks=pytest.mark.cpu_only(reason="devices find wrong indices where the host waits"),
        ),
    ],
)
def test_an_input_that_does_not_fit_its_layer_gets_the_fix_in_a_note(layer, input, words):
    with pytest.raises((RuntimeError, ValueError, IndexError)) as info:
        nn.Sequential(layer)(input)
    (fix,) = [note for note in info.value.__notes__ if note.startswith("Fix: ")]
    assert words in fix


def test_errors_of_other_kinds_and_layers_get_no_fix():
    class Odd(nn.Linear):
        def forward(self, x):
            raise KeyError("other")

    with pytest.raises(KeyError) as info:
        Odd(3, 2)(taeda.ones(4))
    assert not any(note.startswith("Fix: ") for note in info.value.__notes__)


def test_missing_forward():
    with pytest.raises(NotImplementedError, match='missing the required "forward" function'):
        nn.Module()(1)


def test_repr_and_dir():
    net = Net()
    assert repr(net).splitlines() == [
        "Net(",
        "  (fc): Linear(in_features=3, out_features=2, bias=True)",
        "  (norm): BatchNorm1d(2, eps=1e-05, momentum=0.1, affine=True, bias=True, "
        "track_running_stats=True)",
        ")",
    ]
    assert {"fc", "scale", "offset", "forward"} <= set(dir(net))


def test_unexpected_arguments():
    with pytest.raises(TypeError, match="unexpected keyword argument 'x'"):
        nn.Module(x=1)


def test_containers():
    a, b, c = nn.Linear(1, 1), nn.ReLU(), nn.Tanh()
    seq = nn.Sequential(a, b)
    seq.append(c)
    assert len(seq) == 3 and seq[-1] is c and list(seq[1:]) == [b, c]
    seq.insert(1, nn.Identity())
    assert isinstance(seq.pop(1), nn.Identity)
    del seq[0]
    assert list(seq._modules) == ["0", "1"]
    assert len(seq + seq) == 4 and len(seq * 2) == 4
    with pytest.raises(IndexError):
        seq[9]
    items = nn.ModuleList([nn.Linear(1, 1), nn.Linear(1, 1), b])
    items += [c]
    items.insert(0, nn.Identity())
    assert len(items) == 5 and items[-1] is c
    assert "(1-2): 2 x Linear" in repr(items)
    with pytest.raises(NotImplementedError):
        items(1)
    table = nn.ModuleDict({"x": a, "y": b})
    table["z"] = c
    table.update([("w", nn.Identity())])
    assert list(table) == ["x", "y", "z", "w"] and table.pop("z") is c and "z" not in table


def test_parameter_containers():
    plist = nn.ParameterList([taeda.ones(1), nn.Parameter(taeda.zeros(2))])
    plist.append(taeda.ones(3))
    assert [tuple(p.shape) for p in plist] == [(1,), (2,), (3,)]
    assert [n for n, _ in plist.named_parameters()] == ["0", "1", "2"]
    assert all(isinstance(p, nn.Parameter) for p in plist[1:])
    pdict = nn.ParameterDict({"b": taeda.ones(1), "a": taeda.zeros(2)})
    assert list(pdict) == ["a", "b"]
    pdict["c"] = nn.Parameter(taeda.ones(3))
    assert len(pdict) == 3 and pdict.pop("a").shape == (2,)
    assert set((pdict | nn.ParameterDict({"d": taeda.ones(1)})).keys()) == {"b", "c", "d"}
    assert list(nn.ParameterDict().fromkeys(["k"], 1)) == ["k"]


SHOWS_ITS_DEVICE = pytest.mark.cpu_only(reason="the text has the device, PyTorch's tensors the CPU")


@pytest.mark.parametrize(
    "make",
    [
        pytest.param(
            lambda nn, t: nn.ParameterList([t.ones(1), nn.Parameter(t.zeros(2, 3)), "x"]),
            marks=SHOWS_ITS_DEVICE,
        ),
        pytest.param(
            lambda nn, t: nn.ParameterDict({"b": t.ones(1), "a": t.zeros(2)}),
            marks=SHOWS_ITS_DEVICE,
        ),
        lambda nn, t: nn.ModuleList([nn.ReLU(), nn.ReLU(), nn.Sequential(nn.Tanh())]),
        lambda nn, t: nn.ModuleDict({"a": nn.Embedding(3, 2), "b": nn.Conv2d(1, 2, 3)}),
        lambda nn, t: nn.Sequential(),
    ],
)
def test_container_repr_equals_pytorchs(oracle, make):
    assert repr(make(nn, taeda)) == repr(make(oracle.torch.nn, oracle.torch))


def test_legacy_positional_state_dict_warns():
    with pytest.warns(FutureWarning, match="Positional args are being deprecated"):
        assert list(nn.Linear(1, 1).state_dict({}, "p.")) == ["p.weight", "p.bias"]


def test_no_warning_in_ordinary_use():
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        net = Net()
        net(taeda.randn(4, 3)).sum().backward()
        net.load_state_dict(net.state_dict())


def test_conversion_to_its_own_kind_keeps_a_module_as_it_is():
    layer = taeda.nn.Linear(3, 2)
    before = layer.weight.tolist()
    layer.to(taeda.float32).float()
    assert layer.weight.detach().numpy().tolist() == before


def test_data_may_be_set_to_the_tensor_itself():
    x = taeda.arange(6.0).view(2, 3)
    x.data = x
    assert x.shape == (2, 3) and x.numpy().tolist() == [[0, 1, 2], [3, 4, 5]]


def test_what_has_torch_function_may_be_loaded():
    class Later:
        """A checkpoint's entry that is read when it is copied."""

        shape = (2, 3)

        @classmethod
        def __torch_function__(cls, function, types, args=(), kwargs=None):
            read = [taeda.ones(2, 3) if isinstance(a, cls) else a for a in args]
            return function(*read, **(kwargs or {}))

    layer = taeda.nn.Linear(3, 2, bias=False)
    layer.load_state_dict({"weight": Later()})
    assert layer.weight.tolist() == [[1, 1, 1], [1, 1, 1]]
    with pytest.raises(RuntimeError, match="Tensor-like object from checkpoint but received"):
        layer.load_state_dict({"weight": [[1.0, 1, 1], [1, 1, 1]]})


def test_a_programs_own_notes_stay_where_they_are():
    class Mine(nn.Linear):
        def forward(self, x):
            error = ValueError("mine")
            error.add_note("Fix: do this")
            error.add_note("and that")
            raise error

    with pytest.raises(ValueError, match="mine") as info:
        nn.Sequential(Mine(3, 2))(taeda.ones(4))
    assert info.value.__notes__[:2] == ["Fix: do this", "and that"]


def test_a_programs_note_on_an_operators_error_stays():
    class Mine(nn.Linear):
        def forward(self, x):
            try:
                return super().forward(x)
            except RuntimeError as error:
                error.add_note("Fix: do this")
                raise

    with pytest.raises(RuntimeError) as info:
        Mine(3, 2)(taeda.ones(4))
    notes = info.value.__notes__
    assert notes.count("Fix: do this") == 1 and notes[-1].startswith("Fix: in_features is 3")
