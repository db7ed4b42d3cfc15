"""One rank of a large language model that trains with tensor, pipeline and data parallelism, as Megatron-LM does it.

    parallel.py [--model llama7b|llama70b|gpt345m|gpt1.3b|qwen-moe] [--tp N] [--pp N] [--micro N] [--microbatches N]
                [--length N] [--vary] [--recompute] [--offload] [--zero] [--steps N]

Sequence parallelism between the products, 1F1B pipeline, gradients in one float32 buffer, AdamW on float32 copies of
the weights (--zero: on this data-parallel rank's share). Without fused kernels: every operator is PyTorch's own.
"""

import argparse
import contextlib

import torch
import torch.distributed as dist
import torch.nn as nn
import torch.nn.functional as F
from torch.utils.checkpoint import checkpoint

MODELS = {  # layers, width, heads, key-value heads, inner width, words, experts, experts of a token, gated
    "gpt345m": (24, 1024, 16, 16, 4096, 50304, 0, 0, False),
    "gpt1.3b": (24, 2048, 16, 16, 8192, 50304, 0, 0, False),
    "llama7b": (32, 4096, 32, 32, 11008, 32000, 0, 0, True),
    "llama70b": (80, 8192, 64, 8, 28672, 32000, 0, 0, True),
    "qwen-moe": (24, 2048, 16, 16, 1408, 151936, 60, 4, True),
}


def arguments():
    p = argparse.ArgumentParser()
    p.add_argument("--model", choices=MODELS, default="gpt345m")
    for name, value in (("tp", 1), ("pp", 1), ("micro", 1), ("microbatches", 4), ("length", 2048), ("steps", 3), ("seed", 0)):
        p.add_argument(f"--{name}", type=int, default=value)
    for name in ("vary", "recompute", "offload", "zero"):
        p.add_argument(f"--{name}", action="store_true")
    return p.parse_args()


