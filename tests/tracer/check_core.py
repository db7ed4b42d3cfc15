"""Checks the tracer of PyTorch programs: run by tests/cli/test_tracer.sh, one process, one recording per check.

Arguments: names of checks, default all. Prints `ok NAME` or `FAILED NAME: why` for each. Exit status 1 if one failed.
"""

import copy
import os
import pickle
import sys
import tempfile
import threading
import traceback

import torch
from allocrig_tracer import attention, autocast, session

# The tracer has to start before other modules take functions out of torch.
session.start(os.path.join(tempfile.mkdtemp(), "first.trace"))
import torch.nn as nn  # noqa: E402
import torch.nn.functional as F  # noqa: E402
from torch.utils.checkpoint import checkpoint  # noqa: E402

session.stop()
MIB = 1 << 20
folder = tempfile.mkdtemp()


class Trace:
    """The events of a trace file: requests as {id: (bytes, keys)}."""

    def __init__(self, path):
        self.lines = open(path, encoding="utf-8").read().splitlines()
        self.requests, self.freed, self.live, self.peak = {}, [], 0, 0
        for line in self.lines:
            fields = line.split(",")
            if fields[0] in ("a", "p"):
                keys = dict(f.split("=", 1) for f in fields if "=" in f)
                stream = int(fields[3]) if len(fields) > 3 and fields[3].isdigit() else 0
                self.requests[int(fields[1])] = (int(fields[2]), keys, stream)
                if keys.get("space") != "pinned":
                    self.live += int(fields[2])
                    self.peak = max(self.peak, self.live)
            elif fields[0] == "r":
                self.freed.append(int(fields[1]))
                size, keys, _ = self.requests[int(fields[1])]
                self.live -= size if keys.get("space") != "pinned" else 0

    def sizes(self, part):
        """Bytes of the requests whose tag has this part, in order."""
        return [size for size, keys, _ in self.requests.values() if part in keys.get("tag", "")]

    def count(self, letter):
        return sum(line.startswith(letter + ",") for line in self.lines)

    def notes(self, kind):
        return [line.split(",")[3:] for line in self.lines if line.startswith(f"!,traced,{kind},")]


def traced(program, **options):
    path = os.path.join(folder, "program.trace")
    session.start(path, **options)
    try:
        program()
    finally:
        session.stop()
    return Trace(path)


def equal(got, wanted):
    assert got == wanted, f"got {got}, wanted {wanted}"


def check_sizes_and_lifetimes():
    def program():
        x = torch.zeros(1000, 256, device="cuda")
        y = x.half()
        del x
        y = y + 1

    trace = traced(program)
    equal([size for size, _, _ in trace.requests.values()], [1024000, 512000, 512000])
    equal(trace.freed, [0, 1, 2])


def check_marks_of_the_program():
    def program():
        x = torch.zeros(1000, device="cuda")
        torch.cuda.nvtx.mark("rollout.load, all")
        del x

    lines = [line for line in traced(program).lines if line.startswith(("a,", "m,", "r,"))]
    equal([line.split(",", 1)[0] for line in lines], ["a", "m", "r"])
    equal(lines[1], "m,rollout.load; all")


def check_a_training_step_keeps_what_it_should():
    """Weights, gradients and both moments of AdamW live at the end; activations do not."""
    sizes = {}

    def program():
        model = nn.Sequential(nn.Linear(512, 512), nn.ReLU(), nn.Linear(512, 512))
        optimizer = torch.optim.AdamW(model.parameters())  # before .cuda(): parameters keep their identity
        model.cuda()
        for _ in range(2):
            model(torch.randn(64, 512, device="cuda")).sum().backward()
            optimizer.step()
        sizes["allocated"] = torch.cuda.memory_allocated()
        assert model[0].weight.grad.is_cuda and next(model.parameters()) is model[0].weight

    trace = traced(program)
    parameters = 2 * (512 * 512 + 512) * 4
    workspaces = sum(int(size) for name, _, size in trace.notes("rule"))
    equal(sizes["allocated"], 4 * parameters + workspaces)
    equal(trace.lines.count("m,step"), 2)


