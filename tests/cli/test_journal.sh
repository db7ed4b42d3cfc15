#!/bin/bash
# `run --journal`: a suite on a card (a stand-in for the driver) that is killed goes on where it was: what was done is
# not run again, and the results hold all of it.
set -u
# shellcheck source=tests/cli/lib.bash
. "$(dirname "$0")/lib.bash"
tmp=$TEST_TMP
journal=$tmp/journal
bad=$tmp/bad.so
stand_in=$PWD/.build/${TEST_VARIANT:-release}/tests/cuda_stand_in
device=cuda:capacity=4GiB
if [ ! -e "$stand_in/libcuda.so.1" ] || "$ALLOCRIG" list devices cuda | grep -q 'without nvcc'; then
    device=sim
else
    export LD_LIBRARY_PATH=$stand_in STAND_IN_REPORT=$tmp/report
fi
if ! "${CC:-cc}" -std=c11 -D_GNU_SOURCE -O1 -shared -fPIC -I. -o "$bad" tests/cli/misbehaving.c; then
    echo "skip journal: no C compiler"
    exit 0
fi
processes() { find "$tmp" -name 'report.*' | wc -l; }
size() { stat -c %s "$journal" 2>/dev/null || echo 0; }

# The last of five runs hangs; the four before it are in the journal when the suite is killed.
suite=(run -d "$device" --isolate -p growth -p torch -p direct -p best-fit -p "$bad:harm=2" -w linear_ramp --reps 1
    --journal "$journal" --output "$tmp/o")
MISBEHAVING_MARK=$tmp/hangs "$ALLOCRIG" "${suite[@]}" --jobs 1 --timeout 86400 >"$out" 2>"$err" </dev/null &
process=$!
until [ -e "$tmp/hangs" ] || ! kill -0 $process; do sleep 0.01; done
kill -9 $process
{ wait $process; } 2>/dev/null
flock "$journal" true # the process of its run ends with it, a moment later, and holds the lock until then
check killed_in_the_middle [ "$(size)" -ge 1000 ]
check a_killed_suite_leaves_no_results [ ! -e "$tmp/o" ]
cp "$journal" "$tmp/kept"
truncate -s +5 "$journal" # and in the middle of a record
rm -f "$tmp"/report.*
run "${suite[@]}" --jobs 1 --timeout 1
check goes_on [ "$status" = 0 ]
check all_are_in_the_results [ "$(wc -l <"$tmp/o/results.csv")" = 6 ]
check what_hung_is_told [ "$(grep -c 'timed out' "$tmp/o/results.csv")" = 1 ]
check the_others_finished [ "$(grep -cE '^(growth|torch|direct|best-fit),.*,true,' "$tmp/o/results.csv")" = 4 ]
check series_are_there [ "$(find "$tmp/o/data" -type f | wc -l)" -ge 4 ]
check the_journal_is_removed [ ! -e "$journal" ]
resumed=$(processes)

# Without a kill the same figures.
cp -r "$tmp/o" "$tmp/first"
rm -f "$tmp"/report.*
figures() { cut -d, -f1-3,15-32 "$1"; }
run run -d "$device" --isolate -p growth -p torch -p direct -p best-fit -w linear_ramp --reps 1 --output "$tmp/plain"
check the_same_figures cmp <(figures "$tmp/first/results.csv" | grep -vE '^(policy|misbehaving),') <(figures "$tmp/plain/results.csv" | tail -n +2)

if [ "$device" != sim ]; then
    # Processes that have used the driver: those that look at the card, and four runs here, there the one that hangs.
    check done_runs_are_not_run_again [ "$resumed" = $(($(processes) - 3)) ]
fi

cp "$tmp/kept" "$journal"
refuses another_suite 2 'is the journal of another sweep or suite' "${suite[@]}" --seed 3
# Nor does it go on if the content of a file has changed that a spec names. A full disk keeps a journal that is done.
"$ALLOCRIG" calibrate -d sim -o "$tmp/a.profile" >/dev/null
{
    echo '# allocrig-trace 1'
    for each in 0 1 2 3 4 5; do
        printf 'a,%d,1048576\nf,%d\nm,step\n' "$each" "$each"
    done
} >"$tmp/a.trace"
printf '[machine]\ncard = sim:profile=a.profile\n[process one]\npolicy = torch\n[buffer weights]\nprocess = one\nbytes = 64MiB\n[schedule]\ncycle = weights.load, weights.free\ncycles = 1\n' >"$tmp/a.ini"
changed() { # NAME FILE COMMAND..: from the folder of the files, so that no path has a slash
    local name=$1 file=$2
    shift 2
    rm -f "$tmp/k"
    (cd "$tmp" && "$ALLOCRIG" "$@" --journal k --json /dev/full) >/dev/null 2>&1
    check "${name}_is_kept" [ -s "$tmp/k" ]
    (cd "$tmp" && "$ALLOCRIG" "$@" --journal k --json /dev/full) >/dev/null 2>"$err"
    check "${name}_goes_on" grep -q '/dev/full' "$err"
    printf '\n' >>"$tmp/$file"
    (cd "$tmp" && "$ALLOCRIG" "$@" --journal k --json /dev/full) >/dev/null 2>"$err"
    check "${name}_has_changed" grep -q '^allocrig: k: is the journal of another' "$err"
}
changed profile a.profile run -d sim:capacity=8GiB,profile=a.profile -p torch -w order_flip
cp "$tmp/a.profile" "$tmp/record_a.profile" # a name that begins as the options of outputs do
changed input_named_as_an_output record_a.profile run -d sim:capacity=8GiB,profile=record_a.profile -p torch -w order_flip
changed learned a.trace run -d sim -p torch -w learned:trace=a.trace,steps=2
changed card a.profile twin a.ini
exec 7>>"$tmp/busy"
flock 7
refuses a_journal_in_use 2 'busy: another process is writing to it; wait for its end, or name another with --journal' run -d sim -p torch \
    -w order_flip --journal "$tmp/busy"
