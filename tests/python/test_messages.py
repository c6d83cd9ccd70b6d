"""What messages say beyond the fault: near names, what is missing, who wrote, where."""

import math
import subprocess
import sys
import warnings

import pytest

import taeda as torch
from taeda import nn
from taeda.utils.data import DataLoader


def last_line(code):
    """What Python prints at the end of a failing program."""
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=False)
    assert done.returncode == 1
    return done.stderr.strip().splitlines()[-1]


@pytest.mark.parametrize(
    ("expression", "meant"),
    [
        ("torch.tesnor([1.0])", "tensor"),
        ("torch.zeross(2)", "zeros"),
        ("torch.flaot32", "float32"),
        ("torch.nn.Liner(1, 2)", "Linear"),
        ("torch.nn.functional.reluu(1)", "relu"),
        ("torch.optim.Adamm", "Adam"),
        ("torch.ones(2).reshpae(2, 1)", "reshape"),
        ("torch.nn.Linear(1, 2).wieght", "weight"),
    ],
)
def test_attributes_that_are_misspelt_suggest_one(expression, meant):
    line = last_line(f"import taeda as torch\n{expression}")
    assert line.startswith("AttributeError: ") and line.count("Did you mean") == 1
    assert line.endswith(f"Did you mean: '{meant}'?")


@pytest.mark.parametrize(
    ("get", "meant"),
    [
        (lambda: torch.nn.Linear(1, 2).wieght, "weight"),
        (lambda: torch.nn.Convv2d, "Conv2d"),
        (lambda: torch.nn.functional.reluu, "relu"),
        (lambda: torch.optim.Adamm, "Adam"),
        (lambda: torch.tesnor, "tensor"),
        (lambda: torch.reduce_mean, "mean"),
        (lambda: torch.expand_dims, "unsqueeze"),
        (lambda: torch.nn.Dense, "Linear"),
    ],
)
def test_the_text_itself_suggests_a_name_for_notebooks(get, meant):
    with pytest.raises(AttributeError) as caught:
        get()
    assert str(caught.value).endswith(f"Did you mean: '{meant}'?")


def test_a_module_suggests_names_before_its_init_has_run():
    bare = nn.Linear.__new__(nn.Linear)
    with pytest.raises(AttributeError, match="Did you mean: 'forward'"):
        _ = bare.forwad
    assert not hasattr(bare, "weight")


def test_attributes_that_are_near_nothing_suggest_nothing():
    with pytest.raises(AttributeError, match=r"has no attribute 'completely_else'$"):
        _ = torch.completely_else


@pytest.mark.parametrize(
    ("call", "text"),
    [
        (lambda x: torch.sum(x, dims=1), "unexpected keyword argument 'dims'. Did you mean 'dim'?"),
        (lambda x: x.sum(1, keepdimm=True), "argument 'keepdimm'. Did you mean 'keepdim'?"),
        (lambda x: torch.nn.functional.layer_norm(x, (2,), epss=1), "'epss'. Did you mean 'eps'?"),
        (lambda x: torch.zeros(2, dtpye=torch.int8), "'dtpye'. Did you mean 'dtype'?"),
        (lambda x: torch.max(x, dimm=1), "'dimm'. Did you mean 'dim'?"),
        (lambda x: x.clamp(mim=0), "'mim'. Did you mean 'min'?"),
        (lambda x: x.add(x, alfa=2), "'alfa'. Did you mean 'alpha'?"),
        (lambda x: x.sum(axs=0), "'axs'. Did you mean 'dim'?"),
        (lambda x: x.backward(retain_grap=True), "'retain_grap'. Did you mean 'retain_graph'?"),
        (lambda x: nn.functional.softmax(x, dimm=1), "'dimm'. Did you mean 'dim'?"),
        (lambda x: nn.functional.gelu(x, approx="tanh"), "'approx'. Did you mean 'approximate'?"),
        (lambda x: nn.functional.interpolate(x, scale=2), "'scale'. Did you mean 'scale_factor'?"),
        (lambda x: nn.init.xavier_uniform_(x, gian=2), "'gian'. Did you mean 'gain'?"),
        (lambda x: nn.utils.clip_grad_norm_([x], max_nrm=1), "Did you mean 'max_norm'?"),
        (lambda x: torch.save(x, "f", pickle_protocl=2), "Did you mean 'pickle_protocol'?"),
        (
            lambda x: nn.Linear(2, 2).to(devise="cpu"),
            "to() got an unexpected keyword argument 'dev",
        ),
        (lambda x: nn.Linear(2, 2).to(devise="cpu"), "'devise'. Did you mean 'device'?"),
        (lambda x: nn.Linear(2, 2, biass=False), "'biass'. Did you mean 'bias'?"),
        (lambda x: nn.Conv2d(1, 1, 1, paddin=1), "'paddin'. Did you mean 'padding'?"),
        (lambda x: nn.LSTM(2, 2, batchfirst=True), "'batchfirst'. Did you mean 'batch_first'?"),
        (lambda x: torch.optim.Adam([x], lrr=1), "'lrr'. Did you mean 'lr'?"),
        (
            lambda x: torch.optim.lr_scheduler.StepLR(torch.optim.SGD([x], lr=1), step=3),
            "'step'. Did you mean 'step_size'?",
        ),
        (lambda x: DataLoader([1], num_worker=2), "'num_worker'. Did you mean 'num_workers'?"),
        (lambda x: DataLoader([1], worker=2), "'worker'. Did you mean 'num_workers'?"),
        (lambda x: torch.distributions.Normal(0, scal=1), "'scal'. Did you mean 'scale'?"),
    ],
)
def test_keywords_that_are_misspelt_suggest_one(call, text):
    with pytest.raises(TypeError) as caught:
        call(torch.ones(2, 2, requires_grad=True))
    assert text in str(caught.value)


