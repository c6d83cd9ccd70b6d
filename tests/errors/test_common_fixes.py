"""Typical mistakes whose text is PyTorch's word for word, and the note that says what to do."""

import pytest

import taeda

from .cases import Mistake
from .page import said

# Code, and words of the note; "" where the text says it.
SAME_WORDS = [
    # --- sizes ---
    ("nn.ConvTranspose2d(3, 4, 3, output_padding=4)(torch.rand(1, 3, 4, 4))", "stride - 1"),
    ("nn.ConvTranspose1d(3, 4, 3, output_padding=4)(torch.rand(1, 3, 4))", "stride - 1"),
    ("nn.ConvTranspose3d(3, 4, 3, output_padding=4)(torch.rand(1, 3, 4, 4, 4))", "stride - 1"),
    ("nn.Conv2d(3, 4, 3, dilation=9)(torch.rand(1, 3, 8, 8))", "a smaller dilation"),
    ("nn.MaxPool2d(9)(torch.rand(1, 3, 4, 4))", "window is larger than the input"),
    ("F.max_pool2d(torch.rand(3, 4, 4), 9)", "window is larger"),
    ("F.max_pool1d(torch.rand(1, 3, 4), 9)", "window is larger"),
    ("F.max_pool3d(torch.rand(1, 3, 4, 4, 4), 9)", "window is larger"),
    ("F.max_pool2d(torch.rand(1, 3, 4, 4), 2, padding=2)", "at most half the kernel"),
    ("F.avg_pool2d(torch.rand(1, 3, 4, 4), 2, padding=2)", "at most half the kernel"),
    ("F.max_pool1d(torch.rand(1, 3, 4), 2, padding=2)", "at most half the kernel"),
    ("F.unfold(torch.rand(1, 3, 4, 4), 7)", "window is larger"),
    ("F.unfold(torch.rand(3, 4, 4), 7, padding=1, stride=2)", "window is larger"),
    ("torch.rand(4, 5).unflatten(-1, (3, 2))", "multiply to 5"),
    ("F.pad(torch.rand(3, 4), (4, 0, 0, 0), mode='reflect')", ""),
    ("F.pad(torch.rand(1, 1, 3, 4, 5, 6), (1, 1), mode='circular')", ""),
    ("nn.ReflectionPad2d(5)(torch.rand(1, 1, 4, 4))", "replicate"),
    ("torch.zeros(2, -3)", "the sizes given are [2, -3]"),
    ("torch.ones(2, -3)", ""),
    ("torch.ones(2).copy_(torch.ones(3))", "unsqueeze"),
    ("torch.ones(2).copy_(torch.ones(2, 2))", "keeps its shape"),
    ("torch.ones(4)[0:2] = torch.ones(3)", "unsqueeze"),
    ("torch.ones(4, 4)[0] = torch.ones(3)", "unsqueeze"),
    ("torch.ones(4).split([1, 2])", "add up"),
    ("torch.rand(3)[3]", "indices run from -3 to 2"),
    (
        "nn.MultiheadAttention(8, 2)(*(torch.rand(n, 1, 8) for n in (4, 4, 5)))",
        "each key has one value",
    ),
    (
        "nn.MultiheadAttention(8, 2)(*(torch.rand(4, n, 8) for n in (1, 2, 2)))",
        "with batches of 1 and 2",
    ),
    (
        "nn.MultiheadAttention(8, 2, batch_first=True)(*[torch.rand(2, 4, 8)] * 1, "
        "*[torch.rand(3, 4, 8)] * 2)",
        "batch_first=False",
    ),
    (
        "torch.optim.lr_scheduler.ReduceLROnPlateau(\n"
        "    torch.optim.SGD(nn.Linear(2, 2).parameters())).step()",
        "scheduler.step(validation_loss)",
    ),
    ("torch.bmm(torch.ones(2, 2), torch.ones(2, 2))", "x @ y"),
    ("torch.ones(2, 3) @ torch.ones(2)", "as many elements as the matrix has columns"),
    ("F.layer_norm(torch.rand(2, 3), (4,))", "x.shape[-1:]"),
    ("nn.LayerNorm(4)(torch.rand(2, 3))", "normalized_shape is (4,)"),
    ("nn.BatchNorm2d(3)(torch.rand(2, 3))", "BatchNorm1d takes 2D input"),
    ("nn.LSTM(3, 4)(torch.rand(5, 2, 3), (torch.rand(1, 2, 5),) * 2)", "(1, 2, 4) here"),
    ("nn.GRU(3, 4)(torch.rand(5, 2, 3), torch.rand(1, 2, 5))", "not (1, 2, 5)"),
    ("torch.utils.data.TensorDataset(torch.ones(2), torch.ones(3))", "sizes are 2, 3"),
    ("nn.BatchNorm1d(4)(torch.rand(4))", "add the batch by x[None]"),
    ("nn.Conv2d(3, 8, 3)(torch.rand(8, 8, 3))", "x.permute(2, 0, 1)"),
    ("nn.Conv2d(3, 8, 3)(torch.rand(2, 8, 8, 3))", "x.permute(0, 3, 1, 2)"),
    ("nn.Conv1d(4, 8, 3)(torch.rand(2, 8, 4))", "x.permute(0, 2, 1)"),
    ("nn.LSTM(4, 8)(torch.rand(2, 3, 4), torch.rand(1, 3, 8))", "a pair of tensors"),
    ("nn.LSTM(4, 8)(torch.rand(2, 3, 4), torch.rand(2, 3, 8))", "a pair of tensors"),
    ("nn.LSTMCell(4, 8)(torch.rand(3, 4), torch.rand(3, 8))", "a pair of tensors"),
    ("torch.rand(3).unsqueeze(3)", ""),
    # --- what is constructed ---
    ("nn.CrossEntropyLoss(torch.rand(2, 4), torch.tensor([0, 1]))", "nn.CrossEntropyLoss()(input"),
    ("nn.MSELoss(torch.rand(2), torch.rand(2))", "nn.MSELoss()(input, target)"),
    ("torch.optim.Adam(nn.Linear(2, 2))", "model.parameters()"),
    ("torch.optim.Adam(nn.Linear(2, 2).parameters(), lr='0.1')", "lr=float('0.1')"),
    ("nn.Sequential([nn.Linear(2, 2), nn.ReLU()])", "Sequential(*layers)"),
    (
        "nn.Linear(2, 2).load_state_dict({'module.weight': torch.ones(2, 2), "
        "'module.bias': torch.ones(2)})",
        "k.removeprefix('module.')",
    ),
    (
        "nn.Sequential(nn.Linear(2, 2)).load_state_dict(nn.Linear(2, 2).state_dict())",
        "load into model.0",
    ),
    # --- dtypes ---
    ("nn.LayerNorm(4)(torch.rand(2, 4).double())", "x.to(torch.float32)"),
    ("nn.BatchNorm1d(4)(torch.rand(2, 4).double())", "x.to(torch.float32)"),
    ("nn.Embedding(5, 3)(torch.tensor([1], dtype=torch.int8))", "x.long()"),
    ("torch.ones(3).gather(0, torch.ones(2))", "index.long()"),
    ("torch.ones(2, 2) @ torch.ones(2, 2).double()", "x.to(other.dtype)"),
    ("torch.ones(2, 2) @ torch.ones(2, 2).long()", "x.to(other.dtype)"),
    ("torch.ones(2) @ torch.ones(2).double()", "x.to(other.dtype)"),
    ("torch.ones(2, 2) @ torch.ones(2).double()", "x.to(other.dtype)"),
    ("F.conv2d(torch.rand(1, 3, 8, 8), torch.rand(4, 3, 3, 3).double())", "x.to(other.dtype)"),
    ("F.binary_cross_entropy(torch.rand(2), torch.tensor([0, 1]))", "target.float()"),
    ("F.binary_cross_entropy_with_logits(torch.rand(2), torch.tensor([0, 1]))", "target.float()"),
    ("F.softmax(torch.tensor([1, 2]), 0)", "x.float()"),
    ("F.log_softmax(torch.tensor([1, 2]), 0)", "x.float()"),
    ("torch.ones(3).view(torch.float64)", ""),
    ("torch.ones(()).view(torch.complex128)", ""),
    ("torch.ones(2).masked_fill_(torch.tensor([1, 0]), 1.0)", "mask.bool()"),
    ("torch.ones(2).masked_fill(torch.ones(2).bfloat16(), torch.tensor(1.0))", "mask.bool()"),
    # --- classes and indices ---
    ("F.cross_entropy(torch.rand(3, 5), torch.tensor([[0], [1], [2]]))", "target.squeeze(1)"),
    ("F.nll_loss(torch.rand(2, 3), torch.tensor([[0, 1]]))", "one target"),
    ("F.nll_loss(torch.rand(2, 3), torch.tensor([[0, 1], [0, 1]]))", ""),
    ("F.nll_loss(torch.rand(2, 3), torch.tensor(1))", "one target"),
    ("F.nll_loss(torch.rand(3), torch.tensor([0, 1, 2]))", "(batch, classes)"),
    ("F.cross_entropy(torch.rand(2, 3), torch.tensor([0, 1]), torch.rand(2))", "each class"),
    ("F.one_hot(torch.tensor([3]), 2)", "largest class plus 1"),
    ("F.one_hot(torch.tensor([-1]))", "classes run from 0"),
    ("F.one_hot(torch.ones(2))", "x.long()"),
    ("torch.gather(torch.ones(2, 2), 0, torch.tensor([[5]]))", "from 0"),
    ("torch.ones(3)[torch.tensor([5])]", "from 0"),
    ("torch.ones(3)[0, 0]", "x.shape"),
    ("torch.einsum('ij,jk->iz', torch.ones(2, 2), torch.ones(2, 2))", "letters of the operands"),
    ("torch.einsum('ij,jk->ii', torch.ones(2, 2), torch.ones(2, 2))", ""),
    ("torch.einsum(torch.ones(2, 2), [0, 1], [30])", "letters of the operands"),
    ("torch.linalg.norm(torch.ones(2), ord='foo')", ""),
    ("torch.linalg.norm(torch.ones(2), ord='fro')", ""),
    # --- autograd ---
    ("torch.ones(3, requires_grad=True)[0] = 1", "torch.no_grad()"),
    ("torch.optim.SGD([torch.ones(3, requires_grad=True) * 2], lr=1)", "is no leaf"),
    (
        "x = torch.ones(3, requires_grad=True).sigmoid()\nx[0] = 0\nx.sum().backward()",
        "It was saved for SigmoidBackward0; it was last written by x[...] = value",
    ),
    (
        "x = torch.ones(3, requires_grad=True).sigmoid()\nx.add_(1)\nx.sum().backward()",
        "It was saved for SigmoidBackward0; it was last written by add_",
    ),
]

