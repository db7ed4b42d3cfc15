"""Direct preference optimization: a policy and a frozen reference, pairs of answers of any length in one batch."""
import copy
import random

import torch
import torch.nn.functional as F
from transformers import GPT2Config, GPT2LMHeadModel

random.seed(62)
torch.manual_seed(62)
policy = GPT2LMHeadModel(GPT2Config(n_layer=8, n_embd=640, n_head=10, vocab_size=16000, n_positions=512)).cuda()
reference = copy.deepcopy(policy).eval().requires_grad_(False).to(torch.bfloat16)
optimizer = torch.optim.RMSprop(policy.parameters(), lr=1e-6)


def batch(pairs):
    rows = []
    for _ in range(pairs):
        prompt = [random.randrange(16000) for _ in range(random.randrange(16, 120))]
        for _ in range(2):
            rows.append((prompt, [random.randrange(16000) for _ in range(random.randrange(10, 200))]))
    rows = rows[::2] + rows[1::2]
    width = max(len(p) + len(a) for p, a in rows)
    ids = torch.full((len(rows), width), 0)
    labels = torch.full((len(rows), width), -100)
    mask = torch.zeros(len(rows), width, dtype=torch.long)
    for i, (p, a) in enumerate(rows):
        ids[i, : len(p) + len(a)] = torch.tensor(p + a)
        labels[i, len(p) : len(p) + len(a)] = torch.tensor(a)
        mask[i, : len(p) + len(a)] = 1
    return ids.cuda(), labels.cuda(), mask.cuda()


def log_probabilities(model, ids, labels, mask):
    logits = model(ids, attention_mask=mask, use_cache=False).logits[:, :-1].float()
    labels = labels[:, 1:].clone()
    kept = labels != -100
    labels[labels == -100] = 0
    each = torch.gather(logits.log_softmax(-1), 2, labels.unsqueeze(2)).squeeze(2)
    return (each * kept).sum(-1)


for step in range(8):
    ids, labels, mask = batch(6)
    with torch.no_grad():
        old = log_probabilities(reference, ids, labels, mask)
    with torch.autocast("cuda", torch.bfloat16):
        new = log_probabilities(policy, ids, labels, mask)
    chosen, rejected = (new - old).chunk(2)
    loss = -F.logsigmoid(0.1 * (chosen - rejected)).mean()
    loss.backward()
    torch.nn.utils.clip_grad_norm_(policy.parameters(), 10.0)
    optimizer.step()
    optimizer.zero_grad()
    print(step, loss.item(), (chosen > rejected).float().mean().item())
