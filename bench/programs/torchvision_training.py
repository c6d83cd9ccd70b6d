"""torchvision: a MobileNetV2 trained for three steps on transformed images."""

import numpy
import torch
from PIL import Image
from torchvision import models, transforms

torch.set_default_dtype(torch.float64)  # in single precision the gradients keep two digits
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
images = torch.stack([transform(Image.fromarray(image)) for image in pixels]).double()
model = models.mobilenet_v2(num_classes=4, dropout=0.0)
optimizer = torch.optim.SGD(model.parameters(), lr=0.01, momentum=0.9)
for _ in range(3):
    loss = torch.nn.functional.cross_entropy(model(images), torch.arange(4))
    optimizer.zero_grad()
    loss.backward()
    optimizer.step()
    print("loss", loss.item())
