#!/bin/bash
# Runs in processes of their own: crashes, time-outs and refusals to start are results, the suite
# goes on, nothing is left behind, and the figures are those of runs that share a process.
set -u
# shellcheck source=tests/cli/lib.bash
. "$(dirname "$0")/lib.bash"
tmp=$TEST_TMP
cc=${CC:-cc}
bad=$tmp/bad.so
tape=workloads/data/tape_small.default.csv.gz

policies=(-p all)
long every_policy_in_a_process || policies=(-p direct -p growth -p torch -p async -p vmm)
for way in "" --isolate; do
    "$ALLOCRIG" run -d sim "${policies[@]}" -w order_flip -w "$tape" --reps 2 --json "$tmp/r$way.json" \
        --csv "$tmp/r$way.csv" --jobs 2 $way >"$tmp/table$way"
done
check same_json cmp <(without_context "$tmp/r.json") <(without_context "$tmp/r--isolate.json")
check same_csv cmp "$tmp/r.csv" "$tmp/r--isolate.csv"
check same_table cmp <(grep -v ^wrote "$tmp/table") <(grep -v ^wrote "$tmp/table--isolate")
for way in "" --isolate; do
    for file in placements series calls stats; do
        "$ALLOCRIG" run -d sim -p torch -w "$tape" --$file "$tmp/$file$way" $way >"$out"
    done
    "$ALLOCRIG" run -d sim -p torch -w order_flip --output "$tmp/folder$way" $way >"$out"
done
for file in placements series calls stats folder/data/series-order_flip.csv; do
    other=${file/folder/folder--isolate}
    [ "$other" != "$file" ] || other=$file--isolate
    check "same_${file//\//_}" cmp "$tmp/$file" "$tmp/$other"
done
"$ALLOCRIG" run -d sim -p torch -w order_flip --placements - --isolate >"$tmp/stdout"
"$ALLOCRIG" run -d sim -p torch -w order_flip --placements - >"$tmp/stdout2"
check rows_on_standard_output cmp "$tmp/stdout" "$tmp/stdout2"

# Every call is there, with the time that the metric sums up.
calls=$("$ALLOCRIG" run -d sim -p torch -w "$tape" --json - | sed -n 's/.*"driver_calls": \([0-9]*\).*/\1/p')
check calls_are_all_there [ "$(($(wc -l <"$tmp/calls") - 1))" = "$calls" ]
sum=$("$ALLOCRIG" run -d sim -p torch -w "$tape" --json - | sed -n 's/.*"driver_time_ns": \([0-9]*\).*/\1/p')
check calls_sum_up [ "$(awk -F, 'NR > 1 { s += $4 } END { print s }' "$tmp/calls")" = "$sum" ]

# The policy cannot begin: a result, in either way.
for way in "" --isolate; do
    run run -d sim:capacity=1GiB -p rmm-pool:initial_pool_size=4GiB -p torch -w order_flip --json "$tmp/start.json" $way
    check "not_started_ends_well$way" [ "$status" = 0 ]
    check "not_started_is_said$way" grep -q 'DNF: not started: .*no 4294967296 bytes' "$out"
    check "not_started_in_json$way" grep -q '"cause": "not started"' "$tmp/start.json"
done
run run -d sim:capacity=1GiB -p rmm-pool:initial_pool_size=4GiB -w order_flip --require-pass
check not_started_is_not_passed [ "$status" = 1 ]
check not_started_is_named grep -q '1 of 1 runs did not finish.*: not started' "$err"
run run -d sim -p 'fault(n=3)+vmm' -w order_flip --isolate
check failing_call_is_a_result [ "$status" = 0 ]
refuses bad_input_still_ends_it 2 'timeout is 0' run -d sim -p torch -w order_flip --timeout 0
refuses bad_device_in_a_process 2 'there is no device "sym"' run -d sym -p torch -w order_flip
refuses bad_option_in_a_process 2 'has no option "capcity"' run -d sim:capcity=1GiB -p torch -w order_flip --isolate
printf '# allocrig-trace 1\na,0,5\nf,7\n' >"$tmp/bad.trace"
refuses bad_trace 2 'bad.trace:3' run -d sim -p torch -w "$tmp/bad.trace" --isolate

if ! command -v "$cc" >/dev/null; then
    echo "skip misbehaving_policies: no C compiler"
    finish
