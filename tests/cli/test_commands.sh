#!/bin/bash
# The program's front door: commands, help, version, lists, and what it says to words it does not know.
set -u
# shellcheck source=tests/cli/lib.bash
. "$(dirname "$0")/lib.bash"

says() { # NAME REGEX ARGUMENTS...: ends with 0 and prints a line that matches
    local name=$1 pattern=$2
    shift 2
    run "$@"
    [ "$status" = 0 ] && [ ! -s "$err" ] && grep -qE "$pattern" "$out"
    verdict "$name" $?
}

says version '^allocrig [0-9]+\.[0-9]+\.[0-9]+$' --version
says help_names_every_command '^  run ' help
for command in run capacity gen convert inspect calibrate list minimize trace fits twin; do
    says "help_$command" "^Usage: allocrig $command" help "$command"
    says "help_option_$command" "^Usage: allocrig $command" "$command" --help
done
refuses no_command 2 'no command given.*allocrig help'
refuses unknown_command 2 'no command "rum"; did you mean "run"' rum
says help_of_help '^Usage: allocrig COMMAND' help --help
refuses help_of_unknown_command 2 'no command "lst"; did you mean "list"' help lst
refuses unknown_option 2 'run: there is no option --jsn; did you mean --json' run -d sim --jsn x
refuses unknown_letter 2 'there is no option -q' run -d sim -q
refuses value_missing 2 '--json needs a value: --json FILE' run -d sim --json
refuses letter_value_missing 2 '-p needs a value: -p SPEC' run -d sim -w order_flip -p
refuses value_too_many 2 '--time takes no value' run -d sim --time=yes
refuses help_has_no_value 2 'run: --help takes no value' run --help=x
refuses a_capacity_of_the_device 2 'no option --capacity; a capacity is part of the device: -d sim:capacity=' run --capacity 8GiB
refuses a_capacity_that_is_searched 2 'no option --capacity; it searches the capacity; `run -d sim:capacity=24GiB` tries one$' capacity x.trace --capacity 3GiB
refuses a_card_of_the_device 2 'no option --card; .* -d sim:profile=NAME' bound --card l4
refuses no_such_card 2 'no card "l44"; did you mean "l4"' advise x.trace --card l44
refuses a_part_of_a_card 2 'no card "4090"; did you mean: rtx4090\?' capacity x.trace --card 4090
refuses the_version_is_an_option 2 'no command "version"; did you mean "--version"' version
refuses the_version_is_of_the_program 2 'no option --version; `allocrig --version` prints that' run --version
refuses a_card_in_capitals 2 'x.trace: ' advise x.trace --card 'RTX 4090'
refuses a_card_nearly_in_capitals 2 'no card "RTX 4091"; did you mean "rtx4090"' advise x.trace --card 'RTX 4091'
refuses a_profile_of_no_card 2 'no card "bump"; there are: a10, .*, b300, gb10' advise x.trace --card bump
refuses a_card_and_a_device 2 'give one device' advise x.trace --card l4 -d sim:capacity=1GiB
refuses a_card_is_a_profile 2 'advise needs a simulated device: .* -d sim:profile=rtx4090' advise x.trace -d rtx4090
refuses fits_is_about_a_card 2 'no option --capacity; it is about a card, --card NAME; .advise TRACE --capacity 24GiB' fits x.trace --capacity 24GiB
refuses fits_takes_no_device 2 'no option -d; a card is written --card NAME' fits x.trace -d sim:profile=l4
refuses explain_takes_no_w 2 'no option -w; the workload or trace is written without an option' explain -w x.trace
refuses a_singular 2 'no list of "policy"; did you mean "policies"' list policy torch
refuses no_folder 2 'x.csv: cannot be written: its folder does not exist' run -d sim -p torch -w order_flip --csv "$TEST_TMP/no/x.csv"
refuses explain_alone 2 'name one trace, explain TRACE .-p SPEC: with another policy than the recorded one' explain
refuses a_card_as_a_capacity 2 '"rtx4090" is not a size; .* name a card: -d sim:profile=NAME' drift x --capacity rtx4090
refuses a_card_as_a_device 2 'no device "a100"\. .* a card is written sim:profile=NAME' run -d a100 -p torch -w order_flip
refuses a_file_that_is_not_there 2 'my.pickle: there is no such file, and no generator' run -d sim -p torch -w my.pickle
refuses two_policies_in_one 2 'no policy "torch,vmm"; give each policy its own -p' run -d sim -p torch,vmm -w order_flip
refuses a_policy_without_its_option 2 'run: vmm is a policy; write -p vmm' run -d sim -p torch vmm -w order_flip
refuses a_workload_without_its_option 2 'run: order_flip is a workload; write -w order_flip' run -d sim -p torch order_flip
refuses unclear_option 2 '--re is ambiguous' run -d sim --re 3
says option_may_be_shortened '^1 ' run -d sim -pgrowth --workl=order_flip

