"""One rank of a large language model that trains with tensor, pipeline, expert and data parallelism, as Megatron-LM does.

    parallel.py [--model llama7b|llama70b|gpt2|gpt345m|gpt1.3b|qwen-moe] [--tp N] [--pp N] [--vpp N] [--ep N] [--micro N]
                [--microbatches N] [--length N] [--vary] [--recompute] [--offload] [--zero] [--offload-optimizer]
                [--steps N] [--seed N]

Memory follows Megatron-LM core_r0.8.0 (its legacy models; qwen-moe: core_r0.10.0): sequence parallelism with one buffer
for gathered inputs, 1F1B or interleaved pipeline that drops what it has sent, gradients added to one float32 buffer,
float32 copies of the weights, a fused AdamW. --zero is the distributed optimizer: weights in one buffer, gradients
reduced to this data-parallel rank's share, copies and states of the share alone. --offload-optimizer keeps these on the
host. --recompute runs all layers again in backward.
"""

import argparse
import contextlib

import torch
import torch.distributed as dist
import torch.nn as nn
import torch.nn.functional as F
from torch.autograd.graph import get_gradient_edge
from torch.utils.checkpoint import checkpoint

MODELS = {  # layers, width, heads, key-value heads, inner width, words, experts, experts of a token, gated
    "gpt345m": (24, 1024, 16, 16, 4096, 50257, 0, 0, False),
    "gpt1.3b": (24, 2048, 16, 16, 8192, 50257, 0, 0, False),
    "gpt2": (24, 1024, 16, 16, 4096, 32000, 0, 0, True),
    "llama7b": (32, 4096, 32, 32, 11008, 32000, 0, 0, True),
    "llama70b": (80, 8192, 64, 8, 28672, 32000, 0, 0, True),
    "qwen-moe": (24, 2048, 16, 16, 1408, 151936, 60, 4, True),
}
NUMBERS = (("tp", 1), ("pp", 1), ("vpp", 1), ("ep", 1), ("micro", 1), ("microbatches", 4), ("length", 2048), ("steps", 3), ("seed", 0))
SWITCHES = ("vary", "recompute", "offload", "zero", "offload-optimizer")


def arguments():
    p = argparse.ArgumentParser()
    p.add_argument("--model", choices=MODELS, default="gpt345m")
    for name, value in NUMBERS:
        p.add_argument(f"--{name}", type=int, default=value)
    for name in SWITCHES:
        p.add_argument(f"--{name}", action="store_true")
    return p.parse_args()


