"""Search by meaning: two towers of transformers' MPNet-like BERT share weights, hard negatives, in-batch losses, an index built in chunks and searched."""
import random

import torch
import torch.nn.functional as F
from transformers import BertConfig, BertModel

random.seed(821)
torch.manual_seed(821)
model = BertModel(BertConfig(vocab_size=20000, hidden_size=512, num_hidden_layers=6, num_attention_heads=8, intermediate_size=2048), add_pooling_layer=False).cuda()
optimizer = torch.optim.AdamW(model.parameters(), 2e-5, weight_decay=0.01)


def texts(count, low, high):
    lengths = sorted((random.randrange(low, high) for _ in range(count)), reverse=True)
    ids, mask = torch.zeros(count, lengths[0], dtype=torch.long), torch.zeros(count, lengths[0], dtype=torch.long)
    for i, n in enumerate(lengths):
        ids[i, :n], mask[i, :n] = torch.randint(1, 20000, (n,)), 1
    return ids.cuda(), mask.cuda()


def encode(ids, mask):
    hidden = model(input_ids=ids, attention_mask=mask).last_hidden_state
    m = mask.unsqueeze(-1).to(hidden.dtype)
    return F.normalize((hidden * m).sum(1) / m.sum(1).clamp(min=1e-9), dim=-1)


for step in range(7):
    model.train()
    with torch.autocast("cuda", dtype=torch.bfloat16):
        query = encode(*texts(32, 5, 40))
        right, wrong = encode(*texts(32, 40, 200)), encode(*texts(32, 40, 200))
        logits = query @ torch.cat([right, wrong]).t() * 20
        loss = F.cross_entropy(logits.float(), torch.arange(32, device="cuda"))
    optimizer.zero_grad()
    loss.backward()
    optimizer.step()
    print(step, loss.item())
model.eval()
with torch.inference_mode():
    index = torch.cat([encode(*texts(128, 40, 200)) for _ in range(6)])
    best = (encode(*texts(64, 5, 40)) @ index.t()).topk(10, dim=1)
print(best.indices.shape)
