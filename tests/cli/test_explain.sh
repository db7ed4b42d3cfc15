#!/bin/bash
# `explain`: a failure taken apart, in pages that agree with `run`. `explain --message`: the class is the first word, from an argument, a file and standard input.
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
check the_rest_of_the_card grep -q '^560.2 MiB are neither free nor in the pool, as a context' "$out"
check segment_not_tensor grep -q 'prints the segment that it asked the driver for, not the tensor' "$out"
run explain --message "$tmp/log"
check file_is_classified grep -qE '^fragmentation: ' "$out"
"$ALLOCRIG" explain --message - <"$tmp/log" >"$tmp/stdin"
check standard_input_is_the_same cmp "$tmp/stdin" "$out"
# as Windows' shells write a log
for form in UTF-16LE UTF-16BE; do
    { printf '\xef\xbb\xbf'; sed 's/$/\r/' "$tmp/log"; } | iconv -f UTF-8 -t "$form" >"$tmp/wide.log"
    "$ALLOCRIG" explain --message "$tmp/wide.log" >"$tmp/wide"
    check "${form}_is_the_same" cmp "$tmp/wide" "$tmp/stdin"
done
run explain --message "OOM when allocating tensor with shape[32,256,62,62] and type float by allocator GPU_0_bfc"
check a_shape_is_bytes grep -qE 'requested .* 125960192 bytes' "$out"
check no_segment_for_tensorflow quietly test -z "$(grep segment "$out")"

run explain --message "NPU out of memory. Tried to allocate 9.05 GiB (NPU 0; 60.95 GiB total capacity; 42.32 GiB already allocated; 42.32 GiB current active; 2.10 GiB free; 52.58 GiB reserved in total by PyTorch)"
check the_variable_of_the_device grep -q 'PYTORCH_NPU_ALLOC_CONF=expandable_segments:True' "$out"
run explain --message "CUDA out of memory. Tried to allocate 996.00 MiB. GPU 0 has a total capacity of 44.43 GiB of which 9.06 GiB is free. 17.69 GiB allowed; Of the allocated memory 17.44 GiB is allocated by PyTorch, and 59.88 MiB is reserved by PyTorch but unallocated."
check a_limit_in_the_way grep -q '^not-the-allocator: ' "$out"
check the_limit_is_told grep -q '^A limit of 17.69 GiB was set in the program' "$out"
run explain --message "CUDA out of memory. Tried to allocate 512.00 KiB (GPU 0; 0.90 MiB total capacity; 100.00 KiB already allocated; 200.00 KiB free; 700.00 KiB reserved in total by PyTorch)"
check below_a_mib_it_is_advised says 'allocrig advise. say which'
check but_not_with_a_capacity_of_0 not says 'advise SNAPSHOT --capacity'

# The sum that decides the cause `capacity` has a row; the advice depends on how much is missing.
run explain --message tests/golden/data/messages/torch-afm8.txt
check the_sum_is_a_row grep -qE '^  free and unused together +22\.18 MiB  2\.821 MiB short$' "$out"
check a_little_is_missing says 'Little is missing for this request'
run explain --message tests/golden/data/messages/torch-ollama10089.txt
check more_is_missing says '^The program needs more than there is'

# Without figures nothing can be told.
run explain --message 'CUDA out of memory. Tried to allocate 2.00 GiB. ...'
check no_class_without_figures says '^cannot-be-told: the message has too few figures'
check no_figures_no_cause says ' cannot be told from this message\.'
check what_to_paste says 'Paste all of it, or the whole log: .* how much was free'
check it_claims_nothing not says 'needs more than there is'
run explain --message 'CUDA out of memory. Tried to allocate 4.00 GiB. GPU 0 has a total capacity of 24.00 GiB of which 512...'
check nor_by_the_cards_size says 'cannot be told from this message'
run explain --message 'OOM when allocating tensor with shape[32,256,62,62] and type float by allocator GPU_0_bfc'
check what_to_paste_of_tensorflow says 'the lines before it too: .* statistics'
run explain --message 'CUDA out of memory. Tried to allocate 2.00 GiB. GPU 0 has a total capacity of 8.00 GiB of which 1.00 GiB is free.'
check nor_by_what_is_free says '^cannot-be-told: '
run explain --message 'CUDA out of memory. Tried to allocate 2.00 GiB. GPU 0 has a total capacity of 8.00 GiB of which 1.00 GiB is free. Of the allocated memory 6.10 GiB is allocated by PyTorch, and 200.00 MiB is reserved by PyTorch but unallocated.'
check figures_are_judged says '^capacity: no memory that the message names'
check and_advised_by says '^The program needs more than there is'

