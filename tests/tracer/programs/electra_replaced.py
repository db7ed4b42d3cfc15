"""Replaced tokens found: a small masked model of transformers proposes words, a larger one tells which were replaced, shared embeddings, gradient checkpointing, float16 with a scaler, a linear schedule."""
import torch
import torch.nn.functional as F
from transformers import ElectraConfig, ElectraForMaskedLM, ElectraForPreTraining, get_linear_schedule_with_warmup

torch.manual_seed(403)
VOCAB = 30522
large = ElectraForPreTraining(ElectraConfig(vocab_size=VOCAB, embedding_size=128, hidden_size=384, num_hidden_layers=8, num_attention_heads=6, intermediate_size=1536)).cuda()
small = ElectraForMaskedLM(ElectraConfig(vocab_size=VOCAB, embedding_size=128, hidden_size=128, num_hidden_layers=8, num_attention_heads=2, intermediate_size=512)).cuda()
small.electra.embeddings.word_embeddings.weight = large.electra.embeddings.word_embeddings.weight
large.gradient_checkpointing_enable(gradient_checkpointing_kwargs={"use_reentrant": False})
parameters = list({id(p): p for m in (large, small) for p in m.parameters()}.values())
optimizer = torch.optim.AdamW(parameters, 5e-4, fused=True)
schedule = get_linear_schedule_with_warmup(optimizer, 10, 100)
scaler = torch.amp.GradScaler("cuda", init_scale=1024.0)
for step in range(5):
    ids = torch.randint(1000, VOCAB, (24, 128), device="cuda")
    attention = torch.ones_like(ids)
    attention[:, 100:] = 0
    hidden = torch.zeros_like(ids, dtype=torch.bool)
    hidden[:, step::7] = True
    masked = ids.masked_fill(hidden, 103)
    with torch.autocast("cuda", torch.float16):
        logits = small(masked, attention_mask=attention).logits
        first = F.cross_entropy(logits[hidden].float(), ids[hidden])
        with torch.no_grad():
            noise = -torch.log(-torch.log(torch.rand_like(logits[hidden], dtype=torch.float32) + 1e-9) + 1e-9)
            drawn = (logits[hidden].float() + noise).argmax(-1)
            wrong = ids.clone()
            wrong[hidden] = drawn
            labels = (wrong != ids).float()
        second = large(wrong, attention_mask=attention).logits
        loss = first + 50 * (F.binary_cross_entropy_with_logits(second, labels, reduction="none") * attention).sum() / attention.sum()
    scaler.scale(loss).backward()
    scaler.unscale_(optimizer)
    torch.nn.utils.clip_grad_norm_(parameters, 1.0)
    scaler.step(optimizer)
    scaler.update()
    schedule.step()
    optimizer.zero_grad()
    print(step, loss.item())
large.eval()
with torch.no_grad(), torch.autocast("cuda", torch.float16):
    print(large(torch.randint(1000, VOCAB, (64, 256), device="cuda")).logits.sigmoid().mean().item())
