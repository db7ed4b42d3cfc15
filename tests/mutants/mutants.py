#!/usr/bin/env python3
"""Changes the product in one place at a time and looks which tests notice. Usage:
tests/mutants/mutants.py [--root DIR] [--count N] [--changed REVISION] [--seed TEXT] [--rooms PREFIX,..] [--jobs N]
    [--seconds N] [--quick] [--report]

table.py makes the mutants, tree.py builds all of them into one tree, runs.py runs the test programs
that reach a mutant, the fastest first, until one fails. A mutant that the quick tests (unit, golden,
fuzz) do not notice runs against the rest of the suite (property, cli), then against the quick tests
and properties under ASan and UBSan. One that lives is a finding, unless same_program.tsv says why the
changed program is the same, or not_reached.tsv what no test has. named.tsv has mutants that are always in the table.

--changed takes only files that differ from REVISION, lines that differ first, and only the quick
tests; --seconds ends it after that time. .build/mutants/journal has what is done: a run that was
ended goes on, and a mutant that was killed stays killed as long as its file and the test that
killed it, with its tables of cases, are the same.

--seed and --rooms make another table, in .build/mutants-SEED with a journal of its own and without the
mutants of named.tsv. --rooms takes only files whose paths begin so, all with the same share, of rooms that the default table
leaves out too.

Writes results/mutants.md and .csv (--changed, --seed, --rooms: changed.md and .csv, other.md and .csv in
the folder of the journal). Exit status: 0,
1 if a mutant lives or one of these two tables is wrong, 2 if the run is not possible.
"""

import argparse
import concurrent.futures
import csv
import hashlib
import json
import os
import pathlib
import pickle
import re
import subprocess
import sys
import threading
import time

sys.path.insert(0, os.path.dirname(os.path.abspath(__file__)))
import page  # noqa: E402
import runs  # noqa: E402
import table  # noqa: E402
import tree as trees  # noqa: E402


def say(text):
    print(f"mutants: {text}", flush=True)


def fail(text):
    print(f"mutants: {text}", file=sys.stderr)
    sys.exit(2)


REASONS = {"same_program.tsv": "same", "not_reached.tsv": "beyond"}


def rows(path):
    """Lines of a table with tabs, without comments."""
    if not path.exists():
        return []
    return [line.split("\t") for line in path.read_text(encoding="utf-8").splitlines()
            if line and not line.startswith("#")]


def digest(*parts):
    total = hashlib.sha256()
    for part in parts:
        total.update(part if isinstance(part, bytes) else part.encode())
        total.update(b"\0")
    return total.hexdigest()[:16]


def sources(root, rooms=()):
    """Files of the default table, and those of rooms that are named."""
    for top in ("allocators", "workloads", "sim", "bench", "planted"):
        for path in sorted((root / top).rglob("*.[ch]")):
            name = str(path.relative_to(root))
            if table.weight(name) > 0 or name.startswith(rooms):
                yield name


def changed_lines(root, revision):
    """{file: set of line numbers} of what differs from a revision."""
    done = subprocess.run(["git", "diff", "-U0", "--no-color", revision, "--", "*.c", "*.h"], cwd=root,
                          capture_output=True, check=False)
    if done.returncode != 0:
        fail(f"git diff {revision}: {done.stderr.decode().strip()}")
    out, name = {}, ""
    for line in done.stdout.decode(errors="replace").splitlines():
        if line.startswith("+++ "):
            name = line[6:]
        found = re.match(r"@@ -\S+ \+(\d+)(?:,(\d+))? @@", line)
        if found:
            first, count = int(found[1]), int(found[2] or 1)
            out.setdefault(name, set()).update(range(first, first + count))
    return out


def named_mutants(root, here):
    """The mutants of named.tsv: FILE, FUNCTION, the expression, the changed one ("" removes a statement)."""
    out = []
    for row in rows(here / "named.tsv"):
        name, function, old, new = (row + ["", ""])[:4]
        text = (root / name).read_text(encoding="utf-8") if (root / name).exists() else ""
        start = re.search(rf"^[a-z][^;{{}}]*\b{re.escape(function)}\([^;{{}}]*\)\n\{{", text, re.M)
        at = text.find(old, start.end()) if start else -1
        end = text.find("\n}\n", start.start()) if start else -1
        if at < 0 or at > end or text.find(old, at + 1, end) >= 0:
            fail(f"named.tsv: {name}, {function}(): `{old}` is not there once: correct or remove the line")
        first = len(text[:at].encode())
        mutant = table.Mutant(name, function, "named", first, first + len(old.encode()), old, new or ";", new,
                              statement=not new, line=text[:at].count("\n") + 1, named=True)
        out.append(mutant)
    return out


