#!/bin/bash
# `advise`: pages and JSON; what it says fits is held against `run`.
set -u
# shellcheck source=tests/cli/lib.bash
. "$(dirname "$0")/lib.bash"
tmp=$TEST_TMP
tape=workloads/data/tape_small.expandable.csv.gz

run advise "$tape" --capacity 1298MiB --json "$tmp/tape.json"
check it_answers [ "$status" = 0 ]
check fidelity_is_told grep -qE '^Recorded with torch 2\.11' "$out"
check how_much_is_shown says '^The table has [0-9]+ of [0-9]+ settings and 8 of [0-9]+ other policies; .--json -. has all'
check only_what_fits_is_to_set [ "$(sed '1,/^To set:/d;/^Tried/,$d' "$out" | grep -c 'roundup_power2_divisions:\|large_segment_size_mb:')" = 0 ]
check the_headline_has_a_row [ "$(grep -c '^ *->[0-9]' "$out")" = 1 ]
check how_it_is_chosen says '^->: the advice above. If the recorded setting fits in 1.268 GiB, it is the'
check a_plain_sentence grep -qE '^Fits in 1\.268 GiB with the default settings of PyTorch' "$out"
check own_settings_before_others [ "$(grep -n '^settings of PyTorch' "$out" | cut -d: -f1)" -lt "$(grep -n '^other policies' "$out" | cut -d: -f1)" ]
check the_recorded_one_is_marked grep -q '(recorded)' "$out"
check the_verdict_is_first grep -q '^2:Fits in 1.268 GiB with' <(grep -n . "$out")
check it_is_sure_in_one_word says '^So the answer is (exact if the program makes the same requests|an estimate[^.]*)\.'
"$ALLOCRIG" run -p torch -w "$tape" -d sim:capacity=1298MiB --metrics none --require-pass >/dev/null 2>&1
check what_fits_does_pass [ $? = 0 ]
"$ALLOCRIG" run -p torch:expandable_segments=true -w "$tape" -d sim:capacity=1298MiB --metrics none --require-pass >/dev/null 2>&1
check what_does_not_fails [ $? = 1 ]
run advise "$tape" --capacity 1GiB
check more_than_the_live_peak says '^No setting helps in 1\.000 GiB: the live peak alone is 1\.255 GiB, at event 20167, held by'
check the_exact_setting grep -q 'PYTORCH_CUDA_ALLOC_CONF=roundup_power2_divisions:\|PYTORCH_CUDA_ALLOC_CONF=large_segment_size_mb:' "$out"
check no_is_status_1 quietly test "$status" = 1
check why_in_a_sentence grep -q 'tape_small.expandable: no setting fits in 1.000 GiB$' "$err"
check what_does_not_fit_is_not_to_set says '^Least memory, not enough here:'
check and_only_that not says '^To set'
check nothing_fits_and_no_mark not says '->: the advice'

if long the_device_named_goes_before_the_recorded_card; then
    run advise "$tape" -d sim:capacity=1298MiB
    check the_device_named_goes_before_the_recorded_card grep -q '^tape_small.expandable, at 1.268 GiB, ' "$out"
fi

# All settings but one fail, and of that one it cannot be told: only it is to be set, and who fits is said.
run advise "$tape" --capacity 1290MiB
check all_but_one_fail says '^No setting fits in 1\.260 GiB, except perhaps PYTORCH_CUDA_ALLOC_CONF=backend:cudaMallocAsync, .* Other policies that fit: .*vmm \(inside PyTorch by allocrig\.torch\.use\("NAME"\)'
check what_fails_is_not_to_be_set [ "$(grep -c '^ *[0-9][0-9]*  PYTORCH_' "$out")" = 1 ]

check json_has_its_schema grep -q '"schema": "allocrig.advise/1"' "$tmp/tape.json"
check json_predicts_the_default_peak grep -q '"peak_reserved_bytes": 1707081728' "$tmp/tape.json"
if long the_same_with_any_jobs; then
    "$ALLOCRIG" advise "$tape" --jobs 1 >"$tmp/1"
    "$ALLOCRIG" advise "$tape" --jobs 3 >"$tmp/3"
    check the_same_with_any_jobs cmp "$tmp/1" "$tmp/3"
fi

