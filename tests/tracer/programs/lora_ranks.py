"""Adapters of low rank that are grown and shrunk while they train, with the base in bfloat16 and merged for evaluation."""
import torch
import torch.nn.functional as F
from torch import nn
from transformers import MistralConfig, MistralForCausalLM

torch.manual_seed(83)


class Adapter(nn.Module):
    def __init__(self, base, rank):
        super().__init__()
        self.base = base
        self.resize(rank)

    def resize(self, rank):
        w = self.base.weight
        old = getattr(self, "a", None), getattr(self, "b", None)
        self.a = nn.Parameter(torch.randn(rank, w.shape[1], device=w.device) * 0.02)
        self.b = nn.Parameter(torch.zeros(w.shape[0], rank, device=w.device))
        if old[0] is not None:
            with torch.no_grad():
                kept = min(rank, old[0].shape[0])
                self.a[:kept].copy_(old[0][:kept])
                self.b[:, :kept].copy_(old[1][:, :kept])

    def forward(self, x):
        return self.base(x) + (x.float() @ self.a.t() @ self.b.t()).to(x.dtype)

    @torch.no_grad()
    def merge(self, sign):
        self.base.weight.add_((self.b @ self.a).to(self.base.weight.dtype), alpha=sign)


config = MistralConfig(hidden_size=1024, intermediate_size=3584, num_hidden_layers=10, num_attention_heads=16, num_key_value_heads=4, vocab_size=20000, sliding_window=256)
model = MistralForCausalLM(config).to(torch.bfloat16).cuda().requires_grad_(False)
model.gradient_checkpointing_enable(gradient_checkpointing_kwargs={"use_reentrant": False})
model.enable_input_require_grads()
model.train()
adapters = []
for layer in model.model.layers:
    for name in ("q_proj", "v_proj"):
        adapter = Adapter(getattr(layer.self_attn, name), 8)
        setattr(layer.self_attn, name, adapter)
        adapters.append(adapter)
for phase, rank in enumerate((8, 64, 16)):
    for adapter in adapters:
        if phase:
            adapter.resize(rank)
    optimizer = torch.optim.AdamW([p for a in adapters for p in (a.a, a.b)], lr=2e-4)
    for step in range(3):
        ids = torch.randint(0, 20000, (4, 448)).cuda()
        loss = model(input_ids=ids, labels=ids, use_cache=False).loss
        loss.backward()
        optimizer.step()
        optimizer.zero_grad()
    for adapter in adapters:
        adapter.merge(1)
    with torch.no_grad():
        print(rank, loss.item(), F.cross_entropy(model(ids, use_cache=False).logits.flatten(0, 1).float(), ids.flatten()).item())
    for adapter in adapters:
        adapter.merge(-1)