lora=workloads/data/lora_recompute.default.csv.gz
prefetch=workloads/data/streams_prefetch.default.csv.gz
run explain workloads/data/lora_recompute.default.csv.gz --capacity 4100MiB --json "$tmp/lora.json"
check trace_is_explained [ "$status" = 0 ]
check the_cause_has_a_line grep -qE '^fragmentation: ' "$out"
check blocks_between_are_listed grep -qE '^680\.7 MiB .* yes( |$)' "$out"
check the_setting_is_given grep -q 'PYTORCH_CUDA_ALLOC_CONF=expandable_segments:True$' "$out"
check what_passes_has_its_time says ' torch:expandable_segments=true: peak [^,]*, 1 flush, slowdown 1\.0[0-9]+ '
check no_cache_has_its_price says ' direct: peak [^,]*, 0 flushes, slowdown [2-9][0-9.]+ PYTORCH_NO_CUDA_MEMORY_CACHING=1 .*: slow where a program makes many requests; for debugging only\.'
event=$(sed -n '1s/.*event \([0-9]*\),.*/\1/p' "$out")
"$ALLOCRIG" run -p torch -w "$lora" -d sim:capacity=4100MiB,addresses=driver --metrics none --json "$tmp/run.json" >/dev/null
check run_fails_at_the_same_event grep -q "\"first_failed_event\": $event," "$tmp/run.json"
check moving_them_would_help says 'holds 1 live block of 680\.7 MiB: without it, the request would fit'
# where segments lie, and at which capacity, is that of `advise`
check a_setting_passes_in_the_third_sentence says '^Passes with PYTORCH_CUDA_ALLOC_CONF=expandable_segments:True .below., or from 4\.086 GiB .4184\.0 MiB. on\.'
check a_setting_that_advise_refuses_is_none not says ' torch:large_segment_size_mb=256: '
check lines_fit_80_columns [ -z "$(awk 'length > 80' "$out" | grep -v '^ *PYTORCH_[^ ]*$')" ]
if long a_capacity_is_as_one_of_the_device; then
    cp "$out" "$tmp/of_capacity"
    run explain "$lora" -p torch -d sim:capacity=4100MiB
    check a_capacity_is_as_one_of_the_device cmp "$out" "$tmp/of_capacity"
fi
printf '# allocrig-trace 1\na,0,41943040\na,1,20971520\na,2,41943040\nf,1\na,3,22020096\n' >"$tmp/never.trace"
run explain "$tmp/never.trace" -p first-fit -d sim:capacity=100MiB
check never_enough grep -q '^  never enough' "$out"
check nor_by_moving_blocks says 'for which there is no free memory elsewhere: all that is free is 1\.000 MiB less'
printf '# allocrig-trace 1\na,0,314572800\nf,0\na,1,325058560\nf,1\no,104857600\n' >"$tmp/beside.trace"
run explain "$tmp/beside.trace" -p torch -d sim:capacity=650MiB --json "$tmp/beside.json"
check beside_the_pool says 'requests 100\.0 MiB beside the pool and fails'
check the_cache_is_in_the_way says "cache: the pool's cache stood in the way"
check what_to_do_about_it says 'Release the cache before it ..torch\.cuda\.empty_cache....: that gives 610\.0 MiB .*Or limit the pool to 550\.0 MiB: .torch\.cuda\.set_per_process_memory_fraction.0\.846.. passes .* Or leave room'
check safe_capacity_is_told says 'passes with a capacity of 710\.0 MiB and above'
refuses two_devices 2 'explain: give one device' explain "$tmp/beside.trace" -p torch -d sim:profile=h100 --card l4
refuses two_capacities 2 'the capacity is given twice' explain "$tmp/beside.trace" -p torch --capacity 4100MiB -d sim:capacity=4GiB
refuses message_with_a_capacity 2 '--message replays nothing' explain --message "$message" --capacity 4GiB
# a failure that the program caught is one too
"$ALLOCRIG" run -d sim:capacity=4100MiB -p torch -w "$lora" --metrics none --snapshot "$tmp/caught.pickle" >/dev/null 2>&1
run explain "$tmp/caught.pickle" --json "$tmp/caught.json"
check a_caught_failure_is_explained says 'requests 680\.7 MiB .* and fails; the program caught that and went on\.'
check what_serves_it_is_said grep -q 'PYTORCH_CUDA_ALLOC_CONF=expandable_segments:True$' "$out"
check json_says_that_it_was_caught grep -q '"caught": true' "$tmp/caught.json"
run explain "$tmp/caught.pickle" --capacity 6GiB
check with_more_it_is_served says 'every request was served'
run explain "$lora" -p torch:expandable_segments=true -d sim:capacity=4100MiB --json "$tmp/passes.json"
check the_setting_does_pass says 'at 4\.004 GiB, frees ordered: every request was served'
"$ALLOCRIG" explain "$prefetch" -p torch -d sim:capacity=1GiB --jobs 1 >"$tmp/1"
"$ALLOCRIG" explain "$prefetch" -p torch -d sim:capacity=1GiB --jobs 2 >"$tmp/2"
check the_same_with_any_jobs cmp "$tmp/1" "$tmp/2"
run explain "$prefetch" -p torch -d sim:capacity=1GiB --json "$tmp/prefetch.json"
check one_page_for_each_way_to_free [ "$(grep -c '^capacity: ' "$out")" = 2 ]

