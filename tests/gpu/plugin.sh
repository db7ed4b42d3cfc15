#!/bin/bash
# The plug-in on a card, inside PyTorch and CuPy. Without arguments: what a program may rely on, under four policies
# (about a minute). With arguments:
#
#   tests/gpu/plugin.sh compare OUT [--models gpt2,resnet50,dlrm] [--policies "torch growth vmm slab"] [--rounds N] [--group N] [--limit S]
#
# trains the models under PyTorch's own allocator and under policies and compares losses, memory and step times (six
# minutes): OUT/plugin.md and OUT/plugin.csv. POLICIES, PYTHON name others. Needs PyTorch; CuPy where it is there.
set -u
cd "$(dirname "$0")/../.." || exit 2
python=${PYTHON:-python3}
export PYTHONDONTWRITEBYTECODE=1
# A machine that cannot build it may have one that was built elsewhere.
[ -n "${ALLOCRIG_PLUGIN:-}" ] || make -s -j"$(nproc)" plugin || [ -e .build/release/liballocrig_torch.so ] || exit 2
export ALLOCRIG_PLUGIN=${ALLOCRIG_PLUGIN:-$PWD/.build/release/liballocrig_torch.so}

has() {
    "$python" -c "import importlib.util, sys; sys.exit(importlib.util.find_spec('$1') is None)"
}

if [ "${1:-}" = compare ]; then
    shift
    exec "$python" tests/gpu/programs/train_compare.py "$@"
fi

passed=0 failed=0 skipped=0
log=$(mktemp)
for framework in torch cupy; do
    for policy in ${POLICIES:-torch growth vmm slab}; do
        if ! has $framework; then
            echo "skip $framework under $policy: it is not installed"
            skipped=$((skipped + 1))
            continue
        fi
        ALLOCRIG_POLICY=$policy timeout -k 5 "${CASE_SECONDS:-120}" "$python" tests/gpu/programs/behave.py $framework >"$log" 2>&1
        status=$?
        cat "$log"
        passed=$((passed + $(grep -c '^ok ' "$log")))
        bad=$(grep -c '^not ok ' "$log")
        if [ $status != 0 ] && [ "$bad" = 0 ]; then
            echo "not ok $framework under $policy: ended with status $status"
            bad=1
        fi
        failed=$((failed + bad))
    done
done
rm -f "$log"
echo "$passed passed, $failed failed, $skipped skipped"
[ "$failed" = 0 ]
