"""Instructions packed into full rows: transformers' Llama with grouped queries in bfloat16, prompts without a loss, AdamW with master copies off, then answers."""
import random

import torch
from transformers import LlamaConfig, LlamaForCausalLM

random.seed(807)
torch.manual_seed(807)
config = LlamaConfig(vocab_size=24000, hidden_size=768, intermediate_size=2048, num_hidden_layers=8, num_attention_heads=12, num_key_value_heads=4, max_position_embeddings=1024)
model = LlamaForCausalLM(config).to("cuda", torch.bfloat16)
optimizer = torch.optim.AdamW(model.parameters(), lr=2e-5, betas=(0.9, 0.95))


def row(length=896):
    ids, labels = [], []
    while len(ids) < length:
        prompt, answer = random.randrange(20, 120), random.randrange(30, 250)
        words = [random.randrange(3, 24000) for _ in range(prompt + answer)]
        ids += words
        labels += [-100] * prompt + words[prompt:]
    return ids[:length], labels[:length]


model.train()
for step in range(8):
    rows = [row() for _ in range(6)]
    ids, labels = torch.tensor([r[0] for r in rows]).cuda(), torch.tensor([r[1] for r in rows]).cuda()
    out = model(input_ids=ids, labels=labels)
    out.loss.backward()
    norm = torch.nn.utils.clip_grad_norm_(model.parameters(), 1.0)
    optimizer.step()
    optimizer.zero_grad(set_to_none=True)
    print(step, out.loss.item(), norm.item())
model.eval()
prompt = torch.tensor([[random.randrange(3, 24000) for _ in range(60)] for _ in range(4)]).cuda()
print(model.generate(prompt, attention_mask=torch.ones_like(prompt), max_new_tokens=40, min_new_tokens=40, do_sample=False, pad_token_id=0).shape)
