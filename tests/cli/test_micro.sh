#!/bin/bash
# The micro-benchmarks build and run, and the instruction counts keep their bars. Release only: the
# numbers of an instrumented build mean nothing.
set -u
check() { if "${@:2}"; then echo "ok $1"; else echo "not ok $1"; fi; }
build=.build/release
if [ "$TEST_VARIANT" != release ]; then
    echo "skip micro: only the release build is measured"
    exit 0
fi

if printf '#include <benchmark/benchmark.h>\n' | "${CXX:-g++}" -E -x c++ - >/dev/null 2>&1; then
    check micro_builds flock .build make -s $build/bench/micro/micro
    RESULTS=$TEST_TMP MICRO_FLAGS='--benchmark_filter=^(pair|replay)/.*(growth|loop_only) --benchmark_min_time=0.001' \
        bench/micro/run.sh $build micro >"$TEST_TMP/micro.txt" 2>&1
    check micro_has_the_reference_loop grep -qE '^\(loop only\) +[0-9]+\.[0-9]' "$TEST_TMP/micro.txt"
    check micro_has_each_column [ "$(awk '$1 == "growth" { print NF }' "$TEST_TMP/micro.txt")" = 7 ]
    check micro_leaves_out_what_was_not_run grep -qE '^null +- +-' "$TEST_TMP/micro.txt"
    check micro_writes_json grep -q '"cpu_time"' "$TEST_TMP/micro.json"

    RESULTS=$TEST_TMP MICRO_FLAGS='--benchmark_filter=^(pool|threads)/.*/growth --benchmark_repetitions=1' \
        bench/micro/run.sh $build micro >"$TEST_TMP/host.txt" 2>&1
    check micro_pools_warm_and_cold grep -qE '^growth +[0-9.]+ +[0-9.]+ +[0-9.]+ +[0-9.]+$' "$TEST_TMP/host.txt"
    # Three figures of each of shared and own, busy and spaced; one thread everywhere.
    check micro_threads_in_all_modes [ "$(grep -c 'by number of threads' "$TEST_TMP/host.txt")" = 12 ]
    check micro_threads_fail_nowhere awk '/failed/ { bad = 1 } END { exit bad }' "$TEST_TMP/host.txt"
    check micro_threads_report_latency grep -q '"p999_ns": [0-9]' "$TEST_TMP/micro.json"

    # The sections of a card, on a simulated one: a plain free waits for the kernel of another stream.
    $build/bench/micro/micro --device=sim:profile=h100 --benchmark_filter='^sim/' \
        --benchmark_out="$TEST_TMP/sim.json" >"$TEST_TMP/sim.txt" 2>&1
    check micro_card_ends_well [ $? = 0 ]
    check micro_card_fails_nowhere awk '/failed/ { bad = 1 } END { exit bad }' "$TEST_TMP/sim.txt"
    check micro_card_times_each_call [ "$(grep -cE '^[a-z]+ (idle|busy) +[0-9.]+ +[0-9.]+ +[0-9.]+$' "$TEST_TMP/sim.txt")" = 18 ]
    check micro_card_has_threads [ "$(grep -c 'by number of threads.* card' "$TEST_TMP/sim.txt")" = 6 ]
    check micro_card_free_waits_for_the_kernel awk '$1 == "free" { ns[$2] = $3 }
        END { exit !(ns["busy"] - ns["idle"] > 1900000) }' "$TEST_TMP/sim.txt"
    check micro_card_says_that_it_is_modelled grep -q '^sim times are modelled' "$TEST_TMP/sim.txt"
    # On a card's device too, with a stand-in for the driver: its kernels take no time.
    stand_in=$PWD/$build/tests/cuda_stand_in
    if [ -e "$stand_in/libcuda.so.1" ]; then
        LD_LIBRARY_PATH=$stand_in STAND_IN_REPORT=$TEST_TMP/left.txt $build/bench/micro/micro \
            --benchmark_filter='^cuda/' >"$TEST_TMP/cuda.txt" 2>&1
        check micro_cuda_ends_well [ $? = 0 ]
        check micro_cuda_fails_nowhere awk '/failed/ { bad = 1 } END { exit bad }' "$TEST_TMP/cuda.txt"
        check micro_cuda_times_each_call [ "$(grep -cE '^[a-z]+ (idle|busy) +[0-9.]+ +[0-9.]+ +[0-9.]+$' "$TEST_TMP/cuda.txt")" = 18 ]
        # A report for each process, with its number at the end of the name.
        check micro_cuda_leaves_nothing awk '$1 != "calls" { bad = 1 } END { exit bad || !NR }' "$TEST_TMP"/left.txt.*
    else
        echo "skip micro_cuda: the stand-in for the driver is not built"
    fi
    $build/bench/micro/micro --device=nothing >"$TEST_TMP/none.txt" 2>&1
    check micro_refuses_an_unknown_device [ $? = 2 ]
else
    echo "skip micro: Google Benchmark is not installed"
fi

# What the harness adds, on a simulated card: nothing under growth; direct's driver calls are seen.
tape=gradient_tape:layers=2,width=256,batches=8,lengths=1,steps=4
check harness_builds flock .build make -s $build/bench/micro/harness
$build/bench/micro/harness -d sim:profile=h100 -w $tape -p growth --csv "$TEST_TMP/harness.csv" >"$TEST_TMP/harness.txt"
check harness_adds_nothing_where_no_call_is_made [ $? = 0 ]
check harness_says_met grep -qE '^growth .*\+0\.00 %.*: met$' "$TEST_TMP/harness.txt"
check harness_writes_each_block [ "$(wc -l <"$TEST_TMP/harness.csv")" = 11 ]
$build/bench/micro/harness -d sim:profile=h100 -w $tape -p direct >"$TEST_TMP/direct.txt"
check harness_can_be_missed [ $? = 1 ]
$build/bench/micro/harness -d sim -w $tape -p growth:limit=1MiB >/dev/null 2>"$TEST_TMP/unserved.txt"
check harness_names_what_was_not_served grep -q '^harness: growth:limit=1MiB: event [0-9]* of gradient_tape' "$TEST_TMP/unserved.txt"
$build/bench/micro/harness --blocks 0 2>/dev/null
check harness_refuses_no_blocks [ $? = 2 ]

if command -v valgrind >/dev/null; then
    check instructions_build flock .build make -s $build/bench/micro/instructions
    RESULTS=$TEST_TMP QUICK=1 bench/micro/run.sh $build instructions >"$TEST_TMP/instructions.out" 2>&1
    status=$?
    cat "$TEST_TMP/instructions.out"
    check instructions_end_well [ $status = 0 ]
    check instructions_meet_all_bars grep -q '^all bars met' "$TEST_TMP/instructions.out"
    check instructions_judged_all [ "$(grep -o "met (<=" "$TEST_TMP/instructions.out" | wc -l)" = 25 ]
else
    echo "skip instructions: valgrind is not installed"
fi
