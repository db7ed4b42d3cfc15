#!/usr/bin/env python3
"""The requests and frees of some sections of a traced program: split_trace.py IN OUT NAME [SECTION..]

A section ends with its mark (torch.cuda.nvtx.mark). A SECTION that ends with a dot stands for all that begin with it;
without one all sections are kept. Kernels, times, notes and lines of the program are left out, and so are the marks of
steps, unless a SECTION is followed by `:steps`: then its steps stay and its own mark goes.
"""

import re
import sys


def main():
    source, path, name, *wanted = sys.argv[1:]
    steps = [w.removesuffix(":steps") for w in wanted if w.endswith(":steps")]
    wanted = [w.removesuffix(":steps") for w in wanted]
    ids, section, out = {}, [], []
    with open(source, encoding="utf-8") as trace:
        for line in trace:
            fields = line.rstrip("\n").split(",")
            if line.startswith("#"):
                out.append(re.sub("name: .*", f"name: {name}", line))
                continue
            if fields[0] in "tk!":
                continue
            section.append(fields)
            if fields[0] != "m" or fields[1] == "step":
                continue
            label, found, section = fields[1], section, []
            if wanted and not any(label == w or (w.endswith(".") and label.startswith(w)) for w in wanted):
                continue
            for fields in found:
                if fields[0] == "m" and (fields[1] == "step") != (label in steps):
                    continue
                if fields[0] in "ap":
                    ids[fields[1]] = str(len(ids))
                if fields[0] in "apfru":
                    if fields[1] not in ids:  # a block of another section
                        continue
                    fields[1] = ids[fields[1]]
                out.append(",".join(f for f in fields if not f.startswith("at=")) + "\n")
    with open(path, "w", encoding="utf-8") as f:
        f.writelines(out)


main()
