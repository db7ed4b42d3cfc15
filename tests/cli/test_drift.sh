#!/bin/bash
# `drift` and the workload `learned`: pages, files, exit statuses.
set -u
# shellcheck source=tests/cli/lib.bash
. "$(dirname "$0")/lib.bash"
tmp=$TEST_TMP
tape=workloads/data/gpt2_train.default.csv.gz

# field KEY: the first value of that key in $tmp/drift.json
field() {
    sed -n "s/^ *\"$1\": \\(.*[^,]\\),*\$/\\1/p" "$tmp/drift.json" | head -n 1
}

run drift $tape --steps 1000000 --seeds 2 --json "$tmp/drift.json" --series "$tmp/series.csv"
check passes [ $status = 0 ]
check repeats says 'The steps repeat themselves exactly, with a period of 1'
check both_policies grep -qx 'torch:expandable_segments=true' "$out"
check million says '^1000000 +7708.0 +7708.0 +7708.0'
check levels_off says 'Drift over the last half: 0 MiB in 10.6 steps \(0 to 0\); 0 MiB a day'
check fits_a_terminal [ "$(awk 'length($0) > 80' "$out" | wc -l)" = 0 ]
check schema [ "$(field schema)" = '"allocrig.drift/1"' ]
check order [ "$(field order)" = '"repeat"' ]
check skips_known_steps [ "$(field replayed_steps)" -lt 100 ]
check series_header [ "$(head -n 1 "$tmp/series.csv")" = policy,seed,step,reserved_bytes,live_bytes ]
check series_last [ "$(tail -n 1 "$tmp/series.csv" | cut -d, -f 1-3)" = torch:expandable_segments=true,2,1000000 ]

# The same figures without skipped steps, and as a single run of the workload.
"$ALLOCRIG" drift $tape --steps 40 --seeds 1 -p torch --series "$tmp/a.csv" >"$tmp/a.txt"
"$ALLOCRIG" drift $tape --steps 40 --seeds 1 -p torch --every-step --series "$tmp/b.csv" >"$tmp/b.txt"
check every_step_is_the_same cmp "$tmp/a.csv" "$tmp/b.csv"

# The number of workers changes only how many steps are replayed.
for jobs in 1 3; do
    "$ALLOCRIG" drift workloads/data/tape_small.default.csv.gz --steps 300 --seeds 3 -p torch --jobs $jobs --json - >"$tmp/jobs$jobs" 2>/dev/null
    sed -i '/"replayed_/d' "$tmp/jobs$jobs"
done
check workers_change_nothing cmp "$tmp/jobs1" "$tmp/jobs3"
check workers_have_an_answer grep -q '"most_live_bytes"' "$tmp/jobs1"
check every_step_page_is_the_same cmp "$tmp/a.txt" "$tmp/b.txt"
# Blocks that are made anew in each step have the step of their request, also if that was skipped.
if long births_of_skipped_steps births_with_workers; then
    for way in "--jobs 1" "--jobs 3" --every-step; do
        # shellcheck disable=SC2086 # two words
        "$ALLOCRIG" drift $tape --steps 300 --seeds 3 -p torch $way >"$tmp/way${way//[ -]/}"
    done
    check births_of_skipped_steps cmp "$tmp/wayjobs1" "$tmp/wayeverystep"
    check births_with_workers cmp "$tmp/wayjobs3" "$tmp/wayeverystep"
fi
# Blocks that another stream uses come back at times that no state of the policy holds.
uses=tests/golden/data/pages/step.trace
"$ALLOCRIG" drift $uses --steps 120 --seeds 1 -p torch --series "$tmp/a.csv" >/dev/null 2>&1
"$ALLOCRIG" drift $uses --steps 120 --seeds 1 -p torch --every-step --series "$tmp/b.csv" >/dev/null 2>&1
check every_step_with_uses_is_the_same cmp "$tmp/a.csv" "$tmp/b.csv"
check uses_move_reserved_bytes grep -q '^torch,1,100,260046848,' "$tmp/a.csv"
run run -p torch -w learned:trace=$tape,steps=40 -d sim
check run_is_the_same says '^1 +torch +[0-9.]+ +7708\.0'

# Too little memory: the step, the cause, the probability.
run drift phases:cycles=10,leak=2,layers=6 -p torch --steps 3000 --seeds 3 --capacity 1200MiB --jobs 1
check out_of_memory says 'Out of memory by step 3000 at 1.172 GiB: 3 of 3 runs, a probability of 1'
check failed_step says 'The run with seed 1 ends in step [0-9]+, at a request of'

