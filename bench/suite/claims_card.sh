#!/bin/bash
# Measures claims about GPU memory on a card: greedy and growth, embeddings, tapes, workspaces.
# Usage: bench/suite/claims_card.sh FOLDER [DEVICE]      (DEVICE: cuda, the default, or sim)
#
# FOLDER/series-RUN.csv    memory after each event, thinned: event,live_bytes,reserved_bytes,physical_bytes
# FOLDER/calls-RUN.csv     each driver call
# FOLDER/result-RUN.csv    all figures of the run
# FOLDER/numbers.csv       the input of bench/suite/claims_page.sh: key,value (empty: not measured)
# Traces have no step marks if the memory use of the card is measured: it is then measured only once, at
# the end, when the program's blocks are free.
usage() { sed -n '2,/^[^#]/s/^# \{0,1\}//p' "$0" | fold -sw 80; }
case ${1:-} in -h | --help) usage && exit 0 ;; esac
set -u
[ $# -ge 1 ] || { usage; exit 2; }
cd "$(dirname "$0")/../.." || exit 2
folder=$1 device=${2:-cuda}
rig=${ALLOCRIG:-./allocrig}
mkdir -p "$folder" || exit 2
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT

# one RUN POLICY TRACE [OPTION_OF_CUDA]: writes the full $work/series-RUN.csv and the files in FOLDER
one() {
    local run=$1 policy=$2 trace=$3 on=$device
    if [ $# -gt 3 ] && [[ $device == cuda* ]]; then
        case $device in *:*) on=$device,$4 ;; *) on=$device:$4 ;; esac
    fi
    if ! "$rig" run -p "$policy" -w "$trace" -d "$on" --reps 1 --jobs 1 --timeout 60 --require-pass \
        --series "$work/series-$run.csv" --calls "$folder/calls-$run.csv" \
        --csv "$folder/result-$run.csv" >"$work/out" 2>&1 </dev/null; then
        echo "claims: $run: $(tail -n 1 "$work/out")" >&2
        exit 1
    fi
    # plots/thin.awk keeps the peaks of both live and reserved bytes.
    {
        echo event,live_bytes,reserved_bytes,physical_bytes
        awk -v by='4 6' -v x=1 -v buckets=300 -v end="$(tail -n 1 "$work/series-$run.csv" | cut -d, -f1)" \
            -f plots/thin.awk "$work/series-$run.csv" | cut -d, -f1,4,6,7
    } >"$folder/series-$run.csv"
}
# value RUN COLUMN: a value of the result
value() {
    awk -f plots/clean.awk "$folder/result-$1.csv" | awk -F, -v name="$2" '
        NR == 1 { for (i = 1; i <= NF; i++) if ($i == name) at = i }
        NR == 2 && at { print $at }'
}
# at RUN EVENT live|reserved|physical: bytes after that event; `end`: after the last one
at() {
    local column
    case $3 in live) column=4 ;; reserved) column=6 ;; *) column=7 ;; esac
    awk -F, -v event="$2" -v c=$column 'NR > 1 { last = $c } NR > 1 && $1 == event { exit }
        END { printf "%.0f\n", last }' "$work/series-$1.csv"
}
# most RUN: the peak of reserved bytes
most() {
    awk -F, 'NR > 1 && $6 + 0 > m { m = $6 + 0 } END { printf "%.0f\n", m }' "$work/series-$1.csv"
}
number() {
    echo "$1,$2" >>"$work/numbers.csv"
}
# pieces RUN PREFIX: the first and the largest segment from the driver, the number of segments, of those
# smaller than the one before, of those after the first event, and of released ones
pieces() {
    awk -F, -v run="$2" 'NR > 1 && $6 + 0 == 0 && $2 ~ /free|release/ { back++ }
        NR > 1 && $6 + 0 == 0 && ($2 ~ /alloc|create/) {
            if (n++ == 0) { first = $3 + 0; event = $1 } else if ($3 + 0 < last) less++
            if ($1 != event) later++
            last = $3 + 0; if (last > most) most = last }
        END { printf "%s_first_piece_bytes,%.0f\n%s_largest_piece_bytes,%.0f\n", run, first, run, most
              printf "%s_pieces,%d\n%s_smaller_pieces,%d\n%s_later_pieces,%d\n%s_given_back,%d\n", \
                  run, n, run, less, run, later, run, back }' "$folder/calls-$1.csv" >>"$work/numbers.csv"
}
# generate NAME WORKLOAD: $work/NAME.txt
generate() {
    "$rig" gen "$2" -o "$work/$1.txt" >"$work/out" 2>&1 </dev/null && return
    echo "claims: $(tail -n 1 "$work/out")" >&2
    exit 1
}

# Greedy and growth: 1024 blocks of one size, so that only the policy makes segments grow. All are freed,
# and at the end the program requests the release of caches.
awk 'BEGIN { print "# allocrig-trace 1\n# name: fill_and_free"
    for (i = 0; i < 1024; i++) print "a," i ",4194304"
    for (i = 0; i < 1024; i++) print "r," i
    print "s\nc" }' >"$work/fill.txt"
for policy in greedy growth direct torch; do
    one "fill-$policy" "$policy" "$work/fill.txt"
    pieces "fill-$policy" "$policy"
    number "${policy}_capacity_bytes" "$(value "fill-$policy" capacity_bytes)"
    number "${policy}_first_reserved_bytes" "$(at "fill-$policy" 0 reserved)"
    number "${policy}_most_reserved_bytes" "$(most "fill-$policy")"
    number "${policy}_end_live_bytes" "$(at "fill-$policy" end live)"
    number "${policy}_end_reserved_bytes" "$(at "fill-$policy" end reserved)"
    number "${policy}_end_card_bytes" "$(value "fill-$policy" peak_card_bytes)"
