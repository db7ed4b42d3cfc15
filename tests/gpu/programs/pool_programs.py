#!/usr/bin/env python3
"""Programs for pool_recording.c, and what it recorded as golden data.

pool_programs.py SET.. > PROGRAMS: `steps`, `marks` (several streams), or seeds of random programs: `FIRST-BEFORE` on one
stream, `sFIRST-BEFORE` on three, some of them held up, `c` the same with waits, `l` with waits and a maximum, `x` with
waits, the streams in turns, every second one with a maximum. A line of a program: `p NAME POOL THRESHOLD FOLLOW
OPPORTUNISTIC INTERNAL MOST FLAGS` (POOL: default or new; flag t: the words of blocks tell which pages moved; a: when each
call begins), `a ID BYTES STREAM`, `f ID STREAM`, `s` synchronise the device, `y STREAM` a stream, `q STREAM` query, `h
STREAM` hold up, `r STREAM` release, `e EVENT STREAM` record, `v EVENT STREAM` wait, `z EVENT` synchronise, `t BYTES` trim,
`w MICROSECONDS` sleep, `b MICROSECONDS` busy, `m ID STREAM` a small kernel, `M ID STREAM` one over all of a block. An
answer repeats the line and adds, for an allocation, the driver's result and the address, then the time in ns, used and
reserved bytes; `T CALL FIRST FROM+LENGTH..` are the words that the block of a call contained, one for each 2 MiB, and the
first of those that were written; `T at NS` is when the next call begins.

pool_programs.py --golden ANSWERS FOLDER: the form of tests/golden/data/async, for programs without flag t."""
import gzip
import itertools
import pathlib
import random
import sys

KIB, MIB, GIB = 1 << 10, 1 << 20, 1 << 30
P = 32 * MIB
WAIT = "w 300"
out = []


class Program:
    def __init__(self, name, pool="default", threshold="max", follow=1, opportunistic=1, internal=1, most=0, flags="t"):
        out.append(f"p {name} {pool} {threshold} {follow} {opportunistic} {internal} {most} {flags}")
        self.next = 0

    def a(self, size, stream=0):
        out.append(f"a {self.next} {int(size)} {stream}")
        self.next += 1
        return self.next - 1

    def many(self, sizes, stream=0):
        return [self.a(size, stream) for size in sizes]

    def f(self, *blocks, stream=0):
        for block in blocks:
            out.append(f"f {block} {stream}")

    def op(self, text):
        out.append(text)


def single_sizes():
    sizes = [1, 512, 513, 64 * KIB, MIB, 2 * MIB - 1, 2 * MIB, 2 * MIB + 1, 3 * MIB, 16 * MIB, P - 512, P - 1, P, P + 1,
             P + MIB, P + 2 * MIB, P + 2 * MIB + 1, P + 16 * MIB, 2 * P - 1, 2 * P, 2 * P + 1, 3 * P, 100 * MIB, 128 * MIB, 200 * MIB,
             256 * MIB, 256 * MIB + 1, 500 * MIB, 512 * MIB, 512 * MIB + 1, 800 * MIB, GIB - 1, GIB, GIB + 1, GIB + P + 1, 2 * GIB,
             2 * GIB + 1, 5 * GIB + 12345]
    for threshold in ("0", "max"):
        p = Program(f"single_{threshold}", threshold=threshold)
        for size in sizes:
            b = p.a(size)
            p.f(b)
            p.op("s")
            if threshold == "max":
                p.op("t 0")
    p = Program("ascending")  # all stay
    for size in sizes:
        p.a(size)
    p = Program("descending")
    for size in reversed(sizes):
        p.a(size)
    p = Program("first_stays", threshold="0")
    p.a(1)
    for size in sizes:
        b = p.a(size)
        p.f(b)
        p.op("s")


def rounding():
    p = Program("small_rounding")
    for size in [1, 511, 512, 513, 1024, 4096, 4097, 65536, 65537, MIB, MIB + 1, 2 * MIB, 2 * MIB + 1, 3 * MIB + 1, 5 * MIB + 513, 1, 1]:
        p.a(size)
    p = Program("fill_pages")
    for i in range(40):
        p.a(20 * MIB)
    p = Program("fill_pages_3")
    for i in range(60):
        p.a(3 * MIB)
    p = Program("fill_33")
    for i in range(30):
        p.a(33 * MIB)
    p = Program("fill_48")
    for i in range(20):
        p.a(48 * MIB)
        p.a(10 * MIB)


