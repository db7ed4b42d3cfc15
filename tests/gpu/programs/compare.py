"""compare.py TRACE COUNTERS [LIVE]: what the trace holds between the two marks, beside a framework's
own counters (JSON files of common.write; -1: it does not say). LIVE: another file, for live bytes.
A framework that maps pages counts what it asked for and the trace has the pages: there each block may
have up to a page more, and no less. Exit status 1 where they differ."""
import json
import sys

import common

PAGE_BYTES = 2 << 20


def read(path):
    """(requests, bytes asked for, change of live bytes) between the marks, and how many bytes less may be asked for."""
    sizes = {}
    inside, live = False, 0
    total, asked, live_at_begin, blocks_at_begin, mapped = 0, 0, 0, 0, 0
    with open(path, encoding="utf-8") as trace:
        for line in trace:
            fields = line.rstrip("\n").split(",")
            if fields[0] in ("r", "f"):
                live -= sizes.pop(fields[1], 0)
            if fields[0] != "a" or "space=pinned" in fields or int(fields[2]) == 0:
                continue
            size = int(fields[2])
            if size == common.BEGIN_BYTES and inside:
                sys.exit(f"{path}: the mark of the beginning is there twice: something else has its size")
            if size == common.BEGIN_BYTES:
                inside, live_at_begin, blocks_at_begin = True, live, len(sizes)
            elif size == common.END_BYTES and inside:
                slack = PAGE_BYTES * max(len(sizes) - blocks_at_begin, 0) if total and mapped == total else 0
                return (total, asked, live - live_at_begin), slack
            elif inside:
                total += 1
                asked += size
                mapped += "tag=mapped" in fields and size % PAGE_BYTES == 0
            # marks are let go again; they count for neither side
            if size not in (common.BEGIN_BYTES, common.END_BYTES):
                sizes[fields[1]] = size
                live += size
    sys.exit(f"{path}: the marks are not both there")


def main():
    with open(sys.argv[2], encoding="utf-8") as file:
        wanted = json.load(file)
    with open(sys.argv[3] if len(sys.argv) > 3 else sys.argv[2], encoding="utf-8") as file:
        wanted["live_change_bytes"] = json.load(file)["live_change_bytes"]
    names = ("allocations", "allocated_bytes", "live_change_bytes")
    differ = 0
    words = []
    figures, slack = read(sys.argv[1])
    for name, found in zip(names, figures):
        said = wanted[name]
        if said == -1:
            words.append(f"{name} {found}")
        elif name == "live_change_bytes" and 0 < found - said < slack:
            words.append(f"{name} {found} in pages, {said} counted in as many blocks")
        elif said == found:
            words.append(f"{name} {found} as counted")
        else:
            words.append(f"{name} {found}, counted {said}")
            differ = 1
    print("; ".join(words))
    sys.exit(differ)


main()
