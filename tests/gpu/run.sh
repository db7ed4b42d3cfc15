#!/bin/bash
# Runs what needs a card: tests/gpu/test_*.c, built to .build/VARIANT/tests/gpu, and the scripts
# beside this one. Usage: tests/gpu/run.sh VARIANT [NAME..]
#
# Each prints a last line `N passed, N failed, N skipped`; the last line here is their sum. Without a
# card all of them are skipped, and the exit status is 0.
set -u
cd "$(dirname "$0")/../.." || exit 2
variant=${1:-release}
[ $# = 0 ] || shift
build=.build/$variant
export ALLOCRIG=${ALLOCRIG:-$build/allocrig}
logs=.build/gpu-logs
mkdir -p "$logs"

names=("$@")
if [ ${#names[@]} = 0 ]; then
    for source in tests/gpu/test_*.c; do names+=("$(basename "$source" .c)"); done
    names+=(calibrate equal verify plugin colocated)
fi

card=$("$ALLOCRIG" list devices cuda | sed -n '2,/^$/p' | tr -s ' \n' ' ')
case $card in
Available*) echo "card: ${card#Available: }" ;;
*)
    echo "no card here, so everything is skipped: ${card#Not available: }" | fold -sw 80
    echo "0 passed, 0 failed, ${#names[@]} skipped"
    exit 0
    ;;
esac

passed=0 failed=0 skipped=0
for name in "${names[@]}"; do
    log=$logs/$name.log
    began=$SECONDS
    if [ -e "tests/gpu/$name.sh" ]; then
        "tests/gpu/$name.sh" >"$log" 2>&1
    elif [ -x "$build/tests/gpu/$name" ]; then
        "$build/tests/gpu/$name" >"$log" 2>&1
    else
        echo "$name: skipped, since it is not built (it needs cuda.h)"
        skipped=$((skipped + 1))
        continue
    fi
    status=$?
    read -r p f s < <(sed -nE '$s/^([0-9]+) passed, ([0-9]+) failed, ([0-9]+) skipped$/\1 \2 \3/p' "$log")
    if [ -z "${p:-}" ] || { [ $status != 0 ] && [ "$f" = 0 ]; }; then
        echo "$name: ended with status $status" >>"$log"
        p=${p:-0} f=1 s=${s:-0}
    fi
    echo "$name: $p passed, $f failed, $s skipped, $((SECONDS - began)) s"
    [ "$f" = 0 ] || { grep -vE '^ok ' "$log" | head -n 40 | sed 's/^/    /'; }
    passed=$((passed + p)) failed=$((failed + f)) skipped=$((skipped + s))
    p='' f='' s=''
done
echo "logs: $logs"
echo "$passed passed, $failed failed, $skipped skipped"
[ "$failed" = 0 ]
