#!/bin/bash
# Draws every figure for which there are data, as SVG, PNG and PDF (8.5 cm wide).
# Usage: plots/render.sh DATA OUT [FORM]..
# FORM: svg, png, pdf, or svg-column, png-column, which look like the pdf.
# DATA holds series-WORKLOAD.csv, slowdown.csv and others (plots/README.md
# describes their columns). The variable FIGURES, a pattern of names, selects
# figures, and PANELS panels of the figure of fragmentation: 'internal external
# unusable overhead', or some of them. If a file is missing or has no row, its
# figure is not drawn, and a message says so. OUT/captions.txt has a caption for
# each figure in OUT, with the program, its commit and what the figures depend
# on if DATA/../summary.md has them; of addresses also with the policy and the
# device, from DATA/placements-NAME.txt, which holds what `run` printed.
usage() { sed -n '2,/^[^#]/s/^# \{0,1\}//p' "$0" | fold -sw 80; }
case ${1:-} in -h | --help) usage && exit 0 ;; esac
set -u
[ $# -ge 2 ] || { usage >&2; exit 2; }
given=$1
data=$(realpath -m -- "$1")
out=$(realpath -m -- "$2")
shift 2
cd "$(dirname "$0")/.." || exit 2
forms=("$@")
[ $# -gt 0 ] || forms=(svg png pdf)
command -v gnuplot >/dev/null || { echo 'skipped: figures, since gnuplot is not installed ("make deps")'; exit 0; }
[ -d "$data" ] || { echo "figures: $data is not there: \`allocrig run .. --output FOLDER\` writes FOLDER/data, and make bench results/latest/data" >&2; exit 2; }
if ! compgen -G "$data/*.csv" >/dev/null; then
    [ ! -d "$data/data" ] || { echo "figures: $given has no CSV files; did you mean $given/data?" >&2; exit 2; }
    echo "figures: $given has no CSV files: \`allocrig run .. --output FOLDER\` writes FOLDER/data" >&2; exit 2
fi
read -rd '' -a names <<<"${PANELS:-internal external unusable overhead}"
panels=${names[*]}
[ -n "$panels" ] || { echo "figures: PANELS names no panel: internal, external, unusable, overhead" >&2; exit 2; }
for panel in "${names[@]}"; do
    case $panel in internal | external | unusable | overhead) ;; *)
        echo "figures: PANELS=$panel is no panel: internal, external, unusable, overhead" >&2; exit 2 ;;
    esac
done
for form in "${forms[@]}"; do
    case $form in svg | png | pdf | svg-column | png-column) ;; *)
        echo "figures: $form is no form: svg, png, pdf, svg-column, png-column" >&2; exit 2 ;;
    esac
done
mkdir -p "$out"
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT

# All policies of the run, in the order of its files, which decides the colours.
for file in "$data"/*.csv; do
    [ ! -e "$file" ] || awk -f plots/clean.awk "$file" >"$work/$(basename "$file")"
done
policies=$(for file in "$work"/{fragmentation,slowdown,latency,pareto}.csv; do
    [ ! -e "$file" ] || awk -F, 'NR > 1 { print $2 }' "$file"
done; for file in "$work"/series-*.csv; do
    [ ! -e "$file" ] || awk -F, 'NR > 1 { print $1 }' "$file"
done)
policies=$(awk 'NF && !seen[$0]++' <<<"$policies" | paste -sd ' ')

# The command that writes the data of a figure.
why() {
    case $1 in
    slowdown)
        printf '%s\n  ' "a suite with a section [slowdown] fills it, of workloads" "with kernels or host times:"
        echo './allocrig run workloads/suites/default.ini -p SPEC -w TRACE --output DIR'
        ;;
    pareto) echo "its share of time needs workloads with kernels, or --host recorded" ;;
    latency) echo "run --time, or a suite with time = yes, measures it" ;;
    *) echo "no run of it finished, or none was made" ;;
    esac
}

# What the marks and whiskers of a figure are, from its column `runs`.
spread() {
    awk -F, 'NR == 1 { for (i = 1; i <= NF; i++) if ($i == "runs") c = i }
        NR > 1 && c && $c != "" {
            print "Marks are medians of " $c " " ($(c + 1) == "draws" ? "replicates" : $(c + 1)) ", whiskers " \
                ($(c + 2) != "" ? "the interval of the median by order statistics, at 95 % or more" : "the least and the most") \
                "; one that is shorter than its mark is not drawn."
            exit
        }' "$1"
}

# The machine whose host times were measured.
measured() {
    local summary
    summary=$(dirname "$data")/summary.md
    [ ! -e "$summary" ] || sed -nE 's/^allocrig [^;]*; (.*); seed .*/Measured on \1./p' "$summary"
}

