"""captum: attributions of a small network."""

import torch
from captum.attr import DeepLift, IntegratedGradients, Occlusion, Saliency

torch.manual_seed(0)
model = torch.nn.Sequential(torch.nn.Linear(6, 10), torch.nn.ReLU(), torch.nn.Linear(10, 3))
x = torch.randn(2, 6)
print("integrated", *IntegratedGradients(model).attribute(x, target=1).flatten().tolist())
print("saliency", *Saliency(model).attribute(x, target=1).flatten().tolist())
print("deeplift", *DeepLift(model).attribute(x, target=1).flatten().tolist())
print("occlusion", *Occlusion(model).attribute(x, (2,), target=1).flatten().tolist())
