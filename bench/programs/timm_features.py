"""timm: feature maps of a MobileNetV3 in evaluation mode."""

import timm
import torch

torch.manual_seed(0)
model = timm.create_model("mobilenetv3_small_050", features_only=True).eval()
with torch.no_grad():
    for features in model(torch.randn(2, 3, 96, 96)):
        print("features", *features.shape, features.mean().item())
