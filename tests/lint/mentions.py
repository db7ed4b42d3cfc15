"""Reads paths of sources and documents and prints each file name in their comments and text that no file has."""
import os
import re
import sys

NAME = re.compile(r'(?<![\w./-])((?:[a-z_0-9]+/)*[a-z_0-9]+\.(?:c|h|cu|cuh|def))\b(?!\.?\w)')
TOP = ('allocators/', 'workloads/', 'sim/', 'bench/', 'tests/', 'plots/')
# of others, or made up in an example
OTHERS = {'cuda.h', 'cupti.h', 'mine.c', 'getopt.h', 'jansson.h', 'zstd.h', 'zlib.h', 'sqlite3.h', 'cmocka.h', 'stdint.h',
          'stdio.h', 'mm/vmstat.c', 'bfc_arena.h', 'vk_mem_alloc.h', 'cutlass_fused_moe_kernels.cuh',
          'trtllm_fused_moe_kernel_launcher.cu', 'next_fit.c', 'allocators/policies/mine.c'}
# results keep the names of their time
LEFT_OUT = ('tests/lint/fixtures/', 'tests/golden/data/', 'results/', 'workloads/data/', 'CHANGELOG.md')


def parts(path, text):
    """The comments of a source, the whole of a document."""
    if path.endswith('.md'):
        return [(0, text)]
    pattern = r'^#.*$' if path.endswith('.sh') else r'/\*.*?\*/|//[^\n]*'
    return [(m.start(), m.group(0)) for m in re.finditer(pattern, text, re.M if path.endswith('.sh') else re.S)]


def main():
    files = sys.stdin.read().split('\n')
    # a fixture is a tree of its own
    paths = {os.path.join(folder, name)[2:] for folder, _, names in os.walk('.') for name in names
             if '/.git/' not in folder and '/.build/' not in folder}
    names = {os.path.basename(path) for path in paths}
    for path in files:
        if not path or path.startswith(LEFT_OUT):
            continue
        text = open(path, encoding='utf-8', errors='replace').read()
        for start, part in parts(path, text):
            for match in NAME.finditer(part):
                name = match.group(1)
                there = name in paths if name.startswith(TOP) else os.path.basename(name) in names
                if not there and name not in OTHERS:
                    print(f'{path}:{text.count(chr(10), 0, start + match.start()) + 1}: {name} is not there')


main()
