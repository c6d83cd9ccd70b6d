"""Calls at the edges of what operators take: values and exceptions' classes are PyTorch's."""

import copy
import warnings

import pytest

import taeda

torch = pytest.importorskip("torch")

SMOOTHED = [
    f"F.cross_entropy(t.zeros(2, 2), t.tensor([0, 0]), weight=t.tensor({weight}), "
    f"label_smoothing={smoothing}, reduction={reduction!r})"
    for weight in ([0.0, 1.0], [1.0, 0.0])
    for smoothing in (0.1, 1.0, -1, 2)
    for reduction in ("mean", "sum", "none")
]
CALLS = [
    *SMOOTHED,
    "F.cross_entropy(t.zeros(2, 2), t.ones(2, 2) / 2, label_smoothing=-0.1)",
    "F.binary_cross_entropy(t.tensor([0.5]), t.tensor([2.0]))",
    "F.binary_cross_entropy(t.tensor([0.5]), t.tensor([float('nan')]))",
    *(f"t.empty(2, dtype=t.{d}).random_(-2**63, None)" for d in ("int64", "float32", "bfloat16")),
    "t.empty(2, dtype=t.float16).random_(-2**63, None)",
    "t.empty(2, dtype=t.int32).random_(-2**63, None)",
    "t.batch_norm(x, None, None, None, None, True, 0.1, 0.0, False)",
    "t.batch_norm(x, None, None, None, None, True, 0.1, -0.1, False)",
    "F.batch_norm(x, None, None, training=True, eps=0)",
    "F.instance_norm(x.view(2, 3, 2), eps=0)",
    "F.instance_norm(x.view(2, 3, 2), t.zeros(3), t.ones(3), eps=-0.01)",
    "nn.InstanceNorm1d(3, eps=0, affine=True)(x.view(2, 3, 2))",
    *(f"F.pad(x, ({a}, {b}))" for a, b in ((-5, 5), (5, -10), (-2, -2), (-2, -3), (-1, 3))),
    "t.as_strided_scatter(t.zeros(3, 4), t.ones(2), (2, 2), (1, 3))",
    "t.as_strided_scatter(t.zeros(3, 4), t.ones(2, 2), (2, 2), (1, 3))",
    *(
        f"t.index_reduce(t.ones(1, dtype=t.{d}), 0, t.tensor([0]), t.zeros(1, dtype=t.{d}), {r!r})"
        for d in ("bool", "complex64", "uint8")
        for r in ("prod", "amax")
    ),
    "t.gradient(t.arange(5, dtype=t.uint8))",
    "t.chunk(t.ones(3), 2**62)",
    *(f"t.{name}(3)" for name in "numel is_complex is_conj is_neg zero_ is_inference".split()),
    "copy.deepcopy(t.tensor([1j]).conj()).is_conj()",
    "copy.deepcopy(t.tensor([1j]).conj())",
    "copy.deepcopy(t.tensor([1j]).conj().imag)",
    "(lambda z: z.is_set_to(z.conj()))(t.tensor([1j]))",
    *(
        f"t.special.zeta({a}, {b})"
        for a, b in (("y", "y"), ("y", "2"), ("2", "y"), ("x[0]", "y"), ("t.tensor(2.)", "y"))
    ),
    "t.binomial(y, y / 9)",
    *(f"t.polygamma({n}, y)" for n in range(3)),
    *(
        f"t.arange(6).view(2, 3)[{i}]"
        for i in (
            "[1.0]",
            "[1.9, -1.5]",
            "[True, 1.0]",
            "[[1.0, 0.0]]",
            "[0.0, 1.0], [0, 2]",
            "['a']",
            "[0.0], 'a'",
            "[1j]",
        )
    ),
    "t.ones(3).index_fill(0, t.tensor([[0]]), 1)",
    *(
        f"t.bincount(t.ones({n}, dtype=t.int64), t.ones({w}).{kind}())"
        for n, w, kind in (
            (0, 4, "float"),
            (0, "2, 2", "float"),
            (0, 0, "double"),
            (2, 4, "float"),
            (2, 2, "int"),
        )
    ),
    "t.bincount(t.ones(0, dtype=t.int64), t.ones(4), 3)",
    *(
        f"t.ones(3, 4).{name}({dim}, t.tensor([[0, 1], [1, 0]]), t.ones({src}){more})"
        for name, more in (("scatter", ""), ("scatter_add", ""), ("scatter_reduce", ", 'amax'"))
        for dim in (0, 1)
        for src in ("7", "()", "2, 2, 2", "2, 2")
    ),
    *(
        f"t.ones(3, 4).{name}({dim}, t.tensor([0, 1]), t.ones({source}){more})"
        for name, more in (("index_add", ""), ("index_reduce", ", 'prod'"))
        for dim in (0, 1, -1)
        for source in ("()", "2")
    ),
    *(f"t.ones(2, 2).copy_({n})" for n in ("2", "2.5", "True", "1j", "'a'", "None")),
    *(
        f"t.{name}(x, dx={dx})"
        for name in ("trapezoid", "cumulative_trapezoid")
        for dx in (2, True)
    ),
    "t.stft(x[0], 8, 3, 4, center=False, return_complex=True, align_to_window=True)",
    "t.stft(x.view(-1), 8, 3, 4, center=False, return_complex=True, align_to_window=True)",
    *(
        f"t.ones({n}).{call}"
        for n in ("0", "0, 2", "2, 0", "2")
        for call in (
            "index_fill(0, t.tensor([0]), 1)",
            "index_fill(0, t.tensor([], dtype=t.int64), 1)",
            "index_fill_(0, t.tensor([0]), t.tensor(1.0))",
        )
    ),
    "t.ones(0).index_copy(0, t.tensor([0]), t.ones(1))",
    "t.ones(0, 2).index_copy(0, t.tensor([0]), t.ones(1, 2))",
    "t.ones(2).index_copy(0, t.tensor([5]), t.ones(1))",
    "t.normal(x, x.double().abs())",
    "t.normal(x.double(), x.abs())",
    *(f"t.diff(x, n={n}, dim={dim})" for n in (0, 1) for dim in (1000, -1000, -1)),
    "F.gaussian_nll_loss(x, 2, x.abs())",
    "F.gaussian_nll_loss(x, 2.5, 1.5)",
    "F.gaussian_nll_loss(x, x, x.abs().long())",
    *(f"t.stft({s}, 4, return_complex=True)" for s in ("x > 0", "x.long()", "x.view(3, 2, 2)")),
    "t.stft(x > 0, 4, center=False, return_complex=True)",
    *(f"t.istft({s}, 4)" for s in ("t.tensor(1j)", "t.ones(0) * 1j", "t.ones(3, 0) * 1j")),
    *(
        f"t.istft(x.view(3, 4) + 1j, 4, window=t.ones(4, dtype=t.{d}), return_complex={c}, "
        f"onesided={not c})"
        for d in ("bool", "complex64", "float32")
        for c in (False, True)
    ),
    *(
        f"t.logcumsumexp(t.tensor({z}), 0)"
        for z in (
            "[1 + 42j, 1 - 15j, 1 + 2j]",
            "[2 - 7j, 2 + 7j, 1 + 9j, 1 - 9j]",
            "[1 + 9j]",
        )
    ),
]


