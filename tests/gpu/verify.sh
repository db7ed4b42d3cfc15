#!/bin/bash
# Is the memory that policies give out the program's alone? Every policy but `null`, with every generator and every
# recorded trace, on the card with each block filled with a pattern, which is read again where it is used and when it is
# let go. A run that did not finish (out of memory in its part of the card) counts as passed where no byte was wrong;
# the line says so. A line for each cell; the last one is `N passed, N failed, N skipped`.
#
# Options: -j N, -p REGEX, -w REGEX, --resume FILE and others (tests/gpu/cells.c). Each process opens the card once.
set -u
cd "$(dirname "$0")/../.." || exit 2
CELLS=${CELLS:-$(dirname "${ALLOCRIG:-.build/release/allocrig}")/tests/gpu/cells}
[ -x "$CELLS" ] || { make -s gpu-tests && CELLS=.build/release/tests/gpu/cells; } || exit 2
exec "$CELLS" verify "$@"
