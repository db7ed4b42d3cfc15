#!/bin/bash
# The gate. Usage: bench/regress/regress.sh regress|baseline|times|history BUILD_FOLDER
# regress: the suite and the counts of instructions against a baseline and, with BASE, what times does;
# baseline: writes that; times: a second program and this tree's, measured in turn; history: what regress measures and, with TIMES=N,
# times of N repetitions are added to results/history.jsonl, which is judged and drawn (LAST: commits
# that count). Variables, all optional but one:
#   DEVICE        of the suite (sim). On a card there are no counts, and times are of `times` alone
#   POLICIES      specs instead of all policies, such as './mine.so torch:max_split_size_mb=64'
#   SUITE         another suite than workloads/suites/regress.ini
#   BASELINE      the folder of the baseline (results/baselines, on a card results/baselines/DEVICE). Its waivers.ini
#                 has the waivers; without one results/baselines/waivers.ini
#   BASE          a commit, which is built in .build/base
#   BASE_PROGRAM  for `times`: an allocrig that is built already, instead of a commit
#   PAIRS         of `times` (9, the fewest for times; 0: exact figures and counts only)
#   ALL=1         a row for every figure that changed, not one for those that share a policy or a figure
#   NOINSTRUCTIONS=1  without the counts
#   REGRESS_WORK  the folder for what is made on the way (.build/regress)
case ${1:-} in -h | --help) sed -n '2,/^[^#]/s/^# \{0,1\}//p' "$0" | fold -sw 80 && exit 0 ;; esac
set -u
cd "$(dirname "$0")/../.." || exit 2
build=$2
device=${DEVICE:-sim}
suite=${SUITE:-workloads/suites/regress.ini}
work=${REGRESS_WORK:-.build/regress}
baseline=results/baselines
[ "$device" = sim ] || baseline=results/baselines/${device%%:*}
baseline=${BASELINE:-$baseline}
waivers=$baseline/waivers.ini
[ -e "$waivers" ] || [ ! -e results/baselines/waivers.ini ] || waivers=results/baselines/waivers.ini
read -ra chosen <<<"${POLICIES:-}"
options=()
[ "$device" = sim ] && options=(-d sim:profile=h100) || options=(-d "$device")
for spec in "${chosen[@]}"; do options+=(-p "$spec"); done

# A card is opened in a process for each run. On sim nothing of this machine's settings belongs into
# a baseline.
runs() {
    local -a clean=()
    [ "$device" != sim ] || clean=(env -i "PATH=$PATH")
    "${clean[@]}" "$@"
}

# counts FOLDER BUILD: instructions, where valgrind is there and they are asked for
counts() {
    [ "$device" = sim ] && [ "${NOINSTRUCTIONS:-0}" = 0 ] || return 0
    command -v valgrind >/dev/null || { echo 'without counts of instructions, since valgrind is not installed ("make deps")'; return 0; }
    echo "Counting the instructions of $2"
    RESULTS=$1 TEST_TMP=$1 bench/micro/run.sh "$2" counts >"$1/log" ||
        { [ -s "$1/instructions.json" ] && echo "a bar is missed: see $1/log"; }
}

# measure FOLDER: exact figures and counts of this tree
measure() {
    rm -rf "$1"
    mkdir -p "$1"
    echo "Running $suite"
    runs "$build/allocrig" run "$suite" "${options[@]}" --json "$1/results.json" >"$1/table.txt" || return $?
    counts "$1" "$build"
}

# compare NAME OLD NEW: the table, and NAME.md, NAME.xml and NAME.json. A failure ends with what to do.
compare() {
    local status
    local -a more=(--markdown "$work/$1.md" --junit "$work/$1.xml" --json "$work/$1.json")
    [ ! -e "$waivers" ] || more+=(--waivers "$waivers" --today "$(date -u +%F)")
    [ -z "${GITHUB_ACTIONS:-}" ] || more+=(--annotations)
    [ "${ALL:-0}" = 0 ] || more+=(--all)
    "$build/allocrig" compare "$2" "$3" "${more[@]}"
    status=$?
    [ $status != 1 ] || hint "$1"
    return $status
}

# hint NAME: what to do if the change is intended: a command and a file, as they are to be typed
hint() {
    local name policies
    policies=$(sed -n '/"verdict": "WORSE"/{/"waiver": null/s/.*"policy": "\([^"]*\)".*/\1/p}' "$work/$1.json" | sort -u)
    printf '\nIs the change intended?'
    if [ "$1" = base ]; then
        printf ' A waiver accepts it until a date:\n'
    else
        printf ' This makes it the baseline%s:\nmake baseline' "$([ -n "${BASELINE:-}" ] || echo ', which is to be committed')"
        for name in DEVICE POLICIES SUITE BASELINE NOINSTRUCTIONS; do [ -z "${!name:-}" ] || printf ' %s=%q' "$name" "${!name}"; done
        printf '\nor a waiver accepts it until a date:\n'
    fi
    printf "cat >>%q <<'END'\n[waiver NAME]\npolicy = %s\nreason = WHY\nuntil = %s\nEND\n" "$waivers" \
        "$(head -n 1 <<<"$policies" | sed 's/[][*?\\]/\\&/g')" "$(date -u -d '+30 days' +%F)"
    [ "$(wc -l <<<"$policies")" = 1 ] || echo "One for each policy: $(paste -sd' ' <<<"$policies")" | fold -sw 80
    echo "Every key of it: bench/regress/README.md"
}

commit_of() {
    git rev-parse -q --verify --end-of-options "$1^{commit}" || { echo "regress: BASE=$1 is no commit" >&2; exit 2; }
}