def is_other(options):
    """Not the table of results/mutants.csv."""
    return options.seed != table.SEED or bool(options.rooms)


def chosen(root, options, here):
    """The mutants of this run, sorted by place."""
    changed = changed_lines(root, options.changed) if options.changed else None
    named = [] if is_other(options) else named_mutants(root, here)  # first: a wrong line ends it at once
    rooms = tuple(options.rooms.split(",")) if options.rooms else ()
    names = [name for name in sources(root, rooms) if changed is None or name in changed]
    if rooms:
        names = [name for name in names if name.startswith(rooms)]
    cache = root / ".build" / "mutants" / "table"
    makes = (pathlib.Path(__file__).parent / "table.py").read_bytes()
    known = {}
    if cache.exists():
        with open(cache, "rb") as file:
            known = pickle.load(file)

    def of_file(name):
        key = digest(name, makes, (root / name).read_bytes())
        return key, known.get(key) or table.of_file(root, name)

    with concurrent.futures.ThreadPoolExecutor(options.jobs) as pool:
        known = dict(pool.map(of_file, names))
    cache.parent.mkdir(parents=True, exist_ok=True)
    with open(cache, "wb") as file:
        pickle.dump(known, file)
    found = [m for some in known.values() for m in some]
    say(f"{len(found)} possible mutants in {len(names)} files")

    def order(mutant):
        if changed is not None:
            return (mutant.line not in changed[mutant.file], mutant.rank(options.seed))
        return (False, mutant.rank(options.seed) / (1 if options.rooms else table.weight(mutant.file)))

    taken = sorted(found, key=order)[:options.count]
    names = set(names)
    named = [m for m in named if changed is None or m.file in names]
    overlapping = {m.key for m in taken for n in named
                   if m.file == n.file and m.start < n.end and n.start < m.end
                   and not (m.start <= n.start and n.end <= m.end) and not (n.start <= m.start and m.end <= n.end)}
    taken = [m for m in taken if m.key not in overlapping] + named
    taken.sort(key=lambda m: (m.file, m.start, m.end, m.key))
    return taken, (sorted(m.key for m in taken if order(m)[0]) if changed is not None else [])


class Journal:
    """What is known of each mutant: a line of JSON for each."""

    def __init__(self, path):
        self.path = path
        self.known = {}
        self.lock = threading.Lock()
        path.parent.mkdir(parents=True, exist_ok=True)
        if path.exists():
            for line in path.read_text(encoding="utf-8").splitlines():
                try:
                    entry = json.loads(line)
                    self.known[entry["key"]] = entry
                except ValueError:
                    pass  # cut off in the middle

    def add(self, **entry):
        with self.lock:
            self.known[entry["key"]] = entry
            with open(self.path, "a", encoding="utf-8") as file:
                file.write(json.dumps(entry) + "\n")


def known_kills(path):
    """{file: {test: times}} of the last whole run: these tests come first."""
    kills = {}
    if path.exists():
        with open(path, encoding="utf-8", newline="") as file:
            for row in csv.DictReader(file):
                if row["killed_by"]:
                    tests = kills.setdefault(row["file"], {})
                    tests[row["killed_by"]] = tests.get(row["killed_by"], 0) + 1
    return kills


