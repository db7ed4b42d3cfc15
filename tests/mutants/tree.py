"""A copy of the tree in .build/mutants/tree with all mutants behind one switch, and its build."""

import os
import re
import shutil
import subprocess

SWITCH = "allocators/base/mutant_switch.c"


def copied(root, tree):
    """Copies the files of git, changed ones too, and returns their paths. Equal files keep their times."""
    if (root / ".git").exists():
        listed = subprocess.run(["git", "ls-files", "-z", "-co", "--exclude-standard"], cwd=root,
                                capture_output=True, check=False).stdout.decode().split("\0")
        return [name for name in listed if name and (root / name).is_file()]
    # no repository, as in the test of this tool
    names = [str(path.relative_to(root)) for path in sorted(root.rglob("*"))
             if path.is_file() and ".build" not in path.relative_to(root).parts]
    return names


def write(path, data, like=None):
    if path.is_file() and path.read_bytes() == data:
        return
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_bytes(data)
    if like is not None:
        shutil.copymode(like, path)


def replaced(data, mutants, numbers, start, end):
    """data[start:end] with the mutants in it, as text of C."""
    out, at = [], start
    while mutants:
        # the outermost one that starts first
        first = min(mutants, key=lambda mutant: (mutant.start, -mutant.end, numbers[mutant.key]))
        inside = [m for m in mutants if m is not first and m.start >= first.start and m.end <= first.end]
        mutants = [m for m in mutants if m is not first and m not in inside]
        # one that only overlaps cannot be: they are nodes of one tree
        out.append(data[at:first.start].decode())
        original = replaced(data, inside, numbers, first.start, first.end)
        number = numbers[first.key]
        if first.statement:
            out.append(f"(MUTANT({number}) ? (void)0 : (void)({original}))")
        else:
            out.append(f"(MUTANT({number}) ? ({first.mutated}) : ({original}))")
        at = first.end
    out.append(data[at:end].decode())
    return "".join(out)


def instrumented(data, path, mutants, numbers):
    head = f'#include "tests/mutants/mutant.h"\n#line 1 "{path}"\n'
    return (head + replaced(data, mutants, numbers, 0, len(data))).encode()


def prepare(root, tree, mutants, numbers, say):
    """Writes the tree. Returns the mutants that do not compile."""
    names = copied(root, tree)
    of_file = {}
    for mutant in mutants:
        of_file.setdefault(mutant.file, []).append(mutant)
    bad = []
    here = os.path.dirname(os.path.abspath(__file__))
    write(tree / SWITCH, open(os.path.join(here, "mutant.c"), "rb").read())
    write(tree / "tests/mutants/mutant.h", open(os.path.join(here, "mutant.h"), "rb").read())
    for name in names:
        data = (root / name).read_bytes()
        if name not in of_file or not (tree / name).exists():  # a header may include another one with mutants
            write(tree / name, data, root / name)
    # headers first, because files are compiled with them
    for name in sorted(of_file, key=lambda name: (not name.endswith(".h"), name)):
        data = (root / name).read_bytes()
        some = of_file[name]
        while True:
            text = instrumented(data, name, some, numbers)
            if (tree / name).is_file() and (tree / name).read_bytes() == text:
                break
            trial = tree / ".trial.c"
            trial.write_bytes(text)
            done = subprocess.run(["clang", "-std=c11", "-D_GNU_SOURCE", "-DHAVE_CUDA=0", "-DHAVE_NVCC=0", "-I.",
                                   "-w", "-fsyntax-only", "-ferror-limit=0", str(trial.name)],
                                  cwd=tree, capture_output=True, check=False)
            trial.unlink()
            if done.returncode == 0:
                break
            lines = {int(line) for line in re.findall(rf"^{re.escape(name)}:(\d+):\d+: error", done.stderr.decode(),
                                                      re.M)}
            dropped = [m for m in some if any(m.line <= line <= m.line + m.old.count("\n") + 3 for line in lines)]
            if not dropped:
                raise SystemExit(f"mutants: {name} does not compile with its mutants:\n{done.stderr.decode()[:600]}")
            say(f"{name}: {len(dropped)} mutants do not compile and are left out")
            bad += dropped
            some = [m for m in some if m not in dropped]
        write(tree / name, text, root / name)
    gone = {str(path.relative_to(tree)) for path in tree.rglob("*") if path.is_file()
            and ".build" not in path.relative_to(tree).parts and ".git" not in path.relative_to(tree).parts}
    for name in gone - set(names) - {SWITCH, "tests/mutants/mutant.h", "allocrig"}:
        (tree / name).unlink()
    # some tests ask git for the commit
    if not (tree / ".git").exists():
        subprocess.run("git init -q . && git add -A . && git -c user.name=mutants -c user.email=mutants@localhost "
                       "commit -qm 'the tree with its mutants'", shell=True, cwd=tree, check=False,
                       capture_output=True)
    return bad


def build(tree, variant, jobs):
    """Builds the program and the tests. -w: the text of a mutant is not written to be read; memory that a
    removed statement leaves unset is 0, so that a run repeats."""
    # By the environment, so that a test that calls make builds nothing anew.
    os.environ["CFLAGS"] = "-w -ftrivial-auto-var-init=zero"
    done = subprocess.run(["make", f"-j{jobs}", f"VARIANT={variant}", "all", "tests", "library"], cwd=tree,
                          capture_output=True, check=False)
    if done.returncode != 0:
        raise SystemExit("mutants: the tree does not build: " + done.stderr.decode()[-2000:])
