#!/bin/bash
# Workloads of several GPUs: every command answers for each GPU by itself, or for the one selected.
set -u
# shellcheck source=tests/cli/lib.bash
. "$(dirname "$0")/lib.bash"
tmp=$TEST_TMP

# GPU 0 has 12 MiB live, GPU 1 20 MiB: together 32 MiB, which no GPU needs.
{
    echo '# allocrig-trace 1'
    echo '# recorder: torch 2.9.0'
    for id in 0 1; do echo "a,$id,6291456,0,device=0"; done
    for id in 2 3 4 5 6 7 8 9 10 11; do echo "a,$id,2097152,0,device=1"; done
    echo m,step
} >"$tmp/two.trace"
two=$tmp/two.trace

# -- run: a group of rows for each GPU, the same as of the trace of that GPU alone
quietly "$ALLOCRIG" convert "$two" "$tmp/one.trace" --device 1
run run -p direct -p vmm -w "$two" -d sim:capacity=24MiB --csv "$tmp/two.csv" --json "$tmp/two.json" --require-pass
check each_passes [ "$status" = 0 ]
check each_has_a_group [ "$(grep -cE '^two gpu[01]: ' "$out")" = 2 ]
check live_peaks_are_apart [ "$(awk '$2 == "direct" { print $3 }' "$out" | xargs)" = '12.0 20.0' ]
check rows_have_names [ "$(cut -d, -f3,4 "$tmp/two.csv" | sed -n '2,$p' | sort -u | xargs -d '\n')" = \
    "two gpu0,$two:device=0 two gpu1,$two:device=1" ]
column() { cut -d, -f"$1" "$tmp/$2.csv" | sed -n '2,$p'; }
run run -p direct -p vmm -w "$tmp/one.trace" -d sim:capacity=24MiB --csv "$tmp/one.csv"
check as_if_alone [ "$(sed -n 's/,two gpu1,[^,]*,[^,]*,/,/p' "$tmp/two.csv" | cut -d, -f3- | sed 's/,[0-9.]*$//' | head -1)" = \
    "$(sed -n '2,$s/,two,[^,]*,[^,]*,/,/p' "$tmp/one.csv" | cut -d, -f3- | sed 's/,[0-9.]*$//' | head -1)" ]
refuses one_run_for_a_file 2 'name one policy and one workload, and select one GPU with --device N$' \
    run -p direct -w "$two" -d sim --series "$tmp/series.csv"
run compare "$tmp/two.json" "$tmp/two.json"
check rows_compare [ "$status" = 0 ]
run run -p direct -w "$two" -d 1 -d sim --csv -
check one_is_selected [ "$(grep -c "$two:device=1" "$out")" = 1 ]
check only_one [ "$(grep -c "device=0" "$out")" = 0 ]
run run -p direct -w "$two:device=0" -d sim
check one_in_the_text [ "$(grep -cE '^two gpu[01]: ' "$out")" = 1 ]

# -- a suite, and a sweep of it
printf '[policies]\ndirect\n[workloads]\n%s\n[devices]\nsim\n' "$two" >"$tmp/s.ini"
run run "$tmp/s.ini"
check suite_by_gpu [ "$(grep -cE '^two gpu[01]: ' "$out")" = 2 ]
printf '[grid]\nsim:capacity = 24MiB 32MiB\n' >>"$tmp/s.ini"
run sweep "$tmp/s.ini" --csv "$tmp/sweep.csv" --journal "$tmp/journal"
check sweep_by_gpu [ "$(column 4 sweep | sort | uniq -c | awk '{ print $1 }' | xargs)" = '2 2' ]

# -- capacity
run capacity -p direct -w "$two" --json "$tmp/capacity.json"
check capacity_by_gpu [ "$(sed -n 's/.*"safe_bytes": //p' "$tmp/capacity.json" | head -2 | xargs)" = '12582912, 20971520,' ]
check capacity_names [ "$(grep -cE '^two gpu[01]: live peak (12|20)\.00 MiB' "$out")" = 2 ]