class Groups:
    """Ranks are numbered with the tensor-parallel place first, then the data-parallel one, then the stage. The experts of
    a layer are divided among `ep` ranks that follow each other, whole."""

    def __init__(self, tp, pp, ep):
        rank, world = dist.get_rank(), dist.get_world_size()
        inside = world // pp
        self.tp, self.dp, self.pp, self.ep, self.stage_number = tp, inside // tp, pp, ep, rank // inside
        self.make("tensor", lambda r: (r // tp,))
        self.make("data", lambda r: (r % tp, r // inside))
        self.make("stage", lambda r: (r % inside,))
        if ep > 1:
            self.make("expert", lambda r: (r // ep,))
            self.make("expert_data", lambda r: (r % ep, r // inside))

    def make(self, name, key):
        """One group for each key; this rank's is kept."""
        rank, world = dist.get_rank(), dist.get_world_size()
        for one in sorted({key(r) for r in range(world)}):
            members = [r for r in range(world) if key(r) == one]
            group = dist.new_group(members)
            if rank in members:
                setattr(self, name, group)
                setattr(self, name + "_ranks", members)


class Gathered:
    """The buffer for inputs of all tensor-parallel ranks. It lives as long as the program and grows when it must."""

    data = None

    @classmethod
    def of(cls, x, groups, async_op=False):
        count = x.numel() * groups.tp
        if cls.data is None or cls.data.numel() < count:
            cls.data = torch.empty(count, dtype=x.dtype, device="cuda")
        out = cls.data[:count].view(x.shape[0] * groups.tp, *x.shape[1:])
        return out, dist.all_gather_into_tensor(out, x.contiguous(), group=groups.tensor, async_op=async_op)


class ColumnProduct(torch.autograd.Function):
    """A product whose input is this rank's part of the sequence: it saves the part, and gathers it again in backward."""

    @staticmethod
    def forward(ctx, x, weight, groups):
        ctx.groups = groups
        ctx.save_for_backward(x, weight)
        return torch.matmul(Gathered.of(x, groups)[0], weight.t())

    @staticmethod
    def backward(ctx, grad):
        x, weight = ctx.saved_tensors
        total, gather = Gathered.of(x, ctx.groups, async_op=True)
        grad_total = grad.matmul(weight)
        gather.wait()
        out = torch.empty_like(x)
        scatter = dist.reduce_scatter_tensor(out, grad_total, group=ctx.groups.tensor, async_op=True)
        grad_weight = grad.flatten(0, 1).t().matmul(total.flatten(0, 1))
        scatter.wait()
        return out, grad_weight, None


class Scatter(torch.autograd.Function):
    """Sums the partial results of all ranks and keeps this rank's part of the sequence."""

    @staticmethod
    def forward(ctx, x, groups):
        ctx.groups = groups
        out = x.new_empty(x.shape[0] // groups.tp, *x.shape[1:])
        dist.reduce_scatter_tensor(out, x.contiguous(), group=groups.tensor)
        return out

    @staticmethod
    def backward(ctx, grad):
        out = grad.new_empty(grad.shape[0] * ctx.groups.tp, *grad.shape[1:])
        dist.all_gather_into_tensor(out, grad.contiguous(), group=ctx.groups.tensor)
        return out, None


class Exchange(torch.autograd.Function):
    """Rows go to the ranks that have their experts. `sent` and `received`: rows to and from each rank."""

    @staticmethod
    def forward(ctx, x, sent, received, group):
        ctx.sizes = received, sent, group
        out = x.new_empty(sum(received), x.shape[1])
        dist.all_to_all_single(out, x.contiguous(), received, sent, group=group)
        return out

    @staticmethod
    def backward(ctx, grad):
        return Exchange.apply(grad, *ctx.sizes), None, None, None


class Rotary(torch.autograd.Function):
    """Turns pairs of a head's elements by the angle of their place. One kernel: nothing is saved but the angles."""

    @staticmethod
    def turn(x, cos, sin, sign):
        out = torch.empty_like(x)
        for one, other, to, way in zip(x.chunk(2, -1), reversed(x.chunk(2, -1)), out.chunk(2, -1), (-sign, sign)):
            to.copy_(one).mul_(cos).addcmul_(other, sin, value=way)
        return out

    @staticmethod
    def forward(ctx, x, cos, sin):
        ctx.save_for_backward(cos, sin)
        return Rotary.turn(x, cos, sin, 1)

    @staticmethod
    def backward(ctx, grad):
        return Rotary.turn(grad, *ctx.saved_tensors, -1), None, None


class CrossEntropy(torch.autograd.Function):
    """The loss of logits whose words are divided: the float32 logits become the softmax and then the gradient in place."""

    @staticmethod
    def forward(ctx, logits, target, groups):
        largest = logits.amax(-1)
        dist.all_reduce(largest, dist.ReduceOp.MAX, group=groups.tensor)
        logits -= largest[..., None]
        first = logits.shape[-1] * groups.tensor_ranks.index(dist.get_rank())
        other = (target < first) | (target >= first + logits.shape[-1])
        place = (target - first).masked_fill_(other, 0)
        predicted = logits.gather(-1, place[..., None])[..., 0].masked_fill_(other, 0.0)
        dist.all_reduce(predicted, group=groups.tensor)
        total = torch.exp(logits, out=logits).sum(-1)
        dist.all_reduce(total, group=groups.tensor)
        loss = torch.log(total) - predicted
        logits.div_(total[..., None])
        ctx.save_for_backward(logits, other, place)
        return loss

    @staticmethod
    def backward(ctx, grad):
        out, other, place = ctx.saved_tensors
        out.scatter_add_(-1, place[..., None], other[..., None].float() - 1.0)
        return out.mul_(grad[..., None]), None, None


class RootNorm(nn.Module):
    """RMSNorm of legacy models: not fused, in float32."""

    def __init__(self, width):
        super().__init__()
        self.weight = nn.Parameter(torch.ones(width))

    def forward(self, x):
        wide = x.float()
        return (wide * torch.rsqrt(wide.pow(2).mean(-1, keepdim=True) + 1e-5)).type_as(x) * self.weight


class Column(nn.Module):
    def __init__(self, width, out, groups, bias):
        super().__init__()
        self.groups = groups
        self.weight = nn.Parameter(nn.init.normal_(torch.empty(out // groups.tp, width), std=0.02))
        self.bias = nn.Parameter(torch.zeros(out // groups.tp)) if bias else None

    def forward(self, x):
        y = ColumnProduct.apply(x, self.weight, self.groups)
        return y if self.bias is None else y + self.bias


class Row(nn.Module):
    """Its bias is added after the sum over ranks, with the dropout."""

    def __init__(self, width, out, groups, bias):
        super().__init__()
        self.groups = groups
        self.inner = nn.Linear(width // groups.tp, out, bias=False)
        self.bias = nn.Parameter(torch.zeros(out)) if bias else None

    def forward(self, x):
        return Scatter.apply(self.inner(x), self.groups)


class Attention(nn.Module):
    def __init__(self, width, heads, kv_heads, groups, dense, rotary):
        super().__init__()
        self.size, self.dense, self.rotary = width // heads, dense, rotary
        self.heads, self.kv_heads = heads // groups.tp, max(1, kv_heads // groups.tp)
        self.qkv = Column(width, (heads + 2 * max(kv_heads, groups.tp)) * self.size, groups, dense)
        self.out = Row(width, width, groups, dense)
        self.bias = self.out.bias

    def forward(self, x, angles):
        mixed = self.qkv(x)
        length, batch, _ = mixed.shape
        q, k, v = mixed.view(length, batch, -1, self.size).split([self.heads, self.kv_heads, self.kv_heads], dim=2)
        if self.heads != self.kv_heads:
            k, v = (t.repeat_interleave(self.heads // self.kv_heads, dim=2) for t in (k, v))
        if self.rotary:
            q, k = Rotary.apply(q, *angles), Rotary.apply(k, *angles)
        q, k, v = (t.transpose(0, 1).contiguous().transpose(1, 2) for t in (q, k, v))
        y = F.scaled_dot_product_attention(q, k, v, dropout_p=0.1 if self.dense else 0.0, is_causal=True)
        return self.out(y.permute(2, 0, 1, 3).contiguous().flatten(2))


def activation(x, gated):
    if not gated:
        return F.gelu(x)
    gate, x = x.chunk(2, dim=-1)
    return F.silu(gate) * x


class Feed(nn.Module):
    def __init__(self, width, inner, gated, groups, bias):
        super().__init__()
        self.gated = gated
        self.up = Column(width, (2 if gated else 1) * inner, groups, bias)
        self.down = Row(inner, width, groups, bias)
        self.bias = self.down.bias

    def forward(self, x):
        return self.down(activation(self.up(x), self.gated))


class Expert(nn.Module):
    def __init__(self, width, inner):
        super().__init__()
        self.up, self.down = nn.Linear(width, 2 * inner, bias=False), nn.Linear(inner, width, bias=False)

    def forward(self, x):
        return self.down(activation(self.up(x), True))


class Experts(nn.Module):
    """A gate chooses the experts of a token: rows are sorted by expert and sent to the ranks that have them."""

    bias = None

    def __init__(self, width, inner, experts, chosen, groups):
        super().__init__()
        self.groups, self.count, self.chosen, self.here = groups, experts, chosen, experts // groups.ep
        self.gate = nn.Linear(width, experts, bias=False)
        self.experts = nn.ModuleList(Expert(width, inner) for _ in range(self.here))
        self.shared = Feed(width, 4 * inner, True, groups, False)

    def route(self, flat):
        """The rows by expert, their weights, and how many rows each expert has."""
        logits = torch.cat([self.gate(part) for part in flat.split(4096)])  # in parts that the tracer draws
        weights, experts = logits.float().softmax(-1).topk(self.chosen, dim=-1)
        experts = experts.flatten()
        order = experts.argsort(stable=True)
        counts = experts.bincount(minlength=self.count).tolist()
        return order // self.chosen, weights.flatten().index_select(0, order), counts

    def exchange(self, rows, sent, received):
        return Exchange.apply(rows, sent, received, self.groups.expert) if self.groups.ep > 1 else rows

    def forward(self, x):
        flat, ep, here = x.flatten(0, 1), self.groups.ep, self.here
        tokens, weights, counts = self.route(flat)
        # Equal ranks: each of the other ranks sends this one as many rows for an expert as this rank has for it.
        first = here * (self.groups.expert_ranks.index(dist.get_rank()) if ep > 1 else 0)
        mine = counts[first : first + here]
        sent, received = [sum(counts[r * here : (r + 1) * here]) for r in range(ep)], [sum(mine)] * ep
        rows = self.exchange(flat.index_select(0, tokens), sent, received)
        parts = rows.split(mine * ep)
        rows = torch.cat([parts[r * here + e] for e in range(here) for r in range(ep)])
        out = [expert(part) for expert, part in zip(self.experts, rows.split([n * ep for n in mine]))]
        parts = torch.cat(out).split([n for n in mine for _ in range(ep)])
        rows = torch.cat([parts[e * ep + r] for r in range(ep) for e in range(here)])
        rows = self.exchange(rows, received, sent) * weights[:, None].to(x.dtype)
        out = torch.zeros_like(flat).scatter_add(0, tokens[:, None].expand(-1, flat.shape[1]), rows)
        return out.view_as(x) + self.shared(x)


class Block(nn.Module):
    def __init__(self, shape, groups):
        super().__init__()
        _, width, heads, kv_heads, inner, _, experts, chosen, gated = shape
        dense = not experts
        norm = RootNorm if gated and dense else nn.LayerNorm
        self.dropout = 0.1 if dense else 0.0
        self.norms = nn.ModuleList(norm(width) for _ in range(2))
        self.attention = Attention(width, heads, kv_heads, groups, dense, gated)
        self.feed = Feed(width, inner, gated, groups, True) if dense else Experts(width, inner, experts, chosen, groups)

    def add(self, x, y, part):
        y = y if part.bias is None else y + part.bias
        return x + (F.dropout(y, self.dropout) if self.dropout else y)

    def forward(self, x, cos, sin, mask):
        x = self.add(x, self.attention(self.norms[0](x), (cos, sin)), self.attention)
        return self.add(x, self.feed(self.norms[1](x)), self.feed)


class Stage(nn.Module):
    """Layers of one stage, or of one of its chunks in an interleaved pipeline."""

    def __init__(self, shape, groups, recompute, chunk, chunks):
        super().__init__()
        layers, width, words = shape[0] // (groups.pp * chunks), shape[1], shape[5]
        self.groups, self.recompute, self.size = groups, recompute, width // shape[2]
        self.first = groups.stage_number == 0 and chunk == 0
        self.last = groups.stage_number == groups.pp - 1 and chunk == chunks - 1
        words = -(-words // (128 * groups.tp)) * 128
        if self.first:
            self.embed = nn.Embedding(words, width)
        self.blocks = nn.ModuleList(Block(shape, groups) for _ in range(layers))
        if self.last:
            self.norm = (RootNorm if shape[8] and not shape[6] else nn.LayerNorm)(width)
            self.head = Column(width, words * groups.tp, groups, False)

    def embedding(self, tokens):
        first = self.embed.num_embeddings * self.groups.tensor_ranks.index(dist.get_rank())
        other = (tokens < first) | (tokens >= first + self.embed.num_embeddings)
        x = self.embed((tokens - first).masked_fill_(other, 0)).masked_fill(other[..., None], 0.0)
        return F.dropout(Scatter.apply(x.transpose(0, 1).contiguous(), self.groups), 0.1)

    def angles(self, length):
        turns = torch.outer(torch.arange(length, device="cuda").float(), 1e-4 ** (torch.arange(self.size // 2, device="cuda") / (self.size // 2)))
        return (f(turns)[:, None, None].bfloat16() for f in (torch.cos, torch.sin))

    def forward(self, x, batch, length):
        if self.first:
            x = self.embedding(batch["tokens"])
        cos, sin = self.angles(length)
        for block in self.blocks:
            if self.recompute:
                x = checkpoint(block, x, cos, sin, batch["mask"], use_reentrant=True)
            else:
                x = block(x, cos, sin, batch["mask"])
        if not self.last:
            return x
        logits = self.head(self.norm(x))
        loss = CrossEntropy.apply(logits.float(), batch["labels"].t().contiguous(), self.groups)
        return (loss * batch["weights"].t()).sum() / batch["weights"].sum()


class Weights:
    """Weights that one data-parallel group shares: their gradients, float32 copies and optimizer."""

    def __init__(self, weights, group, ranks, args):
        self.weights, self.group, self.dp, self.zero = weights, group, len(ranks), args.zero
        count = -(-sum(w.numel() for w in weights) // (128 * self.dp)) * 128 * self.dp
        self.share = count // self.dp if self.zero else count
        self.start = self.share * ranks.index(dist.get_rank()) if self.zero else 0
        self.gradients = torch.zeros(count, device="cuda")
        self.flat = torch.empty(count, dtype=torch.bfloat16, device="cuda") if self.zero else None
        self.host = args.offload_optimizer
        self.owned, self.copies, place = [], [], 0
        for weight in weights:
            self.place(weight, place)
            place += weight.numel()
        self.optimizer = None if self.host else torch.optim.AdamW(self.copies, lr=1e-4, fused=True)

    def place(self, weight, at):
        """Gives a weight its place in the buffers; what is in this rank's share gets a copy."""
        end = at + weight.numel()
        weight.main_grad = self.gradients[at:end].view_as(weight)
        weight.register_post_accumulate_grad_hook(self.accumulate)
        if self.zero:
            weight.data = self.flat[at:end].view_as(weight).copy_(weight.data)
        low, high = max(at, self.start), min(end, self.start + self.share)
        if low >= high:
            return
        mine = weight.detach().view(-1)[low - at : high - at]
        copy = torch.empty(mine.numel(), pin_memory=True) if self.host else mine.clone().float()
        self.owned.append((mine, self.gradients[low:high]))
        self.copies.append(copy)

    @staticmethod
    def accumulate(weight):
        weight.main_grad.add_(weight.grad)
        weight.grad = None

    def reduce(self):
        if self.dp == 1:
            return
        self.gradients.mul_(1.0 / self.dp)
        if self.zero:
            dist.reduce_scatter_tensor(self.mine(self.gradients), self.gradients, group=self.group)
        else:
            dist.all_reduce(self.gradients, group=self.group)

    def mine(self, buffer):
        return buffer[self.start : self.start + self.share]

    def step_on_the_host(self):
        """Gradients go to the host and weights come back. What the host does with them is left out."""
        for copy, (mine, gradient) in zip(self.copies, self.owned):
            copy.copy_(gradient, non_blocking=True)
            mine.copy_(copy.bfloat16(), non_blocking=True)

    def step(self, factor):
        self.mine(self.gradients).mul_(factor)
        if self.host:
            self.step_on_the_host()
        else:
            for copy, (_, gradient) in zip(self.copies, self.owned):
                copy.grad = gradient
            self.optimizer.step()
            for copy, (mine, _) in zip(self.copies, self.owned):
                mine.copy_(copy.detach())
                copy.grad = None
        if self.zero and self.dp > 1:
            dist.all_gather_into_tensor(self.flat, self.mine(self.flat), group=self.group)
        self.gradients.zero_()


def saved_on_the_host(kept):
    """Large activations wait for the backward pass in pinned memory of the host. `kept`: storages that stay, of weights."""

    def pack(tensor):
        if tensor.numel() < 1 << 20 or tensor.untyped_storage()._cdata in kept:
            return tensor
        host = torch.empty(tensor.shape, dtype=tensor.dtype, pin_memory=True)
        return host.copy_(tensor, non_blocking=True)

    return torch.autograd.graph.saved_tensors_hooks(pack, lambda tensor: tensor.to("cuda", non_blocking=True))


class Trainer:
    def __init__(self, args):
        torch.manual_seed(args.seed)
        self.args, self.groups = args, Groups(args.tp, args.pp, args.ep)
        self.shape = MODELS[args.model]
        with torch.device("cuda"):
            torch.set_default_dtype(torch.bfloat16)
            self.chunks = [Stage(self.shape, self.groups, args.recompute, n, args.vpp) for n in range(args.vpp)]
            torch.set_default_dtype(torch.float32)
        groups, apart = self.groups, {}
        if args.ep > 1:
            apart = {id(w) for c in self.chunks for m in c.modules() if isinstance(m, Expert) for w in m.parameters()}
        every = [w for c in self.chunks for w in c.parameters()]
        self.weights = [Weights([w for w in every if id(w) not in apart], groups.data, groups.data_ranks, args)]
        if apart:
            self.weights.append(Weights([w for w in every if id(w) in apart], groups.expert_data, groups.expert_data_ranks, args))

        self.kept = {w.untyped_storage()._cdata for w in every}

    def peer(self, step):
        ranks = self.groups.stage_ranks
        return ranks[(self.groups.stage_number + step) % len(ranks)]

    def batch(self, length):
        """What a rank has of a microbatch. All of it is on the card, as Megatron-LM's loader leaves it."""
        micro = self.args.micro
        tokens = torch.randint(0, self.shape[5], (micro, length + 1), device="cuda")
        return {"tokens": tokens[:, :-1].contiguous(), "labels": tokens[:, 1:].contiguous(), "weights": torch.ones(micro, length, device="cuda"),
                "mask": torch.empty(micro, 1, length, length, dtype=torch.bool, device="cuda")}  # fmt: skip

    def received(self, length, step):
        x = torch.empty(length // self.args.tp, self.args.micro, self.shape[1], device="cuda", dtype=torch.bfloat16)
        dist.recv(x, self.peer(step), group=self.groups.stage)
        return x

    def forward(self, chunk, length, count):
        """What backward needs: the input, the edge of the output in the graph, the length. The output itself is dropped."""
        stage = self.chunks[chunk]
        x = None if stage.first else self.received(length, -1).requires_grad_()
        with saved_on_the_host(self.kept) if self.args.offload else contextlib.nullcontext():
            out = stage(x, self.batch(length), length)
        if stage.last:
            return x, get_gradient_edge(out / count), None
        edge = get_gradient_edge(out)
        dist.send(out.detach(), self.peer(1), group=self.groups.stage)
        return x, edge, length

    def backward(self, x, edge, length):
        grad = torch.ones((), device="cuda") if length is None else self.received(length, 1)
        torch.autograd.backward((edge,), (grad,))
        if x is not None:
            dist.send(x.grad, self.peer(-1), group=self.groups.stage)

    def schedule(self, count):
        """Forward and backward steps in order, as chunks, and the number of forward steps before the first backward."""
        pp, chunks, stage = self.groups.pp, self.args.vpp, self.groups.stage_number
        if chunks == 1:
            return [0] * count, [0] * count, min(pp - stage - 1, count)
        forward = [n // pp % chunks for n in range(count * chunks)]
        ahead = min((pp - stage - 1) * 2 + (chunks - 1) * pp, count * chunks)
        return forward, [chunks - 1 - c for c in forward], ahead

    def step(self, lengths):
        forward, backward, ahead = self.schedule(len(lengths))
        under_way, done = [[] for _ in self.chunks], [0] * self.args.vpp
        for number in range(len(forward) + ahead):
            if number < len(forward):
                chunk = forward[number]
                under_way[chunk].append(self.forward(chunk, lengths[done[chunk]], len(lengths)))
                done[chunk] += 1
            if number >= ahead:
                self.backward(*under_way[backward[number - ahead]].pop(0))
        self.update()

    def update(self):
        for weights in self.weights:
            weights.reduce()
        norms = torch._foreach_norm([gradient for w in self.weights for _, gradient in w.owned])
        norm = torch.linalg.vector_norm(torch.stack(norms)).square_()
        dist.all_reduce(norm)
        factor = min(1.0, 1.0 / (norm.item() ** 0.5 + 1e-6))
        for weights in self.weights:
            weights.step(factor)
        if self.args.offload_optimizer:
            torch.cuda.synchronize()


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
