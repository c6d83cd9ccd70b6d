"""Operators on boxes: torchvision's nms and box_iou_rotated."""

from __future__ import annotations

import math

import taeda as torch
from taeda import Tensor

_BLOCK = 512  # boxes that nms compares among each other at once


def _check_nms(boxes: Tensor, scores: Tensor) -> None:
    if boxes.dim() != 2:
        raise RuntimeError(f"boxes should be a 2d tensor, got {boxes.dim()}D")
    if boxes.size(1) != 4:
        raise RuntimeError(f"boxes should have 4 elements in dimension 1, got {boxes.size(1)}")
    if scores.dim() != 1:
        raise RuntimeError(f"scores should be a 1d tensor, got {scores.dim()}D")
    if len(boxes) != len(scores):
        raise RuntimeError(
            "boxes and scores should have same number of elements in dimension 0, got "
            f"{len(boxes)} and {len(scores)}"
        )
    if boxes.dtype != scores.dtype:
        raise RuntimeError("dets should have the same type as scores")


def _overlap(a: Tensor, b: Tensor) -> Tensor:
    """Intersection over union of all boxes of a with all of b."""
    area_a, area_b = ((x[:, 2] - x[:, 0]) * (x[:, 3] - x[:, 1]) for x in (a, b))
    low = torch.maximum(a[:, None, :2], b[:, :2])
    high = torch.minimum(a[:, None, 2:], b[:, 2:])
    common = (high - low).clamp(min=0).prod(-1)
    return common / (area_a[:, None] + area_b - common)


def nms(boxes: Tensor, scores: Tensor, threshold: float) -> Tensor:
    """Indices of boxes that overlap none of higher score that is kept, by falling score.

    In a block of boxes, "kept are those that no kept one before them overlaps" has one solution;
    setting in what is known of the boxes finds it in as many steps as the longest chain of boxes
    has links that suppress each other.
    """
    _check_nms(boxes, scores)
    order = scores.argsort(descending=True, stable=True)
    boxes = boxes[order]
    chosen: list[Tensor] = []
    kept = boxes[:0]
    for start in range(0, len(boxes), _BLOCK):
        block = boxes[start : start + _BLOCK]
        free = ~(_overlap(block, kept) > threshold).any(1)
        suppresses = (_overlap(block, block) > threshold).triu(1)
        keep, before = free, None
        while before is None or not torch.equal(keep, before):
            before, keep = keep, free & ~(suppresses & keep[:, None]).any(0)
        kept = torch.cat([kept, block[keep]])
        chosen.append(order[start : start + _BLOCK][keep])
    return torch.cat(chosen) if chosen else order


def _corners(boxes: Tensor) -> Tensor:
    """The corners of boxes (centre, width, height, degrees), in order around: [..., 4, 2]."""
    x, y, w, h, degrees = boxes.unbind(-1)
    cos, sin = (degrees * (math.pi / 180)).cos() / 2, (degrees * (math.pi / 180)).sin() / 2
    ux, uy, vx, vy = cos * w, -sin * w, sin * h, cos * h
    signs = ((-1, -1), (1, -1), (1, 1), (-1, 1))
    points = [torch.stack([x + a * ux + b * vx, y + a * uy + b * vy], -1) for a, b in signs]
    return torch.stack(points, -2)


def _cross(a: Tensor, b: Tensor) -> Tensor:
    return a[..., 0] * b[..., 1] - a[..., 1] * b[..., 0]


def _within(points: Tensor, box: Tensor) -> Tensor:
    """Which points, [..., n, 2], lie in a box given by its corners, [..., 4, 2]."""
    to = points.unsqueeze(-2) - box.unsqueeze(-3)
    side = (box.roll(-1, -2) - box).unsqueeze(-3)
    inside = _cross(side, to)
    scale = side.square().sum(-1)
    return ((inside >= -1e-9 * scale).all(-1)) | ((inside <= 1e-9 * scale).all(-1))


def _crossings(a: Tensor, b: Tensor) -> tuple[Tensor, Tensor]:
    """Where sides of a meet sides of b, [..., 16, 2], and whether they do."""
    side_a, side_b = a.roll(-1, -2) - a, b.roll(-1, -2) - b
    along, across = side_a.unsqueeze(-2), side_b.unsqueeze(-3)
    gap = b.unsqueeze(-3) - a.unsqueeze(-2)
    turn = _cross(along, across)
    parallel = turn.abs() <= 1e-12 * (along.norm(dim=-1) * across.norm(dim=-1))
    turn = turn.where(~parallel, 1)
    t, u = _cross(gap, across) / turn, _cross(gap, along) / turn
    meets = ~parallel & (t >= 0) & (t <= 1) & (u >= 0) & (u <= 1)
    return (a.unsqueeze(-2) + t.unsqueeze(-1) * along).flatten(-3, -2), meets.flatten(-2)


def _common_area(a: Tensor, b: Tensor) -> Tensor:
    """The area that two boxes share: of the polygon around all points that both have."""
    met, meets = _crossings(a, b)
    points = torch.cat([a, b, met], -2)
    valid = torch.cat([_within(a, b), _within(b, a), meets], -1).unsqueeze(-1)
    count = valid.sum(-2, keepdim=True).clamp(min=1)
    around = (points - (points * valid).sum(-2, keepdim=True) / count) * valid
    angle = torch.atan2(around[..., 1], around[..., 0])
    order = angle.where(valid[..., 0], math.inf).argsort(-1)
    ring = around.gather(-2, order.unsqueeze(-1).expand_as(around))
    ring = ring.where(valid.gather(-2, order.unsqueeze(-1)), ring[..., :1, :])
    return _cross(ring, ring.roll(-1, -2)).sum(-1).abs() / 2


def box_iou_rotated(boxes1: Tensor, boxes2: Tensor) -> Tensor:
    """Intersection over union of rotated boxes (centre, width, height, degrees), all with all."""
    for boxes in (boxes1, boxes2):
        if boxes.dim() != 2 or boxes.size(1) != 5:
            raise RuntimeError(f"boxes should have shape as Tensor[N, 5], got {list(boxes.shape)}")
    a, b = boxes1.double(), boxes2.double()
    area_a, area_b = a[:, None, 2] * a[:, None, 3], b[:, 2] * b[:, 3]
    # relative to the first box's centre: small numbers lose less
    b = b.expand(len(a), *b.shape)
    shift = torch.nn.functional.pad(a[:, None, :2], (0, 3))
    shape = (len(a), b.size(1), 4, 2)
    first = _corners(a[:, None] - shift).expand(shape)
    common = _common_area(first, _corners(b - shift))
    found = common / (area_a + area_b - common)
    tiny = (area_a < 1e-14) | (area_b < 1e-14)
    return found.masked_fill(tiny, 0).to(torch.float32)
