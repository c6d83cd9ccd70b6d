"""The operators that torchvision has compiled, by their definitions: loops over pixels in NumPy."""

import math

import numpy as np
import pytest

import taeda
import taeda._libraries.torchvision
from taeda import ops
from taeda._libraries import supplies
from taeda._libraries.torchvision import boxes

OPS = ops.torchvision
RNG = np.random.default_rng(0)
SIZE = (7, 9)
# ordinary, fractional, beyond the image, without area, inverted, outside
ROIS = np.array(
    [
        [0, 0, 0, 5, 4],
        [1, 1.3, 2.6, 7.2, 5.1],
        [0, -3, -2, 20, 15],
        [1, 3, 3, 3, 3],
        [0, 5, 4, 2, 1],
        [1, 30, 30, 40, 40],
    ]
)


def _bilinear(image, y, x):
    """The value between pixels; 0 more than one pixel outside the image."""
    height, width = image.shape
    if not (-1 <= y <= height and -1 <= x <= width):
        return 0.0
    y, x = min(max(y, 0), height - 1), min(max(x, 0), width - 1)
    y0, x0 = int(y), int(x)
    y1, x1 = min(y0 + 1, height - 1), min(x0 + 1, width - 1)
    dy, dx = y - y0, x - x0
    top = image[y0, x0] * (1 - dx) + image[y0, x1] * dx
    return top * (1 - dy) + (image[y1, x0] * (1 - dx) + image[y1, x1] * dx) * dy


def _align(x, rois, scale, bins, ratio, aligned, channel, empty):
    """Means of samples; `channel(c, p, q)` is the one that an element of the result reads."""
    channels = x.shape[1] if channel(1, 0, 0) == 1 else x.shape[1] // (bins[0] * bins[1])
    out = np.zeros((len(rois), channels, *bins))
    for k, (image, x1, y1, x2, y2) in enumerate(rois):
        shift = 0.5 if aligned else 0
        (top, left), (h, w) = (
            (y1 * scale - shift, x1 * scale - shift),
            ((y2 - y1) * scale, (x2 - x1) * scale),
        )
        if not aligned:
            h, w = max(h, 1), max(w, 1)
        ny, nx = (ratio, ratio) if ratio > 0 else (math.ceil(h / bins[0]), math.ceil(w / bins[1]))
        for c, p, q in np.ndindex(out.shape[1:]):
            values = [
                _bilinear(
                    x[int(image), channel(c, p, q)],
                    top + (p + (i + 0.5) / ny) * h / bins[0],
                    left + (q + (j + 0.5) / nx) * w / bins[1],
                )
                for i in range(ny)
                for j in range(nx)
            ]
            out[k, c, p, q] = sum(values) / (nx * ny) if values else (empty if nx * ny == 0 else 0)
    return out


def _away(value):
    return int(math.floor(abs(value) + 0.5) * (1 if value >= 0 else -1))


def _bins(start, length, bins, last):
    step = length / bins
    return [
        range(
            min(max(math.floor(i * step) + start, 0), last),
            min(max(math.ceil((i + 1) * step) + start, 0), last),
        )
        for i in range(bins)
    ]


@pytest.mark.parametrize("ratio", [-1, 2])
@pytest.mark.parametrize("aligned", [False, True])
@pytest.mark.parametrize("scale", [1.0, 0.5])
def test_roi_align(ratio, aligned, scale):
    x = RNG.normal(size=(2, 3, *SIZE))
    expected = _align(x, ROIS, scale, (3, 2), ratio, aligned, lambda c, p, q: c, 0)
    args = (taeda.tensor(ROIS), scale, 3, 2, ratio, aligned)
    found = OPS.roi_align(taeda.tensor(x), *args)
    np.testing.assert_allclose(found.numpy(), expected, atol=1e-12)
    # the backward is the adjoint of the linear map x -> found
    grad = taeda.tensor(RNG.normal(size=expected.shape))
    back = OPS._roi_align_backward(grad, args[0], scale, 3, 2, 2, 3, *SIZE, ratio, aligned)
    assert math.isclose(float((back.numpy() * x).sum()), float((grad.numpy() * expected).sum()))


