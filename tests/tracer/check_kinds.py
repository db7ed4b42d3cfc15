"""Checks of kinds of programs, as check_core.py: run by tests/cli/test_tracer.sh."""

import sys

import check_core
import torch
import torch.nn as nn
import torch.nn.functional as F
from check_core import MIB, equal, traced


def check_out_of_memory():
    """A request that fails below the program's limit raises PyTorch's error if the program expects it."""

    def program():
        torch.cuda.set_per_process_memory_fraction(512 * MIB / torch.cuda.get_device_properties(0).total_memory)
        held, count = [], 0
        try:
            for count in range(100):
                held.append(torch.empty(60 * MIB, dtype=torch.uint8, device="cuda"))
        except torch.cuda.OutOfMemoryError as error:
            assert "Tried to allocate 60.00 MiB" in str(error), error
        assert count == 8, count
        assert torch.cuda.memory_reserved() == 480 * MIB and torch.cuda.memory_stats()["num_ooms"] == 1
        held.clear()
        assert torch.cuda.memory_allocated() == 0 and torch.cuda.memory_reserved() == 480 * MIB
        torch.cuda.empty_cache()
        assert torch.cuda.memory_reserved() == 0 and torch.cuda.max_memory_reserved() == 480 * MIB
        whole = torch.empty(600 * MIB, dtype=torch.uint8, device="cuda")  # nothing expects an error here
        assert whole.is_cuda

    out = traced(program)
    equal(out.notes("raised"), [["out of memory", "1"]])
    equal(out.peak, 600 * MIB)


def check_lazy_and_scripted():
    """Lazy layers learn their sizes, scripted modules run as Python code, sequences are packed."""

    def program():
        model = nn.Sequential(nn.LazyConv2d(8, 3), nn.LazyBatchNorm2d(), nn.ReLU(), nn.Flatten(), nn.LazyLinear(10)).cuda()
        model(torch.randn(4, 3, 16, 16, device="cuda")).sum().backward()
        equal([tuple(p.grad.shape) for p in model.parameters()][-2:], [(10, 1568), (10,)])

        class Block(nn.Module):
            def __init__(self):
                super().__init__()
                self.norm = nn.BatchNorm2d(4)

            def forward(self, x):
                return F.dropout(self.norm(x), 0.1, self.training)

        torch.jit.script(Block()).cuda()(torch.randn(2, 4, 8, 8, device="cuda"))
        x = torch.randn(3, 6, 8, device="cuda")
        packed = nn.utils.rnn.pack_padded_sequence(x, torch.tensor([6, 4, 4]), batch_first=True)
        equal(tuple(packed.data.shape), (14, 8))
        out, lengths = nn.utils.rnn.pad_packed_sequence(nn.GRU(8, 8, batch_first=True).cuda()(packed)[0], batch_first=True)
        equal((tuple(out.shape), lengths.tolist()), ((3, 6, 8), [6, 4, 4]))
        stream = torch.Stream()
        with stream:
            torch.ones(10, device="cuda")

    traced(program)


def check_to_sparse():
    """A dense tensor becomes a sparse one: its indices, their copy, its values, their copy."""

    def program():
        dense = torch.zeros(64, 32)
        dense[torch.arange(20), torch.arange(20)] = 1
        sparse = (dense * 2).cuda().long().to_sparse()
        equal((sparse._nnz(), tuple(sparse.indices().shape), sparse.is_coalesced()), (20, (2, 20), True))
        equal(dense.long().cuda().to_sparse(1).values().shape[1], 32)
        weight = torch.randn(32, 8, device="cuda", requires_grad=True)
        (torch.sparse.mm(sparse.float(), weight)).sum().backward()
        equal(tuple(weight.grad.shape), (32, 8))

    traced(program)


def check_jagged():
    """Nested tensors of the jagged layout: attention and backward."""

    def program():
        parts = [torch.randn(n, 32) for n in (3, 5)]
        x = torch.nested.nested_tensor(parts, layout=torch.jagged, device="cuda", requires_grad=True)
        layer = nn.Linear(32, 96).cuda()
        q, k, v = (t.unflatten(-1, [2, 16]).transpose(1, 2) for t in layer(x).chunk(3, dim=-1))
        y = F.scaled_dot_product_attention(q, k, v, is_causal=True).transpose(1, 2).flatten(-2)
        equal(tuple(y.values().shape), (8, 32))
        y.values().sum().backward()
        equal(tuple(layer.weight.grad.shape), (96, 32))
        equal(tuple(torch.nested.to_padded_tensor(x, 0.0).shape), (2, 5, 32))

    traced(program)


def check_in_place_on_a_card():
    """Sums and biases that C++ makes in place, unless a graph of the gradient is kept."""

    def program(graph):
        w = torch.randn(1000, device="cuda", requires_grad=True)
        torch.autograd.grad((w * 2).sum() + (w * 3).sum() + w.sum(), w, create_graph=graph)

    once, kept = (traced(lambda graph=g: program(graph)).sizes("add") for g in (False, True))
    assert len(kept) > len(once), (once, kept)
    out = traced(lambda: nn.Linear(8, 16).cuda()(torch.randn(4, 6, 8, device="cuda").transpose(0, 1)))
    assert not out.sizes(":add"), out.sizes(":add")


if __name__ == "__main__":
    sys.exit(check_core.main(dict(globals())))
