"""timm: a ResNet-10 trained for five steps."""

import timm
import torch

torch.manual_seed(0)
model = timm.create_model("resnet10t", num_classes=5, in_chans=3)
optimizer = torch.optim.SGD(model.parameters(), lr=0.05, momentum=0.9)
images, labels = torch.randn(8, 3, 64, 64), torch.arange(8) % 5
for _ in range(5):
    loss = torch.nn.functional.cross_entropy(model(images), labels)
    optimizer.zero_grad()
    loss.backward()
    optimizer.step()
    print("loss", loss.item())