def choice():
    for names in itertools.permutations("ABC"):
        p = Program("choice_" + "".join(names))
        holes = {}
        for name, size in zip("ABC", (10, 14, 12)):
            holes[name] = p.a(size * MIB)
            p.a(2 * MIB)
        for name in names:
            p.f(holes[name])
        for size in (9, 9, 9, 3, 1, 1):
            p.a(size * MIB)
    p = Program("choice_equal")
    bs = p.many([8 * MIB] * 20)
    p.f(*(bs[i] for i in (11, 3, 7, 15, 5)))
    p.many([8 * MIB] * 5 + [4 * MIB] * 3)
    p.op("s")
    p.f(*(bs[i] for i in (1, 13, 9)))
    p.op("s")
    p.many([6 * MIB] * 4)
    p = Program("choice_large_equal")
    bs = p.many([96 * MIB] * 12)
    p.f(*(bs[i] for i in (7, 3, 9, 5)))
    p.many([96 * MIB] * 2 + [64 * MIB, 32 * MIB, 20 * MIB, 80 * MIB, 20 * MIB])
    p = Program("big_to_small")
    b = p.a(GIB)
    c = p.a(200 * MIB)
    p.f(b)
    p.many([512, MIB, 512 * MIB, 2 * MIB, 100 * MIB, 40 * MIB, 33 * MIB, 512, 300 * MIB])
    p.f(c)
    p.many([512, 150 * MIB, 64 * MIB])
    for synced in (0, 1):
        p = Program(f"small_among_large_{synced}")
        a = p.a(10 * MIB)
        b = p.a(500 * MIB)
        c = p.a(9 * MIB)
        d = p.a(300 * MIB)
        p.f(a, b, c, d)
        if synced:
            p.op("s")
        p.many([MIB] * 3 + [12 * MIB, 8 * MIB, 200 * MIB, 12 * MIB, 400 * MIB, 250 * MIB])


def coalescing():
    for order in ((0, 1), (1, 0)):
        for synced in (0, 1):
            p = Program(f"join_{order[0]}_{synced}")
            bs = p.many([8 * MIB] * 4)
            p.f(*(bs[i + 1] for i in order))
            if synced:
                p.op("s")
            p.a(16 * MIB)
    p = Program("join_pages")
    bs = p.many([P] * 8)
    p.f(*bs[2:6])
    p.a(4 * P)
    p.f(bs[0], bs[1], bs[6])
    p.a(2 * P)
    p.a(P)
    p = Program("join_pages_48")
    bs = p.many([48 * MIB] * 8)
    p.f(*bs[2:6])
    p.a(192 * MIB)
    p.f(bs[7])
    p.a(40 * MIB)
    p = Program("join_with_end")
    bs = p.many([20 * MIB, 20 * MIB, 20 * MIB])
    p.f(bs[2])
    p.a(30 * MIB)
    p.a(60 * MIB)


def moving():
    for synced in (0, 1):
        for size, count in ((32, 5), (64, 6), (20, 12), (48, 9), (100, 8)):
            p = Program(f"move_{size}_{synced}")
            bs = p.many([size * MIB] * count)
            p.f(*bs[1::2])
            if synced:
                p.op("s")
            x = p.a(2 * size * MIB)
            y = p.a(size * MIB)
            z = p.a(3 * size * MIB)
            p.f(x)
            if synced:
                p.op("s")
            p.many([size * MIB, size * MIB, 10 * MIB])
            p.f(y, z)
            p.many([4 * size * MIB, size * MIB])
    p = Program("move_many")
    bs = p.many([P] * 64)
    p.f(*bs[::2])
    x = p.a(20 * P)
    p.many([P] * 4)
    p.a(10 * P)
    p.f(x)
    p.many([P] * 20)
    p = Program("move_edges")  # holes whose pages are partly used
    bs = p.many([24 * MIB] * 16)
    p.f(bs[1], bs[2], bs[5], bs[6], bs[9], bs[10])
    p.a(96 * MIB)
    p.many([24 * MIB] * 4)
    p.a(96 * MIB)
    p = Program("grow_beside_holes")
    bs = p.many([100 * MIB] * 6)
    p.f(bs[1], bs[3])
    p.a(150 * MIB)
    p.a(120 * MIB)
    p.a(90 * MIB)
    p.f(bs[5])
    p.a(170 * MIB)
    p = Program("move_then_small")
    bs = p.many([40 * MIB] * 10)
    p.f(*bs[1:9:2])
    p.a(100 * MIB)
    p.many([MIB] * 12)
    p.many([8 * MIB] * 12)


