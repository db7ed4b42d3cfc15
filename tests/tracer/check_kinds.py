"""Checks of kinds of programs, as check_core.py: run by tests/cli/test_tracer.sh."""

import concurrent.futures
import contextlib
import copy
import os
import sys

import check_core
import torch
import torch.nn as nn
import torch.nn.functional as F
from allocrig_tracer import session
from check_core import MIB, equal, folder, traced


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


def check_requests_that_are_larger_than_the_card():
    """They raise the error wherever the program goes on after it, also where its handler speaks of no memory."""

    def probe():
        fits = True
        try:
            torch.empty(2 << 40, dtype=torch.uint8, device="cuda")
        except RuntimeError:
            fits = False
        with contextlib.suppress(Exception):
            torch.empty(2 << 40, dtype=torch.uint8, device="cuda")
            fits = True
        return fits

    def halve():
        rows = 1 << 20
        while True:
            try:
                return rows, torch.empty(rows, 1 << 20, dtype=torch.uint8, device="cuda")
            except Exception:
                rows //= 4

    def program():
        equal((probe(), halve()[0]), (False, 1 << 16))

    def in_a_thread():
        with concurrent.futures.ThreadPoolExecutor(1) as pool:
            pool.submit(torch.empty, 2 << 40, dtype=torch.uint8, device="cuda").result()

    out = traced(program)
    equal((out.notes("raised"), out.peak), ([["out of memory", "4"]], 1 << 36))
    equal((traced(in_a_thread).notes("raised"), traced(in_a_thread).peak), ([], 2 << 40))


def check_settings_that_the_program_changes_hold_for_all_cards():
    def program():
        session.current().ledger.devices = 2
        torch.zeros(1, device="cuda:0")
        torch.cuda.memory._set_allocator_settings("expandable_segments:True")
        x = torch.zeros(21 * MIB, dtype=torch.uint8, device="cuda:1")
        equal(torch.cuda.memory_reserved(x.device), 40 * MIB)

    traced(program)


def check_what_programs_ask_of_a_card():
    """Comparisons of all elements, least squares, statistics of the allocator, programs that are saved, other libraries."""

    def program():
        x = torch.empty(8, 4, device="cuda")
        ones = torch.ones(4, device="cuda")
        equal((torch.allclose(x, x + 1), torch.allclose(ones, ones), torch.allclose(ones, 2 * ones)), (True, True, False))
        solution, residuals, rank, _ = torch.linalg.lstsq(x, torch.randn(8, 2, device="cuda"))
        equal((tuple(solution.shape), tuple(residuals.shape), rank.numel()), ((4, 2), (2,), 0))
        solution, residuals, *_ = torch.linalg.lstsq(torch.randn(3, 8, 4, device="cuda") + 1j, torch.randn(3, 8, device="cuda") + 1j)
        equal((tuple(solution.shape), tuple(residuals.shape), residuals.dtype), ((3, 4), (3, 1), torch.float32))
        assert nn.utils.parametrizations.orthogonal(nn.Linear(8, 8).cuda())(torch.ones(2, 8, device="cuda")).is_cuda
        stats = torch.cuda.memory_stats()
        equal((stats["inactive_split_bytes.all.current"], stats["segment.all.peak"], stats["num_device_alloc"]), (0, 0, 0))
        assert 0 < stats["allocation.all.current"] < stats["allocation.all.allocated"]
        assert torch.cuda.device_memory_used() > torch.cuda.memory_reserved() and torch.cuda.temperature() == 0
        path = os.path.join(folder, "module.pt")
        torch.jit.trace(nn.Linear(8, 8).cuda(), torch.ones(2, 8, device="cuda")).save(path)
        torch.jit.save(torch.jit.script(nn.Linear(8, 8).cuda()), path)
        equal(os.path.getsize(path), 0)
        equal((torch.jit.trace(nn.ReLU().forward, ones)(ones).shape, torch.jit.script([1, 2])), (ones.shape, [1, 2]))
        try:
            torch.utils.dlpack.from_dlpack(ones)
        except BufferError as error:
            assert "needs its data" in str(error), error

    equal(traced(program).notes("outside_envelope")[0][0], "the program gives a tensor to another library (DLPack); which needs its data")


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


