# The table of the main README, from results/latest/data/slowdown.csv: for each policy and workload the
# smallest capacity, as a multiple of the peak of live bytes, at and above which the program finishes. The
# last columns are the minimum and the maximum slowdown among the workloads at the largest capacity.
#     awk -f plots/clean.awk results/latest/data/slowdown.csv | awk -f plots/capacity_table.awk
BEGIN { FS = "," }
NR == 1 { next }
$4 != "" { timed[$1] = 1 }
{
    if (!($1 in seen_workload)) { seen_workload[$1] = 1; workload[++workloads] = $1 }
    if (!($2 in seen_policy)) { seen_policy[$2] = 1; policy[++policies] = $2 }
    key = $2 FS $1
    if ($5 == "false") { if ($3 + 0 >= fails[key] + 0) fails[key] = $3 }
    else passes[key] = passes[key] " " $3
    if ($3 + 0 > largest) largest = $3 + 0
    slowdown[key FS ($3 + 0)] = $4
}
END {
    head = "| policy |"; rule = "| --- |"
    for (w = 1; w <= workloads; w++)
        if (workload[w] in timed) { head = head " " workload[w] " |"; rule = rule " ---: |" }
    printf "%s slowdown at %.2f |\n%s ---: |\n", head, largest, rule
    for (p = 1; p <= policies; p++) {
        name = policy[p]; gsub(/;/, ",", name); gsub(/\^/, "\047", name) # as in style.gp
        line = "| `" name "` |"; least = most = ""
        for (w = 1; w <= workloads; w++) {
            if (!(workload[w] in timed)) continue
            key = policy[p] FS workload[w]
            n = split(passes[key], at, " "); best = ""
            for (i = 1; i <= n; i++)
                if (at[i] + 0 > fails[key] + 0 && (best == "" || at[i] + 0 < best)) best = at[i] + 0
            line = line (best == "" ? " none |" : sprintf(" %.2f |", best))
            s = slowdown[key FS largest]
            if (s != "" && (least == "" || s + 0 < least)) least = s + 0
            if (s != "" && (most == "" || s + 0 > most)) most = s + 0
        }
        printf "%s %s |\n", line, least == "" ? "-" : sprintf("%.3f to %.3f", least, most)
    }
}
