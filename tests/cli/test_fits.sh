#!/bin/bash
# `fits`: the page and its JSON, the search for the largest value, seeds, refusals and exit statuses. A stand-in writes
# the traces, so that neither torch nor jax is needed; the last part uses the real tracer, if torch is installed.
# shellcheck disable=SC2317 # functions are called by `check`
set -u
# shellcheck source=tests/cli/lib.bash
. "$(dirname "$0")/lib.bash"
python=$(command -v python3)
[ -n "$python" ] || { echo "skip fits: python3 is not installed" && exit 0; }
program=$PWD/tests/cli/tracer_stand_in.py
mkdir -p "$TEST_TMP/tracer/start"
export ALLOCRIG_TRACER=$TEST_TMP/tracer TMPDIR=$TEST_TMP
unset PYTORCH_ALLOC_CONF PYTORCH_CUDA_ALLOC_CONF

# said REGEX: on standard error
said() {
    grep -qE -e "$1" "$err" || { echo "  wanted /$1/, said: $(cat "$err")" && return 1; }
}
# json KEY VALUE: the JSON has that pair
json() { grep -qE "^ *\"$1\": $2,?$" "$TEST_TMP/out.json" || { echo "  no \"$1\": $2" && return 1; }; }
narrow() { [ "$(awk 'length > 80' "$out" | wc -l)" = 0 ]; }
# runs NUMBER: of the program
runs() { [ "$(grep -c '^allocrig fits: ' "$err")" = "$1" ]; }

# ---- the page

run fits --json "$TEST_TMP/out.json" -- python3 "$program"
check it_answers [ "$status" = 0 ]
check the_page_is_narrow narrow
check the_page_fits_a_screen [ "$(wc -l <"$out")" -le 40 ]
check the_verdict_is_first [ "$(sed -n 2p "$out")" = 'Fits on h100 as it is.' ]
check the_live_peak says '^Live peak 456\.1 MiB, in step 1 of 4\. Usable memory of h100: 78\.66 GiB\.'
check reserved_and_safe_under_the_default grep -qE '^ +490\.0 +470\.0 +yes +l4 +the default settings of PyTorch$' "$out"
check and_under_the_best grep -qE '^ +460\.0 +460\.0 +yes +l4 +expandable_segments=true$' "$out"
check no_setting_that_needs_more not grep -q roundup "$out"
check what_to_set_for_less grep -qA1 '^To need less (it fits as it is):' "$out"
check in_one_line grep -q '^PYTORCH_CUDA_ALLOC_CONF=expandable_segments:True$' "$out"
check no_need_of_a_setting not says '^Suggested'
check no_two_values_of_a_key_with_one_effect [ "$(grep -E '^ +[0-9.]+ +[0-9.]+ +(yes|no) ' "$out" | sed 's/=.*//' | sort | uniq -d | wc -l)" = 0 ]
check layers_are_one_group grep -qE '^ *320\.0 +70\.2 +8 +model\.py:10 +layers\.\*\.fc:aten\.empty$' "$out"
check draws_are_named says 'on which sizes may depend \(calls\): aten\.nonzero \(3\); seeds: 1 \(--seeds 5'
check unknown_operators_are_named says 'taken to need at most as much as their outputs \(calls, bytes\): aten\.unfold \(4, 2\.000 MiB\)\.'
check rules_are_named grep -q '^By rule (times, bytes): cublas_workspace (1, 32.01 MiB).$' "$out"
check the_interval says 'reserved bytes in the first line are between 490\.0 MiB and 492\.0 MiB'
check json_has_the_schema json schema '"allocrig.fits/1"'
check json_has_the_peak json live_peak_bytes 478265344
check json_has_reserved_bytes json peak_reserved_bytes 513802240
check json_has_the_card json smallest_card '"l4"'
check json_has_the_interval json peak_reserved_most_bytes 515899392
check json_is_json "$python" -m json.tool "$TEST_TMP/out.json" "$TEST_TMP/again.json"
"$ALLOCRIG" trace -o "$TEST_TMP/out.trace" -- python3 "$program" 2>"$err"
cp "$out" "$TEST_TMP/page"
run fits "$TEST_TMP/out.trace"
check a_trace_has_the_same_page cmp "$out" "$TEST_TMP/page"
run capacity -p torch -w "$TEST_TMP/out.trace"
check capacity_agrees grep -qE '^1 +torch +470\.0 +470\.0 ' "$out"
if long fits_recording; then
    run fits workloads/data/tape_small.expandable.csv.gz
    check a_recording_has_a_page [ "$status" = 0 ]
    check which_is_not_in_doubt says '^So the answer is exact if the program makes the same requests\.'
    check equal_needs_are_not_suggested not says '^(Suggested|To need less)'
    check the_own_setting_and_the_default [ "$(grep -cE '^ *1[0-9]{3}\.0 .*(recorded|the default settings)' "$out")" = 2 ]
