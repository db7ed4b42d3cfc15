"""Scores of texts with transformers' Seed-OSS: Adagrad, float16 with a scaler, two parts of 12 texts of several lengths a step."""
import torch
from transformers import SeedOssConfig, SeedOssForSequenceClassification

torch.manual_seed(1510)
config = SeedOssConfig(vocab_size=20000, hidden_size=512, intermediate_size=1792, num_hidden_layers=6, num_attention_heads=8, num_key_value_heads=2, head_dim=64,
                       max_position_embeddings=2048, pad_token_id=1, num_labels=5)
model = SeedOssForSequenceClassification(config).cuda()
optimizer = torch.optim.Adagrad(model.parameters(), lr=1e-3)
scaler = torch.amp.GradScaler("cuda")
model.train()
for step in range(5):
    total = 0.0
    for part in range(2):
        length = 320 + 64 * ((step + 2 * part) % 4)
        ids = torch.randint(3, 20000, (12, length))
        for k in range(1, 12):
            ids[k, length - 11 * k:] = 1
        mask = (ids != 1).long()
        with torch.autocast("cuda", torch.float16):
            loss = model(input_ids=ids.cuda(), attention_mask=mask.cuda(), labels=torch.randint(0, 5, (12,)).cuda()).loss / 2
        scaler.scale(loss).backward()
        total += loss.item()
    scaler.step(optimizer)
    scaler.update()
    optimizer.zero_grad()
    print(step, total)
