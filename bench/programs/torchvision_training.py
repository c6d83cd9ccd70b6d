"""torchvision: a MobileNetV2 trained for three steps on transformed images."""

import numpy
import torch
from PIL import Image
from torchvision import models, transforms

torch.manual_seed(0)
pixels = numpy.random.RandomState(0).randint(0, 255, (4, 80, 80, 3), dtype=numpy.uint8)
transform = transforms.Compose(
    [
        transforms.Resize(64),
        transforms.CenterCrop(56),
        transforms.ToTensor(),
        transforms.Normalize((0.5, 0.5, 0.5), (0.25, 0.25, 0.25)),
    ]
)
images = torch.stack([transform(Image.fromarray(image)) for image in pixels])
model = models.mobilenet_v2(num_classes=4, dropout=0.0)
optimizer = torch.optim.RMSprop(model.parameters(), lr=1e-4)
for _ in range(3):
    loss = torch.nn.functional.cross_entropy(model(images), torch.arange(4))
    optimizer.zero_grad()
    loss.backward()
    optimizer.step()
    print("loss", loss.item())
