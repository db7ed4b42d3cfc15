#!/bin/bash
# The figures, from small made-up data: every kind is drawn in both forms, a file that is not there or
# holds nothing is said and passed over, and names with commas or quotes break nothing.
set -u
data=$TEST_TMP/data
out=$TEST_TMP/figures
mkdir -p "$data"

if ! command -v gnuplot >/dev/null; then
    echo "skip figures: gnuplot is not installed"
    exit 0
fi
check() { # NAME COMMAND...
    local name=$1
    shift
    if "$@"; then echo "ok $name"; else echo "not ok $name"; fi
}
drawn() { # NAME: both forms are there, are what they say, and hold more than a frame
    [ "$(head -c 4 "$out/$1.png" | tail -c 3)" = PNG ] && grep -q '<svg' "$out/$1.svg" &&
        [ "$(wc -c <"$out/$1.svg")" -gt 5000 ]
}

{
    echo 'policy,event,time_s,live_bytes,reserved_bytes,physical_bytes'
    for policy in growth "\"torch:conf='a,b'\"" greedy; do
        awk -v p="$policy" 'BEGIN { for (e = 0; e < 3000; e++) {
            live = (e % 700) * 1048576; held = p == "greedy" ? 68719476736 : 900 * 1048576
            printf "%s,%d,%s,%.0f,%.0f,%.0f\n", p, e, "", live, held, held } }'
    done
} >"$data/series-saw_tooth.csv"
cat >"$data/slowdown.csv" <<'CSV'
workload,policy,capacity_ratio,slowdown,passed
gpt2_train,growth,1,,false
gpt2_train,growth,1.1,1.5,true
gpt2_train,growth,2,1.01,true
gpt2_train,"torch:conf='a,b'",1,30.5,true
gpt2_train,"torch:conf='a,b'",2,1.2,true
never_passes,growth,1,,false
CSV
cat >"$data/fragmentation.csv" <<'CSV'
workload,policy,internal_mean,external_mean,unusable_mean,overhead
gpt2_train,growth,0.01,0.4,0.2,1.3
gpt2_train,"torch:conf='a,b'",0.02,,,1.1
CSV
output=$(plots/render.sh "$data" "$out" 2>&1)
status=$?
check ends_well [ $status = 0 ]
check memory_is_drawn drawn memory-saw_tooth
check slowdown_is_drawn drawn slowdown
check fragmentation_is_drawn drawn fragmentation
check a_missing_file_is_said grep -q 'no latency.csv, so no figure latency' <<<"$output"
check a_quoted_name_is_in_the_picture grep -q 'torch:conf=a;b' "$out/slowdown.svg"
# greedy holds 64 GiB beside 700 MiB live: on the upper edge, with the number
check what_is_too_high_is_said grep -q '65536 MiB, 93.8 × live: above the scale' "$out/memory-saw_tooth.svg"
# growth and torch hold the same at every event: one panel with both names
check equal_curves_are_drawn_once grep -q 'growth, torch:conf=a;b<' "$out/memory-saw_tooth.svg"

echo 'workload,policy,alloc_p50_ns,alloc_p90_ns,alloc_p99_ns,alloc_p999_ns,alloc_max_ns,free_p50_ns,free_p99_ns' >"$data/latency.csv"
output=$(plots/render.sh "$data" "$out" 2>&1)
check no_rows_are_said grep -q 'latency.csv has no rows' <<<"$output"
echo 'gpt2_train,growth,10,20,30,400,50000,8,20' >>"$data/latency.csv"
plots/render.sh "$data" "$out" >/dev/null 2>&1
check latency_is_drawn drawn latency
table=$(awk -f plots/clean.awk "$data/slowdown.csv" | awk -f plots/capacity_table.awk)
check table_has_smallest_capacity_and_slowdown grep -qF '| `growth` | 1.10 | 1.010 to 1.010 |' <<<"$table"
check table_leaves_out_what_has_no_time eval '! grep -q never_passes' <<<"$table"
output=$(plots/render.sh "$TEST_TMP/nowhere" "$out" 2>&1)
status=$?
check a_missing_folder_is_an_error [ $status = 2 ]