# Whether the times of the run are those of a simulated card.
modelled() {
    local summary
    summary=$(dirname "$data")/summary.md
    [ ! -e "$summary" ] || sed -nE 's/^\*\*.*, host [a-z]*, sim ([^ ,*]+).*\*\*$/Times are modelled (simulated \1)./p' "$summary" | sort -u
}

# The sentence on policies of a series that did not finish.
unfinished() {
    awk -F, 'NR == 1 { for (i = 1; i <= NF; i++) if ($i == "passed") c = i }
        NR > 1 && c && $c == "false" && !seen[$1]++ { names = names (names ? ", " : "") $1 }
        END { gsub(/;/, ",", names); gsub(/\^/, "\047", names)
            if (names) print " Did not finish: " names ". Their curves end with a cross at the first request that failed, and have no peak." }' "$1"
}

# The sentence on a series that is the first of several replicates.
first_of() {
    awk -F, 'NR == 1 { for (i = 1; i <= NF; i++) if ($i == "draws") c = i }
        NR == 2 { if (c && $c > 1) print " Shown is the first of " $c + 0 " replicates." }' "$1"
}

# What a figure of addresses is of, from the page that `run` printed beside the file, and its events.
run_of() {
    local page=$data/placements-${2#*-}.txt
    if [ -e "$page" ]; then
        awk '/^[^ ].*: .*frees .*, host / { of = $0 } $1 ~ /^([0-9]+|-)$/ && of && !policy { policy = $2 }
            END { if (of) print " Policy " policy "; " of "." }' "$page"
    else
        echo " Policy and device are those of the run that wrote placements-${2#*-}.csv."
        printf 'figures: no placements-%s.txt, what `run` printed, so the caption\n  has no policy, workload and device\n' "${2#*-}" >&2
    fi
    awk -F, 'NR > 1 { last = $1 } END { print "From the first event to event " last + 0 ", the last with a block." }' "$1"
}

has_panel() { [[ " $panels " == *" $1 "* ]]; }
# caption SCRIPT CSV NAME
caption() {
    local of=${3#*-}
    case $1 in
    memory) echo "Memory of $of over time: live bytes of the program (grey), bytes that the policy holds by its own count (dashed) and bytes that the device charges (coloured, with a mark at their peak). The numbers above a panel are that peak and its ratio to the peak of live bytes. Policies with the same curves share a panel.$(first_of "$2")$(unfinished "$2")" ;;
    addresses) echo "Addresses of $of over time. Each block is a rectangle, as wide as its life and as high as its bytes, darker if it is larger; segments are stacked in the order of their first block, and the lightest grey is free memory of a segment.$(run_of "$2" "$3" | paste -sd ' ')" ;;
    slowdown) echo "Time lost to the allocator: the time of the program divided by its time with an allocator that costs nothing, minus 1, by the capacity of the device divided by the program's peak of live bytes (equal steps); the capacities in the last line are those of the other figures. Smaller costs than at the lower edge, and none, lie on it. A cross: the program did not finish (with replicates: at least one of them did not; the table has how many did)." ;;
    fragmentation)
        echo "Fragmentation, lower is better."
        ! has_panel internal || echo "Internal: 1 - bytes asked for / bytes granted, which are those of the blocks after rounding."
        ! has_panel external || echo "External: 1 - the largest request that can be served without a driver call / free bytes."
        ! has_panel unusable || echo "Unusable free index: the part of the free bytes that cannot hold whole blocks of the median request (half of all requested bytes are in requests of at most its size)."
        ! has_panel overhead || echo "Overhead: the peak of physical bytes, which the device charges in pages, / the peak of live bytes, which the program asked for and has not freed."
        [ "$panels" = overhead ] || echo "All but the overhead are means over the run, weighted by the time of the recording or, without times, by the bytes of requests."
        ! has_panel overhead || awk -F, 'NR > 1 && $6 != "" && $6 < 0.9 && !seen[$2]++ { names = names (names ? ", " : "") $2 } END { if (names) print "Not in the panel of overhead, below its axis, because they use no memory of the device: " names "." }' "$2"
        ! awk -F, 'NR > 1 && $6 == "" { found = 1 } END { exit !found }' "$2" || echo "A cross at the upper edge: the program did not finish (with replicates: at least one of them did not)."
        ;;
    latency) echo "Host time of a call of the policy, by percentile of all calls, without the driver's time and without waits. The cost of reading the clock is subtracted; a call that takes no longer lies at the lower edge." ;;
    pareto) echo "The peak of physical bytes divided by the peak of live bytes, against the driver's share of the run time. Unless one policy is the best in both, a line joins those that no other beats in both. Smaller shares than at the lower edge, and none, lie on it, and a ratio above 3 lies on the right edge." ;;
    frontier) echo "Capacities at which $of finishes (dots) and does not (crosses), by a parameter of the program. The line is its peak of live bytes." ;;
    history) echo "Figures over commits. Triangles: the commits at which they changed." ;;
    esac
    case $1 in slowdown | fragmentation | latency | pareto) spread "$2" ;; esac
    case $1 in slowdown | pareto) modelled ;; latency) measured ;; esac
}