echo '# allocrig-trace 1' >"$tmp/nothing.trace"
run advise order_flip --capacity 200MiB
check a_generator_has_advice says '^Other policies that fit:'
printf 'a,0,31457280\na,1,31457280\nf,0\na,2,20971520\na,3,41943040\nf,1\nf,2\nf,3\n' >"$TEST_TMP/cut.trace"
run advise "$TEST_TMP/cut.trace" --capacity 95MiB
check what_fits_is_named says '^Other policies that fit: mosaic, direct\.$'
check what_is_named_has_a_row grep -qE '^ *[0-9]+ +90\.0 .* yes .* direct$' "$out"
refuses nothing_to_advise_on 2 'nothing requests nothing of a GPU' advise "$tmp/nothing.trace"
printf 'a,0,1048576,space=pinned\nf,0\n' >>"$tmp/nothing.trace"
refuses nothing_on_a_card 2 'nothing holds no memory of a GPU at any time, so there is nothing to advise on' advise "$tmp/nothing.trace"

cat >"$tmp/dying.trace" <<'TRACE'
# allocrig-trace 1
# recorder: torch 2.11.0
# limit: 104857600
# complete: no
a,0,31457280
f,0
m,step
a,1,52428800
a,2,62914560
!,oom,10485760
r,2
TRACE
run advise "$tmp/dying.trace" --capacity 120MiB
check a_cut_trace_is_not_the_whole grep -q "proves only the" "$out"
check the_largest_completed_step grep -qE '^The largest completed step needed at least 30\.00 MiB' "$out"
check only_the_recorded_part_fits grep -q '^What is recorded fits in 120.0 MiB' "$out"

# A snapshot of a run that died under a limit of which the snapshot does not tell: what it gave back
# before was under pressure, not the program's doing.
lora=workloads/data/lora_recompute.default.csv.gz
if long pressure_is_seen and_not_taken_for_releases a_snapshot_cut_at_a_failure a_setting_for_the_part; then
    "$ALLOCRIG" run -d sim -p torch:limit=4100MiB -w "$lora" --on-fail stop --metrics none --snapshot "$tmp/cut.pickle" >/dev/null 2>&1
    run advise "$tmp/cut.pickle" --jobs 2
    check pressure_is_seen grep -q '^It released memory as under a limit' "$out"
    check and_not_taken_for_releases not says 'released its cache'
    check a_snapshot_cut_at_a_failure grep -qE '^The trace ends with a request of 680\.7 MiB' "$out"
    check a_setting_for_the_part says '^What is recorded fits in 3\.844 GiB with PYTORCH_CUDA_ALLOC_CONF=expandable_segments:True'
fi
# needs: of the settings in the table, in MiB, as it lists them
needs() { awk '/^settings of/ { own = 1; next } /^$|^other/ { own = 0 } own && $2 ~ /^[0-9]+\./ { print $1, $2 }' "$out"; }
third=$tmp/third.trace
"$ALLOCRIG" convert --steps 3-3 "$lora" "$third" >/dev/null
if long the_least_is_the_least a_rank_is_sorted_by_need what_is_named_is_shown; then
    run advise "$third" --capacity 3240MiB --jobs 2 -p buddy
    least=$(needs | awk '{ print $2 }' | sort -n | head -n 1)
    check the_least_is_the_least says "^No setting fits in .*: the least is $(awk -v mib="$least" 'BEGIN { printf "%.3f GiB", int(mib / 1.024 + 0.999) / 1000 }'), with"
    check a_rank_is_sorted_by_need quietly test "$(needs)" = "$(needs | sort -k1,1n -k2,2n)"
    check what_is_named_is_shown grep -qE ' buddy$' "$out"
fi
# The one that is advised comes first of those to set; here it is of the third rank.
if long the_advised_setting_is_of_rank_3 the_advised_setting_comes_first it_is_not_there_twice what_is_left_out_is_said; then
    run advise "$third" --capacity 3400MiB --jobs 2
    check the_advised_setting_is_of_rank_3 grep -qE '^->3 +3340\.0 .* large_segment_size_mb=128$' "$out"
    check the_advised_setting_comes_first [ "$(grep -A1 '^To set:' "$out" | tail -n 1 | tr -s ' ')" = ' 3 PYTORCH_CUDA_ALLOC_CONF=large_segment_size_mb:128' ]
    check it_is_not_there_twice [ "$(sed '1,/^To set:/d' "$out" | grep -c 'CONF=large_segment_size_mb:128$')" = 1 ]
    check what_is_left_out_is_said says 'Left out here: [0-9]+ more[a-z ]*; .--json -. has their texts'
