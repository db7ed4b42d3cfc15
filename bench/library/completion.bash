# Completion of allocrig in bash. Names and options come from the program itself.
_allocrig() {
    local word=${COMP_WORDS[COMP_CWORD]} before=${COMP_WORDS[COMP_CWORD - 1]} program=${COMP_WORDS[0]} names
    COMPREPLY=()
    if [ "$COMP_CWORD" = 1 ]; then
        names=$("$program" help 2>/dev/null | sed -nE 's|^  ([a-z]+) {2,}.*|\1|p')
    else
        case $before in
        -p | --policy | --against) names="all $("$program" list policies --names 2>/dev/null)" ;;
        -w | --workload) names=$("$program" list workloads --names 2>/dev/null) ;;
        -d | --device) names=$("$program" list devices --names 2>/dev/null) ;;
        --card) names=$("$program" list devices 2>/dev/null |
            awk '/^Memory:/ { exit } on && /^[a-z]/ { print $1 } /^profile/ { on = 1 }') ;;
        --frees) names='ordered at-once recorded' ;;
        --host) names='none recorded open' ;;
        list) [ "${COMP_WORDS[1]}" != list ] || names='policies decorators workloads recordings devices metrics formats parts' ;;
        esac
        case $word in
        -*) names=$("$program" "${COMP_WORDS[1]}" --help 2>/dev/null |
            sed -nE 's/^ +(-[a-z], )?(--[a-z-]+).*/\2/p') ;;
        esac
    fi
    mapfile -t COMPREPLY < <(compgen -W "$names" -- "$word")
    if [ "${#COMPREPLY[@]}" = 0 ]; then
        compopt -o default 2>/dev/null
        mapfile -t COMPREPLY < <(compgen -f -- "$word")
    fi
}
complete -F _allocrig allocrig
