"""results/soak.md from the rows of results/soak.csv, and found.md, which people write."""
import os

HEADS = {
    "operations": ("Random operations under the shadow oracle",
                   "Each call is compared with a record of the live blocks: overlaps, sizes, alignment, totals. The policy's "
                   "walk and its\nvalidate() are compared after each call with few live blocks, and after every thousandth.",
                   ("policy", "operations", "wanted", "processor s", "refused requests")),
    "fuzz": ("Readers under clang's fuzzer, with ASan and UBSan",
             "Processor seconds of each reader, of the 10 hours wanted. The corpus in `tests/fuzz/corpus` has what added "
             "coverage.\nUntil 2026-11-29 `nsys` and `nsys_rows` ended before their reader, so only later runs of these two "
             "count.",
             ("reader", "processor s", "wanted", "processor s", "executions, coverage, corpus")),
    "kills": ("SIGKILL at random moments",
              "A killed journal is continued until its command ends: the results are the bytes of a command without kills. "
              "A\nhistory keeps its lines, the trace of a killed recording is the beginning of the program, a file "
              "is the old or the\nnew one.",
              ("killed", "kills", "wanted", "", "lost")),
    "faults": ("Full disks, closed pipes, limits",
               "Each command with 22 faults: it ends with the bytes of a run without the fault, or with one sentence, and "
               "leaves\nno file.",
               ("command", "faults", "", "", "ends")),
    "policies": ("Policies in shared objects that crash, hang or lie",
                 "`tests/cli/misbehaving.c`: 13 hooks that crash, abort, leave the process or hang, and 20 lies.",
                 ("command", "cases", "", "", "ends")),
    "memcheck": ("compute-sanitizer (memcheck) on a card",
                 "The kernels, each policy on the rig's own device with every byte checked, and each policy inside PyTorch "
                 "and CuPy,\none of the latter at a time.",
                 ("run", "processes", "", "processor s", "memory errors")),
}


def number(text):
    return f"{int(text):,}" if text.isdigit() else text


def table(rows, heads):
    columns = [(head, key) for head, key in zip(heads, ("name", "done", "wanted", "cpu_s", "figures"))
               if head and not (key == "cpu_s" and heads[1] == head)]
    yield "| " + " | ".join(head for head, _ in columns) + " |"
    yield "| " + " | ".join("---" if key in ("name", "figures") else "---:" for _, key in columns) + " |"
    for row in rows:
        yield "| " + " | ".join(number(row[key]) for _, key in columns) + " |"


def text(rows, revision):
    out = ["# Soak", "", "What ran for long, and what it found. Written by `make soak` ([how](../tests/soak/soak.py)) at commit",
           f"{revision}; `soak.csv` has the rows.", ""]
    for part, (title, what, heads) in HEADS.items():
        mine = [row for row in rows if row["part"] == part]
        if not mine:
            continue
        out += [f"## {title}", "", what, "", *table(mine, heads), "", "On " + ";\n".join(dict.fromkeys(row["where"] for row in mine)) + "."]
        found = [f"- {row['name']}: {row['findings']}" for row in mine if row["findings"]]
        out += ["", *(["Found:", "", *found] if found else ["Nothing is open."]), ""]
    with open(os.path.join(os.path.dirname(os.path.abspath(__file__)), "found.md")) as file:
        return "\n".join(out) + "\n" + file.read()
