#!/bin/bash
# Measures claims about GPU memory and judges them, row by row (workloads/suites/claims/claims.ini).
# Usage: bench/suite/claims.sh [--resume] [--figures] FOLDER [sim|cuda]
#                     measures, judges and, with --figures, draws FOLDER/figures (plots/claim_rows.sh)
#        bench/suite/claims.sh --judge FOLDER [sim|cuda] [ROW|all|each]
#                     judges what is in FOLDER; with experiment and control exchanged in that row (each: in every row in turn)
#
# FOLDER/numbers.csv      experiment,field,value
# FOLDER/times.tsv        experiment, seconds, checksums of its command and of its output, added as each ends; --resume
#                         measures only experiments that are missing, have changed or are incomplete
# FOLDER/data/NAME.csv    memory of the experiment: process,at,live_bytes,reserved_bytes,physical_bytes
# FOLDER/data/NAME.steps  driver calls by step, if measured: step,call_ns
# FOLDER/claims.md        the page; claims.tsv: verdicts, and the data of plots/claim_rows.sh
# An experiment that fails, or is not done after CLAIMS_LIMIT_S seconds (60), is reported, and the others are
# measured. Exit status 1 if a row does not come out as expected.
usage() { sed -n '2,/^[^#]/s/^# \{0,1\}//p' "$0" | fold -sw 80; }
case ${1:-} in -h | --help) usage && exit 0 ;; esac
set -u
judge_only="" resume="" figures=""
while :; do
    case ${1:-} in
    --judge) judge_only=1 ;;
    --resume) resume=1 ;;
    --figures) figures=1 ;;
    *) break ;;
    esac
    shift
done
[ $# -ge 1 ] || { usage; exit 2; }
mkdir -p "$1" || exit 2
page=$1/claims.md
folder=$(cd "$1" && pwd) device=${2:-sim} swap=${3:-}
cd "$(dirname "$0")/../.." || exit 2
table=${CLAIMS:-workloads/suites/claims/claims.ini}
rig=${ALLOCRIG:-./allocrig}
if [ ! -f "$table" ] || [ ! -s "$table" ]; then
    echo "claims: $table is no table of claims, or is empty; CLAIMS names another" >&2
    exit 2
fi
limit_s=${CLAIMS_LIMIT_S:-60}
case $limit_s in '' | 0* | *[!0-9]*) echo "claims: CLAIMS_LIMIT_S is a number of seconds, not $limit_s" >&2; exit 2 ;; esac
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT

