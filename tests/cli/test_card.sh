#!/bin/bash
# The suite on a card, with a stand-in for the CUDA driver in its place: `run` takes the card of
# itself, runs have a process each, what the scripts of tests/gpu compare is equal, and without a
# driver all of that says so.
set -u
# shellcheck source=tests/cli/lib.bash
. "$(dirname "$0")/lib.bash"
tmp=$TEST_TMP
tape=workloads/data/tape_small.default.csv.gz
stand_in=$PWD/.build/${TEST_VARIANT:-release}/tests/cuda_stand_in

# On a machine with a card, its driver would be found.
no_driver="cuda: .*Not available"
if "$ALLOCRIG" list devices cuda | tr '\n' ' ' | grep -q "$no_driver"; then
    run run -p torch -w order_flip
    check without_a_card_sim [ "$status" = 0 ]
    check without_a_card_it_says_so grep -qx 'No NVIDIA driver here: on the simulated device\.' "$out"
    refuses card_asked_for 3 . run -d cuda -p torch -w order_flip
    refuses card_asked_for_by_a_suite 3 . run workloads/suites/card.ini --output "$tmp/no"
    check nothing_is_written [ ! -e "$tmp/no/results.json" ]
    tests/gpu/run.sh "${TEST_VARIANT:-release}" >"$out"
    check gpu_tests_end_well [ $? = 0 ]
    check gpu_tests_are_skipped grep -qE '^0 passed, 0 failed, [1-9][0-9]* skipped$' "$out"
fi
if [ ! -e "$stand_in/libcuda.so.1" ]; then
    echo "skip on_a_card: the stand-in for the driver is not built (it needs cuda.h)"
    finish
fi

export LD_LIBRARY_PATH=$stand_in
run run -p torch -p growth -w order_flip -w "$tape" --json "$tmp/card.json" --reps 2
check card_is_taken [ "$status" = 0 ]
check card_is_named grep -q '"kind": "cuda"' "$tmp/card.json"
check card_needs_no_word [ "$(grep -c 'simulated device' "$out")" = 0 ]
run run -p torch -w order_flip --csv -
check six_repetitions [ "$(wc -l <"$out")" = 7 ]
run run -p torch -w order_flip --placements -
check one_for_files_of_one_run [ "$(wc -l <"$out")" = 25 ]
run run -d sim -p torch -w order_flip --csv -
check sim_on_request grep -q ',sim,h100,' "$out"
run run -p 'fault(n=2)+direct' -w order_flip --on-fail stop
check failing_call [ "$status" = 0 ]
check failing_call_is_said grep -q 'DNF @' "$out"
refuses beyond_the_card 2 . run -d cuda:capacity=1TiB -p torch -w order_flip
refuses no_such_ordinal 3 . run -d cuda:ordinal=99 -p torch -w order_flip
if "${CC:-cc}" -std=c11 -Wall -Wextra -Werror -shared -fPIC -o "$tmp/libnvidia-ml.so.1" tests/cli/nvml_stand_in.c; then
    for visible in '' 0 GPU-1; do
        LD_LIBRARY_PATH=$tmp:$stand_in CUDA_VISIBLE_DEVICES=$visible PYTORCH_CUDA_ALLOC_CONF=a:b TF_VAR_password=hunter2 \
            "$ALLOCRIG" run -d cuda -p torch -w order_flip --reps 1 --json "$tmp/context.json" >"$out" 2>"$err"
        check "card_is_described_$visible" says '^Card: Stand-in, driver 580.1, CUDA 13.0; clock 1410 of at most 1980 MHz, 61 C, ? '
    done
    tr -s ' \n' ' ' <"$out" >"$tmp/one_line"
    check throttling_is_warned_of grep -q 'Warning: the card.s clocks were reduced (software power cap, hardware thermal slowdown)' "$tmp/one_line"
    check others_are_warned_of grep -q 'Warning: before the runs 2 other processes used 1.000 GiB of the card' "$tmp/one_line"
    check other_variables_are_not eval '! grep -q hunter2 "$tmp/context.json"'
    check variables_are_kept grep -q '"PYTORCH_CUDA_ALLOC_CONF": "a:b"' "$tmp/context.json"
    check card_is_kept grep -q '"uuid": "GPU-1"' "$tmp/context.json"
    check unknown_is_null grep -q '"power_mw": null' "$tmp/context.json"
    check card_has_its_figures [ "$(sed -n '/"card": {/,/"before"/s/^ *"\(.*\)":.*/\1/p' "$tmp/context.json" | tr '\n' ' ')" = 'card name uuid driver cuda bus numa_node sm_clock_max_mhz memory_clock_max_mhz sm_clock_set_mhz memory_clock_set_mhz power_limit_mw ecc mig persistence virtualisation before ' ]
    check others_are_kept grep -q '"process": 4242' "$tmp/context.json"
    LD_LIBRARY_PATH=$tmp:$stand_in "$ALLOCRIG" run -d sim -p torch -w order_flip --json "$tmp/context.json" >"$out" 2>"$err"
    check no_card_on_sim grep -q '"card": null' "$tmp/context.json"
fi
LD_LIBRARY_PATH=$stand_in bench/suite/model_cells.sh "$tmp/model" -p '^(torch|vmm|direct)$' -w 'tape_small|side_streams' >"$out"
run model "$tmp/model" -o "$tmp/page.md"
check model_page [ "$status" = 0 ]
check model_page_has_every_cell [ "$(grep -cE '^\| (tape_small|side_streams) \| `(torch|vmm|direct)` \| [0-9]+ \| [0-9.]+ %' "$tmp/page.md")" = 6 ]
check model_calls_are_the_same [ "$(grep -c 'not the same calls' "$tmp/page.md")" = 0 ]
check model_page_has_ranks grep -qE '^\| tape_small \| 3 \| -?[01]\.[0-9]+ \|$' "$tmp/page.md"
check model_of_one_run [ "$(grep -c 'against itself' "$tmp/page.md")" = 0 ]
LD_LIBRARY_PATH=$stand_in bench/suite/model_cells.sh "$tmp/again" card -p '^torch$' -w 'tape_small' >"$out"
run model "$tmp/model" "$tmp/again" -o "$tmp/again.md"
check model_of_a_repetition grep -qE '^\| driver time of policy x workload within 25 % \| [01] of 1 \| ' "$tmp/again.md"
mkdir "$tmp/empty"
refuses model_of_nothing 2 'has no folders of runs' model "$tmp/empty"
rm -f "$tmp"/model/*torch*/sim.calls
refuses model_of_half 2 'sim.calls: cannot be read' model "$tmp/model" -o "$tmp/half.md"
check nothing_half_written [ ! -e "$tmp/half.md" ]
check equal env TEST_TMP="$(mktemp -d -p "$tmp")" tests/gpu/equal.sh -j 2 -w 'order_flip|linear_ramp|checkerboard'
check verify env TEST_TMP="$(mktemp -d -p "$tmp")" tests/gpu/verify.sh -j 2 -w 'order_flip|linear_ramp'
finish
