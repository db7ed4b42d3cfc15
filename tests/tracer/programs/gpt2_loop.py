"""GPT-2 small, bfloat16 autocast, AdamW without foreach, four micro-batches a step, evaluation without gradients."""
import torch
from transformers import GPT2Config, GPT2LMHeadModel

torch.manual_seed(4)
model = GPT2LMHeadModel(GPT2Config(resid_pdrop=0.1, attn_pdrop=0.1)).cuda()
opt = torch.optim.AdamW(model.parameters(), lr=1e-4, foreach=False)
tokens = torch.randint(0, 50257, (200000,))


def batch(size, length):
    starts = torch.randint(0, len(tokens) - length, (size,)).tolist()
    return torch.stack([tokens[s:s + length] for s in starts]).cuda()


for step in range(6):
    opt.zero_grad(set_to_none=True)
    for micro in range(4):
        x = batch(6, 768 if micro % 2 else 512)
        with torch.autocast("cuda", dtype=torch.bfloat16):
            loss = model(x, labels=x).loss / 4
        loss.backward()
    torch.nn.utils.clip_grad_value_(model.parameters(), 1.0)
    opt.step()
    if step % 3 == 2:
        model.eval()
        with torch.no_grad():
            x = batch(8, 1024)
            print(step, model(x, labels=x).loss.item())
        model.train()
