# Makes what plots/twin.gp draws out of a series of allocrig twin:
#   table   x, then for each owner the bytes of it and of those below; each value twice, for steps
#   owners  the name, the hue (1.. for parts, 0 for others) and the shade (0..) of each column
#   steps   x, the text of the step, whether a cycle begins
# Two values for each phase: at the moment of its peak, and at its end.
function column_of(owner, kind,    part) {
    if (owner in column) return column[owner]
    part = owner; sub(/\/.*/, "", part)
    column[owner] = ++columns
    name[columns] = owner; kind_of[columns] = kind; part_of[columns] = part
    return columns
}
# Contexts and other memory outside at the bottom, cached and free memory at the top.
function height(kind) {
    return kind == "context" ? 1 : kind == "outside" ? 2 : kind == "part" ? 3 : kind == "rounding" ? 4 : kind == "pending" ? 5 : kind == "pages" ? 6 : kind == "cached" ? 7 : 3
}
NR == 1 { if ($1 != "phase" || $9 != "bytes") bad = 1; next }
{
    phase = $1 + 0; card = $5 + 0
    if (phase > last) last = phase
    text[phase] = $4; stage[phase] = $2; cycle[phase] = $3 + 0
    if ($3 + 0 > cycles) cycles = $3 + 0
    if ($8 == "free") { free[card, phase] = $9; next }
    c = column_of($7, $8)
    bytes[card, phase, $6, c] = $9
    total[card, phase, $6] += $9
    if (total[card, phase, $6] > most) { most = total[card, phase, $6]; fullest = card }
}
END {
    if (bad || !columns) exit 1
    for (c = 1; c <= columns; c++)
        for (p = 0; p <= last; p++) {
            if (bytes[fullest, p, "peak", c] > largest[c]) largest[c] = bytes[fullest, p, "peak", c]
            if (bytes[fullest, p, "end", c] > largest[c]) largest[c] = bytes[fullest, p, "end", c]
        }
    # The 14 largest have a column each, if they are seen at all.
    for (c = 1; c <= columns; c++) by_size[c] = c
    for (i = 1; i <= columns; i++) for (k = i + 1; k <= columns; k++)
        if (largest[by_size[k]] > largest[by_size[i]]) { t = by_size[i]; by_size[i] = by_size[k]; by_size[k] = t }
    for (i = 1; i <= columns; i++) shown[by_size[i]] = i <= 14 && largest[by_size[i]] > most / 500
    n = 0
    for (h = 1; h <= 7; h++) for (c = 1; c <= columns; c++)
        if (shown[c] && height(kind_of[c]) == h) order[++n] = c
    for (i = 1; i <= n; i++) {
        c = order[i]; hue = 0; shade = 0
        if (kind_of[c] == "part" || kind_of[c] == "outside") {
            if (!(part_of[c] in hues)) hues[part_of[c]] = ++hue_count
            hue = hues[part_of[c]]; shade = shades[hue]++
        } else shade = height(kind_of[c])
        printf "%s,%d,%d\n", name[c], hue, shade >owners
    }
    print "others,0,8" >owners
    x = 0
    for (p = 0; p <= last; p++) {
        if (last >= 64 && stage[p] == "cycle" && cycle[p] > 2 && cycle[p] < cycles) continue
        for (m = 1; m <= 2; m++) {
            moment = m == 1 ? "peak" : "end"
            line = ""; sum = 0
            for (i = 1; i <= n; i++) {
                sum += bytes[fullest, p, moment, order[i]]
                line = line "," sum
            }
            line = line "," total[fullest, p, moment] + 0
            left = x + (m - 1) / 2
            printf "%.1f%s,%.0f\n%.1f%s,%.0f\n", left, line, total[fullest, p, "end"] + free[fullest, p], left + 0.5, line, total[fullest, p, "end"] + free[fullest, p] >table
        }
        begins = p == 0 || stage[p] != stage[p - 1] || cycle[p] != cycle[p - 1]
        printf "%d,%s,%s\n", x, text[p], begins ? (stage[p] == "cycle" ? "cycle " cycle[p] : stage[p]) : "" >steps
        x++
    }
}
