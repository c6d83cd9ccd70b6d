"""torchvision: features of a ResNet-18 taken out of its graph by torch.fx."""

import torch
from torchvision import models
from torchvision.models.feature_extraction import create_feature_extractor, get_graph_node_names

torch.manual_seed(0)
model = models.resnet18().eval()
print("nodes", len(get_graph_node_names(model)[1]))
extractor = create_feature_extractor(model, {"layer1": "early", "layer4": "late"})
with torch.no_grad():
    for name, features in extractor(torch.randn(1, 3, 64, 64)).items():
        print(name, features.mean().item(), features.std().item())