fi

# The same over ranges of pages, whose limit lies between what was held and what was asked for; and
# what such a program gives back by itself.
"$ALLOCRIG" run -d sim -p torch:expandable_segments=true,limit=2624439766 -w matmul_cache --on-fail stop --metrics none --snapshot "$tmp/pages.pickle" >/dev/null 2>&1
run advise "$tmp/pages.pickle" --jobs 2
check pressure_is_seen_over_pages grep -q '^It released memory as under a limit, or on a card, of 2\.442 GiB to 2\.561 GiB' "$out"
check pages_agree says 'Replayed under torch:conf=expandable_segments:True every address, segment'
"$ALLOCRIG" run -d sim -p torch:expandable_segments=true -w phases:cycles=2 --on-fail stop --metrics none --snapshot "$tmp/phases.pickle" >/dev/null 2>&1
run advise "$tmp/phases.pickle" --jobs 2
check released_pages_agree says 'Replayed under torch:conf=expandable_segments:True every address, segment'
check releases_are_counted grep -q '^The program released its cache 4 times' "$out"

# A library tries algorithms: with all of them the program needs more than it can do with.
"$ALLOCRIG" run -d sim -p torch -w matmul_cache --metrics none --snapshot "$tmp/tries.pickle" >/dev/null 2>&1
run advise "$tmp/tries.pickle" --capacity 1800MiB --jobs 2
check what_cannot_be_told says '^Whether it fits in 1\.758 GiB cannot be told: that depends on 21 requests of up to 1\.907 GiB'
check is_no_yes_and_no_no grep -qE '^ *1 +2482\.0 +2660\.0 +\? .* torch \(recorded\)$' "$out"
run advise "$tmp/tries.pickle" --capacity 4GiB --jobs 2 --json "$tmp/tries.json"
check with_room_it_is_told grep -q '^Fits in 4.000 GiB as it is' "$out"
check the_drivers_pool_is_left_open quietly test "$(grep -A24 '"policy": "async"' "$tmp/tries.json" | grep -c '"certain": false')" -ge 1
"$ALLOCRIG" run -d sim:capacity=2100MiB -p torch -w matmul_cache --metrics none --snapshot "$tmp/tries.pickle" >/dev/null 2>&1
run advise "$tmp/tries.pickle" --jobs 2
check what_was_survived_is_said says '^1 request was not served, and the program continued'

# Releases that may be the allocator's decide: the answer is left open, and why is said.
if long releases_of_nobody_are_told; then
    "$ALLOCRIG" run -d sim:capacity=3082813440 -p torch:expandable_segments=true,max_split_size_mb=128 -w fsdp_runahead:hold=stash \
        --metrics none --snapshot "$tmp/nobody.pickle" >/dev/null 2>&1
    run advise "$tmp/nobody.pickle" --capacity 2699034624 --jobs 2
    check releases_of_nobody_are_told says '^\?: without the releases of the cache that are assumed to be the program.s own the answer is the opposite'
fi

# Five CUDA graphs: other allocators of PyTorch have no pools for them.
run advise workloads/data/graphs.default.csv.gz --capacity 430MiB --jobs 2
check no_graphs_without_pools quietly test -z "$(grep 'CUDA_MEMORY_CACHING\|MallocAsync' "$out")"
check events_are_those_of_the_recording says 'The live peak is 402\.3 MiB, at event 749,'
check a_setting_for_graphs grep -q '^No setting fits in 430.0 MiB: the least is 444.0 MiB' "$out"

# Completions are taken as recorded: one page, on which what the other setting was recorded with
# stands to the byte. Rows are lines of 80 columns.
if long one_page_with_other_streams the_other_peak_with_streams settings_that_change_nothing lines_fit_80_columns \
    no_progress_without_a_terminal; then
    run advise workloads/data/streams_prefetch.default.csv.gz --jobs 2
    check one_page_with_other_streams [ "$(grep -c '^streams_prefetch, at .* frees recorded$' "$out")" = 1 ]
    check the_other_peak_with_streams grep -qE '^[0-9 ]+ 1182\.0 .* 1202\.0 +yes .* expandable_segments=true$' "$out"
    check settings_that_change_nothing says '^No different from what was recorded \([0-9]+, not counted above\): .*max_split_size_mb=2048, 1024,'
    check lines_fit_80_columns quietly test -z "$(awk 'length > 80' "$out" | grep -v PYTORCH_)"
    check no_progress_without_a_terminal quietly test ! -s "$err"
