#!/bin/bash
# What `make install` leaves is enough to write a policy against: the skeleton, built with the
# installed headers only, loads into the installed program and serves a workload.
set -u
check() { if "${@:2}" >>"$TEST_TMP/log" 2>&1; then echo "ok $1"; else echo "not ok $1"; cat "$TEST_TMP/log"; fi; }

if [ "$TEST_VARIANT" != release ]; then
    echo "skip install: only the release build is installed"
    exit 0
fi
prefix=$TEST_TMP/prefix
check installs flock .build make -s install PREFIX="$prefix"
check installs_the_program "$prefix/bin/allocrig" --version
cp allocators/skeleton/skeleton.c "$TEST_TMP/mine.c"
check builds_with_installed_headers "${CC:-cc}" -std=c11 -D_GNU_SOURCE -Wall -Wextra -Werror -shared -fPIC \
    -I"$prefix/include/allocrig" "$TEST_TMP/mine.c" -o "$TEST_TMP/mine.so"
check runs_in_the_installed_program "$prefix/bin/allocrig" run -d sim -p "$TEST_TMP/mine.so" -w linear_ramp --require-pass
