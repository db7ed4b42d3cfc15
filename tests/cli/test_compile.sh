#!/bin/bash
# torch.compile, CUDA graphs and private pools of a program that is traced without a card.
set -u
# shellcheck source=tests/cli/lib.bash
. "$(dirname "$0")/lib.bash"
python=${ALLOCRIG_PYTHON:-python3}
if ! "$python" -c 'import torch, triton' 2>/dev/null; then
    echo "skip compile: torch and triton are not installed for $python (ALLOCRIG_PYTHON names another one)"
    finish
fi
trace=$TEST_TMP/compiled.trace
export TMPDIR=$TEST_TMP
run trace -o "$trace" -- "$python" tests/tracer/compiled_program.py
check a_compiled_program_is_traced [ "$status" = 0 ]
[ "$status" = 0 ] || tail -n 5 "$err"
"$python" tests/tracer/check_compiled.py "$trace"
check nothing_runs_uncompiled [ -z "$(grep 'not compiled' "$trace")" ]
run run -p torch -w "$trace" -d sim
check the_trace_is_replayed [ "$status" = 0 ]
finish
