"""results/soak.md from the rows of results/soak.csv, and found.md, which people write."""
import os
import re

HEADS = {
    "operations": ("Random operations under the shadow oracle",
                   "Each call is compared with a record of the live blocks: overlaps, sizes, alignment, totals. The policy's "
                   "walk and its\nvalidate() are compared after each call with few live blocks, and after every thousandth. An operation "
                   "is a request, a\nfree, a use on another stream or a trim. `plan` and `stalloc` plan each script of 20,000 "
                   "before it is run.",
                   ("policy", "operations", "wanted", "processor s", "refused requests")),
    "fuzz": ("Readers under clang's fuzzer, with ASan and UBSan",
             "Processor seconds of each reader in all recorded runs, of the 10 hours wanted; the code of readers changes "
             "between runs.\nThe corpus in `tests/fuzz/corpus` has what added coverage. Until 2026-11-29 `nsys` and "
             "`nsys_rows` ended before their\nreader, so only later runs of these two count.",
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
                 ("run", "processes", "", "processor s", "memory errors", "commit")),
}


def number(text):
    return f"{int(text):,}" if text.isdigit() else text


def table(rows, heads):
    columns = [(head, key) for head, key in zip(heads, ("name", "done", "wanted", "cpu_s", "figures", "commit"))
               if head and not (key == "cpu_s" and heads[1] == head)]
    yield "| " + " | ".join(head for head, _ in columns) + " |"
    yield "| " + " | ".join("---" if key in ("name", "figures", "commit") else "---:" for _, key in columns) + " |"
    for row in rows:
        yield "| " + " | ".join(row[key] if key == "commit" else number(row[key]) for _, key in columns) + " |"


def together(rows):
    """The rows of one name as one: numbers are added, but of edges and inputs the most counts."""
    if len(rows) == 1:
        return rows[0]
    words = [re.findall(r"(\d+) ([^,]*)", row["figures"]) for row in rows]
    figures = [f"{(max if name in ('edges', 'inputs') else sum)(int(of[at][0]) for of in words)} {name}"
               for at, (_, name) in enumerate(words[0])]
    return {**rows[-1], "done": str(sum(int(row["done"]) for row in rows)), "wanted": max((row["wanted"] for row in rows), key=int),
            "cpu_s": str(sum(int(row["cpu_s"] or 0) for row in rows)), "figures": ", ".join(figures)}


def listed(rows, field):
    return list(dict.fromkeys(one for row in rows for one in row[field].split("; ") if one))


def text(rows):
    out = ["# Soak", "", "What ran for long, and what it found. Written by `make soak` ([how](../tests/soak/soak.py)); `soak.csv` has the rows.", ""]
    for part, (title, what, heads) in HEADS.items():
        mine = [row for row in rows if row["part"] == part]
        if not mine:
            continue
        names = {row["name"]: [] for row in mine}
        for row in mine:
            names[row["name"]].append(row)
        out += [f"## {title}", "", what, "", *table([together(same) for same in names.values()], heads), "",
                f"At {', '.join(listed(mine, 'commit'))}.", f"On {'; '.join(listed(mine, 'where'))}."]
        found = [f"- {row['name']}: {row['findings']}" for row in mine if row["findings"]]
        out += ["", *(["Found:", "", *found] if found else ["Nothing is open."]), ""]
    with open(os.path.join(os.path.dirname(os.path.abspath(__file__)), "found.md")) as file:
        return "\n".join(out) + "\n" + file.read()
