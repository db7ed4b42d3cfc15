"""How a card divides the products of convolutions that run in clusters of thread blocks, and what that takes.

Plans with clusters compute a product in tiles. The last wave of tiles, if it does not fill the card, is divided along
the sum: tiles t, running blocks b, rest r = t mod b, at most b // r parts of each of the r tiles. Each part is a buffer of
float32. How many parts there are is in a table (cudnn_fitted.py). Beside the buffers there are flags:

    4 bytes for each node of the trees that add the parts of a tile: 13 parts are added in 7 + 4 + 2 + 1 steps
    32 bytes, if a tile is divided
    4 bytes for a counter, if there are more than two waves of tiles
    127 bytes, to align them, if there is anything

Measured: 2500 lists of results/published/h200/cudnn/grid-41 and grid-51, exact in all that divide and all that do not,
but for narrow operands. Without a driver cuDNN plans for 18 multiprocessors, by the same rules.
"""
import math
from collections import namedtuple

FORWARD, BACKWARD_WEIGHT, BACKWARD_INPUT = 10, 11, 12
KNOB_TILE, KNOB_WORKSPACE, KNOB_CLUSTER_M, KNOB_CLUSTER_N = 2, 25, 27, 28
TILES = {0: (128, 128), 1: (128, 64), 2: (128, 32), 3: (256, 128), 4: (256, 64), 5: (64, 64), 6: (128, 256),
         7: (64, 128), 8: (64, 32), 9: (64, 256), 16: (256, 32), 18: (64, 192), 19: (128, 192), 20: (256, 96)}
ALONE = 18  # multiprocessors for which cuDNN plans without a driver
WIDE = 256  # channels or filters of a group; wider groups are convolutions of their own
AT_ONCE = 8  # of these have copies and buffers at once
STEP = {"float32": 32, "float16": 64, "bfloat16": 64}  # elements of the sum that a tile adds at once
product = math.prod


def up(value, multiple):
    return -(-value // multiple) * multiple


def nodes(parts):
    """Additions of a tree over so many parts, those of one part included."""
    count = 0
    while parts > 1:
        parts = -(-parts // 2)
        count += parts
    return count


# rest: tiles of the last wave; split: the most parts of one; buffer: bytes of a part; steps: of the sum;
# single: all tiles run at once; counted: more than two waves
class Division(namedtuple("Division", "rest split buffer steps single counted")):
    def flags(self, parts):
        size = 4 * self.counted + (32 + 4 * self.rest * nodes(parts) if parts and self.rest else 0)
        return size + 127 if size else 0

    def taken(self, parts):
        return self.rest * parts * self.buffer + self.flags(parts)


def shares(tiles, blocks):
    """(tiles of the last wave, parts of each along the reduction) if they are divided, else (0, 0)."""
    rest = tiles % blocks
    return (rest, blocks // rest) if rest and blocks // rest > 1 else (0, 0)


def is_wide(s):
    return s.groups > 1 and max(s.w[1], s.w[0] // s.groups) > WIDE


def taken(s, divided, parts):
    """What is taken beside copies."""
    size = divided.taken(parts)
    return up(size, 16) * min(s.groups, AT_ONCE) if is_wide(s) else size


def divide(s, knobs, at_once):
    """The division of a plan on a card that runs at_once(blocks of a cluster) blocks, or None if it has none."""
    tile = TILES.get(knobs.get(KNOB_TILE))
    if KNOB_CLUSTER_M not in knobs or KNOB_WORKSPACE not in knobs or tile is None:
        return None
    filters, channels, elements = s.w[0] // s.groups, s.w[1], product(s.w[2:])
    m, n, k, step = product((s.y[0],) + tuple(s.y[2:])), filters, channels, STEP[s.dtype]
    if s.operation == BACKWARD_INPUT:
        m, n, k = product((s.x[0],) + tuple(s.x[2:])), channels, filters
    together = min(tile[1] // n, step // k)  # groups that share a tile
    across, steps = -(-n // tile[1]), elements * -(-k // step)
    if s.operation == BACKWARD_WEIGHT:  # tiles of the weight do not span elements of the filter
        m, n, steps = filters, channels, -(-product((s.y[0],) + tuple(s.y[2:])) // step)
        together, across = min(tile[0] // m, tile[1] // n), elements * -(-n // tile[1])
    blocks = at_once(knobs[KNOB_CLUSTER_M] * knobs[KNOB_CLUSTER_N])
    tiles = up(-(-m // tile[0]), knobs[KNOB_CLUSTER_M]) * up(across, knobs[KNOB_CLUSTER_N]) * -(
        -(1 if is_wide(s) else s.groups) // max(1, together))
    if not blocks:
        return None
    rest, split = shares(tiles, blocks) if knobs[KNOB_WORKSPACE] == 0 else (0, 0)
    return Division(rest, split, 4 * tile[0] * tile[1], steps, tiles < blocks, tiles > 2 * blocks)


def copied(s):
    """Bytes of the operands that are copied: those that are not in channels last, and those whose channels are not multiples
    of 16 bytes or, with groups, the same power of two for each group, unless it is wide."""
    item, channels, filters = 4 if s.dtype == "float32" else 2, s.w[1], s.w[0] // s.groups
    wide = is_wide(s)
    groups = 1 if wide else s.groups
    if groups == 1:
        channels, filters = up(channels, 16 // item), up(filters, 16 // item)
    else:
        channels = filters = max(16 // item, 1 << (max(channels, filters) - 1).bit_length())
        groups = up(groups, -(-8 // channels))
    total = 0
    for shape, first, second in ((s.x, s.x[0], groups * channels), (s.w, groups * filters, channels),
                                 (s.y, s.y[0], groups * filters)):
        whole = (s.w[0] // s.groups, s.w[1]) if wide and shape is s.w else shape[:2]
        moved = not s.channels_last and shape[1] > 1 and product(shape[2:]) > 1
        if moved or (first, second) != whole:
            total += up(first * second * product(shape[2:]) * item, 16)
    return (total + 16 if total else 0) * (min(s.groups, AT_ONCE) if wide else 1)


def effective(steps, parts):
    """How many parts there are, if each but the last has the same number of steps."""
    return -(-steps // -(-steps // parts)) if parts > 1 else 0


def undivided(s, size, divided):
    """(bytes without parts and flags, parts of a tile) of a plan that takes size bytes, or None if no number of parts
    gives that. What is left are copies of operands."""
    whole = copied(s)
    left = [(size - taken(s, divided, parts), parts) for parts in (0, *range(2, divided.split + 1))]
    left = [v for v in left if v[0] >= 0 and v[0] % 16 == 0]
    return min(left, key=lambda v: (v[0] < whole, abs(v[0] - whole)), default=None)


def without_driver(s, size, knobs):
    """The same for the bytes that cuDNN answers without a driver: bytes alone."""
    alone = divide(s, knobs, lambda cluster: ALONE // cluster * cluster)
    found = undivided(s, size, alone) if alone else None
    return found and found[0]