def check_view_changed_in_place():
    """The gradient of a view that was changed in place is a new tensor of its base's size; the old gradient ends."""

    def program():
        model = nn.Sequential(nn.Conv2d(4, 8, 3), nn.InstanceNorm2d(8), nn.LeakyReLU(0.1, True), nn.Conv2d(8, 16, 3)).cuda()
        model(torch.randn(2, 4, 34, 34, device="cuda")).sum().backward()
        w = torch.randn(8, 8, device="cuda", requires_grad=True)
        ((w * 2).view(64) * 3).sum().backward()

    out = traced(program)
    equal(out.sizes("new_zeros"), [65536])
    events = [line.split(",")[:2] for line in out.lines if line[:2] in ("a,", "r,")]
    made = next(n for n, (_, keys, _) in out.requests.items() if "new_zeros" in keys["tag"])
    after = events[events.index(["a", str(made)]) + 1]
    assert after[0] == "r" and out.requests[int(after[1])][0] == 65536, after


def check_views_of_views_changed_in_place():
    """The gradient of a view of a view that was changed is one tensor; views that the program makes itself have their own."""

    def program():
        w = torch.randn(4, 9, 9, device="cuda", requires_grad=True)
        doubled = w * 2
        doubled[:, 1:][:, :, 1:] += torch.ones(4, 8, 8, device="cuda")
        doubled.sum().backward()
        torch.cuda.nvtx.mark("own")
        doubled = w * 2
        view = doubled[:, 1:]
        view.mul_(3)
        (doubled[:, 1:].sum() + view.sum()).backward()

    def boxes():
        tmp = nn.Linear(8, 4).cuda()(torch.randn(2, 6, 8, device="cuda"))  # a view of what the product makes
        tmp[..., :2] += torch.ones(2, 6, 2, device="cuda")
        tmp.sigmoid().sum().backward()

    out = traced(program)
    equal(out.sizes("slice_backward"), [1296] * 3)
    equal(traced(boxes).sizes("new_zeros"), [192] * 2)  # of the view that was changed, and of the other one


def check_fast_path_of_attention():
    """Inference with nn.MultiheadAttention and nn.TransformerEncoder runs PyTorch's fused operators."""

    def program():
        attend = nn.MultiheadAttention(64, 4, batch_first=True).cuda().eval()
        layer = nn.TransformerEncoderLayer(64, 4, 128, batch_first=True, norm_first=True).cuda().eval()
        x = torch.randn(2, 10, 64, device="cuda")
        with torch.no_grad():
            equal(attend(x, x, x)[1].shape, (2, 10, 10))
            attend(x, x, x, need_weights=False)
            mask = torch.zeros(2, 10, dtype=torch.bool, device="cuda")
            equal(layer(x).shape, layer(x, src_key_padding_mask=mask).shape)

    out = traced(program)
    equal(out.sizes(":new_empty"), [15360, 15360])
    equal(out.sizes("_scaled_dot_product_efficient_attention"), [5120, 5120])


def check_attention_without_a_kernel_of_its_own():
    """Five dimensions: products, a softmax that looks for rows without a number, weights in the type of the values."""

    def program():
        q, k, v = (torch.randn(2, 4, 8, 49, 32, device="cuda", dtype=torch.bfloat16) for _ in range(3))
        F.scaled_dot_product_attention(q, k, v)

    def cast():
        q, k, v = (torch.randn(2, 4, 8, 49, 32, device="cuda") for _ in range(3))
        with torch.autocast("cuda", torch.bfloat16):  # it casts what the attention is given, and nothing within
            F.scaled_dot_product_attention(q, k, v)

    out = traced(program)
    weights, values = 64 * 49 * 49, 64 * 49 * 32
    equal(traced(cast).sizes(""), [4 * values] * 3 + [2 * values] * 3 + out.sizes("")[3:])
    asked = [(keys["tag"], size) for size, keys, _ in out.requests.values()]
    start = next(i for i, (tag, _) in enumerate(asked) if tag == "_softmax" or "_safe_softmax" in tag)
    softmax = [4 * weights, weights, 64 * 49, 4]  # the result, where it is minus infinity, rows, a zero
    equal([size for _, size in asked[start:]], [*softmax, 2 * weights, 4 * values, 2 * values])
    scaled = [n for n, (_, keys, _) in out.requests.items() if keys["tag"] == "mul"]
    softmax_id = list(out.requests)[start]
    events = [line.split(",")[:2] for line in out.lines if line[:2] in ("a,", "r,")]
    place = {(letter, int(n)): i for i, (letter, n) in enumerate(events)}
    assert place["r", scaled[1]] < place["a", softmax_id] < place["r", scaled[0]], "the scaled queries live to the end"


