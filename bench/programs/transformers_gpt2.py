"""transformers: a tiny GPT-2 trained, saved, loaded and asked to write."""

import tempfile

import torch
from transformers import GPT2Config, GPT2LMHeadModel

torch.manual_seed(0)
config = GPT2Config(
    vocab_size=97,
    n_positions=64,
    n_embd=48,
    n_layer=2,
    n_head=4,
    resid_pdrop=0.0,
    embd_pdrop=0.0,
    attn_pdrop=0.0,
    bos_token_id=1,
    eos_token_id=2,
)
model = GPT2LMHeadModel(config)
optimizer = torch.optim.AdamW(model.parameters(), lr=1e-3)
tokens = torch.randint(3, 97, (4, 32))
for _ in range(5):
    loss = model(tokens, labels=tokens).loss
    optimizer.zero_grad()
    loss.backward()
    optimizer.step()
    print("loss", loss.item())
with tempfile.TemporaryDirectory() as folder:
    model.save_pretrained(folder)
    loaded = GPT2LMHeadModel.from_pretrained(folder).eval()
written = loaded.generate(tokens[:1, :8], max_new_tokens=12, do_sample=False, pad_token_id=0)
print("written", *written[0].tolist())