fi
check misbehaving_builds "$cc" -std=c11 -D_GNU_SOURCE -Wall -Wextra -Werror -O1 -shared -fPIC -I. \
    -o "$bad" tests/cli/misbehaving.c
# The shortest limit in which the runs that go well are done: on a busy machine they take longer.
for limit in 1 4 16 64 256; do
    run run -d sim -p "$bad" -p "$bad:harm=1" -p "$bad:harm=2" -p "$bad:harm=3" -p "$bad:harm=4" -p torch -w order_flip \
        --isolate --timeout "$limit" --jobs 2 --json "$tmp/bad.json" --csv "$tmp/bad.csv"
    [ "$(grep -c 'DNF: timed out' "$out")" -gt 1 ] || break
done
check a_crash_is_an_internal_fault [ "$status" = 4 ]
check a_crash_names_the_policy grep -qE "^allocrig: policy .*/bad.so:harm=1 crashed at order_flip: its row says how$" "$err"
check suite_goes_on [ -s "$tmp/bad.json" ]
check crash_is_said grep -q 'DNF: crashed: signal 11 (Segmentation fault)' "$out"
check time_out_is_said grep -q "DNF: timed out after $limit s" "$out"
check exit_is_said grep -q 'DNF: crashed: ended with status 7 and no result' "$out"
check silent_exit_is_said grep -q 'DNF: crashed: ended with status 0 and no result' "$out"
check others_are_ranked [ "$(grep -cE '^ *[12] ' "$out")" = 2 ]
check crash_in_json grep -q '"detail": "crashed: signal 11 (Segmentation fault)"' "$tmp/bad.json"
check time_out_in_json grep -q '"cause": "timed out"' "$tmp/bad.json"
check crash_in_csv grep -q ',false,crashed,' "$tmp/bad.csv"
run run -d sim -p "$bad:harm=1,after=10" -w order_flip --isolate --placements "$tmp/cut.csv"
check no_cut_off_rows [ "$(cat "$tmp/cut.csv")" = 'event,op,id,requested,granted,segment,offset,granted_total,reserved' ]

# Without --isolate: each lie is found, the rest is ranked and written, and the exit status says so.
lies=$(sed -n '/^#define LIES/,/^enum/p' tests/cli/misbehaving.c | grep -oE '[a-z][a-z-]*' | grep -vE '^(define|none|enum|lie)$')
specs=()
for lie in $lies; do specs+=(-p "$bad:lie=$lie,limit=64MiB"); done
run run -d sim -p torch "${specs[@]}" -w order_flip -w random:events=300 --json "$tmp/lies.json" --csv "$tmp/lies.csv"
check a_lie_is_an_internal_fault [ "$status" = 4 ]
check a_lie_names_the_policy grep -qE '^allocrig: policy .*/bad.so:lie=overlap,limit=64MiB broke the contract at order_flip: its row says how$' "$err"
check a_lie_is_told_in_the_table grep -qE 'DNF: broke the contract: event [0-9]+: the request failed: call [0-9]+: .* overlaps the live one' <(tr -s ' \n' ' ' <"$out")
check a_limit_is_told grep -qE '[0-9]+ bytes are reserved, above limit=67108864' "$tmp/lies.json"
check a_counter_is_told grep -qE 'the counter .failures. is 1, alloc has returned NO_MEMORY 0 times' "$tmp/lies.json"
check a_block_outside_is_told grep -qE 'the walk has no used range at 4096, where a block is live' "$tmp/lies.json"
check there_are_lies [ "$(wc -w <<<"$lies")" -ge 20 ]
check the_liar_is_not_ranked [ "$(awk -F, '$1 == "torch" && $15 == "true"' "$tmp/lies.csv" | wc -l)" = 2 ]
for lie in $lies; do
    check "found_$lie" grep -qF "$lie" <(awk -F, '/,crashed,/ { print $2 }' "$tmp/lies.csv")