sed 's/^m,step/a,12,2097152,0,device=2\nm,step/' "$two" >"$tmp/third.trace"
run capacity -p torch -w "$tmp/third.trace" -d 2
check a_gpu_with_little_passes grep -qE '^1  torch +20\.0 +20\.0 ' "$out"
run advise "$tmp/third.trace" --capacity 48MiB -d 2
check its_need_is_known grep -qE '^->1 +20\.0 +20\.0 +yes ' "$out"
run explain "$tmp/third.trace" -p torch -d sim:capacity=8MiB -d 2
check explain_says_how_much says 'passes with a capacity of 20\.00 MiB and above'

# -- advise: GPUs are as ranks of one program
run advise "$two" --capacity 22MiB --json "$tmp/advise.json"
check advise_fits [ "$(grep -cE '^Fits in 22\.00 MiB as it is' "$out")" = 2 ]
check advise_peaks [ "$(grep -oE 'live peak is [0-9.]+ MiB' "$out" | xargs)" = 'live peak is 12.00 MiB live peak is 20.00 MiB' ]
check advise_together says 'All of them fit in 22.00 MiB with the default settings of PyTorch, as they are'
check advise_keys [ "$(grep -oE '"trace": .*:device=[01]"' "$tmp/advise.json" | wc -l)" = 2 ]
run advise "$two" --capacity 22MiB --device 1
check advise_one [ "$(grep -c 'as it is' "$out")" = 1 ]
cp "$two" "$tmp/four.trace"
refuses advise_batches 2 'several GPUs; select one with --device N' advise "$two" "$tmp/four.trace" --batches 1,2 --capacity 1GiB

# -- explain
run explain "$two" -p direct -d sim:capacity=15MiB
check explain_fails grep -qE '^two gpu1 with direct: event 7, in step 1 of 1 requests 2\.000 MiB' "$out"
check explain_serves grep -qE '^two gpu0 with direct.* every request was served' "$out"
check explain_live says 'live peak of the whole trace is 20\.00 MiB'
run explain "$two" -p direct -d sim:capacity=15MiB -d 0
check explain_one not says gpu1

# -- bound, inspect, minimize
run bound "$two"
check bound_by_gpu [ "$(grep -cE '^two gpu(0: 2|1: 10) blocks, live peak (12|20)\.00 MiB$' "$out")" = 2 ]
refuses bound_one_plan 2 'select it with --device N' bound "$two" --plan "$tmp/plan.csv"
run bound "$two" --device 1 --json -
check bound_one grep -q '"live_peak_bytes": 20971520' "$out"
run inspect "$two"
check inspect_by_gpu [ "$(grep -E '^live peak|^name' "$out" | awk '{ print $3 }' | xargs)" = 'gpu0 12.00 gpu1 20.00' ]
refuses minimize_one 2 'several GPUs; select one with --device N' minimize "$two" --until fails -p torch -o "$tmp/m.trace"
run minimize "$two" --until fails -p direct -d sim:capacity=15MiB -d 1 -o "$tmp/m.trace"
check minimize_selected grep -q device=1 "$tmp/m.trace"

# -- what cannot be
refuses no_such_gpu 2 'two\.trace: it has no requests of GPU 3; it has those of GPU 0, 1$' run -p direct -w "$two" -d 3 -d sim
refuses no_number 2 'only :device=N is known' run -p direct -w "$two:device=" -d sim
refuses two_gpus 2 'GPU 0 and GPU 1: select one' run -p direct -w "$two" -d 0 -d 1
refuses gpu_of_a_generator 2 'random is a generator, which has one GPU' run -p direct -w random -d 0
refuses other_gpu 2 'selects a GPU, and --device 1 another one' run -p direct -w "$two:device=0" -d 1 -d sim
refuses given_twice 2 'is given twice' run -p direct -w "$two" -w "$two:device=0" -d sim
sed 's/device=1/device=100/' "$two" >"$tmp/far.trace"
refuses far_gpu 2 'GPUs with numbers from 64 up; select one GPU' run -p direct -w "$tmp/far.trace" -d sim
run run -p direct -w "$tmp/far.trace" -d 100 -d sim
check far_gpu_selected grep -q '^far gpu100: ' "$out"
printf '[machine]\ncard = sim\n[tenant a]\npolicy = torch\nworkload = %s\n' "$two" >"$tmp/t.ini"
refuses tenant_has_one 2 'it has requests of several GPUs; select one: .*two\.trace:device=N' tenants "$tmp/t.ini"

# -- files of other programs: a snapshot, a profiler's trace, a log
entry() { # ACTION ADDRESS BYTES TIME
    printf '{"action": "%s", "addr": %s, "size": %s, "stream": 0, "time_us": %s, "frames": []}' "$@"
}
{
    printf '{"segments": [], "device_traces": [['
    entry segment_alloc 268435456 20971520 10; echo ,
    entry alloc 268435456 20971520 11; echo '], [], ['
    entry segment_alloc 536870912 2097152 13; echo ,
    entry alloc 536870912 512 14; echo ']]}'
} >"$tmp/snapshot.json"
run capacity -p torch -w "$tmp/snapshot.json"
check snapshot_by_gpu [ "$(grep -oE '^snapshot gpu[0-9]: live peak [0-9.]+ [MB]' "$out" | xargs)" = \
    'snapshot gpu0: live peak 20.00 M snapshot gpu2: live peak 512 B' ]
{
    echo '{"schemaVersion": 1, "deviceProperties": [], "traceEvents": ['
    for gpu in 0 1 2; do
        printf '{"ph": "i", "cat": "cpu_instant_event", "name": "[memory]", "pid": 1, "tid": 1, "ts": %s, "args": {' "$((gpu + 1))"
        printf '"Total Allocated": 0, "Total Reserved": 0, "Device Type": 1, "Device Id": %s, "Addr": 4096, "Bytes": %s}},\n' "$gpu" "$(((gpu + 1) * 1048576))"
    done
    echo '{"ph": "X", "cat": "none", "name": "end", "pid": 1, "tid": 1, "ts": 9, "dur": 1, "args": {}}]}'
} >"$tmp/kineto.json"
run bound "$tmp/kineto.json"
check kineto_by_gpu [ "$(grep -oE 'gpu[0-9]: 1 blocks, live peak [0-9]' "$out" | awk '{ print $NF }' | xargs)" = '1 2 3' ]
{
    for gpu in 0 1; do
        printf '{"kind":"replay","event":"makeMemoryResource","payload":{"name":"DEVICE::%s"},"result":"0x%s"}\n' $gpu $((10 + gpu))
        printf '{"kind":"replay","event":"allocate","payload":{"allocator_ref":"0x%s","size":%s},"result":{"memory_ptr":"0x40"}}\n' \
            $((10 + gpu)) $(((gpu + 1) * 1000))
    done
} >"$tmp/umpire.json"
run inspect "$tmp/umpire.json"
check umpire_by_gpu [ "$(grep -E '^live peak|^name' "$out" | awk '{ print $3 }' | xargs)" = 'gpu0 1000 gpu1 1.953' ]
check umpire_report_remains says 'import of .*umpire\.json, read as umpire'

# A converted trace has the notes of all GPUs, which name none.
quietly "$ALLOCRIG" convert "$tmp/snapshot.json" "$tmp/converted.trace"
refuses converted_has_no_notes 2 'give the recording itself, or convert it with --device N' fidelity "$tmp/converted.trace"
run bound "$tmp/converted.trace"
check converted_by_gpu [ "$(grep -cE '^converted gpu[02]: |^snapshot gpu[02]: ' "$out")" = 2 ]

# -- two settings of a program with two GPUs, predicted from each other by GPU
cp "$tmp/snapshot.json" "$tmp/prog.a.json"
cp "$tmp/snapshot.json" "$tmp/prog.b.json"
run advise --what-if "$tmp/prog.a.json" "$tmp/prog.b.json"
check what_if_by_gpu [ "$(grep -oE '`prog gpu[02]` \| [ab] \| [ab]' "$out" | sort | uniq -c | awk '{ print $1 }' | xargs)" = '1 1 1 1' ]
finish