def check_filters_of_one_element_keep_their_order():
    """A filter of one element is in plain order and in channels last at once: a copy, and a product with a number, keep
    what it was; elementwise results of its like do not. The strides are those of the same lines on the CPU."""

    def strides(device):
        w = torch.empty_strided((16, 8, 1, 1), (8, 1, 8, 8), device=device)
        made = [w.clone(), copy.deepcopy(nn.Parameter(w)), w * 2, w - 1, 1 - w, w > 0, w.half(), w + w, w.sqrt(), w**2, w.relu()]
        made += [F.hardswish(w), F.leaky_relu(w), w.nan_to_num(), torch.lerp(w, w, 0.5), w.masked_fill(w > 0, 1.0), torch.where(w > 0, w, w)]
        return [t.stride() for t in made]

    wanted, got = strides("cpu"), []
    traced(lambda: got.extend(strides("cuda")))
    equal(got, wanted)


def check_checks_of_values():
    """Distributions, istft and averaged weights go on with values that are not known; random numbers of the host are real."""

    def program():
        logits = torch.randn(4096, 6, device="cuda") @ torch.randn(6, 6, device="cuda")
        choice = torch.distributions.Categorical(logits=logits)
        for _ in range(4):
            choice.log_prob(logits.sum(1))
        window, wave = torch.hann_window(400, device="cuda"), torch.randn(2, 16000, device="cuda")
        for _ in range(4):
            torch.istft(torch.stft(wave, 400, 100, window=window, return_complex=True), 400, 100, window=window)
        model = nn.Linear(4, 4).cuda()
        mean = torch.optim.swa_utils.AveragedModel(model)
        mean.update_parameters(model)
        mean.update_parameters(model)
        torch.manual_seed(3)
        kept = torch.rand(400000) < 0.8
        assert 0.79 < kept.sum().item() / 400000 < 0.81
        pairs = torch.sparse_coo_tensor(torch.randint(0, 400, (2, 90000)), torch.ones(90000), (400, 400)).coalesce()
        assert 60000 < pairs._nnz() < 80000
        moved = (pairs * 2).cuda()
        equal((moved._nnz(), moved.is_coalesced(), torch.sparse.sum(moved, 1).to_dense().shape), (pairs._nnz(), True, (400,)))

    traced(program)


def check_operators_by_device():
    """What C++ decides by `is_cuda`: rolls lie in order, one_hot scatters, softmax widens float16 without a copy."""

    def program():
        x = torch.rand(2, 3, 8, 8, device="cuda").to(memory_format=torch.channels_last)
        assert x.roll(1, 0).is_contiguous()
        equal(F.one_hot(torch.arange(5, device="cuda"), 9).shape, (5, 9))
        half = torch.randn(4, 100, device="cuda", dtype=torch.half)
        with torch.autocast("cuda", torch.float16):
            equal(F.log_softmax(half, -1).dtype, torch.float32)
        F.softmax(half, dim=-1, dtype=torch.float32)

    out = traced(program)
    equal((out.sizes("roll"), out.sizes("zeros"), out.sizes("softmax")), ([1536, 1536], [360], [1600, 1600]))
    equal(out.sizes("_to_copy"), [1536])  # of the layout


def check_in_place_on_a_card():
    """Sums and biases that C++ makes in place, unless a graph of the gradient is kept."""

    def program(graph):
        w = torch.randn(1000, device="cuda", requires_grad=True)
        torch.autograd.grad((w * 2).sum() + (w * 3).sum() + w.sum(), w, create_graph=graph)

    once, kept = (traced(lambda graph=g: program(graph)).sizes("add") for g in (False, True))
    assert len(kept) > len(once), (once, kept)
    out = traced(lambda: nn.Linear(8, 16).cuda()(torch.randn(4, 6, 8, device="cuda").transpose(0, 1)))
    assert not out.sizes(":add"), out.sizes(":add")


