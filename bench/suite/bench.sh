#!/bin/bash
# Runs a suite with ./allocrig and draws its figures, as `make bench`. Usage:
#   bench/suite/bench.sh BUILD_FOLDER [SUITE.ini]
# Without a suite: workloads/suites/card.ini if a card can be used, otherwise
# workloads/suites/default.ini on the simulated device. Results go to results/latest.
# An interrupted run continues: BUILD_FOLDER/bench-PROGRAM-SUITE.journal, named by the checksums of both, holds the
# finished runs. If standard error is no terminal, it gets a line of progress each minute.
case ${1:-} in -h | --help) sed -n '2,/^[^#]/s/^# \{0,1\}//p' "$0" | fold -sw 80 && exit 0 ;; esac
set -eu
[ $# -ge 1 ] || { echo 'usage: bench/suite/bench.sh BUILD_FOLDER [SUITE.ini]' >&2; exit 2; }
cd "$(dirname "$0")/../.."
build=$1 suite=${2:-} results=results/latest
[ -z "$suite" ] || [ -r "$suite" ] || { echo "bench: there is no suite $suite to read" >&2; exit 2; }
rm -rf $results/data $results/figures
mkdir -p "$build"
if [ -z "$suite" ]; then
    card=$(./allocrig list devices cuda | sed -n '2,/^$/p' | tr -s ' \n' ' ')
    case $card in
    Available*)
        suite=workloads/suites/card.ini
        where="on the card: ${card#Available: }" ;;
    *)
        suite=workloads/suites/default.ini
        where="on the simulated device, since no card can be used: ${card#Not available: }" ;;
    esac
    echo "bench: $where" | fold -sw 80
fi
journal=$build/bench-$(cksum <./allocrig | cut -d ' ' -f 1)-$(cksum <"$suite" | cut -d ' ' -f 1).journal
[ ! -e "$journal" ] || echo "bench: goes on where it was ended ($journal)"
echo "./allocrig run $suite --journal $journal"
ALLOCRIG_PROGRESS=${ALLOCRIG_PROGRESS:-60} ./allocrig run "$suite" --journal "$journal"
touch "$build/bench-ran"
plots/draw.sh
# The run has named its own files.
find $results -type f -newer "$build/bench-ran" | sort | sed 's/^/wrote /'
