#!/bin/bash
# Runs the micro-benchmarks that `make` built. Usage: bench/micro/run.sh BUILD_FOLDER micro|instructions|counts
# RESULTS is the folder to write to (results/latest); QUICK=1 counts only what a bar is set for, on one
# recording. counts: of all policies, on one recording, for the gate. POLICIES: specs instead, such as
# './mine.so torch:max_split_size_mb=64'.
case ${1:-} in -h | --help) sed -n '2,/^[^#]/s/^# \{0,1\}//p' "$0" | fold -sw 80 && exit 0 ;; esac
set -u
cd "$(dirname "$0")/../.." || exit 2
build=$1
results=${RESULTS:-results/latest}
quick=${QUICK:-0}
mkdir -p "$results"

# The recorded programs that are replayed, by name; the file as it stands in workloads/data.
trace_file() { find workloads/data -name "$1.default.csv*" -o -name "$1.csv*" | sort | head -n 1; }

micro() {
    local -a traces=()
    local name file
    for name in gpt2_train lora_recompute resnet50_train; do
        file=$(trace_file $name)
        [ -z "$file" ] || traces+=("$file")
    done
    # shellcheck disable=SC2086 # MICRO_FLAGS is a list of flags
    "$build/bench/micro/micro" "${traces[@]}" --benchmark_min_time=0.03 --benchmark_repetitions=5 \
        --benchmark_out="$results/micro.json" --benchmark_out_format=json ${MICRO_FLAGS:-} || exit $?
    printf 'all repetitions: %s\n  (Google Benchmark'\''s compare.py compares two such files)\n' "$results/micro.json"
}

# ---- instructions -------------------------------------------------------------------------------

# counted COMMAND...: sets `operations`, `metadata`, `total` of a command of the driver. A first pass only writes the
# commands down (planning=1); count_all runs them, and the second pass reads what it counted, in the same order.
counted() {
    operations=0 total=0 metadata=
    if [ $planning = 1 ]; then echo "$*" >>"$work/cases"; else read -r operations total metadata <&3; fi
}

# count_all: runs all cases in one callgrind, whose start takes longer than most of them. Callgrind starts to count where
# the program says so; if it was built without valgrind's header, at once.
count_all() {
    local start
    for start in no yes; do
        rm -f "$work"/callgrind.*
        valgrind --tool=callgrind --instr-atstart=$start --callgrind-out-file="$work/callgrind.%p" --toggle-collect='measured_*' \
            "$build/bench/micro/instructions" batch "$work/cases" >"$work/log" 2>"$work/log.err"
        grep -v '^==' "$work/log.err" | sed 's/^/  /' >&2
        awk '/^(summary|totals):/ { match(FILENAME, /[0-9]+$/); total[substr(FILENAME, RSTART)] = $2 }
            $1 == "operations" { operations = $2 }
            $1 == "metadata" { metadata = $2 }
            $1 == "ended" { print operations + 0, $3 ? 0 : total[$2] + 0, metadata; operations = metadata = "" }' \
            "$work"/callgrind.* "$work/log" >"$work/counts"
        ! awk '{ all += $2 } END { exit !all }' "$work/counts" || break
    done
}

per_operation() { awk -v t="$total" -v n="$operations" 'BEGIN { if (n > 0) printf "%.1f", t / n; else print "-" }'; }

# The most instructions that an operation may take: policy, with metrics none or exact; the kind of events.
bar() {
    if [ "${3:-operations}" = all ]; then
        case $1/$2 in
        growth/none | greedy/none | bfc/none | ort/none) echo 250 ;;
        growth/exact | greedy/exact | bfc/exact | ort/exact) echo 450 ;;
        esac
        return
    fi
    case $1/$2 in
    null/none) echo 40 ;;
    growth/none | greedy/none | ort/none) echo 220 ;;
    growth/exact | greedy/exact) echo 450 ;;
    torch/none) echo 350 ;;
    rmm-pool/none) echo 250 ;;
    tlsf/none | vma-virtual/none) echo 125 ;;
    offset/none) echo 100 ;;
    cupy/none | slab/none | buddy/none) echo 220 ;;
    vmm/none) echo 400 ;;
    ggml/none) echo 450 ;;
    rmm-arena/none) echo 900 ;;
    esac
}

# judge VALUE BAR WHAT: says met or missed; remembers a miss.
judge() {
    if [ -z "$2" ]; then verdict=""
    elif awk -v v="$1" -v b="$2" 'BEGIN { exit !(v != "-" && v + 0 <= b + 0) }'; then verdict="met (<= $2)"
    else
        verdict="MISSED (<= $2)"
        missed=$((missed + 1))
        [ "$1" != - ] || verdict="MISSED (did not run)"
    fi
}

# One count for `allocrig compare`: SPEC TRACE KIND MEASURE COUNT
count_row() {
    [ "$5" != - ] || return 0
    [ ! -s "$work/rows" ] || printf ',\n' >>"$work/rows"
    printf '    {"policy": "%s", "trace": "%s", "kind": "%s", "measure": "%s", "instructions": %s}' "$@" >>"$work/rows"
}

write_counts() {
    printf '{\n  "schema": "allocrig.instructions/1",\n  "compiler": "%s",\n  "rows": [\n%s\n  ]\n}\n' \
        "$(${CC:-gcc} --version | head -n 1)" "$(cat "$work/rows")" >"$results/instructions.json"
}