def check_gradients_of_indices():
    """The derivative of gather adds in place, that of index_put does not; gradients with gaps are copied first."""

    def program():
        x = torch.randn(8, 1000, device="cuda", requires_grad=True)
        place = torch.randint(0, 1000, (8, 1), device="cuda")
        x.log_softmax(-1).gather(1, place).sum().backward()
        y = torch.randn(6, 40, device="cuda", requires_grad=True) * 2
        y[torch.tensor([True, False] * 3).cuda()] = torch.zeros(40, device="cuda", requires_grad=True)
        (y * y).sum().backward()
        table = torch.randn(50, 64, device="cuda", requires_grad=True)
        rows = table[torch.randint(0, 50, (30, 2), device="cuda")]
        torch.cat([torch.zeros(30, 1, 64, device="cuda"), rows], 1).sum(2).mul(2).sum().backward()
        torch.cat([rows, rows], 1)[:, :2].sum()

    out = traced(program)
    equal((out.sizes("scatter_add"), out.sizes("backward:clone")), ([], [960]))


def check_softmax_of_turned_gradients():
    def program():
        x = torch.randn(4, 6, 50, device="cuda", requires_grad=True)
        turned = torch.randn(6, 4, 50, device="cuda").transpose(0, 1)
        torch.autograd.grad(x.softmax(-1), x, turned)
        torch.autograd.grad(x.softmax(-1), x, torch.randn(4, 6, 50, device="cuda"))

    equal(traced(program).sizes("_softmax_backward_data workspace"), [4800] * 3)


def check_resized_gradients_in_channels_last():
    """A slice of a gradient in channels_last is copied once, into that order."""

    def program():
        x = torch.randn(2, 8, 4, 4, device="cuda").to(memory_format=torch.channels_last).requires_grad_()
        y = F.interpolate(x, scale_factor=2.0)
        grad = torch.randn(2, 16, 8, 8, device="cuda").to(memory_format=torch.channels_last)
        torch.autograd.grad(y, x, grad[:, :8])

    equal(traced(program).sizes("upsample_nearest2d_backward workspace"), [4096])


def check_convolutions_of_permuted_sequences():
    """An input of one dimension whose channels come last is copied into plain order first, and again in backward."""

    def program():
        layer = nn.Conv1d(16, 24, 5, padding=2).cuda()
        x = torch.randn(4, 100, 16, device="cuda", requires_grad=True)
        y = layer(x.transpose(1, 2))
        assert y.is_contiguous(), y.stride()
        y.relu().sum().backward()

    out = traced(program)
    equal((out.sizes(":convolution workspace")[0], out.sizes("convolution_backward workspace")[0]), (25600, 25600))


def check_recurrent_layers_under_autocast():
    """Weights are cast into one buffer, to float16 for any type of autocast, and their gradients back one by one."""

    def program(dropped=False):
        layer = nn.LSTM(8, 16, batch_first=True, dropout=0.1 if dropped else 0).cuda()
        with torch.autocast("cuda", torch.bfloat16):
            out, _ = layer(torch.randn(4, 6, 8, device="cuda"))
        assert out.dtype == torch.float16, out.dtype
        out.float().sum().backward()
        assert layer.weight_ih_l0.grad.dtype == torch.float32

    out = traced(program)
    equal((out.sizes("LSTM:zeros")[-1], out.sizes("LSTM:_to_copy")), (3328, [128, 128, 384]))
    equal(out.sizes("LSTM.backward:_to_copy"), [256, 256, 4096, 2048])
    order = [size for size, keys, _ in traced(lambda: program(True)).requests.values()]
    assert order.index(6488064) < order.index(3328), order  # the state of dropout comes before the weights