# trouble NAME STATUS: reports why the program failed; ends the experiment, or the script if there is no device
trouble() {
    case $2 in
    124 | 137) echo "claims: $1: not done after $limit_s s" >&2 ;;
    *) echo "claims: $1: $(tail -n 1 "$work/err")" >&2 ;;
    esac
    [ "$2" != 3 ] || exit 3
    exit 1
}
# limited NAME OPTION..: runs the program with these options, within the time limit of an experiment
limited() {
    local name=$1 status=0
    shift
    timeout -k 5 "$limit_s" "$rig" "$@" >"$work/out" 2>"$work/err" </dev/null || status=$?
    [ $status = 0 ] || trouble "$name" $status
}
# ask NAME OPTION..: runs the experiment's command with these options; a workload that fails is a result
ask() {
    local name=$1
    shift
    # shellcheck disable=SC2086
    limited "$name" $command "$@"
}
number() {
    [ -z "$3" ] || echo "$1,$2,$3"
}
# events NAME: the workload as text in $work/trace.txt
events() {
    local workload=${command#* -w }
    workload=${workload%% *}
    [ ! -f "$workload" ] || { cp "$workload" "$work/trace.txt" && return; }
    limited "$1" gen "$workload" -o "$work/trace.txt"
}
# split NAME STEP: the rise of reserved bytes from the end of the first step to that of STEP, and in as many steps after
split() {
    grep -v '^#' "$work/trace.txt" | awk -F, -v name="$1" -v at="$2" '
        FNR == NR { if (/^m,step/) step[++steps] = NR - 1; next }
        FNR > 1 { held[$1] = $6 }
        END { if (2 * at - 1 <= steps) {
            printf "%s,rise_before_bytes,%.0f\n", name, held[step[at]] - held[step[1]]
            printf "%s,rise_after_bytes,%.0f\n", name, held[step[2 * at - 1]] - held[step[at]] } }' - "$work/series.csv"
}
# tape NAME: the activations that the forward pass of the third step requested, and the part live at the loss
tape() {
    grep -v '^#' "$work/trace.txt" | awk -F, -v name="$1" '
        /^a,/ && /tag=activation/ && step == 2 { mine[$2] = $3; asked += $3; held += $3 }
        /^[rf],/ && ($2 in mine) { held -= mine[$2]; delete mine[$2] }
        /^a,/ && /tag=loss/ && step == 2 {
            printf "%s,activations_asked_bytes,%.0f\n%s,activations_at_loss_bytes,%.0f\n", name, asked, name, held; exit }
        /^m,step/ { step++ }'
}
# phase NAME LABEL: reserved bytes at the first and the last mark of that label, and their slope over the last three
# quarters of the marks, by least squares, for each mark
phase() {
    grep -v '^#' "$work/trace.txt" | awk -F, -v name="$1" -v label="$2" '
        FNR == NR { if ($1 == "m" && $2 == label) event[++marks] = NR - 1; next }
        FNR > 1 { while (at < marks && event[at + 1] < $1 + 0) held[++at] = reserved; reserved = $6 }
        END {
            if (!marks) exit
            while (at < marks) held[++at] = reserved
            printf "%s,phase_first_bytes,%.0f\n%s,phase_last_bytes,%.0f\n", name, held[1], name, held[marks]
            for (i = int(marks / 4) + 1; i <= marks; i++) { n++; sx += i; sy += held[i]; sxx += i * i; sxy += i * held[i] }
            if (n > 1) printf "%s,phase_slope_bytes,%.6f\n", name, (n * sxy - sx * sy) / (n * sxx - sx * sx)
        }' - "$work/series.csv"
}
# warm_up NAME FROM-TO: the time of driver calls in the first step, in the second, in each of the first three, in each of
# the steps FROM to TO, and in all steps
warm_up() {
    grep -v '^#' "$work/trace.txt" | awk -F, -v name="$1" -v later="$2" -v out="$folder/data/$1.steps" '
        FNR == NR { if (/^m,step/) end[++steps] = NR - 1; next }
        FNR > 1 { while (at < steps - 1 && $1 + 0 > end[at + 1]) at++; spent[at + 1] += $4; all += $4 }
        END {
            split(later, of, "-")
            print "step,call_ns" >out
            for (i = 1; i <= steps; i++) {
                printf "%d,%.0f\n", i, spent[i] >out
                if (i <= 3) warm += spent[i] / 3
                if (i >= of[1] + 0 && i <= of[2] + 0) rest += spent[i] / (of[2] - of[1] + 1)
            }
            printf "%s,second_step_call_ns,%.0f\n", name, spent[2]
            printf "%s,first_step_call_ns,%.0f\n%s,warm_call_ns,%.0f\n%s,later_call_ns,%.0f\n%s,all_call_ns,%.0f\n", name, spent[1], name, warm, name, rest, name, all
        }' - "$work/calls.csv"
}
run_experiment() {
    local name=$1 step=$2 with_tape=$3 label=$4 later=$5 last
    ask "$name" --reps 1 --jobs 1 --series "$work/series.csv" --calls "$work/calls.csv" --csv "$work/result.csv"
    awk -f plots/clean.awk "$work/result.csv" | awk -F, -v name="$name" '
        NR == 1 { for (i = 1; i <= NF; i++) title[i] = $i }
        NR == 2 { for (i = 1; i <= NF; i++) {
            if ($i == "true" || $i == "false") $i = ($i == "true")
            if ($i ~ /^[0-9.eE+-]+$/) print name "," title[i] "," $i } }'
    # The first row, the last and the largest values are kept.
    last=$(tail -n 1 "$work/series.csv")
    awk -v by='4 6' -v x=1 -v buckets=300 -v end="${last%%,*}" -f plots/thin.awk "$work/series.csv" |
        awk -F, -v OFS=, -v name="$name" -v out="$folder/data/$name.csv" '
            BEGIN { print "process,at,live_bytes,reserved_bytes,physical_bytes" >out }
            NR == 1 { first = $6 }
            { print "pool", $1, $4, $6, $7 >out; last = $4; if ($6 + 0 > most) most = $6 + 0 }
            END { printf "%s,first_reserved_bytes,%.0f\n%s,most_reserved_bytes,%.0f\n%s,end_live_bytes,%.0f\n", name, first, name, most, name, last }'
    awk -F, -v name="$name" 'NR > 1 && $6 + 0 == 0 && $2 ~ /free|release/ { back++ }
        NR > 1 && $6 + 0 == 0 && ($2 ~ /alloc|create/) { if (!n++) first = $3; if ($3 + 0 > most) most = $3 + 0 }
        END { printf "%s,first_piece_bytes,%.0f\n%s,largest_piece_bytes,%.0f\n%s,pieces,%d\n%s,given_back_pieces,%d\n", name, first, name, most, name, n, name, back }' \
        "$work/calls.csv"
    [ -z "$step$with_tape$label$later" ] || events "$name"
    [ -z "$step" ] || split "$name" "$step"
    [ -z "$with_tape" ] || tape "$name"
    [ -z "$label" ] || phase "$name" "$label"
    [ -z "$later" ] || warm_up "$name" "$later"
}
tenants_experiment() {
    local name=$1 suite=${command#tenants }
    suite=${suite%% *}
    # The memory of each process after each round is known only if it is simulated.
    : >"$work/series.csv"
    case $device in
    sim) ask "$name" --no-alone --csv "$work/result.csv" --series "$work/series.csv" ;;
    *) ask "$name" --no-alone --csv "$work/result.csv" ;;
    esac
    awk -F, -v name="$name" '
        NR == 1 { for (i = 1; i <= NF; i++) title[i] = $i; next }
        { passed += $3 == "passed"; refused += $3 == "refused"
          print name "," $2 ".passed," ($3 == "passed")
          for (i = 4; i <= NF; i++) if (title[i] == "failed_space") print name "," $2 ".failed_pinned," ($i == "pinned")
          for (i = 4; i <= NF; i++) if ($i ~ /^[0-9]+$/) print name "," $2 "." title[i] "," $i }
        END { print name ",passed_processes," passed + 0 "\n" name ",refused_processes," refused + 0 }' "$work/result.csv"
    # The most memory of all processes and their contexts on the cards: the free bytes of the cards identify a round.
    awk -F, -v name="$name" -v capacity="$(sed -n 's/^card = .*capacity=\([0-9]*\)GiB.*/\1/p' "$suite" | awk '{ s += $1 } END { print s * 2 ^ 30 }')" '
        NR > 1 && $4 != "host" && !($4 in free && free[$4] <= $8) { free[$4] = $8; cards++ }
        END { for (c in free) sum += free[c]; if (cards) printf "%s,used_bytes,%.0f\n", name, capacity - sum }' "$work/series.csv"
    {
        echo process,at,live_bytes,reserved_bytes,physical_bytes
        awk -F, -v OFS=, 'NR > 1 { print $3 ($4 == "host" ? "_pinned" : ""), $1, $5, $6, $7 }' "$work/series.csv"
    } >"$folder/data/$name.csv"
}
# The need is found with simulated cards. A real card returns other addresses, so policies that take the lowest of equal
# free blocks place blocks differently and may need more or less: the need on a card is searched around the simulated
# need, in doubled steps and then by halving, down to a page.
capacity_experiment() {
    local page=2097152 need less step half middle
    ask "$1" --jobs 1 --json "$work/result.json"
    need=$(sed -n 's/.*"first_pass_bytes": \([0-9]*\).*/\1/p' "$work/result.json")
    [ -n "$need" ] || { echo "claims: $1: no capacity is enough" >&2; exit 1; }
    command=${command#capacity }
    command="run ${command% -d sim} -d $device:capacity="
    if [ "$device" != sim ]; then
        less=$((need - page)) step=$page
        while enough "$1" "$less"; do need=$less less=$((less - step)) step=$((2 * step)); done
        while ! enough "$1" "$need"; do less=$need need=$((need + step)) step=$((2 * step)); done
        while [ $((need - less)) -gt $page ]; do
            half=$(((need - less) / page / 2)) # whole pages
            middle=$((less + half * page))
            if enough "$1" "$middle"; then need=$middle; else less=$middle; fi
        done
    fi
    number "$1" need_bytes "$need"
    # The memory of the run with that capacity.
    command=$command$need
    run_experiment "$1" '' '' '' ''
}
# enough NAME BYTES: whether the experiment finishes on a card of that size
enough() {
    [ "$2" -gt 0 ] || return 1
    command="$command$2" ask "$1" --reps 1 --jobs 1 --csv "$work/need.csv"
    [ "$(passed "$work/need.csv")" = true ]
}
passed() {
    awk -f plots/clean.awk "$1" | awk -F, 'NR == 1 { for (i = 1; i <= NF; i++) if ($i == "passed") at = i } NR == 2 { print $at }'
}
# Each experiment has a process of its own, which ends if it fails.
experiment() (
    case $command in
    tenants\ *) tenants_experiment "$1" ;;
    capacity\ *) capacity_experiment "$1" ;;
    *) run_experiment "$@" ;;
    esac
)
# sum: the checksum of standard input, a word
sum() {
    local text
    text=$(cksum)
    echo "${text// /-}"
}
# outcome NAME: a checksum of the files of the experiment in the folder
outcome() {
    { grep "^$1," "$folder/numbers.csv"; cat "$folder/data/$1.csv" "$folder/data/$1.steps" 2>/dev/null; } | sum
}
measure() {
    local list count name step tape phase later stamp begun_us ms status at=0 cards=1 tab=$'\t' given
    # The program and all files that a command may name.
    given=$({ cat "$(command -v "$rig")" bench/suite/claims.sh && find workloads/suites/claims -type f ! -name claims.ini -exec cksum {} + | sort; } | sum)
    [ "$device" = sim ] || cards=$("$rig" list devices cuda | sed -n 's/^Available: \([0-9]*\) card.*/\1/p')
    list=$(awk -v mode=experiments -v device="$device" -v cards="${cards:-0}" -f bench/suite/claims.awk "$table") || exit 2
    count=$(wc -l <<<"$list")
    [ -n "$resume" ] || rm -rf "$folder/data" "$folder/numbers.csv" "$folder/times.tsv" "$folder/claims.md" "$folder/claims.tsv"
    mkdir -p "$folder/data" && touch "$folder/numbers.csv" "$folder/times.tsv" || exit 2
    sed -i -e '/^machine,/d' -e "\$a\\" "$folder/numbers.csv" && echo "machine,cards,${cards:-0}" >>"$folder/numbers.csv" || exit 2
    while IFS='|' read -r name command step tape phase later; do
        at=$((at + 1))
        stamp=$(sum <<<"$command $step|$tape|$phase|$later $given")
        if [ -n "$resume" ]; then
            # The numbers are written first, so an experiment in the list is complete.
            ! grep -qE "^$name${tab}[0-9.]+$tab$stamp$tab$(outcome "$name")\$" "$folder/times.tsv" || continue
            sed -i "/^$name,/d" "$folder/numbers.csv"
        fi
        [ ! -t 2 ] || printf '\r\033[K%d of %d: %.60s' "$at" "$count" "$name" >&2
        begun_us=${EPOCHREALTIME//[!0-9]/} status=0
        experiment "$name" "$step" "$tape" "$phase" "$later" >"$work/numbers.part" || status=$?
        [ $status != 3 ] || exit 2
        ms=$(((${EPOCHREALTIME//[!0-9]/} - begun_us) / 1000))
        [ $status != 0 ] || { cat "$work/numbers.part" >>"$folder/numbers.csv" &&
            printf '%s\t%d.%03d\t%s\t%s\n' "$name" $((ms / 1000)) $((ms % 1000)) "$stamp" "$(outcome "$name")" >>"$folder/times.tsv"; } || exit 2
        [ "$device" = sim ] || echo "$at of $count: $name: $((ms / 1000)).$((ms % 1000 / 100)) s"
    done <<<"$list"
    [ ! -t 2 ] || printf '\r\033[K' >&2
}
case $device in sim | cuda) ;; *) echo "claims: the device is sim or cuda, not $device" >&2; exit 2 ;; esac
[ -n "$judge_only" ] || measure
[ -e "$folder/numbers.csv" ] || { echo "claims: $folder/numbers.csv is not there: measure first" >&2; exit 2; }
awk -v mode=judge -v device="$device" -v swap="$swap" -v tsv="$work/claims.tsv" -f bench/suite/claims.awk "$table" "$folder/numbers.csv" >"$work/claims.md"
status=$?
[ $status -le 1 ] || exit 2
if [ -z "$swap" ]; then
    mv "$work/claims.md" "$folder/claims.md"
    mv "$work/claims.tsv" "$folder/claims.tsv"
    touch "$folder/times.tsv" # of an older run there is none
    awk -F '\t' -v device="$device" '
        FILENAME ~ /times.tsv$/ { seconds[$1] = $2; next }
        FNR == 1 { next }
        { n[$2 ~ /^(holds|does not hold)$/ ? $2 : $2 ~ /simulated only$/ ? "simulated" : $2 ~ /^needs / ? "card" : "not measured"]++
          taken = 0; delete counted
          parts = split($7 " " $8, part, " ")
          for (i = 1; i <= parts; i++) if (!counted[part[i]]++) taken += seconds[part[i]]
          printf "%-30s %-14s %s%s\n", $1, $2, $9 " against " $10, device == "sim" || !taken ? "" : sprintf(" (%.1f s)", taken) }
        END { printf "%d hold, %d do not, %d simulated only", n["holds"], n["does not hold"], n["simulated"]
              if (n["card"]) printf ", %d for want of %s", n["card"], device == "sim" ? "a card" : "more cards"
              if (n["not measured"]) printf ", %d not measured or not shown", n["not measured"]
              print "" }' "$folder/times.tsv" "$folder/claims.tsv"
    sed -n '/^[0-9].* rows came out/p' "$folder/claims.md"
else
    cat "$work/claims.tsv"
fi
if [ -n "$figures" ]; then
    plots/claim_rows.sh "$folder" "$folder/figures" || exit 2
    echo "the page: $page"
fi
exit $status
