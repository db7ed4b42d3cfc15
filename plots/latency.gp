# Latency on the host: how long one alloc (solid) and one free (dashed, 50 and 99 % only) take in the
# policy, by percentile. The driver's time is not in it. Of class timed: it differs from run to run.
TITLE = 'host time of an alloc (solid) and of a free (dashed)'
shown_by = 3
load 'plots/grid.gp'

percentiles(policy, workload) = sprintf("< awk -F, '$1 == \"%s\" && $2 == \"%s\" { for (i = 3; i <= 7; i++) if ($i != \"\") print i - 2 \",\" $i }' '%s'", workload, policy, IN)
frees(policy, workload) = sprintf("< awk -F, '$1 == \"%s\" && $2 == \"%s\" { if ($8 != \"\") print 1 \",\" $8; if ($9 != \"\") print 3 \",\" $9 }' '%s'", workload, policy, IN)

set logscale y
# A clock that was cheaper than its own cost leaves 0: drawn at 1 ns.
at_least_1(value) = value < 1 ? 1 : value
set yrange [1:*]
set ytics ('1 ns' 1, '10 ns' 10, '100 ns' 100, '1 µs' 1e3, '10 µs' 1e4, '100 µs' 1e5, '1 ms' 1e6, '10 ms' 1e7, '100 ms' 1e8, '1 s' 1e9)
set xrange [0.8:5.2]
unset key
do for [w = 1:W] {
    eval panel(w)
    workload = word(PANELS, w)
    set title workload
    set xtics ('50 %%' 1, '90 %%' 2, '99 %%' 3, '99.9 %%' 4, 'max' 5)
    if (lowest(w)) { set xlabel 'percentile of calls' } else { unset xlabel }
    if (leftmost(w)) { set ylabel 'time of one call' } else { unset ylabel }
    plot for [i = 1:N] percentiles(word(POLICIES, i), workload) using 1:(at_least_1($2)) with linespoints lw 1.6 pt point(i) ps 0.6 lc rgb colour(i) notitle, \
         for [i = 1:N] frees(word(POLICIES, i), workload) using 1:(at_least_1($2)) with linespoints lw 1.1 dt 2 pt point(i) ps 0.4 lc rgb colour(i) notitle
}
eval key_only
plot for [i = 1:N] NaN with linespoints lw 1.6 dt 1 pt point(i) ps 0.8 lc rgb colour(i) title name_if_in_file(i)
unset multiplot