@pytest.mark.parametrize("ratio", [-1, 2])
def test_ps_roi_align(ratio):
    x = RNG.normal(size=(2, 12, *SIZE))
    channel = lambda c, p, q: (c * 3 + p) * 2 + q  # noqa: E731
    expected = _align(x, ROIS, 1.0, (3, 2), ratio, True, channel, np.nan)
    rois = taeda.tensor(ROIS)
    found, mapping = OPS.ps_roi_align(taeda.tensor(x), rois, 1.0, 3, 2, ratio)
    np.testing.assert_allclose(found.numpy(), expected, atol=1e-12)
    assert mapping.dtype == taeda.int32
    assert mapping[0].flatten().tolist() == list(range(12))
    grad = RNG.normal(size=expected.shape)
    back = OPS._ps_roi_align_backward(
        taeda.tensor(grad), rois, mapping, 1.0, 3, 2, ratio, 2, 12, *SIZE
    )
    assert math.isclose(float((back.numpy() * x).sum()), float(np.nansum(grad * expected)))


@pytest.mark.parametrize("scale", [1.0, 0.5])
def test_roi_pool(scale):
    x = np.round(RNG.normal(size=(2, 3, *SIZE)), 1)  # with ties, of which the first counts
    out, index = np.zeros((len(ROIS), 3, 3, 2)), np.full((len(ROIS), 3, 3, 2), -1)
    for k, (image, *corners) in enumerate(ROIS):
        x1, y1, x2, y2 = (_away(c * scale) for c in corners)
        rows = _bins(y1, max(y2 - y1 + 1, 1), 3, SIZE[0])
        columns = _bins(x1, max(x2 - x1 + 1, 1), 2, SIZE[1])
        for c, p, q in np.ndindex(3, 3, 2):
            pixels = [(i, j) for i in rows[p] for j in columns[q]]
            if pixels:
                i, j = max(pixels, key=lambda at: (x[int(image), c][at], -at[0], -at[1]))
                out[k, c, p, q], index[k, c, p, q] = x[int(image), c, i, j], i * SIZE[1] + j
    found, argmax = OPS.roi_pool(taeda.tensor(x), taeda.tensor(ROIS), scale, 3, 2)
    np.testing.assert_array_equal(found.numpy(), out)
    np.testing.assert_array_equal(argmax.numpy(), index)
    grad = RNG.normal(size=out.shape)
    expected = np.zeros((2, 3, SIZE[0] * SIZE[1]))
    for at in np.ndindex(out.shape):
        if index[at] >= 0:
            expected[int(ROIS[at[0], 0]), at[1], index[at]] += grad[at]
    back = OPS._roi_pool_backward(
        taeda.tensor(grad), taeda.tensor(ROIS), argmax, scale, 3, 2, 2, 3, *SIZE
    )
    np.testing.assert_allclose(back.numpy().reshape(expected.shape), expected, atol=1e-12)


def test_ps_roi_pool():
    x = RNG.normal(size=(2, 12, *SIZE))
    out = np.zeros((len(ROIS), 2, 3, 2))
    for k, (image, *corners) in enumerate(ROIS):
        x1, y1, x2, y2 = (_away(c) for c in corners)
        rows = _bins(y1, max(y2 - y1, 1), 3, SIZE[0] - 1)
        columns = _bins(x1, max(x2 - x1, 1), 2, SIZE[1] - 1)
        for c, p, q in np.ndindex(2, 3, 2):
            part = x[int(image), (c * 3 + p) * 2 + q][np.ix_(list(rows[p]), list(columns[q]))]
            out[k, c, p, q] = part.mean() if part.size else 0
    found, _ = OPS.ps_roi_pool(taeda.tensor(x), taeda.tensor(ROIS), 1.0, 3, 2)
    np.testing.assert_allclose(found.numpy(), out, atol=1e-12)


def test_ps_roi_pool_backward():
    """A region within the image: there backward is the adjoint."""
    x, rois = RNG.normal(size=(1, 12, *SIZE)), taeda.tensor([[0.0, 1, 1, 6, 5]]).double()
    found, mapping = OPS.ps_roi_pool(taeda.tensor(x), rois, 1.0, 3, 2)
    grad = taeda.tensor(RNG.normal(size=tuple(found.shape)))
    back = OPS._ps_roi_pool_backward(grad, rois, mapping, 1.0, 3, 2, 1, 12, *SIZE)
    assert math.isclose(float((back.numpy() * x).sum()), float((grad * found).sum()))