def check_second_derivatives():
    """That of a convolution adds its own terms out of place; the zeros for a gradient that is not there are copied."""

    def program():
        layer = nn.Conv2d(4, 4, 3, padding=1).cuda()
        x = torch.randn(2, 4, 8, 8, device="cuda", requires_grad=True)
        grads = torch.autograd.grad(layer(x).pow(3).sum(), [x, layer.weight], create_graph=True)
        torch.autograd.grad(sum(g.pow(2).sum() for g in grads), [x, layer.weight])
        assert torch.ones(3).type_as(x).device == x.device

    equal(traced(program).sizes("backward:add"), [2048, 576])
    x = torch.randn(4, 6, 8)
    hidden = traced(lambda: nn.GRU(8, 16, batch_first=True).cuda()(x.cuda())[1].sum().backward())
    equal(hidden.sizes("_cudnn_rnn_backward workspace").count(4 * 6 * 16 * 4), 2)


def check_layout_of_derivatives():
    """They lie as their gradients do, also where FakeTensor would prefer a decomposition; log_softmax's does not."""

    def program():
        turned = torch.randn(4, 20, 8, device="cuda").transpose(1, 2)
        for function in (F.elu, F.softplus, F.hardtanh, F.hardswish, F.hardsigmoid, lambda x: x.log_softmax(1)):
            x = torch.rand(4, 8, 20, device="cuda", requires_grad=True)
            strides.append(torch.autograd.grad(function(x), x, turned)[0].stride())

    strides = []
    traced(program)
    equal(strides, [(160, 1, 8)] * 5 + [(160, 20, 1)])


def check_masks_of_derivatives():
    """The derivative of masked_fill is a new tensor; a mask that is expanded is copied before its places are found."""

    def program():
        x = torch.randn(6, 40, device="cuda", requires_grad=True) * 2
        y = x.masked_fill(torch.arange(40, device="cuda") < 8, 0)
        (y * y).sum().backward()
        x.detach()[(torch.arange(6, device="cuda") < 3)[:, None].expand(6, 40)]

    out = traced(program)
    equal((out.sizes("backward:masked_fill"), out.sizes("nonzero workspace")[0]), ([960], 240))


def check_masks_of_unknown_boxes():
    """torchvision pastes a mask into an image for each box: a box that is not known lies within it."""
    try:
        from torchvision.models.detection import roi_heads
    except ImportError:
        return

    def program():
        boxes = nn.Conv1d(8, 4, 3).cuda()(torch.randn(5, 8, 3, device="cuda")).detach().flatten(1)
        out.append(roi_heads.paste_masks_in_image(torch.rand(5, 1, 28, 28, device="cuda"), boxes, (64, 80)))

    out = []
    sizes = traced(program).sizes("")
    equal((out[0].shape, sizes.count(5 * 64 * 80 * 4), sizes.count(64 * 80 * 4)), ((5, 1, 64, 80), 1, 5))


def check_proposals_start_at_their_anchors():
    """A detector of torchvision that has learned nothing: the boxes that stay are anchors within the picture, which
    overlap as much as its threshold allows."""
    try:
        from torchvision.models.detection import anchor_utils, image_list, rpn
        from torchvision.ops import box_iou, clip_boxes_to_image
    except ImportError:
        return
    from allocrig_tracer import values

    def program():
        anchors = anchor_utils.AnchorGenerator(((32, 64),), ((0.5, 1.0, 2.0),))
        most = {"training": 500, "testing": 500}
        network = rpn.RegionProposalNetwork(anchors, rpn.RPNHead(8, 6), 0.7, 0.3, 64, 0.5, most, most, 0.6).cuda().eval()
        pictures = image_list.ImageList(torch.rand(1, 3, 128, 160, device="cuda"), [(128, 150)])
        boxes, _ = network(pictures, {"0": torch.rand(1, 8, 16, 20, device="cuda")})
        found.append(values.value_of(boxes[0]))

    found = []
    traced(program)
    boxes = found[0]
    assert 20 < len(boxes) < 300 and torch.equal(boxes, clip_boxes_to_image(boxes, (128, 150))), boxes
    overlap = box_iou(boxes, boxes).fill_diagonal_(0).max()
    assert 0.4 < overlap <= 0.6, overlap


