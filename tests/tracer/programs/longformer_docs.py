"""Long documents of different lengths through a Longformer of transformers: global attention on the first token, layers checkpointed, bfloat16, AdamW with a linear decay."""
import torch
from transformers import LongformerConfig, LongformerForSequenceClassification, get_linear_schedule_with_warmup

torch.manual_seed(1108)
config = LongformerConfig(vocab_size=8000, hidden_size=256, num_hidden_layers=6, num_attention_heads=8, intermediate_size=1024, attention_window=[128] * 6, max_position_embeddings=2050, num_labels=5)
model = LongformerForSequenceClassification(config).cuda()
model.gradient_checkpointing_enable()
optimizer = torch.optim.AdamW(model.parameters(), 3e-4)
rate = get_linear_schedule_with_warmup(optimizer, 2, 20)
for step in range(8):
    longest = (700, 1024, 1500, 900)[step % 4]
    lengths = torch.randint(longest // 3, longest + 1, (4,))
    lengths[0] = longest
    mask = (torch.arange(longest)[None] < lengths[:, None]).long()
    ids = torch.randint(5, 8000, (4, longest)) * mask + (1 - mask)
    seen = torch.zeros_like(mask)
    seen[:, 0] = 1
    with torch.autocast("cuda", torch.bfloat16):
        loss = model(input_ids=ids.cuda(), attention_mask=mask.cuda(), global_attention_mask=seen.cuda(), labels=torch.randint(0, 5, (4,)).cuda()).loss
    loss.backward()
    torch.nn.utils.clip_grad_norm_(model.parameters(), 1.0)
    optimizer.step()
    rate.step()
    optimizer.zero_grad()
    print(step, longest, loss.item())
model.eval()
with torch.no_grad():
    for longest in (1024, 2000):
        ids = torch.randint(5, 8000, (6, longest), device="cuda")
        print(longest, model(input_ids=ids).logits.argmax(1).tolist())