# Builds the commit BASE in .build/base.
build_base() {
    local base=.build/base commit=${BASE:?} id
    id=$(commit_of "$commit") || exit 2
    if [ -e $base/.git ]; then
        git -C $base checkout -q --detach --force "$id" || exit 2
    else
        git worktree prune
        rm -rf $base
        git worktree add -q --detach $base "$id" || exit 2
    fi
    echo "Building $(git -C $base log -1 --format='%h %s') in $base"
    make -s -j"$(nproc)" -C $base .build/release/allocrig .build/release/bench/micro/instructions >"$work/base.log" 2>&1 ||
        { echo "regress: BASE=$commit does not build: see $work/base.log" >&2; exit 2; }
}

# once FOLDER PROGRAM NUMBER: a repetition of one side
once() {
    local -a timed=(--time)
    [ "$pairs" != 0 ] || timed=()
    runs "$2" run "$suite" "${options[@]}" "${timed[@]}" --jobs 1 --reps 1 --json "$1/$(printf %03d "$3").json" >"$work/table.txt" || exit $?
}

times() {
    local pairs=${PAIRS:-9} program=${BASE_PROGRAM:-} at=$work/times i side name spec
    local -A programs
    [[ $pairs =~ ^[0-9]+$ ]] || { echo "regress: PAIRS=$pairs is no number" >&2; exit 2; }
    [ -n "$program" ] || { build_base && program=.build/base/.build/release/allocrig; }
    programs=([old]=$program [new]=$build/allocrig)
    rm -rf "$at"
    mkdir -p "$at/old" "$at/new"
    if [ ${#chosen[@]} = 0 ]; then
        # Those that both programs have, without those that plan for longer than the runs take.
        while read -r name spec; do
            "$program" list policies "$name" >/dev/null 2>&1 && options+=(-p "$spec")
        done < <([ "$pairs" = 0 ] || timed_policies)
    fi
    echo "Running both programs, $((pairs ? pairs : 1)) times each"
    # In turn, and each first every other time: a machine that warms up does it to both alike.
    for ((i = 1; i <= (pairs ? pairs : 1); i++)); do
        for side in $( ((i % 2)) && echo old new || echo new old); do once "$at/$side" "${programs[$side]}" "$i"; done
        [ ! -t 2 ] || printf '\r%d of %d pairs' "$i" "$pairs" >&2
    done
    [ ! -t 2 ] || printf '\r\033[K' >&2
    if [ -x "$(dirname "$program")/bench/micro/instructions" ]; then
        counts "$at/old" "$(dirname "$program")" && counts "$at/new" "$build"
    fi
    printf '\nCompared with %s, built and run here%s:\n\n' "${BASE:-$program}" "$([ "$pairs" != 0 ] || echo ' (no times)')"
    compare base "$at/old" "$at/new"
}

# Draws also where something is worse.
history() {
    local file=results/history.jsonl data=$work/history status
    local -a more=(--last "${LAST:-10}" --csv "$data/history.csv" --json "$work/history.json" --markdown "$work/history.md")
    mkdir -p "$data"
    [ ! -e results/history-waivers.ini ] || more+=(--waivers results/history-waivers.ini --today "$(date -u +%F)")
    [ -z "${GITHUB_ACTIONS:-}" ] || more+=(--annotations)
    if [ "${TIMES:-0}" != 0 ]; then
        "$build/allocrig" run "$suite" "${options[@]}" --time --jobs 1 --reps "$TIMES" --json "$work/now/times.json" >/dev/null || return $?
    fi
    "$build/allocrig" history "$file" --append "$work/now" \
        --time "$(TZ=UTC git show -s --date=format-local:%Y-%m-%dT%H:%M:%SZ --format=%cd HEAD)" "${more[@]}"
    status=$?
    [ $status -le 1 ] || return $status
    if command -v gnuplot >/dev/null; then
        FIGURES=history plots/render.sh "$data" results/latest/figures || return 2
        printf '%s\n' 'the figure: results/latest/figures/history.svg, .png and .pdf' "all changes: $work/history.json"
    else
        echo 'skipped: the figure, since gnuplot is not installed ("make deps")'
    fi
    return $status
}

# The suite's policies without those that see the whole trace first: a name and a spec in each line.
timed_policies() {
    "$build/bench/micro/instructions" policies | awk '{ print $1, $1 }'
    echo torch torch:expandable_segments=true
}

mkdir -p "$work"
case $1 in
regress)
    # A base that is none is told now and not after what else is measured.
    [ -z "${BASE:-}" ] || commit_of "$BASE" >/dev/null || exit 2
    [ -d "$baseline" ] || { echo "regress: no baseline in $baseline: make baseline writes it" >&2; exit 2; }
    measure "$work/now" || exit $?
    rm -rf "$work/old"
    mkdir -p "$work/old"
    cp "$baseline"/*.json "$work/old/" || exit 2
    printf '\nCompared with %s%s:\n\n' "$baseline" "$([ ! -e "$waivers" ] || echo ", with the waivers of $waivers")"
    compare regress "$work/old" "$work/now"
    status=$?
    [ $status -le 1 ] || exit $status
    [ -z "${BASE:-}" ] || times || status=$?
    exit $status ;;
baseline)
    measure "$work/now" || exit $?
    mkdir -p "$baseline"
    for file in "$work/now"/*.json; do
        cp "$file" "$baseline/" && echo "wrote $baseline/${file##*/}"
    done ;;
times) times ;;
history) measure "$work/now" && history ;;
*) echo "usage: bench/regress/regress.sh regress|baseline|times|history BUILD_FOLDER" >&2; exit 2 ;;
esac
