"""One rank of a fine-tuning run under DeepSpeed's ZeRO-3, as GMLake's evaluation has it, without DeepSpeed.

    zero3.py [--layers N] [--width N] [--heads N] [--words N] [--micro N] [--length N] [--steps N]
             [--recompute] [--lora N] [--offload]

An OPT model with the operators of Hugging Face's (products of attention one by one, softmax in float32). Of ZeRO-3
(deepspeed/runtime/zero, 0.9 to 0.12): weights of more than 10,000 elements are divided over the ranks; they are gathered
before their module on a stream of their own, the next ones ahead, and deleted after it (partition_parameters.py,
partitioned_param_coordinator.py); gradients are copied into one bucket on a third stream, and reduced when it is full
(stage3.py). --offload: divided weights, gradients and the optimizer's state are on the host.
"""

import argparse

import torch
import torch.distributed as dist
import torch.nn as nn
import torch.nn.functional as F
from torch.utils.checkpoint import checkpoint

HALF = {"device": "cuda", "dtype": torch.float16}
PERSISTENT, AHEAD, BUCKET = 10_000, 30_000_000, 500_000_000  # elements


def arguments():
    p = argparse.ArgumentParser()
    defaults = {"layers": 24, "width": 2048, "heads": 32, "words": 50272, "micro": 16, "length": 512, "steps": 2, "lora": 0}
    for name, value in defaults.items():
        p.add_argument(f"--{name}", type=int, default=value)
    p.add_argument("--recompute", action="store_true")
    p.add_argument("--offload", action="store_true")
    return p.parse_args()