class Run:
    def __init__(self, root, work, tree, options, mutants, numbers):
        self.root, self.work, self.tree = root, work, tree
        self.options, self.mutants, self.numbers = options, mutants, numbers
        self.journal = Journal(work / "journal")
        self.tests = {}
        self.kills = known_kills(root / "results" / "mutants.csv")
        self.left_out = []
        self.files = {mutant.file: digest((root / mutant.file).read_bytes()) for mutant in mutants}
        self.end = time.monotonic() + options.seconds if options.seconds else None
        product = [(tree / name).read_bytes() for name in sorted(sources(tree, ("",)))]
        self.product = digest(*product)
        everything = [path.read_bytes() for path in sorted((tree / "tests").rglob("*.[ch]"))]
        self.cases = {path.name: path.read_bytes() for path in sorted((tree / "tests" / "unit" / "cases").glob("*"))}
        self.cases |= {f"steps/{path.name}": path.read_bytes() for path in sorted((tree / "tests" / "steps").glob("*"))}
        everything += self.cases.values()
        everything += [path.read_bytes() for path in sorted((tree / "tests" / "cli").rglob("*")) if path.is_file()]
        self.everything = digest(self.product, *everything)

    def source(self, name):
        """The source of a test, as it was built, and its tables of cases: that of its name, and those that it names."""
        for ending in (".c", ".sh"):
            path = self.tree / "tests" / (name + ending)
            if path.exists():
                text = path.read_bytes()
                own = path.stem.removeprefix("test_")
                return digest(text, *(rows for case, rows in self.cases.items()
                                      if case == own or case.startswith(own + "/") or f'"{case}"'.encode() in text
                                      or own == "formats" and case.startswith("format_")))
        return ""

    def file(self, name):
        return self.files[name]

    def workers(self, function, items):
        """Calls it for each item in `jobs` threads; the second argument is the number of the thread."""
        free = list(range(self.options.jobs))

        def call(item):
            number = free.pop()
            try:
                return function(item, number)
            finally:
                free.append(number)

        with concurrent.futures.ThreadPoolExecutor(self.options.jobs) as pool:
            return list(pool.map(call, items))

    # ---- which test reaches which mutant ----

    def cover(self, variant, wanted, quick):
        """The tests of a build for which wanted(test) holds, each run once without a mutant."""
        (self.work / "reached").mkdir(exist_ok=True)
        tests = [test for test in runs.listed(self.tree, variant) if wanted(test)]

        def look(test, worker):
            name = test.name.replace("/", "-")
            reached = self.work / "reached" / f"{'quick' if quick else variant}-{name}"
            note = reached.with_suffix(".note")
            key = digest(self.product, self.source(test.name), variant, json.dumps(sorted(self.numbers.items())))
            known = json.loads(note.read_text()) if note.exists() else {}
            if known.get("key") != key:
                reached.write_bytes(bytes(65536))
                outcome = runs.run(self.tree, test, variant, 0, self.work / f"run-{worker}", quick, reached=reached)
                known = {"key": key, "seconds": outcome.seconds, "failed": "" if outcome.passed else outcome.how}
                note.write_text(json.dumps(known))
            test.seconds, test.reason, test.reached = known["seconds"], known["failed"], reached.read_bytes()
            return test

        done = self.workers(look, tests)
        for test in done:
            if test.reason:
                say(f"{variant} {test.name} fails without a mutant ({test.reason}) and is left out")
                self.left_out.append((variant, test.name, test.reason))
        return [test for test in done if not test.reason]

    # ---- one mutant ----

    def attack(self, mutant, variant, tests, quick, worker):
        """(test, how) of the first test that notices it, or None."""
        number = self.numbers[mutant.key]
        before = self.kills.setdefault(mutant.file, {})
        stem = pathlib.Path(mutant.file).stem
        reaching = sorted((test for test in tests if test.reaches(number)),
                          key=lambda test: test.seconds / (1 + 20 * before.get(test.name, 0))
                          / (50 if stem in test.name else 1))
        for test in reaching:
            limit = max(1.0, 6 * test.seconds)
            outcome = runs.run(self.tree, test, variant, number, self.work / f"run-{worker}", quick, limit)
            if not outcome.passed:
                before[test.name] = before.get(test.name, 0) + 1
                return test.name, outcome.how
        return None

    def known(self, mutant, stage):
        """The valid entry of the journal: killed, or lived up to this stage at least."""
        entry = self.journal.known.get(mutant.key)
        if not entry or entry["file"] != self.file(mutant.file):
            return None
        if entry["by"]:
            return entry if entry["test"] == self.source(entry["by"]) else None
        return entry if entry["stage"] >= stage and entry["everything"] == self.everything else None

    def stage(self, stage, name, variant, wanted, mutants):
        """Runs the mutants against some tests. Returns those that live."""
        todo = [m for m in mutants if not self.known(m, stage)]
        tests = self.cover(variant, wanted, stage == 1) if todo else []
        if todo and stage == 1 and not tests:
            fail("no test program was built, or all fail without a mutant")
        say(f"{name}: {len(todo)} of {len(mutants)} mutants to run, {len(tests)} tests")
        count = 0

        def one(mutant, worker):
            nonlocal count
            if self.end and time.monotonic() > self.end:
                return
            killed = self.attack(mutant, variant, tests, stage == 1, worker)
            reached = any(test.reaches(self.numbers[mutant.key]) for test in tests)
            earlier = self.journal.known.get(mutant.key, {})
            by, how = killed or ("", "")
            self.journal.add(key=mutant.key, stage=stage, by=by, how=how, variant=variant,
                             reached=reached or (stage > 1 and bool(earlier.get("reached"))),
                             file=self.file(mutant.file), test=self.source(by) if by else "",
                             everything=self.everything)
            count += 1
            if not killed:
                say(f"lives ({name}): {mutant.file}:{mutant.line} {mutant.function}: {mutant.old} -> {mutant.new}")
            if count % 25 == 0:
                say(f"{name}: {count} of {len(todo)}")

        self.workers(one, todo)
        return [m for m in mutants if not (self.journal.known.get(m.key) or {"by": ""})["by"]]


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--root", default=".")
    parser.add_argument("--count", type=int, default=0)
    parser.add_argument("--changed")
    parser.add_argument("--seed", default=table.SEED)
    parser.add_argument("--rooms", default="")
    parser.add_argument("--jobs", type=int, default=os.cpu_count() or 2)
    parser.add_argument("--seconds", type=int, default=0)
    parser.add_argument("--quick", action="store_true", help="the quick tests alone")
    parser.add_argument("--report", action="store_true", help="run nothing: write what the journal has")
    options = parser.parse_args()
    options.count = options.count or (60 if options.changed else 300)
    root = pathlib.Path(options.root).resolve()
    here = root / "tests" / "mutants"
    work = root / ".build" / (f"mutants-{options.seed}" if is_other(options) else "mutants")
    tree = work / "tree"
    start = time.monotonic()

    taken, second = chosen(root, options, here)
    if not taken:
        say("no changed file has a mutant")
        return 0
    reasons = {}
    for name, state in REASONS.items():
        for row in rows(here / name):
            if len(row) != 2 or row[0] in reasons:
                fail(f"{name}: a line is KEY, a tab, REASON, and a key is there once: {row}")
            reasons[row[0]] = (state, row[1])
    if options.report:
        known = Journal(work / "journal").known
        files = {mutant.file: digest((root / mutant.file).read_bytes()) for mutant in taken}
        known = {key: entry for key, entry in known.items() if files.get(key.split("|")[0]) == entry["file"]}
        return report(root, work, options, taken, known, reasons, [])
    numbers = {mutant.key: number for number, mutant in enumerate(taken, 1)}
    tree.mkdir(parents=True, exist_ok=True)
    bad = {mutant.key for mutant in trees.prepare(root, tree, taken, numbers, say)}
    taken = [mutant for mutant in taken if mutant.key not in bad]
    with open(work / "numbers", "w", encoding="utf-8") as file:
        file.writelines(f"{numbers[mutant.key]}\t{mutant.line}\t{mutant.key}\n" for mutant in taken)
    say(f"building {len(taken)} mutants")
    trees.build(tree, "release", options.jobs)

    run = Run(root, work, tree, options, taken, numbers)
    if options.seconds:
        run.end = start + options.seconds
    order = sorted(taken, key=lambda mutant: (mutant.key in second, mutant.rank(options.seed)))
    lived = run.stage(1, "quick tests", "release", lambda test: test.quick, order)
    if not options.changed and not options.quick:
        lived = run.stage(2, "whole suite", "release", lambda test: not test.quick or test.is_random, lived)
        if any(not run.known(mutant, 3) for mutant in lived) and (tree / "Makefile").exists():
            trees.build(tree, "san", options.jobs)
            lived = run.stage(3, "sanitizers", "san", lambda test: not test.name.startswith("cli/"), lived)

    status = report(root, work, options, taken, run.journal.known, reasons, run.left_out)
    say(f"{time.monotonic() - start:.0f} s")
    return status


