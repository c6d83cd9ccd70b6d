"""Composites that are recorded as one step: values, gradients of two orders, transforms and what
their nodes show, beside PyTorch's."""

import pytest

import taeda

torch = pytest.importorskip("torch")

# Of x, y (3, 4) and p (3, 4) in (0, 1), double precision; those of complex numbers end with abs().
EXPRESSIONS = """
F.mse_loss(x, y) | F.mse_loss(x, y, reduction="sum") | F.mse_loss(x, y, reduction="none")
F.mse_loss(x, y[:1]) | F.smooth_l1_loss(x, y) | F.smooth_l1_loss(x, y, beta=0.3)
F.smooth_l1_loss(x, y, beta=0.0) | F.smooth_l1_loss(x, y, reduction="none") | F.huber_loss(x, y)
F.huber_loss(x, y, delta=0.3, reduction="sum") | F.huber_loss(x, y, weight=w)
F.binary_cross_entropy(p, p.flip(0).detach()) | F.binary_cross_entropy(p, q)
F.binary_cross_entropy(p, q, weight=w[0]) | F.binary_cross_entropy(p, q, reduction="none")
F.binary_cross_entropy_with_logits(x, q) | F.binary_cross_entropy_with_logits(x, q, w)
F.binary_cross_entropy_with_logits(x, q, pos_weight=w[0], reduction="sum")
F.binary_cross_entropy_with_logits(x, q, w, pos_weight=w[0], reduction="none")
F.nll_loss(x, t) | F.nll_loss(x, t, w[0]) | F.nll_loss(x, t, w[0], reduction="sum")
F.nll_loss(x, t, ignore_index=1) | F.nll_loss(x, t, w[0], ignore_index=1, reduction="none")
F.nll_loss(x[0], t[2]) | F.nll_loss(x.view(1, 3, 2, 2), t[:2].repeat(1, 2, 1).view(1, 2, 2) % 3)
F.soft_margin_loss(x, torch.sign(w - 1)) | F.multi_margin_loss(x, t)
F.multi_margin_loss(x, t, 2, weight=w[0]) | x.roll(1) | x.roll((1, -2), (0, 1)) | x.roll(5, 1)
x.repeat(2, 1) | x.repeat(2, 1, 3) | x.repeat(0, 2) | x[0, 0].repeat(3) | x.tile(2)
torch.rot90(x) | torch.rot90(x, 2) | torch.rot90(x, -1, (1, 0)) | x.trace() | x[:, :2].trace()
F.glu(x) | F.glu(x[:2], 0) | F.pixel_shuffle(x.view(1, 12, 1, 1), 2)
F.pixel_unshuffle(x[None, :2], 2) | F.channel_shuffle(x.view(1, 12, 1), 3)
torch.linalg.cross(x[:, :3], y[:, 1:])
torch.linalg.cross(x[:, :3], y[:1, :3]) | torch.complex(x, y).abs() | torch.polar(p, y).real
torch.polar(p, y).imag | torch.complex(x, y[:1]).abs() | torch.i0(x) | x.deg2rad() | x.rad2deg()
torch.rsub(x, y) | torch.rsub(x, y, alpha=3) | torch.rsub(x, 2) | torch.addr(x, y[:3, 0], y[0])
torch.addr(x[0], y[:, 1], y[0], beta=2, alpha=3) | x.renorm(2, 0, 1.0) | torch.var_mean(x)[0]
torch.var_mean(x, 1, correction=0)[1] | torch.std_mean(x, 0, keepdim=True)[0] | torch.std_mean(x)[1]
F.pdist(x) | torch.einsum("ij,kj->ik", x, y) | torch.einsum("ij,kj->ki", x, y)
torch.einsum("ij,ij->i", x, y) | torch.einsum("i,j->ji", x[0], y[0]) | torch.einsum("ij->j", x)
torch.einsum("ij,ij->ij", x, y) | torch.einsum("ij,jk,kl->li", x, y.T, y) | torch.einsum("ij->", x)
torch.einsum("ij,k->kij", x, y[0]) | torch.einsum("ij->ji", x) | torch.einsum("ii", x[:, :3])
torch.fft.ihfft(x).abs() | torch.fft.fftshift(x)
""".strip().replace("\n", "|")
FIRST_ORDER = ("F.multi_margin_loss", "F.pdist")  # in PyTorch; ours are checked by jacfwd below
CASES = [e.strip() for e in EXPRESSIONS.split("|")]


def leaves(library):
    values = torch.rand(60, dtype=torch.float64, generator=torch.Generator().manual_seed(5))
    values = values.tolist()

    def made(start, scale=1.0, shift=0.0):
        data = [[shift + scale * values[start + 4 * i + j] for j in range(4)] for i in range(3)]
        return library.tensor(data, dtype=library.float64)

    found = {"x": made(0, 3, -1.5), "y": made(12, 3, -1.5), "p": made(24, 0.8, 0.1)}
    fixed = {"q": made(36, 0.8, 0.1), "w": made(48, 1, 0.5), "t": library.tensor([0, 1, 2])}
    return found, fixed


def value(library, expression, variables, fixed):
    scope = {"torch": library, "F": library.nn.functional}
    return eval(expression, scope | variables | fixed)


def derivatives(library, expression):
    """The value, its gradients in a direction, and theirs."""
    variables, fixed = leaves(library)
    for leaf in variables.values():
        leaf.requires_grad_()
    result = value(library, expression, variables, fixed)
    along = library.linspace(0.5, 2, max(1, result.numel()), dtype=library.float64)
    scalar = (result * along[: result.numel()].view(result.shape)).sum()
    inputs = [*variables.values()]
    first = library.autograd.grad(scalar, inputs, create_graph=True, allow_unused=True)
    squares = sum((g * g).sum() for g in first if g is not None)
    second = [None] * 3
    if getattr(squares, "requires_grad", False) and not expression.startswith(FIRST_ORDER):
        second = library.autograd.grad(squares, inputs, allow_unused=True)
    return [result, *first, *second]


