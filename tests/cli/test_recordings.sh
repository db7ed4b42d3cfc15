#!/bin/bash
# The shipped recordings are as their statistics say (recordings.py); the file beside a CSV is checked.
set -u
# shellcheck source=tests/cli/lib.bash
. "$(dirname "$0")/lib.bash"
tmp=$TEST_TMP
if long recordings; then python3 tests/cli/recordings.py "$ALLOCRIG" "$tmp"; fi

printf 'action,addr,size,stream,time_us\nalloc,1,1,0,1\n' >"$tmp/x.csv"
printf '{"torch": "9", "failed": "why", "limit": 5}' >"$tmp/x.json"
run inspect "$tmp/x.csv"
check its_file_tells_the_release says '^recorder +torch 9$'
check its_name_is_that_of_the_file says '^name +x$'
check it_failed says '^complete +no'
quietly "$ALLOCRIG" convert "$tmp/x.csv" "$tmp/x.txt"
check its_limit grep -qx '# limit: 5' "$tmp/x.txt"
printf '{"limit": 5, "limit": 7}' >"$tmp/x.json"
quietly "$ALLOCRIG" convert "$tmp/x.csv" "$tmp/x.txt"
check the_last_of_a_key_counts grep -qx '# limit: 7' "$tmp/x.txt"
number=0
for bad in '' '[]' '{"limit": -1}' '{"conf": 3}' '{"kernel_stream_of_stream": {"x": 1}}'; do
    printf '%s' "$bad" >"$tmp/x.json"
    refuses "bad_file_$((number += 1))" 2 'x.json \(beside ' inspect "$tmp/x.csv"
done
finish
