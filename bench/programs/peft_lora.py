"""peft: LoRA adapters of a tiny Llama trained and merged."""

import torch
from peft import LoraConfig, get_peft_model
from transformers import LlamaConfig, LlamaForCausalLM

torch.manual_seed(0)
config = LlamaConfig(
    vocab_size=89,
    hidden_size=32,
    intermediate_size=64,
    num_hidden_layers=2,
    num_attention_heads=4,
    num_key_value_heads=4,
)
model = get_peft_model(
    LlamaForCausalLM(config),
    LoraConfig(r=4, lora_alpha=8, target_modules=["q_proj", "v_proj"], lora_dropout=0.0),
)
optimizer = torch.optim.AdamW((p for p in model.parameters() if p.requires_grad), lr=1e-2)
tokens = torch.randint(3, 89, (2, 24))
for _ in range(4):
    loss = model(input_ids=tokens, labels=tokens).loss
    optimizer.zero_grad()
    loss.backward()
    optimizer.step()
    print("loss", loss.item())
merged = model.merge_and_unload().eval()
with torch.no_grad():
    print("merged", merged(tokens).logits.std().item())