fi
if long one_answer_for_a_recording its_assumptions_are_said; then
    # `advise` needs and takes the same.
    recorded=tests/golden/data/snapshots/side_streams.default.pickle.gz
    run fits $recorded
    check its_assumptions_are_said says '^Assumed: frees recorded, host recorded\. `advise --host recorded` assumes the same\.'
    grep 'the default settings' "$out" >"$TEST_TMP/row"
    run advise $recorded --host recorded --jobs 2
    grep '(recorded)$' "$out" >>"$TEST_TMP/row"
    check one_answer_for_a_recording [ "$(grep -c '700\.0.* 2580\.0\|2580\.0 .*700\.0' "$TEST_TMP/row")" = 2 ]
fi
run fits tests/golden/data/two_gpus.trace
check a_page_for_each_gpu [ "$(grep -c '^two_gpus gpu[01], recorded' "$out")" = 2 ]
PYTORCH_CUDA_ALLOC_CONF=expandable_segments:True run fits -- python3 "$program"
check the_setting_of_the_environment grep -qE '460\.0 +yes +l4 +.*expandable_segments:True.*recorded' "$out"
cat >"$TEST_TMP/long.trace" <<'END'
# allocrig-trace 1
a,0,4194304,tag=language_model.model.layers.3.self_attention.rotary:_scaled_dot_product_flash_attention_backward,at=training_loops.py:1200
a,1,4194304,tag=CrossEntropyLoss.backward:_log_softmax_backward_data,at=a_script_with_a_name_that_is_long.py:1200
!,traced,versions,torch 2.11.0
END
run fits "$TEST_TMP/long.trace"
check the_measured_release_is_not_named not grep -q 'was measured with' "$out"
check long_names_are_narrow narrow
sed 's/torch 2.11.0$/torch 2.15.0/' "$TEST_TMP/long.trace" >"$TEST_TMP/other.trace"
echo '!,traced,measured,torch 2.11' >>"$TEST_TMP/other.trace"
check a_long_name_is_cut grep -qE 'training_loops\.py:1200 +\.\.s\.\*\.self_attention\.rotary:$' "$out"

run fits "$TEST_TMP/other.trace"
check another_measured_release_is_named says 'kernels take for themselves was measured with torch 2\.11 and may differ with torch 2\.15\.0\.'

ENDS=4 run fits --steps 9 -- python3 "$program"
check fewer_steps_than_asked said '^allocrig: the program ended by itself after 4 of 9 steps; a step ends when its first optimizer has stepped or, without one, at torch\.cuda\.synchronize\(\)$'
run fits --steps 4 -- python3 "$program"
check all_that_were_asked not said 'ended by itself'

# ---- the card

run fits --card l4 -- python3 "$program" 900
check the_answer_is_no [ "$status" = 1 ]
check with_a_sentence said '^allocrig: it does not fit on l4 under any setting of the allocator; --vary BATCH=1\.\.64 finds the largest that fits of BATCH in the environment, or {BATCH} in the command$'
check in_words says '^Does not fit on l4 under any setting of the allocator: it needs 25\.82 GiB, and the card has 21\.45 GiB\.'
check and_no_suggestion not says '^(Suggested|To need less|Least memory)'
check and_the_card_that_serves grep -qE '^26434\.0|^ *26434\.0 +26434\.0 +no +rtx5090 +the default' "$out"
check no_other_card_was_traced not grep -q '^Traced for' "$out"
check nothing_else_helps says '^No other setting of the allocator needs less, by more than the uncertainty of 1\.00 %\.$'
run fits "$TEST_TMP/out.trace" --card l4
check a_trace_for_another_card says '^Traced for NVIDIA H100 80GB HBM3, and the answer is about l4: .* Trace again with --card l4\.'
run fits --card l4 -- python3 "$program" 746
check it_fits_with_a_setting says '^Fits on l4 with PYTORCH_CUDA_ALLOC_CONF=expandable_segments:True; as it is it needs 2[0-9.]+ GiB, and the card has 21\.45 GiB\.'
check which_is_suggested grep -q '^Suggested: PYTORCH_CUDA_ALLOC_CONF=expandable_segments:True$' "$out"
if long no_card_serves_it; then
    run fits -- python3 "$program" 10000
    check no_card_serves_it grep -qE ' no +none +the default' "$out"