def check_anchors_after_an_error():
    """A generator of anchors that fails for values has its own anchors afterwards."""
    try:
        from torchvision.models.detection import anchor_utils, image_list
    except ImportError:
        return
    from torch._subclasses.fake_tensor import FakeTensor

    class Failing(anchor_utils.AnchorGenerator):
        def grid_anchors(self, sizes, strides):
            if not isinstance(self.cell_anchors[0], FakeTensor):
                raise RuntimeError("no values")
            return super().grid_anchors(sizes, strides)

    def program():
        anchors = Failing(((32, 64),), ((0.5, 1.0, 2.0),)).cuda()
        pictures = image_list.ImageList(torch.rand(1, 3, 128, 160, device="cuda"), [(128, 150)])
        try:
            anchors(pictures, [torch.rand(1, 8, 16, 20, device="cuda")])
        except RuntimeError as error:
            found.append((str(error), isinstance(anchors.cell_anchors[0], FakeTensor)))

    found = []
    traced(program)
    equal(found, [("no values", True)])


def check_lists_as_indices_after_a_session():
    """A tensor that outlives the session takes PyTorch's own way."""
    kept = []
    traced(lambda: kept.append(torch.zeros(4, 10, device="cuda")))
    equal(kept[0][[0, 2]].shape, (2, 10))


def check_masks_of_the_host():
    """A mask on the host that chooses rows of the card becomes indices there, whose copy is on the card."""

    def program():
        x = torch.zeros(8, 100, device="cuda")
        x[torch.arange(8) % 3 == 0] = torch.ones(3, 100, device="cuda")
        x[torch.arange(8) % 4 == 0] = 0
        assert x[torch.arange(8) < 5].shape == (5, 100)

    out = traced(program)
    equal((out.sizes("index_put_ workspace"), out.sizes("index workspace")), ([24, 4, 16], [40]))


def check_layouts_of_derivatives_of_losses():
    """Those of squared, Huber's and smooth losses lie in plain order, whatever their input's."""

    def program():
        x = torch.randn(2, 6, 4, device="cuda", requires_grad=True).transpose(1, 2)
        for loss in (F.mse_loss, F.huber_loss, F.smooth_l1_loss):
            strides.append(torch.autograd.grad(loss(x, torch.zeros(2, 4, 6, device="cuda")), x)[0].stride())

    strides = []
    traced(program)
    equal(strides, [(24, 6, 1)] * 3)


def check_filters_that_lie_in_channels_last():
    """A convolution over sequences whose filter is transposed has an output in channels last."""

    def program():
        w = torch.randn(24, 5, 16, device="cuda").transpose(1, 2)
        strides.append(F.conv1d(torch.randn(3, 16, 50, device="cuda"), w).stride())
        strides.append(F.conv1d(torch.randn(3, 50, 16, device="cuda").transpose(1, 2), w.contiguous()).stride())

    strides = []
    traced(program)
    equal(strides, [(24 * 46, 1, 24), (24 * 46, 46, 1)])


def check_linear_layers_of_parts():
    """Autocast copies a part in plain order, so that the bias is added by the product; its derivative comes last."""

    def program():
        x = torch.randn(8, 20, 64, device="cuda", requires_grad=True)
        with torch.autocast("cuda", torch.float16):
            nn.Linear(64, 32).cuda()(x[:, :1]).sum().backward()

    tags = [keys["tag"].split(":")[-1] for _, keys, _ in traced(program).requests.values()]
    backward = [t for t in tags[tags.index("addmm"):] if t in ("mm", "sum")]
    equal(backward, ["sum", "mm", "mm", "sum"])


def check_lists_as_indices():
    """Ranges and lists become tensors of the card, which the derivative keeps."""

    def program():
        q = torch.zeros(64, 10, device="cuda", requires_grad=True)
        y = q[range(64), torch.zeros(64, dtype=torch.int64, device="cuda")]
        held.append(torch.cuda.memory_allocated())
        y.sum().backward()
        q.detach()[[1, 2]] = torch.ones(2, 10, device="cuda")

    held = []
    out = traced(program)
    equal((out.sizes("index workspace"), out.sizes("_to_copy"), out.sizes("index_put_ workspace")), ([], [512, 16], []))
    equal(held, [2560 + 3 * 512])