fi
if long how_far_it_is_from_what_was_recorded; then
    run advise tests/golden/data/snapshots/side_streams.default.pickle.gz -d sim:addresses=random,seed=4 --jobs 2
    check how_far_it_is_from_what_was_recorded says '^Replayed without the recorded addresses the recorded setting takes 2\.559 GiB in place of 2\.520 GiB \(\+1\.55 %\)'
fi
if long left_open_where_completions_decide not_where_it_is_the_same what_the_mark_means with_marks_lines_fit_too; then
    run advise workloads/data/side_streams.default.csv.gz --capacity 760MiB --jobs 2
    check with_marks_lines_fit_too [ -z "$(awk 'length > 80' "$out" | grep -v PYTORCH_)" ]
    check left_open_where_completions_decide says 'as recorded it may or may not, see \? below'
    check not_where_it_is_the_same not says 'Replayed without the recorded addresses'
    check what_the_mark_means says '^\?: with blocks of other streams free at once, or with memory for one of 64\.00 MiB more or less, the answer is the opposite'
fi
if long why_no_slowdown; then
    gunzip -c workloads/data/graphs.default.csv.gz | grep -v '^kernel,' >"$tmp/still.csv"
    run advise "$tmp/still.csv" --jobs 2
    check why_no_slowdown says 'no kernels, so the slowdown is not known'
fi

# Keys that the recorded release does not know are named, not offered; a fraction is a call there.
printf '# allocrig-trace 1\n# recorder: torch 2.4.0\na,0,41943040\nf,0\na,1,62914560\n' >"$tmp/old.trace"
run advise "$tmp/old.trace" --capacity 200MiB --json "$tmp/old.json"
check no_key_of_later_releases quietly test -z "$(grep -E 'CONF=.*(large_segment|non_split|fraction)' "$out")"
check later_keys_are_named says 'Not offered, because PyTorch 2\.4 does not accept them: max_split_size_mb:20 .needs PyTorch 2\.10., large_segment_size_mb .needs PyTorch 2\.11., max_non_split_rounding_mb .needs PyTorch 2\.6.\.'
check the_fraction_is_a_call grep -q '"setting": "PYTORCH_CUDA_ALLOC_CONF=garbage_collection_threshold:0.8; torch.cuda.set_per_process_memory_fraction(1.0)"' "$tmp/old.json"
check ranks_are_in_the_json grep -q '"rank": 1,' "$tmp/old.json"
check ranks_have_an_error says '^Needs within 1\.00 % count as equal and have the same rank'
sed -i 's/torch 2.4.0/torch/' "$tmp/old.trace"
run advise "$tmp/old.trace" --capacity 200MiB --json -
check an_unknown_release_is_told_what_it_needs grep -q '"needs_pytorch": "2.11"' "$out"

