#!/bin/bash
# Memory that sleeps (tests/gpu/colocated/sleeping_memory.c) on a card: contents, addresses and free memory over sleep
# and wake, a write to sleeping memory, both under compute-sanitizer if it is there; one cycle of sleep_wake.py if
# PyTorch is there. Needs nvcc. Under a minute. PYTHON names another interpreter.
case ${1:-} in -h | --help) sed -n '2,/^[^#]/s/^# \{0,1\}//p' "$0" | fold -sw 80 && exit 0 ;; esac
set -u
cd "$(dirname "$0")/colocated" || exit 2
out=$(mktemp -d)
trap 'rm -rf "$out"' EXIT
log=$out/log home=${CUDA_HOME:-/usr/local/cuda}
stubs=-L$home/lib64/stubs
PATH=$PATH:$home/bin
check() {
    local name=$1
    shift
    if "$@" >"$log" 2>&1; then echo "ok $name"; else echo "not ok $name: $(tail -n 3 "$log" | tr '\n' ' ')"; fi
}
fails() { ! "$@"; }
sanitizer=$(command -v compute-sanitizer)
{
    if nvcc -arch=native -o "$out/check" sleeping_check.cu sleeping_memory.c "$stubs" -lcuda >"$log" 2>&1; then
        check "memory sleeps and wakes" "$out/check"
        check "a write to sleeping memory fails" "$out/check" touch
        if [ -n "$sanitizer" ]; then
            check "no error and no leak" "$sanitizer" --error-exitcode 9 --leak-check full "$out/check"
            check "the sanitizer finds a write to sleeping memory" \
                fails "$sanitizer" --error-exitcode 9 "$out/check" touch
        else
            echo "skip compute-sanitizer: it is not installed"
        fi
    else
        echo "skip sleeping_check: nvcc does not build it: $(tail -n 1 "$log")"
    fi
    if "${PYTHON:-python3}" -c 'import torch; torch.zeros(1).cuda()' 2>/dev/null; then
        gcc -O2 -shared -fPIC "-I$home/include" sleeping_memory.c -o "$out/sleeping.so" "$stubs" -lcuda
        check "a cycle of sleep_wake.py" "${PYTHON:-python3}" sleep_wake.py "$out/cycle" --library "$out/sleeping.so" \
            --layers 2 --cycles 2 --pages 2048 --empty
        check "it did not fail" grep -q '"failed": ""' "$out/cycle.phases.json"
    else
        echo "skip sleep_wake.py: no PyTorch with a card"
    fi
} | tee "$out/all"
count() { grep -c "^$1 " "$out/all"; }
echo "$(count ok) passed, $(count not) failed, $(count skip) skipped"
! grep -q '^not ' "$out/all"