# ---- the same as JSON
json() { # NAME EXPRESSION [FILE]: true of the object that was written
    local file=$tmp/${3:-explain}.json
    if command -v jq >/dev/null; then
        check "$1" quietly jq -e "$2" "$file"
    else
        echo "skip $1: jq is not installed"
    fi
}
check page_and_json_both cmp -s "$out" "$tmp/1"
json json_is_one_object '.schema == "allocrig.explain/1" and (.runs | length) == 1' lora
json json_has_the_request ".runs[0].request.event == $event and .runs[0].request.bytes == 713728000" lora
json json_has_the_cause '.runs[0].cause == "fragmentation" and .runs[0].passed == false' lora
json json_has_the_rungs '.runs[0] | .request.bytes as $b | .ladder.same_bytes >= $b and .servable.trim_bytes < $b' lora
json json_has_the_indices '.runs[0].holes | .external_fragmentation > 0 and .unusable_free_index == 1 and .fragmentation_index > 0' lora
json json_has_what_pins '[.runs[0].pins[] | select(.in_stretch)] | length == 1 and .[0].bytes == 713728000' lora
json json_has_what_helps '[.runs[0].helps[] | select(.own and .setting == "PYTORCH_CUDA_ALLOC_CONF=expandable_segments:True")] | length == 1' lora
json json_has_their_time '.runs[0].helps | all(.slowdown >= 1)' lora
json json_of_memory_beside_the_pool '.runs[0] | .cause == "cache" and .request.kind == "beside" and .ladder.cached_bytes == 681574400 and .ladder.same_bytes == null and (.advice | startswith("Release"))' beside
json json_has_each_way_to_free '[.runs[].frees] == ["at-once", "recorded"]' prefetch
run explain "$prefetch" -p torch -d sim:capacity=1GiB --json -
check json_alone_on_standard_output cmp -s "$out" "$tmp/prefetch.json"
json json_of_what_passes '.runs == [{workload: "lora_recompute", policy: "torch:expandable_segments=true", frees: "ordered", capacity_from: "asked", passed: true}]' passes
run explain --message "$message" --json "$tmp/explain.json"
check message_page_and_json quietly test -s "$out"
json json_says_how_sure '.message | .confidence == "likely" and (.because | length) == 1 and .contradictions == []'
json json_of_a_message '.message | .cause == "fragmentation" and .framework == "PyTorch" and .figures.asked.bytes == 165675008 and .figures.asked.rounded_by_bytes > 0'
json json_of_what_is_missing '.message.missing | index("others") != null'
json json_has_the_advice '.message.advice | startswith("Try PYTORCH_CUDA_ALLOC_CONF")'
refuses json_of_nothing 2 'holds no out-of-memory message' explain --message 'all is well' --json "$tmp/none.json"
check json_of_nothing_is_not_there test ! -e "$tmp/none.json"
refuses json_goes_nowhere 2 'no/x.json: cannot be written' explain --message "$message" --json no/x.json

