"""Single kernels against what the machine can do: the suite `kernels`.

A case names the bytes that it has to move at least, each input read once and each result written
once, or the floating-point operations of a product; None where neither says what limits it.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any

Run = Callable[[], Any]
Make = Callable[[Any], Run]
MEGA = 1 << 20
KERNELS: dict[str, Make] = {}
BYTES: dict[str, int] = {}
FLOPS: dict[str, int] = {}
# The yardsticks of bandwidth by the bytes that they move: what fits a cache moves faster.
COPIES: dict[int, str] = {}


def kernel(name: str, *, bytes: int | None = None, flops: int | None = None) -> Callable[..., Make]:
    def add(make: Make) -> Make:
        KERNELS[name] = make
        if bytes:
            BYTES[name] = bytes
        if flops:
            FLOPS[name] = flops
        return make

    return add


def unary(name: str, bytes: int | None, call: Callable[[Any, Any], Any], **options: Any) -> None:
    """call(torch, x) on 2048 x 2048 random floats, or on what `of(torch)` gives."""
    of = options.get("of", lambda torch: torch.randn(2048, 2048))

    def make(torch: Any) -> Run:
        x = of(torch)
        return lambda: call(torch, x)

    kernel(name, bytes=bytes)(make)


def binary(name: str, bytes: int | None, call: Callable[..., Any], of: Callable[..., Any]) -> None:
    """call(torch, *tensors) on the tensors that `of(torch)` gives."""

    def make(torch: Any) -> Run:
        tensors = of(torch)
        return lambda: call(torch, *tensors)

    kernel(name, bytes=bytes)(make)


def matrices(torch: Any) -> tuple[Any, Any]:
    return torch.randn(2048, 2048), torch.randn(2048, 2048)


def positions(torch: Any, *sizes: int) -> tuple[Any, Any]:
    return torch.randn(2048, 2048), torch.randint(0, 2048, sizes)


def integers(torch: Any, dtype: str, low: int = -9999, high: int = 9999) -> Any:
    return torch.randint(low, high, (MEGA,), dtype=getattr(torch, dtype))


def copy(megabytes: int) -> None:
    def make(torch: Any) -> Run:
        x, y = torch.randn(megabytes, MEGA // 4), torch.empty(megabytes, MEGA // 4)
        return lambda: y.copy_(x)

    COPIES[2 * megabytes * MEGA] = name = f"copy, {megabytes} MB"
    kernel(name, bytes=2 * megabytes * MEGA)(make)


for size in (1, 4, 8, 16, 24):
    copy(size)


def yardstick(name: str) -> tuple[str, str] | None:
    """What limits the case `name`, as a suite and a case of it: the peak of arithmetic, or the copy
    that moves nearly as many bytes."""
    if name in FLOPS:
        return "peak", "bf16" if "bf16" in name else "f32"
    if name not in BYTES:
        return None
    return "kernels", COPIES[min(COPIES, key=lambda moved: abs(math.log(moved / BYTES[name])))]


@kernel("x @ y, 1024 x 1024", flops=2 << 30)
def product(torch: Any) -> Run:
    x, y = torch.randn(1024, 1024), torch.randn(1024, 1024)
    return lambda: x @ y


@kernel("x @ x in double, 512 x 512")
def double_product(torch: Any) -> Run:
    x = torch.randn(512, 512, dtype=torch.float64)
    return lambda: x @ x


def products(rows: int, inner: int, columns: int, dtype: str) -> None:
    def make(torch: Any) -> Run:
        a, b = (
            torch.randn(*sizes, dtype=getattr(torch, dtype))
            for sizes in ((rows, inner), (inner, columns))
        )
        return lambda: a @ b

    kernel(f"x @ y in {dtype}, {rows} x {inner} x {columns}")(make)


for _sizes in ((512, 512, 32), (32, 512, 512), (64, 64, 64)):
    products(*_sizes, "float64")
for _sizes in ((512, 512, 512), (64, 64, 64)):
    products(*_sizes, "complex64")
products(256, 256, 256, "complex128")


@kernel("vdot, 64K complex64")
def complex_dot(torch: Any) -> Run:
    x, y = (torch.randn(1 << 16, dtype=torch.complex64) for _ in range(2))
    return lambda: torch.vdot(x, y)


@kernel("bmm, 64 x 128 x 128", flops=2 * 64 * 128**3)
def bmm(torch: Any) -> Run:
    x = torch.randn(64, 128, 128)
    return lambda: torch.bmm(x, x)


@kernel("bmm, 4096 x 16 x 16, second one transposed", flops=2 * 4096 * 16**3)
def small_bmm(torch: Any) -> Run:
    x = torch.randn(4096, 16, 16)
    return lambda: torch.bmm(x, x.transpose(1, 2))


@kernel("bmm, 65536 x 3 x 3", flops=2 * 65536 * 3**3)
def tiny_bmm(torch: Any) -> Run:
    x = torch.randn(65536, 3, 3)
    return lambda: torch.bmm(x, x)


@kernel("x @ y in bf16, 1024 x 1024", flops=2 << 30)
def half_product(torch: Any) -> Run:
    x, y = (torch.randn(1024, 1024).to(torch.bfloat16) for _ in range(2))
    return lambda: x @ y


@kernel("bmm in bf16, 64 x 128 x 128", flops=2 * 64 * 128**3)
def half_bmm(torch: Any) -> Run:
    x = torch.randn(64, 128, 128).to(torch.bfloat16)
    return lambda: torch.bmm(x, x)


@kernel("linear in bf16, 512 x 768 to 3072", flops=2 * 512 * 768 * 3072)
def half_linear(torch: Any) -> Run:
    sizes = (512, 768), (3072, 768), (3072,)
    x, w, b = (torch.randn(*size).to(torch.bfloat16) for size in sizes)
    return lambda: torch.nn.functional.linear(x, w, b)


@kernel("linear in bf16, 64 x 4096 to 4096", flops=2 * 64 * 4096 * 4096)
def large_half_linear(torch: Any) -> Run:
    x, w = (torch.randn(rows, 4096).to(torch.bfloat16) for rows in (64, 4096))
    return lambda: torch.nn.functional.linear(x, w)


@kernel("linear, 32 x 256 to 256", flops=2 * 32 * 256 * 256)
def linear(torch: Any) -> Run:
    x, w, b = torch.randn(32, 256), torch.randn(256, 256), torch.randn(256)
    return lambda: torch.nn.functional.linear(x, w, b)


@kernel("linear, 8 x 64 to 64")
def small_linear(torch: Any) -> Run:
    x, w, b = torch.randn(8, 64), torch.randn(64, 64), torch.randn(64)
    return lambda: torch.nn.functional.linear(x, w, b)


def attention(name: str, causal: bool, backward: bool) -> None:
    """12 heads of 512 tokens; a causal mask hides half of the products."""
    products = (7 if backward else 2) * 2 * 12 * 512 * 512 * 64

    def make(torch: Any) -> Run:
        q, k, v, gy = (torch.randn(1, 512, 12, 64).transpose(1, 2) for _ in range(4))
        attend = torch.nn.functional.scaled_dot_product_attention
        if not backward:
            return lambda: attend(q, k, v, is_causal=causal)
        inputs = [x.requires_grad_() for x in (q, k, v)]
        return lambda: torch.autograd.grad(attend(*inputs, is_causal=causal), inputs, gy)

    kernel(name, flops=products // 2 if causal else products)(make)


attention("attention, 12 x 512 x 64", causal=False, backward=False)
attention("causal attention, 12 x 512 x 64", causal=True, backward=False)
attention("attention, forward and backward", causal=False, backward=True)
attention("causal attention, forward and backward", causal=True, backward=True)


def recurrent(kind: str, gates: int) -> None:
    """Forward and backward of 24 steps of 16 samples, 512 units."""

    def make(torch: Any) -> Run:
        layer = getattr(torch.nn, kind)(512, 512)
        inputs = [torch.randn(24, 16, 512).requires_grad_(), *layer.parameters()]
        gy = torch.randn(24, 16, 512)
        return lambda: torch.autograd.grad(layer(inputs[0])[0], inputs, gy)

    kernel(f"{kind}, 24 x 16 x 512, forward and backward", flops=12 * 24 * 16 * 512 * 512 * gates)(
        make
    )


recurrent("LSTM", 4)
recurrent("GRU", 3)


# --- convolutions --------------------------------------------------------------------------------


def convolution(name: str, x: tuple[int, ...], w: tuple[int, ...], stride: int = 1) -> None:
    """Forward and both gradients of a convolution that pads by half of its filter."""
    n, channels, height, width = x
    out = n * w[0] * -(-height // stride) * -(-width // stride)
    # A depthwise one does little for each element that it moves.
    moved = 4 * (math.prod(x) + out)
    limit = {"flops": 2 * out * math.prod(w[1:])} if w[1] > 1 else {"bytes": moved}

    def make(part: str) -> Make:
        def start(torch: Any) -> Run:
            images, filters = torch.randn(*x), torch.randn(*w)
            options = {"stride": stride, "padding": w[2] // 2, "groups": channels // w[1]}
            call = torch.nn.functional.conv2d
            if part == "forward":
                return lambda: call(images, filters, **options)
            source = (images if part == "gradient of x" else filters).requires_grad_()
            y = call(images, filters, **options)
            gy = torch.randn_like(y.detach())
            return lambda: torch.autograd.grad(y, source, gy, retain_graph=True)

        return start

    for part in ("forward", "gradient of x", "gradient of w"):
        # A first layer's images need no gradient.
        if channels > 3 or part != "gradient of x":
            kernel(f"{name}, {part}", **limit)(make(part))


convolution("3x3, 64 channels, 56 x 56", (4, 64, 56, 56), (64, 64, 3, 3))
convolution("3x3, 256 channels, 14 x 14", (8, 256, 14, 14), (256, 256, 3, 3))
convolution("1x1, 256 to 1024 channels, 14 x 14", (8, 256, 14, 14), (1024, 256, 1, 1))
convolution("1x1 stride 2, 512 to 1024, 28 x 28", (4, 512, 28, 28), (1024, 512, 1, 1), stride=2)
convolution("3x3 stride 2, 128 channels, 56 x 56", (4, 128, 56, 56), (128, 128, 3, 3), stride=2)
convolution("depthwise 3x3, 512 channels, 14 x 14", (8, 512, 14, 14), (512, 1, 3, 3))
convolution(
    "depthwise 3x3 stride 2, 128 channels, 56 x 56", (8, 128, 56, 56), (128, 1, 3, 3), stride=2
)
convolution("7x7 stride 2, 3 to 64 channels, 224 x 224", (4, 3, 224, 224), (64, 3, 7, 7), stride=2)
convolution("3x3 stride 2, 3 to 32 channels, 224 x 224", (8, 3, 224, 224), (32, 3, 3, 3), stride=2)


def training(name: str, bytes: int, call: Callable[[Any, Any], Any]) -> None:
    """call(torch, x) on random images, and its gradient."""

    def make(torch: Any) -> Run:
        x = images(torch).requires_grad_()
        gy = torch.randn_like(call(torch, x).detach())
        return lambda: torch.autograd.grad(call(torch, x), x, gy)

    kernel(f"{name}, forward and backward", bytes=bytes)(make)


IMAGES = 16 * 64 * 56 * 56 * 4


def images(torch: Any) -> Any:
    return torch.randn(16, 64, 56, 56)


def normalize(torch: Any, x: Any) -> Any:
    ones = torch.ones(64)
    return torch.nn.functional.batch_norm(x, None, None, ones, ones, training=True)


def pool(torch: Any, x: Any) -> Any:
    return torch.nn.functional.max_pool2d(x, 3, 2, 1)


unary("batch_norm, training", 2 * IMAGES, normalize, of=images)
training("batch_norm, training", 5 * IMAGES, normalize)
unary("max_pool2d, 3 x 3 stride 2", IMAGES * 5 // 4, pool, of=images)
# Where the maxima were is found on either way.
training("max_pool2d, 3 x 3 stride 2", IMAGES * 7 // 2, pool)

# --- elements ----------------------------------------------------------------------------------

unary("x + 1, fresh result", 32 * MEGA, lambda torch, x: x + 1)
unary("x.add_(1)", 32 * MEGA, lambda torch, x: x.add_(1))
binary(
    "add(x, y, out=)",
    48 * MEGA,
    lambda torch, x, y, z: torch.add(x, y, out=z),
    lambda torch: (*matrices(torch), torch.empty(2048, 2048)),
)
unary("relu", 32 * MEGA, lambda torch, x: torch.relu(x))
unary("clamp(-1, 1)", 32 * MEGA, lambda torch, x: x.clamp(-1, 1))
unary("exp", 32 * MEGA, lambda torch, x: x.exp())
unary(
    "x ** 2.5, positive",
    32 * MEGA,
    lambda torch, x: x**2.5,
    of=lambda torch: torch.rand(2048, 2048),
)
unary("x > 0", 20 * MEGA, lambda torch, x: x > 0)
unary("float to bfloat16", 24 * MEGA, lambda torch, x: x.bfloat16())
unary("float to int64", 48 * MEGA, lambda torch, x: x.long())
binary(
    "where",
    52 * MEGA,
    lambda torch, c, x, y: torch.where(c, x, y),
    lambda torch: (torch.rand(2048, 2048) > 0.5, *matrices(torch)),
)
binary(
    "masked_fill",
    36 * MEGA,
    lambda torch, x, m: x.masked_fill(m, 0.0),
    lambda torch: (torch.randn(2048, 2048), torch.rand(2048, 2048) > 0.5),
)
for _dtype in ("int32", "int64"):
    _size = 4 if _dtype == "int32" else 8
    binary(
        f"x // y, {_dtype}",
        3 * _size * MEGA,
        lambda torch, x, y: x // y,
        lambda torch, dtype=_dtype: (integers(torch, dtype), integers(torch, dtype, 1, 99)),
    )
    unary(
        f"x % 7, {_dtype}",
        2 * _size * MEGA,
        lambda torch, x: x % 7,
        of=lambda torch, dtype=_dtype: integers(torch, dtype),
    )


def special(function: str, dtype: str, item: int) -> None:
    """A function of a million numbers between 0 and 1."""

    def make(torch: Any) -> Run:
        x = torch.rand(MEGA, dtype=getattr(torch, dtype)) * 0.98 + 0.01
        call = getattr(torch, function)
        return lambda: call(x)

    kernel(f"{function}, 1M {'doubles' if item == 8 else 'floats'}", bytes=2 * item * MEGA)(make)


for _function in ("exp", "tanh", "erf", "erfc", "erfinv", "lgamma", "digamma"):
    special(_function, "float64", 8)
for _function in ("lgamma", "digamma", "erfinv", "erfc"):
    special(_function, "float32", 4)
unary(
    "x ** 2.5, 1M doubles",
    16 * MEGA,
    lambda torch, x: x**2.5,
    of=lambda torch: torch.rand(MEGA, dtype=torch.float64),
)

# --- layouts -----------------------------------------------------------------------------------

unary("x.t().contiguous()", 32 * MEGA, lambda torch, x: x.t().contiguous())
unary(
    "permute(0, 2, 3, 1).contiguous()",
    32 * MEGA,
    lambda torch, x: x.permute(0, 2, 3, 1).contiguous(),
    of=lambda torch: torch.randn(16, 64, 64, 64),
)
unary("x[::2].clone()", 16 * MEGA, lambda torch, x: x[::2].clone())
unary("x[:, ::2].clone()", 24 * MEGA, lambda torch, x: x[:, ::2].clone())
unary("x[:, ::2] + 1", 24 * MEGA, lambda torch, x: x[:, ::2] + 1)
unary("x.flip(1)", 32 * MEGA, lambda torch, x: x.flip(1))
binary("x + y.t()", 48 * MEGA, lambda torch, x, y: x + y.t(), matrices)
binary(
    "x[::2] + y.t(), 1000 x 1000",
    12_000_000,
    lambda torch, x, y: x[::2] + y.t(),
    lambda torch: (torch.randn(2000, 1000), torch.randn(1000, 1000)),
)
binary(
    "x + row",
    32 * MEGA,
    lambda torch, x, y: x + y,
    lambda torch: (torch.randn(2048, 2048), torch.randn(2048)),
)
binary(
    "x + column",
    32 * MEGA,
    lambda torch, x, y: x + y,
    lambda torch: (torch.randn(2048, 2048), torch.randn(2048, 1)),
)
unary("tril", 24 * MEGA, lambda torch, x: x.tril())
unary("roll(3, 1)", 32 * MEGA, lambda torch, x: x.roll(3, 1))
unary(
    "repeat_interleave(4, 1)",
    40 * MEGA,
    lambda torch, x: x.repeat_interleave(4, 1),
    of=lambda torch: torch.randn(1024, 2048),
)
binary("cat, dim 0", 64 * MEGA, lambda torch, x, y: torch.cat([x, y]), matrices)
binary("cat, dim 1", 64 * MEGA, lambda torch, x, y: torch.cat([x, y], 1), matrices)
binary("stack, last dim", 64 * MEGA, lambda torch, x, y: torch.stack([x, y], -1), matrices)

# --- reductions --------------------------------------------------------------------------------

unary("sum", 16 * MEGA, lambda torch, x: x.sum())
unary("sum(0)", 16 * MEGA, lambda torch, x: x.sum(0))
unary("sum(1)", 16 * MEGA, lambda torch, x: x.sum(1))
unary("sum, 1M floats", 4 * MEGA, lambda torch, x: x.sum(), of=lambda torch: torch.randn(MEGA))
unary(
    "sum(0), 1000 x 1000",
    4_000_000,
    lambda torch, x: x.sum(0),
    of=lambda torch: torch.randn(1000, 1000),
)
unary("mean(1)", 16 * MEGA, lambda torch, x: x.mean(1))
unary("max", 16 * MEGA, lambda torch, x: x.max())
unary("max(1)", 16 * MEGA, lambda torch, x: x.max(1))
unary("argmax(1)", 16 * MEGA, lambda torch, x: x.argmax(1))
unary("argmax(0)", 16 * MEGA, lambda torch, x: x.argmax(0))
unary("var(1)", 16 * MEGA, lambda torch, x: x.var(1))
unary("norm", 16 * MEGA, lambda torch, x: x.norm())
unary("logsumexp(1)", 16 * MEGA, lambda torch, x: x.logsumexp(1))
unary("cumsum(1)", 32 * MEGA, lambda torch, x: x.cumsum(1))
unary("cumsum(0)", 32 * MEGA, lambda torch, x: x.cumsum(0))
unary(
    "any",
    4 * MEGA,
    lambda torch, x: x.any(),
    of=lambda torch: torch.zeros(2048, 2048, dtype=torch.bool),
)
unary("count_nonzero", 16 * MEGA, lambda torch, x: x.count_nonzero())

# --- layers ------------------------------------------------------------------------------------


def square(size: int) -> Callable[[Any], Any]:
    return lambda torch: torch.randn(size, size)


for _size in (1000, 2048):
    unary(
        f"softmax(1), {_size} x {_size}",
        8 * _size * _size,
        lambda torch, x: torch.softmax(x, 1),
        of=square(_size),
    )
    unary(
        f"log_softmax(1), {_size} x {_size}",
        8 * _size * _size,
        lambda torch, x: torch.log_softmax(x, 1),
        of=square(_size),
    )


def layer(
    name: str,
    bytes: tuple[int, int],
    call: Callable[..., Any],
    of: Callable[..., Any],
    wanted: int = 1,
) -> None:
    """call(torch, *tensors) forward, and with its backward to the first `wanted` tensors; `bytes`
    of the one and of both together."""

    def forward(torch: Any) -> Run:
        tensors = of(torch)
        return lambda: call(torch, *tensors)

    def both(torch: Any) -> Run:
        tensors = of(torch)
        inputs = [x.requires_grad_() for x in tensors[:wanted]]
        gy = torch.randn_like(call(torch, *tensors).detach())
        return lambda: torch.autograd.grad(call(torch, *tensors), inputs, gy)

    kernel(name, bytes=bytes[0])(forward)
    kernel(f"{name}, forward and backward", bytes=bytes[1])(both)


# Bytes of both: forward reads x and writes y, backward reads gy and what it needs of x or y and
# writes gx.
layer(
    "layer_norm, 2048 x 2048",
    (32 * MEGA, 80 * MEGA),
    lambda torch, x, w, b: torch.nn.functional.layer_norm(x, (2048,), w, b),
    lambda torch: (torch.randn(2048, 2048), torch.ones(2048), torch.zeros(2048)),
    wanted=3,
)
layer(
    "cross_entropy, 8192 x 1000",
    (32_768_000, 98_304_000),
    lambda torch, x, target: torch.nn.functional.cross_entropy(x, target),
    lambda torch: (torch.randn(8192, 1000), torch.randint(0, 1000, (8192,))),
)
layer(
    "gelu",
    (32 * MEGA, 80 * MEGA),
    lambda torch, x: torch.nn.functional.gelu(x),
    lambda torch: (torch.randn(2048, 2048),),
)
layer(
    "relu of a graph",
    (32 * MEGA, 80 * MEGA),
    lambda torch, x: torch.relu(x),
    lambda torch: (torch.randn(2048, 2048),),
)
layer(
    "dropout in training",
    (32 * MEGA, 68 * MEGA),
    lambda torch, x: torch.nn.functional.dropout(x, 0.1),
    lambda torch: (torch.randn(2048, 2048),),
)
layer(
    "embedding, 4096 rows of 256",
    (8 * MEGA, 8 * MEGA + 50_000 * 1024 + 8 * MEGA),
    lambda torch, w, i: torch.nn.functional.embedding(i, w),
    lambda torch: (torch.randn(50_000, 256), torch.randint(0, 50_000, (4096,))),
)
for _mode in ("bilinear", "bicubic"):
    layer(
        f"interpolate by 2, {_mode}",
        (20 * MEGA, 40 * MEGA),
        lambda torch, x, mode=_mode: torch.nn.functional.interpolate(x, scale_factor=2, mode=mode),
        lambda torch: (torch.randn(4, 16, 128, 128),),
    )

# --- order and search --------------------------------------------------------------------------

unary("sort, 1M floats", None, lambda torch, x: x.sort(), of=lambda torch: torch.randn(MEGA))
unary(
    "sort, 10000 x 100", None, lambda torch, x: x.sort(), of=lambda torch: torch.randn(10_000, 100)
)
unary(
    "argsort, 1M int64",
    None,
    lambda torch, x: x.argsort(),
    of=lambda torch: torch.randint(0, 1 << 40, (MEGA,)),
)
unary(
    "argsort, 1M int64 below 1000",
    None,
    lambda torch, x: x.argsort(),
    of=lambda torch: torch.randint(0, 1000, (MEGA,)),
)
unary(
    "topk(5), 1000 x 1000",
    4_000_000,
    lambda torch, x: x.topk(5),
    of=lambda torch: torch.randn(1000, 1000),
)
unary(
    "topk(5), 10000 x 100",
    4_000_000,
    lambda torch, x: x.topk(5),
    of=lambda torch: torch.randn(10_000, 100),
)
unary(
    "topk(2), 100000 x 8",
    3_200_000,
    lambda torch, x: x.topk(2),
    of=lambda torch: torch.randn(100_000, 8),
)
unary(
    "unique, 1M int64",
    None,
    lambda torch, x: x.unique(),
    of=lambda torch: torch.randint(0, 10_000, (MEGA,)),
)
unary("nonzero", None, lambda torch, x: x.nonzero(), of=lambda torch: torch.rand(2048, 2048) > 0.9)
unary(
    "where(cond)",
    None,
    lambda torch, x: torch.where(x),
    of=lambda torch: torch.rand(2048, 2048) > 0.9,
)
binary(
    "x[mask]",
    None,
    lambda torch, x, m: x[m],
    lambda torch: (torch.randn(2048, 2048), torch.rand(2048, 2048) > 0.5),
)
binary(
    "searchsorted, 1M in 1000",
    None,
    lambda torch, b, x: torch.searchsorted(b, x),
    lambda torch: (torch.randn(1000).sort()[0], torch.randn(MEGA)),
)
unary(
    "bincount, 1M",
    8 * MEGA,
    lambda torch, x: torch.bincount(x, minlength=1000),
    of=lambda torch: torch.randint(0, 1000, (MEGA,)),
)

unary("median(1)", None, lambda torch, x: x.median(1), of=lambda torch: torch.randn(1000, 1000))
unary(
    "kthvalue(100)",
    None,
    lambda torch, x: x.kthvalue(100, 1),
    of=lambda torch: torch.randn(1000, 1000),
)
unary(
    "unique_consecutive, 1M int64",
    None,
    lambda torch, x: x.unique_consecutive(),
    of=lambda torch: torch.randint(0, 10_000, (MEGA,)).sort()[0],
)
binary(
    "isin, 1M in 1000",
    None,
    lambda torch, x, y: torch.isin(x, y),
    lambda torch: (torch.randint(0, 10_000, (MEGA,)), torch.randint(0, 10_000, (1000,))),
)
unary(
    "histc, 1M in 100",
    4 * MEGA,
    lambda torch, x: torch.histc(x, 100, -3, 3),
    of=lambda torch: torch.randn(MEGA),
)

# --- indexing ----------------------------------------------------------------------------------

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


def grid_sample(name: str, *sizes: int, backward: bool = False) -> None:
    """A bilinear warp of images [n, c, h, w]."""

    def make(torch: Any) -> Run:
        x, grid = torch.randn(*sizes), torch.rand(sizes[0], *sizes[2:], 2) * 2 - 1
        sample = torch.nn.functional.grid_sample
        if not backward:
            return lambda: sample(x, grid, align_corners=False)
        inputs, gy = [x.requires_grad_(), grid.requires_grad_()], torch.randn(*sizes)
        return lambda: torch.autograd.grad(sample(x, grid, align_corners=False), inputs, gy)

    kernel(name)(make)


grid_sample("grid_sample, 8 x 3 x 224 x 224", 8, 3, 224, 224)
grid_sample("grid_sample, 4 x 64 x 56 x 56", 4, 64, 56, 56)
grid_sample("grid_sample, forward and backward", 4, 16, 56, 56, backward=True)


def embedding_bag(name: str, width: int, backward: bool = False) -> None:
    """2048 bags of 20 rows of a table with 100,000."""

    def make(torch: Any) -> Run:
        weight, rows = torch.randn(100_000, width), torch.randint(0, 100_000, (2048, 20))
        bag = torch.nn.functional.embedding_bag
        if not backward:
            return lambda: bag(rows, weight, mode="sum")
        weight.requires_grad_()
        gy = torch.randn(2048, width)
        return lambda: torch.autograd.grad(bag(rows, weight, mode="mean"), weight, gy)

    kernel(name)(make)


embedding_bag("embedding_bag, width 64", 64)
embedding_bag("embedding_bag, width 16", 16)
embedding_bag("embedding_bag, forward and backward", 64, backward=True)

# --- random numbers ----------------------------------------------------------------------------


@kernel("rand, 1M")
def rand(torch: Any) -> Run:
    return lambda: torch.rand(MEGA)


@kernel("randn, 1M")
def randn(torch: Any) -> Run:
    return lambda: torch.randn(MEGA)


@kernel("randint, 1M")
def randint(torch: Any) -> Run:
    return lambda: torch.randint(0, 100, (MEGA,))


@kernel("randperm, 1M")
def randperm(torch: Any) -> Run:
    return lambda: torch.randperm(MEGA)


@kernel("randperm, 60000")
def small_randperm(torch: Any) -> Run:
    return lambda: torch.randperm(60_000)


@kernel("bernoulli, 1M")
def bernoulli(torch: Any) -> Run:
    x = torch.rand(MEGA)
    return lambda: torch.bernoulli(x)


@kernel("arange, 1M int64", bytes=8 * MEGA)
def arange(torch: Any) -> Run:
    return lambda: torch.arange(MEGA)


@kernel("zeros, 16 MB", bytes=16 * MEGA)
def zeros(torch: Any) -> Run:
    return lambda: torch.zeros(2048, 2048)


# --- optimizers --------------------------------------------------------------------------------


@kernel("AdamW step, 25 MB of weights", bytes=7 * 25 * MEGA)
def adamw(torch: Any) -> Run:
    weights = [torch.randn(512, 512, requires_grad=True) for _ in range(25)]
    for w in weights:
        w.grad = torch.randn(512, 512)
    return torch.optim.AdamW(weights, lr=1e-4).step


# --- pairs of cases ----------------------------------------------------------------------------

# name: two cases and the most that the first may take of the second's time.
PAIRS: dict[str, tuple[str, str, float]] = {
    "causal attention over full": (
        "causal attention, 12 x 512 x 64", "attention, 12 x 512 x 64", 0.6,
    ),
    "causal attention over full, forward and backward": (
        "causal attention, forward and backward", "attention, forward and backward", 0.6,
    ),
    "GRU over LSTM": (
        "GRU, 24 x 16 x 512, forward and backward", "LSTM, 24 x 16 x 512, forward and backward", 1,
    ),
}  # fmt: skip
