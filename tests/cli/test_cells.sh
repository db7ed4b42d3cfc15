#!/bin/bash
# tests/gpu/cells on the stand-in for the driver: many cells in one process, a line for each as it ends, a file that a
# later run goes on with; a cell that fails, crashes, hangs or leaves memory behind is told and the others go on.
set -u
# shellcheck source=tests/cli/lib.bash
. tests/cli/lib.bash
tmp=$TEST_TMP
build=.build/${TEST_VARIANT:-release}/tests
cells=$build/gpu/cells
if [ ! -e "$build/cuda_stand_in/libcuda.so.1" ] || [ ! -x "$cells" ]; then
    echo "skip cells: built without a CUDA toolkit"
    exit 0
fi
export LD_LIBRARY_PATH=$PWD/$build/cuda_stand_in TMPDIR=$tmp LIMIT=86400
some=(-p '^(torch|vmm|direct)$' -w '^(order_flip|sawtooth)$')

# cells ARGUMENTS...: its output is in $out and $err, its status in $status
cells() {
    "$cells" "$@" >"$out" 2>"$err" </dev/null
    status=$?
}
lines() { grep -cE "$1" "${2:-$out}"; }

cells equal "${some[@]}" --resume "$tmp/lines"
check equal_passes [ "$status" = 0 ]
check a_line_for_each [ "$(lines '^ok (torch|vmm|direct) (order_flip|sawtooth) ordered: [1-9][0-9]* placements, [1-9][0-9]* driver calls$')" = 6 ]
check the_sum_is_last [ "$(tail -n 1 "$out")" = '6 passed, 0 failed, 0 skipped' ]
check says_which_card [ "$(head -n 1 "$tmp/lines" | cut -d, -f1,2)" = '# Stand-in 0, capacity 8GiB' ]
check leftovers_were_looked_at grep -q 'was looked at after each$' "$out"

# A kill in the middle of a line: what is whole stays, the rest is run.
cp "$tmp/lines" "$tmp/whole"
cells equal "${some[@]}" --resume "$tmp/lines"
check nothing_is_run_twice [ "$(lines '^ok')" = 0 ]
check what_is_done_counts [ "$(tail -n 1 "$out")" = '6 passed, 0 failed, 0 skipped' ]
check the_file_is_as_it_was cmp -s "$tmp/lines" "$tmp/whole"
head -c -20 "$tmp/whole" >"$tmp/lines"
cells equal "${some[@]}" --resume "$tmp/lines" -j 2
check a_cut_off_line_is_run_again [ "$(lines '^ok')" = 1 ]
check the_sum_is_whole [ "$(tail -n 1 "$out")" = '6 passed, 0 failed, 0 skipped' ]
check several_do_not_look grep -q 'was not looked at' "$out"
check the_file_is_whole_again [ "$(grep -cE '^ok .* driver calls$' "$tmp/lines")" = 6 ]

cells verify -p '^(torch|async)$' -w '^(order_flip|side_streams|.*side_streams.*)$' -j 2
check verify_passes [ "$status" = 0 ]
check verify_has_its_lines [ "$(lines '^ok (torch|async) (order_flip|side_streams.default.csv.gz)$')" = 4 ]
cells verify -p '^direct$' -w '^sawtooth$' --capacity 16MiB
check an_unfinished_run_is_said grep -q '^ok direct sawtooth: DNF @ [0-9]*: capacity, a request of ' "$out"

# ---- what goes wrong ----------------------------------------------------------------------------

# The card refuses what the simulated one grants.
STAND_IN_FAIL=cuMemCreate:5:2 cells equal --policy torch:expandable_segments=true --workload linear_ramp
check a_difference_fails [ "$status" = 1 ]
check a_difference_is_said grep -qE '^not ok torch:.* linear_ramp ordered: placements from event 10 on; calls .*event 10: create .* refused.*retries 1 on the card, 0' "$out"
# The driver fails in the first cell: its process is given up, the next cell has another.
STAND_IN_FAIL=cuMemAlloc:35:700 cells equal --policy direct --workload linear_ramp --workload order_flip
check a_failed_driver_fails_its_cell grep -qE '^not ok direct linear_ramp ordered: on the card: .*cuMemAlloc' "$out"
check the_next_cell_goes_on grep -q '^ok direct order_flip ordered: 24 placements' "$out"
check the_sum_tells_both [ "$(tail -n 1 "$out")" = '1 passed, 1 failed, 0 skipped' ]
STAND_IN_LEAKS=1 cells equal --policy direct --policy vmm --workload order_flip
check what_is_left_fails grep -qE '^not ok direct order_flip ordered: the card holds [0-9]+ bytes more' "$out"
check what_leaves_nothing_passes grep -q '^ok vmm order_flip' "$out"

bad=$tmp/bad.so
if "${CC:-cc}" -std=c11 -D_GNU_SOURCE -O1 -shared -fPIC -I. -o "$bad" tests/cli/misbehaving.c; then
    for limit in 2 8 32 128 512; do # the shortest in which the cells that do not hang are done
        rm -f "$tmp/harm"
        cells verify --policy "$bad:harm=1" --policy "$bad:harm=2" --policy "$bad:harm=3" --policy torch --workload order_flip \
            --limit $limit -j 2 --resume "$tmp/harm"
        [ "$(grep -c ': timed out' "$out")" -gt 1 ] || break
    done
    check harm_fails [ "$status" = 1 ]
    check a_crash_is_told grep -q '^not ok .*harm=1 order_flip: crashed: signal 11' "$out"
    check a_hang_is_told grep -q "^not ok .*harm=2 order_flip: timed out after $limit s" "$out"
    check an_end_is_told grep -q '^not ok .*harm=3 order_flip: ended with status 7' "$out"
    check the_others_go_on grep -q '^ok torch order_flip$' "$out"
    # Policies that differ behind a long path are different cells.
    long=$tmp/$(printf '%0120d' 0)
    mkdir "$long" && cp "$bad" "$long/bad.so"
    cells verify --policy "$long/bad.so:harm=3" --policy "$long/bad.so:harm=0" --workload order_flip --resume "$tmp/long"
    check a_long_name_is_whole grep -qxF "ok $long/bad.so:harm=0 order_flip" "$tmp/long"
    cells verify --policy "$long/bad.so:harm=3" --workload order_flip --resume "$tmp/long"
    check a_long_name_is_of_one_cell [ "$(tail -n 1 "$out")" = '0 passed, 1 failed, 0 skipped' ]
    cells verify --policy "$bad:harm=1" --policy torch --workload order_flip --resume "$tmp/harm"
    check only_the_failed_are_run_again [ "$(tail -n 1 "$out")" = '1 passed, 1 failed, 0 skipped' ]
    check and_no_other [ "$(lines '^ok')" = 0 ]
else
    echo "skip misbehaving: no C compiler"
fi

cells equal -w 'no such workload'
check no_cell_is_refused [ "$status" = 2 ]
cells equal --bytes 3
check an_unknown_option_is_refused [ "$status" = 2 ]
STAND_IN_CARDS=0 cells equal "${some[@]}"
check no_card_is_said grep -q 'the NVIDIA driver sees no card' "$err"
check no_card_has_its_status [ "$status" = 3 ]
check no_card_runs_nothing [ "$(tail -n 1 "$out")" = '0 passed, 0 failed, 6 skipped' ]
check no_folder_stays [ -z "$(find "$tmp" -name 'allocrig-cells.*')" ]
finish
