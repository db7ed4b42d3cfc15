#!/bin/bash
# Files of profilers and logs of allocators that are read as traces: recognised by content, packed
# or not; what is refused, and that a hostile file costs no memory.
set -u
# shellcheck source=tests/cli/lib.bash
. "$(dirname "$0")/lib.bash"
tmp=$TEST_TMP
events() { # FILE: the events of a trace in text, on one line
    grep -v '^#' "$1" | paste -sd ' '
}
refused() { # NAME REGEX: the last `bounded` run refused its file with such a sentence, left nothing
    local bad=1
    if [ "$status" = 2 ] && [ "$(wc -l <"$err")" = 1 ] && grep -qE -e "$2" "$err" && [ ! -e "$tmp/x.txt" ]; then
        bad=0
    else
        echo "  status $status, said: $(head -n 3 "$err")"
    fi
    verdict "$1" $bad
}
memory() { # ADDRESS BYTES MICROSECONDS
    printf '{"ph": "i", "cat": "cpu_instant_event", "name": "[memory]", "ts": %s,\n  "args": {"Device Type": 1, "Device Id": 0, "Addr": %s, "Bytes": %s}}' "$3" "$1" "$2"
}

# -- Kineto
{
    printf '{"schemaVersion": 1, "deviceProperties": [{"id": 0, "name": "a card", "totalGlobalMem": 1073741824}],\n"traceEvents": [\n'
    printf '%s,\n' "$(memory 8192 1024 17.5)" "$(memory 4096 512 '"16"')" "$(memory 16384 -2048 18)" "$(memory 8192 -1024 19)"
    printf '{"ph": "X", "cat": "kernel", "name": "gemm<{[\\"]}>", "ts": 18.25, "dur": 2, "args": {"stream": 7, "device": 0}}\n], "traceName": "x"}\n'
} >"$tmp/kineto"
check kineto quietly "$ALLOCRIG" convert "$tmp/kineto" "$tmp/k.txt"
check kineto_events [ "$(events "$tmp/k.txt")" = \
    'a,0,2048,initial=yes !,alloc,16384 t,0 a,1,512 !,alloc,4096 t,1500 a,2,1024 !,alloc,8192 t,2000 f,0 t,2250 k,0,2000 t,3000 f,2' ]
check kineto_card grep -qx '# card: a card' "$tmp/k.txt"
check kineto_capacity grep -qx '# capacity: 1073741824' "$tmp/k.txt"
gzip -c "$tmp/kineto" >"$tmp/kineto.packed"
check kineto_packed quietly "$ALLOCRIG" convert "$tmp/kineto.packed" "$tmp/packed.txt"
check kineto_packed_is_the_same [ "$(events "$tmp/k.txt")" = "$(events "$tmp/packed.txt")" ]
check kineto_is_replayed quietly "$ALLOCRIG" run -d sim -p torch -w "$tmp/kineto"
check kineto_is_inspected quietly "$ALLOCRIG" inspect "$tmp/kineto"
check kineto_is_listed quietly "$ALLOCRIG" list formats kineto
head -c 300 "$tmp/kineto" >"$tmp/bad"
refuses kineto_cut_off 2 "$tmp/bad:5: byte 300: the file ends in the middle of its JSON" convert "$tmp/bad" "$tmp/x.txt"
printf '{"traceEvents": [{"ph": "X", "cat": "cpu_op", "name": "aten::add"}]}' >"$tmp/bad"
refuses kineto_without_memory 2 "$tmp/bad: .* no events of GPU memory" convert "$tmp/bad" "$tmp/x.txt"

# -- the raw memory timeline
echo '[[-1, 1, 4096, 0], [1700000000000000000, 2, 512, 3], [1700000000000000700, 4, -512, 3]]' >"$tmp/timeline"
check timeline quietly "$ALLOCRIG" convert "$tmp/timeline" "$tmp/t.txt"
check timeline_events [ "$(events "$tmp/t.txt")" = 'a,0,4096,tag=parameter,initial=yes t,0 a,1,512,tag=temporary t,700 f,1' ]
echo '[[1700000000000000, 1700000000000001], [[0, 1], [0, 2]]]' >"$tmp/bad"
refuses timeline_that_is_plotted 2 "$tmp/bad:1: .* the row has 2 numbers" convert "$tmp/bad" "$tmp/x.txt"

