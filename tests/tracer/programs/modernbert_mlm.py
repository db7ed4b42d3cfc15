"""ModernBERT of transformers, masked words: windows in two of three layers, documents of different lengths with padding, bfloat16 autocast, groups without decay, a trapezoidal rate, then pseudo-likelihoods."""
import torch
from transformers import ModernBertConfig, ModernBertForMaskedLM

torch.manual_seed(1211)
config = ModernBertConfig(vocab_size=30000, hidden_size=512, intermediate_size=768, num_hidden_layers=9, num_attention_heads=8, max_position_embeddings=2048, local_attention=128, pad_token_id=0, bos_token_id=1, eos_token_id=2, cls_token_id=1, sep_token_id=2, attn_implementation="sdpa")
model = ModernBertForMaskedLM(config).cuda()
matrices = [p for p in model.parameters() if p.dim() > 1]
vectors = [p for p in model.parameters() if p.dim() < 2]
optimizer = torch.optim.AdamW([{"params": matrices, "weight_decay": 1e-2}, {"params": vectors, "weight_decay": 0.0}], 8e-4, betas=(0.9, 0.98))
rate = torch.optim.lr_scheduler.LambdaLR(optimizer, lambda i: min(1.0, (i + 1) / 3, max(0.1, (12 - i) / 4)))


def batch(count, most):
    lengths = most - (torch.arange(count) * 37) % (most // 2)
    mask = (torch.arange(most)[None] < lengths[:, None]).long()
    ids = torch.randint(5, 30000, (count, most)) * mask
    chosen = (torch.rand(count, most) < 0.3) & mask.bool()
    return ids.masked_fill(chosen, 4).cuda(), mask.cuda(), torch.where(chosen, ids, torch.full_like(ids, -100)).cuda()


model.train()
for step in range(6):
    ids, mask, labels = batch(*((16, 512), (8, 1024), (24, 320))[step % 3])
    with torch.autocast("cuda", torch.bfloat16):
        loss = model(input_ids=ids, attention_mask=mask, labels=labels).loss
    optimizer.zero_grad()
    loss.backward()
    torch.nn.utils.clip_grad_norm_(model.parameters(), 1.0)
    optimizer.step()
    rate.step()
    print(step, loss.item())
model.eval()
with torch.no_grad(), torch.autocast("cuda", torch.bfloat16):
    for _ in range(2):
        ids, mask, _ = batch(8, 256)
        logits = model(input_ids=ids, attention_mask=mask).logits
        print((logits.log_softmax(-1).gather(2, ids[..., None]).squeeze(2) * mask).sum(1).mean().item())