# The same with the operator, or the index, in front of or behind PyTorch's words.
MORE_WORDS = [
    ("x = torch.tensor([1, 2])\nx += 1.5", "x = x + y"),
    ("x = torch.tensor([1, 2])\nx /= 2", "x.float()"),
    ("torch.index_select(torch.ones(3), 0, torch.tensor([5]))", "from 0"),
]


def run(framework, code):
    return said(framework, Mistake("", code, "", (), (), ()))


def fix_of(found):
    fixes = [note for note in found.notes if note.startswith("Fix: ")]
    assert len(fixes) <= 1 and found.notes[len(found.notes) - len(fixes) :] == fixes
    return "".join(fixes)


@pytest.mark.parametrize(("code", "fix"), SAME_WORDS + MORE_WORDS)
def test_a_typical_mistake_says_what_to_do(code, fix):
    found = run(taeda, code)
    assert found.error and fix in fix_of(found)


@pytest.mark.parametrize("code", [code for code, _ in SAME_WORDS])
def test_the_text_is_pytorchs(code):
    torch = pytest.importorskip("torch")
    ours, theirs = run(taeda, code), run(torch, code)
    assert (ours.error, ours.message) == (theirs.error, theirs.message)


@pytest.mark.parametrize("code", [code for code, _ in MORE_WORDS])
def test_the_text_has_pytorchs_words(code):
    torch = pytest.importorskip("torch")
    ours, theirs = run(taeda, code), run(torch, code)
    assert ours.error == theirs.error and theirs.message in ours.message


