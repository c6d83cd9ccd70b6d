"""easyfsl: few-shot classification by prototypes, matching and fine-tuning."""

import torch
from easyfsl.methods import Finetune, MatchingNetworks, PrototypicalNetworks, SimpleShot

torch.manual_seed(0)
backbone = torch.nn.Sequential(
    torch.nn.Conv2d(3, 8, 3, stride=2), torch.nn.ReLU(), torch.nn.AdaptiveAvgPool2d(2),
    torch.nn.Flatten(),
)  # fmt: skip
patterns = torch.randn(4, 3, 12, 12)
labels = torch.arange(4).repeat(3)
support = patterns[labels] + 0.5 * torch.randn(12, 3, 12, 12)
query = patterns + 0.5 * torch.randn(4, 3, 12, 12)
for method in (
    PrototypicalNetworks(backbone),
    SimpleShot(backbone),
    MatchingNetworks(backbone, feature_dimension=32),
    Finetune(backbone, fine_tuning_steps=3, fine_tuning_lr=1e-2),
):
    method.eval()
    method.process_support_set(support, labels)
    print(type(method).__name__, *method(query).flatten().tolist())