# The program and, of each workload, the line that stands above its table: of several the first, which
# the figures show.
source_of() {
    local summary
    summary=$(dirname "$data")/summary.md
    [ ! -e "$summary" ] || awk '/^allocrig / && !program { program = $0; sub(/(, [0-9]*-[0-9]*-[0-9T:]*Z)?;.*/, "", program); print program "." }
        /^\*\*.*: .*frees .*\*\*$/ && !/: compared with / && !seen[substr($0, 1, match($0, /: [0-9to ]*(events, )?frees /))]++ { gsub(/\*\*/, ""); print $0 "." }' "$summary"
}

failed=0 selected=0
captions=()
# draw SCRIPT CSV NAME [COLUMN]: one figure in all forms; none if the column is empty
draw() {
    local script=$1 csv=$2 name=$3 column=${4:-1} form file
    # shellcheck disable=SC2053 # a pattern
    [[ $name == ${FIGURES:-*} ]] || return
    selected=1
    [ -e "$csv" ] || { echo "figures: no $(basename "$csv"), so no figure $name"; return; }
    [ "$(wc -l <"$csv")" -gt 1 ] || {
        printf 'figures: %s has no rows, so no figure %s:\n  %s\n' "$(basename "$csv")" "$name" "$(why "$name")"
        return
    }
    if ! awk -F, -v c="$column" 'NR > 1 && $c != "" { found = 1 } END { exit !found }' "$csv"; then
        printf 'figures: %s holds no value to draw, so no figure %s:\n  %s\n' "$(basename "$csv")" "$name" "$(why "$name")"
        return
    fi
    for form in "${forms[@]}"; do
        file=$name.${form%-column}
        [ "$form" = "${form%-column}" ] || file=$name-column.${form%-column}
        if ! gnuplot -e "IN='$csv'; OUT='$work/figure.$form'; TERM='$form'; NAME='${name#*-}'; POLICIES='$policies'; ONLY='$panels'" \
            "plots/$script.gp" 2>"$work/log" || [ ! -s "$work/figure.$form" ]; then
            echo "figures: plots/$script.gp failed on $csv:" >&2
            cat "$work/log" >&2
            failed=1
            return
        fi
        mv "$work/figure.$form" "$out/$file"
    done
    captions+=("$name: $(caption "$script" "$csv" "$name" | paste -sd ' ')")
}

for csv in "$work"/series-*.csv; do
    name=$(basename "$csv" .csv)
    draw memory "$csv" "memory-${name#series-}"
done
for csv in "$work"/placements-*.csv; do
    name=$(basename "$csv" .csv)
    [ ! -e "$csv" ] || draw addresses "$csv" "addresses-${name#placements-}"
done
draw slowdown "$work/slowdown.csv" slowdown 4
draw fragmentation "$work/fragmentation.csv" fragmentation 6
draw latency "$work/latency.csv" latency 3
draw pareto "$work/pareto.csv" pareto 4
for csv in "$work"/frontier-*.csv; do
    [ ! -e "$csv" ] || draw frontier "$csv" "$(basename "$csv" .csv)"
done
[ ! -e "$work/history.csv" ] || draw history "$work/history.csv" history 9
[ $selected = 1 ] || { echo "figures: FIGURES=$FIGURES is no figure of $given (memory-WORKLOAD, slowdown, fragmentation, latency, pareto, ..)" >&2; failed=2; }
has_figure() { compgen -G "$out/$1.*" >/dev/null || compgen -G "$out/$1-column.*" >/dev/null; }
# The captions of OUT's figures that are not drawn anew stay, each in its place.
merge_captions() {
    local line name kept=()
    local -A anew=()
    for line in "${captions[@]}"; do anew[${line%%: *}]=$line; done
    while IFS= read -r line; do
        name=${line%%: *}
        if [ -z "$name" ] || [ "$name" = All ]; then continue; fi
        if [ -n "${anew[$name]:-}" ]; then kept+=("${anew[$name]}"); elif has_figure "$name"; then kept+=("$line"); fi
        unset "anew[$name]"
    done < <(cat "$out/captions.txt" 2>/dev/null)
    for line in "${captions[@]}"; do [ -z "${anew[${line%%: *}]:-}" ] || kept+=("$line"); done
    captions=("${kept[@]}")
}
if [ ${#captions[@]} -gt 0 ]; then
    merge_captions
    { printf '%s\n\n' "${captions[@]}" "All: $(source_of | paste -sd ' ')"; } | sed '/^All: $/,$d' >"$out/captions.txt"
fi
exit $failed
