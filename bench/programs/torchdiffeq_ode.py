"""torchdiffeq: a neural differential equation fitted by its adjoint."""

import torch
from torchdiffeq import odeint, odeint_adjoint

torch.manual_seed(0)


class Field(torch.nn.Module):
    def __init__(self):
        super().__init__()
        self.net = torch.nn.Sequential(
            torch.nn.Linear(2, 16), torch.nn.Tanh(), torch.nn.Linear(16, 2)
        )

    def forward(self, t, y):
        return self.net(y)


times, start = torch.linspace(0, 1, 10), torch.tensor([[1.0, 0.0]])
truth = odeint(lambda t, y: y @ torch.tensor([[-0.1, 2.0], [-2.0, -0.1]]), start, times)
field = Field()
optimizer = torch.optim.Adam(field.parameters(), lr=1e-2)
for _ in range(4):
    loss = (odeint_adjoint(field, start, times) - truth).abs().mean()
    optimizer.zero_grad()
    loss.backward()
    optimizer.step()
    print("loss", loss.item())