@pytest.mark.parametrize(
    ("call", "meant"),
    [
        (lambda x: torch.optim.SGD([x], learning_rate=0.1), "lr"),
        (lambda x: torch.optim.Adam([x], epsilon=1e-8), "eps"),
        (lambda x: torch.optim.Adam([x], beta1=0.9), "betas"),
        (lambda x: nn.Dropout(prob=0.5), "p"),
        (lambda x: nn.functional.dropout(x, rate=0.5), "p"),
        (lambda x: nn.Linear(4, units=3), "out_features"),
        (lambda x: nn.Linear(4, 3, use_bias=False), "bias"),
        (lambda x: nn.Conv2d(3, filters=8, kernel_size=3), "out_channels"),
        (lambda x: nn.Conv2d(3, 8, 3, pad=1), "padding"),
        (lambda x: nn.Embedding(vocab_size=9, embedding_dim=2), "num_embeddings"),
        (lambda x: nn.MultiheadAttention(8, heads=2), "num_heads"),
        (lambda x: nn.GRU(4, units=8), "hidden_size"),
        (lambda x: nn.functional.leaky_relu(x, alpha=0.1), "negative_slope"),
        (lambda x: nn.functional.one_hot(x.long(), depth=3), "num_classes"),
        (lambda x: nn.functional.max_pool2d(x, pool_size=2), "kernel_size"),
        (lambda x: torch.argsort(x, reverse=True), "descending"),
        (lambda x: torch.sum(x, axes=1), "dim"),
        (lambda x: torch.topk(x, k=1, dimension=1), "dim"),
    ],
)
def test_words_of_other_frameworks_suggest_pytorchs(call, meant):
    with pytest.raises(TypeError) as caught:
        call(torch.ones(2, 2))
    assert meant in str(caught.value) + "".join(caught.value.__notes__)
    assert any(note.startswith("Fix: it takes ") for note in caught.value.__notes__)


@pytest.mark.parametrize(
    ("call", "fix"),
    [
        (lambda x: torch.zeros(shape=(2, 3)), "'shape' is no keyword of zeros(). Did you mean 's"),
        (
            lambda x: nn.functional.mse_loss(x, y_true=x),
            "'y_true' is no keyword of mse_loss(). Did",
        ),
        (lambda x: torch.multinomial(x, n=2), "multinomial(). Did you mean 'num_samples'?"),
    ],
)
def test_a_missing_argument_by_another_name_is_named(call, fix):
    with pytest.raises(TypeError, match="missing 1 required positional argument") as caught:
        call(torch.ones(2, 2))
    assert fix in caught.value.__notes__[0]


def test_einsum_says_that_it_takes_no_keywords():
    with pytest.raises(
        TypeError, match=r"einsum\(\) got an unexpected keyword argument 'pth'"
    ) as e:
        torch.einsum("ij->i", torch.ones(2, 2), pth=[0])
    assert e.value.__notes__ == ["Fix: it takes no keywords"]


def test_the_fix_of_a_layer_takes_the_place_of_the_operators():
    with pytest.raises(RuntimeError) as caught:
        nn.Sequential(nn.Linear(4, 8), nn.Linear(9, 2))(torch.ones(3, 4))
    fixes = [note for note in caught.value.__notes__ if note.startswith("Fix: ")]
    assert fixes == ["Fix: in_features is 9 and the input's last size 8: make them equal"]
    assert caught.value.__notes__[-1] == fixes[0]


