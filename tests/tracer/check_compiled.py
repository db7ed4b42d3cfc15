#!/usr/bin/env python3
"""check_compiled.py TRACE: compares the trace of compiled_program.py with what a card is asked for."""
import sys

MIB = 1 << 20
steps, failed, drawn = [[]], [], []
for line in open(sys.argv[1]):
    drawn += [line.split(",")[3:]] if line.startswith("!,traced,drawn,") else []
    fields = line.rstrip("\n").split(",")
    if line.startswith("#") or fields[0] not in ("a", "r", "c", "m"):
        continue
    keys = dict(f.split("=", 1) for f in fields if "=" in f)
    if fields[0] == "a" and not (keys.get("tag", "").startswith("cublas")):
        steps[-1].append((int(fields[2]), int(keys.get("pool", 0)), keys.get("mempool", "")))
    elif fields[0] == "c":
        steps[-1].append(("c", int(keys.get("pool", 0)), keys.get("mempool", "")))
    elif fields[0] == "m":
        steps.append([])


def check(name, good, *seen):
    print(f"{'ok' if good else 'FAILED'} {name}")
    if not good:
        failed.append(name)
        print("  ", *seen)


large = [[s for s in step if s[0] == "c" or s[0] >= 4096] for step in steps]
check("fused_into_one_request", large[2] == [(4 * MIB, 0, "")], large[2])
check("the_first_launch_is_timed", (50 * MIB, 0, "") in large[1] and (4 * MIB, 0, "") in large[1], large[1])
check("forward_and_backward", [s[0] for s in large[4]] == [4 * MIB, 4 * MIB, 4 * MIB] or
      [s[0] for s in large[4]] == [4 * MIB, 4 * MIB], large[4])
private = [[s for s in step if s[1]] for step in large]
check("the_first_run_uses_the_pool", (4 * MIB, 1, "") in private[5], private[5])
check("the_capture_copies_its_input", [s[0] for s in private[6]].count(4 * MIB) == 2, private[6])
check("a_replay_asks_for_nothing", not large[7] and not large[8], large[7], large[8])
sizes = [[s[0] for s in step if s[0] < 50 * MIB] for step in large[9:12]]
check("sizes_of_dynamic_shapes", [s[-1:] for s in sizes] == [[256 * 4096], [300 * 4096], [77 * 4096]], sizes)
captured = [s for s in large[12] if s[0] != "c"]
check("a_graph_has_a_pool", captured == [(4 * MIB, 2, "")] * 4, large[12])
check("and_no_request_at_its_replay", not large[13], large[13])
check("a_mempool", (30 * MIB, 3, "plain") in large[14] and ("c", 3, "plain") in large[14], large[14])
check("memory_outside_of_it", (1 * MIB, 0, "") in large[14], large[14])
check("the_pool_of_a_deleted_graph_ends", ("c", 2, "") in large[14], large[14])
check("memory_without_a_tensor", (5 * MIB, 0, "") in large[14], large[14])
check("attention_is_run_again", [s[0] for s in large[15]].count(64 << 10) == 2, large[15])
check("products_of_tf32_are_padded", (48 * 604 * 604 * 4, 0, "") in large[18], large[18])
check("what_compiled_kernels_write_is_drawn", drawn == [["item", "16\n"]], drawn)
sys.exit(bool(failed))
