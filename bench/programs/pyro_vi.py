"""pyro: variational inference of a coin's fairness."""

import pyro
import pyro.distributions as dist
import torch
from pyro.infer import SVI, Trace_ELBO
from pyro.optim import Adam

pyro.set_rng_seed(0)
data = torch.cat([torch.ones(6), torch.zeros(4)])


def model(data):
    fairness = pyro.sample("fairness", dist.Beta(torch.tensor(10.0), torch.tensor(10.0)))
    with pyro.plate("data", len(data)):
        pyro.sample("obs", dist.Bernoulli(fairness), obs=data)


def guide(data):
    positive = dist.constraints.positive
    a = pyro.param("a", torch.tensor(15.0), constraint=positive)
    b = pyro.param("b", torch.tensor(15.0), constraint=positive)
    pyro.sample("fairness", dist.Beta(a, b))


inference = SVI(model, guide, Adam({"lr": 0.01}), loss=Trace_ELBO())
for step in range(40):
    loss = inference.step(data)
    if step % 10 == 9:
        print("loss", loss)
print("parameters", pyro.param("a").item(), pyro.param("b").item())
