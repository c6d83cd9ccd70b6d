"""higher: a network that adapts to sines in two steps, learned through those steps (MAML)."""

import higher
import torch

torch.manual_seed(0)
model = torch.nn.Sequential(torch.nn.Linear(1, 20), torch.nn.Tanh(), torch.nn.Linear(20, 1))
inner = torch.optim.SGD(model.parameters(), lr=0.05)
outer = torch.optim.Adam(model.parameters(), lr=0.003)
for step in range(8):
    outer.zero_grad()
    losses = []
    for _ in range(4):
        amplitude, phase = 0.5 + 2 * torch.rand(1), 3 * torch.rand(1)
        x = 6 * torch.rand(20, 1) - 3
        y = amplitude * torch.sin(x + phase)
        with higher.innerloop_ctx(model, inner, copy_initial_weights=False) as (adapted, steps):
            for _ in range(2):
                steps.step(torch.nn.functional.mse_loss(adapted(x[:10]), y[:10]))
            loss = torch.nn.functional.mse_loss(adapted(x[10:]), y[10:])
            loss.backward()
        losses.append(loss.item())
    outer.step()
    print("step", step, "losses", *losses)