done

# Embedding: bytes per step from the end of the first step to the first table, and for as long after.
generate embedding embedding:steps=30
generate no_table embedding:steps=30,tables=0
first=$(grep -v '^#' "$work/embedding.txt" | awk '/tag=table/ { print NR - 1; exit }')
for run in embedding no_table; do
    one "$run" growth "$work/$run.txt"
    # The control has no table: it is cut at the same step.
    read -r begin middle end steps < <(grep -v '^#' "$work/$run.txt" | awk -v first="$first" -v at="${at_step:-0}" '
        /^m,step/ { step[++n] = NR - 1; if (NR - 1 < first) before = n }
        END { if (at) before = at; print step[1], step[before], step[2 * before - 1], before - 1 }')
    at_step=$((steps + 1))
    number "${run}_steps" "$steps"
    number "${run}_first_use_event" "$middle"
    for what in live reserved physical; do
        a=$(at "$run" "$begin" $what) b=$(at "$run" "$middle" $what) c=$(at "$run" "$end" $what)
        number "${run}_${what}_rise_before_bytes" $((b - a))
        number "${run}_${what}_rise_after_bytes" $((c - b))
    done
done

# Tape: the third step. The tags of the trace tell which live bytes are activations.
tape=gradient_tape:steps=4,lengths=512
generate tape "$tape"
generate recompute "$tape,recompute=4"
generate persistent "$tape,persistent=yes"
for run in tape recompute persistent; do
    one "$run" growth "$work/$run.txt"
    # begin, loss, end of the backward pass, end of the step; activations requested in the forward
    # pass, those of them live at the loss and at the end of the backward pass
    read -r begin loss backward end asked held left < <(grep -v '^#' "$work/$run.txt" | awk -F, '
        /^a,/ && /tag=activation/ && step == 2 && !loss { mine[$2] = $3; asked += $3; held += $3 }
        /^[rf],/ && ($2 in mine) { held -= mine[$2]; delete mine[$2] }
        /^a,/ && /tag=loss/ && step == 2 { loss = NR - 1; at_loss = held }
        /^a,/ && /tag=optimizer/ && loss && !backward { backward = NR - 2; left = held }
        /^m,step/ { if (++step == 2) begin = NR - 1; if (step == 3) { print begin, loss, backward, NR - 1, asked, at_loss, left; exit } }')
    number "${run}_begin_event" "$begin"
    number "${run}_loss_event" "$loss"
    number "${run}_backward_event" "$backward"
    number "${run}_end_event" "$end"
    number "${run}_activations_asked_bytes" "$asked"
    number "${run}_activations_at_loss_bytes" "$held"
    number "${run}_activations_after_backward_bytes" "$left"
    number "${run}_live_begin_bytes" "$(at "$run" "$begin" live)"
    number "${run}_live_loss_bytes" "$(at "$run" "$loss" live)"
    number "${run}_live_backward_bytes" "$(at "$run" "$backward" live)"
    number "${run}_live_end_bytes" "$(at "$run" "$end" live)"
done

# Workspaces and kernels, without step marks. `module` is memory outside of the pool that the trace has
# for each kernel (o events); the remaining memory outside of the pool belongs to the card.
products='matmul_cache:shapes=512;1000;2048;3000,repeat=3,context=0'
for module in 0 4MiB; do
    generate products "$products,module=$module"
    { grep -v '^m,step' "$work/products.txt"; printf 's\nc\n'; } >"$work/products-$module.txt"
done
for policy in torch growth; do
    one "products-$policy" "$policy" "$work/products-0.txt" matmul=cublas
    number "products_${policy}_end_live_bytes" "$(at "products-$policy" end live)"
    number "products_${policy}_end_reserved_bytes" "$(at "products-$policy" end reserved)"
    number "products_${policy}_most_reserved_bytes" "$(most "products-$policy")"
done
grep -v '^#' "$work/products-0.txt" | awk -F, '
    /^[ap],/ { kind = /tag=(input|product)/ ? "tensors" : "kept"; of[$2] = kind; size[$2] = $3; sum[kind] += $3 }
    /^[rf],/ { sum[of[$2]] -= size[$2] }
    END { printf "products_tensors_bytes,%.0f\nproducts_kept_bytes,%.0f\n", sum["tensors"], sum["kept"] }' >>"$work/numbers.csv"
one outside-plain direct "$work/products-0.txt" matmul=plain
one outside-cublas direct "$work/products-0.txt" matmul=cublas
one outside-modules direct "$work/products-4MiB.txt" matmul=cublas
number outside_trace_bytes "$(grep '^o,' "$work/products-4MiB.txt" | tail -n 1 | cut -d, -f2)"
number outside_none_bytes "$(value fill-direct peak_outside_bytes)"
number outside_device "$(value outside-cublas device_spec)"
for run in plain cublas modules; do
    number "outside_${run}_bytes" "$(value "outside-$run" peak_outside_bytes)"
done

number device "$(value fill-growth device)"
number card "$(value fill-growth profile | tr _ " ")"
mv "$work/numbers.csv" "$folder/numbers.csv"
echo "wrote $folder: $(find "$folder" -type f | wc -l) files, $(du -sk "$folder" | cut -f1) KiB"