def releasing():
    for name, sizes, freed in (
        ("middle", [50 * MIB, MIB, 49 * MIB], [0, 2]),
        ("large", [GIB, MIB, GIB], [0, 2]),
        ("small_stays", [MIB, 100 * MIB], [1]),
        ("halves", [20 * MIB] * 10, [0, 2, 4, 6, 8]),
        ("most", [20 * MIB] * 10, [0, 1, 2, 4, 5, 6, 8, 9]),
        ("pages", [P] * 10, [0, 2, 4, 6, 8]),
        ("odd", [33 * MIB] * 10, [0, 2, 4, 6, 8]),
    ):
        for threshold in ("0", str(64 * MIB), str(100 * MIB)):
            p = Program(f"release_{name}_{threshold}", threshold=threshold)
            bs = p.many(sizes)
            p.f(*(bs[i] for i in freed))
            p.op("s")
            p.many([sizes[0]] * 3 + [10 * MIB, 70 * MIB])
            p.op("y 0")
        p = Program(f"trim_{name}")
        bs = p.many(sizes)
        p.f(*(bs[i] for i in freed))
        p.op("t 500000000")
        p.op("t 200000000")
        p.op("t 100000000")
        p.op("t 0")
        p.op("s")
        p.op("t 0")
        p.many([sizes[0]] * 3 + [10 * MIB, 70 * MIB])
    for how in ("y 0", "s", "q 0", "y 1", "e 0 0", "z 0", "w 2000"):
        p = Program("release_by_" + how.replace(" ", ""), threshold="0")
        x = p.a(500 * MIB)
        p.a(MIB)
        if how[0] == "z":
            p.f(x)
            p.op("e 0 0")
        else:
            p.f(x)
        p.op(how)
        p.a(10 * MIB)
        p.op("s")


def releasing_how():
    """The same with the stream idle: what makes a free known?"""
    for how in ("t 0", "q 0", "y 1", "e 0 0", "s", "y 0"):
        for threshold in ("0", "max"):
            p = Program("how_" + how.replace(" ", "") + "_" + threshold, threshold=threshold, flags="-")
            x = p.a(500 * MIB)
            p.a(MIB)
            p.f(x)
            for text in ("w 2000", how, "t 0"):
                p.op(text)
            p.f(p.a(10 * MIB))
            for text in (how, "w 1000", how, "s", "t 0"):
                p.op(text)


def streams():
    for follow, opportunistic, internal in ((1, 1, 1), (1, 0, 0), (0, 1, 0), (0, 0, 1), (0, 0, 0)):
        for held in (0, 1):
            for ordered in (0, 1):
                p = Program(f"streams_{follow}{opportunistic}{internal}_{held}{ordered}", follow=follow,
                            opportunistic=opportunistic, internal=internal, flags="-")
                x = p.a(40 * MIB, 1)
                y = p.a(40 * MIB, 1)
                z = p.a(30 * MIB, 0)
                p.a(8 * MIB, 0)
                if held:
                    p.op("h 1")
                p.f(x, stream=1)
                p.f(z, stream=0)
                if ordered:
                    p.op("e 0 1")
                    p.op("v 0 2")
                p.op("w 1000")
                p.many([25 * MIB] * 1, 2)
                p.many([40 * MIB] * 1, 2)
                p.many([12 * MIB] * 3, 0)
                if held:
                    p.op("r 1")
                    p.op("w 1000")
                p.many([40 * MIB] * 1, 2)
                p.f(y, stream=1)
                p.op("s")
                p.many([20 * MIB] * 3, 2)
    p = Program("stream_own_first", flags="-")
    bs = [p.a(12 * MIB, i % 3) for i in range(18)]
    p.op("h 1")
    p.op("h 2")
    for i in (1, 2, 3, 7, 8, 9, 13, 14, 15):
        p.f(bs[i], stream=i % 3)
    p.op("w 500")
    for stream in (1, 2, 0):
        p.many([12 * MIB, 6 * MIB, 14 * MIB], stream)
    p.op("r 1")
    p.op("r 2")
    p.op("w 500")
    p.many([12 * MIB] * 4, 0)
    for most in (4 * P, 3 * P + MIB):
        p = Program(f"most_{most}", pool="new", most=most, flags="-")
        bs = p.many([P] * 4)
        p.f(bs[1], bs[2])
        p.many([40 * MIB, 20 * MIB, 64 * MIB, 12 * MIB, 4 * MIB])


