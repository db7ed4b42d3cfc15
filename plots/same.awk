# Groups policies of a series whose curves are the same, which are drawn as one. Prints for each group, in
# the order of the file: its first policy, all its names (joined with ", ", wrapped at `wide` letters, in a
# name after a : or a ;; ~ is a blank and | a new line), the peaks of reserved and of physical bytes, the first position on the
# axis (column `x`) of the latter, and, if the policy did not finish (column `passed`), the position of its last row, its
# reserved and its physical bytes there, else -1 0 0. Policies that never map a page are left out if others do. Two curves
# are the same if all their rows are.
BEGIN { FS = "," }
NR == 1 { for (i = 1; i <= NF; i++) if ($i == "passed") c = i; next }
{
    if (!($1 in rows)) policy[++policies] = $1
    row[$1, ++rows[$1]] = $2 FS $5 FS $6
    if ($5 + 0 > reserved[$1] + 0) reserved[$1] = $5
    if ($6 + 0 > physical[$1] + 0) { physical[$1] = $6; at[$1] = $x }
    if ($6 + 0 > any) any = $6 + 0
    end[$1] = c && $c == "false" ? sprintf("%.9f %.0f %.0f", $x, $5, $6) : "-1 0 0"
}
function same(a, b,    i) {
    if (rows[a] != rows[b] || end[a] != end[b] || reserved[a] != reserved[b] || physical[a] != physical[b]) return 0
    for (i = 1; i <= rows[a]; i++) if (row[a, i] != row[b, i]) return 0
    return 1
}
# Cuts a name into lines of at most `wide` letters; `last` is the length of the last one.
function cut(name,    text, i, to) {
    for (text = ""; length(name) > wide; name = substr(name, to + 1)) {
        to = wide
        for (i = 1; i <= wide; i++) if (substr(name, i, 1) ~ /[:;]/) to = i
        text = text substr(name, 1, to) "|"
    }
    last = length(name)
    return text name
}
END {
    for (p = 1; p <= policies; p++) {
        name = policy[p]
        if (any && physical[name] + 0 == 0) continue
        for (g = 1; g <= groups; g++) if (same(first[g], name)) break
        if (g > groups) {
            first[++groups] = name
            names[g] = cut(name)
            long[g] = last
        } else if (long[g] + length(name) + 2 > wide) {
            names[g] = names[g] ",|" cut(name)
            long[g] = last
        } else {
            names[g] = names[g] ",~" name
            long[g] += length(name) + 2
        }
    }
    for (g = 1; g <= groups; g++) {
        name = first[g]
        printf "%s %s %.0f %.0f %.9f %s\n", name, names[g], reserved[name], physical[name], at[name], end[name]
    }
}
