"""The classes of the nodes of some 600 expressions and all layers, beside PyTorch's.

node_names.txt has a line for each: the expression, what PyTorch's `grad_fn` is and what is next to
it. A line that begins with `~` has the same node here and others behind it; those of OTHER have
another node, for the reason that is given. Run as a script, where PyTorch is installed, this file
writes the list anew for the expressions that it has.
"""

import warnings
from pathlib import Path

import pytest

import taeda

LIST = Path(__file__).with_name("node_names.txt")
SPLIT = "  =>  "

OTHER: dict[str, str] = {}
for _reason, _expressions in {
    "the same operator, of which PyTorch's library calls another overload": """
F.cross_entropy(x, y.detach())
torch.trapezoid(x)
    """,
    "pixels are rows of the one kernel of cross entropy": """
F.cross_entropy(img, torch.zeros(2, 8, 8, dtype=torch.int64))
nn.CrossEntropyLoss()(img, torch.zeros(2, 8, 8, dtype=torch.int64))
    """,
    "made of several operators, each with a step of its own": """
F.pairwise_distance(x, y)
F.rrelu(x)
F.rrelu(x, training=True)
F.affine_grid(T(2, 2, 3).requires_grad_(), (2, 3, 4, 4))
torch.linalg.lstsq(sq, x.T)
torch.polar(x, y)
nn.utils.parametrizations.weight_norm(nn.Linear(4, 2)).weight
torch.block_diag(x, y)
torch.dist(x, y)
torch.fake_quantize_per_tensor_affine(x, .1, 0, 0, 255)
nn.RReLU()(x)
nn.MaxUnpool2d(2)(*nn.MaxPool2d(2, return_indices=True)(img))
nn.MaxUnpool3d(2)(*nn.MaxPool3d(2, return_indices=True)(img[None]))
nn.PairwiseDistance()(x, y)
nn.MultiLabelMarginLoss(reduction='mean')(x, torch.tensor([[0, 1, -1, 0]] * 3))
nn.MultiLabelMarginLoss(reduction='sum')(x, torch.tensor([[0, 1, -1, 0]] * 3))
nn.MultiLabelMarginLoss(reduction='none')(x, torch.tensor([[0, 1, -1, 0]] * 3))
    """,
    "the step behind the last one has PyTorch's class: only the shape is made otherwise": """
torch.stft(T(64).requires_grad_(), 16, return_complex=True)
F.scaled_dot_product_attention(seq, seq, seq)
v@sq
torch.linalg.multi_dot([x, sq, sq])
x.quantile(.5)
torch.combinations(v)
nn.MaxUnpool1d(2)(*nn.MaxPool1d(2, return_indices=True)(seq))
    """,
    "floor division has a gradient of zeros, PyTorch's node only raises": """
x//2
    """,
    "a sum of rows, which is divided for the mean": """
F.embedding_bag(t.view(1, 3), x)
nn.EmbeddingBag(4, 3)(t[None])
    """,
    "one kernel for all modes, where PyTorch writes into a new tensor": """
F.pad(seq, (1, 1), mode='circular')
nn.CircularPad1d(1)(seq)
nn.CircularPad2d(1)(img)
    """,
    "a layer is one step that computes all time steps, its result is viewed": """
nn.LSTM(8, 4)(seq)
nn.GRU(8, 4)(seq)
nn.RNN(8, 4)(seq)
nn.RNN(8, 4, batch_first=True)(seq)
nn.GRU(8, 4, batch_first=True)(seq)
    """,
}.items():
    OTHER |= dict.fromkeys(_expressions.strip().splitlines(), _reason)


def rows():
    """(whether what is behind differs, expression, PyTorch's node and next ones)."""
    for line in LIST.read_text().splitlines():
        expression, _, expected = line.removeprefix("~ ").partition(SPLIT)
        yield line.startswith("~ "), expression, expected


def evaluated(library, expression):
    """The first tensor that the expression gives, of tensors that require a gradient."""

    def T(*sizes):
        return library.rand(*sizes) + 0.5

    library.manual_seed(0)
    scope = {"torch": library, "F": library.nn.functional, "nn": library.nn, "T": T}
    for name, sizes in {
        "x": (3, 4), "y": (3, 4), "w": (3, 4), "v": (4,), "b": (3,), "k": (5, 3, 3, 3),
        "img": (2, 3, 8, 8), "seq": (2, 3, 8), "q": (2, 2, 4, 8),
    }.items():  # fmt: skip
        scope[name] = T(*sizes).requires_grad_()
    scope["sq"] = (T(4, 4) + 4 * library.eye(4)).requires_grad_()
    scope["z"] = library.complex(T(3, 4), T(3, 4)).requires_grad_()
    scope |= {"t": library.tensor([0, 1, 2]), "m": T(3, 4) > 1}
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        result = eval(expression, scope)
    while isinstance(result, (tuple, list)):
        result = result[0]
    return result


def shown(library, expression):
    """`AddBackward0(AccumulateGrad, -)`: the class of the node and those next to it."""
    node = evaluated(library, expression).grad_fn
    if node is None:
        return "-"
    names = [type(next_).__name__ if next_ else "-" for next_, _ in node.next_functions]
    return f"{type(node).__name__}({', '.join(names)})"


def of_node(text):
    return text.partition("(")[0]


@pytest.mark.cpu_only(reason="a device by default is a mode, in which numbers become tensors")
@pytest.mark.parametrize(("behind", "expression", "expected"), [*rows()])
def test_the_node_is_of_pytorchs_class(behind, expression, expected):
    found = shown(taeda, expression)
    if expression in OTHER:
        assert of_node(found) != of_node(expected), "it has become the same: take it off the list"
        return
    assert of_node(found) == of_node(expected)
    assert (found != expected) == behind, f"{found} here, {expected} in PyTorch"


def test_the_list_says_what_pytorch_does():
    torch = pytest.importorskip("torch")
    if not torch.__version__.startswith("2.13."):
        pytest.skip("the list is PyTorch 2.13's")
    wrong = [e for _, e, expected in rows() if shown(torch, e) != expected]
    assert wrong == []


def test_other_nodes_are_few_and_have_a_reason():
    listed = [*rows()]
    assert OTHER.keys() <= {expression for _, expression, _ in listed}
    assert len(listed) > 550 and len(OTHER) < 0.1 * len(listed) and all(OTHER.values())


def main():
    import torch

    lines = []
    for expression in [row[1] for row in rows()]:
        expected, found = shown(torch, expression), shown(taeda, expression)
        behind = of_node(expected) == of_node(found) and expected != found
        lines.append(f"{'~ ' if behind else ''}{expression}{SPLIT}{expected}")
        if of_node(expected) != of_node(found):
            print(f"{expression}: {of_node(found)} here, {of_node(expected)} in PyTorch")
    LIST.write_text("\n".join(lines) + "\n")


if __name__ == "__main__":
    main()
