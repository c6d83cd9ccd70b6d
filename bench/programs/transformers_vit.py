"""transformers: a tiny vision transformer trained for three steps."""

import torch
from transformers import ViTConfig, ViTForImageClassification

torch.manual_seed(0)
config = ViTConfig(
    hidden_size=32,
    num_hidden_layers=2,
    num_attention_heads=4,
    intermediate_size=64,
    image_size=32,
    patch_size=8,
    num_labels=4,
    hidden_dropout_prob=0.0,
    attention_probs_dropout_prob=0.0,
)
model = ViTForImageClassification(config)
optimizer = torch.optim.AdamW(model.parameters(), lr=1e-3)
images = torch.randn(4, 3, 32, 32)
for _ in range(3):
    loss = model(images, labels=torch.arange(4)).loss
    optimizer.zero_grad()
    loss.backward()
    optimizer.step()
    print("loss", loss.item())
