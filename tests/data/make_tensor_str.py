"""Writes tests/data/tensor_str.txt: tensors as PyTorch prints them.

Each case: a line "dtype sizes strides bytes" (the storage in hexadecimal), the text, then "%%".
"""

import sys

import torch

i = torch.arange
cases = [
    torch.tensor(3.5),
    torch.tensor(7),
    torch.tensor(True),
    i(5),
    i(6.0).view(2, 3),
    i(24).view(2, 3, 4),
    torch.tensor([0.1, 123.456, -2.0]),
    torch.tensor([1e-5, 1.0]),
    torch.tensor([1e9, 1.0]),
    torch.tensor([float("nan"), float("inf"), -float("inf"), 0.0]),
    torch.tensor([1.0, float("nan"), -3.0]),
    torch.tensor([1, -100, 10]),
    torch.tensor([[True, False]]),
    torch.zeros(2, 0),
    torch.zeros(0),
    torch.zeros(0, dtype=torch.int64),
    torch.tensor([1.5], dtype=torch.float64),
    i(30.0),
    i(30.0).view(1, 30) / 7,
    i(2000),
    i(2000.0).view(40, 50),
    i(1331).view(11, 11, 11),
    i(12.0).view(3, 4).t(),
    i(10.0)[::3],
    torch.tensor([1 + 2j, -1.5 - 0.25j]),
    torch.tensor([1, 2], dtype=torch.int8),
    torch.tensor([0.1, 0.2], dtype=torch.float16),
    torch.tensor([0.1, 3.0], dtype=torch.bfloat16),
    torch.ones(12, dtype=torch.float64),
    torch.ones(13, dtype=torch.float64),
    torch.zeros(3),
    torch.tensor([1e-10, 0]),
    torch.tensor([100000.0, 1.0]),
    torch.ones(1, 2, 1, 2),
    torch.zeros(2, 0, dtype=torch.float64),
]
with open(sys.argv[1], "w") as out:
    for t in cases:
        n = t.untyped_storage().size()
        raw = bytes(t.untyped_storage()).hex() if n else "-"
        sizes = ",".join(map(str, t.shape)) or "-"
        strides = ",".join(map(str, t.stride())) or "-"
        out.write(f"{str(t.dtype)[6:]} {sizes} {strides} {raw}\n{t!s}\n%%\n")
