"""Checks the trace of distributed_program.py, rank 1 of 4: what PyTorch's collectives, DDP, FSDP2, tensor and pipeline
parallelism request. The sizes are computed from shapes and rules, which are beside them. Usage: TRACE OUTPUT
"""

import sys

MIB = 1 << 20
parts, live = [[]], {}
for line in open(sys.argv[1], encoding="utf-8"):
    fields = line.rstrip("\n").split(",")
    if fields[0] == "c":
        parts.append([])
    elif fields[0] == "a":
        keys = dict(f.split("=", 1) for f in fields[3:] if "=" in f)
        stream = int(fields[3]) if len(fields) > 3 and fields[3].isdigit() else 0
        live[fields[1]] = int(fields[2])
        parts[-1].append(("a", int(fields[2]), stream, keys.get("tag", ""), keys.get("device")))
    elif fields[0] == "r":
        parts[-1].append(("r", live.pop(fields[1])))
    elif fields[0] == "o":
        parts[-1].append(("o", int(fields[1])))
collectives, data, sharded, tensor, pipeline = parts[:5]


def check(name, holds, what=""):
    print(f"ok {name}" if holds else f"not ok {name} {what}")


def sizes(part, tag):
    return [e[1] for e in part if e[0] == "a" and e[3].endswith(tag)]


def order(part, *events):
    """Whether the events (letter, bytes) come in this order, with others between them."""
    rest = iter([e[:2] for e in part])
    return all(event in rest for event in events)


output = open(sys.argv[2], encoding="utf-8").read()
gathered = [{"rank": 1}] * 4
wanted = f"{gathered} [8.0, 20.0] [4, 4, 4, 4] [{{'from': 1}}] [4.0, 4.0] nccl 4\n"
check("results_are_those_of_equal_ranks", output == wanted, output)
check("all_requests_are_of_the_own_device", all(e[4] == "1" for p in parts for e in p if e[0] == "a"))

# newLikeFlat: 4 ranks of 1000 floats, freed when the call returns; kept tensors of an asynchronous call until it waits
check("all_gather_with_a_list", order(collectives, ("a", 16000), ("r", 16000)))
kept = [("a", 8000), ("a", 120000), ("r", 120000), ("r", 8000), ("a", 160000)]
check("inputs_are_kept_until_the_wait", order(collectives, *kept))
check("a_barrier_reduces_a_float", order(collectives, ("a", 1), ("a", 4), ("r", 4)))
outside = [e[1] for e in collectives if e[0] == "o"]
check("nccl_begins_at_the_first_collective", outside[:2] == [230 * MIB, (230 + 24 * 12) * MIB], outside)
check("nccl_connects_all_peers", outside[-1] - outside[-2] == 3 * 32 * 12 * MIB, outside)

# one bucket at first, then 1 MiB for the first and 25 MiB for each other, filled in the order of gradients
check("ddp_broadcasts_parameters", order(data, ("a", 40 * MIB), ("r", 40 * MIB), ("a", 40 * MIB)))
buckets = [size for size in sizes(data, ":empty") if size >= MIB]
check("ddp_rebuilds_its_buckets", buckets == [4 * MIB, 28 * MIB, 8 * MIB], buckets)
replaced = [("a", 40 * MIB), ("a", 44), ("r", 40 * MIB), ("a", 4 * MIB), ("a", 28 * MIB)]
check("ddp_frees_the_old_bucket_before", order(data, *replaced))

# a layer of 2048 x 2048 in 4 shards: gathered in bfloat16, reduced in bfloat16, its gradient in float32
gathers = [e[1:3] for e in sharded if e[0] == "a" and e[3].endswith("0:empty")]
own = gathers[0][1]
fitting = [(2 * MIB, own), (8 * MIB, own), (8 * MIB, 1)]
check("fsdp_copies_in_on_its_own_stream", own > 1 and gathers == fitting, gathers)
check("fsdp_gathers_again_for_backward", sizes(sharded, "1.backward:empty")[:2] == [2 * MIB, 8 * MIB])
streams = [e[2] for e in sharded if e[0] == "a" and e[3].endswith("1.backward:empty")]
check("fsdp_gathers_on_its_own_stream_in_backward", set(streams) == {own}, streams)
reduced = [e[1:3] for e in sharded if e[0] == "a" and e[3].startswith("backward:") and e[2] not in (1, own)]
other = reduced[0][1]
check("fsdp_reduces_on_its_own_stream", reduced == 2 * [(2 * MIB, other), (4 * MIB, other)], reduced)

# columns of the first weight and rows of the second one: half of each, and half of the columns between them
check("tensor_parallel_halves_weights", sizes(tensor, "empty_like") == [2 * MIB] * 2, sizes(tensor, "empty_like"))
products = sizes(tensor, "0:mm")[:1] + sizes(tensor, "1:mm")[:1]
check("tensor_parallel_halves_the_columns_between", products == [16 * 512 * 4, 16 * 1024 * 4], products)
normed = sizes(tensor, "_fused_rms_norm")
check("norms_of_distributed_tensors_are_fused", normed == [2 * 16 * 1024 * 4, 2 * 16 * 4], normed)
check("tensor_parallel_sums_rows", 16 * 1024 * 4 in sizes(tensor, "all_reduce"), sizes(tensor, "all_reduce"))

# 6 rows from rank 0, as ALLOCRIG_TRACE_RECEIVES says, for each micro-batch
rows = [size for size in sizes(pipeline, ":mm") if size == 6 * 1024 * 4]
check("pipeline_multiplies_what_it_receives", len(rows) >= 4 * 2, rows)
