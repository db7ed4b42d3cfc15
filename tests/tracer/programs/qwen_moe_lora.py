"""A small Qwen2-MoE of transformers: experts frozen, low-rank additions to the attention written by hand, the router's loss, layers checkpointed, bfloat16 weights, then generation."""
import torch
from torch import nn
from transformers import Qwen2MoeConfig, Qwen2MoeForCausalLM

torch.manual_seed(1111)


class Lora(nn.Module):
    def __init__(self, base, rank=16, alpha=32):
        super().__init__()
        self.base, self.scale = base.requires_grad_(False), alpha / rank
        self.a = nn.Parameter(torch.randn(rank, base.in_features, dtype=base.weight.dtype) * 0.02)
        self.b = nn.Parameter(torch.zeros(base.out_features, rank, dtype=base.weight.dtype))

    def forward(self, x):
        return self.base(x) + (x @ self.a.T) @ self.b.T * self.scale


config = Qwen2MoeConfig(vocab_size=16000, hidden_size=384, intermediate_size=1024, num_hidden_layers=6, num_attention_heads=6, num_key_value_heads=2, moe_intermediate_size=256, shared_expert_intermediate_size=512, num_experts=16, num_experts_per_tok=4, max_position_embeddings=2048, output_router_logits=True, router_aux_loss_coef=0.01)
model = Qwen2MoeForCausalLM(config).to(torch.bfloat16)
model.requires_grad_(False)
for layer in model.model.layers:
    for name in ("q_proj", "k_proj", "v_proj", "o_proj"):
        setattr(layer.self_attn, name, Lora(getattr(layer.self_attn, name)))
    layer.mlp.gate.requires_grad_(True)
model.cuda().train()
model.gradient_checkpointing_enable(gradient_checkpointing_kwargs={"use_reentrant": False})
own = [p for p in model.parameters() if p.requires_grad]
optimizer = torch.optim.AdamW(own, 2e-4)
for step in range(6):
    ids = torch.randint(5, 16000, (6, (512, 384, 640)[step % 3])).cuda()
    loss = model(input_ids=ids, labels=ids).loss
    loss.backward()
    nn.utils.clip_grad_norm_(own, 1.0)
    optimizer.step()
    optimizer.zero_grad()
    print(step, loss.item())
model.eval()
model.config.output_router_logits = False
with torch.inference_mode():
    out = model.generate(torch.randint(5, 16000, (8, 96), device="cuda"), max_new_tokens=20, min_new_tokens=20, do_sample=False)
    print(out.shape)
