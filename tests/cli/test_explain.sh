#!/bin/bash
# `explain --message`: the class is the first word, from an argument, a file and standard input.
set -u
# shellcheck source=tests/cli/lib.bash
. "$(dirname "$0")/lib.bash"
tmp=$TEST_TMP
message='CUDA out of memory. Tried to allocate 158.00 MiB (GPU 0; 23.69 GiB total capacity; 22.14 GiB already allocated; 115.69 MiB free; 23.03 GiB reserved in total by PyTorch)'
printf '%s\n' "Traceback (most recent call last):" "RuntimeError: $message" >"$tmp/log"

run explain --message "$message"
check argument_is_classified [ "$status" = 0 ]
check class_is_the_first_word grep -qE '^fragmentation: ' "$out"
check figures_are_printed grep -qE '^ +free on the card +115\.7 MiB' "$out"
check what_it_does_not_say grep -q 'does not say what other processes held' "$out"
check segment_not_tensor grep -q 'prints the segment that it asked the driver for, not the tensor' "$out"
run explain --message "$tmp/log"
check file_is_classified grep -qE '^fragmentation: ' "$out"
"$ALLOCRIG" explain --message - <"$tmp/log" >"$tmp/stdin"
check standard_input_is_the_same cmp "$tmp/stdin" "$out"
run explain --message "OOM when allocating tensor with shape[32,256,62,62] and type float by allocator GPU_0_bfc"
check a_shape_is_bytes grep -qE 'asked for .* 125960192 bytes' "$out"
check no_segment_for_tensorflow quietly test -z "$(grep segment "$out")"

refuses no_message 2 'holds no out-of-memory message' explain --message 'all is well'
refuses no_figures 2 'not how much was asked for' explain --message 'CUDA error: out of memory'
refuses stray_word 2 'out.of.memory|stands alone|explain' explain
finish
