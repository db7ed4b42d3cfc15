"""Tags of words on receipts, from texts and their places on the page, with transformers' BROS: SGD with Nesterov momentum, float16 with a scaler, two parts of 16 pages a step, gradients clipped by their norm."""
import torch
from transformers import BrosConfig, BrosForTokenClassification

torch.manual_seed(1610)
config = BrosConfig(vocab_size=16000, hidden_size=384, num_hidden_layers=6, num_attention_heads=6, intermediate_size=1536, num_labels=13)
model = BrosForTokenClassification(config).cuda()
optimizer = torch.optim.SGD(model.parameters(), 0.01, momentum=0.9, nesterov=True)
scaler = torch.amp.GradScaler("cuda")


def pages(words):
    ids, mask, labels = torch.randint(5, 16000, (16, words)), torch.ones(16, words, dtype=torch.long), torch.randint(0, 13, (16, words))
    corner = torch.rand(16, words, 2) * 0.8
    boxes = torch.cat([corner, corner + 0.02 + 0.15 * torch.rand(16, words, 2)], -1)
    for k in range(1, 16):
        ids[k, words - 6 * k:], mask[k, words - 6 * k:], labels[k, words - 6 * k:], boxes[k, words - 6 * k:] = 0, 0, -100, 0
    first = (torch.rand(16, words) < 0.7) & (mask == 1)
    return {"input_ids": ids.cuda(), "bbox": boxes.cuda(), "attention_mask": mask.cuda(), "bbox_first_token_mask": first.cuda(), "labels": labels.cuda()}


model.train()
for step in range(5):
    total = 0.0
    for part in range(2):
        batch = pages(144 + 16 * ((step + 2 * part) % 4))
        with torch.autocast("cuda", torch.float16):
            loss = model(**batch).loss / 2
        scaler.scale(loss).backward()
        total += loss.item()
    scaler.unscale_(optimizer)
    norm = torch.nn.utils.clip_grad_norm_(model.parameters(), 1.0)
    scaler.step(optimizer)
    scaler.update()
    optimizer.zero_grad()
    print(step, total, norm.item())
