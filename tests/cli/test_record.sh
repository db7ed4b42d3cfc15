#!/bin/bash
# `record`: the trace holds what the program asked, exactly; threads, forks, crashes and failures.
# The driver, CUPTI and the program are stand-ins, so that no card is needed.
# shellcheck disable=SC2317 # functions are called by `check`
set -u
# shellcheck source=tests/cli/lib.bash
. "$(dirname "$0")/lib.bash"

built=$PWD/.build/$TEST_VARIANT
program=$built/tests/record_program
trace=$TEST_TMP/out.trace
if [ ! -x "$program" ] || [ ! -e "$built/liballocrig_record.so" ]; then
    echo "skip record: built without cuda.h or cupti.h"
    exit 0
fi
unset CUDA_INJECTION64_PATH ALLOCRIG_CUPTI

# record ARGUMENTS...: as `run`, with the stand-ins
record() {
    LD_LIBRARY_PATH=$built/tests/cuda_stand_in run record "$@"
}

# events FILE: without header, times, notes and threads
events() {
    grep -v '^[#t!]' "$1" | sed 's/,thread=[0-9]*//'
}

# plays SCENE STATUS [OPTION...]: the trace holds what the program printed, line by line
plays() {
    local scene=$1 wanted=$2 bad=0
    shift 2
    rm -f "$trace"
    record -o "$trace" "$@" -- "$program" "$scene"
    [ "$status" = "$wanted" ] || { echo "  status $status, wanted $wanted: $(cat "$err")" && bad=1; }
    events "$trace" | diff - "$out" || bad=1
    verdict "scene $scene" $bad
}

# said REGEX: the report or the error
said() {
    grep -qE -e "$1" "$err" || { echo "  wanted /$1/, said: $(cat "$err")" && return 1; }
}

# noted LINE...: the trace's notes without allocations, in order
noted() {
    diff <(grep '^!' "$trace" | grep -v '^!,alloc,') <(printf '%s\n' "$@")
}

leaves_nothing() {
    [ -z "$(find "$TEST_TMP" -name '*spool*')" ]
}

# ---- what is recorded ----------------------------------------------------------------------------

plays plain 0
check "counts are told" said '^wrote .*out\.trace: 7 allocations, 7 frees'
check "pinned memory is told" said '2 of the allocations are pinned'
check "managed memory is told" said '1 are managed'
check "refused frees are told" said '2 frees failed'
check "the card is in the header" grep -qx '# card: Stand-in 0' "$trace"
check "the driver is in the header" grep -qx '# recorder: cuda-driver 13.0' "$trace"
check "addresses stand behind their requests" test "$(grep -A1 '^a,' "$trace" | grep -c '^!,alloc,')" = 7
plays ordered 0
check "waits without a record are told" said '1 waits for events'
check "a wait of the host for an event is a note" noted '!,event_synchronize,0'
plays virtual 0
start=$((0x7e << 40))
mib=1048576
check "virtual memory leaves notes" noted "!,reserve,$start,$((16 * mib))" \
    "!,physical_alloc,0,$((2 * mib))" "!,physical_alloc,1,$((4 * mib))" \
    "!,segment_map,$start,$((2 * mib)),0" "!,segment_map,$((start + 2 * mib)),$((4 * mib)),0" \
    "!,segment_map,$((start + 8 * mib)),$((2 * mib)),0" "!,access,$start,$((6 * mib))" \
    "!,oom,$((85017493504 - 500 * mib - 6 * mib))" "!,segment_unmap,$start,$((6 * mib)),0" \
    "!,segment_unmap,$((start + 8 * mib)),$((2 * mib)),0" '!,physical_free,0' '!,physical_free,1' \
    "!,unreserve,$start,$((16 * mib))"
plays runtime 0
plays kernels 0 --kernels
check "kernels are told" said '10 kernels$'
record -o "$trace" -- "$program" kernels
check "without --kernels there are none" test "$(events "$trace" | grep -c '^k')" = 0
plays failing 7
check "the exit status is told" said 'ended with status 7; its trace is written'
check "a failed program's trace is not complete" grep -qx '# complete: no' "$trace"
plays fork 0
check "a forked child is a tenant" said '2 processes, each a tenant'
plays fork_first 0
check "a child that begins by itself is a tenant" said '2 processes, each a tenant'

# ---- many threads --------------------------------------------------------------------------------

# Sizes tell thread and place: 1000000 x thread + place. Each thread of the trace is one of the
# program, its requests are all there and in order, and no address is in use twice.
threads_agree() {
    awk -F , '
        function wrong(text) { if (bad++ < 5) print "  line " FNR ": " text }
        function thread_of(    i) {
            for (i = 3; i <= NF; i++) if ($i ~ /^thread=/) return substr($i, 8)
            return 0
        }
        /^a,/ {
            who = int($3 / 1000000); nth = $3 % 1000000; thread = thread_of()
            if (!(who in name)) name[who] = thread
            if (name[who] != thread) wrong("another thread asked")
            if (nth != ++asked[who]) wrong("out of order")
            size[$2] = $3; total++
        }
        /^!,alloc,/ {
            if ($3 in live) wrong("address in use twice")
            live[$3] = total - 1; where[total - 1] = $3
        }
        /^f,/ {
            if (!($2 in where)) { wrong("free of what is not there") }
            delete live[where[$2]]; delete where[$2]; freed++
        }
        END {
            for (who in asked) { threads++; if (asked[who] != 3000) wrong("requests are missing") }
            if (threads != 8 || total != 24000 || freed != 24000 - 64) wrong("counts")
            exit bad != 0
        }' "$trace"
}
record -o "$trace" -- "$program" threads
check "eight threads end well" test "$status" = 0
check "eight threads are recorded exactly" threads_agree
check "no address seems in use twice" test -z "$(grep 'went with their context' "$err")"
check "the trace is readable" quietly "$ALLOCRIG" inspect "$trace"