def check_the_driver_takes_memory():
    """Copies, random numbers and products need no more local memory, a sum does; each thread has a handle of cuBLAS."""

    def program():
        x = torch.ones(64, 64).cuda().requires_grad_()
        torch.empty(300, 300).fill_(1)  # on the host
        y = torch.cat([x, torch.randn(64, 64, device="cuda").clone()])[:64] @ x
        (y @ x).sum().backward()

    def turned():
        for layout in (torch.contiguous_format, torch.channels_last):
            torch.ones(8, 3, 4, 4).to("cuda", memory_format=layout)

    events = [line[:12] for line in traced(turned).lines if line[:2] in ("a,", "!,") and not line.startswith("!,traced")]
    equal(events, ["!,driver,loc", "a,0,1536,tag", "a,1,1536,tag", "a,2,1536,tag", "!,driver,loc"])
    lines = traced(program).lines
    notes = [line for line in lines if line.startswith("!,driver,")]
    handle = "!,driver,took,67108864"
    equal(notes, ["!,driver,local,1024", handle, "!,driver,local,1376", handle])
    events = [line for line in lines if line[:2] in ("a,", "!,") and not line.startswith("!,traced")]
    equal(events[0], notes[0])
    equal([e.split(",")[2] for before, e in zip(events, events[1:]) if before == handle], ["33554432"] * 2)
    assert "tag=sum," in events[events.index(notes[2]) - 1], events


def check_tied_weights_stay_one():
    def program():
        a, b = nn.Linear(256, 256, bias=False), nn.Linear(256, 256, bias=False)
        b.weight = a.weight
        model = nn.Sequential(a, b).to("cuda", torch.bfloat16)
        assert model[0].weight is model[1].weight

    equal(sum(traced(program).sizes("_to_copy")), 256 * 256 * 2)


def check_autocast_casts_weights_once():
    def program():
        layer = nn.Linear(128, 128, bias=False).cuda()
        x = torch.randn(4, 128, device="cuda")
        with torch.autocast("cuda", torch.bfloat16):
            y = layer(layer(x))
            assert y.dtype == torch.bfloat16 and F.softmax(y, -1).dtype == torch.float32
        assert layer(x).dtype == torch.float32

    equal(traced(program).sizes(":_to_copy").count(128 * 128 * 2), 1)


def check_inference_mode_keeps_no_casts():
    def program(mode):
        def run():
            layer, x = nn.Linear(128, 128, bias=False).cuda(), torch.randn(4, 128, device="cuda")
            with mode(), torch.autocast("cuda", torch.bfloat16):
                layer(layer(x))

        return run

    again = 2 if torch.__version__ >= "2.11" else 1
    autocast.casts_keep_gradients.cache_clear()  # what it answers does not depend on the mode in which it is asked first
    equal(traced(program(torch.inference_mode)).sizes(":_to_copy").count(128 * 128 * 2), again)
    equal(traced(program(torch.no_grad)).sizes(":_to_copy").count(128 * 128 * 2), 1)


def check_composite_operators_cast_within_inference_mode():
    def program(mode):
        def run():
            x = torch.zeros(2, 8, 16, 16, device="cuda", dtype=torch.bfloat16)
            with mode(), torch.autocast("cuda", torch.bfloat16):
                F.interpolate(x, scale_factor=2)

        return run

    for mode in torch.no_grad, torch.inference_mode:
        equal(traced(program(mode)).sizes("")[1:], [16384, 65536])


def check_attention_keeps_what_autocast_casts():
    def program():
        x = torch.zeros(1, 4, 256, 64, device="cuda")
        with torch.autocast("cuda", torch.bfloat16):
            F.scaled_dot_product_attention(x + 0, x + 0, x + 0)

    trace = traced(program)
    made = [i for i, (size, _, _) in trace.requests.items() if size == 4 * 256 * 64 * 4]
    results = [i for i, (_, keys, _) in trace.requests.items() if "attention" in keys.get("tag", "")]
    free = {int(line.split(",")[1]): n for n, line in enumerate(trace.lines) if line.startswith("r,")}
    asked = {int(line.split(",")[1]): n for n, line in enumerate(trace.lines) if line.startswith("a,")}
    assert len(made) == 4 and results and min(free[i] for i in made[1:]) > max(asked[i] for i in results), trace.lines


def check_a_deep_copy_of_a_buffer_takes_one_element_more():
    def program():
        copy.deepcopy(nn.BatchNorm1d(256).cuda())

    equal(traced(program).sizes(""), [1024] * 4 + [8] + [1024, 1024] + [1024, 4, 1024, 4, 8, 8])


def check_filters_of_one_element_are_laid_out_again():
    def program():
        nn.Conv2d(64, 128, 1, bias=False).cuda().to(memory_format=torch.channels_last)

    equal(traced(program).sizes("_to_copy"), [32768, 32768])