fi

printf '# allocrig-trace 1\na,0,1000000\nf,0\n' >"$TEST_TMP/page.trace"
run fits "$TEST_TMP/page.trace"
check safe_above_reserved_is_explained says '^safe is above reserved where segments do not fill the pages of 2 MiB that a card gives\.$'
run fits "$TEST_TMP/out.trace"
check and_nothing_where_it_is_not not says 'safe is above reserved'

# ---- the largest value

if long fits_searches; then
    run fits --card l4 --vary BATCH=700..800 --json "$TEST_TMP/out.json" -- python3 "$program"
    check the_largest_value says 'Largest BATCH that fits: 745, with the program.s own setting'
    check under_expandable_segments says 'Largest BATCH that fits: 746, with PYTORCH_CUDA_ALLOC_CONF=expandable_segments:True'
    check the_page_is_of_that_value grep -q '^stand_in with BATCH=745, traced for NVIDIA L4' "$out"
    check it_is_narrow narrow
    check progress_is_shown said '^allocrig fits: BATCH=800 seed 1$'
    check and_how_many_there_may_be said '^allocrig fits: BATCH=[0-9]* seed 1, after 800 did not fit, trace 3 of at most [0-9]*$'
    check every_trial_is_one_run says "Tried: $(grep -c '^allocrig fits: ' "$err") values of 700 to 800"
    check in_few_runs [ "$(grep -c '^allocrig fits: ' "$err")" -le 6 ]
    check what_the_search_found_is_said_before_the_page said '^allocrig: the search found BATCH=745$'
    check json_has_the_value json largest 745
    check json_has_the_other json largest_expandable 746
    # Bytes that follow no line: they rise where it no longer fits.
    CLIFF=57 run fits --card l4 --vary BATCH=1..64 --seeds 2 -- python3 "$program"
    check the_search_is_over_at_the_second_seed said '^allocrig fits: BATCH=57 seed 2$'
    check behind_a_cliff says 'Largest BATCH that fits: 57, with the program'
    most=$(sed -n 's/.*trace 3 of at most //p' "$err")
    check the_bound_holds [ "$(grep -c '^allocrig fits: ' "$err")" -le "$most" ]
    check halves_follow_four_lines [ "$(grep -c '^allocrig fits: ' "$err")" -le 12 ]
    run fits --card l4 --vary SIZE=740..750 -- python3 "$program" '{SIZE}'
    check an_argument_varies says 'Largest SIZE that fits: 745, with the program'
