#!/bin/bash
# Writes the manual pages from what they describe: allocrig.1 from the help of the program, allocrig-trace.5 from
# workloads/trace/FORMAT.md. Usage: bench/library/manual.sh PROGRAM FOLDER
case ${1:-} in -h | --help) sed -n '2,/^[^#]/s/^# \{0,1\}//p' "$0" | fold -sw 80 && exit 0 ;; esac
set -eu
cd "$(dirname "$0")/../.."
program=$1 folder=$2
version=$("$program" --version | awk '{ print $2; exit }')

# Text as it is: no line begins with a control character, and backslashes and hyphens are themselves.
literal() { sed -e 's/\\/\\e/g' -e 's/-/\\-/g' -e "s/^[.']/\\\\\&&/"; }
verbatim() { printf '.nf\n' && literal && printf '.fi\n'; }

{
    printf '.TH ALLOCRIG 1 "" "allocrig %s" "User Commands"\n.SH NAME\n' "$version"
    printf 'allocrig \\- test rig for GPU memory allocator policies\n.SH SYNOPSIS\n.B allocrig\n.I COMMAND\n[options]\n'
    printf '.SH DESCRIPTION\n'
    "$program" help | verbatim
    printf '.SH COMMANDS\n'
    for command in $("$program" help | sed -nE 's|^  ([a-z]+) {2,}.*|\1|p' | grep -v '^help$'); do
        printf '.SS %s\n' "$command"
        "$program" "$command" --help | verbatim
    done
    printf '.SH EXIT STATUS\n0: done. 1: the answer is no. 2: bad usage or input. 3: no such device. 4: an internal fault.\n'
    printf '.SH SEE ALSO\n.BR allocrig\\-trace (5)\n'
} >"$folder/allocrig.1"

{
    printf '.TH ALLOCRIG\\-TRACE 5 "" "allocrig %s" "File Formats"\n.SH NAME\n' "$version"
    printf 'allocrig\\-trace \\- what a program requested of its GPU memory allocator\n.SH DESCRIPTION\n'
    awk '
        function text(line) {
            gsub(/\\/, "\\e", line); gsub(/-/, "\\-", line)
            while (match(line, /\[[^]]*\]\([^)]*\)/)) {     # a link is its text
                name = substr(line, RSTART + 1, RLENGTH - 2); sub(/\]\(.*/, "", name)
                line = substr(line, 1, RSTART - 1) name substr(line, RSTART + RLENGTH) }
            while (match(line, /`[^`]*`/))
                line = substr(line, 1, RSTART - 1) "\\fB" substr(line, RSTART + 1, RLENGTH - 2) "\\fR" substr(line, RSTART + RLENGTH)
            while (match(line, /\*\*[^*]*\*\*/))
                line = substr(line, 1, RSTART - 1) "\\fB" substr(line, RSTART + 2, RLENGTH - 4) "\\fR" substr(line, RSTART + RLENGTH)
            sub(/^[.\x27]/, "\\\\\\&&", line)
            return line }
        function leave() { if (inside) print ".fi\n.RE"; inside = 0 }
        /^# / { next }
        /^- \[/ { next }                                   # the list of contents
        /^## / { leave(); print ".SH " toupper(text(substr($0, 4))); next }
        /^### / { leave(); print ".SS " text(substr($0, 5)); next }
        /^    / { if (!inside) print ".RS 4\n.nf"; inside = 1; line = substr($0, 5)
                  gsub(/\\/, "\\e", line); gsub(/-/, "\\-", line); sub(/^[.\x27]/, "\\\\\\&&", line); print line; next }
        /^\| *-/ { next }
        /^\|/ { leave(); line = $0; gsub(/\\\|/, "\001", line); sub(/^\| */, "", line); sub(/ *\|$/, "", line)
                n = split(line, cell, / *\| */); if (n < 2) next
                for (i = 1; i <= n; i++) gsub(/\001/, "|", cell[i])
                print ".TP\n" text(cell[1])
                for (i = 2; i <= n; i++) print text(cell[i]) (i < n ? ":" : ""); next }
        /^$/ { leave(); print ".PP"; next }
        /^[0-9]+\. |^- / { leave(); n = index($0, " "); print ".IP " text(substr($0, 1, n - 1)) " 4\n" text(substr($0, n + 1)); next }
        { leave(); sub(/^ +/, ""); print text($0) }
        END { leave() }' workloads/trace/FORMAT.md
    printf '.SH SEE ALSO\n.BR allocrig (1)\n'
} | awk '{ if ($0 == ".PP" && (last == ".PP" || last ~ /^\.SH/)) next; print; last = $0 }' >"$folder/allocrig-trace.5"
