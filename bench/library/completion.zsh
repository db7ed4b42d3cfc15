#compdef allocrig
# Completion of allocrig in zsh. Names and options come from the program itself.
local program=$words[1] before=$words[CURRENT-1] names
if (( CURRENT == 2 )); then
    names=(${(f)"$($program help 2>/dev/null | sed -nE 's|^  ([a-z]+) {2,}.*|\1|p')"})
elif [[ $words[CURRENT] == -* ]]; then
    names=(${(f)"$($program $words[2] --help 2>/dev/null | sed -nE 's/^ +(-[a-z], )?(--[a-z-]+).*/\2/p')"})
else
    case $before in
    -p|--policy|--against) names=(all ${(f)"$($program list policies --names 2>/dev/null)"}) ;;
    -w|--workload) names=(${(f)"$($program list workloads --names 2>/dev/null)"}) ;;
    -d|--device) names=(${(f)"$($program list devices --names 2>/dev/null)"}) ;;
    --card) names=(${(f)"$($program list devices 2>/dev/null |
        awk '/^Memory:/ { exit } on && /^[a-z]/ { print $1 } /^profile/ { on = 1 }')"}) ;;
    --frees) names=(ordered at-once recorded) ;;
    --host) names=(none recorded open) ;;
    list) names=(policies decorators workloads recordings devices metrics formats parts) ;;
    esac
fi
if (( $#names )); then
    compadd -- $names
fi
if [[ $words[CURRENT] != -* ]]; then
    _files
fi
