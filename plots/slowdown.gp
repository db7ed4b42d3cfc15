# Slowdown against capacity: how much longer the program takes than with an allocator that costs
# nothing, at capacities from exactly its live peak to twice that. Slowdown 1.01 is drawn as 1 %; the
# scale is by factors, since policies lie between a hundredth of a percent and many times. What costs
# less than 0.001 % lies on the lower edge. A cross above: the program did not finish (DNF) at that
# capacity; crosses of several policies stand below each other.
TITLE = 'slowdown against capacity (time lost to the allocator; a cross: did not finish)'
shown_by = 4
load 'plots/grid.gp'

passed(policy, workload) = sprintf("< awk -F, '$1 == \"%s\" && $2 == \"%s\" && $5 != \"false\" && $5 != \"0\" && $4 != \"\"' '%s'", workload, policy, IN)
failed(policy, workload) = sprintf("< awk -F, '$1 == \"%s\" && $2 == \"%s\" && ($5 == \"false\" || $5 == \"0\")' '%s'", workload, policy, IN)
most = system(sprintf("awk -F, 'NR > 1 && $4 + 0 > m { m = $4 } END { print m + 0 }' '%s'", IN)) + 0.0

LOW = 0.001
lost(slowdown) = slowdown - 1 > LOW / 100 ? 100 * (slowdown - 1) : LOW
decades = int(ceil(log10(lost(most) / LOW)))
if (decades < 1) { decades = 1 }
if (decades > 8) { decades = 8 }
# All panels have one scale, with room above it for the crosses.
room = 0.3 + 0.045 * N * decades
top = LOW * 10 ** (decades + room)
place(i) = LOW * 10 ** (decades + room * (1 - i / (N + 1.0)))

set logscale y
set yrange [LOW / 1.5:top]
# All panels have the same scale: its labels stand on the left only, and none beside the crosses.
array TICK[9] = ['0.001 %%', '0.01 %%', '0.1 %%', '1 %%', '10 %%', '100 %%', '1000 %%', '10000 %%', '100000 %%']
set xrange [0.96:2.04]
set xtics 1,0.25,2 format '%.2f'
unset key
do for [w = 1:W] {
    eval panel(w)
    workload = word(PANELS, w)
    set title workload
    if (lowest(w)) { set xlabel 'capacity / peak of live bytes' } else { unset xlabel }
    if (leftmost(w)) { set ylabel 'time lost' } else { unset ylabel }
    set ytics ('' LOW)
    do for [d = 0:decades] { set ytics add ((leftmost(w) ? TICK[d + 1] : '') LOW * 10 ** d) }
    plot for [i = 1:N] passed(word(POLICIES, i), workload) using 3:(lost($4)) with linespoints lw 1.6 dt dash(i) pt point(i) ps 0.6 lc rgb colour(i) notitle, \
         for [i = 1:N] failed(word(POLICIES, i), workload) using 3:(place(i)) with points pt 2 ps 0.6 lw 1.4 lc rgb colour(i) notitle
}
eval key_only
plot for [i = 1:N] NaN with linespoints lw 1.6 dt dash(i) pt point(i) ps 0.8 lc rgb colour(i) title name_if_in_file(i), \
     NaN with points pt 2 ps 0.7 lw 1.5 lc rgb '#444444' title 'did not finish'
unset multiplot