def test_the_call_names_the_parameters_of_the_overload_that_takes_them():
    found = run(taeda, "torch.ones(3).view(torch.float64)")
    assert found.notes[0] == "In torch.Tensor.view(input=[3] float32, dtype=torch.float64)"


def test_an_index_is_shown_as_it_is_written():
    found = run(taeda, "torch.ones(3, 4)[0:2, ..., None, torch.tensor([4])]")
    assert found.notes[0].endswith("__getitem__([3, 4] float32, [0:2, Ellipsis, None, [1] int64])")
    found = run(taeda, "torch.ones(3)[::2] = torch.ones(3)")
    assert found.notes[0] == "In torch.Tensor.__setitem__([3] float32, ::2, [3] float32)"


@pytest.mark.parametrize("layer", ["TransformerEncoderLayer", "MultiheadAttention"])
def test_a_padding_mask_with_the_length_first_is_called_transposed(layer):
    name = "src_key_padding_mask" if layer[0] == "T" else "key_padding_mask"
    inputs = "*[torch.rand(5, 3, 8)] * " + ("1" if layer[0] == "T" else "3")
    found = run(taeda, f"nn.{layer}(8, 2)({inputs}, {name}=torch.zeros(5, 3, dtype=torch.bool))")
    assert "(batch, source length)" in fix_of(found) and "mask.T" in fix_of(found)