def _convolved(x, weight, offset, mask, bias, stride, padding, dilation, groups, offset_groups):
    n, channels, height, width = x.shape
    filters, each, kh, kw = weight.shape
    oh, ow = offset.shape[2:]
    out = np.zeros((n, filters, oh, ow))
    for i, f, r, s in np.ndindex(out.shape):
        total = bias[f]
        for c, a, b in np.ndindex(each, kh, kw):
            channel = f // (filters // groups) * each + c
            tap = channel // (channels // offset_groups) * kh * kw + a * kw + b
            y = r * stride[0] - padding[0] + a * dilation[0] + offset[i, 2 * tap, r, s]
            z = s * stride[1] - padding[1] + b * dilation[1] + offset[i, 2 * tap + 1, r, s]
            value = 0.0
            for row in (math.floor(y), math.floor(y) + 1):
                for column in (math.floor(z), math.floor(z) + 1):
                    if 0 <= row < height and 0 <= column < width:
                        near = (1 - abs(y - row)) * (1 - abs(z - column))
                        value += near * x[i, channel, row, column]
            total += weight[f, c, a, b] * value * (1 if mask is None else mask[i, tap, r, s])
        out[i, f, r, s] = total
    return out


@pytest.mark.parametrize(
    "groups, offset_groups, masked", [(1, 1, True), (2, 3, True), (3, 2, False)]
)
def test_deform_conv2d(groups, offset_groups, masked):
    stride, padding, dilation = (2, 1), (1, 0), (2, 1)
    x, weight = RNG.normal(size=(2, 6, 7, 6)), RNG.normal(size=(6, 6 // groups, 3, 2))
    offset = RNG.normal(size=(2, 2 * offset_groups * 6, 3, 5)) * 2
    mask = RNG.uniform(size=(2, offset_groups * 6, 3, 5)) if masked else np.zeros((2, 1))
    bias = RNG.normal(size=6)
    numbers = (*stride, *padding, *dilation, groups, offset_groups, masked)
    given = (x, weight, offset, mask, bias)

    def reference(*arrays):
        a, w, o, m, b = arrays
        m = m if masked else None
        return _convolved(a, w, o, m, b, stride, padding, dilation, groups, offset_groups)

    tensors = [taeda.tensor(a) for a in given]
    expected = reference(*given)
    found = OPS.deform_conv2d(*tensors, *numbers)
    np.testing.assert_allclose(found.numpy(), expected, atol=1e-12)
    grad = RNG.normal(size=expected.shape)
    grads = OPS._deform_conv2d_backward(taeda.tensor(grad), *tensors, *numbers)
    for i, own in enumerate(grads):
        step = RNG.normal(size=given[i].shape) * 1e-6
        ends = [
            reference(*(a + sign * step if j == i else a for j, a in enumerate(given)))
            for sign in (1, -1)
        ]
        slope = ((ends[0] - ends[1]) / 2 * grad).sum()
        assert math.isclose((own.numpy() * step).sum(), slope, rel_tol=1e-5, abs_tol=1e-9)


def test_deform_conv2d_errors():
    x = [taeda.zeros(s) for s in ((1, 4, 5, 5), (2, 4, 3, 3), (1, 17, 3, 3), (1, 1), (2,))]
    with pytest.raises(RuntimeError, match=r"offset\.shape is not valid"):
        OPS.deform_conv2d(*x, 1, 1, 0, 0, 1, 1, 1, 1, False)


def test_nms(monkeypatch):
    monkeypatch.setattr(boxes, "_BLOCK", 16)
    low = RNG.uniform(0, 20, size=(150, 2))
    corners = np.concatenate([low, low + RNG.uniform(1, 10, size=(150, 2))], 1)
    scores = np.round(RNG.uniform(size=150), 2)  # with equal ones, which stay in order
    for threshold in (0.05, 0.3, 0.8):
        kept = []
        for i in np.argsort(-scores, kind="stable"):
            for k in kept:
                high, start = (
                    np.minimum(corners[i, 2:], corners[k, 2:]),
                    np.maximum(corners[i, :2], corners[k, :2]),
                )
                common = np.prod(np.maximum(high - start, 0))
                areas = [np.prod(corners[j, 2:] - corners[j, :2]) for j in (i, k)]
                if common / (sum(areas) - common) > threshold:
                    break
            else:
                kept.append(i)
        found = OPS.nms(taeda.tensor(corners), taeda.tensor(scores), threshold)
        assert found.dtype == taeda.int64
        assert found.tolist() == kept


def test_nms_of_none_and_errors():
    assert OPS.nms(taeda.zeros(0, 4), taeda.zeros(0), 0.5).tolist() == []
    with pytest.raises(RuntimeError, match="boxes should be a 2d tensor, got 1D"):
        OPS.nms(taeda.zeros(4), taeda.zeros(1), 0.5)
    with pytest.raises(RuntimeError, match="same number of elements in dimension 0, got 2 and 1"):
        OPS.nms(taeda.zeros(2, 4), taeda.zeros(1), 0.5)


def test_box_iou_rotated():
    """Areas in common by counting points of a fine grid, and exact ones of simple boxes."""
    given = np.concatenate(
        [RNG.uniform(3, 7, (6, 2)), RNG.uniform(1, 6, (6, 2)), RNG.uniform(-180, 180, (6, 1))], 1
    )
    line = (np.arange(900) + 0.5) / 60 - 2.5
    grid = np.stack(np.meshgrid(line, line, indexing="ij"), -1)

    def inside(box):
        angle = math.radians(box[4])
        turn = np.array([[math.cos(angle), math.sin(angle)], [-math.sin(angle), math.cos(angle)]])
        along = (grid - box[:2]) @ turn.T
        return (np.abs(along) <= box[2:4] / 2).all(-1)

    # counter-clockwise on the screen, whose y points down
    masks = [inside(box) for box in given * np.array([1, 1, 1, 1, -1])]
    expected = [[(a & b).sum() / (a | b).sum() for b in masks] for a in masks]
    found = OPS.box_iou_rotated(taeda.tensor(given), taeda.tensor(given))
    assert found.dtype == taeda.float32
    np.testing.assert_allclose(found.numpy(), expected, atol=2e-2)
    simple = taeda.tensor(
        [[5.0, 5, 4, 4, 0], [5, 5, 4, 4, 90], [5, 5, 2, 2, 0], [7, 5, 4, 4, 0], [5, 5, 0, 0, 0]]
    )
    exact = [1, 1, 1 / 4, 1 / 3, 0]
    np.testing.assert_allclose(OPS.box_iou_rotated(simple[:1], simple)[0].numpy(), exact, atol=1e-6)


def test_rois_are_checked():
    x = taeda.zeros(1, 4, 5, 5)
    with pytest.raises(RuntimeError, match=r"rois must have shape as Tensor\[K, 5\]"):
        OPS.roi_align(x, taeda.zeros(2, 4), 1.0, 2, 2, -1, False)
    with pytest.raises(RuntimeError, match="to have the same type as tensor for rois"):
        OPS.roi_pool(x, taeda.zeros(2, 5).double(), 1.0, 2, 2)
    with pytest.raises(IndexError, match="images"):
        OPS.roi_align(x, taeda.ones(2, 5), 1.0, 2, 2, -1, False)
    with pytest.raises(RuntimeError, match="multiple of pooling height"):
        OPS.ps_roi_pool(x, taeda.zeros(2, 5), 1.0, 3, 2)


def test_what_is_supplied():
    assert supplies("/packages/torchvision/_C.so")
    assert not supplies("/packages/torchvision/image.so")
    with pytest.raises(OSError, match="missing"):
        ops.load_library("/missing/_C.so")


def test_kernels_for_absent_devices_are_accepted():
    library = taeda.library.Library("torchvision", "IMPL")
    for key in ("AutocastCUDA", "AutocastXPU", "PrivateUse1", "QuantizedCPU"):
        library.impl("nms", lambda *args: pytest.fail("called"), key)
    assert OPS.nms(taeda.zeros(0, 4), taeda.zeros(0), 0.5).numel() == 0
    with pytest.raises(RuntimeError, match="could not parse dispatch key: Nonsense"):
        library.impl("nms", lambda *args: None, "Nonsense")