def report(root, work, options, taken, known, reasons, left_out):
    """Writes the page and the table; returns the exit status."""
    results = [page.result(mutant, known.get(mutant.key), *reasons.get(mutant.key, ("", ""))) for mutant in taken]
    target = work / ("changed" if options.changed else "other")
    if not options.changed and not is_other(options):
        target = root / "results" / "mutants"
    target.parent.mkdir(exist_ok=True)
    text = page.text(results, left_out, options)
    target.with_suffix(".md").write_text(text, encoding="utf-8")
    with open(target.with_suffix(".csv"), "w", encoding="utf-8", newline="") as file:
        writer = csv.DictWriter(file, list(page.COLUMNS), lineterminator="\n")
        writer.writeheader()
        writer.writerows({name: result[name] for name in page.COLUMNS} for result in results)
    for line in page.last_lines(results):
        print(line)
    say(f"written: {target.with_suffix('.md')}")
    files = {state: name for name, state in REASONS.items()}
    wrong = [key for key in reasons if any(r["key"] == key and r["state"] == "killed" for r in results)]
    for key in wrong:
        say(f"{files[reasons[key][0]]}: a test notices {key}: remove the line")
    return 1 if wrong or any(result["state"] in ("lived", "unreached") for result in results) else 0


if __name__ == "__main__":
    sys.exit(main())