fi
run fits --card l4 --vary BATCH=1..8 -- python3 "$program"
check all_fit says 'Largest BATCH that fits: 8 \(the most asked for\)'
check in_two_runs runs 2
check a_value_with_an_effect not grep -q 'take the same memory' "$out"
if long a_value_without_effect which_is_narrow none_fits in_one_run none_is_no; then
    run fits --card l4 --vary OTHER=1..8 -- python3 "$program"
    check a_value_without_effect says '^1 and 8 take the same memory: perhaps the value changes nothing\.'
    check and_what_to_do says '^Does the program read OTHER from its environment\? For an argument, write \{OTHER\} in the command\.'
    check it_is_nothing_that_was_found not said 'the search found'
    check but_the_same_memory said '^allocrig: OTHER=1 and OTHER=8 take the same memory; the page says what to do$'
    # The program does not see the value, and does not fit: nothing was learned about 8.
    run fits --card l4 --vary OTHER=1..8 -- python3 "$program" 900
    check a_value_without_effect_that_does_not_fit says '^Does the program read OTHER from its environment\? For an argument, write \{OTHER\} in the command\.'
    check the_error_too said 'under any setting of the allocator; if the program does not read OTHER from its environment, write {OTHER} in the command$'
    run fits --card l4 --vary OTHER=900..901 -- python3 "$program" '{OTHER}'
    check an_argument_is_one not says '^Does the program read'
    check which_is_narrow narrow
    run fits --card l4 --vary BATCH=900..1000 -- python3 "$program"
    check none_fits says 'Largest BATCH that fits: none of 900 to 1000, with the program'
    check what_was_tried says '^Tried: 900\. A value is taken not to fit if a smaller one does not\.'
    check smaller_values_may_fit says 'Values below 900 were not tried and may fit: --vary BATCH=1\.\.899 tries them'
    check the_error_says_so_too said 'BATCH=900 is the least that was asked for, a smaller one may fit: --vary BATCH=1\.\.899$'
    check in_one_run runs 1
    check none_is_no [ "$status" = 1 ]
fi
MODE=fails run fits --vary BATCH=1..8 -- python3 "$program"
check nothing_is_known_before_the_first_trace [ ! -s "$out" ]
check a_failing_value_is_named said 'BATCH=1: python3 ended with status 3; the search ends$'
# ignored before the search begins, as under nohup: a trap that the search's own shell sets can come after the first signal
trap '' HUP
"$ALLOCRIG" fits --card l4 --vary BATCH=1..8 -- python3 "$program" >"$out" 2>"$err" &
search=$!
trap - HUP
(while kill -HUP "$search" 2>"$err.kill"; do sleep 0.01; done) &
wait "$search"
check a_hangup_that_nohup_ignores_ends_no_search [ $? = 0 ]
if long a_search_that_is_ended_says_so with_what_it_found and_the_status_of_the_signal; then
    STOP=61 CLIFF=57 run fits --card l4 --vary BATCH=1..64 -- python3 "$program"
    check a_search_that_is_ended_says_so says 'What is known of BATCH after 3 traces of values from 1 to 64:'
    check with_what_it_found grep -q "^1 fits, 63 does not, with the program's own setting\.$" "$out"
    check and_the_status_of_the_signal [ "$status" = 143 ]
fi

# ---- seeds

DRAWS=1 run fits --seeds 3 -- python3 "$program"
check three_runs runs 3
check in_their_order [ "$(sed -n 's/^allocrig fits: seed //p' "$err" | xargs)" = '1 2 3' ]
check seeds_are_named says 'aten\.nonzero \(3\); seeds: 3\.$'
check the_spread_of_seeds says 'between 492\.0 MiB and 510\.0 MiB'
MODE=killed run fits --seeds 3 -- python3 "$program"
check a_signal_ends_the_seeds [ "$status" = 137 ]
check after_one_run runs 1
check with_a_reason said 'signal 9 \(Killed\); no further seed is tried$'
MODE=later run fits --seeds 4 -- python3 "$program"
check a_further_seed_that_fails [ "$status" = 2 ]
check has_no_page [ ! -s "$out" ]
check it_is_named said '^allocrig: seed 2: python3 ended with status 3; no further seed is tried$'
check none_comes_after_it runs 2
MODE=dies run fits --seeds 3 -- python3 "$program"
check none_comes_after_a_first_one_that_fails runs 1
check which_has_a_page says 'seeds: 1 \('
if long all_is_known; then
    MODE=exact run fits -- python3 "$program"
    check all_is_known grep -q '^No other operator takes memory that is not known\.$' "$out"
fi

# ---- refusals and failures