def sequences(letters, most):
    return ["".join(each) for count in range(most + 1) for each in itertools.product(letters, repeat=count)]


def order(state, calls):
    """Stream 1 frees a block; what does it take until stream 2 finds that done? Stream 5 is held up for ever; event 9 was
    recorded on it."""
    p = Program(f"o.{state}.{calls or 0}", flags="-", follow=0, internal=0)
    used = p.a(64 * KIB, 1)
    block = p.a(MIB, 1)
    p.a(64 * KIB)
    others = []
    for size in (256, 256, 256, 256, 1536):
        others.append(p.a(size * KIB, 1))
        p.a(64 * KIB)
    larger = others.pop()
    for text in ("h 5", "e 9 5", WAIT, *{"N": (), "D": ("h 1", WAIT, "r 1", WAIT), "M": (f"m {used} 1", WAIT, WAIT)}[state]):
        p.op(text)
    if "l" in calls:
        p.f(larger, stream=1)
    p.f(block, stream=1)
    if "c" in calls:
        p.f(others.pop(), stream=1)
    p.op(WAIT)
    for call in calls:
        if call == "F":
            p.f(others.pop(), stream=1)
        elif call == "c":
            p.a(64 * KIB, 1)
        elif call == "l":
            p.a(1280 * KIB, 4)
        else:
            p.op({"h": "h 1", "m": f"m {used} 1", "v": "v 9 1", "e": "e 3 1"}[call])
        p.op(WAIT)
    for _ in range(2):
        p.a(MIB, 2)
        p.op(WAIT)


def cut(cutter, looker, calls, whole):
    """A block is cut from what stream 1 freed: whose is the rest?"""
    p = Program(f"cut{cutter}{looker}.{calls or 0}.{whole}", flags="-", follow=0, internal=0)
    used = p.a(512 * KIB, 1)
    block = p.a(MIB, 1)
    p.a(512 * KIB)
    if whole:
        other = p.a(512 * KIB, 4)
        p.a(512 * KIB)
        p.f(other, stream=4)
        p.op("y 4")
    p.f(block, stream=1)
    p.op(WAIT)
    p.a(513 * KIB, cutter)
    for call in calls:
        p.op({"h": "h 1", "m": f"m {used} 1"}[call])
        p.op(WAIT)
    for _ in range(3):
        p.a(511 * KIB, looker)
        p.op(WAIT)


def ordered(where, switches):
    p = Program(f"f.{where}.{''.join(map(str, switches))}", "default", "max", *switches, flags="-")
    p.a(64 * KIB, 1)
    p.a(64 * KIB, 2)
    blocks = []
    for size in (1536, 1024, 2560, 2048):
        blocks.append(p.a(size * KIB, 1))
        p.a(64 * KIB)
    last = blocks.pop()
    p.op(WAIT)
    if where == "held":
        p.op("h 1")
    for block in blocks:
        p.f(block, stream=1)
        p.op(WAIT)
    p.op("e 3 1")
    if where == "transitive":
        for text in ("v 3 3", "e 4 3", "v 4 2"):
            p.op(text)
    else:
        p.op("v 3 2")
    p.f(last, stream=1)
    for size in (512, 512, 768, 512, 512):
        p.a(size * KIB, 2)
        p.op(WAIT)