def check_beams_go_on():
    """A search with beams is as long as it may be: what is not known may still improve."""
    try:
        from transformers.generation.utils import GenerationMixin
    except ImportError:
        return

    def program():
        scores = nn.Linear(4, 3000).cuda()(torch.randn(6, 4, device="cuda"))[:, :3]
        open_, done = torch.ones(6, 1, dtype=torch.bool, device="cuda"), torch.zeros(6, 3, dtype=torch.bool, device="cuda")
        for step in range(2, 20):
            open_ = GenerationMixin._check_early_stop_heuristic(open_, scores, scores, done, step, 20, 1, False, 1.0)
        found.append(bool(open_.all()))

    found = []
    traced(program)
    equal(found, [True])


def check_derivatives_of_derivatives_run_late():
    """What a backward pass makes has numbers of its own thread on a card, which has made less than the main one."""

    def program():
        x = torch.randn(64, 100, device="cuda", requires_grad=True)
        y = nn.Sequential(*[nn.Linear(100, 100) for _ in range(6)]).cuda()(x).cos()
        g, = torch.autograd.grad(x.exp().sum(), x, create_graph=True)
        for tensor, name in ((y, "forward"), (g, "derivative")):
            tensor.grad_fn.register_hook(lambda *_, name=name: order.append(name))
        (y.sum() + g.square().sum()).backward()

    order = []
    out = traced(program)
    equal((order, out.sizes("backward:cos")), (["forward", "derivative"], []))
    equal(out.sizes("backward:sin"), [25600])


def check_windows_and_absolute_values_of_spectra():
    """A periodic window has an element more; abs makes its result before the complex numbers that it takes them from."""

    def program():
        spectra = torch.randn(6, 100, device="cuda", dtype=torch.complex64)
        spectra.abs(), spectra.angle()
        windows.extend((torch.hann_window(64, device="cuda"), torch.hamming_window(64, False, device="cuda")))

    windows = []
    out = traced(program)
    equal([n for n, _, _ in out.requests.values()], [4800, 2400, 4800, 4800, 2400, 260, 256])
    equal([w.shape[0] for w in windows], [64, 64])


def check_gradient_of_values_that_are_scattered():
    """masked_scatter: as many places as the mask has, and zeros only for values that it did not take."""

    def program(values):
        x = torch.randn(values, device="cuda", requires_grad=True)
        mask = (torch.arange(40) % 4 == 0).cuda()
        torch.zeros(6, 40, device="cuda").masked_scatter(mask.expand(6, 40), x).sum().backward()

    exact, more = traced(lambda: program(60)), traced(lambda: program(100))
    equal([out.sizes("backward:masked_select") for out in (exact, more)], [[4, 1, 60 * 2 * 8, 1023, 240]] * 2)
    equal((exact.sizes("backward:zeros"), more.sizes("backward:zeros"), more.sizes("backward:cat")), ([], [160], [400]))


def check_gradients_of_indices_on_the_host():
    """Indices are weighted on the host and each is copied; then values, keys and places are sorted as always."""

    def program():
        x = torch.randn(27, 96, device="cuda", requires_grad=True)
        y = x[torch.arange(14)[:, None] - torch.arange(14) + 13]
        (y.transpose(0, 1) * 2).sum().backward()

    def matched():
        boxes = torch.randn(24, 100, 4, device="cuda", requires_grad=True)
        boxes[torch.arange(20), torch.arange(20)].sum().backward()

    equal(traced(program).sizes("backward:_index_put_impl_"), [1568, 75264, 1568, 1568, 1568, 1])
    equal(traced(matched).sizes("backward:_index_put_impl_"), [160, 160, 320, 160, 160, 160, 1])


def check_triangular_systems_take_the_workspace_of_cublas():
    def program():
        m = torch.randn(24, 24, device="cuda", requires_grad=True)
        torch.slogdet(m)[1].backward()

    assert max(traced(program).sizes("")) >= 4 * MIB


def check_weights_of_positives():
    """The product of a small weight and the target is a new tensor in the derivative of the loss."""

    def program():
        x = torch.randn(8, 100, device="cuda", requires_grad=True)
        F.binary_cross_entropy_with_logits(x, torch.ones_like(x), pos_weight=torch.ones(1, device="cuda")).backward()

    out = traced(program)
    equal((out.sizes("backward:mul"), out.sizes("backward:sigmoid")), ([3200], [3200]))


if __name__ == "__main__":
    sys.exit(check_core.main(dict(globals())))