def check_gradients_accumulate_in_place():
    """Two gradients of one tensor: the sum takes no third block."""

    def program():
        x = torch.zeros(1024, 256, device="cuda", requires_grad=True)
        y = x * 2
        (y.sin().sum() + y.cos().sum()).backward()

    equal(traced(program).sizes("backward:add"), [])


def check_recomputation_takes_less():
    def program(again):
        def run():
            layers = nn.ModuleList(nn.Sequential(nn.Linear(256, 1024), nn.GELU(), nn.Linear(1024, 256)) for _ in range(8)).cuda()
            x = torch.randn(4096, 256, device="cuda")
            for layer in layers:
                x = checkpoint(layer, x, use_reentrant=False) if again else layer(x)
            x.sum().backward()

        return run

    plain, less = traced(program(False)).peak, traced(program(True)).peak
    assert less < plain / 2, f"{less} of {plain}"


def check_recomputation_chooses_the_same_experts():
    def program(reentrant):
        gate, experts = nn.Linear(64, 8).cuda(), [nn.Linear(64, 64).cuda() for _ in range(8)]

        def mixture(x):
            chosen = gate(x).softmax(-1).topk(2, -1)[1]
            out = torch.zeros_like(x)
            for number, expert in enumerate(experts):
                token = (chosen == number).nonzero(as_tuple=True)[0]
                out = out.index_add(0, token, expert(x[token]))
            return out

        y = torch.randn(1000, 64, device="cuda", requires_grad=True)
        for _ in range(3):
            y = checkpoint(mixture, y, use_reentrant=reentrant)
        y.sum().backward()

    for reentrant in (False, True):
        sizes = [s for s in traced(lambda: program(reentrant)).sizes("nonzero") if s > 1023]  # noqa: B023
        layers = [sizes[i : i + 8] for i in range(0, len(sizes), 8)]
        equal(len(layers), 6)
        equal(layers[3:], layers[2::-1])
        assert layers[0] != layers[1], layers


def check_the_same_seed_gives_the_same_trace():
    def program():
        x = torch.randn(500, 64, device="cuda")
        x[(x @ torch.randn(64, 8, device="cuda")).argmax(1) == 3].sum()

    first, again = traced(program, seed=5).lines, traced(program, seed=5).lines
    equal(first, again)
    assert traced(program, seed=6).lines != first


def check_streams():
    def program():
        side = torch.cuda.Stream()
        with torch.cuda.stream(side):
            x = torch.zeros(4096, device="cuda")
        torch.cuda.current_stream().wait_stream(side)
        x.record_stream(torch.cuda.current_stream())
        del x
        torch.cuda.synchronize()

    trace = traced(program)
    equal([stream for _, _, stream in trace.requests.values()], [1])
    equal([line for line in trace.lines if line[:2] in ("e,", "w,", "u,", "r,")], ["e,0,1", "w,0,0", "u,0,0", "r,0"])


def check_the_host_waits_for_events():
    def program():
        x = torch.zeros(4096, device="cuda")
        event = torch.cuda.Event()
        event.synchronize()  # not recorded: nothing to wait for
        event.record()
        event.synchronize()
        del x

    lines = [line.split(",") for line in traced(program).lines if line[:2] in ("e,", "w,", "s,", "r,")]
    event = lines[0][1]
    equal(lines, [["e", event, "0"], ["w", "1", event], ["s", "1"], ["r", "0"]])


def check_numbers_are_filled_in_by_mask():
    """A number is on the CPU and fills the mask; a tensor of the card needs the places of the mask."""

    def program():
        x, number = torch.zeros(1000, 8, device="cuda"), torch.ones((), device="cuda")
        mask = torch.arange(1000, device="cuda") > 600
        x[mask] = 2.0
        x[3] = 1.0
        x[:, 2] = 1
        assert x[mask].shape[0] == 399
        x[mask] = number

    equal(traced(program).sizes("scalar_tensor"), [])
    places = 399 * 8
    trace = traced(program)
    equal([size for size in trace.sizes("nonzero") if size == places], [places] * 2)


def check_numbers_into_a_part_of_a_host_tensor_take_nothing():
    def program():
        x = torch.randn(400, 3, 32, 32)  # without data
        x[:, :, 8:16, 8:16] = 0
        x[2, 2] = 1.0
        x.cuda()

    equal([size for size, _, _ in traced(program).requests.values()], [400 * 3 * 32 * 32 * 4])


