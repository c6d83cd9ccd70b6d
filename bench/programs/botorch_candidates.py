"""botorch: a Gaussian process fitted, and the next candidate by expected improvement."""

import torch
from botorch.acquisition import LogExpectedImprovement
from botorch.fit import fit_gpytorch_mll
from botorch.models import SingleTaskGP
from botorch.optim import optimize_acqf
from gpytorch.mlls import ExactMarginalLogLikelihood

torch.manual_seed(0)
x = torch.rand(12, 2, dtype=torch.double)
y = 1 - (x - 0.5).norm(dim=-1, keepdim=True)
model = SingleTaskGP(x, y)
fit_gpytorch_mll(ExactMarginalLogLikelihood(model.likelihood, model))
improvement = LogExpectedImprovement(model, best_f=y.max())
candidate, value = optimize_acqf(
    improvement,
    torch.stack([torch.zeros(2), torch.ones(2)]).double(),
    q=1,
    num_restarts=2,
    raw_samples=16,
)
print("candidate", *[round(v, 3) for v in candidate.flatten().tolist()])
