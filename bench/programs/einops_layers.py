"""einops: rearrangements as functions and as layers."""

import torch
from einops import einsum, rearrange, reduce, repeat
from einops.layers.torch import EinMix, Rearrange, Reduce

torch.manual_seed(0)
x = torch.randn(2, 3, 8, 8)
print("patches", rearrange(x, "b c (h p) (w q) -> b (h w) (p q c)", p=4, q=4).std(1).sum().item())
print("pooled", *reduce(x, "b c h w -> b c", "max").flatten().tolist())
print("repeated", repeat(x, "b c h w -> b c (h 2) (w 2)").sum().item())
print("product", einsum(x, x, "b c h w, b d h w -> b c d").sum().item())
net = torch.nn.Sequential(
    Rearrange("b c (h p) (w q) -> b (h w) (p q c)", p=4, q=4),
    EinMix("b t c -> b t d", weight_shape="c d", bias_shape="d", c=48, d=5),
    Reduce("b t d -> b d", "mean"),
)
loss = net(x).square().sum()
gradients = torch.autograd.grad(loss, list(net.parameters()))
print("loss", loss.item(), *[g.norm().item() for g in gradients])
