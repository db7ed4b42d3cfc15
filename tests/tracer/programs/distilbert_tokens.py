"""Names in sentences: transformers' DistilBERT for tokens, buckets of lengths, layerwise frozen at first, float32, AdamW with two groups, scores on the host."""
import random

import torch
from transformers import DistilBertConfig, DistilBertForTokenClassification

random.seed(908)
torch.manual_seed(908)
model = DistilBertForTokenClassification(DistilBertConfig(vocab_size=15000, num_labels=9, dim=512, hidden_dim=2048, n_heads=8)).cuda()
for layer in model.distilbert.transformer.layer[:3]:
    layer.requires_grad_(False)
rows = sorted(([random.randrange(1, 15000) for _ in range(random.randrange(8, 160))] for _ in range(480)), key=len)
batches = [rows[i : i + 40] for i in range(0, 480, 40)]
random.shuffle(batches)
optimizer = torch.optim.AdamW([{"params": [p for p in model.parameters() if p.requires_grad and p.ndim > 1], "weight_decay": 0.01},
                               {"params": [p for p in model.parameters() if p.requires_grad and p.ndim < 2], "weight_decay": 0.0}], 5e-5)
for number, batch in enumerate(batches):
    longest = max(map(len, batch))
    ids = torch.tensor([r + [0] * (longest - len(r)) for r in batch])
    labels = torch.tensor([[random.randrange(9) for _ in r] + [-100] * (longest - len(r)) for r in batch])
    mask = (ids != 0).long()
    if number == 6:
        model.requires_grad_(True)
        optimizer.add_param_group({"params": list(model.distilbert.transformer.layer[:3].parameters()), "lr": 1e-5})
    if number < 9:
        model.train()
        loss = model(input_ids=ids.cuda(), attention_mask=mask.cuda(), labels=labels.cuda()).loss
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
        print(number, longest, loss.item())
    else:
        model.eval()
        with torch.no_grad():
            guess = model(input_ids=ids.cuda(), attention_mask=mask.cuda()).logits.argmax(-1).cpu()
        print(number, (guess == labels).float().mean().item())
