"""transformers: a tiny Whisper on random spectrograms."""

import torch
from transformers import WhisperConfig, WhisperForConditionalGeneration

torch.manual_seed(0)
config = WhisperConfig(
    vocab_size=80,
    d_model=32,
    encoder_layers=2,
    decoder_layers=2,
    encoder_attention_heads=4,
    decoder_attention_heads=4,
    encoder_ffn_dim=64,
    decoder_ffn_dim=64,
    num_mel_bins=16,
    max_source_positions=50,
    max_target_positions=40,
    pad_token_id=0,
    bos_token_id=1,
    eos_token_id=2,
    decoder_start_token_id=3,
    suppress_tokens=None,
    begin_suppress_tokens=None,
)
model = WhisperForConditionalGeneration(config)
loss = model(input_features=torch.randn(2, 16, 100), labels=torch.randint(4, 80, (2, 9))).loss
loss.backward()
print("loss", loss.item())
print("gradient", sum(p.grad.norm().item() for p in model.parameters() if p.grad is not None))
