#!/usr/bin/env python3
"""Usage: repeats.py <FILES: prints each include of a C library header, in those of the files on standard
input, one a line, that include allocators/base/status.h, directly or not, which brings that header."""
import os
import re
import sys

BASE = "allocators/base/status.h"
INCLUDE = re.compile(r'^#include ([<"])([^>"]+)[>"]', re.MULTILINE)
included = {}


def includes(path):
    if path not in included:
        with open(path, encoding="utf-8") as file:
            included[path] = [(match[1], match[2]) for match in INCLUDE.finditer(file.read())]
    return included[path]


def reaches_base(path):
    reached, left = set(), [path]
    while left:
        at = left.pop()
        if at not in reached and os.path.isfile(at):
            reached.add(at)
            left.extend(name for mark, name in includes(at) if mark == '"')
    return BASE in reached


brought = {name for mark, name in includes(BASE) if mark == "<"} if os.path.isfile(BASE) else set()
for path in sys.stdin.read().split():
    repeated = [name for mark, name in includes(path) if mark == "<" and name in brought]
    if repeated and path != BASE and reaches_base(path):
        for name in repeated:
            print(f"{path}: <{name}> comes with {BASE}")
