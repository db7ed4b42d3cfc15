#!/bin/bash
# allocators/VERSIONS.md: policies, sources, recorded releases and keys are those of the program and of the recordings.
set -u
# shellcheck source=tests/cli/lib.bash
. "$(dirname "$0")/lib.bash"
page=allocators/VERSIONS.md

# rows HEADING: the cells of the table below it, with | between them and no blanks around them
rows() {
    awk -v heading="## $1" '$0 == heading { on = 1; next } /^## / { on = 0 } on && /^\| / && !/^\| ---/' "$page" |
        sed 's/^| *//; s/ *|$//; s/ *| */|/g' | tail -n +2
}

recordings=$(rows 'Compared with recordings')
while IFS='|' read -r policy source recorded folder _; do
    policy=${policy//\`/} folder=${folder//\`/}
    run list policies "$policy"
    check "reference_$policy" grep -q "^Reference: .*$source" "$out"
    check "recorded_${policy}_$(basename "$folder")" grep -sqF -- "$recorded" "$folder/README.md" "$folder/../README.md"
done <<<"$recordings"
check recordings [ "$(wc -l <<<"$recordings")" -ge 10 ]

# A policy that answers to recordings of a program is in the table.
missing=
while read -r policy; do
    run list policies "$policy"
    grep -q '^Answers to recordings' "$out" || continue
    grep -q "^\`$policy\`|" <<<"$recordings" || missing+=" $policy"
done < <("$ALLOCRIG" list policies | awk '/^[a-z]/ && $1 != "policy" && $1 != "decorator" { print $1 }')
printf 'not in the table:%s\n' "$missing"
check all_are_there [ -z "$missing" ]

# Releases of PyTorch: a key is accepted from its release on, and not by the one before.
changes=$(rows 'PyTorch, from 2.4 to 2.15')
keys=0
while IFS='|' read -r release _ key _; do
    key=${key//\`/}
    [ -n "$key" ] || continue
    case $key in
    *:*) ;;
    *_mb) key+=:64 ;;
    *fraction | *reserve) key+=:0.5 ;;
    *) key+=:True ;;
    esac
    keys=$((keys + 1))
    minor=${release#2.}
    run run -d sim -p "torch:version=$release,conf='$key'" -w order_flip
    check "accepted_${key%%:*}_$release" [ "$status" = 0 ]
    run run -d sim -p "torch:version=2.$((minor - 1)),conf='$key'" -w order_flip
    check "refused_${key%%:*}_2.$((minor - 1))" grep -q "PyTorch 2.$((minor - 1)) does not accept it" "$err"
done <<<"$changes"
check keys [ "$keys" -ge 7 ]
finish