done
run run -d sim -p "$bad" -w order_flip --csv "$tmp/honest.csv"
check an_honest_policy_passes [ "$status" = 0 ]
run run -d sim -p "$bad:harm=1" -p "$bad:harm=5,hook=create" -p torch -w order_flip
check a_crash_ends_one_run [ "$status" = 4 -a "$(grep -c 'DNF: crashed: signal' "$out")" = 2 ]
# What a policy must not ask of its backing, nor change of the process: found in every hook, destroy too.
for hook in create alloc destroy; do
    specs=()
    for harm in {12..15} 18; do specs+=(-p "$bad:harm=$harm,hook=$hook"); done
    run run -d sim -p growth "${specs[@]}" -w order_flip --csv "$tmp/misuse.csv"
    check "misuse_in_$hook" [ "$status:$(grep -c ',false,crashed,' "$tmp/misuse.csv")" = 4:5 ]
    tr -s ' \n' ' ' <"$out" >"$tmp/misuse"
    check "misuse_in_${hook}_is_told" [ "$(grep -oE 'used the device wrongly|still holds [0-9]+ bytes|overlaps the live one|changed the rounding' "$tmp/misuse" | wc -l)" = 5 ]
done
for harm in 13 15 18; do
    for command in "capacity -d sim -w order_flip" "explain $tape --capacity 900MiB" "drift $tape --steps 10"; do
        read -ra words <<<"$command"
        refuses "destroy_${harm}_in_${words[0]}" 4 'policy misbehaving.*(where no segment lies|still holds|changed the rounding)' "${words[@]}" -p "$bad:harm=$harm,hook=destroy"
    done
    printf '[machine]\ncard = sim\n[tenant first]\npolicy = %s:harm=%s,hook=destroy\nworkload = order_flip\n' "$bad" $harm >"$tmp/destroys.ini"
    refuses "destroy_${harm}_in_tenants" 4 'process first: policy misbehaving.*(where no segment lies|still holds|changed the rounding)' tenants "$tmp/destroys.ini"
    sed "s,^policy = .*,policy = $bad:harm=$harm\,hook=destroy,; /^enable_sleep_mode/d" workloads/scenarios/eight_cards.ini >"$tmp/destroys.ini"
    refuses "destroy_${harm}_in_twin" 4 'the end of its policy: .*(where no segment lies|still holds|changed the rounding)' twin "$tmp/destroys.ini" --what-if no
done
refuses a_foreign_release_in_fidelity 4 'released in destroy what it does not hold' fidelity "$tape" -p "$bad:harm=13,hook=destroy"
refuses a_destroy_in_fidelity 4 'destroy changed the rounding' fidelity "$tape" -p "$bad:harm=18,hook=destroy"
# A process that is changed in another way gives the same figures.
run explain "$tape" -p "$bad" --capacity 900MiB
tr -s ' \n' '\n' <"$out" >"$tmp/unchanged"
for harm in 16 17 20 22; do
    run explain "$tape" -p "$bad:harm=$harm" --capacity 900MiB
    check "same_figures_after_$harm" diff <(tr -s ' \n' '\n' <"$out" | sed 's/:harm=[0-9]*//') "$tmp/unchanged"
done
run explain "$tape" -p "$bad:harm=19" --capacity 900MiB
check a_closed_output_is_no_success [ "$status" = 2 ]
if [ "${TEST_VARIANT:-release}" = release ] && localedef -i de_DE -f UTF-8 "$tmp/de_DE.UTF-8" 2>/dev/null; then
    LOCPATH=$tmp MISBEHAVING_LOCALE=de_DE.UTF-8 refuses a_decimal_comma 4 'changed the decimal point' explain "$tape" -p "$bad:harm=21"
else
    echo "skip a_decimal_comma: no localedef, or a sanitizer"
fi
refuses a_create_without_a_sentence 4 'create returned HOST_MEMORY without a sentence' run -d sim -p "$bad:harm=7" -w order_flip
# Other commands end, with a sentence. (A sanitizer reports a crash itself.)
refuses a_lie_in_capacity 4 'event [0-9]+: policy misbehaving: the request failed: call 4: .*overlaps' \
    capacity -d sim -p "$bad:lie=overlap" -w order_flip
refuses a_lie_in_drift 4 'allocrig: lora_recompute[^:]*: event [0-9]+: policy misbehaving: the request failed: .*overlaps' \
    drift workloads/data/lora_recompute.default.csv.gz -p "$bad:lie=overlap" --steps 10