MODE=envelope refuses outside_the_envelope 2 'fits cannot answer for stand_in: stream 3 is used by a library that is not traced' fits -- python3 "$program"
MODE=dies run fits -- python3 "$program"
check a_program_that_died_has_a_page says 'The program ended early: this is about the part before that\.'
check which_is_not_a_no [ "$status" = 2 ]
check and_a_sentence said 'python3 ended with status 3; the answer is about the part before that$'
refuses no_trace_is_not_a_no 2 'false ended with status 1; no trace was written' fits -- false
printf '# allocrig-trace 1\nm,step\n!,traced,versions,torch 2.11.0\n' >"$TEST_TMP/still.trace"
refuses no_request 2 'still made no request on a GPU, so there is nothing to answer; does it use the device cuda' fits "$TEST_TMP/still.trace"
# Without a run that begins there is no answer.
printf '# allocrig-trace 1\na,0,5\n!,driver,foo,1\n' >"$TEST_TMP/bad.trace"
refuses bad_note 2 'a note on the driver is driver,local,BYTES' fits "$TEST_TMP/bad.trace" --card rtx4090
printf '# allocrig-trace 1\n# recorder: torch 2.11.0\na,0,5\n!,settings,garbage:::\n' >"$TEST_TMP/bad.trace"
refuses bad_settings 2 'event 1: policy torch: conf "garbage:::": the option is unknown' fits "$TEST_TMP/bad.trace" --card rtx4090
for request in a,0,0 a,0,1000000,0,space=pinned; do
    printf '# allocrig-trace 1\n%s\n' "$request" >"$TEST_TMP/none.trace"
    refuses "nothing_on_the_card_$request" 2 'none made no request on a GPU' fits "$TEST_TMP/none.trace" --card h200
done
# a setting in the sentence stands apart from the next word: five segments, each cut for a block that stays
{
    printf '# allocrig-trace 1\n# recorder: torch 2.11.0\n'
    for i in {0..5}; do
        printf 'a,%d,%d000000000\nf,%d\na,%d,4000000000\n' $((2 * i)) $((10 + i)) $((2 * i)) $((2 * i + 1))
    done
} >"$TEST_TMP/cut.trace"
run fits "$TEST_TMP/cut.trace" --card l4
check a_setting_and_what_it_needs grep -q '^Does not fit on l4 under any setting of the allocator: with$' "$out"
check with_a_space_between says 'CONF=[a-zA-Z0-9_:,]* it needs '
printf '# allocrig-trace 1\nm,step\na,0,5000000000\n' >"$TEST_TMP/late.trace"
run fits "$TEST_TMP/late.trace" --card l4
check a_peak_after_the_last_step says '^Live peak 4\.657 GiB, after the last step\. '
# The driver of an L4 takes 352 bytes for each of 58 x 1536 threads and 64 MiB, 94 MiB in pages of 2 MiB.
printf '# allocrig-trace 1\n# card: NVIDIA L4\n!,driver,local,1024\n!,driver,took,67108864\n!,driver,local,1376\na,0,%s\nm,step\n' $((23026728960 - 50 * 1048576)) >"$TEST_TMP/driver.trace"
run fits "$TEST_TMP/driver.trace" --card l4 --json "$TEST_TMP/out.json"
check the_driver_leaves_too_little [ "$status" = 1 ]
check in_all_lines grep -qE ' no +a10 +best-fit' "$out"
check with_what_it_leaves says '^Does not fit on l4 .*, and the card has 21\.35 GiB\.$'
check of_the_card says "Usable memory of l4: 21\.35 GiB without the driver's own for the kernels\."
check json_knows_it json fits false
run advise "$TEST_TMP/driver.trace" --card l4
check advise_agrees [ "$status" = 1 ]
check and_says_the_capacity says '^driver, at 21\.35 GiB, frees ordered$'
check and_why says '^Also without 94\.00 MiB that the driver takes for the kernels of the program\.$'
run explain "$TEST_TMP/driver.trace" -p best-fit
check explain_agrees says '^Also without 94\.00 MiB that the driver takes for the kernels of the program\.$'
run explain "$TEST_TMP/driver.trace" -p best-fit --capacity 21.4GiB
check a_capacity_that_is_given_stays says 'at 21\.40 GiB, frees ordered: every request was served'
run advise "$TEST_TMP/driver.trace" --capacity 21.4GiB
check in_advise_too says '^driver, at 21\.40 GiB'
run capacity "$TEST_TMP/driver.trace" -p best-fit
check capacity_agrees says 'driver was recorded on NVIDIA L4, with 21\.35 GiB by the profile l4'
grep -v driver "$TEST_TMP/driver.trace" >"$TEST_TMP/plain.trace"
run fits "$TEST_TMP/plain.trace" --card l4
check without_a_driver_it_fits grep -qE ' yes +l4 +best-fit' "$out"
refuses no_step 2 '--steps: "0" must be a whole number from 1 on' fits --steps 0 -- true
refuses no_rank 2 '--world: "0" must be' trace --world 0 -- true
refuses a_command_without_dashes 2 '"train.py" after "python3": .* write fits -- python3 train\.py' fits python3 train.py
refuses no_framework 3 'no trace was written: true imported neither torch nor jax' fits -- true
refuses nothing_given 2 'no command is given; write fits -- python3 train.py, or name a trace' fits
refuses both_given 2 'give a trace or a command, not both' fits "$TEST_TMP/out.trace" -- true
refuses a_trace_has_run 2 'is a trace, which is not traced again: of the options only --card and --json apply' fits "$TEST_TMP/out.trace" --seeds 2
refuses a_program_as_a_trace 2 'train\.py is a program, not a trace; write fits -- python3 train\.py' fits train.py
refuses a_card_of_two_sizes 2 'no card "a100"; did you mean: a100-40, a100-80\?' fits --card a100 -- true
refuses a_size_as_a_card 2 'no card "24GiB"; .* `advise TRACE --capacity 24GiB`' fits --card 24GiB -- true
refuses no_range 2 '--vary x: write a name and two numbers' fits --vary x -- true
refuses an_empty_range 2 '--vary B=4..2: write a name' fits --vary B=4..2 -- true
refuses no_seeds 2 '--seeds is "0"; it must be a whole number from 1 to 10000' fits --seeds 0 -- true
refuses seeds_without_end 2 '--seeds is "99999999999"; it must be a whole number from 1 to 10000' fits --seeds 99999999999 -- true
refuses no_such_trace 2 'no.trace' fits "$TEST_TMP/no.trace"

