"""transformers: a tiny Llama, a training step and greedy generation with its cache."""

import torch
from transformers import LlamaConfig, LlamaForCausalLM

torch.manual_seed(0)
config = LlamaConfig(
    vocab_size=89,
    hidden_size=32,
    intermediate_size=64,
    num_hidden_layers=2,
    num_attention_heads=4,
    num_key_value_heads=2,
    max_position_embeddings=64,
    bos_token_id=1,
    eos_token_id=2,
)
model = LlamaForCausalLM(config)
tokens = torch.randint(3, 89, (2, 24))
loss = model(tokens, labels=tokens).loss
loss.backward()
print("loss", loss.item())
for name, parameter in model.named_parameters():
    print(name, parameter.grad.norm().item())
written = model.eval().generate(tokens[:, :6], max_new_tokens=10, do_sample=False, pad_token_id=0)
print("written", *written.flatten().tolist())