# ---- a crash -------------------------------------------------------------------------------------

record -o "$TEST_TMP/crash.bin" -- "$program" crash
check "a killed program's status is passed on" test "$status" = 137
check "a killed program is told" said 'ended by signal 9 .*its trace is written'
check "all it asked before is there" said '5000 allocations, 2500 frees, mean overhead [0-9]{1,7} ns'
check "and reads" quietly "$ALLOCRIG" inspect "$TEST_TMP/crash.bin"
check "no spools are left" leaves_nothing

# The recorder itself is killed: what the program asked is in the spools.
killed_recorder() {
    { "$ALLOCRIG" record -o "$TEST_TMP/killed.trace" -- \
        sh -c "$program plain; kill -KILL \$PPID" >"$out" 2>"$err"; } 2>/dev/null
    [ ! -e "$TEST_TMP/killed.trace" ] &&
        run record -o "$TEST_TMP/killed.trace" --from "$TEST_TMP"/killed.trace.spool-* &&
        events "$TEST_TMP/killed.trace" >"$TEST_TMP/killed.events" &&
        diff "$TEST_TMP/killed.events" <("$program" plain 2>"$err")
}
export LD_LIBRARY_PATH=$built/tests/cuda_stand_in
check "spools of a killed recorder read" killed_recorder
unset LD_LIBRARY_PATH
rm -rf "$TEST_TMP"/killed.trace*

# A limit on the size of files loses records, and not the program.
limited() { # BLOCKS OF 1 KiB
    rm -f "$trace"
    (ulimit -f "$1" && LD_LIBRARY_PATH=$built/tests/cuda_stand_in exec "$ALLOCRIG" record -o "$trace" -- "$program" long) >"$out" 2>"$err"
    status=$?
}
limited 1
check "no room ends no program" test "$status" = 3
check "no room is said" said 'nothing was recorded: there was no room for the records; is the disk full'
limited 600
check "little room ends no program" test "$status" = 0
check "lost records are told" said '[0-9]+ records are missing, because the disk was full'

# ---- what cannot be recorded ---------------------------------------------------------------------

export LD_LIBRARY_PATH=$built/tests/cuda_stand_in
refuses "no such command" 2 'record_no_such: cannot be run: No such file' record -o "$trace" -- record_no_such
refuses "no command" 2 'no command is given' record -o "$trace"
refuses "no file" 2 'no output file is given' record -- true
refuses "an ending that says nothing" 2 'the ending does not tell' record -o "$TEST_TMP/x" -- true
refuses "no folder" 2 'no folder can be made' record -o "$TEST_TMP/none/x.trace" -- true
refuses "words before --" 2 'write -- before' record -o "$trace" true
refuses "a program without CUDA" 3 'made no CUDA driver call' record -o "$trace" -- true
refuses "a failing program without CUDA" 1 'ended with status 1; nothing was recorded' \
    record -o "$trace" -- false
# unrecorded REGEX: at once by the process, at the end by the command, with status 3
unrecorded() {
    record -o "$trace" -- "$program" silent
    [ "$status" = 3 ] && [ "$(wc -l <"$err")" = 2 ] && [ ! -s "$out" ] &&
        said "^allocrig: process [0-9]+ is not recorded: .*$1" &&
        said "^allocrig: nothing was recorded: .*$1"
}
STAND_IN_CUPTI=refuse check "another profiler" unrecorded 'another profiler holds'
ALLOCRIG_CUPTI=/none/libcupti.so check "a libcupti that is not there" unrecorded 'ALLOCRIG_CUPTI=/none'
CUDA_INJECTION64_PATH=/other.so refuses "another tool's injection" 2 'another tool records' \
    record -o "$trace" -- true
unset LD_LIBRARY_PATH
if ! ldconfig -p 2>/dev/null | grep -q 'libcuda\.so\.1'; then
    refuses "no driver" 3 'there is no NVIDIA driver' record -o "$trace" -- true
fi
check "no spools are left by refusals" leaves_nothing

# ---- recordings of real programs -----------------------------------------------------------------------

# file, requests: as many as the recorder counted on the card
recording() {
    run run -p torch -w "workloads/data/driver/$1.bin.zst" --csv "$TEST_TMP/recording.csv"
    check "recording.$1" [ "$(awk -F, 'NR == 1 { for (i = 1; i <= NF; i++) c[$i] = i } NR == 2 { print $c["passed"], $c["allocs"] }' "$TEST_TMP/recording.csv")" = "true $2" ]
}
recording torch_tape 2414
recording torch_products 306
recording cupy_tape 2010
recording cupy_products 306
recording jax_tape 2654
recording jax_products 1468
recording jax_embedding 907
finish