# -- out-of-memory dumps
where='2025-01-05 09:48:28.754214: I external/xla/xla/tsl/framework/bfc_allocator.cc:1114]'
printf "$where %s\n" 'Allocator (GPU_0_bfc) ran out of memory trying to allocate 1.0KiB (rounded to 1024)requested by op ' \
    'Next region of size 1024' 'InUse at 7f00 of size 768 next 1' 'Free  at 8200 of size 256 next 2' \
    'Stats: ' >"$tmp/log"
printf '%s\n' 'Limit:       1024' 'InUse:        768' '' \
    'RESOURCE_EXHAUSTED: Out of memory while trying to allocate 1000 bytes.' >>"$tmp/log"
check jax_dump quietly "$ALLOCRIG" convert "$tmp/log" "$tmp/j.txt"
check jax_dump_events [ "$(events "$tmp/j.txt")" = \
    '!,segment,32512,1024,0 !,block,32512,768,0 !,block,33280,256,free a,0,768,initial=yes a,1,1000 !,oom r,1' ]
check jax_dump_limit grep -qx '# limit: 1024' "$tmp/j.txt"
check jax_dump_died grep -qx '# complete: no' "$tmp/j.txt"
check jax_dump_is_met quietly "$ALLOCRIG" fidelity "$tmp/log"
sed 's,external/xla/xla/tsl,tensorflow/core/common_runtime,' "$tmp/log" >"$tmp/log2"
check tf_dump quietly "$ALLOCRIG" convert "$tmp/log2" "$tmp/tf.txt"
check tf_dump_events [ "$(events "$tmp/tf.txt")" = "$(events "$tmp/j.txt")" ]
check tf_dump_recorder grep -qx '# recorder: tensorflow' "$tmp/tf.txt"
grep -v ' at ' "$tmp/log" >"$tmp/bad"
refuses dump_without_chunks 2 "$tmp/bad: the log holds no dump" convert "$tmp/bad" "$tmp/x.txt"

# -- hostile
{
    printf '{"traceEvents":['
    head -c 1000000 /dev/zero | tr '\0' '['
} >"$tmp/bad"
bounded 262144 convert "$tmp/bad" "$tmp/x.txt"
refused million_brackets "$tmp/bad:1: .*more than 256 brackets are open"
head -c 1000000 /dev/zero | tr '\0' '[' >"$tmp/bad"
bounded 262144 convert "$tmp/bad" "$tmp/x.txt"
refused million_brackets_alone "$tmp/bad:1: "
{
    printf '{"traceEvents":[{"name":"' | gzip
    head -c 1000000 /dev/zero | tr '\0' 'x' | members 20
} >"$tmp/bad"
bounded 262144 convert "$tmp/bad" "$tmp/x.txt"
refused string_without_end 'the file ends in the middle of its JSON'
{
    printf '{"traceEvents":[{"name":"[memory]","ts":'
    head -c 10000000 /dev/zero | tr '\0' '9'
} >"$tmp/bad"
bounded 262144 convert "$tmp/bad" "$tmp/x.txt"
refused number_without_end 'a number has more than 128 bytes'
{
    echo 'BFCAllocator dump for x'
    echo '99999999 Chunks of size 256 totalling 23GiB'
} >"$tmp/bad"
bounded 262144 convert "$tmp/bad" "$tmp/x.txt"
refused summary_bomb "$tmp/bad:2: the summary names more than 65536 chunks"
{
    echo 'BFCAllocator dump for x'
    head -c 5000 /dev/zero | tr '\0' '\n'
} >"$tmp/bad"
truncate -s 300000000 "$tmp/bad" # takes no room on the disk
bounded 262144 convert "$tmp/bad" "$tmp/x.txt"
refused long_line 'the log holds no dump'

# -- what a file is, its bytes say, never its name
mlp=tests/golden/data/kineto/mlp.json.gz
quietly "$ALLOCRIG" convert $mlp "$tmp/mlp.trace"
for name in mlp.pickle mlp.csv mlp.csv.gz mlp.sqlite mlp; do
    cp $mlp "$tmp/$name"
    quietly "$ALLOCRIG" convert "$tmp/$name" "$tmp/named.trace"
    check "named_$name" [ "$(grep -v '^# name' "$tmp/named.trace" | sha256sum)" = "$(grep -v '^# name' "$tmp/mlp.trace" | sha256sum)" ]
    refuses "fidelity_of_$name" 2 "a profiler's trace tells where blocks were placed but not the segments" fidelity "$tmp/$name"
done

finish
