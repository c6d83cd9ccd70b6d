"""gather, scatter and indices."""

from __future__ import annotations

from kernel_cases.registry import MEGA, binary, positions

binary(
    "gather(0)",
    None,
    lambda torch, x, i: x.gather(0, i),
    lambda torch: positions(torch, 2048, 2048),
)
binary(
    "gather(1)",
    None,
    lambda torch, x, i: x.gather(1, i),
    lambda torch: positions(torch, 2048, 2048),
)
binary(
    "gather(1), one a row",
    None,
    lambda torch, x, i: x.gather(1, i),
    lambda torch: positions(torch, 2048, 1),
)
binary(
    "index_select(0)",
    32 * MEGA,
    lambda torch, x, i: x.index_select(0, i),
    lambda torch: positions(torch, 2048),
)
binary(
    "index_select(1)",
    None,
    lambda torch, x, i: x.index_select(1, i),
    lambda torch: positions(torch, 2048),
)
binary(
    "x[i, j], 1M",
    None,
    lambda torch, x, i, j: x[i, j],
    lambda torch: (*positions(torch, MEGA), torch.randint(0, 2048, (MEGA,))),
)
binary(
    "scatter_(1, i, y)",
    None,
    lambda torch, x, i, y: x.scatter_(1, i, y),
    lambda torch: (*positions(torch, 2048, 2048), torch.randn(2048, 2048)),
)
binary(
    "scatter_add_(0, i, y)",
    None,
    lambda torch, x, i, y: x.scatter_add_(0, i, y),
    lambda torch: (*positions(torch, 2048, 2048), torch.randn(2048, 2048)),
)
binary(
    "scatter_add_(1, i, y)",
    None,
    lambda torch, x, i, y: x.scatter_add_(1, i, y),
    lambda torch: (*positions(torch, 2048, 2048), torch.randn(2048, 2048)),
)
binary(
    "index_add_(0, i, y)",
    None,
    lambda torch, x, i, y: x.index_add_(0, i, y),
    lambda torch: (*positions(torch, 2048), torch.randn(2048, 2048)),
)
binary(
    "index_put_, 1M",
    None,
    lambda torch, x, i, j, y: x.index_put_((i, j), y),
    lambda torch: (*positions(torch, MEGA), torch.randint(0, 2048, (MEGA,)), torch.randn(MEGA)),
)
binary(
    "index_put_, accumulate, 1M",
    None,
    lambda torch, x, i, j, y: x.index_put_((i, j), y, accumulate=True),
    lambda torch: (*positions(torch, MEGA), torch.randint(0, 2048, (MEGA,)), torch.randn(MEGA)),
)

binary(
    "index_reduce(0, i, y, 'amax')",
    None,
    lambda torch, x, i: x.index_reduce(0, i, x, "amax"),
    lambda torch: (torch.randn(2048, 512), torch.randint(0, 2048, (2048,))),
)
for reduction in ("amax", "mean", "prod"):
    binary(
        f"scatter_reduce(0, i, y, '{reduction}')",
        None,
        lambda torch, x, i, how=reduction: x.scatter_reduce(0, i, x, how),
        lambda torch: (torch.randn(2048, 512), torch.randint(0, 2048, (2048, 512))),
    )
binary(
    "segment_reduce of 2048 x 512",
    None,
    lambda torch, x, lengths: torch.segment_reduce(x, "sum", lengths=lengths),
    lambda torch: (torch.randn(2048, 512), torch.full((256,), 8)),
)
