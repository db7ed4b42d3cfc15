"""Packed documents with FlexAttention: a mask of blocks that keeps documents apart within a window, compiled attention with a bias by distance in a small decoder, bfloat16, AdamW."""
import torch
import torch.nn.functional as F
from torch import nn
from torch.nn.attention.flex_attention import create_block_mask, flex_attention

torch.manual_seed(1319)
attend = torch.compile(flex_attention)
W, HEADS, LENGTH = 512, 8, 2048


class Block(nn.Module):
    def __init__(self):
        super().__init__()
        self.n1, self.n2 = nn.RMSNorm(W), nn.RMSNorm(W)
        self.qkv, self.out = nn.Linear(W, 3 * W, bias=False), nn.Linear(W, W, bias=False)
        self.up, self.down = nn.Linear(W, 4 * W, bias=False), nn.Linear(4 * W, W, bias=False)

    def forward(self, x, mask, bias):
        q, k, v = self.qkv(self.n1(x)).unflatten(2, (3, HEADS, -1)).permute(2, 0, 3, 1, 4)
        y = attend(q, k, v, score_mod=bias, block_mask=mask)
        x = x + self.out(y.transpose(1, 2).flatten(2))
        return x + self.down(F.silu(self.up(self.n2(x))))


class Net(nn.Module):
    def __init__(self, words=12000, depth=6):
        super().__init__()
        self.words, self.blocks, self.norm, self.head = nn.Embedding(words, W), nn.ModuleList(Block() for _ in range(depth)), nn.RMSNorm(W), nn.Linear(W, words, bias=False)

    def forward(self, ids, mask, bias):
        x = self.words(ids)
        for block in self.blocks:
            x = block(x, mask, bias)
        return self.head(self.norm(x))


net = Net().to("cuda", torch.bfloat16)
optimizer = torch.optim.AdamW(net.parameters(), 3e-4)
slopes = torch.exp2(-torch.arange(1, HEADS + 1, device="cuda") * 8.0 / HEADS)


def bias(score, b, h, q, k):
    return score - slopes[h] * (q - k)


for step in range(6):
    ids = torch.randint(0, 12000, (4, LENGTH))
    ends = torch.sort(torch.randint(1, LENGTH, (4, 5)), dim=1).values
    document = (torch.arange(LENGTH)[None, :, None] >= ends[:, None]).sum(2).cuda()

    def same(b, h, q, k):
        return (q >= k) & (document[b, q] == document[b, k]) & (q - k < 512)

    mask = create_block_mask(same, 4, None, LENGTH, LENGTH, device="cuda")
    ids = ids.cuda()
    logits = net(ids, mask, bias)
    loss = F.cross_entropy(logits[:, :-1].flatten(0, 1).float(), ids[:, 1:].flatten())
    optimizer.zero_grad()
    loss.backward()
    nn.utils.clip_grad_norm_(net.parameters(), 1.0)
    optimizer.step()
    print(step, loss.item())