def outcome(t, call):
    t.manual_seed(0)
    names = {"t": t, "F": t.nn.functional, "nn": t.nn, "copy": copy}
    names["x"] = t.linspace(-1, 1, 12).view(3, 4)
    names["y"] = t.tensor([2.0, 5.0], dtype=t.float16)
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            found = eval(call, names)
    except (IndexError, NotImplementedError, RuntimeError, TypeError, ValueError) as error:
        return type(error).__name__
    found = found if isinstance(found, (tuple, list)) else (found,)
    return [y.resolve_neg() if hasattr(y, "resolve_neg") else y for y in found]


@pytest.mark.parametrize("call", CALLS)
def test_odd_arguments(call):
    ours, theirs = outcome(taeda, call), outcome(torch, call)
    assert type(ours) is type(theirs), f"{ours}\nPyTorch: {theirs}"
    if isinstance(theirs, str):
        assert ours == theirs
        return
    assert len(ours) == len(theirs)
    for y, expected in zip(ours, theirs):
        if not isinstance(expected, torch.Tensor):
            assert y == expected
            continue
        assert str(y.dtype) == str(expected.dtype) and y.shape == tuple(expected.shape)
        torch.testing.assert_close(torch.tensor(y.tolist()), torch.tensor(expected.tolist()),
                                   rtol=1e-4, atol=1e-5, equal_nan=True)  # fmt: skip


def test_points_of_a_simplex_have_no_derivative_of_their_own():
    x = taeda.tensor([1.5, 2.0], requires_grad=True)
    with pytest.raises(RuntimeError, match="derivative for aten::_sample_dirichlet is not"):
        taeda._sample_dirichlet(x).sum().backward()


@pytest.mark.parametrize("dtype", ["float16", "bfloat16"])
def test_half_precision_is_averaged_in_any_layout(dtype):
    x = torch.linspace(-1, 1, 2 * 3 * 6 * 8).view(2, 3, 6, 8).to(getattr(torch, dtype))
    expected = torch.nn.functional.avg_pool2d(x, 2).float()
    ours = taeda.tensor(x.float().tolist()).to(getattr(taeda, dtype))
    for y in (ours, ours.to(memory_format=taeda.channels_last)):
        found = taeda.nn.functional.avg_pool2d(y, 2).float().tolist()
        torch.testing.assert_close(torch.tensor(found), expected, rtol=1e-2, atol=1e-3)


def test_bytes_of_elements_with_a_step_are_no_view():
    for lib in (taeda, torch):
        with pytest.raises(RuntimeError, match=r"self.stride\(-1\) must be 1"):
            lib.tensor([[1, 1]])[:, 0].as_strided((1,), (2,)).view(lib.uint8)
        with pytest.raises(RuntimeError, match=r"self.stride\(-1\) must be 1"):
            lib.zeros(1, 64).t()[-1:].view(lib.uint8)


@pytest.mark.parametrize("labels", [[1, 2, 3], [1, 2, 3, 1, 2]])
def test_ctc_loss_takes_as_many_labels_as_the_lengths_say(labels):
    for lib in (taeda, torch):
        log_probs = lib.zeros(4, 2, 5).log_softmax(2)
        with pytest.raises(RuntimeError, match="to have size 4 at dimension 0"):
            lib.nn.functional.ctc_loss(log_probs, lib.tensor(labels), [4, 4], [2, 2])