def test_a_kernel_that_fits_gives_no_advice_on_its_size():
    found = run(taeda, "nn.Conv2d(3, 4, 3, padding='same')(torch.rand(1, 3, 8, 8), 1)")
    assert "kernel" not in fix_of(found)


@pytest.mark.parametrize(
    ("code", "fix"),
    [
        ("nn.Sequential(nn.Linear(2, 2), F.relu)", "nn.ReLU() for F.relu"),
        ("nn.Sequential(nn.Linear(2, 2), nn.ReLU)", "construct the layer, ReLU()"),
        ("torch.optim.SGD(nn.Linear(2, 2).parameters(), momentum='0.9')", "momentum=float('0.9')"),
    ],
)
def test_what_is_given_for_another_thing_is_named(code, fix):
    found = run(taeda, code)
    assert found.error == "TypeError" and fix in fix_of(found)
    assert "overridable" not in found.message


def test_an_index_that_fits_is_not_blamed():
    found = run(taeda, "nn.Embedding(5, 3)(torch.tensor([1], dtype=torch.bool))")
    assert "num_embeddings" not in fix_of(found)


@pytest.mark.parametrize(
    ("code", "words", "fix"),
    [
        ("torch.tensor([[1, 2], [3]])", "expected sequence of length 2 at dim 1", "pad_sequence"),
        ("torch.tensor([torch.ones(2)] * 2)", "only one element tensors can be", "torch.stack"),
        ("torch.Tensor([1], dtype=torch.int8)", "unexpected keyword argument 'dtype'", "dtype,"),
    ],
)
def test_data_of_a_tensor_that_makes_none_says_what_to_do(code, words, fix):
    text, _, advice = run(taeda, code).message.partition("\nFix: ")
    assert words in text and fix in advice
