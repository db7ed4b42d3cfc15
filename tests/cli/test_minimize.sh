#!/bin/bash
# `minimize`: the smallest trace that still shows something.
set -u
# shellcheck source=tests/cli/lib.bash
. "$(dirname "$0")/lib.bash"
tmp=$TEST_TMP
tape=workloads/data/tape_small.default.csv.gz
card=sim:profile=bump,capacity=100MiB

printf '%s\n' '# allocrig-trace 1' a,0,500 a,1,41943040 a,2,20971520 k,0,100 f,1 m,step a,3,62914560 >"$tmp/t.txt"
run minimize "$tmp/t.txt" --until cause=fragmentation -p first-fit -d $card -o "$tmp/min.txt"
check ends_well [ "$status" = 0 ]
check says_what_it_did grep -qE '^t: from 7 to 4 events, from 4 to 3 requests, in [0-9]+ runs$' "$out"
check is_the_smallest [ "$(paste -sd ' ' "$tmp/min.txt")" = '# allocrig-trace 1 # name: t a,0,33554432 a,1,16777216 f,0 a,2,67108864' ]
check still_shows_it [ "$("$ALLOCRIG" run -p first-fit -w "$tmp/min.txt" -d $card --json - | grep -c '"cause": "fragmentation"')" = 1 ]
check again quietly "$ALLOCRIG" minimize "$tmp/t.txt" --until cause=fragmentation -p first-fit -d $card -o "$tmp/min2.txt"
check is_the_same_again cmp "$tmp/min.txt" "$tmp/min2.txt"
check a_recording quietly "$ALLOCRIG" minimize "$tape" --until 'peak_reserved_bytes>1GiB' -p torch -o "$tmp/tape.trace"
check a_recording_becomes_small [ "$(grep -vc '^#' "$tmp/tape.trace")" -lt 20 ]
check two_policies quietly "$ALLOCRIG" minimize "$tape" --until 'differs(growth,torch)' -o "$tmp/differs.txt"
check two_policies_need_little [ "$(grep -vc '^#' "$tmp/differs.txt")" -lt 10 ]
check a_generator quietly "$ALLOCRIG" minimize random:events=500,seed=3 --until 'allocs>2' -p first-fit -o "$tmp/g.txt"
check a_generator_has_three [ "$(grep -vc '^#' "$tmp/g.txt")" = 3 ]
check packed quietly "$ALLOCRIG" minimize "$tmp/t.txt" --until fails -p first-fit -d $card -o "$tmp/min.txt.zst"
check help_is_narrow [ "$("$ALLOCRIG" minimize --help | awk 'length > 80' | wc -l)" = 0 ]

refuses not_shown 1 'the whole trace t does not show fails: nothing to minimize' \
    minimize "$tmp/t.txt" --until fails -p first-fit -d sim -o "$tmp/x.txt"
refuses no_trace 2 'no trace is given' minimize --until fails -p first-fit -o "$tmp/x.txt"
refuses no_condition 2 'no condition is given' minimize "$tmp/t.txt" -p first-fit -o "$tmp/x.txt"
refuses no_file 2 'no output file is given' minimize "$tmp/t.txt" --until fails -p first-fit
refuses no_policy 2 'no policy is given' minimize "$tmp/t.txt" --until fails -o "$tmp/x.txt"
refuses own_policies 2 'names its policies' minimize "$tmp/t.txt" --until 'differs(growth,torch)' -p torch -o "$tmp/x.txt"
refuses bad_condition 2 'until: "fals" is no condition' minimize "$tmp/t.txt" --until fals -p torch -o "$tmp/x.txt"
refuses bad_policy 2 'there is no policy "grwth"; did you mean "growth"' minimize "$tmp/t.txt" --until fails -p grwth -o "$tmp/x.txt"
refuses missing_trace 2 "$tmp/no.txt" minimize "$tmp/no.txt" --until fails -p torch -o "$tmp/x.txt"
check refused_leaves_nothing [ -z "$(find "$tmp" -name 'x*')" ]
finish