class Groups:
    """Ranks are numbered with the tensor-parallel place first, then the data-parallel one, then the stage."""

    def __init__(self, tp, pp):
        rank, world = dist.get_rank(), dist.get_world_size()
        dp = world // (tp * pp)
        places = [(r % tp, r // tp % dp, r // (tp * dp)) for r in range(world)]
        mine = places[rank]
        for axis, name in enumerate(("tensor", "data", "stage")):
            for key in sorted({p[:axis] + p[axis + 1 :] for p in places}):
                members = [r for r, p in enumerate(places) if p[:axis] + p[axis + 1 :] == key]
                group = dist.new_group(members)
                if rank in members:
                    setattr(self, name, group)
                    setattr(self, name + "_ranks", members)
        self.tp, self.dp, self.pp, self.stage_number = tp, dp, pp, mine[2]


class Gather(torch.autograd.Function):
    """From this rank's part of the sequence to all of it; the gradient is summed and divided again."""

    @staticmethod
    def forward(ctx, x, group, count):
        ctx.group, ctx.count = group, count
        out = x.new_empty(x.shape[0] * count, *x.shape[1:])
        dist.all_gather_into_tensor(out, x.contiguous(), group=group)
        return out

    @staticmethod
    def backward(ctx, grad):
        out = grad.new_empty(grad.shape[0] // ctx.count, *grad.shape[1:])
        dist.reduce_scatter_tensor(out, grad.contiguous(), group=ctx.group)
        return out, None, None


class Scatter(torch.autograd.Function):
    """Sums the partial results of all ranks and keeps this rank's part of the sequence."""

    @staticmethod
    def forward(ctx, x, group, count):
        ctx.group, ctx.count = group, count
        out = x.new_empty(x.shape[0] // count, *x.shape[1:])
        dist.reduce_scatter_tensor(out, x.contiguous(), group=group)
        return out

    @staticmethod
    def backward(ctx, grad):
        out = grad.new_empty(grad.shape[0] * ctx.count, *grad.shape[1:])
        dist.all_gather_into_tensor(out, grad.contiguous(), group=ctx.group)
        return out, None, None


class Attention(nn.Module):
    def __init__(self, width, heads, kv_heads, groups):
        super().__init__()
        self.groups, self.size = groups, width // heads
        self.heads, self.kv_heads = heads // groups.tp, max(1, kv_heads // groups.tp)
        self.qkv = nn.Linear(width, (self.heads + 2 * self.kv_heads) * self.size, bias=False)
        self.out = nn.Linear(self.heads * self.size, width, bias=False)

    def forward(self, x):
        x = Gather.apply(x, self.groups.tensor, self.groups.tp)
        length, batch, _ = x.shape
        q, k, v = self.qkv(x).view(length, batch, -1, self.size).split([self.heads, self.kv_heads, self.kv_heads], dim=2)
        q, k, v = (t.permute(1, 2, 0, 3) for t in (q, k, v))
        y = F.scaled_dot_product_attention(q, k, v, is_causal=True, enable_gqa=self.heads != self.kv_heads)
        return Scatter.apply(self.out(y.permute(2, 0, 1, 3).reshape(length, batch, -1)), self.groups.tensor, self.groups.tp)


class Feed(nn.Module):
    def __init__(self, width, inner, gated, groups):
        super().__init__()
        self.groups, self.gated = groups, gated
        self.up = nn.Linear(width, (2 if gated else 1) * inner // groups.tp, bias=False)
        self.down = nn.Linear(inner // groups.tp, width, bias=False)

    def inner(self, x):
        x = self.up(x)
        if self.gated:
            gate, x = x.chunk(2, dim=-1)
            return self.down(F.silu(gate) * x)
        return self.down(F.gelu(x))

    def forward(self, x):
        x = Gather.apply(x, self.groups.tensor, self.groups.tp)
        return Scatter.apply(self.inner(x), self.groups.tensor, self.groups.tp)


class Experts(nn.Module):
    """The experts of a token are chosen by a gate: the sizes of their products vary."""

    def __init__(self, width, inner, experts, chosen, groups):
        super().__init__()
        self.groups, self.chosen = groups, chosen
        self.gate = nn.Linear(width, experts, bias=False)
        self.experts = nn.ModuleList(Feed(width, inner, True, groups) for _ in range(experts))
        self.shared = Feed(width, 4 * inner, True, groups)

    def forward(self, x):
        x = Gather.apply(x, self.groups.tensor, self.groups.tp)
        flat = x.flatten(0, 1)
        weights, experts = self.gate(flat).float().softmax(-1).topk(self.chosen, dim=-1)
        out = torch.zeros_like(flat)
        for number, expert in enumerate(self.experts):
            token, place = (experts == number).nonzero(as_tuple=True)
            y = expert.inner(flat[token]) * weights[token, place, None].to(flat.dtype)
            out = out.index_add(0, token, y)
        return Scatter.apply((out + self.shared.inner(flat)).view_as(x), self.groups.tensor, self.groups.tp)


class Block(nn.Module):
    def __init__(self, shape, groups):
        super().__init__()
        _, width, heads, kv_heads, inner, _, experts, chosen, gated = shape
        norm = nn.RMSNorm if gated else nn.LayerNorm
        self.norms = nn.ModuleList(norm(width) for _ in range(2))
        self.attention = Attention(width, heads, kv_heads, groups)
        self.feed = Experts(width, inner, experts, chosen, groups) if experts else Feed(width, inner, gated, groups)

    def forward(self, x):
        x = x + self.attention(self.norms[0](x))
        return x + self.feed(self.norms[1](x))


class Stage(nn.Module):
    def __init__(self, shape, groups, recompute):
        super().__init__()
        layers, width, words = shape[0] // groups.pp, shape[1], shape[5]
        self.groups, self.recompute = groups, recompute
        self.first, self.last = groups.stage_number == 0, groups.stage_number == groups.pp - 1
        if self.first:
            self.embed = nn.Embedding(words // groups.tp, width)
        self.blocks = nn.ModuleList(Block(shape, groups) for _ in range(layers))
        if self.last:
            self.norm = nn.RMSNorm(width)
            self.head = nn.Linear(width, words // groups.tp, bias=False)

    def forward(self, x, tokens):
        group, tp = self.groups.tensor, self.groups.tp
        if self.first:
            held = (tokens >= 0) & (tokens < self.embed.num_embeddings)
            x = self.embed(tokens.masked_fill(~held, 0)) * held[..., None]
            x = Scatter.apply(x, group, tp)
        for block in self.blocks:
            x = checkpoint(block, x, use_reentrant=False) if self.recompute else block(x)
        if not self.last:
            return x
        logits = self.head(Gather.apply(self.norm(x), group, tp)).float()
        largest = logits.detach().amax(-1)
        dist.all_reduce(largest, dist.ReduceOp.MAX, group=group)
        logits = logits - largest[..., None]
        held = (tokens >= 0) & (tokens < logits.shape[-1])
        target = logits.gather(-1, tokens.masked_fill(~held, 0)[..., None])[..., 0] * held
        total = logits.exp().sum(-1)
        dist.all_reduce(total.detach(), group=group)
        return (total.log() - target).mean()


@contextlib.contextmanager
def saved_on_the_host(on):
    """Activations wait for the backward pass in pinned memory of the host."""
    if not on:
        yield
        return
    with torch.autograd.graph.save_on_cpu(pin_memory=True):
        yield


class Trainer:
    def __init__(self, args):
        torch.manual_seed(args.seed)
        self.args, self.groups = args, Groups(args.tp, args.pp)
        self.shape = MODELS[args.model]
        with torch.device("cuda"):
            torch.set_default_dtype(torch.bfloat16)
            self.stage = Stage(self.shape, self.groups, args.recompute)
            torch.set_default_dtype(torch.float32)
        self.weights = list(self.stage.parameters())
        self.buffer = torch.zeros(sum(w.numel() for w in self.weights), device="cuda")
        place = 0
        for weight in self.weights:
            weight.main_grad = self.buffer[place : place + weight.numel()].view_as(weight)
            weight.register_post_accumulate_grad_hook(self.accumulate)
            place += weight.numel()
        share = self.groups.dp if args.zero else 1
        self.copies = [w.detach().float() for i, w in enumerate(self.weights) if i % share == 0]
        self.owned = [w for i, w in enumerate(self.weights) if i % share == 0]
        self.optimizer = torch.optim.AdamW(self.copies, lr=1e-4, foreach=True)

    @staticmethod
    def accumulate(weight):
        weight.main_grad.add_(weight.grad)
        weight.grad = None

    def boundary(self, length):
        return torch.empty(length // self.args.tp, self.args.micro, self.shape[1], device="cuda", dtype=torch.bfloat16)

    def peer(self, step):
        return self.groups.stage_ranks[self.groups.stage_number + step]

    def forward(self, length):
        tokens = torch.randint(0, self.shape[5], (length, self.args.micro), device="cuda")
        x = None
        if not self.stage.first:
            x = self.boundary(length)
            dist.recv(x, self.peer(-1), group=self.groups.stage)
            x.requires_grad_()
        with saved_on_the_host(self.args.offload):
            out = self.stage(x, tokens)
        if not self.stage.last:
            dist.send(out.detach(), self.peer(1), group=self.groups.stage)
        return x, out

    def backward(self, x, out, length):
        grad = None
        if not self.stage.last:
            grad = self.boundary(length)
            dist.recv(grad, self.peer(1), group=self.groups.stage)
        torch.autograd.backward(out, grad)
        if x is not None:
            dist.send(x.grad, self.peer(-1), group=self.groups.stage)

    def step(self, lengths):
        """1F1B: as many microbatches are under way as stages follow."""
        under_way, ahead = [], min(self.groups.pp - self.groups.stage_number - 1, len(lengths))
        for number, length in enumerate(lengths):
            under_way.append((*self.forward(length), length))
            if number >= ahead:
                self.backward(*under_way.pop(0))
        while under_way:
            self.backward(*under_way.pop(0))
        if self.groups.dp > 1:
            dist.all_reduce(self.buffer, group=self.groups.data)
        norm = torch.linalg.vector_norm(self.buffer)
        dist.all_reduce(norm, group=self.groups.tensor)
        self.buffer.mul_(1.0 / norm.clamp(min=1.0))
        for copy, weight in zip(self.copies, self.owned):
            copy.grad = weight.main_grad
        self.optimizer.step()
        with torch.no_grad():
            torch._foreach_copy_(self.owned, self.copies)
        if self.args.zero and self.groups.dp > 1:
            for number, weight in enumerate(self.weights):
                dist.broadcast(weight.data, self.groups.data_ranks[number % self.groups.dp], group=self.groups.data)
        self.buffer.zero_()


def main():
    args = arguments()
    dist.init_process_group("nccl")
    torch.cuda.set_device(dist.get_rank() % torch.cuda.device_count())
    trainer = Trainer(args)
    random = torch.Generator().manual_seed(args.seed)
    for _ in range(args.steps):
        lengths = [args.length] * args.microbatches
        if args.vary:
            parts = torch.randint(2, 9, (args.microbatches,), generator=random)
            lengths = [args.length * int(n) // 8 for n in parts]
        trainer.step(lengths)
    dist.destroy_process_group()


if __name__ == "__main__":
    main()
