# Slowdown against capacity: how much longer the program takes than with an allocator that costs
# nothing, at capacities from exactly its live peak to twice that. A cross at the top edge: the
# program did not finish (DNF) at that capacity; crosses of several policies stand below each other.
TITLE = 'slowdown against capacity (a cross: did not finish)'
shown_by = 4
load 'plots/grid.gp'

most = system(sprintf("awk -F, 'NR > 1 && $4 + 0 > m { m = $4 } END { print m + 0 }' '%s'", IN)) + 0.0
passed(policy, workload) = sprintf("< awk -F, '$1 == \"%s\" && $2 == \"%s\" && $5 != \"false\" && $5 != \"0\" && $4 != \"\"' '%s'", workload, policy, IN)
failed(policy, workload) = sprintf("< awk -F, '$1 == \"%s\" && $2 == \"%s\" && ($5 == \"false\" || $5 == \"0\")' '%s'", workload, policy, IN)
panel_most(workload) = system(sprintf("awk -F, '$1 == \"%s\" && $4 + 0 > m { m = $4 } END { print m + 0 }' '%s'", workload, IN)) + 0.0

set xrange [0.96:2.04]
set xtics 1,0.25,2 format '%.2f'
unset key
do for [w = 1:W] {
    eval panel(w)
    workload = word(PANELS, w)
    set title workload
    high = panel_most(workload)
    # A scale by factors where one policy is many times slower. The crosses need room above.
    if (high > 4) {
        set logscale y
        top = (high * 1.1) ** (1 + 0.055 * N) * 1.1
        set yrange [0.9:top]
        set ytics (1, 2, 5, 10, 20, 50, 100, 200, 500, 1000, 5000, 10000, 100000)
        place(i) = 0.9 * (top / 0.9) ** (1 - 0.035 * i)
    } else {
        unset logscale y
        low = 0.98
        span = (high > 1.02 ? high - low : 0.1)
        top = low + span * (1.12 + 0.045 * N)
        set yrange [low:top]
        set ytics autofreq
        place(i) = top - (top - low) * 0.035 * i
    }
    if (lowest(w)) { set xlabel 'capacity / peak of live bytes' } else { unset xlabel }
    if (leftmost(w)) { set ylabel 'time / time without cost' } else { unset ylabel }
    plot for [i = 1:N] passed(word(POLICIES, i), workload) using 3:4 with linespoints lw 1.6 dt dash(i) pt point(i) ps 0.6 lc rgb colour(i) notitle, \
         for [i = 1:N] failed(word(POLICIES, i), workload) using 3:(place(i)) with points pt 2 ps 0.7 lw 1.5 lc rgb colour(i) notitle
}
eval key_only
plot for [i = 1:N] NaN with linespoints lw 1.6 dt dash(i) pt point(i) ps 0.8 lc rgb colour(i) title word(POLICIES, i), \
     NaN with points pt 2 ps 0.7 lw 1.5 lc rgb '#444444' title 'did not finish'
unset multiplot