# ---- Python

if ! [ -e .build/release/liballocrig.so.0 ]; then
    echo "skip functions_of_python: the library is not built"
elif long functions_of_python; then
    of_python() {
        ALLOCRIG_PROGRAM=$(realpath "$ALLOCRIG") PYTHONPATH=$PWD/bench/library/python PYTHONDONTWRITEBYTECODE=1 \
            "$python" tests/cli/library_traced.py "$TEST_TMP"
    }
    check functions_of_python of_python
fi
check leaves_nothing [ -z "$(find "$TEST_TMP" -name 'allocrig-*')" ]

# ---- the real tracer

unset ALLOCRIG_TRACER
python=${ALLOCRIG_PYTHON:-python3}
if ! "$python" -c 'import torch' 2>/dev/null; then
    echo "skip the_real_tracer: torch is not installed for $python (ALLOCRIG_PYTHON names another one)"
    finish
fi
cat >"$TEST_TMP/train.py" <<'END'
import os

import torch

model = torch.nn.Sequential(*(torch.nn.Linear(1024, 1024) for _ in range(4))).cuda()
optimizer = torch.optim.AdamW(model.parameters())
for step in range(3):
    model(torch.randn(int(os.environ["ROWS"]), 1024, device="cuda")).sum().backward()
    optimizer.step()
    optimizer.zero_grad()
END
ROWS=8 run fits --seeds 3 -- "$python" "$TEST_TMP/train.py"
check real_seeds_are_programs_of_their_own [ "$status" = 0 ]
run fits --card l4 --vary ROWS=1000..1003 --json "$TEST_TMP/out.json" -- "$python" "$TEST_TMP/train.py"
check the_real_tracer_succeeds [ "$status" = 0 ]
check blocks_have_lines grep -qE ' train\.py:[0-9]+ +[*a-z]' "$out"
printf 'import torch\ntorch.empty(8, device="cuda:1")\n' >"$TEST_TMP/second.py"
run fits -- "$python" "$TEST_TMP/second.py" # the program's own lines are on standard error too
check a_card_that_is_not_there [ "$status" = 2 ]
check no_request_before said 'ended with status 1; it made no request on a GPU before that'
check with_cudas_sentence said 'CUDA error: invalid device ordinal: the program uses cuda:1'
check the_largest_is_asked_for grep -q '"largest": 1003,' "$TEST_TMP/out.json"
finish