# Two ranks, of which the second needs 20 MiB more; as two batches they are 10 MiB for each.
printf '# allocrig-trace 1\n# recorder: torch 2.11.0\na,0,41943040\nf,0\n' >"$tmp/small.trace"
printf '# allocrig-trace 1\n# recorder: torch 2.11.0\na,0,62914560\nf,0\n' >"$tmp/large.trace"
run advise "$tmp/small.trace" "$tmp/large.trace" --capacity 200MiB
check ranks_need_the_worst grep -qE '^torch \(recorded\) +60\.0 +large +yes' "$out"
check the_first_of_equals_is_named says 'The least that serves all of them is 60\.00 MiB, with the default settings of PyTorch\.$'
check ranks_in_a_sentence says '^All of them fit in 200\.0 MiB with the default settings of PyTorch, as they are\.$'
check the_answer_about_all_is_first [ "$(head -n 1 "$out")" = 'All 2 traces together: a setting needs what the worst of them needs.' ]
run advise "$tmp/small.trace" "$tmp/large.trace" --capacity 50MiB
check no_rank_alone_counts grep -q '^No setting lets all of them fit in 50.00 MiB' "$out"
run advise "$tmp/small.trace" "$tmp/dying.trace" --capacity 200MiB
check a_cut_rank_is_not_the_whole grep -q '^1 of the 2 ends in a failure' "$out"
check ranks_as_recorded grep -q '^What is recorded of all of them fits in 200.0 MiB' "$out"
run advise "$tmp/small.trace" "$tmp/large.trace" --capacity 200MiB --batches 4,6 --json "$tmp/batches.json"
check json_has_the_largest_batch_by_the_peak grep -q '"largest_by_live_peak": 20,' "$tmp/batches.json"
check json_of_batches_is_json quietly python3 -m json.tool "$tmp/batches.json" /dev/null
check json_has_the_largest_batch_of_a_setting eval 'tr -d "\n" <"$tmp/batches.json" | grep -qE "\"batches\": .*\"policy\": \"torch\", *\"recorded\": true, *\"largest\": 20,"'
check the_largest_batch grep -qE '^ +20  torch \(1\.000\)' "$out"
check no_batch_beyond_the_live_peak grep -q '^ *20  by the live peak alone: no setting serves more' "$out"
check event_by_event says 'both traces ask in the same order, and bytes live at each event go on in a straight line through batches 4 and 6'
for batch in 1 2; do
    printf '# allocrig-trace 1\n# recorder: torch 2.11.0\na,0,104857600\nf,0\na,1,%d\na,2,10485760\nf,1\nf,2\n' $((batch * 20971520)) >"$tmp/batch$batch.trace"
done
run advise "$tmp/batch1.trace" "$tmp/batch2.trace" --capacity 1000MiB --batches 1,2
check the_peak_moves_as_the_batch_grows grep -q '^ *49  by the live peak alone' "$out"
refuses batches_the_other_way 2 'the larger batch needs no more' advise "$tmp/small.trace" "$tmp/large.trace" --capacity 200MiB --batches 6,4
printf 'a,2,1048576\nf,2\n' >>"$tmp/batch2.trace"
run advise "$tmp/batch1.trace" "$tmp/large.trace" --capacity 1000MiB --batches 2,1
check in_different_order says 'the traces ask in different order, so the straight line goes through the live peaks of batches 2 and 1'

