"""Adapters by hand on transformers' Llama: low rank on queries and values, a frozen bfloat16 base, checkpointing with inputs that need gradients, 8 bits of state by hand off, paged batches of lengths."""
import random

import torch
from torch import nn
from transformers import LlamaConfig, LlamaForCausalLM

random.seed(918)
torch.manual_seed(918)


class Adapter(nn.Module):
    def __init__(self, base, rank=8):
        super().__init__()
        self.base, self.down, self.up = base, nn.Linear(base.in_features, rank, bias=False), nn.Linear(rank, base.out_features, bias=False)
        self.drop = nn.Dropout(0.05)
        nn.init.zeros_(self.up.weight)

    def forward(self, x):
        return self.base(x) + self.up(self.down(self.drop(x).float())).to(x.dtype) * 2


config = LlamaConfig(vocab_size=16000, hidden_size=1024, intermediate_size=2752, num_hidden_layers=10, num_attention_heads=16, num_key_value_heads=8, use_cache=False)
model = LlamaForCausalLM(config).to(torch.bfloat16).requires_grad_(False)
for layer in model.model.layers:
    layer.self_attn.q_proj, layer.self_attn.v_proj = Adapter(layer.self_attn.q_proj), Adapter(layer.self_attn.v_proj)
model.cuda()
model.gradient_checkpointing_enable()
model.enable_input_require_grads()
trained = [p for p in model.parameters() if p.requires_grad]
optimizer = torch.optim.AdamW(trained, 2e-4)
model.train()
for step in range(6):
    longest = random.randrange(300, 900)
    rows = [[random.randrange(3, 16000) for _ in range(random.randrange(100, longest))] for _ in range(6)]
    width = max(map(len, rows))
    ids = torch.tensor([r + [0] * (width - len(r)) for r in rows])
    mask = torch.tensor([[1] * len(r) + [0] * (width - len(r)) for r in rows])
    labels = ids.masked_fill(mask == 0, -100)
    loss = model(input_ids=ids.cuda(), attention_mask=mask.cuda(), labels=labels.cuda()).loss
    loss.backward()
    nn.utils.clip_grad_norm_(trained, 0.3)
    optimizer.step()
    optimizer.zero_grad()
    print(step, width, loss.item())