# One line of 10 MB, the message at its end, in a window of 8 MiB that moves; and words that are no message.
line_bytes=10000000
head -c $line_bytes /dev/zero | tr '\0' x >"$tmp/line.log"
printf ' %s' "$message" >>"$tmp/line.log"
run explain --message "$tmp/line.log"
check a_message_behind_a_long_line grep -qE '^fragmentation: ' "$out"
check all_of_the_file_was_looked_at not says 'was not looked at'
{ printf '%s\n' "$message"; head -c $line_bytes /dev/zero | tr '\0' x; } >"$tmp/line.log"
run explain --message "$tmp/line.log"
check a_message_before_a_long_line grep -qE '^fragmentation: ' "$out"
check and_it_says_so says 'The rest of the file was not read'
rm "$tmp/line.log"
printf '%s\n' "$message" | "$ALLOCRIG" explain - >"$out" 2>"$err"
check a_message_from_standard_input grep -qE '^fragmentation: ' "$out"
refuses no_such_log 2 'x.log: cannot be read: No such file' explain --message x.log
refuses no_such_file 2 'there is no file "oom.lgo", and the word is no out-of-memory message' explain --message oom.lgo
refuses no_such_path 2 'no/x: cannot be read: No such file' explain --message no/x
printf 'CUDA error: out of memory\n%s\n' "all is well" >"$tmp/log"
run explain --message "$tmp/log"
check a_file_without_figures says '^cannot-be-told: '
check the_driver_prints_no_sizes says 'The message has no sizes'

: >"$tmp/empty.log"
refuses an_empty_log 2 'empty.log: it is empty; a log has the message if it has the errors too' explain --message "$tmp/empty.log"
echo 'all is well' >"$tmp/well.log"
refuses a_log_without_one 2 'well.log: the text holds no out-of-memory message' explain --message "$tmp/well.log"
refuses no_message 2 'holds no out-of-memory message' explain --message 'all is well'
refuses folder 2 "$tmp: cannot be read: Is a directory" explain --message "$tmp"
refuses no_figures 2 'not the size of the request' explain --message 'Tried to allocate some'
refuses nothing_named 2 'name one trace, explain TRACE' explain
refuses two_things 2 '--message takes no trace and no policy' explain "$lora" --message "$message"
printf 'a,0,62914560\nf,0\n' | cat <(printf '# allocrig-trace 1\n') - >"$tmp/own.trace"
refuses no_policy 2 'give a policy, -p SPEC' explain "$tmp/own.trace"
sed 's/^# allocrig-trace 1$/&\n# recorder: torch 2.11.0/' "$tmp/own.trace" >"$tmp/recorded.trace"
run explain "$tmp/recorded.trace" -d sim:capacity=40MiB
check the_policy_of_the_recorder says '^recorded with torch: event 0 requests 60\.00 MiB'
run explain "$message"
check a_text_that_is_a_message grep -qE '^fragmentation: ' "$out"
printf "RuntimeError: %s\n" "$message" >"$tmp/oom.txt"
run explain "$tmp/oom.txt"
check a_file_with_a_message grep -qE '^fragmentation: ' "$out"
refuses neither_a_trace_nor_a_message 2 'there is no such file' explain 'all is well'
refuses unknown_policy 2 'did you mean "torch"' explain "$lora" -p trch
# a policy's spec is taken whole, or refused where it is too long; cut it would be another one
long_policy() { echo "torch:conf='$(printf 'expandable_segments:True,%.0s' $(seq "$1"))max_split_size_mb:40'"; }
refuses a_longer_one 2 'has more than 639 bytes' explain "$tmp/own.trace" -p "$(long_policy 40)" -d sim:capacity=40MiB
refuses no_file 2 'no/x.csv' explain no/x.csv -p torch

# Tags of snapshots are places in a source, and longer than their column.
{
    printf '# allocrig-trace 1\n# recorder: torch 2.9.0\n'
    for i in {0..9}; do echo "a,$i,4194304,0,tag=functional.py:$((2110 + i)):scaled_dot_product"; done
    for i in 0 2 4 6 8; do echo "f,$i"; done
    echo a,10,8388608,0,tag=functional.py:2120:linear
} >"$tmp/tags.trace"
run explain "$tmp/tags.trace" -p torch -d sim:capacity=40MiB
check tags_have_lines_of_their_own grep -qE '^4\.000 MiB +functional\.py:2111:scaled_dot_product$' "$out"
run explain "$tmp/tags.trace" -p "$(long_policy 20)" -d sim:capacity=38MiB
check a_long_policy_is_taken_whole eval '[ "$status" = 0 ] && says "^The same policy passes with a capacity of"'
run explain "$tmp/tags.trace" -p torch -d sim:capacity=40MiB
check tags_fit_80_columns [ "$(awk 'length($0) > 80' "$out" | wc -l)" = 0 ]
refuses message_on_a_device 2 '--message replays nothing' explain --message "$message" -d sim:capacity=1GiB
refuses message_with_a_seed 2 '--message replays nothing' explain --message "$message" --seed 4
! long message_without_end ||
    refuses message_without_end 2 '/dev/zero: the first 64 MiB hold no out-of-memory message' explain --message /dev/zero
finish
