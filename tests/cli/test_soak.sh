#!/bin/bash
# The parts of `make soak` with small budgets: nothing is found, a part goes on where it was, the page has the figures,
# and what is broken is found.
set -u
# shellcheck source=tests/cli/lib.bash
. "$(dirname "$0")/lib.bash"
release_only soak
if ! command -v python3 >/dev/null || ! command -v "${CC:-cc}" >/dev/null; then
    echo "skip soak: python3 or a C compiler is not installed"
    exit 0
fi
tmp=$TEST_TMP
export TMPDIR=$tmp OPERATIONS=2000 KILLS=16 SOAK_BUILD=.build/release

# soak PART..: its output is in $out, its status in $status
soak() {
    tests/soak/soak.py --jobs 2 --state "$tmp/state" --results "$tmp" "$@" >"$out" 2>"$err"
    status=$?
}
# row PART NAME COLUMN: of soak.csv
row() {
    awk -F, -v part="$1" -v name="$2" -v column="$3" '$1 == part && $2 == name { print $column }' "$tmp/soak.csv"
}

[ -x "$SOAK_BUILD/tests/property/test_random" ] && parts="operations kills faults policies" || parts="kills faults policies"
for part in $parts; do
    soak "$part"
    check "${part}_finds_nothing" [ "$status" = 0 -a ! -s "$err" ]
    [ "$status" = 0 ] || cat "$err" "$out"
done
check kills_are_counted [ "$(row kills suite 5)" -ge 4 ]
check the_page_has_them grep -q '^| suite | [4-9] | 4 | 0 lost |' "$tmp/soak.md"
lines=$(cat "$tmp"/state/*.jsonl | wc -l)
soak kills faults
check what_is_done_is_not_done_again [ "$status" = 0 -a "$(cat "$tmp"/state/*.jsonl | wc -l)" = "$lines" ]
head -c -20 "$tmp/state/faults.jsonl" >"$tmp/cut" && mv "$tmp/cut" "$tmp/state/faults.jsonl"
soak faults
check a_cut_off_line_is_done_again [ "$status" = 0 -a "$(cat "$tmp"/state/*.jsonl | wc -l)" = "$lines" ]
if [ -n "${parts##kills*}" ]; then
    COMMANDS=null soak operations --state "$tmp/second"
    both=$(awk -F, '$1 == "operations" && $2 == "null" { runs++; sum += $5 } END { if (runs == 2) print sum }' "$tmp/soak.csv")
    check runs_are_added grep -q "^| null | ${both:0:1},${both:1} | " "$tmp/soak.md"
fi
soak nothing
check an_unknown_part_is_refused [ "$status" = 2 ]

# A program that leaves a file where it fails, and one that ends well where it must not.
mkdir "$tmp/bad"
cat >"$tmp/bad/allocrig" <<END2
#!/bin/bash
"$PWD/$SOAK_BUILD/allocrig" "\$@"
status=\$?
[ \$status = 0 ] || for file in "\$@"; do case \$file in */out*) echo part >"\$file" ;; esac; done
[ \$status = 4 ] && exit 0
exit \$status
END2
chmod +x "$tmp/bad/allocrig"
export SOAK_BUILD=$tmp/bad
rm -rf "$tmp/state"
COMMANDS='no command, run' soak faults
check a_file_that_is_left_is_found [ "$status" = 1 -a "$(grep -c '^found: faults: run' "$out")" -ge 2 ]
COMMANDS=explain soak policies
check a_hidden_fault_is_found [ "$status" = 1 ]
check it_is_in_the_page grep -q '^- explain: .*lies' "$tmp/soak.md"
finish
