"""Writes tests/data/random.txt: numbers drawn by PyTorch, as bit patterns."""

import sys

import torch

cases = [
    ("uniform", torch.float32, (1000,), lambda t: t.uniform_()),
    ("uniform", torch.float64, (700,), lambda t: t.uniform_()),
    ("uniform", torch.bfloat16, (40,), lambda t: t.uniform_()),
    ("uniform", torch.float16, (40,), lambda t: t.uniform_()),
    ("uniform_range", torch.float64, (100,), lambda t: t.uniform_(-3, 7)),
    ("uniform_range", torch.float32, (100,), lambda t: t.uniform_(-3, 7)),
    ("normal", torch.float32, (5,), lambda t: t.normal_()),
    ("normal", torch.float32, (16,), lambda t: t.normal_()),
    ("normal", torch.float32, (2013,), lambda t: t.normal_()),
    ("normal", torch.float64, (7,), lambda t: t.normal_()),
    ("normal", torch.float64, (333,), lambda t: t.normal_()),
    ("normal", torch.float16, (333,), lambda t: t.normal_()),
    ("normal", torch.bfloat16, (20,), lambda t: t.normal_()),
    ("normal_range", torch.float32, (100,), lambda t: t.normal_(5, 0.3)),
    ("bernoulli", torch.float32, (500,), lambda t: t.bernoulli_(0.3)),
    ("bernoulli", torch.int32, (50,), lambda t: t.bernoulli_(0.3)),
    ("randint100", torch.int64, (300,), lambda t: t.random_(0, 100)),
    ("randint100", torch.float32, (30,), lambda t: t.random_(0, 100)),
    ("randint_wide", torch.int64, (300,), lambda t: t.random_(-(2**40), 2**41)),
    ("randint_int", torch.int32, (30,), lambda t: t.random_(-(2**31), None)),
    ("random", torch.float32, (30,), lambda t: t.random_()),
    ("random", torch.float64, (30,), lambda t: t.random_()),
    ("random", torch.int64, (30,), lambda t: t.random_()),
    ("random", torch.int8, (30,), lambda t: t.random_()),
    ("random", torch.bool, (30,), lambda t: t.random_()),
    ("exponential", torch.float32, (100,), lambda t: t.exponential_(1.5)),
    ("exponential", torch.float64, (100,), lambda t: t.exponential_(1.5)),
    ("geometric", torch.int64, (100,), lambda t: t.geometric_(0.3)),
    ("cauchy", torch.float64, (100,), lambda t: t.cauchy_(1, 2)),
    ("log_normal", torch.float64, (101,), lambda t: t.log_normal_(1, 2)),
    ("log_normal", torch.float32, (101,), lambda t: t.log_normal_(1, 2)),
    ("randperm", torch.int64, (1000,), lambda t: torch.randperm(1000)),
    (
        "dropout",
        torch.float32,
        (1000,),
        lambda t: torch.nn.functional.dropout(torch.arange(1000.0) - 500, 0.3),
    ),
    (
        "multinomial",
        torch.int64,
        (4, 10),
        lambda t: torch.multinomial(torch.arange(1, 81.0).view(4, 20), 10),
    ),
    (
        "multinomial_replacement",
        torch.int64,
        (4, 30),
        lambda t: torch.multinomial(torch.arange(1, 81.0).view(4, 20), 30, True),
    ),
]
with open(sys.argv[1], "w") as out:
    for i, (name, dtype, shape, fill) in enumerate(cases):
        torch.manual_seed(1000 + i)
        t = fill(torch.empty(shape, dtype=dtype))
        after = int(torch.randint(0, 2**20, (1,)))  # what the generator gives next
        b = (
            t.contiguous().flatten().view(torch.uint8).numpy().tobytes()
            if dtype != torch.bool
            else t.numpy().tobytes()
        )
        out.write(f"{name} {str(dtype)[6:]} {t.numel()} {after} {b.hex()}\n")
