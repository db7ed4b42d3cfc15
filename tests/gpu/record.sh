#!/bin/bash
# `allocrig record` on a card: the documents' programs under PyTorch, JAX and CuPy, each tensor sent
# to the driver, give traces whose totals are those of the frameworks' own counters; what recording
# adds to a call, in pairs of runs with and without it. About four minutes.
# A framework that is not installed is skipped. PYTHON: the interpreter (python3). OUT: a folder for
# the traces. PAIRS: of the overhead (7). SKIP: frameworks to leave out, such as "jax".
set -u
cd "$(dirname "$0")/../.." || exit 2
ALLOCRIG=${ALLOCRIG:-./allocrig}
PYTHON=${PYTHON:-python3}
programs=tests/gpu/programs
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
out=${OUT:-$work}
export PYTHONDONTWRITEBYTECODE=1
passed=0 failed=0 skipped=0
mkdir -p "$out"

verdict() { # NAME STATUS TEXT
    if [ "$2" = 0 ]; then
        echo "ok $1: $3" && passed=$((passed + 1))
    else
        echo "not ok $1: $3" && failed=$((failed + 1))
    fi
}

# The last words of a file, in one line.
last() { tr -s ' \n' ' ' <"$1" | tail -c 600; }

# Whether the framework is there; else it counts as skipped.
has() {
    case " ${SKIP:-} " in *" $1 "*) return 1 ;; esac
    timeout 120 "$PYTHON" -c "import $1" >"$work/import" 2>&1 && return 0
    echo "skip $1: $(tail -n 1 "$work/import")"
    skipped=$((skipped + 1))
    return 1
}

# counted NAME COMMAND...: a run without recording, whose counters are NAME.counted.json
counted() {
    local name=$1
    shift
    COUNTERS=$work/$name.counted.json timeout 180 "$@" >"$work/said" 2>&1 ||
        { verdict "$name counts" 1 "$(last "$work/said")" && return 1; }
}

# recorded NAME COMMAND...: the trace NAME.trace; counters of that run are NAME.json
recorded() {
    local name=$1
    shift
    COUNTERS=$work/$name.json timeout 240 "$ALLOCRIG" record -o "$work/$name.trace" -- "$@" \
        >"$work/said" 2>"$work/report"
    local status=$?
    [ $status = 0 ] && "$ALLOCRIG" inspect "$work/$name.trace" >"$work/inspect" 2>&1
    status=$?
    verdict "$name records" $status "$(grep -h '^wrote\|^allocrig:\|^  ' "$work/report" | tr -s ' \n' ' ' | cut -c 1-400)"
    if [ $status != 0 ]; then
        last "$work/said"
        last "$work/report"
        return 1
    fi
    "$ALLOCRIG" convert "$work/$name.trace" "$out/$name.bin.zst" >"$work/said" 2>&1 || cat "$work/said"
}

# agrees NAME COUNTERS [LIVE]
agrees() {
    local name=$1 text status
    shift
    text=$("$PYTHON" $programs/compare.py "$work/$name.trace" "$@" 2>&1)
    status=$?
    verdict "$name agrees with the framework's counters" $status "$(tail -n 1 <<<"$text")"
}

# ---- PyTorch -------------------------------------------------------------------------------------

if has torch; then
    for program in tape products; do
        name=torch_$program
        counted $name "$PYTHON" $programs/torch_programs.py $program &&
            PYTORCH_NO_CUDA_MEMORY_CACHING=1 recorded $name "$PYTHON" $programs/torch_programs.py $program &&
            agrees $name "$work/$name.counted.json"
    done
fi

# ---- CuPy ----------------------------------------------------------------------------------------

if has cupy; then
    for program in tape products; do
        name=cupy_$program
        recorded $name "$PYTHON" $programs/cupy_programs.py $program && agrees $name "$work/$name.json"
    done
fi

# ---- JAX -----------------------------------------------------------------------------------------

if has jax; then
    for program in tape products embedding; do
        name=jax_$program
        XLA_PYTHON_CLIENT_PREALLOCATE=false counted $name "$PYTHON" $programs/jax_programs.py $program &&
            XLA_PYTHON_CLIENT_ALLOCATOR=platform recorded $name "$PYTHON" $programs/jax_programs.py $program &&
            agrees $name "$work/$name.counted.json" "$work/$name.json"
    done
fi

# ---- kernels -------------------------------------------------------------------------------------

kernels_have_times() { # TRACE
    awk -F , '/^k,/ { kernels++; timed += $3 > 0 } END { print kernels + 0 " kernels, " timed + 0 " with a time"
                      exit !(kernels && timed == kernels) }' "$1"
}
if has cupy; then
    "$ALLOCRIG" record --kernels -o "$work/kernels.trace" -- "$PYTHON" $programs/cupy_programs.py tape \
        >"$work/said" 2>"$work/report"
    text=$(kernels_have_times "$work/kernels.trace")
    verdict "kernels have times" $? "$text; $(grep -h '^wrote\|^allocrig:\|kernels' "$work/report" | tr -s ' \n' ' ')"
    "$ALLOCRIG" convert "$work/kernels.trace" "$out/cupy_tape_kernels.bin.zst" >"$work/said" 2>&1 || cat "$work/said"
fi

# ---- overhead ------------------------------------------------------------------------------------

include=$(for folder in ${CUDA_HOME:+"$CUDA_HOME/include"} /usr/local/cuda/include; do
    [ ! -e "$folder/cuda.h" ] || { echo "$folder" && break; }
done)

# pairs NAME COMMAND...: the differences of each figure that the command prints ("key N key N.."),
# recorded less not recorded, and the verdict on their medians: under 2 us a call that allocates.
pairs() {
    local name=$1 i
    shift
    : >"$work/pairs"
    for ((i = 0; i < ${PAIRS:-7}; i++)); do
        timeout 120 "$@" >"$work/without" 2>"$work/said" || { last "$work/said" && break; }
        timeout 120 "$ALLOCRIG" record -o "$work/overhead.bin" -- "$@" >"$work/with" 2>"$work/report" ||
            { last "$work/report" && break; }
        paste -d ' ' <(tr -s ' =\n' '\n' <"$work/without") <(tr -s ' =\n' '\n' <"$work/with") |
            awk 'NR % 2 { key = $1 } NR % 2 == 0 { print key, $1, $2, $2 - $1 }' >>"$work/pairs"
    done
    text=$(sort -k1,1 -k4,4n "$work/pairs" | awk '
        function show() {
            if (n) { printf "%s %+.0f ns (%.0f to %.0f, %d pairs); ", key, d[int((n + 1) / 2)], d[1], d[n], n
                     if (key ~ /alloc/) { judged++; bad += d[int((n + 1) / 2)] >= 2000 } }
        }
        $1 != key { show(); key = $1; n = 0 }
        { d[++n] = $4 }
        END { show(); exit !judged || bad }')
    verdict "$name under 2000 ns a request" $? "$text inside of the library: $(grep -hso 'mean overhead.*' "$work/report")"
}

if [ -n "$include" ] && ${CC:-cc} -std=c11 -D_GNU_SOURCE -O2 -isystem "$include" \
    -o "$work/overhead" $programs/overhead.c -ldl; then
    pairs "overhead, driver" "$work/overhead"
else
    echo "skip overhead: no compiler or no cuda.h" && skipped=$((skipped + 1))
fi
if has cupy; then
    pairs "overhead, runtime (CuPy)" "$PYTHON" $programs/cupy_programs.py overhead
fi

echo "$passed passed, $failed failed, $skipped skipped"
[ $failed = 0 ]