row() { printf '%-10s %-15s %-10s %8s %8s  %s\n' "$@" | tee -a "$table"; }

replays() {
    local trace kind file policy spec measure
    row policy trace events none exact bars
    local recordings="gpt2_train lora_recompute" kinds="operations all"
    [ "$quick" = 0 ] || { recordings=gpt2_train; kinds=operations; }
    for trace in $recordings; do
        file=$(trace_file "$trace")
        if [ -z "$file" ]; then
            echo "no recording of $trace under workloads/data"
            missed=$((missed + 1))
            continue
        fi
        for kind in $kinds; do
            if [ $planning = 1 ]; then
                rm -f "$work/$trace.$kind.bin"
                "$build/bench/micro/instructions" prepare "$file" "$work/$trace.$kind.bin" "$kind"
            fi
            [ -s "$work/$trace.$kind.bin" ] || { missed=$((missed + 1)); continue; }
            while read -r policy spec; do
                local -a values=() verdicts=()
                for measure in none exact; do
                    # only what has a bar, unless counts are wanted
                    [ "$quick/$what" != 1/instructions ] || [ -n "$(bar "$policy" $measure "$kind")" ] || { values+=(-); continue; }
                    counted replay "$spec" "$work/$trace.$kind.bin" $measure
                    values+=("$(per_operation)")
                    count_row "$spec" "$trace" "$kind" $measure "${values[-1]}"
                    judge "${values[-1]}" "$(bar "$policy" $measure "$kind")"
                    [ -z "$verdict" ] || verdicts+=("$verdict")
                done
                row "$policy" "$trace" "$kind" "${values[@]}" "${verdicts[*]}"
            done <"$work/policies"
        done
    done
}

free_blocks() {
    local policy spec few many
    echo | tee -a "$table"
    row policy "64 free" "65536" ratio B/block "bars"
    while read -r policy spec; do
        counted pairs "$spec" 64; few=$(per_operation)
        counted pairs "$spec" 65536; many=$(per_operation)
        local ratio judged
        ratio=$(awk -v a="$few" -v b="$many" 'BEGIN { if (a > 0) printf "%.2f", b / a; else print "-" }')
        judge "$ratio" 3
        judged=$verdict
        case $policy in
        growth | greedy | bfc)
            judge "${metadata:--}" 96
            judged="$judged, $verdict" ;;
        esac
        row "$policy" "$few" "$many" "$ratio" "${metadata:--}" "$judged"
    done <"$work/policies"
}

# For vmm, which takes memory from free blocks of all streams. (Other policies are not judged:
# some visit all streams because the imitated allocator does.)
streams() {
    local policy spec few many ratio
    while read -r policy spec; do
        [ "$policy" = vmm ] || continue
        counted streams "$spec" 64; few=$(per_operation)
        counted streams "$spec" 4096; many=$(per_operation)
        ratio=$(awk -v a="$few" -v b="$many" 'BEGIN { if (a > 0) printf "%.2f", b / a; else print "-" }')
        judge "$ratio" 3
        echo | tee -a "$table"
        row policy "64 streams" 4096 ratio "" bars
        row "$policy" "$few" "$many" "$ratio" "" "$verdict"
    done <"$work/policies"
}

# What is counted, a name for the table and a spec in each line.
choose_policies() {
    local spec
    "$build/bench/micro/instructions" policies >"$work/policies" || exit 1
    # ggml's pool does not release to serve a request: a second pass over a recording needs more than the limit.
    sed -i 's/^ggml .*/ggml ggml/' "$work/policies"
    if [ -n "${POLICIES:-}" ]; then
        for spec in $POLICIES; do echo "${spec%%:*} $spec"; done >"$work/policies"
    elif [ "$what" = counts ]; then
        echo 'expandable torch:limit=64GiB,expandable_segments=true' >>"$work/policies"
    elif [ "$quick" != 0 ]; then
        grep -E '^(null|growth|greedy|torch|cupy|rmm-pool|tlsf|slab|buddy|vmm) ' "$work/policies" >"$work/policies.new"
        mv "$work/policies.new" "$work/policies"
    fi
}

tables() {
    replays
    [ "$what" = counts ] || { free_blocks; streams; }
}

instructions() {
    command -v valgrind >/dev/null || { echo 'skipped: instructions, since valgrind is not installed ("make deps")'; exit 0; }
    work=${TEST_TMP:-$build}/instructions
    mkdir -p "$work"
    choose_policies
    : >"$work/cases"
    planning=1 missed=0 table=/dev/null
    tables >/dev/null
    count_all
    exec 3<"$work/counts"
    planning=0 missed=0 table=$results/instructions.txt
    : >"$work/rows"
    printf 'instructions per operation: one alloc or one free, the engine included; warm;\n%s\n' \
        "$(${CC:-gcc} --version | head -n 1)" | tee "$table"
    tables
    write_counts
    printf '%s\n' "PyTorch's own allocator takes about 1,650 an operation, with locks and a map of" \
        'pointers that a replay does not need.' | tee -a "$table"
    if [ $missed -gt 0 ]; then echo "$missed bars missed" | tee -a "$table"; else echo "all bars met" | tee -a "$table"; fi
    echo "written: $table, $results/instructions.json"
    [ $missed = 0 ]
}

what=${2:-}
case $what in
micro | instructions) "$what" ;;
counts)
    quick=1
    instructions ;;
*) echo "usage: bench/micro/run.sh BUILD_FOLDER micro|instructions|counts" >&2; exit 2 ;;
esac