def test_a_fix_follows_the_step_of_backward_that_failed():
    class Wrong(torch.autograd.Function):
        @staticmethod
        def forward(ctx, x):
            return x * 2

        @staticmethod
        def backward(ctx, gy):
            return gy @ torch.ones(5, 5)

    with pytest.raises(RuntimeError, match="shapes cannot be multiplied") as caught:
        Wrong.apply(torch.ones(2, 2, requires_grad=True)).sum().backward()
    assert caught.value.__notes__[-1].startswith("Fix: the first has 2 columns and the second 5")


def test_keywords_that_are_near_nothing_keep_pytorchs_words():
    with pytest.raises(TypeError, match=r"(?m)got an unexpected keyword argument 'whatever'$"):
        nn.Linear(2, 2, whatever=1)
    with pytest.raises(TypeError, match=r"(?m)got an unexpected keyword argument 'a'$"):
        nn.Sequential(a=1)


def test_errors_from_inside_a_constructor_are_left_as_they_are():
    class Broken(nn.Linear):
        def __init__(self, size, depth=1):
            super().__init__(size, size, **{"bia": True})

    hinted = torch._C._hint_keywords(Broken)
    assert hinted is Broken and type(Broken) is type
    with pytest.raises(TypeError) as caught:  # the keyword of the inner call, not of this one
        Broken(3, depth=2)
    assert str(caught.value).endswith("got an unexpected keyword argument 'bia'")
    with pytest.raises(TypeError, match="missing 1 required positional argument: 'size'"):
        Broken()
    with pytest.raises(TypeError, match=r"(?m)'dept'. Did you mean 'depth'\?$"):
        Broken(3, **{"dept": 2})


def test_hints_leave_the_call_alone():
    seen = []

    class Meta(type):
        def __call__(cls, *args, **kwargs):
            seen.append((args, kwargs))
            return super().__call__(*args, **kwargs)

    class Plain:
        def __init__(self, *args, key=None, **rest):
            self.given = args, key, rest

    class Special(Plain, metaclass=Meta):
        pass

    for cls in (Plain, Special):
        torch._C._hint_keywords(cls)
        made = cls(1, 2, key=3, more=4)
        assert type(made) is cls and made.given == ((1, 2), 3, {"more": 4})
    assert seen == [((1, 2), {"key": 3, "more": 4})]
    with pytest.raises(TypeError, match="expects a function or class, got int"):
        torch._C._hint_keywords(1)
    with pytest.raises(TypeError, match="expects a function or class, got type"):
        torch._C._hint_keywords(int)


def test_keywords_that_are_near_nothing_suggest_nothing():
    with pytest.raises(TypeError, match=r"(?m)unexpected keyword argument 'colour'$"):
        torch.exp(torch.ones(2), colour=1)


def test_tensors_say_what_pytorchs_have_and_they_lack():
    oracle = pytest.importorskip("torch")
    lacking = [
        name
        for name in dir(oracle.Tensor)
        if not name.startswith("_") and not hasattr(torch.Tensor, name)
    ]
    assert len(lacking) <= 6, lacking
    x = torch.ones(2)
    for name in ("qscheme", "q_scale", "to_mkldnn", "int_repr"):
        with pytest.raises(NotImplementedError, match=rf"^torch\.Tensor\.{name}: \w+"):
            getattr(x, name)()


def test_grad_fn_can_be_called():
    x, y = (
        torch.tensor([2.0, 3.0], requires_grad=True),
        torch.tensor([5.0, 7.0], requires_grad=True),
    )
    node = (x * y).grad_fn
    gx, gy = node(torch.ones(2))
    assert gx.tolist() == [5, 7] and gy.tolist() == [2, 3]
    assert x.exp().grad_fn(torch.ones(2)).tolist() == x.exp().tolist()
    assert x.unbind()[0].grad_fn(torch.tensor(1.0), None).tolist() == [1, 0]
    with pytest.raises(TypeError, match=r"MulBackward0\(\): expected 1 arguments, got 2 instead"):
        node(torch.ones(2), torch.ones(2))
    with pytest.raises(TypeError, match=r"argument 1 must be Tensor or None, not (float|int)"):
        node(1.0)
    with pytest.raises(TypeError, match="no keyword"):
        node(grad=torch.ones(2))


def test_a_called_grad_fn_records_where_gradients_are():
    x = torch.tensor(3.0, requires_grad=True)
    x.sin().grad_fn(torch.tensor(1.0)).backward()
    assert x.grad.item() == pytest.approx(-math.sin(3))
    y = x.exp()
    with torch.no_grad():
        assert not y.grad_fn(torch.tensor(1.0)).requires_grad


