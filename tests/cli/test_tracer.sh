#!/bin/bash
# The tracer of PyTorch programs: sizes, lifetimes and values (tests/tracer/check_core.py), kinds of programs
# (check_kinds.py), what is known of tensors (check_values.py), and a program that is interrupted or fails.
# shellcheck disable=SC2317 # functions are called by `check`
set -u
# shellcheck source=tests/cli/lib.bash
. "$(dirname "$0")/lib.bash"
[ -n "$(command -v python3)" ] || { echo "skip tracer: python3 is not installed" && exit 0; }
python=${ALLOCRIG_PYTHON:-python3}
"$python" -c 'import torch' 2>/dev/null || {
    echo "skip tracer: torch is not installed for $python (ALLOCRIG_PYTHON names another one)" && exit 0
}
while read -r word name; do
    case $word in
    ok) check "$name" true ;;
    FAILED) check "${name%%:*}" false ;;
    *) echo "  $word $name" ;;
    esac
done < <(export PYTHONPATH=workloads/record/tracer && for part in core kinds values; do "$python" "tests/tracer/check_$part.py" 2>&1; done)

# A program that is interrupted, or fails, leaves a trace that says that it is not complete.
cat >"$TEST_TMP/long.py" <<'END'
import os
import signal
import sys

import torch

x = torch.zeros(1000, device="cuda")
if sys.argv[1] == "fail":
    raise ValueError("the program's own error")
os.kill(os.getpid(), signal.SIGINT if sys.argv[1] == "interrupt" else signal.SIGTERM)
while True:
    x = x + 1
END
for way in interrupt end fail; do
    run trace -o "$TEST_TMP/$way.trace" -- "$python" "$TEST_TMP/long.py" "$way"
    check "${way}_is_not_success" [ "$status" != 0 ]
    check "${way}_leaves_a_trace" grep -q '^a,0,4000,' "$TEST_TMP/$way.trace"
    check "${way}_is_not_complete" grep -qx '# complete: no' "$TEST_TMP/$way.trace"
done
check the_error_is_shown grep -q "ValueError: the program's own error" "$err"

# Settings of the allocator, and snapshots.
cat >"$TEST_TMP/settings.py" <<'END'
import torch

torch.cuda.memory._record_memory_history()
x = torch.zeros(1000, device="cuda")
torch.cuda.memory._dump_snapshot("snapshot.pickle")
END
for conf in bogus:1 max_split_size_mb:5; do
    PYTORCH_CUDA_ALLOC_CONF=$conf run trace -o "$TEST_TMP/settings.trace" -- "$python" "$TEST_TMP/settings.py"
    check "settings_that_pytorch_refuses_end_it_$conf" grep -q "^RuntimeError: PyTorch refuses the settings $conf of its allocator: " "$err"
    check "and_it_is_no_success_$conf" [ "$status" = 1 ]
done
PYTORCH_CUDA_ALLOC_CONF=expandable_segments:True run trace -o "$TEST_TMP/settings.trace" -- "$python" "$TEST_TMP/settings.py"
check settings_that_it_takes_do_not [ "$status" = 0 ]
check a_snapshot_that_is_empty_is_said [ "$(grep -c 'there is nothing to snapshot without a card' "$err")" = 1 ]

# Child processes: a launcher's trace is its child's; a program with requests of its own says what is missing.
cat >"$TEST_TMP/children.py" <<'END'
import multiprocessing
import sys

import torch


def work(bytes_):
    torch.zeros(bytes_, dtype=torch.uint8, device="cuda")


if __name__ == "__main__":
    if sys.argv[1] == "both":
        work(1000)
    child = multiprocessing.get_context("spawn" if sys.argv[1] == "both" else "fork").Process(target=work, args=(5000,))
    child.start()
    child.join()
    sys.exit(child.exitcode)
END
for way in both launcher; do
    run trace -o "$TEST_TMP/$way.trace" -- "$python" "$TEST_TMP/children.py" "$way"
    check "children_of_${way}_run" [ "$status" = 0 ]
done
check a_launchers_trace_is_its_childs grep -q '^a,0,5000,' "$TEST_TMP/launcher.trace"
check the_program_comes_first grep -q '^a,0,1000,' "$TEST_TMP/both.trace"
check a_child_is_missing grep -q 'outside_envelope,the card also serves a child process' "$TEST_TMP/both.trace"
finish
