# Latency on the host: how long one alloc and one free (50 and 99 % only) take in the policy, by
# percentile. The policies are next to each other at each percentile. The driver's time is not included.
# The figure is of class timed: it differs from run to run.
load 'plots/style.gp'

PANELS = values(1, 3)
W = words(PANELS)
SHOWN = values(2, 3)
M = key_policies(SHOWN, 0)
load 'plots/spread.gp'

TITLE = 'host time of one call'
MOST_COLUMNS = 2
# Letters of a title, and lines of the longest.
TITLE_MOST = NARROW ? 45 : W > 1 ? 60 : 120
SHORT = ''
do for [w = 1:W] { SHORT = SHORT.' '.plain(word(PANELS, w)) }
EXTRA = 15 * (most_lines(SHORT, TITLE_MOST) - 1)
ROW = 250 + EXTRA
ABOVE = 30 + EXTRA
BELOW = 50
GAP = 70
load 'plots/grid.gp'

percentiles(policy, workload) = sprintf("< awk -F, '$1 == \"%s\" && $2 == \"%s\" { for (i = 3; i <= 9; i++) if ($i != \"\") print i - 2 \",\" $i \",\" $(%d + 2 * i) \",\" $(%d + 2 * i) }' '%s'", workload, policy, low_of(-2), high_of(-2), IN)
place(c, k) = c + (M > 1 ? 0.8 * ((k - 1.0) / (M - 1) - 0.5) : 0)

set logscale y
# A time below the cost of reading the clock is 0, and lies at 1 ns, whose label says so.
at_least_1(value) = value < 1 ? 1 : value
set yrange [0.8:*]
set ytics ('≤1 ns' 1, '10 ns' 10, '100 ns' 100, '1 µs' 1e3, '10 µs' 1e4, '100 µs' 1e5, '1 ms' 1e6, '10 ms' 1e7, '100 ms' 1e8, '1 s' 1e9)
set xrange [0.5:7.5]
set xtics scale 0 ('50 %%' 1, '90 %%' 2, '99 %%' 3, '99.9 %%' 4, 'max' 5, '50 %%' 6, '99 %%' 7)
do for [c = 1:6] { set arrow c from c + 0.5, graph 0 to c + 0.5, graph 1 nohead back lc rgb (c == 5 ? '#888888' : '#DDDDDD') }
# Pixels from `low` to `high`, if the scale has the decades of a usual figure.
tall(low, high) = log10(at_least_1(high) / at_least_1(low)) * (ROW - ABOVE - BELOW) / 5
WHISKERS = SPREAD_OF eq '' ? '' : 'for [k = 1:M] percentiles(KEY_NAME[k], workload) using (place($1, k)):(drawn(at_least_1($2), tall($3, $4))):(at_least_1($3)):(at_least_1($4)) with yerrorbars pt 0 lw 1 lc rgb KEY_COLOUR[k] notitle, '
do for [w = 1:W] {
    eval panel(w)
    workload = word(PANELS, w)
    set title in_lines(word(SHORT, w), TITLE_MOST)
    set label 1 'percentile of allocs' at first 3, graph 0 center offset 0,-2.3 textcolor rgb '#222222'
    set label 2 'of frees' at first 6.5, graph 0 center offset 0,-2.3 textcolor rgb '#222222'
    unset label 3
    if (leftmost(w)) { set label 3 'time of one call' at screen across(NARROW ? 8 : 22), graph 0.5 center rotate textcolor rgb '#222222' }
    plot @WHISKERS for [k = 1:M] percentiles(KEY_NAME[k], workload) using (place($1, k)):(at_least_1($2)) with points pt KEY_POINT[k] ps 0.75 lc rgb KEY_COLOUR[k] notitle
    unset label 1000
}
load 'plots/key.gp'
