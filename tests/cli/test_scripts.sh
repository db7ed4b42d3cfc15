#!/bin/bash
# The scripts of bench and plots say how they are used, in 80 columns, and do nothing else then.
set -u
# shellcheck source=tests/cli/lib.bash
. "$(dirname "$0")/lib.bash"
release_only scripts 'starts no program of this build'
for script in bench/suite/*.sh plots/*.sh bench/micro/run.sh bench/regress/regress.sh; do
    for option in --help -h; do
        bash "$script" $option >"$out" 2>"$err" </dev/null
        status=$?
        name=$(basename "$script" .sh)
        check "$name$option.ends_well" [ "$status" = 0 -a ! -s "$err" ]
        check "$name$option.says_usage" grep -qiE '\<usage:' "$out"
        check "$name$option.names_itself" grep -qF "$script" "$out"
        check "$name$option.is_narrow" [ "$(awk 'length > 80' "$out" | wc -l)" = 0 ]
    done
done
finish