says list_policies '^growth +TensorFlow' list policies
says list_policy_options '^framework +tf\|jax +tf ' list policies growth
says list_policy_reference '^Reference: ' list policies growth
says list_decorator '^n +count' list policies fault
says list_workloads '^order_flip ' list workloads
says list_workload_page 'workloads/gen/.*\.md' list workloads random
says list_devices '^capacity +bytes' list devices
says list_profiles '^h100 +NVIDIA H100 80GB HBM3 +79\.18 +measured +measured' list devices sim
says list_profiles_of_other_cards '^a100-40 +NVIDIA A100-SXM4-40GB +39\.39 +reported +of h100' list devices sim
says list_metrics '^peak_physical_bytes +bytes +lower +exact' list metrics
says list_metric '^slowdown: time of the run' list metrics slowdown
says list_formats '^text ' list formats
says list_everything '^peak_physical_bytes ' list
check lists_are_narrow [ "$(awk 'length > 80' "$out" | wc -l)" = 0 ]
says list_recordings '^workloads/data/lora_recompute.limit5.csv.gz +limit 5GiB$' list workloads
says list_recorded_settings 'expandable.csv.gz +expandable_segments:True$' list workloads
says list_ranges_in_whole_numbers '^max_non_split_rounding_mb +count +20 +20\.\.4194304 ' list policies torch
for command in run capacity gen convert inspect list fidelity calibrate trace fits twin; do
    run "$command" --help
    check "help_is_narrow_$command" [ "$(awk 'length > 80' "$out" | wc -l)" = 0 ]
