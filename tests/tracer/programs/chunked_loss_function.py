"""A custom autograd.Function computes the loss of a wide vocabulary in chunks; another has a straight-through backward."""
import torch
import torch.nn.functional as F
from torch import nn


class ChunkedLoss(torch.autograd.Function):
    @staticmethod
    def forward(ctx, hidden, weight, target, chunk):
        grad_hidden, grad_weight = torch.empty_like(hidden), torch.zeros_like(weight, dtype=torch.float32)
        total = hidden.new_zeros((), dtype=torch.float32)
        for i in range(0, len(hidden), chunk):
            h, t = hidden[i:i + chunk], target[i:i + chunk]
            logits = (h @ weight.t()).float()
            top = logits.logsumexp(dim=1)
            total += (top - logits.gather(1, t[:, None]).squeeze(1)).sum()
            p = torch.softmax(logits, dim=1)
            p[torch.arange(len(t), device=t.device), t] -= 1.0
            p = p.to(hidden.dtype)
            grad_hidden[i:i + chunk] = p @ weight
            grad_weight.addmm_(p.t().float(), h.float())
        ctx.save_for_backward(grad_hidden, grad_weight.to(weight.dtype))
        ctx.count = len(hidden)
        return total / len(hidden)

    @staticmethod
    def backward(ctx, grad):
        hidden, weight = ctx.saved_tensors
        return hidden * (grad / ctx.count), weight * (grad / ctx.count), None, None


class Quantize(torch.autograd.Function):
    @staticmethod
    def forward(ctx, x, book):
        nearest = torch.cdist(x.flatten(0, 1).float(), book.float()).argmin(dim=1)
        return book[nearest].view_as(x), nearest

    @staticmethod
    def backward(ctx, grad, _):
        return grad, None


class Model(nn.Module):
    def __init__(self, words, width):
        super().__init__()
        self.embed = nn.Embedding(words, width)
        layer = nn.TransformerEncoderLayer(width, 8, 4 * width, dropout=0.1, batch_first=True, norm_first=True)
        self.body = nn.TransformerEncoder(layer, 4, enable_nested_tensor=False)
        self.register_buffer("book", torch.randn(1024, width))
        self.head = nn.Linear(width, words, bias=False)

    def forward(self, ids, target):
        mask = nn.Transformer.generate_square_subsequent_mask(ids.shape[1], device=ids.device)
        x = self.body(self.embed(ids), mask=mask, is_causal=True)
        quantized, index = Quantize.apply(x, self.book)
        x = (x + quantized) / 2
        return ChunkedLoss.apply(x.flatten(0, 1), self.head.weight, target.flatten(), 1024), index


torch.manual_seed(34)
model = Model(64000, 512).to(device="cuda", dtype=torch.bfloat16)
optimizer = torch.optim.AdamW(model.parameters(), lr=1e-4, fused=True)
for step in range(8):
    ids = torch.randint(0, 64000, (12, 513 if step % 2 else 385), device="cuda")
    loss, index = model(ids[:, :-1], ids[:, 1:])
    loss.backward()
    optimizer.step()
    optimizer.zero_grad()
    print(step, loss.item())