def check_one_sample_with_replacement_is_drawn_by_noise():
    def program(replacement):
        return lambda: torch.multinomial(torch.ones(64, 6, device="cuda"), 1, replacement)

    requests = [[size for size, _, _ in traced(program(r)).requests.values()] for r in (False, True)]
    equal(requests[0], requests[1])
    assert requests[1][-1] == 64 * 6 * 4, requests


def check_deviations_are_checked_twice():
    def program():
        mean = torch.zeros(256, 12, device="cuda")
        torch.normal(mean, torch.ones(12, device="cuda").expand(256, 12))
        torch.isinf(torch.zeros(7, device="cuda"))

    sizes = [size for size, _, _ in traced(program).requests.values()]
    equal(sizes[2:], [4, 12288, 1, 12288, 4, 12288, 1, 28, 28, 7])


def check_the_mean_of_ctc_losses_divides_by_floats():
    """Lengths become numbers on the host, which are copied to the card as float32."""

    def program():
        chances = torch.randn(10, 32, 20, device="cuda", requires_grad=True).log_softmax(2)
        lengths = (torch.full((32,), n, device="cuda") for n in (10, 5))
        F.ctc_loss(chances, torch.randint(1, 20, (32, 5), device="cuda"), *lengths).backward()

    out = traced(program)
    equal((out.sizes("_to_copy"), out.sizes("clamp_min"), out.sizes("mean")), ([128], [128], [4]))


def check_the_largest_of_all_works_in_place_in_backward():
    def program():
        torch.randn(64, 1024, device="cuda", requires_grad=True).max().backward()

    out = traced(program)
    equal((out.sizes("isnan"), out.sizes("logical_and"), out.sizes(":eq")), ([65536, 1], [], [65536]))


def check_powers_in_place():
    def program():
        norm = torch.linalg.vector_norm(torch.ones(1000, device="cuda"))
        norm.square_().pow_(2)
        return 2 ** torch.ones(1000, device="cuda")

    equal(traced(program).sizes("pow"), [4000, 8])


def check_indices_of_other_strides_are_copied():
    def program():
        x, rows, columns = (torch.zeros(*s, device="cuda", dtype=d) for s, d in
                            (((64, 64), torch.float32), ((16, 1), torch.int64), ((1, 32), torch.int64)))  # fmt: skip
        x[rows, columns]
        x[rows[:, 0], rows[:, 0]]
        torch.isin(columns, rows[:3, 0])

    trace = traced(program)
    equal(trace.sizes("index"), [16 * 32 * 8, 16 * 32 * 8, 16 * 32 * 4, 16 * 4])
    equal(trace.sizes("isin"), [32, 3 * 32, 32])


def check_pinned_memory():
    def program():
        x = torch.randn(1 << 18).pin_memory()
        assert x.is_pinned() and x.to("cuda", non_blocking=True).is_cuda
        torch.empty(100, pin_memory=True)

    pinned = [size for size, keys, _ in traced(program).requests.values() if keys.get("space") == "pinned"]
    equal(pinned, [MIB, 400])


def check_convolution_and_normalization():
    def program():
        model = nn.Sequential(nn.Conv2d(3, 8, 3, padding=1), nn.BatchNorm2d(8), nn.ReLU(), nn.MaxPool2d(2)).cuda()
        model(torch.randn(4, 3, 32, 32, device="cuda")).sum().backward()
        assert model[0].weight.grad.shape == (8, 3, 3, 3)

    trace = traced(program)
    assert trace.sizes(":cudnn_batch_norm") and trace.sizes(":convolution"), trace.lines


def check_recurrent_layers():
    def program():
        model = nn.LSTM(32, 64, num_layers=2, batch_first=True).cuda()
        x = torch.randn(8, 20, 32, device="cuda", requires_grad=True) * 1
        x.register_hook(lambda gradient: strides.append(gradient.stride()))
        out, (h, c) = model(x)
        assert out.shape == (8, 20, 64) and h.shape == (2, 8, 64)
        out.sum().backward()

    strides = []
    assert traced(program).sizes("_cudnn_rnn")
    equal(strides, [(32, 256, 1)])


