"""Mooncake's store: objects of a trainer are placed in segments, each with a policy of its own.

The published replay (kvcache-ai/Mooncake pull request 4000) is of a recorded event log that is not public. events()
makes one by its description: 8 ranks and 60 steps, 34 objects each, 16,320 puts in all. Per step and rank, 3 objects
have 10.5 to 12.4 MiB (two distinct sizes) and 31 have ten fixed sizes from 256 to 9,896 bytes, with the published shares
of the octaves. All objects of a step are removed one to three steps later. There is no eviction and no second attempt.

place(): the segments in the order in which a strategy tries them (mooncake-store/include/allocation_strategy.h).
"""

import os
import random
import statistics
import sys

ROOT = os.path.dirname(os.path.dirname(os.path.dirname(os.path.abspath(__file__))))
MIB = 2**20
RANKS, STEPS, SEGMENTS = 8, 60, 8
SMALL = ((256, 6), (384, 5), (512, 2), (896, 1), (1280, 1), (2048, 5), (2560, 4), (3072, 5), (8448, 1), (9896, 1))
SAMPLE_EVERY = 100  # puts


def events(seed, longest=False):
    """Pairs (key, bytes), and (key, 0) when an object is removed. Each rank's objects of a step live one to three steps,
    drawn, or all of them three."""
    draw, out, removals = random.Random(seed), [], {}
    for step in range(STEPS):
        puts = []
        for rank in range(RANKS):
            two, one = (draw.randint(int(10.5 * MIB), int(12.4 * MIB)) for _ in range(2))
            sizes = [two, two, one] + [size for size, count in SMALL for _ in range(count)]
            draw.shuffle(sizes)
            puts.append([((step, rank, number), size) for number, size in enumerate(sizes)])
            removals.setdefault(step + (3 if longest else draw.randint(1, 3)), []).extend(key for key, _ in puts[-1])
        while puts:  # the ranks run side by side
            rank = draw.choice(puts)
            out.append(rank.pop(0))
            puts = [p for p in puts if p]
        out += [(key, 0) for key in removals.pop(step, ())]
    return out


def place(strategy, stats, size, draw):
    """The numbers of the segments, the first to be tried first."""
    count = len(stats)
    start = draw.randrange(count)
    order = [(start + n) % count for n in range(count)]
    if strategy == "free_ratio_first":  # of six drawn ones; then any
        drawn = order[:6]
        return sorted(drawn, key=lambda n: -(stats[n]["reserved_bytes"] - stats[n]["granted_bytes"])) + order[6:]
    if strategy == "best_fit":  # the smallest largest free region that fits; then those that do not fit
        largest = [s["largest_free_block_bytes"] for s in stats]
        return sorted(order, key=lambda n: (largest[n] < size, largest[n]))
    return order


def fragmentation(stats):
    """1 - largest free region / free bytes of each segment, weighted by its free bytes."""
    free = [s["reserved_bytes"] - s["granted_bytes"] for s in stats]
    parts = [f - s["largest_free_block_bytes"] for f, s in zip(free, stats) if f]
    return sum(parts) / sum(free) if sum(free) else 0.0


def replay(allocrig, strategy, segment_bytes, log, seed, policy):
    """Failed puts, and the fragmentation at every hundredth put."""
    draw, held, failed, puts, samples = random.Random(seed), {}, 0, 0, []
    segments = [allocrig.Session(policy, f"sim:profile=bump,capacity={segment_bytes}") for _ in range(SEGMENTS)]
    for segment in segments:  # the region is there from the start
        segment.free(segment.alloc(1))
    stats = [segment.stats() for segment in segments]
    for key, size in log:
        if size == 0:
            if key in held:
                number, block = held.pop(key)
                segments[number].free(block)
                stats[number] = segments[number].stats()
            continue
        puts += 1
        for number in place(strategy, stats, size, draw):
            block = segments[number].alloc(size)
            if block:
                held[key] = number, block
                stats[number] = segments[number].stats()
                break
        else:
            failed += 1
        if puts % SAMPLE_EVERY == 0:
            samples.append(fragmentation(stats))
    for segment in segments:
        segment.close()
    return failed, statistics.median(samples)


def medians(strategy, segment_mib, longest, runs=5):
    """Median and range of the failed puts, and the median fragmentation, over runs on one event log."""
    sys.path.insert(0, f"{ROOT}/bench/library/python")
    import allocrig  # noqa: PLC0415: it needs the library, which other tables do not

    log, policy = events(1, longest), f"offset:size={segment_mib}MiB,unit=1,round_up=true"
    found = [replay(allocrig, strategy, segment_mib * MIB, log, seed, policy) for seed in range(1, runs + 1)]
    failed = sorted(f for f, _ in found)
    return failed[len(failed) // 2], failed[0], failed[-1], statistics.median(f for _, f in found)
