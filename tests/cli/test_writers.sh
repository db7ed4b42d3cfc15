#!/bin/bash
# What is written for other programs: snapshots, timelines, latencies, logs and lifetimes; and that
# `convert` loses nothing that `fidelity` needs.
set -u
# shellcheck source=tests/cli/lib.bash
. "$(dirname "$0")/lib.bash"
tmp=$TEST_TMP
data=workloads/data
tape=$data/tape_small.default.csv.gz

# -- more driver calls than are kept before they are written (2^20): none is missing
if [ "${TEST_VARIANT:-release}" = release ]; then
    "$ALLOCRIG" run -d sim -p direct -w random:events=1060000,min=1KiB,max=64KiB,target=1MiB --metrics none --calls "$tmp/calls.csv" >/dev/null
    check each_driver_call_has_a_row [ "$(tail -n 1 "$tmp/calls.csv" | cut -d, -f1),$(wc -l <"$tmp/calls.csv")" = 1059999,1060001 ]
    rm "$tmp/calls.csv"
fi

# -- recorded traces: text, binary and text again are the same bytes, and say the same
for file in "$data"/*.csv.gz; do
    name=$(basename "$file" .csv.gz)
    case $name in lora_recompute.* | gpt2_* | dlrm_* | streams_* | resnet50_train.default) long "same_bytes_$name" "recording_agrees_$name" "fidelity_says_the_same_$name" || continue ;; esac
    quietly "$ALLOCRIG" convert "$file" "$tmp/1.txt" && quietly "$ALLOCRIG" convert "$tmp/1.txt" "$tmp/2.bin" &&
        quietly "$ALLOCRIG" convert "$tmp/2.bin" "$tmp/3.txt"
    check "same_bytes_$name" cmp "$tmp/1.txt" "$tmp/3.txt"
    "$ALLOCRIG" fidelity "$file" >"$tmp/said"
    verdict "recording_agrees_$name" $?
    for form in 1.txt 2.bin; do
        "$ALLOCRIG" fidelity "$tmp/$form" >"$tmp/says"
        check "fidelity_says_the_same_${name}_$form" cmp "$tmp/said" "$tmp/says"
    done
done
check statistics_are_kept grep -q '^# stat: reserved_bytes.all.peak ' "$tmp/1.txt"
check statistics_are_compared grep -qE '^ +final statistics +([0-9]+) of +\1 ' "$tmp/says"
printf '# allocrig-trace 1\n# stat: x\na,0,1\n' >"$tmp/bad.txt"
refuses statistic_without_a_number 2 'bad.txt:2: stat: "x" must be a name, a blank and a whole number' inspect "$tmp/bad.txt"

# -- snapshots
opens() { # NAME FILE EXPRESSION: Python's unpickler takes it and the expression over `d` holds
    if command -v python3 >/dev/null; then
        check "$1" python3 -c "import pickle, sys
d = pickle.load(open(sys.argv[1], 'rb'))
t = d['device_traces'][0]
for s in d['segments']:
    assert s['total_size'] == sum(b['size'] for b in s['blocks'])
    assert s['allocated_size'] == sum(b['size'] for b in s['blocks'] if b['state'] == 'active_allocated')
assert $3" "$2"
    fi
}
check recording_as_snapshot quietly "$ALLOCRIG" convert "$data/graphs.default.csv.gz" "$tmp/g.pickle"
opens recording_opens "$tmp/g.pickle" "len(t) == 462 and len(d['segments']) == 27"
opens recording_has_pools "$tmp/g.pickle" "any(s['segment_pool_id'] == (1, 0) for s in d['segments'])"
check the_same_bytes_again quietly "$ALLOCRIG" convert "$data/graphs.default.csv.gz" "$tmp/again" --format snapshot
check the_same_bytes_are cmp "$tmp/g.pickle" "$tmp/again"
check protocol_is_4 [ "$(head -c 2 "$tmp/g.pickle" | od -An -tx1)" = ' 80 04' ]
check compressed quietly "$ALLOCRIG" convert "$data/graphs.default.csv.gz" "$tmp/g.pickle.zst"
check compressed_is_zstd [ "$(head -c 4 "$tmp/g.pickle.zst" | od -An -tx1)" = ' 28 b5 2f fd' ]
refuses trace_without_addresses 2 'holds no addresses.*run -p POLICY' gen order_flip -o "$tmp/x.pickle"
for policy in torch torch:expandable_segments=true growth vmm gmlake async direct; do
    check "run_as_snapshot_$policy" quietly "$ALLOCRIG" run -d sim -p "$policy" -w stash_restore --snapshot "$tmp/r.pickle"
    opens "run_opens_$policy" "$tmp/r.pickle" "sum(e['action'] == 'alloc' for e in t) == 3864"
done
for policy in torch torch:expandable_segments=true growth greedy vmm gmlake async direct slab cupy tlsf rmm-pool; do
    quietly "$ALLOCRIG" run -d sim -p "$policy" -w random:events=3000,seed=3 --snapshot "$tmp/r.pickle"
    conf=
    [ "$policy" != torch:expandable_segments=true ] || conf=expandable_segments:True
    check "run_can_be_undone_$policy" python3 tests/cli/undo.py "$tmp/r.pickle" "$conf"
done
run run -d sim:capacity=1GiB -p torch -w "$tape" --snapshot "$tmp/oom.pickle"
check run_out_of_memory_ends_well [ "$status" = 0 ]
opens run_out_of_memory_says_so "$tmp/oom.pickle" "any(e['action'] == 'oom' and e['device_free'] < e['size'] for e in t)"
quietly "$ALLOCRIG" run -d sim -p torch:max_split_size_mb=64 -w order_flip --snapshot "$tmp/s.pickle"
opens run_has_its_settings "$tmp/s.pickle" "d['allocator_settings']['max_split_size'] == 64 << 20"
# Changes of the settings and of the limit are written where the program made them.
printf '%s\n' '# allocrig-trace 1' a,0,1000000 '!,settings,max_split_size_mb:80' a,1,30000000 '!,limit,1073741824' f,0 '!,settings,' \
    a,2,30000000 '!,limit,2147483648' >"$tmp/changes.trace"
quietly "$ALLOCRIG" run -d sim -p torch:max_split_size_mb=64 -w "$tmp/changes.trace" --snapshot "$tmp/s.pickle"
quietly "$ALLOCRIG" convert "$tmp/s.pickle" "$tmp/back.trace"
notes() { grep -E '^(a|f|!,settings|!,limit)' "$1"; }
check run_has_its_changes [ "$(notes "$tmp/back.trace")" = "$(notes "$tmp/changes.trace")" ]
check run_has_the_settings_of_its_start grep -qx '# conf: max_split_size_mb:64' "$tmp/back.trace"
check fidelity_of_a_run_with_changes quietly "$ALLOCRIG" fidelity "$tmp/s.pickle"
"$ALLOCRIG" run -d sim -p torch -w "$tape" --csv - >"$tmp/plain.csv"
"$ALLOCRIG" run -d sim -p torch -w "$tape" --csv - --snapshot "$tmp/s.pickle" --chrome "$tmp/c.json" >"$tmp/watched.csv"
check figures_are_the_same cmp "$tmp/plain.csv" "$tmp/watched.csv"

# -- snapshots are read again
events() { # FILE
    "$ALLOCRIG" convert "$1" "$tmp/e.txt" >/dev/null && grep -v '^#' "$tmp/e.txt"
}
for name in graphs.default side_streams.default lora_recompute.limit5 resnet50_train.expandable; do
    case $name in lora_recompute.*) long "events_come_back_$name" "there_are_events_$name" "fidelity_of_the_snapshot_$name" || continue ;; esac
    quietly "$ALLOCRIG" convert "$data/$name.csv.gz" "$tmp/1.pickle"
    events "$tmp/1.pickle" >"$tmp/1.events"
    quietly "$ALLOCRIG" convert "$tmp/e.txt" "$tmp/2.pickle"
    events "$tmp/2.pickle" >"$tmp/2.events"
    check "events_come_back_$name" cmp "$tmp/1.events" "$tmp/2.events"
    check "there_are_events_$name" [ "$(wc -l <"$tmp/1.events")" -gt 500 ]
    check "fidelity_of_the_snapshot_$name" quietly "$ALLOCRIG" fidelity "$tmp/2.pickle"
done
for policy in torch torch:max_split_size_mb=64 torch:expandable_segments=true; do
    quietly "$ALLOCRIG" run -d sim -p "$policy" -w fsdp_runahead --snapshot "$tmp/f.pickle"
    run fidelity "$tmp/f.pickle"
    check "what_torch_did_is_what_torch_does_$policy" [ "$status" = 0 ]
    check "with_its_settings_$policy" grep -qE '^ +requests and frees +([1-9][0-9]+) of +\1 ' "$out"
done

# -- a timeline
json() { # NAME EXPRESSION over d, by Python where it is
    if command -v python3 >/dev/null; then
        check "$1" python3 -c "import json, sys; d = json.load(open(sys.argv[1])); e = d['traceEvents']; assert $2" "$tmp/c.json"
    fi
}
json timeline_has_counters "{x['name'] for x in e if x['ph'] == 'C'} == {'live', 'granted', 'reserved', 'physical'}"
json timeline_has_calls "sum(x['ph'] == 'X' for x in e) == d['otherData']['driver_calls'] == 15"
json timeline_has_steps "sum(x['ph'] == 'i' for x in e) == 360"
check timeline_is_thinned quietly "$ALLOCRIG" run -d sim -p torch -w "$tape" --chrome "$tmp/c.json" --chrome-most 400
json timeline_is_small "sum(x['ph'] == 'C' for x in e) <= 400"
quietly "$ALLOCRIG" run -d sim -p direct -w gradient_tape:steps=30 --chrome "$tmp/whole.json"
quietly "$ALLOCRIG" run -d sim -p direct -w gradient_tape:steps=30 --chrome "$tmp/thin.json" --chrome-most 40
check a_thinned_timeline_keeps_the_peaks python3 tests/cli/timeline.py "$tmp/whole.json" "$tmp/thin.json" 40
printf '# allocrig-trace 1\n# name: a"name"\\\na,0,1\n' >"$tmp/named.txt"
quietly "$ALLOCRIG" run -d sim -p torch -w "$tmp/named.txt" --chrome "$tmp/c.json"
json timeline_has_any_name "any('a\"name\"' in x['args']['name'] for x in e if x['name'] == 'process_name')"
check timeline_of_several_runs quietly "$ALLOCRIG" run -d sim -p torch -p vmm -w order_flip -w "$tape" --frees at-once --jobs 2 --chrome "$tmp/c.json"
json timeline_has_a_process_each "sorted(x['args']['name'] for x in e if x['name'] == 'process_name') == ['torch on order_flip', 'torch on tape_small', 'vmm on order_flip', 'vmm on tape_small'] and {x['pid'] for x in e if x['ph'] == 'X'} == {1, 2, 3, 4}"
check timeline_of_a_process quietly "$ALLOCRIG" run -d sim -p torch -w "$tape" --isolate --chrome "$tmp/c.json" --snapshot "$tmp/i.pickle"
json timeline_of_a_process_is_whole "sum(x['ph'] == 'X' for x in e) == 15"
check snapshot_of_a_process_is_whole cmp "$tmp/i.pickle" "$tmp/s.pickle"
refuses timeline_of_several_processes 2 'chrome holds one run and this is 2' run -d sim -p torch -p vmm -w order_flip --isolate --chrome "$tmp/x"
refuses thinning_by_a_word 2 'chrome-most is "few"' run -d sim -p torch -w order_flip --chrome "$tmp/x" --chrome-most few

# -- latencies
check latencies quietly "$ALLOCRIG" run -d sim -p torch -w "$tape" --time --hdr "$tmp/h.txt" --hdr-of alloc_total_ns
check latencies_header [ "$(head -n 1 "$tmp/h.txt")" = '       Value     Percentile TotalCount 1/(1-Percentile)' ]
check latencies_end_at_all [ "$(awk '$2 == "1.000000000000" { print $3 }' "$tmp/h.txt")" = 3964 ]
check latencies_footer grep -qE '^#\[Mean    = +[0-9.]+, StdDeviation   = +[0-9.]+\]$' "$tmp/h.txt"
refuses latencies_without_time 2 'add --time' run -d sim -p torch -w order_flip --hdr "$tmp/x"
refuses latencies_of_what 2 'hdr-of "alloc" is no histogram; there are alloc_ns' run -d sim -p torch -w order_flip --time --hdr "$tmp/x" --hdr-of alloc
refuses one_run_only 2 'snapshot holds one run and this is 2' run -d sim -p torch -p vmm -w order_flip --snapshot "$tmp/x"

# -- logs and lifetimes, which are read again
check as_rmm quietly "$ALLOCRIG" convert "$tape" "$tmp/t.rmm.csv"
check rmm_header [ "$(head -n 1 "$tmp/t.rmm.csv")" = Thread,Time,Action,Pointer,Size,Stream ]
check as_minimalloc quietly "$ALLOCRIG" convert "$tape" "$tmp/t.minimalloc.csv"
check minimalloc_header [ "$(head -n 1 "$tmp/t.minimalloc.csv")" = id,lower,upper,size ]
check as_oracle quietly "$ALLOCRIG" convert "$tape" "$tmp/t" --format oracle
peak() { # FILE: of live bytes, as best-fit sees it
    "$ALLOCRIG" run -d sim -p best-fit -w "$1" --csv - | awk -F, 'NR == 1 { for (i = 1; i <= NF; i++) if ($i == "peak_live_bytes") at = i } NR == 2 { print $at }'
}
for form in t.rmm.csv t.minimalloc.csv t; do
    check "peak_is_kept_$form" [ "$(peak "$tmp/$form")" = "$(peak "$tape")" ]
done
refuses unknown_format 2 'no format "snapshut"; did you mean "snapshot"' convert "$tape" "$tmp/x" --format snapshut
refuses ambiguous_ending 2 'x.csv: the ending does not tell' convert "$tape" "$tmp/x.csv"
refuses place_that_is_not 2 'cannot be made' convert "$tape" "$tmp/no/x.rmm.csv"
check refused_leaves_nothing [ -z "$(find "$tmp" -name 'x*')" ]
finish
