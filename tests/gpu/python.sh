#!/bin/bash
# The Python package on a card: PyTorch's memory functions under a policy against those under its own allocator, a small
# training under several policies, CuPy, and the library itself. Needs PyTorch; CuPy if it is there. Under four minutes.
# Prints `ok NAME` and `not ok NAME: why`; the answers that are compared go to $OUT (default: a folder that is removed).
# ALLOCRIG_PLUGIN, ALLOCRIG_LIBRARY: take these libraries instead of building them. PYTHON names another interpreter.
case ${1:-} in -h | --help) sed -n '2,/^[^#]/s/^# \{0,1\}//p' "$0" | fold -sw 80 && exit 0 ;; esac
set -u
cd "$(dirname "$0")/../.." || exit 2
python=${PYTHON:-python3}
if [ -z "${OUT:-}" ]; then
    OUT=$(mktemp -d)
    trap 'rm -rf "$OUT"' EXIT
fi
[ -n "${ALLOCRIG_PLUGIN:-}" ] || make -s -j"$(nproc)" plugin || [ -e .build/release/liballocrig_torch.so ] || exit 2
[ -n "${ALLOCRIG_LIBRARY:-}" ] || make -s -j"$(nproc)" library || echo "# the library is not built"
export ALLOCRIG_PLUGIN=${ALLOCRIG_PLUGIN:-$PWD/.build/release/liballocrig_torch.so}
export ALLOCRIG_LIBRARY=${ALLOCRIG_LIBRARY:-$PWD/.build/release/liballocrig.so.0}
export PYTHONPATH=bench/library/python PYTHONDONTWRITEBYTECODE=1 CUBLAS_WORKSPACE_CONFIG=:4096:8
programs=tests/gpu/programs
log=$OUT/python.log
: >"$log"
has() { "$python" -c "import importlib.util, sys; sys.exit(importlib.util.find_spec('$1') is None)"; }

# program NAME SPEC: its answers are in $OUT/NAME.json; `native` and `expandable` are PyTorch's own allocator
program() {
    if timeout -k 5 120 "$python" $programs/memory_answers.py "$2" "$OUT/$1.json" >"$OUT/$1.txt" 2>&1; then
        echo "ok answers under $2"
    else
        echo "not ok answers under $2: $(tail -n 3 "$OUT/$1.txt" | tr '\n' ' ')"
    fi
}

{
    if has torch; then
        program native native
        program expandable expandable
        program torch torch
        program torch_expandable torch:expandable_segments=true
        program vmm vmm
        program growth growth
        "$python" $programs/memory_compare.py "$OUT"
    else
        echo "skip PyTorch: it is not installed"
    fi
    if has cupy; then
        for policy in torch vmm; do
            timeout -k 5 120 "$python" -c "
import allocrig.cupy
allocrig.cupy.use('$policy')
import cupy
arrays = [cupy.full(1 << k, k, dtype=cupy.int32) for k in range(10, 24)]
assert all(bool((array == k).all()) for k, array in zip(range(10, 24), arrays))
live = sum(array.nbytes for array in arrays)
assert allocrig.cupy.figure('live_bytes') >= live, (allocrig.cupy.figure('live_bytes'), live)
del arrays
assert allocrig.cupy.figure('live_bytes') < live
print('ok cupy under $policy')" 2>&1 | tail -n 1
        done
    else
        echo "skip CuPy: it is not installed"
    fi
    if [ -e "$ALLOCRIG_LIBRARY" ]; then
        "$python" -c "
import allocrig
row = allocrig.run('growth', 'order_flip')[0]
assert row['passed']
print('ok the library runs')" 2>&1 | tail -n 1
    fi
} | tee "$log"
passed=$(grep -c '^ok ' "$log") failed=$(grep -vc '^ok \|^skip \|^#' "$log") skipped=$(grep -c '^skip ' "$log")
echo "$passed passed, $failed failed, $skipped skipped"
[ "$failed" = 0 ]
