# For the lints: sourced, never run. Each lint is `NAME.sh [ROOT]`: it looks at the tree under ROOT
# (default: this one), prints one line per finding, then `ok NAME` or `not ok NAME`.
# shellcheck shell=bash

lint_home=$(cd "$(dirname "${BASH_SOURCE[0]}")/../.." && pwd)
lint_root=${1:-$lint_home}
cd "$lint_root" || exit 2

# Files of our own with one of the endings given, sorted. A list that comes out empty is a fault of
# the lint, not a clean tree.
lint_files() {
    local ending folder
    local -a names=() made=(-path ./.build -o -path ./.git -o -path ./tests/lint/fixtures)
    for folder in latest paper dataset leaderboard rematch search; do made+=(-o -path "./results/$folder"); done
    for ending in "$@"; do names+=(-o -name "*.$ending"); done
    find . \( "${made[@]}" \) -prune -o -type f \( "${names[@]:1}" \) -print | sed 's,^\./,,' | sort
}

# Where CUDA's headers are: flags to compile with them, and, where they are not, a pattern of the
# files that need them.
lint_cuda=$(find "${CUDA_HOME:-/usr/local/cuda}/include" -maxdepth 1 -name cuda.h 2>/dev/null)
lint_cuda_flags=${lint_cuda:+-DHAVE_CUDA=1 -isystem ${lint_cuda%/cuda.h}}
lint_cuda_files='^$'
[ -n "$lint_cuda" ] || lint_cuda_files='^bench/cuda/.*\.c$|^bench/cuda/(api|state|streams|marks|blas|kernels|kernels_state)\.h$|^tests/gpu/|^tests/support/cuda_stand_in/|^tests/unit/test_cuda_'
export lint_cuda_flags lint_cuda_files

# lint_stale STATE KEY FILE...: those of the files that must be looked at. The others are, with all that
# they include, as they were when lint_clean was last called with this STATE and KEY (the tools and
# their flags). In a fixture, and without python3, that is all files.
lint_stale() {
    local state=.build/lint/$1 key=$2
    shift 2
    if [ "$lint_root" = "$lint_home" ] && command -v python3 >/dev/null; then
        mkdir -p .build/lint
        printf '%s\n' "$@" | python3 tests/lint/stale.py "$state" "$key"
    else
        printf '%s\n' "$@"
    fi
}

# lint_clean STATE: there was no finding in what lint_stale named.
lint_clean() {
    [ ! -e ".build/lint/$1.now" ] || mv ".build/lint/$1.now" ".build/lint/$1"
}

# lint_compile COMPILER FLAGS FILE...: what the compiler says of the files, two calls at a time.
lint_compile() {
    local -a call
    # shellcheck disable=SC2206 # flags are words
    call=("$1" -std=c11 -D_GNU_SOURCE -Wall -Wextra -Wpedantic -Wshadow -Wconversion -Werror
        -I. -Ibench/library $lint_cuda_flags $2 -fsyntax-only -x c)
    shift 2
    # clang's driver starts a process for each file; the compiler proper, as `-###` prints it, takes many
    # files and reads a header once. The input of that line, its last word, is left out.
    local line
    line=$("${call[@]}" -### /dev/null 2>&1 | tail -n 1)
    case $line in *'"-cc1"'*) eval "call=($line)" && unset 'call[-1]' ;; esac
    [ $# = 0 ] || printf '%s\0' "$@" | xargs -0 -P 2 -n $((($# + 1) / 2)) "${call[@]}" 2>&1 |
        sed 's/\x1b\[[0-9;]*m//g' # colours, as some versions of clang and ccache print them
}

# lint_verdict NAME FILES_SEEN FINDINGS
lint_verdict() {
    if [ "$2" -eq 0 ]; then
        echo "found no file to look at under $lint_root"
        echo "not ok $1"
        exit 1
    fi
    if [ -n "$3" ]; then
        printf '%s\n' "$3"
        echo "not ok $1"
        exit 1
    fi
    echo "ok $1"
}
