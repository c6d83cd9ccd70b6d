"""Gradients of one's own, hooks, higher derivatives, forward mode, closures of optimizers."""

from __future__ import annotations

from typing import Any

import taeda as torch
from taeda import Tensor, nn
from taeda.autograd import Function
from taeda.autograd.function import FunctionCtx, once_differentiable


class Cube(Function):
    @staticmethod
    def forward(ctx: FunctionCtx, x: Tensor, scale: float = 1.0) -> Tensor:
        ctx.save_for_backward(x)
        ctx.scale = scale
        return scale * x**3

    @staticmethod
    def backward(ctx: FunctionCtx, gy: Tensor) -> tuple[Tensor | None, None]:
        (x,) = ctx.saved_tensors
        return 3 * ctx.scale * x**2 * gy if ctx.needs_input_grad[0] else None, None


class Step(Function):
    @staticmethod
    def forward(ctx: Any, x: Tensor) -> Tensor:
        return (x > 0).to(x.dtype)

    @staticmethod
    @once_differentiable
    def backward(ctx: Any, gy: Tensor) -> Tensor:
        return gy.clone()


def hooks() -> list[str]:
    seen: list[str] = []
    model = nn.Sequential(nn.Linear(3, 4), nn.Tanh(), nn.Linear(4, 1))

    def after(module: nn.Module, args: tuple[Any, ...], output: Tensor) -> None:
        seen.append(type(module).__name__)

    def double(grad: Tensor) -> Tensor:
        return 2 * grad

    handles = [layer.register_forward_hook(after) for layer in model]
    x = torch.randn(5, 3, requires_grad=True)
    y = model(x)
    handle = x.register_hook(double)
    y.sum().backward()
    handle.remove()
    for h in handles:
        h.remove()
    assert x.grad is not None
    seen.append(str(tuple(x.grad.shape)))
    for name, p in model.named_parameters():
        if p.grad is not None:
            seen.append(f"{name}: {p.grad.norm().item():.2f}")
            p.grad = None
    return seen


def higher() -> Tensor:
    x = torch.tensor([1.0, 2.0], requires_grad=True)
    y = Cube.apply(x, 2.0)
    (first,) = torch.autograd.grad(y.sum(), x, create_graph=True)
    (second,) = torch.autograd.grad(first.sum(), [x])
    step = Step.apply(x)
    step.sum().backward()
    jacobian = torch.func.jacrev(torch.sin)(x)
    hessian = torch.autograd.functional.hessian(lambda t: (t**3).sum(), x.detach())
    per_sample = torch.vmap(lambda t: t * 2)(x.detach())
    with torch.autograd.graph.save_on_cpu():
        z = x * x
    assert y.grad_fn is not None and y.grad_fn.next_functions and z.grad_fn is not None
    assert isinstance(hessian, Tensor)
    with torch.autograd.set_detect_anomaly(True), torch.enable_grad():
        z.sum().backward()
    return torch.cat([second, jacobian.flatten(), hessian.flatten(), per_sample.flatten()])


@torch.no_grad()
def average(targets: list[Tensor], sources: list[Tensor], decay: float) -> None:
    for t, s in zip(targets, sources, strict=True):
        t.mul_(decay).add_(s, alpha=1 - decay)
        t.lerp_(s, 1 - decay)


def by_closure() -> float:
    p = nn.Parameter(torch.tensor([3.0, -2.0]))
    optimizer = torch.optim.LBFGS([p], lr=0.5, max_iter=4, line_search_fn="strong_wolfe")

    def closure() -> Tensor:
        optimizer.zero_grad()
        loss = (p**2).sum()
        loss.backward()
        return loss

    loss = optimizer.step(closure)
    with torch.no_grad():
        p -= 0.1 * p
    average([p.detach()], [torch.zeros(2)], 0.9)
    for group in optimizer.param_groups:
        group["lr"] *= 0.5
    return float(loss.item())


if __name__ == "__main__":
    print(hooks(), higher(), by_closure())