@pytest.mark.filterwarnings("ignore")
@pytest.mark.parametrize("expression", CASES)
def test_values_and_gradients_of_two_orders_are_pytorchs(expression):
    for got, expected in zip(derivatives(taeda, expression), derivatives(torch, expression)):
        zero = expected is None or not bool(expected.any())
        if got is None or expected is None:  # which of them are zeros is nobody's business
            assert zero and (got is None or not bool(got.any()))
            continue
        found = torch.tensor(got.detach().tolist(), dtype=torch.float64).view(expected.shape)
        torch.testing.assert_close(found, expected.detach(), rtol=1e-9, atol=1e-9)


@pytest.mark.cpu_only(reason="a device by default is a mode, inside of which vmap refuses writes")
@pytest.mark.filterwarnings("ignore")
@pytest.mark.parametrize("expression", CASES)
def test_forward_mode_and_vmap_agree_with_reverse_mode(expression):
    variables, fixed = leaves(taeda)

    def function(x):
        return value(taeda, expression, variables | {"x": x, "p": x.sigmoid()}, fixed)

    x = variables["x"]
    reverse = taeda.func.jacrev(function)(x)
    forward = taeda.func.jacfwd(function)(x)
    taeda.testing.assert_close(forward, reverse, rtol=1e-8, atol=1e-8)
    rows = taeda.stack([x, x * 0.9])
    mapped = taeda.func.vmap(function)(rows)
    taeda.testing.assert_close(mapped, taeda.stack([function(row) for row in rows]))


def shown(library, expression):
    """What grad_fn keeps, by name; tensors as lists."""
    variables, fixed = leaves(library)
    for leaf in variables.values():
        leaf.requires_grad_()
    node = value(library, expression, variables, fixed).grad_fn
    names = [n for n in dir(node) if n.startswith("_saved_")]
    found = {n: getattr(node, n) for n in names}
    return {n: v.tolist() if hasattr(v, "tolist") else v for n, v in found.items()}


@pytest.mark.parametrize(
    "expression",
    ["F.mse_loss(x, y)", "F.smooth_l1_loss(x, y)", "F.huber_loss(x, y)", "x.roll(1, 0)"],
)
def test_their_nodes_show_what_pytorchs_show(expression):
    ours, theirs = shown(taeda, expression), shown(torch, expression)
    assert ours == {
        n: [*v] if isinstance(v, tuple) and n not in ours else v for n, v in theirs.items()
    }


@pytest.mark.parametrize(
    "expression", ["F.mse_loss(x, y)", "x.roll(1)", "F.glu(x)", "x.renorm(2, 0, 1.0)"]
)
def test_a_node_is_called_with_a_gradient(expression):
    variables, fixed = leaves(taeda)
    variables["x"].requires_grad_()
    result = value(taeda, expression, variables, fixed)
    gradient = taeda.ones_like(result)
    called = result.grad_fn(gradient)
    first = called[0] if isinstance(called, tuple) else called
    (expected,) = taeda.autograd.grad(result, variables["x"], gradient)
    taeda.testing.assert_close(first, expected)


def test_weights_of_nll_loss_have_a_gradient_where_they_ask_for_one():
    scores = taeda.tensor([[0.5, 1.0], [2.0, 0.1]], dtype=taeda.float64)
    weight = taeda.tensor([1.0, 3.0], dtype=taeda.float64, requires_grad=True)
    function = taeda.nn.functional.nll_loss
    assert taeda.autograd.gradcheck(lambda w: function(scores, taeda.tensor([0, 1]), w), weight)


def test_a_check_of_the_arguments_is_made_under_transforms_too():
    x = taeda.ones(2, 3)
    for call in (lambda r: r.roll((1, 2), (0,)), lambda r: taeda.addr(r, r, r[None])):
        with pytest.raises(RuntimeError):
            taeda.func.vmap(call)(x)
        with pytest.raises(RuntimeError):
            taeda.func.jvp(call, (x[0],), (x[0],))


@pytest.mark.parametrize("name", ["mse_loss", "l1_loss", "huber_loss"])
def test_weights_of_other_sizes_are_refused_as_in_pytorch(name):
    for library in (taeda, torch):
        x = library.zeros(2, 3)
        with pytest.raises(ValueError, match="Weights and input must have the same size"):
            getattr(library.nn.functional, name)(x, x, weight=library.ones(3))


@pytest.mark.parametrize(
    "expression",
    """torch.rot90(x) | torch.rot90(x, 4) | F.pixel_shuffle(x.view(1, 12, 1, 1), 2) | x.repeat(1, 1)
    F.pixel_shuffle(x.view(1, 1, 3, 4), 1) | F.channel_shuffle(x.view(1, 12, 1), 1) | x.roll(0, 0)
    F.multi_margin_loss(x[0], t[1:2], reduction="none") | torch.complex(x, x).real""".replace(
        "\n", "|"
    ).split("|"),
)
def test_results_are_written_in_place(expression):
    variables, fixed = leaves(taeda)
    x = variables["x"].requires_grad_()
    before = x.tolist()
    plain = value(taeda, expression.strip(), variables, fixed)
    (expected,) = taeda.autograd.grad(plain.sum(), x)
    result = value(taeda, expression.strip(), variables, fixed)
    assert result._base is None or "real" in expression
    result.mul_(2)
    (got,) = taeda.autograd.grad(result.sum(), x)
    taeda.testing.assert_close(got, 2 * expected)
    assert x.tolist() == before
