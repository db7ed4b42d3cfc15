"""ALBERT of transformers: one layer's weights used many times, masked words and the order of sentences, LAMB-like trust ratios, padding by hand to several lengths."""
import torch
from torch import nn
from transformers import AlbertConfig, AlbertForPreTraining

torch.manual_seed(1017)
config = AlbertConfig(vocab_size=16000, embedding_size=128, hidden_size=768, num_hidden_layers=10, num_attention_heads=12, intermediate_size=3072, max_position_embeddings=512)
model = AlbertForPreTraining(config).cuda()
state = {p: (torch.zeros_like(p), torch.zeros_like(p)) for p in model.parameters()}
model.train()
for step in range(7):
    length = (192, 256, 320)[step % 3]
    ids = torch.randint(5, 16000, (12, length), device="cuda")
    lengths = torch.randint(length // 2, length + 1, (12,)).cuda()
    mask = (torch.arange(length, device="cuda") < lengths[:, None]).long()
    hidden = torch.rand(12, length, device="cuda") < 0.15
    labels = torch.where(hidden & mask.bool(), ids, -100)
    kinds = (torch.arange(length, device="cuda") > length // 2).long().expand(12, -1)
    with torch.autocast("cuda", torch.bfloat16):
        out = model(input_ids=ids.masked_fill(hidden, 4), attention_mask=mask, token_type_ids=kinds, labels=labels, sentence_order_label=torch.randint(0, 2, (12,), device="cuda"))
    model.zero_grad()
    out.loss.backward()
    nn.utils.clip_grad_norm_(model.parameters(), 1.0)
    with torch.no_grad():
        for p, (m, v) in state.items():
            if p.grad is None:
                continue
            m.lerp_(p.grad, 0.1)
            v.lerp_(p.grad * p.grad, 0.001)
            update = m / (v.sqrt() + 1e-6) + 0.01 * p
            p.sub_(update * (1e-3 * p.norm().clamp(0, 10) / (update.norm() + 1e-6)))
    print(step, out.loss.item())
model.eval()
with torch.inference_mode():
    for batch, length in ((32, 128), (16, 384), (8, 512)):
        out = model(input_ids=torch.randint(5, 16000, (batch, length), device="cuda"))
        print(length, out.prediction_logits.argmax(-1).float().mean().item(), out.sop_logits.softmax(-1)[:, 0].mean().item())
