#!/bin/bash
# Every quick command of bench/cli/MANUAL.md, and each printf that writes a file, runs as it is written there. One that
# another script runs word by word is left to it.
set -u
# shellcheck source=tests/cli/lib.bash
. "$(dirname "$0")/lib.bash"
release_only manual
manual=$PWD/bench/cli/MANUAL.md
# Commands that need a card, a name of the reader's own, or minutes.
skipped='^(make|bench|plots)|cuda|record|trace -|fits -|calibrate|mine\.profile|SUITE\.ini|GRID\.ini|SCENARIO\.ini|OLD\.json|oom\.log|FOLDER|-p all -w \$T'
mkdir "$TEST_TMP/tree"
for name in workloads tests results plots bench; do ln -s "$PWD/$name" "$TEST_TMP/tree/$name"; done
ln -s "$(realpath "$ALLOCRIG")" "$TEST_TMP/tree/allocrig"
cd "$TEST_TMP/tree" || exit 1
# shellcheck disable=SC2034 # used by the commands
T=$(sed -n 's/.*`T=\(.*\)`.*/\1/p' "$manual")
check the_recording_exists [ -f "$T" ]
lora=workloads/data/lora_recompute.default.csv.gz
count=0
while read -r command; do
    ! grep -qF -- " ${command#./allocrig }" tests/cli/test_*.sh || continue
    count=$((count + 1))
    case $command in *"-p all -w embedding --"*) command=${command/-p all/-p torch} ;; esac # test_isolate.sh runs all
    command=${command/ --replicates 10/ --replicates 3} # test_replicates.sh has nine
    case $command in *" advise $lora "*) # one step of its sixteen
        ./allocrig convert --steps 3-3 "$lora" step.trace >"$out" && command=${command/$lora/step.trace} ;;
    esac
    eval "$command" >"$out" 2>"$err" </dev/null
    verdict "command_$count" $?
    [ ! -s "$err" ] || echo "  $command: $(tail -n 1 "$err")"
done < <(sed -n 's,^    \(\./allocrig .*\|printf .*\),\1,p' "$manual" | sed 's/ \{2,\}#.*//' | grep -vE "$skipped")
check commands_were_found [ $count -ge 15 ]
finish
