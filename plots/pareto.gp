# Memory against time: each policy at each workload. The x axis is the peak of physical bytes over the
# live peak, the y axis the driver's share of the run time. Lower and further left is better. The line
# joins the policies that no other policy beats in both: every point above and right of it costs more
# of one and saves nothing of the other.
load 'plots/style.gp'

PANELS = values(1, 4)
W = words(PANELS)
SHOWN = values(2, 4)
M = key_policies(SHOWN, 0)
front(workload) = sprintf("< awk -F, '$1 == \"%s\" && $4 != \"\"' '%s' | sort -t, -k3,3g -k4,4g | awk -F, 'NR == 1 || $4 + 0 < least { print $3 \",\" $4; least = $4 + 0 }'", workload, IN)
# One policy that is the best in both has no line.
if (sum [w = 1:W] (system(front(word(PANELS, w))[3:*].' | wc -l') + 0 > 1)) { rest = key_add('no other is better in both', '#444444', 0, 1, 1.6) }
load 'plots/spread.gp'

TITLE = 'memory against time in the driver (lower left is better)'
MOST_COLUMNS = 3
COLUMN_COLUMNS = W > 2 ? 2 : 1
# Letters of a title, and lines of the longest.
TITLE_MOST = NARROW ? (W > 2 ? 25 : 45) : W > 2 ? 42 : 120 / W
SHORT = ''
do for [w = 1:W] { SHORT = SHORT.' '.plain(word(PANELS, w)) }
EXTRA = 15 * (most_lines(SHORT, TITLE_MOST) - 1)
ROW = (NARROW && W > 2 ? 190 : 280) + EXTRA
ABOVE = (NARROW ? 26 : 30) + EXTRA
BELOW = NARROW ? 28 : 50
FOOT = NARROW ? 20 : 12
GAP = 25
load 'plots/grid.gp'

# The decades that the data need. Overheads beyond EDGE lie on the right edge, because they would leave
# little space for the others.
LEAST_AT = SPREAD_OF eq '' ? 4 : low_of(2)
least = system(sprintf("awk -F, -v c=%d 'NR > 1 && $c + 0 > 0 && (!m || $c + 0 < m) { m = $c + 0 } END { printf \"%%.9f\", !m ? 0.01 : m < 1e-9 ? 1e-9 : m }' '%s'", LEAST_AT, IN)) + 0.0
FIRST = larger(-6, floor(log10(least)))
LOW = 10.0 ** FIRST
EDGE = 3.0
share(value) = value > LOW ? value : LOW
over(value) = value < EDGE ? value : EDGE
set xrange [0.93:EDGE + 0.07]
set xtics (1, 1.5, 2, 2.5, '≥ 3' EDGE)
set logscale y
set yrange [LOW / 1.6:1.6]
array TICK[7] = ['0.0001 %%', '0.001 %%', '0.01 %%', '0.1 %%', '1 %%', '10 %%', '100 %%']
wide(low, high) = (over(high) - over(low)) * (PITCH - GAP) / (EDGE - 0.86)
tall(low, high) = log10(share(high) / share(low)) * (ROW - ABOVE - BELOW) / log10(1.6 * 1.6 / LOW)
WHISKERS = SPREAD_OF eq '' ? '' : 'for [k = 1:M] rows2(workload, KEY_NAME[k]) using (over($3)):(drawn(share($4), wide(column(low_of(1)), column(high_of(1))))):(over(column(low_of(1)))):(over(column(high_of(1)))) with xerrorbars pt 0 lw 1 lc rgb KEY_COLOUR[k] notitle, ' \
    .'for [k = 1:M] rows2(workload, KEY_NAME[k]) using (over($3)):(drawn(share($4), tall(column(low_of(2)), column(high_of(2))))):(share(column(low_of(2)))):(share(column(high_of(2)))) with yerrorbars pt 0 lw 1 lc rgb KEY_COLOUR[k] notitle, '
do for [w = 1:W] {
    eval panel(w)
    workload = word(PANELS, w)
    set title in_lines(word(SHORT, w), TITLE_MOST) font (NARROW && W > 2 && strlen(word(SHORT, w)) > 20 ? ',8' : ',11')
    if (lowest(w)) { set xlabel 'peak physical / peak live' } else { unset xlabel }
    unset label 2
    if (leftmost(w)) { set label 2 (NARROW && W > 2 ? 'driver time / time' : 'driver''s share of the time') at screen across(NARROW ? 8 : 22), graph 0.5 center rotate textcolor rgb '#222222' }
    set ytics ('' LOW)
    do for [d = FIRST:0] { set ytics add ((leftmost(w) ? (d == FIRST ? '≤' : '').TICK[d + 7] : '') 10.0 ** d) }
    plot @WHISKERS front(workload) using (over($1)):(share($2)) with steps lw 1.6 lc rgb '#444444' notitle, \
         for [k = 1:M] rows2(workload, KEY_NAME[k]) using (over($3)):(share($4)) with points pt KEY_POINT[k] ps (NARROW ? 0.7 : 0.9) lc rgb KEY_COLOUR[k] notitle
    unset label 1000
}
load 'plots/key.gp'