exec 7>&-
refuses events_are_not_kept 2 'keeps the figures of runs and not their events' run -d sim -p torch -w order_flip \
    --journal "$tmp/j2" --placements "$tmp/p.csv"
# What is no journal stays as it is, however short; a pipe, a device and a stream are none.
for text in hello '' "$(head -c 40 README.md)"; do
    printf '%s' "$text" >"$tmp/foreign"
    run run -d sim -p torch -w order_flip --journal "$tmp/foreign"
    if [ -z "$text" ]; then
        [ "$status" = 0 ]
    else
        [ "$status" = 2 ] && [ "$(cat "$tmp/foreign")" = "$text" ] && grep -q 'foreign: is no journal, and stays as it is; name another file' "$err"
    fi
    verdict "a_foreign_file_of_${#text}_bytes" $?
done
head -c 5 "$tmp/kept" >"$tmp/foreign"
run run -d sim -p torch -w order_flip --journal "$tmp/foreign"
check killed_within_the_head_begins_anew [ "$status" = 0 ]
mkfifo "$tmp/pipe"
for place in "$tmp/pipe" /dev/full /dev/zero; do
    refuses "no_journal_in_$(basename "$place")" 2 'is no file that a journal can be kept in' run -d sim -p torch -w order_flip --journal "$place"
done
refuses no_journal_on_standard_output 2 '"-" is no journal' run -d sim -p torch -w order_flip --journal -
refuses two_outputs 2 'is named for two outputs' run -d sim -p torch -w order_flip --journal "$tmp/x" --csv "$tmp/x"
rm -rf "$tmp/full" && mkdir "$tmp/full"
run_full run -d sim -p torch -w order_flip --journal "$tmp/full/journal"
check a_full_disk_leaves_no_journal [ "$status" = 2 -a -z "$(ls -A "$tmp/full")" ]
# -- killed twenty times, whenever the journal has grown by some bytes: the same files as without
cat >"$tmp/twenty.ini" <<'INI'
[suite]
name = twenty
[policies]
growth
torch
vmm
tlsf
[workloads]
random:events=4000
random:events=4000,seed=2
random:events=4000,seed=3
random:events=4000,seed=4
[devices]
sim
INI
twenty=("$ALLOCRIG" run "$tmp/twenty.ini" --jobs 1 --journal "$tmp/twenty.journal")
quietly "${twenty[@]}" --output "$tmp/whole" --csv "$tmp/whole.csv"
kills=0
# Twenty rounds; more of them where the suite is often done before this script gets to kill it.
for ((round = 0; round < 20 || (kills < 5 && round < 200); round++)); do
    "${twenty[@]}" --output "$tmp/killed" --csv "$tmp/killed.csv" >"$out" 2>"$err" &
    process=$!
    journal_bytes() { stat -c %s "$tmp/twenty.journal" 2>/dev/null || echo 0; }
    before=$(journal_bytes)
    while kill -0 $process 2>/dev/null && [ "$(journal_bytes)" -lt $((before + 50 * (round % 20))) ]; do sleep 0.001; done
    kill -9 $process 2>/dev/null
    { wait $process; } 2>/dev/null
    [ $? != 137 ] || kills=$((kills + 1))
done
check it_was_killed_often [ $kills -ge 5 ]
check twenty_ends quietly "${twenty[@]}" --output "$tmp/killed" --csv "$tmp/killed.csv"
check twenty_kills_change_no_row cmp -s "$tmp/whole.csv" "$tmp/killed.csv"
check twenty_kills_change_no_figure diff -r "$tmp/whole/data" "$tmp/killed/data"
check twenty_kills_change_no_result cmp -s <(without_context "$tmp/whole/results.json") <(without_context "$tmp/killed/results.json")
finish
