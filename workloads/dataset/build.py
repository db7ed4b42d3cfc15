#!/usr/bin/env python3
"""Builds the data set of workloads from the sources in this tree.

    build.py [OUT] [--tag TAG] [--class NAME] [--trace PYTHON] [--write]

OUT (default results/dataset) gets one folder for each class with a binary trace for each row of v1.tsv, SHA256SUMS,
README.md with a card for each workload, CITATION.cff and the metadata of Zenodo and Hugging Face. The classes are never
mixed: recorded on cards, traced without a card, synthetic.

The sums of the rows whose seed is fixed are in v1.tsv and checked. Rows with the seed `tag` (synthetic ones of the test
split) get their seed from the tag of the release, which is not known before: sha256(TAG NAME) modulo 2^31. A rehearsal
uses another tag. Traced workloads are in traced/; --trace makes them again with PYTHON, a Python 3.12 with PyTorch 2.11.
--write puts the sums into v1.tsv.
"""

import argparse
import csv
import hashlib
import json
import os
import re
import shutil
import subprocess
import sys

HERE = os.path.dirname(os.path.abspath(__file__))
ROOT = os.path.dirname(os.path.dirname(HERE))
ALLOCRIG = os.environ.get("ALLOCRIG", f"{ROOT}/allocrig")
CLASSES = ("recorded", "traced", "synthetic")
TITLE = "allocrig workloads: GPU memory requests of training and inference programs"
FIELDS = ["name", "class", "split", "seed", "source", "sha256", "purpose"]


def arguments():
    p = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    p.add_argument("out", nargs="?", default=f"{ROOT}/results/dataset")
    p.add_argument("--tag", default="rehearsal", help="the release's tag; the seeds of the test split come from it")
    p.add_argument("--class", dest="only", choices=CLASSES, help="only this class")
    p.add_argument("--trace", metavar="PYTHON", help="make the traced workloads again")
    p.add_argument("--write", action="store_true", help="write the sums of rows with fixed seeds into v1.tsv")
    return p.parse_args()


def rows_of(path):
    with open(path, encoding="utf-8") as f:
        rows = list(csv.DictReader((line for line in f if not line.startswith("#")), delimiter="\t"))
    names = [row["name"] for row in rows]
    doubled = sorted({n for n in names if names.count(n) > 1})
    if doubled:
        sys.exit(f"build.py: {path} names {', '.join(doubled)} twice")
    return rows


def seed_of(row, tag):
    if row["seed"] != "tag":
        return row["seed"]
    return str(int(hashlib.sha256(f"{tag} {row['name']}".encode()).hexdigest(), 16) % 2**31)


def run(words, **options):
    done = subprocess.run(words, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True, **options)
    if done.returncode:
        sys.exit(f"build.py: {' '.join(words)} ended with {done.returncode}: {done.stderr.strip()[-500:]}")
    return done.stdout


def trace(row, seed, python, path):
    """Traces one rank of a program without a card. Source: WORLD/RANK PROGRAM ARGUMENT.."""
    place, program, *words = row["source"].replace("{seed}", seed).split()
    rank, world = place.split("of")
    where = ["--rank", rank, "--world", world]
    run([ALLOCRIG, "trace", "-o", path, "--card", "h100", *where, "--", python, f"{HERE}/programs/{program}", *words])
    if shutil.which("zstd"):  # half the size; the records, and so the sum, stay
        run(["sh", "-c", 'zstd -qdc "$1" | zstd -qf -19 -o "$1.tmp" && mv "$1.tmp" "$1"', "sh", path])


def build(row, seed, args, path):
    """Returns whether the trace could be made: a traced one may be missing in the tree."""
    if row["class"] == "recorded":
        run([ALLOCRIG, "convert", f"{ROOT}/{row['source']}", path])
    elif row["class"] == "synthetic":
        run([ALLOCRIG, "gen", row["source"].replace("{seed}", seed), "-o", path])
    else:
        kept = f"{HERE}/traced/{row['name']}.trace.zst"
        if args.trace:
            trace(row, seed, args.trace, kept)
        if not os.path.exists(kept):
            return False
        run([ALLOCRIG, "convert", kept, path])
    return True


def facts(path):
    """What `inspect` says of a trace."""
    text = run([ALLOCRIG, "inspect", path])
    found = dict(re.findall(r"^(recorder|card|sha256|events|live peak)\s+(.+?),?(?: of these)?$", text, re.M))
    found["bytes"] = os.path.getsize(path)
    return found


def card(row, seed, found):
    """The paragraph of one workload."""
    source = row["source"].replace("{seed}", seed)
    made = {"recorded": f"recorded on {found.get('card', 'a card')} under {found.get('recorder', 'its allocator')}",
            "traced": "traced without a card, as for H100", "synthetic": "generated"}[row["class"]]  # fmt: skip
    lines = [f"### {row['name']}", "", f"{row['purpose']}.", "",
             f"- class {row['class']}, split {row['split']}, {made}, seed {seed or '-'}", f"- source: `{source}`",
             f"- {found['events']} events, live peak {found.get('live peak', '-')}, {found['bytes']} bytes",
             f"- SHA-256 of the records: `{found['sha256']}`", ""]  # fmt: skip
    return "\n".join(lines)


