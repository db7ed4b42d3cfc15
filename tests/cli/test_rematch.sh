#!/bin/bash
# The rematch: published figures beside ours, on a small table, and what it refuses.
set -u
# shellcheck source=tests/cli/lib.bash
. "$(dirname "$0")/lib.bash"
case $ALLOCRIG in /*) ;; *) ALLOCRIG=$PWD/$ALLOCRIG ;; esac
export ALLOCRIG
tmp=$TEST_TMP/rematch
[ "${TEST_VARIANT:-release}" = release ] || { echo 'skip all: a script, tested in the release build' && finish; }
command -v python3 >/dev/null || { echo 'skip all: python3 is not installed' && finish; }
mkdir -p "$tmp"

# rematch WORD..: its output and errors are in $out and $err
rematch() {
    python3 -B bench/rematch/rematch.py "$tmp/out" "$@" >"$out" 2>"$err" </dev/null
    status=$?
}
row() { (IFS=$'\t' && echo "$*"); }
{
    echo '# a comment'
    row table workload trace policy spec of published reserved reason
    row small one order_flip PyTorch torch allocated 52.0 - ''
    row small one order_flip exact plan allocated 80.0 1.5 'the reason'
    row small one order_flip halved buddy allocated 40.0 - ''
    row other two order_flip alone torch active 97 - ''
} >"$tmp/published.tsv"
rematch --published "$tmp/published.tsv" --table small
check it_ends_well [ "$status" = 0 -a ! -s "$err" ]
text=$tmp/out/README.md
check a_row_for_each_policy eval '[ "$(grep -c "^| one | [^r]" "$text")" = 3 ]'
check other_tables_are_left_out eval '! grep -q "^## other" "$text"'
check the_figures_stand_together grep -q '^| one | exact | 80.0 | 100.0 | 1.5 | .* | agrees in direction |$' "$text"
check one_on_the_other_side_does_not_agree grep -q '| halved .*| does not agree |$' "$text"
check the_policies_are_named grep -q 'PyTorch: `torch`; exact: `plan`; halved: `buddy`' "$text"
check the_ranking_is_compared grep -q '^| one | ranking | | | | | \(agrees\|does not agree: ours\)' "$text"
check the_reason_is_there grep -q '^- one, exact: the reason$' "$text"
check the_same_as_json eval 'python3 -c "
import json, sys
rows = json.load(open(sys.argv[1]))
sys.exit(not (len(rows) == 3 and all(r[\"verdict\"] for r in rows)))" "$tmp/out/rematch.json"'
rematch --published "$tmp/published.tsv" --table other
# Two experts of 2,100 and 2,200 rows: their sizes change, that of a weight does not.
printf '%s\n' '# allocrig-trace 1' '# name: experts' a,0,8601600,tag=x a,1,9011200,tag=x a,2,8388608,tag=w >"$tmp/experts.txt"
check unbalanced_rows python3 -B -c '
import sys
sys.path.insert(0, "bench/rematch")
import rematch
rematch.unbalance(sys.argv[1], sys.argv[2], 0.5)
sizes = [int(line.split(",")[2]) for line in open(sys.argv[2]) if line.startswith("a,")]
assert sizes[0] != 8601600 and sizes[1] != 9011200 and sizes[2] == 8388608, sizes
assert all(size % 4096 == 0 for size in sizes)
' "$tmp/experts.txt" "$tmp/other.txt"
printf '%s\n' '# allocrig-trace 1' '# name: steps' a,0,1024,tag=x f,0 m,step a,1,2048,tag=x f,1 a,2,512,tag=y f,2 m,step >"$tmp/steps.txt"
check a_plan_of_the_first_step python3 -B -c '
import sys
sys.path.insert(0, "bench/rematch")
import rematch
rematch.plan_of_first_step(sys.argv[1], sys.argv[2])
assert [line.split(",")[2] for line in open(sys.argv[2]) if line.startswith("a,")] == ["1024", "1024", "512"]
' "$tmp/steps.txt" "$tmp/first.txt"
check active_bytes eval '[ "$status" = 0 ] && grep -q "^| two | alone | 97 | " "$text"'

# refused NAME WORDS: exit status 2, and one sentence with these words
refused() {
    check "$1" eval '[ "$status" = 2 ] && [ "$(wc -l <"$err")" = 1 ] && grep -q "'"$2"'" "$err"'
}
rematch --published "$tmp/published.tsv" --table none
refused an_unknown_table 'no table has that name'
rematch --published "$tmp/none.tsv"
refused a_missing_file 'cannot be read'
row table policy >"$tmp/short.tsv"
row small torch >>"$tmp/short.tsv"
rematch --published "$tmp/short.tsv"
refused other_columns 'the columns must be'
sed 's/order_flip/no_such_trace/' "$tmp/published.tsv" >"$tmp/unknown.tsv"
rematch --published "$tmp/unknown.tsv"
refused an_unknown_trace 'no_such_trace'

# All traces that the published table names can be made, and are there.
check traces_are_there eval '! awk -F"\t" '"'"'!/^#/ && $1 != "table" && $3 !~ "/" { sub(/ .*/, "", $3); print $3 }'"'"' bench/rematch/published.tsv | sort -u |
    while read -r name; do [ -f "bench/rematch/traces/$name.trace.zst" ] && cut -f1 bench/rematch/traces.tsv | grep -qx "$name" ||
        echo "$name"; done | grep .'

# The store: the number of puts, and objects that are removed.
check the_log_of_the_store python3 -B -c '
import sys
sys.path.insert(0, "bench/rematch")
import store
for longest in (False, True):
    log = store.events(1, longest)
    puts = {key: size for key, size in log if size}
    assert len(puts) == 16320, len(puts)
    assert {key for key, size in log if not size} <= puts.keys()
    assert all(256 <= size <= 9896 or 10.5 * 2**20 <= size <= 12.4 * 2**20 for size in puts.values())
half = [{"reserved_bytes": 100, "granted_bytes": g, "largest_free_block_bytes": f} for g, f in ((40, 60), (10, 30), (90, 10))]
assert store.place("best_fit", half, 25, __import__("random").Random(1)) == [1, 0, 2]
assert abs(store.fragmentation(half) - 60 / 160) < 1e-9
'
finish