# Runs of a step or two have no trend.
run drift $tape -p torch --steps 1 --seeds 2 --json "$tmp/short.json"
check short_runs says 'Whether it levels off is not known: the runs are too short for a trend'
check short_runs_json grep -q '"levels_off": null' "$tmp/short.json"

# A leak is the program's own, and its blocks are counted.
run drift phases:cycles=10,leak=2,layers=6 -p torch --steps 2000 --seeds 2
check leak says 'The program itself keeps 2\.[0-9e+]+ bytes more with each step'
check trend says 'does not level off: .*live bytes have it too'

# The workload in other commands; a seed is a file.
for seed in 1 1 2; do "$ALLOCRIG" gen "learned:trace='jitter_batch:steps=40',steps=90,seed=$seed" -o "$tmp/$seed.$((count = ${count:-0} + 1)).txt" >/dev/null; done
check same_seed cmp "$tmp/1.1.txt" "$tmp/1.2.txt"
check other_seed not cmp -s "$tmp/1.1.txt" "$tmp/2.3.txt"
run inspect "$tmp/1.1.txt"
check steps_are_marked grep -qE '^ +m mark +90$' "$out"
run capacity -p torch -w "learned:trace=$tmp/1.1.txt,steps=100" -d sim
check in_capacity [ $status = 0 ]
run list workloads learned
check listed says 'workloads/learned/learned.md'

refuses no_recording 2 'drift: no recording is given; write drift TRACE' drift
refuses no_trace 2 'which recording. Write learned:trace=FILE' run -p torch -w learned:steps=5 -d sim
refuses no_such_pool 2 "the device has no 214748364800 bytes" drift phases:cycles=10,leak=2,layers=6 --steps 10 --seeds 1 \
    -p rmm-pool:initial_pool_size=200GiB
refuses too_few_steps 2 'steps were found.*at least 4 are needed' drift order_flip
refuses adaptive 2 'its requests depend on the allocator; write it to a file' drift robson:m=64,n=8
# Several GPUs: a page for each, or one.
{
    echo '# allocrig-trace 1'
    for i in {0..23}; do
        echo "a,$i,$((i % 7 + 1))MiB,0,device=$((i % 2))"$'\n'"f,$i"
        [ $((i % 2)) = 0 ] || echo m,step
    done
} | sed 's/MiB/000000/' >"$tmp/two.trace"
run drift "$tmp/two.trace" -p torch --steps 1000 --seeds 2
check wide_interval says 'Whether it levels off cannot be told: .*The interval of its drift is wide because one more growth'
check each_gpu [ "$(grep -cE '^two gpu[01]: 12 steps' "$out")" = 2 ]
run drift "$tmp/two.trace" -p torch --steps 100 --seeds 2 -d 1 --json "$tmp/drift.json"
check one_gpu grep -q 'two gpu1' "$tmp/drift.json"
refuses several_gpus 2 'is of one GPU.*--device N' drift "$tmp/two.trace" --json -
refuses no_such_gpu 2 'no requests of GPU 7' drift "$tmp/two.trace" -d 7
refuses no_steps 2 '.--steps is "0"; .*from 1 to' drift $tape --steps 0
refuses no_seeds 2 'from 1 to 1000' drift $tape --seeds 0
refuses no_capacity 2 '--capacity: 0 bytes are not possible' drift $tape --capacity 0
refuses small_capacity 2 '--capacity 1 is 1 byte; did you mean 1GiB' drift $tape --capacity 1
refuses small_device 2 'capacity=1 is less than one page of [0-9]+ bytes; did you mean capacity=1GiB' drift $tape -d sim:capacity=1
refuses two_outputs 2 'two outputs would mix in standard output' drift $tape --steps 10 --json - --series -
refuses unknown_key 2 'step.*did you mean "steps"' run -p torch -w learned:trace=$tape,step=5 -d sim
refuses a_policy_twice 2 'policy "direct" is given twice; name it once' drift $tape -p direct -p direct --steps 10
refuses a_seed_that_would_wrap 2 '18446744073709551615' drift $tape -p direct --steps 10 --seed 18446744073709551615
{
    echo '# allocrig-trace 1'
    for id in {0..9}; do printf 'a,%d,4096\nk,0,1000000000000000\nf,%d\nm,step\n' "$id" "$id"; done
} >"$tmp/long.trace"
refuses the_end_of_time 2 '10000 steps of 1e\+06 s pass the end of time' drift "$tmp/long.trace" -p direct --steps 10000
refuses nowhere_to_write 2 'cannot be written' drift $tape --series "$tmp/no/s.csv"
refuses no_file 2 'no.bin' drift no.bin
refuses two_capacities 2 'the capacity is given twice' drift $tape -d sim:capacity=2GiB --capacity 1GiB --steps 10
finish
