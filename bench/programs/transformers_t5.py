"""transformers: a tiny T5, two training steps and generation."""

import torch
from transformers import T5Config, T5ForConditionalGeneration

torch.manual_seed(0)
config = T5Config(
    vocab_size=90,
    d_model=32,
    d_kv=8,
    d_ff=64,
    num_layers=2,
    num_heads=4,
    dropout_rate=0.0,
    decoder_start_token_id=0,
)
model = T5ForConditionalGeneration(config)
optimizer = torch.optim.Adam(model.parameters(), lr=1e-3)
source, target = torch.randint(2, 90, (3, 12)), torch.randint(2, 90, (3, 7))
for _ in range(2):
    loss = model(input_ids=source, labels=target).loss
    optimizer.zero_grad()
    loss.backward()
    optimizer.step()
    print("loss", loss.item())
print("written", *model.eval().generate(source, max_new_tokens=6).flatten().tolist())