# The table in results/what-if.md is what the program says.
run advise --what-if workloads/data/tape_small.*.csv.gz
check what_if_of_one_program grep -qE '^\| `tape_small` \| (default|expandable) \|' "$out"
if long what_if_is_exact_for_the_same_requests what_if_counts_other_requests what_if_predicts_retries the_published_table_is_true; then
    "$ALLOCRIG" advise -d sim --what-if workloads/data/*.csv.gz >"$tmp/table"
    check what_if_is_exact_for_the_same_requests grep -qE '^\| `lora_recompute` \| limit5 \| expandable \| 35555 \| 0 \| 4611637248 \| 4611637248 \| none \|' "$tmp/table"
    check what_if_counts_other_requests grep -qE '^\| `resnet50_train` \| expandable \| default \| 8765 \| 417 ' "$tmp/table"
    check what_if_predicts_retries grep -qE '^\| `lora_recompute` \| default \| limit5 .* 2 of 2 \| yes, yes \|' "$tmp/table"
    grep '^|' results/what-if.md >"$tmp/page"
    check the_published_table_is_true cmp "$tmp/table" "$tmp/page"
fi
printf '# allocrig-trace 1\n# recorder: torch 2.11.0\na,0,512\n!,alloc,2097152\nf,0\n' | tee "$tmp/a|b.c|d.trace" >"$tmp/a|b.e.trace"
run advise --what-if "$tmp/a|b.c|d.trace" "$tmp/a|b.e.trace"
check a_bar_stays_in_its_cell grep -qF '| `a\|b` | c\|d | e | ' "$out"
refuses what_if_of_one 2 'no two traces are of one program' advise --what-if "$tape"
refuses what_if_at_a_capacity 2 'takes the recorded capacities' advise --what-if "$tape" --capacity 1G

# A traced program was not recorded, and perhaps traced for another card.
cat >"$tmp/traced.trace" <<'TRACE'
# allocrig-trace 1
# recorder: torch 2.11.0
# card: NVIDIA H100 80GB HBM3
a,0,31457280
f,0
!,traced,versions,torch 2.11.0
TRACE
run advise "$tmp/traced.trace" --card rtx4090
check a_card_is_a_device [ "$status" = 0 -a "$(head -1 "$out")" = 'traced, at 23.00 GiB, frees ordered' ]
check a_traced_program says '^Traced for torch 2\.11\.0 without a GPU, so there are no addresses of a card to compare with; a memory snapshot of a run on one has them\.$'
check is_an_estimate says '^So the answer is an estimate\.$'
check is_not_recorded not says '^Recorded with'
check it_was_traced_for_another_card says '^Traced for NVIDIA H100 80GB HBM3, and the answer is about rtx4090: .* Trace again with --card rtx4090\.'
run advise "$tmp/traced.trace" --card h100
check or_for_this_one not says 'Trace again'
# A snapshot that begins in the middle is an estimate, and not exact as well.
if long every_address_agrees and_yet_it_is_an_estimate and_not_exact; then
    run advise tests/golden/data/snapshots/layouts/ring.pickle.gz --capacity 1GiB
    check every_address_agrees says 'every address, segment and statistic agrees\.'
    check and_yet_it_is_an_estimate says '^So the answer is an estimate, to within 2\.17 % at best\.$'
    check and_not_exact not says 'the answer is exact'
fi

run advise "$tmp/small.trace" --capacity 40MiB
check too_little_room says '^It leaves .* less than the uncertainty of this estimate \(1\.00 %'
check nothing_has_to_be_set not says '^To set:'
run advise "$tmp/small.trace" --capacity 80MiB
check enough_room not says '^It leaves'
# Settings that the recorded allocator refuses are bad input, in its first lines or later.
printf '# allocrig-trace 1\n# recorder: torch 2.11.0\n# conf: max_split_size_mb:1\na,0,512\nf,0\n' >"$tmp/conf.trace"
printf '# allocrig-trace 1\n# recorder: torch 2.11.0\na,0,512\nm,step\nf,0\na,1,0\n!,limit,many\nm,step\n' >"$tmp/note.trace"
refuses settings_that_cannot_be 2 'conf.trace: the recorded settings cannot be: .*conf "max_split_size_mb:1"' advise "$tmp/conf.trace"
printf '# allocrig-trace 1\n# recorder: torch 2.11.0\n# capacity: 1\na,0,512\nf,0\n' >"$tmp/byte.trace"
sed 's/capacity/limit/' "$tmp/byte.trace" >"$tmp/limit.trace"
for command in advise fits explain capacity; do
    refuses "${command}_of_a_card_of_a_byte" 2 'byte(.trace: | with policy torch: )the recorded capacity: device sim: capacity=1 is less' "$command" "$tmp/byte.trace"
    refuses "${command}_of_a_limit_of_a_byte" 2 'limit(.trace)?: the recorded (capacity: .*=1 is less|settings cannot be: .*limit: 1 byte)' "$command" "$tmp/limit.trace"
done
refuses a_note_that_cannot_be 2 'the recorded settings cannot be: note: event 4: .*the note limit,many' advise "$tmp/note.trace"
refuses a_rank_twice 2 'small.trace is named twice' advise "$tmp/small.trace" "$tmp/small.trace"
refuses a_rank_twice_by_another_path 2 'small.trace is named twice' advise "$tmp/small.trace" "$tmp/./small.trace"
refuses a_policy_that_is_not_there 2 'there is no policy "nothere"' advise "$tmp/small.trace" -p nothere
refuses a_row_that_is_not_there 2 '-p torch:limit=1B: the table can have no such row' advise "$tmp/small.trace" -p torch:limit=1B
refuses no_trace 2 'name a trace' advise
refuses no_file 2 'no/x.csv' advise no/x.csv
refuses a_capacity_twice 2 'the capacity is given twice' advise "$tape" -d sim:capacity=1G --limit 1G
refuses no_such_name 2 'tape_smal: there is no such file' advise tape_smal --capacity 1G
refuses no_unit 2 '--capacity 4 is 4 bytes; did you mean 4GiB' advise "$tape" --capacity 4
refuses two_capacities 2 'give --capacity or --limit once' advise "$tape" --capacity 1G --limit 1G
refuses one_batch 2 'write two numbers' advise "$tape" --batches 3
refuses batches_of_one 2 'needs two traces' advise "$tape" --batches 3,4
refuses not_on_a_card 2 'needs a simulated device' advise "$tape" -d cuda
refuses json_goes_nowhere 2 'no/x.json: cannot be written' advise "$tape" --json no/x.json
finish
