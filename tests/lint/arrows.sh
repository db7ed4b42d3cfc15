#!/bin/bash
# The arrows of the house: allocators <- workloads <- sim <- bench. A folder includes itself and
# folders to its left; tests include everything. And:
#  - includes of our own are written from the root ("allocators/policy.h", never "../policy.h");
#  - allocators/base includes nothing but itself, and the contract neither policies nor decorators;
#  - a policy includes no other policy and no decorator but a core of its own family, that is a
#    header in its own folder or one whose name is a part of its own (bfc_core.h for bfc_*.c, or
#    bfc/core.h, says so itself: `family: NAMES` in the first 30 lines); a decorator neither.
set -u
# shellcheck source=tests/lint/lib.bash
. "$(dirname "$0")/lib.bash"

mapfile -t files < <(lint_files c h cc cu | grep -E '^(allocators|workloads|sim|bench|tests)/')
findings=$(for file in "${files[@]}"; do
    awk -v file="$file" '
        function area(path) { return substr(path, 1, index(path, "/") - 1) }
        function say(text) { printf "%s:%d: %s\n", file, FNR, text }
        # base, policies, decorators or "" for the contract
        function part(path) {
            if (path !~ /^allocators\//) return ""
            sub(/^allocators\//, "", path)
            return path ~ /\// ? area(path) : ""
        }
        function base_name(path) { sub(/.*\//, "", path); sub(/\.[a-z]*$/, "", path); return path }
        function folder(path) { sub(/\/[^\/]*$/, "", path); return path }
        # May `file`, a policy, include the policies/ header `path`?
        function family(path,    line, i, n, names, name, result) {
            if (folder(file) == folder(path) && folder(path) != "allocators/policies") return 1
            if (base_name(file) == base_name(path)) return 1
            name = base_name(file)
            for (i = 1; i <= 30 && (getline line < path) > 0; i++)
                if (match(line, /family: [a-z0-9_ -]+/)) {
                    n = split(substr(line, RSTART + 8, RLENGTH - 8), names, " ")
                    while (n > 0) if (names[n--] == name) result = 1
                }
            close(path)
            return result
        }
        BEGIN { order["allocators"] = 1; order["workloads"] = 2; order["sim"] = 3; order["bench"] = 4
                order["tests"] = 5; mine = area(file); my_part = part(file) }
        /^[ \t]*#[ \t]*include[ \t]*"/ {
            path = $0; sub(/^[^"]*"/, "", path); sub(/".*/, "", path)
            theirs = area(path)
            if (!(theirs in order)) { say("include \"" path "\" is not written from the root"); next }
            if (mine == "tests") next
            if (theirs == "tests" || order[theirs] > order[mine]) { say(mine " may not include " path); next }
            their_part = part(path)
            if (my_part == "base" && their_part != "base") say("allocators/base may not include " path)
            if (mine != "allocators") next
            if (my_part == "" && (their_part == "policies" || their_part == "decorators"))
                say("the contract may not include " path)
            if (my_part == "policies" && their_part == "decorators") say("a policy may not include " path)
            if (my_part == "decorators" && their_part == "policies") say("a decorator may not include " path)
            if (my_part == "decorators" && their_part == "decorators" && base_name(path) != base_name(file))
                say("a decorator may not include another: " path)
            if (my_part == "policies" && their_part == "policies" && !family(path))
                say("a policy may not include another: " path)
        }' "$file"
done)
lint_verdict arrows ${#files[@]} "$findings"
