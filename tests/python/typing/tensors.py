"""Tensors: making, indexing, reducing, dtypes and devices, results with names."""

from __future__ import annotations

import taeda as torch
from taeda import Tensor


def make() -> list[Tensor]:
    n = 3
    g = torch.Generator(device="cpu").manual_seed(7)
    made = [
        torch.tensor([[1, 2], [3, 4]], dtype=torch.float32, device="cpu", requires_grad=True),
        torch.zeros(n, 4),
        torch.zeros((n, 4), dtype=torch.int64),
        torch.ones(torch.Size([2, 2])),
        torch.full((2, 3), 0.5),
        torch.empty(0),
        torch.eye(n, dtype=torch.double),
        torch.arange(10),
        torch.arange(0, 1, 0.1),
        torch.linspace(0, 1, steps=5),
        torch.rand(2, 3, generator=g),
        torch.randn([2, 3]),
        torch.randint(0, 5, (2, 2), generator=g),
        torch.normal(0.0, 1.0, (3,)),
        torch.bernoulli(torch.full((3,), 0.5)),
        torch.as_tensor([1.0, 2.0]),
        torch.zeros_like(torch.ones(2), dtype=torch.bool),
        torch.ones(2).new_zeros((3, 3)),
        torch.complex(torch.ones(2), torch.zeros(2)),
    ]
    return made


def index(x: Tensor) -> Tensor:
    rows = torch.tensor([0, 2])
    x[0] = 1.0
    x[:, 1:3] = torch.zeros(2)
    x[x > 2] = 0
    x[..., None]
    x[[0, 1], [1, 0]] = -1
    x[rows, :] += 2
    parts = (x[0], x[-1, 0], x[rows], x[None, ..., ::2], x[torch.ones(4, dtype=torch.bool)])
    first, *rest = x
    assert len(rest) == len(x) - 1 and first.dim() == 1
    picked = x.gather(1, torch.zeros(4, 1, dtype=torch.long)).squeeze(1)
    x.index_fill_(0, rows, 3).scatter_(1, torch.zeros(4, 1, dtype=torch.long), 1.5)
    return torch.cat([p.reshape(-1) for p in parts]).sum() + picked.sum()


def reduce(x: Tensor) -> float:
    values, indices = x.max(dim=1)
    named = torch.min(x, 0)
    assert named.values.shape == named.indices.shape
    ordered = x.sort(dim=-1, descending=True)
    top = torch.topk(x, k=2)
    found, inverse = torch.unique(x, return_inverse=True)
    middle = x.median(dim=0).values
    total = (
        x.sum()
        + x.sum(0).sum()
        + x.mean(dim=(0, 1), keepdim=True).sum()
        + x.std(dim=0, correction=0).sum()
        + x.var(unbiased=False)
        + x.norm()
        + x.norm(p=1, dim=1).sum()
        + torch.linalg.norm(x, ord=2)
        + torch.linalg.vector_norm(x, dim=0).sum()
        + x.max()
        + torch.max(x, torch.zeros_like(x)).sum()
        + x.amax(1).sum()
        + x.prod()
        + x.logsumexp(dim=-1).sum()
        + values.sum()
        + ordered.values.sum()
        + top.values.sum()
        + middle.sum()
    )
    assert (
        bool((ordered.indices >= 0).all()) and x.isfinite().any() and indices.dtype == torch.int64
    )
    assert found.numel() + inverse.numel() > 0
    return total.item() + float(x.mean()) + int(x.argmax())


def arithmetic(x: Tensor) -> Tensor:
    y = 2 * x + 1 - x / 3 + 2**x + x // 2 + x % 2 + (1 - x) + abs(-x)
    y = torch.where(x > 0, y, torch.tensor(0.0)) + torch.where(x > 0, 1.0, 0.0)
    y = y.clamp(min=-1, max=1) + torch.clamp(x, 0, 1) + x.clamp_min(0)
    mask = (x > 0) & ~(x > 1) | (x == 0)
    y += mask
    y *= 0.5
    y = (
        y.to(torch.float64)
        .to("cpu")
        .to(torch.device("cpu"), torch.float32, non_blocking=True)
        .to(x)
    )
    y = y.type(torch.float32).float().double().half().bfloat16().to(dtype=torch.float32)
    u, s, vh = torch.linalg.svd(x, full_matrices=False)
    y = y + u @ torch.diag(s) @ vh + torch.matmul(x, x.T) @ x + x.mT.mT
    y = (
        y.view(2, -1)
        .reshape((4, 4))
        .permute(1, 0)
        .transpose(0, 1)
        .unsqueeze(0)
        .expand(2, -1, -1)[0]
    )
    a, b = y.split(2)
    c = torch.split(y, [1, 3], dim=1)[0]
    d, e = torch.chunk(y, 2, dim=0)
    halves = y.unbind(0) + y.tensor_split(2)
    spectrum = torch.fft.rfft(x, n=8).abs() + torch.special.expit(torch.zeros(5))
    return a.sum() + b.sum() + c.sum() + d.sum() + e.sum() + halves[0].sum() + spectrum.sum()


def settings(x: Tensor) -> str:
    default: torch.dtype = torch.get_default_dtype()
    size: torch.Size = x.shape
    height, width = x.shape
    n: int = (
        x.size(0) + x.shape[-1] + size.numel() + height + width + x.stride(0) + x.element_size()
    )
    device: torch.device = x.device
    info = torch.finfo(x.dtype)
    data = x.detach().cpu().numpy()
    back = torch.from_numpy(data)
    torch.set_default_dtype(default)
    torch.testing.assert_close(back, x, rtol=1e-5, atol=1e-8)
    distribution = torch.distributions.Normal(torch.zeros(2), torch.ones(2))
    sample = distribution.rsample((3,))
    score = distribution.log_prob(sample).sum()
    state = torch.get_rng_state()
    torch.set_rng_state(state)
    return f"{device.type} {n} {info.max} {x.dtype} {float(score) < 0} {torch.__version__}"


if __name__ == "__main__":
    print(len(make()), index(torch.rand(4, 4)), reduce(torch.rand(4, 4)))
    print(arithmetic(torch.rand(4, 4)), settings(torch.rand(4, 4)))