def test_grad_fn_of_a_function_of_ones_own_can_be_called():
    class Double(torch.autograd.Function):
        @staticmethod
        def forward(ctx, x):
            return 2 * x

        @staticmethod
        def backward(ctx, gy):
            return 2 * gy

    x = torch.ones(2, requires_grad=True)
    assert Double.apply(x).grad_fn(torch.ones(2)).tolist() == [2, 2]


def changed_after_saving():
    x = torch.ones(3, requires_grad=True)
    y = x.exp()
    y.mul_(2)
    return y


def test_in_place_errors_name_the_operator_that_wrote():
    y = changed_after_saving()
    with pytest.raises(RuntimeError) as caught:
        y.sum().backward()
    text = str(caught.value)
    assert (
        "modified by an inplace operation" in text and "is at version 1; expected version 0" in text
    )
    assert text.endswith("set_detect_anomaly(True, check_nan=False).")
    assert caught.value.__notes__[-1].endswith(
        "saved for ExpBackward0; it was last written by mul_"
    )


def test_in_place_errors_name_no_operator_that_did_not_write():
    x = torch.ones(3, requires_grad=True)
    y = x.exp()
    for _ in range(100):
        torch.ones(3).requires_grad_().mul(1).add_(1)
    torch._C._increment_version(y)
    with pytest.raises(RuntimeError, match="modified by an inplace") as caught:
        y.sum().backward()
    assert "last written" not in str(caught.value) + "".join(caught.value.__notes__)


def test_in_place_errors_name_the_line_in_anomaly_mode():
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        with torch.autograd.detect_anomaly():
            y = changed_after_saving()
            with pytest.raises(RuntimeError) as caught:
                y.sum().backward()
    text = caught.value.__notes__[-1]
    assert "last written by mul_ here:" in text and "y.mul_(2)" in text
    assert __file__ in text and "in changed_after_saving" in text


ANOMALY = """
import taeda as torch
def logarithm(x):
    return torch.log(x)
x = torch.tensor([-1.0, 0.0], requires_grad=True)
with torch.autograd.detect_anomaly():
    (logarithm(x) * 0).sum().backward()
"""


@pytest.mark.parametrize("launcher", [[], ["-m", "taeda"]], ids=["python", "python -m taeda"])
def test_anomaly_mode_prints_one_stack_that_begins_with_the_program(launcher, tmp_path):
    program = tmp_path / "program.py"
    program.write_text(ANOMALY)
    command = [sys.executable, *launcher, str(program)]
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    assert (
        "RuntimeError: Function 'LogBackward0' returned nan values in its 0th output.\n"
        in done.stderr
    )
    assert done.stderr.count("in logarithm") == 1
    assert "runpy" not in done.stderr and "__main__.py" not in done.stderr
    warning = done.stderr.split("Traceback of forward call that caused the error:\n")[1]
    assert warning.startswith(f'  File "{program}", line 7, in <module>\n')


@pytest.mark.parametrize("search", [None, "strong_wolfe"])
def test_lbfgs_warns_about_nothing(search):
    p = nn.Parameter(torch.tensor([3.0, -2.0]))
    optimizer = torch.optim.LBFGS([p], lr=0.5, line_search_fn=search)

    def closure():
        optimizer.zero_grad()
        loss = ((p - 1) ** 2).sum()
        loss.backward()
        return loss

    with warnings.catch_warnings():
        warnings.simplefilter("error")
        for _ in range(3):
            optimizer.step(closure)
    assert torch.allclose(p, torch.ones(2), atol=1e-3)


def notes(call):
    with pytest.raises((IndexError, RuntimeError)) as caught:
        call()
    return getattr(caught.value, "__notes__", [])


def test_fixes_say_something_where_a_tensor_is_empty_or_has_no_dimensions():
    assert notes(lambda: torch.ones(0)[0]) == ["In torch.Tensor.__getitem__([0] float32, 0)"]
    assert notes(lambda: torch.ones(2)[5])[-1] == "Fix: indices run from -2 to 1"
    fix = "Fix: the tensor has no dimensions: 0 and -1 are all that fit"
    assert notes(lambda: torch.ones(()).sum(3))[-1] == fix
    assert notes(lambda: torch.ones(()).transpose(0, 1))[-1] == fix


def test_notes_name_the_function_that_programs_call():
    (note,) = notes(lambda: torch.einsum("ij,jk", torch.ones(2, 3), torch.ones(4, 2)))
    assert note.startswith("In torch.einsum(equation='ij,jk'")


def test_the_last_line_alone_is_the_fix():
    with pytest.raises(TypeError) as caught:
        torch.ones(2, **{"a\nFix: b": 1})
    assert "a\nFix: b" in str(caught.value)
    assert caught.value.__notes__[-1].startswith("Fix: it takes")
