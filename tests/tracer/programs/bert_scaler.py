"""BERT for classification, float16 with a gradient scaler, batches padded to their longest sequence."""
import random

import torch
from transformers import BertConfig, BertForSequenceClassification, get_linear_schedule_with_warmup

random.seed(3)
torch.manual_seed(3)
config = BertConfig(num_labels=5)
model = BertForSequenceClassification(config).to("cuda")
optimizer = torch.optim.AdamW(model.parameters(), lr=2e-5)
schedule = get_linear_schedule_with_warmup(optimizer, 2, 12)
scaler = torch.amp.GradScaler("cuda")
examples = [[random.randrange(1000, 30000) for _ in range(random.randrange(20, 380))] for _ in range(32 * 10)]


def collate(rows):
    longest = max(len(r) for r in rows)
    ids = torch.zeros(len(rows), longest, dtype=torch.long)
    mask = torch.zeros(len(rows), longest, dtype=torch.long)
    for i, r in enumerate(rows):
        ids[i, :len(r)] = torch.tensor(r)
        mask[i, :len(r)] = 1
    return {"input_ids": ids, "attention_mask": mask, "labels": torch.randint(0, 5, (len(rows),))}


total = 0.0
for step in range(10):
    batch = {k: v.to("cuda") for k, v in collate(examples[step * 32:step * 32 + 32]).items()}
    with torch.autocast("cuda", dtype=torch.float16):
        loss = model(**batch).loss
    scaler.scale(loss).backward()
    scaler.unscale_(optimizer)
    torch.nn.utils.clip_grad_norm_(model.parameters(), 1.0)
    scaler.step(optimizer)
    scaler.update()
    schedule.step()
    optimizer.zero_grad()
    total += loss.item()
print("mean loss", total / 10)
