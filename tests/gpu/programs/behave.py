#!/usr/bin/env python3
"""What a program may rely on with a policy inside PyTorch, and inside CuPy: behave.py torch|cupy, with ALLOCRIG_POLICY
set. One line for each case, `ok NAME`, `not ok NAME: why` or `skip NAME: why`. BEHAVE_SHARE=0.1 makes a tenth of the
rounds, for a memory checker."""
import os
import random
import sys
import threading
import traceback

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", "..", "..", "bench", "plugin"))
import allocrig_torch  # noqa: E402

TOO_MUCH = 1 << 46
SHARE = float(os.environ.get("BEHAVE_SHARE", "1"))


def rounds(count):
    return range(max(10, int(count * SHARE)))


def streams(torch):
    """Blocks made on one stream, used on others and dropped at once, while the card lags behind: contents stay."""
    r, side = random.Random(3), [torch.cuda.Stream() for _ in range(3)]
    weight, wrong = torch.eye(2048, device="cuda"), torch.zeros((), device="cuda")
    for i in rounds(300):
        own, n = side[i % 3], r.choice([300, 1200, 2048])
        with torch.cuda.stream(own):
            x = torch.full((n, 2048), float(i), device="cuda")
        other = side[(i + r.randrange(1, 3)) % 3]
        other.wait_stream(own)
        with torch.cuda.stream(other):
            y = x @ weight
            x.record_stream(other)
            bad = (y != float(i)).sum()
        main = torch.cuda.current_stream()
        main.wait_stream(other)
        bad.record_stream(main)
        wrong += bad
        del x, y, bad
    assert wrong.item() == 0, f"{wrong.item():.0f} wrong numbers"


def threads(torch):
    wrong = []

    def work(number):
        r, stream = random.Random(number), torch.cuda.Stream()
        with torch.cuda.stream(stream):
            held = []
            for i in rounds(200):
                held.append((torch.full((r.randrange(1, 1 << 18),), float(number * 1000 + i), device="cuda"), i))
                if len(held) > 8:
                    tensor, k = held.pop(r.randrange(len(held)))
                    if (tensor != float(number * 1000 + k)).any().item():
                        wrong.append((number, k))

    them = [threading.Thread(target=work, args=(n,)) for n in range(8)]
    for thread in them:
        thread.start()
    for thread in them:
        thread.join()
    assert not wrong, f"wrong contents: {wrong[:3]}"


def graphs(torch):
    """Two graphs that share a pool, replayed with other requests between."""
    made, pool = [], None
    weight = torch.eye(512, device="cuda")
    for n in (64, 512):
        x = torch.ones(n, 512, device="cuda")
        side = torch.cuda.Stream()
        side.wait_stream(torch.cuda.current_stream())
        with torch.cuda.stream(side):
            x @ weight
        torch.cuda.current_stream().wait_stream(side)
        graph = torch.cuda.CUDAGraph()
        with torch.cuda.graph(graph, pool=pool):
            y = ((x @ weight) * 2 + 1) @ weight
        pool = graph.pool()
        made.append((graph, x, y))
    for i in rounds(20):
        for graph, x, y in made:
            x.fill_(float(i))
            graph.replay()
            noise = [torch.full((k * 1000,), -1.0, device="cuda") for k in range(1, 40)]
            assert torch.equal(y, torch.full_like(y, 2.0 * i + 1)), f"a wrong result in round {i}"
            del noise
    made.clear()
    del graph, x, y
    torch.cuda.empty_cache()


def out_of_memory(torch):
    try:
        torch.empty(TOO_MUCH, dtype=torch.uint8, device="cuda")
    except RuntimeError as error:
        print(f"# {type(error).__name__}: {error}")
        assert "out of memory" in str(error)
    else:
        raise AssertionError("no error")
    assert torch.ones(1000, device="cuda").sum().item() == 1000


def fraction(torch):
    """What the policy holds already may be used, as PyTorch's own cache may."""
    if allocrig_torch.figure("physical_bytes") > 0.2 * torch.cuda.mem_get_info()[1]:
        return
    total = torch.cuda.mem_get_info()[1]
    torch.cuda.set_per_process_memory_fraction(0.2)
    try:
        torch.empty(int(0.4 * total), dtype=torch.uint8, device="cuda")
    except RuntimeError as error:
        assert "out of memory" in str(error)
    else:
        raise AssertionError("more than the fraction was given")
    torch.cuda.set_per_process_memory_fraction(1.0)


def empty_cache(torch):
    x = torch.empty(300 << 20, dtype=torch.uint8, device="cuda")
    del x
    torch.cuda.synchronize()
    held = allocrig_torch.figure("physical_bytes")
    torch.cuda.empty_cache()
    assert allocrig_torch.figure("physical_bytes") <= held


def cupy_contents(cupy):
    r, held = random.Random(5), []
    for i in rounds(500):
        held.append((cupy.full(r.randrange(1, 1 << 20), i, dtype=cupy.int32), i))
        if len(held) > 20:
            array, k = held.pop(r.randrange(len(held)))
            assert bool((array == k).all()), f"wrong contents of array {k}"
    a = cupy.random.rand(1000, 1000)
    assert abs(float((a @ cupy.eye(1000) - a).sum())) < 1e-6
    assert allocrig_torch.figure("requests") > len(rounds(500))


def cupy_out_of_memory(cupy):
    # Its allocator in Cython looks at no error of a C function: Python finds it one call later.
    try:
        cupy.empty(TOO_MUCH, dtype=cupy.uint8)
    except (MemoryError, SystemError) as error:
        memory = error if isinstance(error, MemoryError) else error.__cause__
        assert isinstance(memory, MemoryError), f"{error!r} from {error.__cause__!r}"
        print(f"# {type(memory).__name__}: {memory}")
    else:
        raise AssertionError("no error")
    assert int(cupy.ones(1000).sum()) == 1000


def main():
    failed = 0
    if sys.argv[1] == "torch":
        import torch as framework

        allocrig_torch.install()
        cases = [streams, threads, graphs, empty_cache, out_of_memory, fraction]
    else:
        import cupy as framework

        allocrig_torch.install_cupy()
        cases = [cupy_contents, cupy_out_of_memory]
    for case in cases:
        name = f"{os.environ.get('ALLOCRIG_POLICY', 'torch')} {case.__name__}"
        try:
            case(framework)
            print(f"ok {name}", flush=True)
        except Exception as error:  # noqa: BLE001
            failed += 1
            traceback.print_exc()
            print(f"not ok {name}: {error}", flush=True)
    return 1 if failed else 0


sys.exit(main())
