#!/bin/bash
# Prints the profiles as a table in C (sim/sim_device/profile.h), one string for each line of a file. Usage:
#   sim/profiles/builtin.sh FILE.profile..
case ${1:-} in -h | --help) sed -n '2,/^[^#]/s/^# \{0,1\}//p' "$0" | fold -sw 80 && exit 0 ;; esac
exec awk '
    BEGIN { print "#include <stddef.h>\n#include \"sim/sim_device/profile.h\"" }
    FNR == 1 {
        if (count) print "    NULL,\n};"
        name[++count] = FILENAME; gsub(/.*\/|\.profile$/, "", name[count])
        printf "static const char *const profile_%d[] = {\n", count
    }
    { gsub(/[\\"]/, "\\\\&"); printf "    \"%s\",\n", $0 }
    END {
        print "    NULL,\n};\nconst struct sim_builtin_profile sim_builtin_profiles[] = {"
        for (i = 1; i <= count; i++) printf "    {\"%s\", profile_%d},\n", name[i], i
        print "    {NULL, NULL},\n};"
    }' "$@"
