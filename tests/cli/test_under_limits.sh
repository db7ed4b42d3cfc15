#!/bin/bash
# Programs recorded several times under one limit: the recorder, the table, and the share of runs that agrees.
set -u
# shellcheck source=tests/cli/lib.bash
. "$(dirname "$0")/lib.bash"
release_only under_limits 'starts no program of this build'
tree=$TEST_TMP/tree
mkdir -p "$tree/programs" "$tree/tmp"
cp tests/tracer/{record_all,collect,under_limits}.py "$tree"
touch "$tree/programs/steady.py" "$tree/programs/varied.py"
# A card whose runs of `varied` have 3, 4 and 3 retries, and fail in the third run under the lower limit.
cat >"$tree/record_one.py" <<'EOF'
import json
import sys
base, program = sys.argv[1:3]
turn = int(base.rsplit("again", 1)[1]) if "again" in base else 0
limit = int(sys.argv[4]) if "--limit" in sys.argv else 0
varied = "varied" in program and limit
stats = {"allocated_bytes.all.peak": 5 << 20, "reserved_bytes.all.peak": 9 << 20, "num_alloc_retries": 3 + (varied and turn == 1)}
outcome = "out of memory" if varied and limit == 6 << 20 and turn == 2 else "finished"
json.dump({"outcome": outcome, "failed": "", "stats": stats, "seconds": 1, "limit": limit}, open(base + ".json", "w"))
EOF
printf '%s default %d\n' steady $((8 << 20)) varied $((6 << 20)) varied $((8 << 20)) >"$TEST_TMP/limits"
printf 'program\tfile\targuments\tcard\tlive\tdefault\texpandable\n' >"$tree/recorded.tsv"
printf 'program\tsetting\tlimit\toutcome\tretries\treserved\n' >"$tree/limits.tsv"
RECORD_REPEAT=3 RECORD_LIMITS=$TEST_TMP/limits TMPDIR=$tree/tmp python3 "$tree/record_all.py" "$TEST_TMP/records" >"$out" 2>&1
check records [ "$(find "$TEST_TMP/records" -name '*.limit*.json' | wc -l)" = 9 ]
python3 "$tree/collect.py" "$TEST_TMP/records" >"$out"
check collects grep -qx '2 programs, 9 runs under a limit' "$out"
check one_row_a_run [ "$(grep -c $'^varied\tdefault\t8388608\tfinished' "$tree/limits.tsv")" = 3 ]
printf '%s\tdefault\t%d\tfinished\t3\t9\n' steady $((8 << 20)) varied $((6 << 20)) varied $((8 << 20)) >"$TEST_TMP/predicted"
python3 "$tree/under_limits.py" "$TEST_TMP/predicted" >"$out"
# Retries: 1 of steady, 1 of 2 that finish under the lower limit, 2 of 3 under the higher one.
for line in 'outcomes under a limit: 2.667 of 3' 'numbers of retries: 2.167 of 3' \
    '    runs: 9, of which 8 finish; limits with several that finish: 3' '    one of the card'\''s own numbers of retries: 3 of 3' \
    '    another run of the card has the same number: 1.333 of 3' '    runs differ: varied default, limit 6 MiB' \
    'varied limit 8 MiB default: recorded finished, 3 retries (2 of 3 runs); finished, 4 retries (1 of 3 runs); traced finished, 3 retries'; do
    check "says.${line//[^a-z0-9]/_}" grep -qxF "$line" "$out"
done
bounds() { python3 -c 'import sys; sys.path.insert(0, sys.argv[1]); import under_limits as u
print(*u.bounds([r for r in u.table(sys.argv[1] + "/limits.tsv") if r["program"] == "varied"]))' "$tree"; }
check no_bound_where_runs_differ [ "$(bounds)" = "None 8388608" ]
finish
