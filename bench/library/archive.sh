#!/bin/bash
# Makes the static library that is installed: one object in which only the public names are global, so that no name of
# the library meets one of the program's. Usage: bench/library/archive.sh ARCHIVE OUT
case ${1:-} in -h | --help) sed -n '2,/^[^#]/s/^# \{0,1\}//p' "$0" | fold -sw 80 && exit 0 ;; esac
set -eu
object=$2.o
"${LD:-ld}" -r -o "$object" --whole-archive "$1"
"${OBJCOPY:-objcopy}" --localize-hidden "$object"
rm -f "$2"
ar rcs "$2" "$object"
rm -f "$object"
