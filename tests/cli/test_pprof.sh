#!/bin/bash
# Files of JAX and XLA beyond unit/cases/format_xla: device memory profiles, of which pprof.py makes small ones; a buffer
# assignment with its live ranges beside it; two files recorded with JAX 0.10.2 on the host, two devices.
set -u
# shellcheck source=tests/cli/lib.bash
. "$(dirname "$0")/lib.bash"
python3 tests/cli/pprof.py "$ALLOCRIG" "$TEST_TMP"

cat >"$TEST_TMP/m-buffer-assignment.txt" <<'END'
BufferAssignment:
allocation 0: size 64, preallocated-temp:
 value: <5 dot.4 @0> (size=32,offset=0): f32[8]{0}
 value: <6 t{1} @0> (size=32,offset=32): f32[8]{0}
 value: <7 no @0> (size=4,offset=32): f32[1]{0}
END
cat >"$TEST_TMP/m-live-range.txt" <<'END'
HloLiveRange (max 9):
  InstructionSequence:
    0:dot.4
  BufferLiveRange:
    dot.4{}:1-2
    t{1}:2-9
    bad:2-x
    worse
  Live ranges at 2 (peak):
    dot.4{}: 32 bytes (cumulative: 32 bytes)
END
run convert "$TEST_TMP/m-buffer-assignment.txt" "$TEST_TMP/m.txt"
check values_have_their_live_ranges [ "$(grep value "$TEST_TMP/m.txt" | tr '\n' ' ')" = \
    '!,value,0,0,32,dot.4,1,2 !,value,0,32,32,t{1},2,9 !,value,0,32,4,no ' ]

for file in step.prof:5:64.00 step-buffer-assignment.txt:16:80.02; do
    IFS=: read -r name events peak <<<"$file"
    run inspect "tests/golden/data/jax/$name"
    check "${name}_has_its_events" says "^events +$events,"
    check "${name}_has_its_peak" says "^live peak +$peak KiB"
done
run inspect tests/golden/data/jax/step.prof
check step.prof_has_a_second_gpu says "^name +step.prof gpu1"
finish
