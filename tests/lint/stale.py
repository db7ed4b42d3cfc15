#!/usr/bin/env python3
"""Usage: stale.py STATE KEY <FILES: prints those of the files on standard input, one a line, that are not as
STATE has them, and writes what they are now to STATE.now. A file is the same if KEY, its text and the
texts of all files that it includes or sources are the same."""
import hashlib
import os
import re
import sys

INCLUDE = re.compile(rb'^ *(?:# *include "([^"\n]+)"|# shellcheck source=(\S+))', re.MULTILINE)


class Tree:
    def __init__(self):
        self.digests, self.included = {}, {}

    def read(self, path):
        with open(path, "rb") as file:
            text = file.read()
        self.digests[path] = hashlib.sha256(text).digest()
        folder = os.path.dirname(path)
        found = set()
        for match in INCLUDE.finditer(text):
            name = (match[1] or match[2]).decode("utf-8", "surrogateescape")
            for place in (name, os.path.normpath(os.path.join(folder, name)), "bench/library/" + name):
                if os.path.isfile(place):
                    found.add(place)
                    break
        self.included[path] = found

    def fingerprint(self, path, key):
        reached, left = set(), [path]
        while left:
            at = left.pop()
            if at not in reached:
                reached.add(at)
                if at not in self.digests:
                    self.read(at)
                left.extend(self.included[at])
        whole = hashlib.sha256(key.encode())
        for at in sorted(reached):
            whole.update(at.encode() + b"\0" + self.digests[at])
        return whole.hexdigest()


def main(state, key):
    tree = Tree()
    lines = [line.rstrip("\n") for line in sys.stdin]
    now = {path: tree.fingerprint(path, key) for path in lines}
    try:
        with open(state) as file:
            clean = dict(line.split() for line in file)
    except OSError:
        clean = {}
    with open(state + ".now", "w") as file:
        file.writelines(f"{path} {print_}\n" for path, print_ in now.items())
    for path in lines:
        if clean.get(path) != now[path]:
            print(path)


main(*sys.argv[1:])
