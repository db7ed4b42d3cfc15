#!/bin/bash
# Each lint fails on its broken fixture and names the broken file; else it could pass anything.
# A fixture is a small tree, fixtures/LINT/; the file `expect` in it holds, one a line, texts that
# the findings must hold. A file that is only too long is made here.
set -u
cd "$(dirname "$0")" || exit 2
made=$(mktemp -d)
empty=$(mktemp -d)
trap 'rm -r "$made" "$empty"' EXIT
seq -f '/* line %g of a file that is too long */' 1101 >"$made/long.c"

for lint in *.sh; do
    name=${lint%.sh}
    [ "$name" != self_test ] || continue
    if [ ! -s "fixtures/$name/expect" ]; then
        echo "not ok ${name}_fails_on_fixture"
        echo "fixtures/$name/expect is not there: every lint has a broken fixture"
        continue
    fi
    tree=$PWD/fixtures/$name
    [ "$name" != length ] || tree=$made
    output=$("./$lint" "$tree" 2>&1)
    status=$?
    case $output in "skip $name"*) echo "skip ${name}_fails_on_fixture: the tool is not installed"; continue ;; esac
    verdict=ok
    [ $status = 1 ] || { verdict="not ok"; echo "$lint ended with $status on its broken fixture"; }
    while read -r text; do
        case $output in *"$text"*) ;; *) verdict="not ok"; echo "$lint did not report: $text" ;; esac
    done <"fixtures/$name/expect"
    [ "$verdict" = ok ] || printf '%s\n' "$output"
    echo "$verdict ${name}_fails_on_fixture"
done

# And an empty tree is no clean tree.
for name in arrows headers format cppcheck length; do
    output=$("./$name.sh" "$empty" 2>&1)
    case $output in
    "skip $name"*) echo "skip ${name}_fails_on_nothing: the tool is not installed" ;;
    *"not ok $name"*) echo "ok ${name}_fails_on_nothing" ;;
    *) echo "not ok ${name}_fails_on_nothing" ;;
    esac
done