def metadata(out, tag, count):
    """CITATION.cff, .zenodo.json and the head of a Hugging Face data set."""
    citation = f"""cff-version: 1.2.0
message: If you use this data set, please cite it as below.
title: "{TITLE}"
type: dataset
version: "{tag}"
license: Apache-2.0
authors:
  - name: The allocrig authors
keywords: [GPU, memory allocation, fragmentation, deep learning, traces]
"""
    zenodo = {"title": TITLE, "upload_type": "dataset", "version": tag, "license": "apache-2.0", "access_right": "open",
              "creators": [{"name": "The allocrig authors"}],
              "description": f"{count} traces of GPU memory requests in three classes that are never mixed: recorded on "
                             "cards, traced without a card, synthetic.",
              "keywords": ["GPU", "memory allocation", "fragmentation", "traces"]}  # fmt: skip
    with open(f"{out}/CITATION.cff", "w", encoding="utf-8") as f:
        f.write(citation)
    with open(f"{out}/.zenodo.json", "w", encoding="utf-8") as f:
        json.dump(zenodo, f, indent=1)
        f.write("\n")
    configs = "".join(
        f"- config_name: {c}\n  data_files: {c}/*.trace.zst\n" for c in CLASSES if os.path.isdir(f"{out}/{c}")
    )
    return f"---\nlicense: apache-2.0\npretty_name: \"{TITLE}\"\ntags: [gpu, memory, allocator, traces]\nconfigs:\n{configs}---\n"


def readme(out, tag, built):
    head = metadata(out, tag, len(built))
    counts = {c: [sum(r["class"] == c and r["split"] == s for r, _, _ in built) for s in ("train", "test")] for c in CLASSES}
    table = "".join(f"| {c} | {a} | {b} |\n" for c, (a, b) in counts.items())
    text = f"""{head}
# {TITLE}

Release {tag}. Each file is a trace of allocrig (its format: workloads/trace/FORMAT.md): requests, frees, kernels and
steps, by which any allocator policy can be replayed. The classes answer different questions; results of one class are
never averaged with those of another. A policy may be tuned on the train split only.

| class | train | test |
| --- | ---: | ---: |
{table}
## Workloads

"""
    with open(f"{out}/README.md", "w", encoding="utf-8") as f:
        f.write(text + "\n".join(card(*item) for item in built))


def write_sums(path, sums):
    with open(path, encoding="utf-8") as f:
        lines = f.read().splitlines()
    for i, line in enumerate(lines):
        words = line.split("\t")
        if not line.startswith("#") and words[0] in sums:
            words[FIELDS.index("sha256")] = sums[words[0]]
            lines[i] = "\t".join(words)
    with open(path, "w", encoding="utf-8") as f:
        f.write("\n".join(lines) + "\n")


def main():
    args = arguments()
    table, built, sums, wrong, left = f"{HERE}/v1.tsv", [], {}, [], []
    os.makedirs(args.out, exist_ok=True)
    for row in rows_of(table):
        if args.only and row["class"] != args.only:
            continue
        os.makedirs(f"{args.out}/{row['class']}", exist_ok=True)
        path, seed = f"{args.out}/{row['class']}/{row['name']}.trace.zst", seed_of(row, args.tag)
        if not build(row, seed, args, path):
            left.append(row["name"])
            continue
        found = facts(path)
        built.append((row, seed, found))
        if row["seed"] != "tag":
            sums[row["name"]] = found["sha256"]
            if row["sha256"] not in ("", "-", found["sha256"]) and not args.write:
                wrong.append(f"{row['name']}: {found['sha256']}, and v1.tsv has {row['sha256']}")
    if args.write:
        write_sums(table, sums)
    readme(args.out, args.tag, built)
    with open(f"{args.out}/SHA256SUMS", "w", encoding="utf-8") as f:
        for row, _, _ in built:
            path = f"{row['class']}/{row['name']}.trace.zst"
            with open(f"{args.out}/{path}", "rb") as data:
                f.write(f"{hashlib.sha256(data.read()).hexdigest()}  {path}\n")
    shutil.copy(f"{ROOT}/LICENSE", f"{args.out}/LICENSE")
    shutil.copy(table, f"{args.out}/v1.tsv")
    print(f"{len(built)} workloads in {args.out}")
    if left:
        print(f"left out, --trace PYTHON makes them (Python 3.12, PyTorch 2.11): {', '.join(left)}")
    if wrong:
        sys.exit("build.py: these differ from the table; a change of a generator or reader needs a new version of the "
                 "data set:\n" + "\n".join(wrong))  # fmt: skip


if __name__ == "__main__":
    main()
