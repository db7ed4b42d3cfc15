"""Three programs to train, with PyTorch alone: GPT-2 (124 M, batch 8 x 512, bfloat16 autocast, AdamW), ResNet-50
(batches of 64 and 37 images of 224 x 224, SGD) and a recommender whose embedding tables are made when they are
first used. Each is a function that makes the program; what it returns runs one step and gives the loss."""
import math
import random

import torch
import torch.nn as nn
import torch.nn.functional as F
from torch.nn.attention import SDPBackend, sdpa_kernel

DEV = "cuda"


class Attention(nn.Module):
    def __init__(self, width, heads):
        super().__init__()
        self.heads = heads
        self.qkv, self.out = nn.Linear(width, 3 * width), nn.Linear(width, width)
        self.drop = nn.Dropout(0.1)

    def forward(self, x):
        b, t, c = x.shape
        q, k, v = (y.view(b, t, self.heads, c // self.heads).transpose(1, 2) for y in self.qkv(x).split(c, dim=2))
        # PyTorch takes cuDNN's where it is there, which is not deterministic.
        with sdpa_kernel(SDPBackend.FLASH_ATTENTION):
            y = F.scaled_dot_product_attention(q, k, v, dropout_p=0.1, is_causal=True)
        return self.drop(self.out(y.transpose(1, 2).reshape(b, t, c)))


def gelu(x):
    return 0.5 * x * (1.0 + torch.tanh(math.sqrt(2.0 / math.pi) * (x + 0.044715 * torch.pow(x, 3.0))))


class Block(nn.Module):
    def __init__(self, width, heads):
        super().__init__()
        self.ln1, self.ln2 = nn.LayerNorm(width), nn.LayerNorm(width)
        self.attention = Attention(width, heads)
        self.up, self.down, self.drop = nn.Linear(width, 4 * width), nn.Linear(4 * width, width), nn.Dropout(0.1)

    def forward(self, x):
        x = x + self.attention(self.ln1(x))
        return x + self.drop(self.down(gelu(self.up(self.ln2(x)))))


class GPT2(nn.Module):
    def __init__(self, words=50257, context=1024, width=768, layers=12, heads=12):
        super().__init__()
        self.word, self.place = nn.Embedding(words, width), nn.Embedding(context, width)
        self.drop = nn.Dropout(0.1)
        self.blocks = nn.ModuleList(Block(width, heads) for _ in range(layers))
        self.ln = nn.LayerNorm(width)
        for module in self.modules():
            if isinstance(module, (nn.Linear, nn.Embedding)):
                nn.init.normal_(module.weight, std=0.02)
                if getattr(module, "bias", None) is not None:
                    nn.init.zeros_(module.bias)

    def forward(self, x):
        h = self.drop(self.word(x) + self.place(torch.arange(x.shape[1], device=x.device)))
        for block in self.blocks:
            h = block(h)
        logits = F.linear(self.ln(h), self.word.weight).float()
        return F.cross_entropy(logits[:, :-1].reshape(-1, logits.shape[-1]), x[:, 1:].reshape(-1))


def gpt2():
    model = GPT2().to(DEV)
    optimizer = torch.optim.AdamW(model.parameters(), 1e-4)

    def step(_):
        x = torch.randint(0, 50257, (8, 512), device=DEV)
        with torch.autocast("cuda", torch.bfloat16):
            loss = model(x)
        loss.backward()
        optimizer.step()
        optimizer.zero_grad(set_to_none=True)
        return loss.detach()

    return step


class Bottleneck(nn.Module):
    def __init__(self, inside, width, stride):
        super().__init__()
        self.conv1, self.bn1 = nn.Conv2d(inside, width, 1, bias=False), nn.BatchNorm2d(width)
        self.conv2 = nn.Conv2d(width, width, 3, stride, 1, bias=False)
        self.bn2 = nn.BatchNorm2d(width)
        self.conv3, self.bn3 = nn.Conv2d(width, 4 * width, 1, bias=False), nn.BatchNorm2d(4 * width)
        self.relu = nn.ReLU(inplace=True)
        self.short = None
        if stride != 1 or inside != 4 * width:
            self.short = nn.Sequential(nn.Conv2d(inside, 4 * width, 1, stride, bias=False), nn.BatchNorm2d(4 * width))

    def forward(self, x):
        y = self.relu(self.bn1(self.conv1(x)))
        y = self.relu(self.bn2(self.conv2(y)))
        y = self.bn3(self.conv3(y))
        y += x if self.short is None else self.short(x)
        return self.relu(y)


class ResNet50(nn.Module):
    def __init__(self):
        super().__init__()
        layers, inside = [], 64
        for width, count, stride in ((64, 3, 1), (128, 4, 2), (256, 6, 2), (512, 3, 2)):
            for i in range(count):
                layers.append(Bottleneck(inside, width, stride if i == 0 else 1))
                inside = 4 * width
        self.stem = nn.Sequential(nn.Conv2d(3, 64, 7, 2, 3, bias=False), nn.BatchNorm2d(64), nn.ReLU(inplace=True),
                                  nn.MaxPool2d(3, 2, 1))
        self.layers, self.head = nn.Sequential(*layers), nn.Linear(2048, 1000)
        for module in self.modules():
            if isinstance(module, nn.Conv2d):
                nn.init.kaiming_normal_(module.weight, mode="fan_out", nonlinearity="relu")

    def forward(self, x):
        return self.head(self.layers(self.stem(x)).mean((2, 3)))


def resnet50():
    model = ResNet50().to(DEV)
    optimizer = torch.optim.SGD(model.parameters(), 0.1, momentum=0.9)
    measure = nn.CrossEntropyLoss()

    def step(i):
        batch = 64 if i % 5 else 37
        images = torch.randn(batch, 3, 224, 224, device=DEV)
        loss = measure(model(images), torch.randint(0, 1000, (batch,), device=DEV))
        loss.backward()
        optimizer.step()
        optimizer.zero_grad(set_to_none=True)
        return loss.detach()

    return step


def dlrm():
    tables = nn.ModuleList()
    bottom = nn.Sequential(nn.Linear(13, 512), nn.ReLU(), nn.Linear(512, 64)).to(DEV)
    top = [None]
    r = random.Random(1)

    def step(i):
        if i % 4 == 0 and len(tables) < 14:
            rows, sparse = int(10 ** r.uniform(4, 6.6)), r.random() < 0.5
            tables.append(nn.EmbeddingBag(rows, 64, mode="sum", sparse=sparse).to(DEV))
            top[0] = nn.Sequential(nn.Linear(64 * (len(tables) + 1), 512), nn.ReLU(), nn.Linear(512, 1)).to(DEV)
        batch = r.choice([2048, 4096, 8192])
        parts = [bottom(torch.randn(batch, 13, device=DEV))]
        for table in tables:
            bags = torch.randint(0, table.num_embeddings, (batch, r.randrange(1, 20)), device=DEV)
            parts.append(table(bags))
        loss = top[0](torch.cat(parts, 1)).sigmoid().mean()
        loss.backward()
        with torch.no_grad():  # so that a loss tells of the gradients before it
            for p in [*tables.parameters(), *bottom.parameters(), *top[0].parameters()]:
                if p.grad is not None and not p.grad.is_sparse:
                    p.add_(p.grad, alpha=-0.05)
                p.grad = None
        return loss.detach()

    return step



MODELS = {"gpt2": gpt2, "resnet50": resnet50, "dlrm": dlrm}
# Steps whose losses are compared, and that come before any is timed (the recommender makes its tables in them);
# steps of a timed block.
LOSS_STEPS = {"gpt2": 20, "resnet50": 20, "dlrm": 60}
BLOCK_STEPS = {"gpt2": 2, "resnet50": 2, "dlrm": 8}
