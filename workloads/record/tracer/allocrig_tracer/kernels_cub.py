"""Temporary storage of CUB's device-wide algorithms, as PyTorch 2.11 (CUDA 13.0) calls them.

CUB lays out its parts at multiples of 256 bytes and asks for 255 more (cub/util_temporary_storage,
AliasTemporaries). The parts are those of the algorithms' dispatch functions: a radix sort takes
bins, a look-back table, counters, and a second buffer of keys and values if it has several passes;
a scan or selection takes the states of its tiles, 32 more than it has tiles. How many items a tile
has depends on the tuning for the compute capability; the sizes of tiles here are those that fit all
sizes measured on 9.0 (each lies in an interval of 2 % or less; multiples of the block size). Other
capabilities have other tiles: the storage of a scan differs there by less than 0.1 % of its data.
"""
from .kernels_shape import ceil_div, round_up

# (bytes of key, bytes of value) -> items of a tile of the one-sweep radix sort
TILES = {(4, 8): 5376, (8, 8): 4608, (2, 8): 5632, (1, 8): 3456, (4, 4): 6528, (8, 4): 5760,
         (4, 0): 6912, (2, 0): 9728, (8, 0): 5760, (1, 0): 9728}
INTEGER_KEYS = {(4, 0): 7296}
PORTION = (1 << 28) - 1
SELECT_TILES = {1: 5632, 2: 1280, 4: 6528, 8: 4224}


def storage(*parts):
    return 255 + sum(round_up(part, 256) for part in parts)


def radix(items, key, value=0, bits=None, integer=False):
    """DeviceRadixSort::SortPairs, or SortKeys if value is 0, of `bits` bits of the key."""
    bits = 8 * key if bits is None else bits
    wide = max(4, key, value)
    if items <= 256 * max(1, 19 * 4 // wide):
        return 1
    tile = INTEGER_KEYS.get((key, value)) if integer else None
    tile = tile or TILES.get((key, value), 4608)
    portion = PORTION // tile * tile
    portions, passes = ceil_div(items, portion), ceil_div(bits, 8)
    blocks = ceil_div(min(items, portion), tile)
    second = passes > 1
    return storage(portions * passes * 256 * 8, blocks * 256 * 4, items * key if second else 0,
                   items * value if second else 0, portions * passes * 4)


def segmented_radix(items, key, value):
    """DeviceSegmentedRadixSort::SortPairs: a second buffer of keys and values."""
    return storage(items * key, items * value)


def scan(items, item):
    """DeviceScan of sums of `item` bytes each: 2 stands for float16 and bfloat16."""
    if item == 2:
        return storage(256, 16 * (ceil_div(items, 7680) + 32))
    if item <= 4:
        return storage(256, 8 * (ceil_div(items, 1920) + 32))
    return storage(256, 16 * (ceil_div(items, 896) + 32))


def scan_int(items):
    """DeviceScan of 32-bit counts, as unique's inverse indices take it."""
    return storage(256, 8 * (ceil_div(items, 3072) + 32))


def count(items, sms):
    """DeviceReduce::Sum of flags: one accumulator for each of 40 blocks per multiprocessor."""
    return 1 if items <= 4096 else storage(4 * 40 * sms)


def select_flagged(items):
    """DeviceSelect::Flagged of indices (nonzero)."""
    return storage(256, 8 * (ceil_div(items, 4224) + 32))


def select_unique(items, item, name):
    """DeviceSelect::Unique."""
    if name == "bool":
        item = 4
    elif name == "int16":
        item = 1
    tile = SELECT_TILES.get(item, 4224)
    return storage(256, 8 * (ceil_div(items, tile) + 32))


def run_lengths(items):
    """DeviceRunLengthEncode::Encode."""
    return storage(256, 8 * (ceil_div(items, 384) + 32))


def unique_by_key(items, key):
    """DeviceSelect::UniqueByKey with values of four bytes: 640 threads with 7 items, or 512 with 14."""
    return storage(256, 16 * (ceil_div(items, 4480 if key == 8 else 7168) + 32))


def scan_by_key(items, key):
    """DeviceScan::InclusiveSumByKey: the last key of each tile as well."""
    tiles = ceil_div(items, 2432 if key == 8 else 3968)
    return storage(key * tiles, 16 * (tiles + 32))


def bits_of(largest):
    """get_num_bits of ATen: bits that a key of this size needs."""
    return max(1, int(largest).bit_length())