def long_kernel(calls):
    p = Program(f"k.{calls}", flags="-", follow=0, internal=0)
    block = p.a(MIB, 1)
    p.a(64 * KIB)
    large = p.a(24 * GIB, 1)
    p.op(WAIT)
    for call in calls:
        if call == "F":
            p.f(block, stream=1)
        else:
            p.op(f"M {large} 1")
    for _ in range(3):
        p.op("w 100")
        p.a(MIB, 2)
        p.op("w 30000")


def search_order(order, switches, another=0):
    """The best fit is not done: which of the larger ranges is used? `another`: or a fit of stream 4?"""
    name = f"search.{''.join(map(str, order))}.{''.join(map(str, switches))}.{another}"
    p = Program(name, "default", "max", *switches, flags="-")
    blocks = []
    for size in range(12, 17):
        blocks.append(p.a(size * MIB, 1))
        p.a(MIB)
    for _ in range(another):
        p.f(p.a(13 * MIB, 4), stream=4)
    for each in order:
        p.f(blocks[each], stream=1)
    for text in ("e 3 1", "v 3 2", "e 4 4", "v 4 2", WAIT, "h 1"):
        p.op(text)
    p.f(blocks[0], stream=1)
    p.op(WAIT)
    for _ in range(4):
        p.a(12 * MIB, 2)
        p.op(WAIT)


def internal_wait(before, after):
    """Stream 1 frees a block, then waits for memory of stream 3: is that free done before the wait? If not, stream 2 gets the
    block of stream 4."""
    p = Program(f"internal.{before or 0}.{after or 0}", "new", "max", 0, 1, 1, 3 * P, flags="-")
    block = p.a(MIB, 1)
    other = p.a(MIB, 4)
    used = p.a(28 * MIB, 1)
    small = []
    for _ in range(2):
        small.append(p.a(512 * KIB, 1))
        p.a(512 * KIB, 4)
    large = p.a(2 * P, 3)
    p.op("h 3")
    p.f(large, stream=3)
    p.op("h 1")
    p.f(block, stream=1)
    for calls in (before, "i", after):
        for call in calls:
            if call == "F":
                p.f(small.pop(), stream=1)
            elif call == "i":
                p.a(2 * P, 1)
            else:
                p.op({"h": "h 1", "m": f"m {used} 1", "e": "e 3 1"}[call])
            p.op(WAIT)
    p.f(other, stream=4)
    for text in ("r 1", WAIT):
        p.op(text)
    for _ in range(2):
        p.a(MIB, 2)
        p.op(WAIT)


def row():
    p = Program("row", threshold="0", flags="-")
    for size in (90, 100):
        block = p.a(size * GIB)
        p.a(MIB)
        p.f(block)
        p.op("s")
    for size in (88, 64, 44, 28, 110):
        p.f(p.a(size * GIB))
        p.op("s")


def marks():
    for state in "NDM":
        for calls in sequences("hmvFecl", 2):
            order(state, calls)
    for state in "NM":
        for calls in sequences("hmvFec", 3):
            if len(calls) == 3 and calls.count("v") == 1:
                order(state, calls)
    for cutter, looker, calls, whole in itertools.product((1, 2, 3), (1, 2, 3), ("", "h", "m"), (0, 1)):
        cut(cutter, looker, calls, whole)
    for where, switches in itertools.product(("held", "idle", "transitive"), ((1, 1, 0), (1, 1, 1), (1, 0, 0), (1, 0, 1))):
        ordered(where, switches)
    for calls in ("FK", "KF"):
        long_kernel(calls)
    for order_, switches in itertools.product(itertools.permutations(range(1, 5)), ((1, 0, 0), (0, 1, 0))):
        search_order(order_, switches)
    for order_, switches in itertools.product(((1, 2, 3, 4), (4, 3, 2, 1), (3, 1, 4, 2)), ((1, 0, 0), (0, 1, 0))):
        search_order(order_, switches, 1)
    for before, after in itertools.product(("", "m", "F", "e"), ("", "m", "F", "e", "h")):
        internal_wait(before, after)
    row()
    for microseconds, again in itertools.product((0, 1, 2, 3, 4, 5, 6, 7, 8, 10, 20, 40, 80), range(4)):
        p = Program(f"delay.{microseconds}.{again}", flags="a", follow=0, internal=0)
        block = p.a(MIB, 1)
        p.a(64 * KIB)
        p.f(block, stream=1)
        for text in (WAIT, "h 1", f"b {microseconds}"):
            p.op(text)
        for _ in range(3):
            p.a(MIB, 2)
            p.op("b 100")


