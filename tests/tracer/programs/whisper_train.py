"""Whisper (size base), bfloat16 autocast, speech features of 30 s, labels of varying length."""
import random

import torch
from transformers import WhisperConfig, WhisperForConditionalGeneration

random.seed(6)
torch.manual_seed(6)
config = WhisperConfig(d_model=512, encoder_layers=6, decoder_layers=6, encoder_attention_heads=8,
                       decoder_attention_heads=8, encoder_ffn_dim=2048, decoder_ffn_dim=2048, dropout=0.1)
model = WhisperForConditionalGeneration(config).to("cuda")
model.train()
optimizer = torch.optim.AdamW(model.parameters(), lr=1e-5, betas=(0.9, 0.98))
for step in range(10):
    batch = 16 if step != 9 else 7
    features = torch.randn(batch, config.num_mel_bins, 3000).to("cuda")
    length = random.randrange(40, 220)
    labels = torch.randint(0, 50000, (batch, length))
    for row in labels:
        row[random.randrange(10, length):] = -100
    with torch.autocast("cuda", dtype=torch.bfloat16):
        out = model(input_features=features, labels=labels.to("cuda"))
    out.loss.backward()
    torch.nn.utils.clip_grad_norm_(model.parameters(), 1.0)
    optimizer.step()
    optimizer.zero_grad()
    print(step, length, out.loss.item())
