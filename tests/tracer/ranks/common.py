"""A Llama-like model and the start of a rank, for the programs of this folder."""

import os

import torch
import torch.distributed as dist
import torch.nn as nn
import torch.nn.functional as F


def start():
    """Starts the process group: NCCL's, or PyTorch's fake one with BACKEND=fake, to run one rank on one card."""
    if os.environ.get("BACKEND") == "fake":
        from torch.testing._internal.distributed.fake_pg import FakeStore

        rank, world = int(os.environ["RANK"]), int(os.environ["WORLD_SIZE"])
        dist.init_process_group("fake", store=FakeStore(), rank=rank, world_size=world)
    else:
        dist.init_process_group("nccl")
    torch.cuda.set_device(int(os.environ["LOCAL_RANK"]))
    torch.manual_seed(0)
    return dist.get_rank(), dist.get_world_size(), torch.device("cuda", torch.cuda.current_device())


class Attention(nn.Module):
    def __init__(self, width, heads):
        super().__init__()
        self.size = width // heads
        self.q, self.k, self.v, self.o = (nn.Linear(width, width, bias=False) for _ in range(4))

    def forward(self, x):
        batch, length, _ = x.shape
        q, k, v = (p(x).view(batch, length, -1, self.size).transpose(1, 2) for p in (self.q, self.k, self.v))
        y = F.scaled_dot_product_attention(q, k, v, is_causal=True)
        return self.o(y.transpose(1, 2).reshape(batch, length, -1))


class Feed(nn.Module):
    def __init__(self, width, inner):
        super().__init__()
        self.gate, self.up = nn.Linear(width, inner, bias=False), nn.Linear(width, inner, bias=False)
        self.down = nn.Linear(inner, width, bias=False)

    def forward(self, x):
        return self.down(F.silu(self.gate(x)) * self.up(x))


class Block(nn.Module):
    def __init__(self, width, heads, inner):
        super().__init__()
        self.attention_norm, self.feed_norm = nn.RMSNorm(width), nn.RMSNorm(width)
        self.attention, self.feed = Attention(width, heads), Feed(width, inner)

    def forward(self, x):
        x = x + self.attention(self.attention_norm(x))
        return x + self.feed(self.feed_norm(x))


class Llama(nn.Module):
    def __init__(self, words=32000, width=1024, heads=16, inner=2816, layers=8):
        super().__init__()
        self.embed = nn.Embedding(words, width)
        self.layers = nn.ModuleList(Block(width, heads, inner) for _ in range(layers))
        self.norm, self.head = nn.RMSNorm(width), nn.Linear(width, words, bias=False)

    def forward(self, tokens):
        x = self.embed(tokens)
        for layer in self.layers:
            x = layer(x)
        return self.head(self.norm(x))


def loss_of(logits, tokens):
    return F.cross_entropy(logits.flatten(0, 1).float(), tokens.flatten())


def lengths(steps):
    """Lengths of sequences that vary from step to step."""
    return [512 + 128 * (i * 5 % 4) for i in range(steps)]
