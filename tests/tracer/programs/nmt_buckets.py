"""Translation with nn.Transformer: batches of as many tokens, label smoothing, warm-up, then beams whose cache is cut and reordered."""
import random

import torch
import torch.nn.functional as F
from torch import nn

random.seed(112)
torch.manual_seed(112)
VOCABULARY, WIDTH = 32000, 512


class Model(nn.Module):
    def __init__(self):
        super().__init__()
        self.embed, self.place = nn.Embedding(VOCABULARY, WIDTH, padding_idx=0), nn.Embedding(200, WIDTH)
        self.net = nn.Transformer(WIDTH, 8, 4, 4, 2048, dropout=0.1, batch_first=True)
        self.head = nn.Linear(WIDTH, VOCABULARY, bias=False)
        self.head.weight = self.embed.weight

    def enter(self, ids):
        return self.embed(ids) * WIDTH**0.5 + self.place(torch.arange(ids.shape[1], device=ids.device))

    def forward(self, source, target):
        mask = nn.Transformer.generate_square_subsequent_mask(target.shape[1], device=target.device, dtype=torch.bool)
        pad = source == 0
        y = self.net(self.enter(source), self.enter(target), tgt_mask=mask, src_key_padding_mask=pad, memory_key_padding_mask=pad,
                     tgt_key_padding_mask=target == 0, tgt_is_causal=True)
        return self.head(y)


def batch(tokens):
    width = random.choice([16, 24, 40, 64, 96])
    n = tokens // width
    source, target = torch.randint(3, VOCABULARY, (n, width)), torch.randint(3, VOCABULARY, (n, width + 1))
    lengths = torch.randint(width - 8, width + 1, (n, 1))
    source[torch.arange(width) >= lengths] = 0
    target[torch.arange(width + 1) > lengths] = 0
    target[:, 0] = 1
    return source.cuda(), target.cuda()


@torch.no_grad()
def beams(model, source, width=5, limit=48):
    """Beam search that keeps keys and values of each layer of the decoder: chosen rows are gathered at each token."""
    n, decoder = len(source), model.net.decoder
    memory = model.net.encoder(model.enter(source), src_key_padding_mask=source == 0).repeat_interleave(width, 0)
    blocked = (source == 0).repeat_interleave(width, 0)[:, None, None]
    ids = torch.ones(n * width, 1, dtype=torch.long, device="cuda")
    scores = torch.tensor([0.0] + [-1e9] * (width - 1), device="cuda").repeat(n)
    caches = [None] * len(decoder.layers)
    cross = []

    def split(y):
        return y.view(y.shape[0], y.shape[1], 8, -1).transpose(1, 2)

    for layer in decoder.layers:
        m = layer.multihead_attn
        k, v = F.linear(memory, m.in_proj_weight[WIDTH:], m.in_proj_bias[WIDTH:]).chunk(2, -1)
        cross.append((split(k), split(v)))
    for t in range(limit):
        x = model.embed(ids[:, -1:]) * WIDTH**0.5 + model.place.weight[t]
        for i, layer in enumerate(decoder.layers):
            q, k, v = map(split, F.linear(x, layer.self_attn.in_proj_weight, layer.self_attn.in_proj_bias).chunk(3, -1))
            if caches[i] is not None:
                k, v = torch.cat([caches[i][0], k], 2), torch.cat([caches[i][1], v], 2)
            caches[i] = (k, v)
            y = F.scaled_dot_product_attention(q, k, v).transpose(1, 2).flatten(2)
            x = layer.norm1(x + layer.self_attn.out_proj(y))
            m = layer.multihead_attn
            q = split(F.linear(x, m.in_proj_weight[:WIDTH], m.in_proj_bias[:WIDTH]))
            y = F.scaled_dot_product_attention(q, *cross[i], attn_mask=~blocked).transpose(1, 2).flatten(2)
            x = layer.norm2(x + m.out_proj(y))
            x = layer.norm3(x + layer.linear2(F.relu(layer.linear1(x))))
        p = model.head(decoder.norm(x)[:, 0]).log_softmax(-1) + scores[:, None]
        scores, best = p.view(n, -1).topk(width, 1)
        rows = (best // VOCABULARY + torch.arange(n, device="cuda")[:, None] * width).view(-1)
        scores = scores.view(-1)
        ids = torch.cat([ids[rows], (best % VOCABULARY).view(-1, 1)], 1)
        caches = [(k.index_select(0, rows), v.index_select(0, rows)) for k, v in caches]
    return ids.view(n, width, -1)[:, 0]


model = Model().cuda()
optimizer = torch.optim.Adam(model.parameters(), lr=1.0, betas=(0.9, 0.98), eps=1e-9)
schedule = torch.optim.lr_scheduler.LambdaLR(optimizer, lambda s: WIDTH**-0.5 * min((s + 1) ** -0.5, (s + 1) * 4000**-1.5))
for step in range(9):
    source, target = batch(6144)
    logits = model(source, target[:, :-1])
    loss = F.cross_entropy(logits.reshape(-1, VOCABULARY), target[:, 1:].reshape(-1), ignore_index=0, label_smoothing=0.1)
    optimizer.zero_grad()
    loss.backward()
    optimizer.step()
    schedule.step()
    print(step, tuple(source.shape), loss.item())
model.eval()
for n in (24, 40):
    source, _ = batch(n * 40)
    print(beams(model, source[:n]).shape)
