"""gpytorch: an exact Gaussian process fitted to a sine."""

import gpytorch
import torch

torch.manual_seed(0)


class Model(gpytorch.models.ExactGP):
    def __init__(self, x, y, likelihood):
        super().__init__(x, y, likelihood)
        self.mean_module = gpytorch.means.ConstantMean()
        self.covar_module = gpytorch.kernels.ScaleKernel(gpytorch.kernels.RBFKernel())

    def forward(self, x):
        return gpytorch.distributions.MultivariateNormal(self.mean_module(x), self.covar_module(x))


x = torch.linspace(0, 1, 40)
y = torch.sin(6 * x) + 0.1 * torch.randn(40)
likelihood = gpytorch.likelihoods.GaussianLikelihood()
model = Model(x, y, likelihood)
objective = gpytorch.mlls.ExactMarginalLogLikelihood(likelihood, model)
optimizer = torch.optim.Adam(model.parameters(), lr=0.1)
for step in range(20):
    optimizer.zero_grad()
    loss = -objective(model(x), y)
    loss.backward()
    optimizer.step()
    if step % 5 == 4:
        print("loss", loss.item())
model.eval(), likelihood.eval()
with torch.no_grad():
    prediction = likelihood(model(torch.linspace(0, 1, 5)))
print("mean", *prediction.mean.tolist())
print("variance", *prediction.variance.tolist())