if [ "${TEST_VARIANT:-release}" = release ]; then
    refuses a_crash_in_capacity 4 'the policy ".*/bad.so" crashed: signal 11' capacity -d sim -p "$bad:harm=1" -w order_flip
    # Two threads: a stack that ends leaves no room for the handler, so each has another one for it.
    refuses an_endless_recursion 4 'the policy ".*/bad.so" crashed: signal 11' capacity -d sim -p "$bad:harm=11" -w order_flip --jobs 2
    refuses an_abort_in_explain 4 'the policy ".*/bad.so" crashed: signal 6' explain "$tape" -p "$bad:harm=5,hook=free"
    MISBEHAVING_ENTRY=1 refuses a_crash_at_the_entry 4 'the policy ".*/bad.so" crashed: signal 11' list policies "$bad"
    # A process that a policy ends has no answer: not 0, and not silent.
    ended='the policy ".*/bad.so" ended the process with status [07] and no result'
    printf '[machine]\ncard = sim\n[process p]\npolicy = %s:harm=8\n[buffer x]\nbytes = 3MiB\ncount = 8\n[schedule]\nstart = x.load\n' \
        "$bad" >"$tmp/ends.ini"
    printf '[machine]\ncard = sim\n[tenant a]\npolicy = %s:harm=4\nworkload = %s\n' "$bad" "$PWD/$tape" >"$tmp/leaves.ini"
    refuses an_exit_in_twin 4 "$ended" twin "$tmp/ends.ini"
    refuses an_exit_in_tenants 4 "$ended" tenants "$tmp/leaves.ini"
    refuses an_exit_in_fidelity 4 "$ended" fidelity "$tape" -p "$bad:harm=8"
    refuses an_exit_in_explain 4 "$ended" explain "$tape" -p "$bad:harm=3"
    refuses an_exit_in_two_threads 4 "$ended" capacity -d sim -p "$bad:harm=8" -w order_flip
    refuses an_exit_in_minimize 4 "$ended" minimize "$tape" --until fails -p "$bad:harm=8" -o "$tmp/least.trace"
    refuses an_exit_in_gen 4 "$ended" gen robson -p "$bad:harm=4" -o "$tmp/robson.trace"
    refuses an_exit_in_drift 4 "$ended" drift workloads/data/lora_recompute.default.csv.gz -p "$bad:harm=8" --steps 10
    check it_says_that_run_goes_on grep -q '; `allocrig run` goes on with other policies$' "$err"
    refuses a_quick_exit 4 "$ended" fidelity "$tape" -p "$bad:harm=9"
    run explain "$tape" -p "$bad:harm=10"
    check an_exit_after_the_end [ "$status:$(grep -c '/bad.so" ended the process with status 7 after its last result$' "$err")" = 4:1 ]
    MISBEHAVING_ENTRY=8 refuses an_exit_at_the_entry 4 "$ended$" list policies "$bad"
    MISBEHAVING_ENTRY=1 refuses a_crash_at_the_entry_in_run 4 'bad.so" crashed: signal 11 [^;]*$' \
        run -p torch -p "$bad" -w order_flip
    check the_recording_is_not_written [ ! -e "$tmp/robson.trace" ]
    MISBEHAVING_MARK=$tmp/marked env --default-signal=INT "$ALLOCRIG" explain "$tape" -p "$bad:harm=2" >"$out" 2>"$err" &
    process=$!
    until [ -e "$tmp/marked" ] || ! kill -0 $process; do sleep 0.01; done
    kill -s INT $process
    wait $process 2>/dev/null
    check a_hang_is_named_at_ctrl_c grep -q 'the policy ".*/bad.so" was running at signal 2' "$err"
fi

# Ended from outside, it takes its children along and leaves no file. The time limit of the runs is
# far off; the name of the policy's file tells which processes are theirs.
for signal in INT TERM KILL; do
    mkdir "$tmp/ended"
    rm -f "$tmp/hangs"
    MISBEHAVING_MARK=$tmp/hangs env --default-signal=INT "$ALLOCRIG" run -d sim -p "$bad:harm=2" -w order_flip --isolate --timeout 86400 \
        --json "$tmp/ended/r.json" --output "$tmp/ended/o" >"$out" 2>"$err" &
    process=$!
    until [ -e "$tmp/hangs" ] || ! kill -0 $process; do sleep 0.01; done
    kill -s "$signal" $process
    { wait $process; } 2>/dev/null
    check "ends_at_once_$signal" [ $? -gt 128 ]
    for _ in {1..6000}; do # a busy machine may take long to end the child
        pgrep -f "$bad:harm=2" >"$tmp/left" || break
        sleep 0.05
    done
    check "no_process_is_left_$signal" [ ! -s "$tmp/left" ]
    check "no_file_is_left_$signal" [ -z "$(find "$tmp/ended" -type f)" ]
    rm -rf "$tmp/ended"
done
finish
