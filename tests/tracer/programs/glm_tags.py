"""Tags of words with transformers' GLM: RMSprop with momentum, float32, two parts of 8 to 16 sentences a step, an evaluation with a larger batch at the end."""
import torch
from transformers import GlmConfig, GlmForTokenClassification

torch.manual_seed(1411)
config = GlmConfig(vocab_size=16000, hidden_size=512, intermediate_size=1536, num_hidden_layers=6, num_attention_heads=8, num_key_value_heads=2, head_dim=64,
                   max_position_embeddings=1024, pad_token_id=0, num_labels=9)
model = GlmForTokenClassification(config).cuda()
optimizer = torch.optim.RMSprop(model.parameters(), 1e-4, momentum=0.9)
model.train()
for step in range(5):
    for part, batch in enumerate((8 + 2 * step, 16 - 2 * step)):
        length = 160 + 32 * ((step + part) % 4)
        ids, y = torch.randint(1, 16000, (batch, length)), torch.randint(0, 9, (batch, length))
        mask = torch.ones_like(ids)
        for k in range(batch):
            mask[k, length - 7 * k:] = 0 if k else 1
        y = y.masked_fill(mask == 0, -100)
        loss = model(input_ids=ids.cuda(), attention_mask=mask.cuda(), labels=y.cuda()).loss / 2
        loss.backward()
    optimizer.step()
    optimizer.zero_grad()
    print(step, 2 * loss.item())
model.eval()
with torch.no_grad():
    for _ in range(2):
        print(model(input_ids=torch.randint(1, 16000, (48, 224)).cuda()).logits.argmax(-1).float().mean().item())