def check_attention_chooses_as_a_card():
    def program():
        made = lambda dtype, size=64: [torch.randn(2, 4, 128, size, device="cuda", dtype=dtype) for _ in range(3)]  # noqa: E731
        F.scaled_dot_product_attention(*made(torch.bfloat16), is_causal=True)
        F.scaled_dot_product_attention(*made(torch.bfloat16, 100), is_causal=True)
        F.scaled_dot_product_attention(*made(torch.float32))
        F.scaled_dot_product_attention(*made(torch.float64))
        chosen.update(session.current().attention)

    chosen = {}
    traced(program)
    first = "cudnn" if attention.cudnn_preferred(9.0) else "flash"
    assert first == "cudnn" or attention.release() < (2, 11)
    wanted = {"flash": 1, "efficient": 1, "math": 1}
    equal(chosen, {**wanted, first: wanted.get(first, 0) + 1})


def check_a_large_model_needs_no_memory():
    import resource

    def program():
        model = nn.Sequential(*[nn.Linear(16384, 16384, dtype=torch.bfloat16) for _ in range(16)])
        model.cuda()

    before = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    equal(sum(traced(program).sizes("_to_copy")), 16 * (16384 * 16384 + 16384) * 2)
    assert resource.getrusage(resource.RUSAGE_SELF).ru_maxrss - before < 512 * 1024


def check_meta_stays_meta():
    def program():
        with torch.device("meta"):
            model = nn.Linear(64, 64)
        assert model.weight.is_meta and torch.empty(3, device="meta").is_meta
        model.to_empty(device="cuda")
        assert model.weight.is_cuda

    equal(sorted(s for s, _, _ in traced(program).requests.values()), [256, 16384])


def check_a_default_device_is_followed():
    def program():
        with torch.device("cuda"):
            model = nn.Linear(64, 64)
            x = torch.randn(2, 64)
        assert model.weight.is_cuda and model(x).is_cuda

    assert 16384 in traced(program).sizes("")


def check_fused_and_foreach_optimizers():
    def program(**options):
        def run():
            model = nn.Linear(256, 256).cuda()
            optimizer = torch.optim.AdamW(model.parameters(), **options)
            model(torch.randn(4, 256, device="cuda")).sum().backward()
            optimizer.step()

        return run

    names = {}
    for kind, options in (("default", {}), ("fused", {"fused": True}), ("single", {"foreach": False})):
        names[kind] = {keys["tag"] for _, keys, _ in traced(program(**options)).requests.values()}
    assert any("_foreach_sqrt" in n for n in names["default"]) and "sqrt" in names["single"], names
    assert not any("sqrt" in n for n in names["fused"]), names["fused"]


def check_operators_without_a_shape_function():
    """Those that PyTorch has no shape function for, and one that nobody knows."""

    def program():
        made = lambda *size: torch.randn(*size, device="cuda", requires_grad=True)  # noqa: E731
        lengths = torch.full((4,), 10), torch.full((4,), 5)
        F.ctc_loss(made(10, 4, 20).log_softmax(2), torch.randint(1, 20, (4, 5), device="cuda"), *lengths).backward()
        F.multi_margin_loss(made(3, 5), torch.zeros(3, dtype=torch.long, device="cuda")).backward()
        nn.GRUCell(8, 16).cuda()(made(4, 8)).sum().backward()
        model = nn.Linear(8, 8).cuda()
        optimizer = torch.optim.SGD(model.parameters(), 0.1, momentum=0.9, fused=True)
        model(made(2, 8)).sum().backward()
        optimizer.step()
        assert made(3).new_tensor([1.0, 2.0]).is_cuda and made(3).type() == "torch.cuda.FloatTensor"

    traced(program)
    try:
        traced(lambda: torch.randn(8, 8, device="cuda").to_sparse_csr())
        raise AssertionError("nothing was said")
    except NotImplementedError as error:
        assert "the tracer cannot run aten::_to_sparse_csr" in str(error), error
    refused = Trace(os.path.join(folder, "program.trace")).notes("outside_envelope")
    assert "_to_sparse_csr" in refused[0][0], refused


def check_a_full_disk_leaves_no_part_of_a_trace():
    path = os.path.join(folder, "full.trace")
    os.symlink("/dev/full", path + ".part")
    session.start(path)
    torch.zeros(8, device="cuda")
    try:
        session.stop()
        raise AssertionError("nothing was said")
    except OSError:
        pass
    assert not os.path.exists(path) and not os.path.lexists(path + ".part")