class Zero:
    """The divided weights of this rank, and the streams that gather them and reduce their gradients."""

    def __init__(self, offload):
        self.offload, self.world = offload, dist.get_world_size()
        self.gather_stream, self.reduce_stream = torch.cuda.Stream(), torch.cuda.Stream()
        self.order, self.place, self.following = [], 0, False
        self.bucket, self.used, self.waiting = torch.empty(BUCKET, **HALF), 0, []

    def divide(self, weight):
        """Keeps this rank's part."""
        weight.whole_shape = weight.shape
        part = torch.empty(-(-weight.numel() // self.world), **HALF)
        weight.part = part.cpu() if self.offload else part
        weight.data = torch.empty(0, **HALF)
        if weight.requires_grad:
            weight.gradient = torch.empty_like(weight.part)

    def gather(self, weight):
        with torch.cuda.stream(self.gather_stream):
            whole = torch.empty(weight.part.numel() * self.world, **HALF)
            dist.all_gather_into_tensor(whole, weight.part.cuda() if self.offload else weight.part)
            weight.data = whole[: weight.whole_shape.numel()].view(weight.whole_shape)

    def fetch(self, weight):
        """The weight, and the next ones of the step before, is on the card when this returns."""
        if not hasattr(weight, "part"):
            return
        if weight.data.numel() == 0:
            self.gather(weight)
        if self.following:
            self.place += 1
            ahead = 0
            for later in self.order[self.place :]:
                ahead += later.whole_shape.numel()
                if ahead > AHEAD:
                    break
                if later.data.numel() == 0:
                    self.gather(later)
        else:
            self.order.append(weight)
        torch.cuda.current_stream().wait_stream(self.gather_stream)

    def release(self, weight):
        if hasattr(weight, "part"):
            weight.data.record_stream(torch.cuda.current_stream())
            weight.data = torch.empty(0, **HALF)

    def collect(self, weight, gradient):
        if self.used + gradient.numel() > BUCKET:
            self.reduce()
        self.reduce_stream.wait_stream(torch.cuda.current_stream())
        with torch.cuda.stream(self.reduce_stream):
            place = self.bucket[self.used : self.used + gradient.numel()]
            place.copy_(gradient.view(-1))
            gradient.record_stream(self.reduce_stream)
        self.used += gradient.numel()
        self.waiting.append((weight, place))

    def reduce(self):
        self.reduce_stream.wait_stream(torch.cuda.current_stream())
        with torch.cuda.stream(self.reduce_stream):
            flat = torch.cat([F.pad(place, (0, w.part.numel() * self.world - place.numel())) for w, place in self.waiting])
            part = torch.empty(flat.numel() // self.world, **HALF)
            dist.reduce_scatter_tensor(part, flat)
            start = 0
            for weight, _ in self.waiting:
                weight.gradient.copy_(part[start : start + weight.part.numel()])
                start += weight.part.numel()
        self.used, self.waiting = 0, []

    def end_step(self):
        if self.waiting:
            self.reduce()
        torch.cuda.current_stream().wait_stream(self.reduce_stream)
        self.following, self.place = True, 0


class Product(torch.autograd.Function):
    """A product that looks its weight up again in backward: it is another tensor then."""

    @staticmethod
    def forward(ctx, x, weight, bias, zero):
        ctx.save_for_backward(x)
        ctx.weight, ctx.bias, ctx.zero = weight, bias, zero
        zero.fetch(weight)
        out = F.linear(x, weight.data, None if bias is None else bias.data)
        zero.release(weight)
        return out

    @staticmethod
    def backward(ctx, grad):
        (x,) = ctx.saved_tensors
        zero, weight = ctx.zero, ctx.weight
        zero.fetch(weight)
        grad_x = grad.matmul(weight.data) if ctx.needs_input_grad[0] else None
        flat = grad.reshape(-1, grad.shape[-1])
        if weight.requires_grad:
            zero.collect(weight, flat.t().matmul(x.reshape(-1, x.shape[-1])))
        zero.release(weight)
        return grad_x, None, flat.sum(0) if ctx.bias is not None and ctx.bias.requires_grad else None, None


class Dense(nn.Module):
    def __init__(self, width, out, zero, lora):
        super().__init__()
        self.zero, self.lora = zero, lora
        self.weight = nn.Parameter(torch.empty(out, width, **HALF), requires_grad=not lora)
        self.bias = nn.Parameter(torch.zeros(out, **HALF), requires_grad=not lora)
        if lora:
            self.right = nn.Parameter(torch.empty(lora, width, **HALF))
            self.left = nn.Parameter(torch.empty(out, lora, **HALF))
        for weight in list(self.parameters()):
            if weight.numel() > PERSISTENT:
                zero.divide(weight)

    def forward(self, x):
        out = Product.apply(x, self.weight, self.bias, self.zero)
        if self.lora:
            side = Product.apply(F.dropout(x, 0.1), self.right, None, self.zero)
            out = out + Product.apply(side, self.left, None, self.zero) * 1.0
        return out


class Layer(nn.Module):
    def __init__(self, args, zero):
        super().__init__()
        width, self.heads = args.width, args.heads
        self.q, self.k, self.v, self.out = (Dense(width, width, zero, args.lora) for _ in range(4))
        self.up, self.down = Dense(width, 4 * width, zero, args.lora), Dense(4 * width, width, zero, args.lora)
        self.norms = nn.ModuleList(nn.LayerNorm(width, **HALF) for _ in range(2))
        self.requires_grad_(not args.lora)
        for name, weight in self.named_parameters():
            weight.requires_grad_(not args.lora or name.endswith(("right", "left")))

    def heads_of(self, x):
        batch, length, width = x.shape
        return x.view(batch, length, self.heads, width // self.heads).transpose(1, 2).contiguous().flatten(0, 1)

    def forward(self, x, mask):
        residual, x = x, self.norms[0](x)
        q = self.heads_of(self.q(x) * (self.q.weight.whole_shape[0] // self.heads) ** -0.5)
        k, v = self.heads_of(self.k(x)), self.heads_of(self.v(x))
        scores = torch.bmm(q, k.transpose(1, 2))
        scores = scores.view(-1, self.heads, *scores.shape[1:]) + mask
        scores = torch.max(scores, torch.tensor(-65504.0, **HALF)).flatten(0, 1)
        weights = F.softmax(scores, dim=-1, dtype=torch.float32).to(torch.float16)
        x = torch.bmm(F.dropout(weights, 0.0), v)
        x = x.view(-1, self.heads, *x.shape[1:]).transpose(1, 2).reshape(residual.shape)
        x = residual + F.dropout(self.out(x), 0.1)
        residual, x = x, self.norms[1](x)
        return residual + F.dropout(self.down(F.relu(self.up(x))), 0.1)


class Model(nn.Module):
    def __init__(self, args, zero):
        super().__init__()
        self.args, self.zero = args, zero
        self.words = Dense(args.width, args.words, zero, 0)
        self.words.requires_grad_(not args.lora)
        self.layers = nn.ModuleList(Layer(args, zero) for _ in range(args.layers))
        self.norm = nn.LayerNorm(args.width, **HALF)

    def forward(self, tokens):
        weight = self.words.weight
        self.zero.fetch(weight)
        x = F.embedding(tokens, weight.data)
        self.zero.release(weight)
        x.requires_grad_()
        mask = torch.full((tokens.shape[1],) * 2, -65504.0, **HALF).triu(1).expand(tokens.shape[0], 1, -1, -1).contiguous()
        for layer in self.layers:
            x = checkpoint(layer, x, mask, use_reentrant=True) if self.args.recompute else layer(x, mask)
        logits = Product.apply(self.norm(x), weight, None, self.zero).contiguous()
        ahead = logits[:, :-1].contiguous()
        return F.cross_entropy(ahead.view(-1, ahead.shape[-1]), tokens[:, 1:].reshape(-1))


def optimizer_step(weights, state, optimizer):
    """Float32 gradients of this rank's parts, in one tensor."""
    if state is None or not state.is_cuda:
        return
    state.grad = torch.cat([w.gradient for w in weights]).float()
    optimizer.step()
    state.grad = None
    start = 0
    for weight in weights:
        weight.part.copy_(state[start : start + weight.part.numel()])
        start += weight.part.numel()


def main():
    args = arguments()
    dist.init_process_group("nccl")
    torch.cuda.set_device(dist.get_rank() % torch.cuda.device_count())
    torch.manual_seed(0)
    zero = Zero(args.offload)
    model = Model(args, zero)
    weights = [w for w in model.parameters() if hasattr(w, "part") and w.requires_grad]
    state = torch.cat([w.part for w in weights]).float()
    optimizer = torch.optim.AdamW([state], lr=1e-4, fused=state.is_cuda)
    for number in range(args.steps):
        torch.cuda.nvtx.mark(f"step{number}")
        tokens = torch.randint(0, args.words, (args.micro, args.length), device="cuda")
        model(tokens).backward()
        zero.end_step()
        optimizer_step(weights, state, optimizer)
    dist.destroy_process_group()


if __name__ == "__main__":
    main()
