"""Typical mistakes: a program of a few lines for each, what its error must say, and the fix.

`torch` is the framework, `nn` and `F` its modules. A traceback's last lines (the message and its
notes) say *where* if they name the operator, layer or argument, and *what* if they tell what was
expected and what was given.
"""

from __future__ import annotations

from typing import NamedTuple


class Mistake(NamedTuple):
    title: str
    code: str
    fix: str
    where: tuple[str, ...]  # the operator, layer or argument
    what: tuple[str, ...]  # what was expected, and what was given
    error: str = "RuntimeError"
    words: str = ""  # of PyTorch's message, which programs look for


NET = """class Net(nn.Module):
    def __init__(self):
        super().__init__()
        self.body = nn.Sequential(nn.Linear(4, 8), nn.ReLU(), nn.Linear(16, 2))
    def forward(self, x):
        return self.body(x)
"""

MISTAKES = (
    Mistake(
        "A layer in a nested model has the wrong size",
        NET + "Net()(torch.rand(3, 4))",
        "make the second Linear's in_features 8, the first one's out_features",
        ("linear", "body.2"),
        ("3x8", "16x2"),
        words="mat1 and mat2 shapes cannot be multiplied (3x8 and 16x2)",
    ),
    Mistake(
        "Matrices whose inner sizes differ",
        "torch.rand(2, 3) @ torch.rand(4, 5)",
        "transpose one of them, or check which dimension is the batch",
        ("Tensor.matmul",),
        ("2x3", "4x5"),
        words="mat1 and mat2 shapes cannot be multiplied (2x3 and 4x5)",
    ),
    Mistake(
        "Shapes that do not broadcast",
        "torch.rand(2, 3) + torch.rand(2, 4)",
        "sizes must be equal or 1, from the right: add a dimension with unsqueeze or [:, None]",
        ("Tensor.add",),
        ("[2, 3]", "[2, 4]", "(3)", "(4)"),
        words="The size of tensor a (3) must match the size of tensor b (4) at non-singleton "
        "dimension 1",
    ),
    Mistake(
        "A convolution of images with other channels",
        "nn.Conv2d(3, 8, 3)(torch.rand(2, 1, 16, 16))",
        "make in_channels 1, or repeat the grey channel three times",
        ("conv2d", "Conv2d"),
        ("3 channels", "1 channels"),
        words="expected input[2, 1, 16, 16] to have 3 channels, but got 1 channels instead",
    ),
    Mistake(
        "An image without its batch's channels",
        "nn.Conv2d(1, 8, 3)(torch.rand(16, 16))",
        "add the dimensions: x[None, None]",
        ("conv2d",),
        ("3D", "4D", "[16, 16]"),
        words="Expected 3D (unbatched) or 4D (batched) input to conv2d",
    ),
    Mistake(
        "A kernel larger than the image",
        "nn.Conv2d(1, 8, 5)(torch.rand(1, 1, 3, 3))",
        "pad the image, or take a smaller kernel",
        ("conv2d",),
        ("(3 x 3)", "(5 x 5)"),
        words="Kernel size can't be greater than actual input size",
    ),
    Mistake(
        "Flattened to another size than the head expects",
        "nn.Sequential(nn.Conv2d(1, 4, 3), nn.Flatten(), nn.Linear(64, "
        "10))(torch.rand(2, 1, 8, 8))",
        "in_features is channels * height * width after the last pooling: 4 * 6 * 6",
        ("linear", "'2' of Sequential"),
        ("2x144", "64x10"),
        words="mat1 and mat2 shapes cannot be multiplied (2x144 and 64x10)",
    ),
    Mistake(
        "Batch norm of one sample in training",
        "nn.BatchNorm1d(3)(torch.rand(1, 3))",
        "a batch of 2 or more, drop_last=True in the loader, or eval()",
        ("BatchNorm1d",),
        ("more than 1 value", "[1, 3]"),
        "ValueError",
        "Expected more than 1 value per channel when training, got input size torch.Size([1, 3])",
    ),
    Mistake(
        "Batch norm of another number of channels",
        "nn.BatchNorm2d(8)(torch.rand(2, 4, 5, 5))",
        "num_features is the number of channels, 4",
        ("running_mean", "batch_norm"),
        ("4 elements", "8"),
        words="running_mean should contain 4 elements not 8",
    ),
    Mistake(
        "Layer norm of another size",
        "nn.LayerNorm(8)(torch.rand(2, 4))",
        "normalized_shape is the size of the last dimensions, 4",
        ("layer_norm",),
        ("[8]", "[2, 4]"),
        words="Given normalized_shape=[8], expected input with shape [*, 8], but got input of "
        "size[2, 4]",
    ),
    Mistake(
        "An embedding of a number that the table lacks",
        "nn.Embedding(10, 3)(torch.tensor([1, 10]))",
        "indices run from 0 to num_embeddings - 1: make the table larger, or look for a "
        "wrong token",
        ("embedding",),
        ("index 10", "size 10"),
        "IndexError",
        "index out of range in self",
    ),
    Mistake(
        "Floats as indices of an embedding",
        "nn.Embedding(10, 3)(torch.tensor([1.0, 2.0]))",
        "convert: x.long()",
        ("indices", "embedding"),
        ("Long, Int", "Float"),
        words="to have one of the following scalar types: Long, Int",
    ),
    Mistake(
        "An LSTM's input has other features",
        "nn.LSTM(4, 8)(torch.rand(5, 2, 3))",
        "input_size is the last dimension of the input, 3",
        ("input_size", "LSTM"),
        ("Expected 4", "got 3"),
        words="input.size(-1) must be equal to input_size. Expected 4, got 3",
    ),
    Mistake(
        "Heads that do not divide the embedding",
        "nn.MultiheadAttention(10, num_heads=3)",
        "choose num_heads among the divisors of embed_dim: 1, 2, 5, 10",
        ("num_heads",),
        ("embed_dim",),
        "AssertionError",
        "embed_dim must be divisible by num_heads",
    ),
    # --- losses ----------------------------------------------------------------------------
    Mistake(
        "A class that the logits lack",
        "F.cross_entropy(torch.rand(2, 10), torch.tensor([3, 10]))",
        "classes run from 0 to C - 1: subtract 1, or make the last layer larger",
        ("cross_entropy",),
        ("from 0 to 9", "Target 10"),
        "IndexError",
        "Target 10 is out of bounds.",
    ),
    Mistake(
        "Class indices as floats",
        "F.cross_entropy(torch.rand(2, 3), torch.tensor([0.0, 1.0]))",
        "convert: target.long()",
        ("target", "cross_entropy"),
        ("Long", "Float"),
        words="expected target dtype to be Long or Byte, but got Float",
    ),
    Mistake(
        "Other numbers of samples and of targets",
        "F.cross_entropy(torch.rand(4, 3), torch.tensor([0, 1]))",
        "both need one entry a sample: look at the last batch and at the flattening",
        ("cross_entropy", "target"),
        ("(4)", "(2)"),
        "ValueError",
        "Expected input batch_size (4) to match target batch_size (2).",
    ),
    Mistake(
        "Logits in place of probabilities",
        "F.binary_cross_entropy(torch.tensor([1.5]), torch.tensor([1.0]))",
        "binary_cross_entropy_with_logits takes logits",
        ("binary_cross_entropy", "input"),
        ("between 0 and 1",),
        words="all elements of input should be between 0 and 1",
    ),
    Mistake(
        "A target of another shape in binary cross entropy",
        "F.binary_cross_entropy_with_logits(torch.rand(3, 1), torch.rand(3))",
        "target.unsqueeze(1), or squeeze the logits",
        ("binary_cross_entropy_with_logits",),
        ("torch.Size([3])", "torch.Size([3, 1])"),
        "ValueError",
        "must be the same as input size",
    ),
    # --- autograd --------------------------------------------------------------------------
    Mistake(
        "backward of more than one number",
        "x = torch.rand(3, requires_grad=True)\n(x * 2).backward()",
        "sum() or mean() it, or pass the gradient: y.backward(torch.ones_like(y))",
        ("backward",),
        ("scalar", "[3]"),
        words="grad can be implicitly created only for scalar outputs",
    ),
    Mistake(
        "backward twice",
        "x = torch.rand(3, requires_grad=True)\ny = (x * x).sum()\ny.backward()\ny.backward()",
        "add the losses and call backward once, or retain_graph=True",
        ("MulBackward0", "backward"),
        ("second time", "retain_graph=True"),
        words="Trying to backward through the graph a second time",
    ),
    Mistake(
        "Writing in place into a leaf",
        "w = torch.rand(3, requires_grad=True)\nw += 1",
        "with torch.no_grad(): w += 1",
        ("add_",),
        ("leaf", "no_grad"),
        words="a leaf Variable that requires grad is being used in an in-place operation.",
    ),
    Mistake(
        "A value that backward needs was overwritten",
        "x = torch.rand(3, requires_grad=True)\ny = x.exp()\ny += 1\ny.sum().backward()",
        "write y = y + 1",
        ("ExpBackward0",),
        ("version 1", "version 0"),
        words="has been modified by an inplace operation",
    ),
    Mistake(
        "Nothing to differentiate",
        "torch.rand(3).sum().backward()",
        "requires_grad=True on what you differentiate by, and no no_grad or detach on the way",
        ("element 0",),
        ("does not require grad",),
        words="element 0 of tensors does not require grad and does not have a grad_fn",
    ),
    Mistake(
        "NumPy of a tensor that requires grad",
        "torch.rand(3, requires_grad=True).numpy()",
        "x.detach().numpy()",
        ("numpy()",),
        ("requires grad", "detach"),
        words="Can't call numpy() on Tensor that requires grad. Use tensor.detach().numpy() "
        "instead.",
    ),
    Mistake(
        "Gradients of integers",
        "torch.arange(3, requires_grad=True)",
        "make it floating point: torch.arange(3.0, requires_grad=True)",
        ("arange", "requires_grad"),
        ("floating point",),
        words="Only Tensors of floating point and complex dtype can require gradients",
    ),
    # --- dtypes ----------------------------------------------------------------------------
    Mistake(
        "Doubles from NumPy into a float model",
        "nn.Linear(3, 2)(torch.rand(4, 3, dtype=torch.float64))",
        "x.float(), or model.double()",
        ("linear", "Linear"),
        ("Double", "Float"),
        words="mat1 and mat2 must have the same dtype",
    ),
    Mistake(
        "The mean of integers",
        "torch.tensor([1, 2, 3]).mean()",
        "x.float().mean()",
        ("mean()",),
        ("floating point", "Long"),
        words="Input dtype must be either a floating point or complex dtype",
    ),
    # --- shapes ----------------------------------------------------------------------------
    Mistake(
        "A view of another number of elements",
        "torch.rand(2, 3).view(4, 2)",
        "the product of the sizes must stay; -1 stands for what is left",
        ("view",),
        ("[4, 2]", "6"),
        words="shape '[4, 2]' is invalid for input of size 6",
    ),
    Mistake(
        "A view of a transposed tensor",
        "torch.rand(2, 3).t().view(6)",
        "reshape, which copies where it must",
        ("view",),
        ("reshape", "[3, 2]"),
        words="view size is not compatible with input tensor's size and stride",
    ),
    Mistake(
        "Tensors of other sizes in cat",
        "torch.cat([torch.rand(2, 3), torch.rand(2, 4)])",
        "all but the joined dimension must agree: dim=1",
        ("cat",),
        ("size 3", "size 4", "number 1"),
        words="Sizes of tensors must match except in dimension 0. Expected size 3 but got size "
        "4 for tensor number 1 in the list.",
    ),
    Mistake(
        "Tensors of other sizes in stack",
        "torch.stack([torch.rand(3), torch.rand(4)])",
        "pad them, or torch.nested, or a collate_fn that does",
        ("stack",),
        ("[3] at entry 0", "[4] at entry 1"),
        words="stack expects each tensor to be equal size, but got [3] at entry 0 and [4] at "
        "entry 1",
    ),
    Mistake(
        "einsum with other subscripts than dimensions",
        "torch.einsum('ij,jk->ik', torch.rand(2, 3), torch.rand(3))",
        "one letter a dimension: 'ij,j->i'",
        ("einsum", "operand 1"),
        ("'jk'", "[3]"),
        words="the number of subscripts in the equation (2) does not match the number of "
        "dimensions (1) for operand 1",
    ),
    Mistake(
        "More of topk than there are",
        "torch.rand(3).topk(5)",
        "k is at most the size of the dimension: min(k, x.shape[-1])",
        ("topk",),
        ("k = 5", "[3]"),
        words="selected index k out of range",
    ),
    # --- indices ---------------------------------------------------------------------------
    Mistake(
        "An index beyond the end",
        "torch.rand(3)[5]",
        "indices run from -3 to 2",
        ("dimension 0",),
        ("index 5", "size 3"),
        "IndexError",
        "index 5 is out of bounds for dimension 0 with size 3",
    ),
    Mistake(
        "A dimension that is not there",
        "torch.rand(2, 3).sum(2)",
        "dimensions run from -2 to 1",
        ("sum",),
        ("[-2, 1]", "2"),
        "IndexError",
        "Dimension out of range (expected to be in range of [-2, 1], but got 2)",
    ),
    Mistake(
        "A mask of another shape",
        "torch.rand(3)[torch.tensor([True, False])]",
        "a mask has the shape of what it masks",
        ("mask", "index 0"),
        ("[2]", "[3]"),
        "IndexError",
        "The shape of the mask [2] at index 0 does not match the shape of the indexed "
        "tensor [3] at index 0",
    ),
    Mistake(
        "gather with indices of other dimensions",
        "torch.rand(2, 3).gather(1, torch.tensor([0, 1]))",
        "index needs as many dimensions as input: index[:, None]",
        ("gather", "index"),
        ("[2, 3]", "[2]"),
        words="Index tensor must have the same number of dimensions as input tensor",
    ),
    Mistake(
        "item() of several numbers",
        "torch.rand(3).item()",
        "tolist(), or reduce it first",
        ("item",),
        ("3 elements",),
        words="a Tensor with 3 elements cannot be converted to Scalar",
    ),
    Mistake(
        "if of several numbers",
        "if torch.rand(3) > 0: pass",
        ".any() or .all()",
        ("Boolean value",),
        ("more than one value",),
        words="Boolean value of Tensor with more than one value is ambiguous",
    ),
    # --- programs --------------------------------------------------------------------------
    Mistake(
        "A keyword that the function lacks",
        "torch.sum(torch.rand(2, 3), dims=1)",
        "dim=1",
        ("sum",),
        ("'dims'", "dim"),
        "TypeError",
    ),
    Mistake(
        "A list in place of a tensor",
        "torch.relu([1.0, -1.0])",
        "torch.tensor([1.0, -1.0])",
        ("relu", "'input'"),
        ("Tensor", "list"),
        "TypeError",
    ),
    Mistake(
        "Weights of another model",
        "nn.Linear(3, 2).load_state_dict({'weight': torch.rand(2, 4), 'scale': torch.rand(2)})",
        "build the model as it was saved; strict=False leaves names out, not sizes",
        ("Linear", "weight"),
        ("[2, 4]", "[2, 3]", "bias", "scale"),
        words="Error(s) in loading state_dict for Linear",
    ),
    Mistake(
        "A module without super().__init__()",
        "class Net(nn.Module):\n    def __init__(self):\n        self.fc = nn.Linear(2, 2)\nNet()",
        "call super().__init__() first",
        ("module",),
        ("Module.__init__()",),
        "AttributeError",
        "cannot assign module before Module.__init__() call",
    ),
    Mistake(
        "An optimizer without parameters",
        "torch.optim.SGD(nn.ReLU().parameters(), lr=0.1)",
        "layers in a Python list are not registered: nn.ModuleList",
        ("optimizer",),
        ("empty parameter list",),
        "ValueError",
        "optimizer got an empty parameter list",
    ),
    Mistake(
        "A negative rate",
        "torch.optim.Adam([torch.zeros(1, requires_grad=True)], lr=-1.0)",
        "lr is not negative; maximize=True goes up",
        ("learning rate",),
        ("-1.0",),
        "ValueError",
        "Invalid learning rate: -1.0",
    ),
    Mistake(
        "Samples of other sizes in a batch",
        "from importlib import import_module\n"
        "data = import_module(torch.__name__ + '.utils.data')\n"
        "next(iter(data.DataLoader([torch.rand(3), torch.rand(4)], batch_size=2)))",
        "a collate_fn that pads",
        ("stack",),
        ("[3] at entry 0", "[4] at entry 1"),
        words="stack expects each tensor to be equal size",
    ),
    Mistake(
        "A probability beyond one",
        "nn.Dropout(2.0)",
        "p is a probability, from 0 to 1",
        ("dropout probability",),
        ("between 0 and 1", "2.0"),
        "ValueError",
        "dropout probability has to be between 0 and 1, but got 2.0",
    ),
)