def check_grad_scaler():
    def program():
        model = nn.Linear(64, 64).cuda()
        optimizer, scaler = torch.optim.SGD(model.parameters(), 0.1), torch.amp.GradScaler("cuda")
        for _ in range(2):
            with torch.autocast("cuda", torch.float16):
                loss = model(torch.randn(4, 64, device="cuda")).sum()
            scaler.scale(loss).backward()
            scaler.step(optimizer)
            scaler.update()
        assert scaler.get_scale() == 65536.0

    equal(traced(program).lines.count("m,step"), 2)


def check_saved_tensors_are_loaded():
    """Each storage is one request of its size; map_location, tied weights and optimizers are those of PyTorch."""

    def program():
        file = os.path.join(folder, "saved.pt")
        model = nn.ModuleDict({"a": nn.Linear(64, 64), "b": nn.Linear(64, 64)}).cuda()
        model["b"].weight = model["a"].weight
        optimizer = torch.optim.AdamW(model.parameters())
        model["b"](model["a"](torch.randn(8, 64, device="cuda"))).sum().backward()
        optimizer.step()
        torch.save({"model": model.state_dict(), "optimizer": optimizer.state_dict(), "epoch": 3}, file)
        before = torch.cuda.memory_allocated()
        again = torch.load(file)
        assert torch.cuda.memory_allocated() - before == (64 * 64 * 4 + 2 * 512) * 3, "one weight and two biases, thrice"
        assert again["model"]["a.weight"].is_cuda and again["epoch"] == 3
        assert torch.load(file, map_location="cpu")["model"]["a.weight"].device.type == "cpu"
        model.load_state_dict(again["model"])
        optimizer.load_state_dict(again["optimizer"])
        optimizer.step()
        torch.save(model, file)
        whole = torch.load(file, weights_only=False)
        assert whole["a"].weight.is_cuda and isinstance(whole["a"].weight, nn.Parameter)
        ids = pickle.loads(pickle.dumps(torch.tensor([5, 7], device="cuda")))
        assert ids.is_cuda and ids.tolist() == [5, 7] and copy.copy(ids).data_ptr() == ids.data_ptr()

    traced(program)


def check_files_of_real_programs_are_loaded_to_the_card():
    file = os.path.join(folder, "real.pt")
    weight = torch.arange(256.0)
    torch.save({"weight": weight, "half": weight[128:]}, file)

    def program():
        for where in ("cuda", {"cpu": "cuda:0"}, lambda storage, location: storage.cuda(0)):
            loaded = torch.load(file, map_location=where)
            assert loaded["half"].is_cuda and loaded["half"].tolist()[0] == 128.0

    equal([size for size, _, _ in traced(program).requests.values()], [1024] * 3)


def check_data_of_the_host_goes_to_the_card():
    def program():
        x = torch.as_tensor([1, 2], device="cuda")
        assert x.is_cuda and torch.as_tensor(x, device="cuda") is x and x.share_memory_() is x
        assert torch.asarray([1.0], device="cuda", dtype=torch.half).dtype == torch.half

    equal([size for size, _, _ in traced(program).requests.values()], [16, 2])


def check_threads_run_at_once():
    """A thread that is inside an operator does not change what the others see."""
    done = []

    def work():
        for _ in range(20):
            x = torch.randn(100, requires_grad=True, device="cuda")
            (x * 2).sum().backward()
            done.append(x.grad.is_cuda)

    def program():
        threads = [threading.Thread(target=work) for _ in range(4)]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()

    traced(program)
    equal(done, [True] * 80)


def check_names_with_commas():
    """The name of a module or a file does not break a line of the trace."""

    def program():
        model = nn.ModuleDict({"a,b\n": nn.Linear(8, 8)}).cuda()
        exec(compile('model["a,b\\n"](torch.ones(2, 8, device="cuda"))', "my, train.py", "exec"))

    trace = traced(program)
    equal(trace.sizes("Linear:addmm")[:1], [64])  # from 2.15 on a workspace follows
    assert any(line.endswith("at=my; train.py:1") for line in trace.lines), trace.lines


def main(checks):
    """Runs the functions named check_*, or those that the arguments name."""
    failed = 0
    for name, check in checks.items():
        if name.startswith("check_") and callable(check) and name[6:] in (sys.argv[1:] or [name[6:]]):
            try:
                check()
                print("ok", name[6:])
            except Exception:  # noqa: BLE001
                failed += 1
                print(f"FAILED {name[6:]}: {traceback.format_exc()}")
    return 1 if failed else 0


if __name__ == "__main__":
    sys.exit(main(dict(globals())))
