"""Llama in bfloat16 with LoRA written by hand, gradient checkpointing, varying lengths."""
import math
import random

import torch
from torch import nn
from transformers import LlamaConfig, LlamaForCausalLM


class LoRALinear(nn.Module):
    def __init__(self, base, rank=16, alpha=32.0):
        super().__init__()
        self.base = base
        self.down = nn.Parameter(torch.empty(rank, base.in_features, device=base.weight.device))
        self.up = nn.Parameter(torch.zeros(base.out_features, rank, device=base.weight.device))
        nn.init.kaiming_uniform_(self.down, a=math.sqrt(5))
        self.drop = nn.Dropout(0.05)
        self.scale = alpha / rank

    def forward(self, x):
        low = self.drop(x).to(self.down.dtype) @ self.down.T @ self.up.T
        return self.base(x) + (low * self.scale).to(x.dtype)


random.seed(5)
torch.manual_seed(5)
config = LlamaConfig(hidden_size=1536, intermediate_size=4096, num_hidden_layers=10, num_attention_heads=12,
                     num_key_value_heads=4, vocab_size=32000, max_position_embeddings=2048, use_cache=False)
with torch.device("cuda"):
    model = LlamaForCausalLM(config).to(torch.bfloat16)
model.requires_grad_(False)
for layer in model.model.layers:
    layer.self_attn.q_proj = LoRALinear(layer.self_attn.q_proj)
    layer.self_attn.v_proj = LoRALinear(layer.self_attn.v_proj)
model.gradient_checkpointing_enable(gradient_checkpointing_kwargs={"use_reentrant": False})
model.train()
optimizer = torch.optim.AdamW([p for p in model.parameters() if p.requires_grad], lr=2e-4)
for step in range(12):
    ids = torch.randint(0, 32000, (random.choice([2, 4, 6]), random.randrange(300, 1800)), device="cuda")
    loss = model(input_ids=ids, labels=ids).loss
    loss.backward()
    optimizer.step()
    optimizer.zero_grad()
    if step % 4 == 0:
        print(step, ids.shape, float(loss))