def sizes_of(kind, r):
    if kind == "mid":
        return int(2 ** r.uniform(16, 26))
    if kind == "large":
        return int(2 ** r.uniform(20, 30))
    if kind == "pages":
        return r.randint(1, 24) * P + r.choice((0, 0, 0, 1, -1, MIB, 2 * MIB, 512))
    if kind == "mixed40":
        return r.randint(1, 4096) if r.random() < 0.5 else int(2 ** r.uniform(12, 25.25))
    if kind == "mixed400":
        return r.randint(1, 4096) if r.random() < 0.5 else int(2 ** r.uniform(12, 28.6))
    if kind == "twos":
        return r.randint(1, 128) * 2 * MIB
    if kind == "few":
        return r.choice((4, 12, 24, 36, 40, 98, 150, 151, 256, 411)) * MIB
    raise ValueError(kind)


KINDS = ("mid", "large", "pages", "mixed40", "mixed400", "twos", "few")


def random_program(seed):
    r = random.Random(seed)
    kind = KINDS[seed % len(KINDS)]
    threshold = ("max", "max", "0", "0", str(256 * MIB))[seed // 7 % 5]
    syncs = (0, 0.04, 0.01)[seed // 35 % 3]
    live_most = r.choice((6, 12, 25, 60))
    bytes_most = 50 * GIB
    order = r.choice(("random", "random", "lifo", "fifo", "old"))
    count = 600
    flags = "t" if seed % 4 == 0 else "-"
    p = Program(f"random_{seed}_{kind}_{order}_{live_most}", threshold=threshold, flags=flags,
                pool="new" if seed % 10 == 9 else "default")
    live, total = [], 0
    for _ in range(count):
        size = sizes_of(kind, r)
        full = len(live) >= live_most or total + size > bytes_most
        if live and (full or r.random() < 0.45):
            for _ in range(r.choice((1, 1, 1, 2, 3)) if len(live) > 3 else 1):
                at = {"random": r.randrange(len(live)), "lifo": -1, "fifo": 0,
                      "old": min(r.randrange(len(live)), r.randrange(len(live)))}[order]
                block, bytes_ = live.pop(at)
                p.f(block)
                total -= bytes_
        else:
            live.append((p.a(size), size))
            total += size
        if r.random() < syncs:
            p.op(r.choice(("s", "y 0")))


def random_streams(seed, calm=False, limited=False, turns=False):
    """Three streams, some of them held; frees on the stream of the block. Calm: a wait after every call, so that the
    pool's marks have arrived. Limited: pools with a maximum. Turns: the streams allocate in turns, so that they use each
    other's memory."""
    r = random.Random(seed)
    kind = KINDS[seed % len(KINDS)]
    threshold = ("max", "0")[seed // 7 % 2]
    switch = r.choice(((1, 1, 1), (1, 1, 1), (1, 0, 0), (0, 1, 0)))
    pool, most = "default", 0
    if limited:
        pool, most = "new", r.choice((4, 8, 32)) * (1 if kind in ("mid", "mixed40") else 8) * P
        switch = r.choice(((1, 1, 1), (1, 1, 0), (0, 0, 1), (0, 1, 1)))
    family = "turns" if turns else "limited" if limited else "calm" if calm else "streams"
    p = Program(f"{family}_{seed}_{kind}", pool, threshold, *switch, most, "-" if calm else "a")
    live, held, total = [], set(), 0
    for step in range(500):
        stream = r.randrange(3)
        what = r.random()
        if turns and what >= 0.1:
            stream = r.choice((step // 20 % 3, step // 20 % 3, step // 20 % 3, stream))
        if turns and 0.08 <= what < 0.1 and r.random() < 0.8:
            what = 0.06
        if what < 0.05:
            if stream in held:
                held.discard(stream)
                p.op(f"r {stream}")
            else:
                held.add(stream)
                p.op(f"h {stream}")
        elif what < 0.08:
            p.op(f"e {step % 256} {stream}")
            p.op(f"v {step % 256} {(stream + 1) % 3}")
        elif what < 0.10:
            p.op("w 200")
            for each in sorted(held):
                p.op(f"r {each}")
            held.clear()
            p.op("w 200")
            p.op("s")
        else:
            size = sizes_of(kind, r)
            if live and (len(live) > 20 or total + size > 40 * GIB or r.random() < 0.45):
                block, own, bytes_ = live.pop(r.randrange(len(live)))
                p.f(block, stream=own)
                total -= bytes_
                p.op("w 30")  # an idle stream is done by then
            else:
                live.append((p.a(size, stream), stream, size))
                total += size
        if calm:
            p.op("w 300" if what < 0.08 else "w 30")


FOREVER = 1000000


def released_at(lines):
    """For each line that holds a stream up: the number, in the golden file, of the first line after its release."""
    number, at, waiting = 1, {}, {}
    for index, fields in enumerate(lines):
        kind = fields[0]
        if kind == "h":
            waiting.setdefault(fields[1], []).append(index)
        if kind == "r":
            for held in waiting.pop(fields[1], ()):
                at[held] = number + 1
        number += kind in "afsyehv"
    return at


def golden_rows(lines, many):
    start, rows, at = None, [], released_at(lines)
    for index, fields in enumerate(lines):
        kind, stream = fields[0], ""
        if kind == "a" and fields[4] != "0":
            rows.append(f"n,{fields[1]},{fields[2]},{fields[3]},{fields[7]},{fields[8]}")
        elif kind == "a":
            start = int(fields[5], 16) if start is None else start
            place = (int(fields[5], 16) - start) // 512
            stream = f",{fields[3]}" if many else ""
            rows.append(f"a,{fields[1]},{fields[2]},{fields[7]},{fields[8]},{place}{stream}")
        elif kind == "f":
            stream = f",{fields[2]}" if many else ""
            rows.append(f"f,{fields[1]},{fields[4]},{fields[5]}{stream}")
        elif kind in "sy":
            rows.append(f"s,{fields[4]},{fields[5]}")
        elif kind == "h":
            rows.append(f"h,{fields[1]},{at.get(index, FOREVER)}")
        elif kind in "ev":
            rows.append(f"{kind},{fields[1]},{fields[2]}")
    return rows


def golden(answers, folder):
    programs, card = [], ""
    for line in open(answers):
        if line[0] == "#":
            card = line[2:].rsplit(",", 1)[0]
        elif line[0] == "p":
            programs.append((line.split()[1:], []))
        elif line[0] != "T":
            programs[-1][1].append(line.strip().split(","))
    for (name, pool, threshold, follow, opportunistic, internal, most, flags), lines in programs:
        if flags == "t":
            continue
        threshold = {"0": "zero", "max": "max"}.get(threshold) or f"{int(threshold) // MIB}MiB"
        many = any(fields[0] == "a" and fields[3] != "0" for fields in lines)
        head = f"# {card}, {pool} pool, release threshold {threshold}, {'three streams' if many else 'one stream'}; "
        head += f"{name} of pool_programs.py"
        options = [f"{option}=false" for option, value in (("follow_events", follow), ("opportunistic", opportunistic),
                                                            ("internal", internal)) if value == "0"]
        options += [f"limit={most}"] if most != "0" else []
        head += f"; with {','.join(options)}" if options else ""
        text = "\n".join([head, *golden_rows(lines, many), ""])
        pathlib.Path(folder, f"{name}-{threshold}.gz").write_bytes(gzip.compress(text.encode(), 9, mtime=0))


if __name__ == "__main__":
    if sys.argv[1] == "--golden":
        golden(*sys.argv[2:])
        sys.exit()
    for what in sys.argv[1:]:
        if what == "steps":
            for make in (single_sizes, rounding, choice, coalescing, moving, releasing, releasing_how, streams):
                make()
        elif what == "marks":
            marks()
        elif what[0] in "sclx":
            first, last = map(int, what[1:].split("-"))
            for seed in range(first, last):
                random_streams(seed, calm=what[0] != "s", limited=what[0] == "l" or what[0] == "x" and seed % 2, turns=what[0] == "x")
        else:
            first, last = map(int, what.split("-"))
            for seed in range(first, last):
                random_program(seed)
    print("\n".join(out))