done
run help
check help_is_narrow [ "$(awk 'length > 80' "$out" | wc -l)" = 0 ]
# Names stand alone, each is one of the list, and each is known there and shown in 80 columns.
every=1
long every_name_of_a_list || every=10
for kind in policies decorators workloads recordings devices metrics formats parts; do
    run list $kind
    cp "$out" "$TEST_TMP/$kind.list"
    run list $kind --names
    cp "$out" "$TEST_TMP/$kind.names"
    check "names_of_${kind}_are_there" [ "$status$(awk 'NF == 1' "$out" | sort -u | wc -l)" = "0$(wc -l <"$out")" -a -s "$out" ]
    check "names_of_${kind}_in_the_order_of_the_list" cmp "$out" \
        <(awk -v names="$out" 'BEGIN { while ((getline name <names) > 0) is[name] = 1 }
              { sub(/:$/, "", $1) } /^[^ ]/ && ($1 in is) && !seen[$1]++ { print $1 }' "$TEST_TMP/$kind.list")
    while read -r name; do
        run list $kind "$name"
        check "list_is_narrow_$name" [ "$status$(awk 'length > 80' "$out" | wc -l)" = 00 ]
    done < <(awk -v step=$every 'NR % step == 1 || step == 1' "$TEST_TMP/$kind.names")
done
check names_of_policies_are_no_decorators not grep -qxFf "$TEST_TMP/decorators.names" "$TEST_TMP/policies.names"
check policies_with_a_line_of_the_list [ "$(grep -cE '^[a-z]' "$TEST_TMP/policies.list")" = \
    $(($(cat "$TEST_TMP"/{policies,decorators}.names | wc -l) + 2)) ]
check names_have_every_recording cmp "$TEST_TMP/recordings.names" <(printf '%s\n' workloads/data/*.csv.gz | LC_ALL=C sort)
mapfile -t each_policy < <(sed 's/^/-p/' "$TEST_TMP/policies.names")
run run -d sim -w order_flip "${each_policy[@]}"
check names_of_policies_are_taken_by_run [ "$status" = 0 ]
(cd "$TEST_TMP" && "$ALLOCRIG" list recordings --names) >"$out"
check no_folder_no_recordings [ ! -s "$out" ]
refuses names_of_everything 2 '^allocrig: list: --names needs one kind and no name' list --names
refuses names_of_one_name 2 'list: --names needs one kind and no name' list policies growth --names
refuses unknown_recording 2 'no recording "no.csv.gz" in workloads/data' list recordings no.csv.gz
says a_card_by_its_name 'A card: -d sim:profile=l4\. Of its memory a process may have 21\.45 GiB\.$' list devices l4
refuses no_such_card 2 'no device "a100"; did you mean: a100-40, a100-80' list devices a100
says a_metric_by_its_column '^external_fragmentation_mean: 1 - L / F' list metrics ext.frag
says a_share_by_its_column '^driver_share: driver_time_ns / device_time_ns' list metrics driver_share
says a_metric_by_its_column_in_a_file '^alloc_ns_p50: median host time' list metrics alloc_p50_ns
says each_metric_of_a_column '^driver_time_ns: own time of the driver calls' list metrics driver
refuses unknown_list 2 'no list of "polices"; did you mean "policies"' list polices
refuses unknown_policy 2 'no policy "grwth"; did you mean "growth"' list policies grwth
refuses unknown_workload 2 'no workload "randm"; did you mean "random"' list workloads randm
refuses unknown_metric 2 'no metric "slowdwn"; did you mean "slowdown"' list metrics slowdwn
refuses unknown_format 2 'no format "tezt"; did you mean "text"' list formats tezt
refuses one_name_too_many 2 'one name too many' list policies growth bfc

# Every page named by a workload is there.
missing=0
for name in $("$ALLOCRIG" list workloads --names); do
    page=$("$ALLOCRIG" list workloads "$name" | sed -n 's/^Where its sizes come from: //p')
    [ -z "$page" ] || [ -f "$page" ] || { echo "  $name: no file $page" && missing=1; }
done
verdict pages_are_there $missing

# An error is one line for who searches a log, and lines that fit for who reads it at a terminal;
# a command in it stays whole.
if script -qec true /dev/null </dev/null >/dev/null 2>&1; then
    at_terminal() { # COLUMNS ARGUMENTS...
        printf 'stty cols %s\n%s\n' "$1" "'$ALLOCRIG' $2" >"$TEST_TMP/typed"
        script -qec "bash '$TEST_TMP/typed'" /dev/null </dev/null | tr -d '\r' >"$out"
    }
    run run -d sim -w order_flip
    tr -s ' \n' ' ' <"$err" >"$TEST_TMP/words"
    for columns in 60 80 100; do
        at_terminal $columns 'run -d sim -w order_flip'
        check "error_fits_$columns" [ "$(awk -v most=$columns 'length > most' "$out" | wc -l)" = 0 ]
        check "error_is_broken_at_$columns" [ "$(wc -l <"$out")" = $((columns == 100 ? 1 : 2)) ]
        check "error_keeps_its_words_$columns" cmp "$TEST_TMP/words" <(tr -s ' \n' ' ' <"$out")
        check "error_keeps_its_command_$columns" grep -qF '(`allocrig list policies`)' "$out"
    done
else
    echo "skip error_at_a_terminal: no command script"
fi

# What cannot be printed is no success.
"$ALLOCRIG" list >/dev/full 2>"$err"
[ $? = 2 ] && grep -q 'standard output cannot be written' "$err"
verdict full_standard_output $?
# model reads lines of some length, and not for ever
mkdir -p "$TEST_TMP/model/cell"
{ printf 'policy_spec,workload,passed,slowdown,steady_step_ns,device_time_ns\n'; head -c 70000 /dev/zero | tr '\0' x; } >"$TEST_TMP/model/cell/card.csv"
refuses model_long_line 2 'card.csv:2: the line has more than 65534 bytes' model "$TEST_TMP/model"
ln -sf /dev/zero "$TEST_TMP/model/cell/card.csv"
refuses model_endless_line 2 'card.csv: is no file of .run --csv.' model "$TEST_TMP/model"
finish
