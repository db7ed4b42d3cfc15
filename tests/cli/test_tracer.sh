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

# Settings with several keys, another allocator in place of PyTorch's own, settings that the program itself changes.
cat >"$TEST_TMP/allocators.py" <<'END'
import os
import sys

import torch

if sys.argv[1] == "sets":
    os.environ["PYTORCH_CUDA_ALLOC_CONF"] = "max_split_size_mb:64,roundup_power2_divisions:4"
elif sys.argv[1] == "sets_late":
    os.environ["PYTORCH_CUDA_ALLOC_CONF"] = "backend:cudaMallocAsync"
elif sys.argv[1] in ("plugs", "pools"):
    own = torch.cuda.memory.CUDAPluggableAllocator("missing.so", "take", "give")
    torch.cuda.MemPool(own.allocator()) if sys.argv[1] == "pools" else torch.cuda.memory.change_current_allocator(own)
x = torch.zeros(3 << 20, dtype=torch.uint8, device="cuda")
if sys.argv[1] == "changes":
    torch.cuda.memory._set_allocator_settings("max_split_size_mb:64,expandable_segments:True")
if sys.argv[1] == "captures":
    with torch.cuda.graph(torch.cuda.CUDAGraph()):
        x + x
print(torch.cuda.memory_allocated(), torch.cuda.memory_reserved())
END
allocators() { # HOW [CONF [VARIABLE]]
    env "${3:-PYTORCH_CUDA_ALLOC_CONF}=${2:-}" "$ALLOCRIG" fits -- "$python" "$TEST_TMP/allocators.py" "$1" >"$out" 2>"$err"
    status=$?
}
allocators plain expandable_segments:True,max_split_size_mb:64
check two_settings_are_taken grep -q "^ *20.0  *20.0  yes .*conf=" "$out"
allocators plain backend:cudaMallocAsync
check the_pool_of_the_driver_answers grep -q "^ *32.0  *32.0  yes .*async:release_threshold=max (recorded)" "$out"
check and_the_program_asks_it grep -q "^3145728 33554432$" "$err"
allocators captures backend:cudaMallocAsync
check it_does_not_for_graphs grep -q "under backend:cudaMallocAsync the memory of CUDA graphs and private pools is not known here" "$err"
allocators plain 1 PYTORCH_NO_CUDA_MEMORY_CACHING
check without_a_cache_the_driver_answers grep -q "^ *3.0  *4.0  yes .*PYTORCH_NO_CUDA_MEMORY_CACHING=1" "$out"
check and_pytorch_counts_nothing grep -q "^0 0$" "$err"
allocators sets expandable_segments:True
check settings_are_read_at_the_first_request grep -q "conf=.*'max_split_size_mb:64,roundup_power2_divisions:4'" <(tr -d '\n' <"$out" | tr -s ' ')
allocators sets_late
check but_not_which_allocator_it_is grep -q "^RuntimeError: Allocator backend parsed at runtime != allocator backend parsed at load time" "$err"
allocators plugs
check an_allocator_of_its_own_is_refused grep -q "replaces PyTorch's caching allocator by one of its own: what that asks of the card is not known" "$err"
allocators pools
check also_that_of_a_pool grep -q "gives a MemPool an allocator of its own: what that asks of the card is not known" "$err"
run trace -o "$TEST_TMP/changes.trace" -- "$python" "$TEST_TMP/allocators.py" changes
check changed_settings_are_noted grep -qx '!,settings,max_split_size_mb:64,expandable_segments:True' "$TEST_TMP/changes.trace"

# A request that is larger than the card, in a program that ends if it fails: it goes on, so that `fits` can say why.
cat >"$TEST_TMP/large.py" <<'END'
import torch

try:
    x = torch.empty(2 << 40, dtype=torch.uint8, device="cuda")
except Exception as error:
    raise SystemExit(1) from error
END
run fits -- "$python" "$TEST_TMP/large.py"
check a_request_larger_than_the_card_is_named grep -q "^One request alone, of 2.000 TiB at large.py:4, is larger than the card" "$out"

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
