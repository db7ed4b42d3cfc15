"""transformers' GPT-NeoX, small: gradient checkpointing of the library, accumulation, bfloat16 autocast, warm-up, fused AdamW, perplexity."""
import torch
from transformers import GPTNeoXConfig, GPTNeoXForCausalLM, get_cosine_schedule_with_warmup

torch.manual_seed(806)
config = GPTNeoXConfig(vocab_size=16000, hidden_size=640, num_hidden_layers=8, num_attention_heads=10, intermediate_size=2560, max_position_embeddings=1024, use_cache=False)
model = GPTNeoXForCausalLM(config).cuda()
model.gradient_checkpointing_enable()
optimizer = torch.optim.AdamW(model.parameters(), lr=3e-4, fused=True)
schedule = get_cosine_schedule_with_warmup(optimizer, 2, 20)
text = torch.randint(0, 16000, (400, 768))
place = 0
for step in range(5):
    for part in range(3):
        ids = text[place : place + 8].cuda()
        place += 8
        with torch.autocast("cuda", dtype=torch.bfloat16):
            loss = model(input_ids=ids, labels=ids).loss / 3
        loss.backward()
    torch.nn.utils.clip_grad_norm_(model.parameters(), 1.0)
    optimizer.step()
    schedule.step()
    optimizer.zero_grad()
    print(step, 3 * loss.item())
model.eval()
with torch.no_grad(), torch.autocast("cuda", dtype=torch.bfloat16):
    total = sum(model(input_ids=t.cuda(), labels=t.cuda()).loss.item() for t in text[300:340].split(10))
print(total / 4)
