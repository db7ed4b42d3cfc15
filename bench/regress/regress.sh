#!/bin/bash
# The gate. Usage: bench/regress/regress.sh regress|baseline|times|history BUILD_FOLDER
# regress: the suite and the counts of instructions against results/baselines; baseline: writes
# those; times: the commit BASE is built in .build/base, and PAIRS times of it and of this tree are
# measured in turn; history: the suite, the counts and, with TIMES=N, times of N repetitions are added to
# results/history.jsonl, which is judged and drawn (LAST: commits that count). DEVICE: of the suite (default sim). NOINSTRUCTIONS=1: without the counts.
set -u
cd "$(dirname "$0")/../.." || exit 2
build=$2
device=${DEVICE:-sim}
suite=workloads/suites/regress.ini
now=.build/regress/now
waivers=results/baselines/waivers.ini
baseline=results/baselines
[ "$device" = sim ] || baseline=results/baselines/${device%%:*}
options=()
[ "$device" = sim ] && options=(-d sim:profile=h100) || options=(-d "$device")

# exact figures, and counts where valgrind is there and asked for
measure() {
    rm -rf "$now"
    mkdir -p "$now"
    # On sim nothing of this machine's settings belongs into a baseline.
    local -a clean=()
    [ "$device" != sim ] || clean=(env -i "PATH=$PATH")
    "${clean[@]}" "$build/allocrig" run "$suite" "${options[@]}" --json "$now/results.json" >"$now/table.txt" || return $?
    [ "$device" = sim ] && [ "${NOINSTRUCTIONS:-0}" = 0 ] || return 0
    command -v valgrind >/dev/null || { echo 'without counts of instructions, since valgrind is not installed ("make deps")'; return 0; }
    RESULTS=$now QUICK=1 bench/micro/run.sh "$build" instructions >"$now/log" ||
        { [ -s "$now/instructions.json" ] && echo "a bar is missed: see $now/log"; }
}

# compare OLD NEW
compare() {
    local -a more=(--markdown .build/regress/regress.md --junit .build/regress/regress.xml)
    [ ! -e "$waivers" ] || more+=(--waivers "$waivers" --today "$(date -u +%F)")
    [ -z "${GITHUB_ACTIONS:-}" ] || more+=(--annotations)
    "$build/allocrig" compare "$1" "$2" "${more[@]}"
}

times() {
    local pairs=${PAIRS:-9} commit=${BASE:?} base=.build/base at=.build/regress/times i first second
    git rev-parse -q --verify "$commit^{commit}" >/dev/null || { echo "BASE=$commit is no commit" >&2; exit 2; }
    if [ -d $base ]; then
        git -C $base checkout -q --detach "$(git rev-parse "$commit^{commit}")" || exit 2
    else
        git worktree prune
        git worktree add -q --detach $base "$commit" || exit 2
    fi
    make -s -C $base program >.build/regress/base.log 2>&1 || { echo "BASE=$commit does not build: .build/regress/base.log" >&2; exit 2; }
    rm -rf $at
    mkdir -p $at/old $at/new
    # In turn, and each first every other time: a machine that warms up does it to both alike.
    for ((i = 1; i <= pairs; i++)); do
        first=old second=new
        [ $((i % 2)) = 1 ] || { first=new; second=old; }
        for side in "$first" "$second"; do
            local program=$build/allocrig
            [ "$side" = new ] || program=$base/.build/release/allocrig
            "$program" run "$suite" "${options[@]}" --time --jobs 1 --reps 1 --json "$at/$side/$(printf %03d "$i").json" >/dev/null || exit $?
        done
    done
    compare $at/old $at/new
}

# Draws also where something is worse.
history() {
    local file=results/history.jsonl data=.build/regress/history status
    local -a more=(--last "${LAST:-10}" --csv "$data/history.csv" --json .build/regress/history.json --markdown .build/regress/history.md)
    mkdir -p "$data"
    [ ! -e "$waivers" ] || more+=(--waivers "$waivers" --today "$(date -u +%F)")
    [ -z "${GITHUB_ACTIONS:-}" ] || more+=(--annotations)
    if [ "${TIMES:-0}" != 0 ]; then
        "$build/allocrig" run "$suite" "${options[@]}" --time --jobs 1 --reps "$TIMES" --json "$now/times.json" >/dev/null || return $?
    fi
    "$build/allocrig" history "$file" --append "$now" \
        --time "$(TZ=UTC git show -s --date=format-local:%Y-%m-%dT%H:%M:%SZ --format=%cd HEAD)" "${more[@]}"
    status=$?
    [ $status -le 1 ] || return $status
    if [ "${HAVE_GNUPLOT:-1}" = 1 ]; then
        FIGURES=history plots/render.sh "$data" results/latest/figures || return 2
        echo 'the figure: results/latest/figures/history.svg, .png and .pdf; all changes: .build/regress/history.json'
    else
        echo 'skipped: the figure, since gnuplot is not installed ("make deps")'
    fi
    return $status
}

mkdir -p .build/regress
case $1 in
regress)
    [ -d "$baseline" ] || { echo "regress: no baseline in $baseline: make baseline writes it" >&2; exit 2; }
    measure || exit $?
    old=.build/regress/old
    rm -rf $old
    mkdir -p $old
    cp "$baseline"/*.json $old/ || exit 2
    compare $old "$now" ;;
baseline)
    measure || exit $?
    mkdir -p "$baseline"
    for file in "$now"/*.json; do
        cp "$file" "$baseline/" && echo "wrote $baseline/${file##*/}"
    done ;;
times) times ;;
history) measure && history ;;
*) echo "usage: bench/regress/regress.sh regress|baseline|times|history BUILD_FOLDER" >&2; exit 2 ;;
esac
