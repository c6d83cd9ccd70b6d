"""cross_entropy, binary_cross_entropy, running statistics and counters on a simulated device."""

import itertools

import pytest
from tests.device.simulated.by_kernels import FLOATING, agree, values, with_gradients

import taeda
import taeda.nn.functional as F
from taeda import _C


@pytest.fixture(autouse=True)
def no_fallback():
    _C._set_fallback("refuse")
    yield
    _C._set_fallback("warn")


def classes(n, below, seed=3):
    return (values("int64", (n,), seed) + 5) % below


@pytest.mark.parametrize("reduction", ["mean", "sum", "none"])
def test_cross_entropy_of_classes(reduction):
    for dtype, smoothing in itertools.product(FLOATING, (0.0, 0.3)):
        for n, c in ((5, 4), (3, 40), (2, 1500), (1, 1)):
            x, t, w = values(dtype, (n, c)) * 3, classes(n, c), values(dtype, (c,), 1).abs() + 0.1
            for weight, ignored in ((None, -100), (w, int(t[0]))):
                if n == 1 and weight is not None and reduction == "mean":
                    continue  # no row counts: 0 / 0

                def call(x, t, *w, i=ignored, s=smoothing):
                    return F.cross_entropy(
                        x, t, *w, ignore_index=i, reduction=reduction, label_smoothing=s
                    )

                given = [x, t] if weight is None else [x, t, weight.detach()]
                agree(
                    lambda x, t, *w: with_gradients(lambda x: call(x, t, *w), x),
                    *given,
                    what=f"{dtype} {smoothing} {n} {c} {ignored}",
                )


def test_cross_entropy_of_images_and_layouts():
    x, t = values("float32", (2, 3, 4, 5)), classes(40, 3).reshape(2, 4, 5)
    for layout in (
        x,
        x.contiguous(memory_format=taeda.channels_last),
        x.transpose(2, 3).contiguous().transpose(2, 3),
    ):
        agree(lambda x, t: with_gradients(lambda x: F.cross_entropy(x, t), x), layout, t)
    column = values("float32", (8, 5)).t()[:, ::2]
    agree(lambda x, t: with_gradients(lambda x: F.cross_entropy(x, t), x), column, classes(5, 4))
    agree(lambda x, t: F.cross_entropy(x, t[0]), values("float32", (4,)), taeda.tensor([2]))


def test_cross_entropy_of_no_rows_and_of_infinite_scores():
    empty = taeda.zeros(0, 3), taeda.zeros(0, dtype=taeda.int64)
    for reduction in ("mean", "sum", "none"):
        agree(lambda x, t, r=reduction: F.cross_entropy(x, t, reduction=r), *empty)
    inf = float("inf")
    x = taeda.tensor([[1.0, inf], [-inf, 0.0], [float("nan"), 0.0], [-inf, -inf]])
    t = taeda.tensor([0, 1, 0, 0])
    agree(lambda x, t: F.cross_entropy(x, t, reduction="none"), x, t)


def test_a_class_out_of_bounds_is_raised_when_the_host_waits():
    x = values("float32", (3, 4)).to("cuda").requires_grad_()
    for bad in (4, -1, 100):
        loss = F.cross_entropy(x, taeda.tensor([0, bad, 1], device="cuda"), reduction="none")
        with pytest.raises(IndexError, match=f"Target {bad} is out of bounds"):
            loss.tolist()
        assert F.cross_entropy(x, taeda.tensor([0, 1, 1], device="cuda")).item() > 0
    taeda.cuda.synchronize()


def test_losses_wait_for_nothing(simulator, late):
    x = values("float32", (3, 4)).to("cuda").requires_grad_()
    t = taeda.tensor([0, 3, 1], device="cuda")

    def step():
        F.cross_entropy(x, t).backward()
        F.binary_cross_entropy(x.sigmoid(), x.sigmoid().detach()).backward()
        F.max_pool2d(x[None], 2).sum().backward()
        return simulator.count("synchronizations")

    step()  # kernels are loaded, and memory is allocated
    before = step()
    assert step() == before
    assert bool(x.grad.isfinite().all())


def test_binary_cross_entropy():
    for dtype in FLOATING:
        x, t = values(dtype, (3, 70)).sigmoid(), values(dtype, (3, 70), 1).sigmoid()
        for laid_out in (x, x.t().contiguous().t()):
            agree(
                lambda x, t: with_gradients(lambda x, t: F.binary_cross_entropy(x, t), x, t),
                laid_out,
                t,
                what=dtype,
            )
    edges = taeda.tensor([0.0, 1.0, 0.0, 1.0]), taeda.tensor([0.0, 1.0, 1.0, 0.0])
    agree(lambda x, t: F.binary_cross_entropy(x, t, reduction="none"), *edges)
    agree(lambda x: F.binary_cross_entropy(x, x, reduction="sum"), taeda.zeros(0))


def test_what_is_no_probability_is_raised_later():
    for bad in (1.5, -0.1, float("nan")):
        x = taeda.tensor([0.5, bad], device="cuda")
        F.binary_cross_entropy(x, taeda.ones(2, device="cuda"))
        with pytest.raises(RuntimeError, match="between 0 and 1"):
            taeda.cuda.synchronize()
    taeda.cuda.synchronize()


def test_running_statistics_follow_the_batches():
    for dtype in FLOATING:
        for stride in (1, 2):
            x = values(dtype, (4, 3, 5))

            def statistics(x, d=dtype, s=stride):
                t = getattr(taeda, d)
                mean = taeda.zeros(3 * s, dtype=t, device=x.device)[::s]
                var = taeda.ones(3 * s, dtype=t, device=x.device)[::s]
                F.batch_norm(x, mean, var, training=True, momentum=0.3)
                return mean.clone(), var.clone()

            agree(statistics, x, what=f"{dtype} {stride}")


def test_mantissas_and_exponents():
    for dtype in FLOATING:
        x = values(dtype, (3, 40)) * 100
        agree(lambda x: taeda.frexp(x), x, what=dtype)
        agree(lambda x: taeda.frexp(x), x.t(), what=dtype)
    inf = float("inf")
    special = taeda.tensor([0.0, -0.0, inf, -inf, float("nan"), 1e-42, -3e-45, 8.0])
    agree(lambda x: taeda.frexp(x), special)
    agree(lambda x: taeda.frexp(x), taeda.zeros(0, 3))


def test_the_mean_of_what_weighs_nothing():
    x, target, weight = taeda.zeros(2, 2), taeda.tensor([0, 0]), taeda.tensor([0.0, 1.0])
    for smoothing in (0.0, 0.1):
        agree(
            lambda x, t, w, s=smoothing: F.cross_entropy(x, t, w, label_smoothing=s),
            x, target, weight,
        )  # fmt: skip


def test_targets_that_are_no_probabilities_are_refused():
    with pytest.raises(RuntimeError, match="all elements of target should be between 0 and 1"):
        F.binary_cross_entropy(taeda.tensor([0.5]).cuda(), taeda.tensor([2.0]).cuda()).item()
