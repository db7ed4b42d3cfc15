#!/bin/bash
# The arrows of the house: allocators <- workloads <- sim <- bench. A folder includes itself and
# folders to its left; tests include everything. And:
#  - includes of our own are written from the root ("allocators/policy.h", never "../policy.h");
#  - allocators/base includes nothing but itself, and the contract neither policies nor decorators;
#  - a policy includes no other policy and no decorator, a decorator neither; only the core of its own
#    family, as families.txt lists them;
#  - inside a folder, a room includes itself and rooms of lower layers, as rooms.txt lists them. A room
#    that is not listed is a finding.
#  - a file that includes allocators/base/status.h, directly or not, does not repeat the headers of the C
#    library that it brings.
set -u
# shellcheck source=tests/lint/lib.bash
. "$(dirname "$0")/lib.bash"

mapfile -t files < <(lint_files c h cc cu | grep -E '^(allocators|workloads|sim|bench|tests)/')
families=tests/lint/families.txt
[ -e $families ] || families=/dev/null
rooms=tests/lint/rooms.txt
[ -e $rooms ] || rooms=/dev/null
findings=$(for file in "${files[@]}"; do
    awk -v file="$file" -v families="$families" -v rooms="$rooms" '
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
        # May `file` include `path`, both policies or both decorators? The longest folder or file of
        # families.txt that `path` lies in names those who may; they themselves are of the family.
        function family(path,    line, key, names, n, i, result) {
            if (base_name(file) == base_name(path)) return 1
            # A folder inside policies/ is one family, and so is the policy that bears its name.
            if (folder(path) != "allocators/policies" && folder(path) != "allocators/decorators" &&
                (folder(file) == folder(path) || base_name(file) == base_name(folder(path)))) return 1
            while ((getline line < families) > 0) {
                if (line ~ /^#/ || line !~ /:/) continue
                key = line; sub(/:.*/, "", key)
                sub(/^[^:]*:/, "", line)
                if (index(path, key) != 1) continue
                if (index(file, key) == 1) result = 1
                n = split(line, names, " ")
                for (i = 1; i <= n; i++) if (names[i] == base_name(file) || names[i] == "*") result = 1
            }
            close(families)
            return result
        }
        # "sim/replay" of sim/replay/engine.c, "sim/." of sim/device.h
        function room(path,    parts) {
            return split(path, parts, "/") > 2 ? parts[1] "/" parts[2] : parts[1] "/."
        }
        function read_layers(    line, names, n, i, count) {
            while ((getline line < rooms) > 0) {
                if (line ~ /^#/ || line == "") continue
                count++
                n = split(line, names, " ")
                for (i = 1; i <= n; i++) layer[names[i]] = count
            }
            close(rooms)
            return count
        }
        BEGIN { layers = read_layers()
                if (layers && area(file) != "tests" && !(room(file) in layer))
                    printf "%s: the room %s is not in %s\n", file, room(file), rooms
                order["allocators"] = 1; order["workloads"] = 2; order["sim"] = 3; order["bench"] = 4
                order["tests"] = 5; mine = area(file); my_part = part(file) }
        /^[ \t]*#[ \t]*include[ \t]*"/ {
            path = $0; sub(/^[^"]*"/, "", path); sub(/".*/, "", path)
            theirs = area(path)
            if (!(theirs in order)) { say("include \"" path "\" is not written from the root"); next }
            if (mine == "tests") next
            if (theirs == "tests" || order[theirs] > order[mine]) { say(mine " may not include " path); next }
            if (layers && theirs == mine && room(path) != room(file) && layer[room(path)] >= layer[room(file)])
                say(room(file) " may not include " path ": " rooms " has it above or beside")
            their_part = part(path)
            if (my_part == "base" && their_part != "base") say("allocators/base may not include " path)
            if (mine != "allocators") next
            if (my_part == "" && (their_part == "policies" || their_part == "decorators"))
                say("the contract may not include " path)
            if (my_part == "policies" && their_part == "decorators") say("a policy may not include " path)
            if (my_part == "decorators" && their_part == "policies") say("a decorator may not include " path)
            if (my_part == "decorators" && their_part == "decorators" && !family(path))
                say("a decorator may not include another: " path)
            if (my_part == "policies" && their_part == "policies" && !family(path))
                say("a policy may not include another: " path)
        }' "$file"
done
printf '%s\n' "${files[@]}" | grep -v '^tests/' | python3 "$lint_home/tests/lint/repeats.py")
lint_verdict arrows ${#files[@]} "$findings"
