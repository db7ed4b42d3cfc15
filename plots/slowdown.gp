# Slowdown against capacity: how much longer the program takes than with an allocator that costs
# nothing, at capacities from exactly its live peak to twice that. Slowdown 1.01 is drawn as 1 %. The
# scale is logarithmic, because policies lie between a hundredth of a percent and many times. It begins
# at the decade of the smallest cost, at least at 0.001 %; smaller costs, and none, lie on the lower edge. Each capacity has a band, all as wide, in which the policies
# are next to each other, so that equal values are all visible. Above is one row for each
# policy, with its mark at the left, outside of the panel: a cross if the program, or one of its
# replicates, did not finish at that capacity.
load 'plots/style.gp'

PANELS = values(1, 4)
W = words(PANELS)
SHOWN = values(2, 1)
M = key_policies(SHOWN, 0)
crosses = key_add('did not finish', '#444444', 2, 1, 0)
load 'plots/spread.gp'
# With replicates a point is the median of all, so there is a cross if any of them did not finish.
if (SPREAD > 0) { KEY_NAME[crosses] = 'at least one replicate did not finish' }
CAPACITIES = system(sprintf("awk -F, 'NR > 1 && !seen[$3 + 0]++ { print $3 + 0 }' '%s' | sort -n | paste -sd ' '", IN))
C = words(CAPACITIES)

# The rows of a policy at a workload: the index of the capacity and the time lost, as slowdown. `how` is
# the awk condition that selects them.
rows(policy, workload, how) = sprintf("< awk -F, -v list='%s' 'BEGIN { n = split(list, c, \" \"); for (i = 1; i <= n; i++) at[c[i]] = i } $1 == \"%s\" && $2 == \"%s\" && (%s) { print at[$3 + 0] \",\" $4 \",\" $%d \",\" $%d }' '%s'", \
    CAPACITIES, workload, policy, how, low_of(1), high_of(1), IN)
PASSED = '$5 != "false" && $5 != "0" && $4 != ""'
FAILED = '$5 == "false" || $5 == "0"'
most = most_of(4, 1)

TITLE = 'time lost to the allocator, by capacity of the card'
MOST_COLUMNS = 4
COLUMN_COLUMNS = W > 3 ? 2 : 1
SMALL = NARROW && W > 3 # two panels beside each other in a column
# The rows above take 10 pixels for each policy, but at least the height of their label.
# Letters of a title, and lines of the longest.
TITLE_MOST = NARROW ? (SMALL ? 26 : 48) : W > 3 ? 34 : 1000 / W / 8
SHORT = ''
do for [w = 1:W] { SHORT = SHORT.' '.plain(word(PANELS, w)) }
EXTRA = 13 * (most_lines(SHORT, TITLE_MOST) - 1)
STRIP = larger(100, (NARROW ? (M > 18 ? 5 : 6) : 10) * (M + 1))
SIZE = NARROW ? 0.75 : 1 # of marks
ROW = (!NARROW ? 260 : SMALL ? 140 : M > 20 ? 124 : 132) + STRIP + EXTRA
ABOVE = (NARROW ? 24 : 30) + EXTRA
BELOW = SMALL ? 40 : NARROW ? 24 : 55
LEFT_LEAST = NARROW ? 82 : 0 # for the sign before the least cost
FOOT = SMALL ? 34 : NARROW ? 22 : 12
GAP = 22
load 'plots/grid.gp'

# The smallest cost of at least 0.001 %.
least = system(sprintf("awk -F, 'NR > 1 && %s && $4 - 1 >= 1e-5 && (!m || $4 + 0 < m) { m = $4 + 0 } END { printf \"%%.9f\", m ? m - 1 : 1e-5 }' '%s'", PASSED, IN)) + 0.0
FIRST = int(floor(log10(100 * least) + 1e-6))
if (FIRST > 5) { FIRST = 5 }
LOW = 10.0 ** FIRST
lost(slowdown) = slowdown - 1 > LOW / 100 ? 100 * (slowdown - 1) : LOW
decades = int(ceil(log10(lost(most) / LOW)))
if (decades < 1) { decades = 1 }
if (decades > 5 - FIRST) { decades = 5 - FIRST }
# All panels have one scale, with a row for each policy above it.
room = decades * STRIP / (ROW - ABOVE - BELOW - 1.0 * STRIP)
top = LOW * 10 ** (decades + room)
row_of(k) = LOW * 10 ** (decades + room * (1 - k / (M + 1.0)))
BAND = M > 9 ? 0.8 : 0.1 * (M - 1) # the part of a band with marks
place(c, k) = c + (M > 1 ? BAND * ((k - 1.0) / (M - 1) - 0.5) : 0)

set logscale y
set yrange [LOW / 1.5:top]
array TICK[9] = ['0.001 %%', '0.01 %%', '0.1 %%', '1 %%', '10 %%', '100 %%', '1000 %%', '10000 %%', '100000 %%']
set xrange [0.5:C + 0.5]
LABELS = 8
if (SMALL) { set xtics rotate by 90 right }
set xtics scale 0 ('' 1)
FORM = '%.2f'
do for [c = 1:C] { if (abs(100 * word(CAPACITIES, c) - floor(100 * word(CAPACITIES, c) + 0.5)) > 1e-6) { FORM = '%.4g' } }
do for [c = 1:C] { if (C <= LABELS || c % parts(C, LABELS) == 1) { set xtics add (sprintf(FORM, word(CAPACITIES, c) + 0.0) c) } else { set xtics add ('' c) } }
set arrow 1 from graph 0, first LOW * 10 ** decades to graph 1, first LOW * 10 ** decades nohead lc rgb '#999999' lw 1
do for [c = 1:C:2] { set object c rectangle from c - 0.5, graph 0 to c + 0.5, graph 1 behind fc rgb '#F1F1F1' fs noborder }
tall(low, high) = log10(lost(high) / lost(low)) * (ROW - ABOVE - BELOW) / log10(1.5 * top / LOW)
WHISKERS = SPREAD_OF eq '' ? '' : 'for [k = 1:M] rows(KEY_NAME[k], workload, PASSED) using (place($1, k)):(drawn(lost($2), tall($3, $4))):(lost($3)):(lost($4)) with yerrorbars pt 0 lw 1 lc rgb KEY_COLOUR[k] notitle, '
do for [w = 1:W] {
    eval panel(w)
    workload = word(PANELS, w)
    # In a column, long names of neighbouring panels and the labels below would overlap.
    title = word(SHORT, w)
    set title in_lines(title, TITLE_MOST) font (NARROW && strlen(title) > 16 ? ',8' : ',11')
    if (lowest(w)) { set xlabel "capacity / live peak".(SMALL ? "\n" : ' ').'(equal steps)' } else { unset xlabel }
    # All panels have the same scale: only the left one has labels, and none at the crosses.
    unset label 2; unset label 3
    if (leftmost(w)) {
        middle = LOW * 10 ** (decades + room / 2)
        set label 2 'did not finish' at screen across(NARROW ? 8 : 16), first middle center rotate textcolor rgb '#222222'
        set label 3 'time lost' at screen across(NARROW ? 8 : 16), first LOW * 10 ** (decades / 2.0) center rotate textcolor rgb '#222222'
    }
    do for [k = 1:M] { set label 3 + k '' at screen across(from_left(w) - 8), first row_of(k) point pt KEY_POINT[k] ps 0.65 * SIZE lc rgb KEY_COLOUR[k] }
    set ytics ('' LOW)
    do for [d = 0:decades] { set ytics add ((leftmost(w) ? (d == 0 ? '≤' : '').TICK[d + FIRST + 4] : '') LOW * 10 ** d) }
    plot @WHISKERS for [k = 1:M] rows(KEY_NAME[k], workload, PASSED) using (place($1, k)):(lost($2)) \
            with points pt KEY_POINT[k] ps 0.65 * SIZE lc rgb KEY_COLOUR[k] notitle, \
         for [k = 1:M] rows(KEY_NAME[k], workload, FAILED) using 1:(row_of(k)) with points pt 2 ps 0.55 * SIZE lw 1.3 lc rgb KEY_COLOUR[k] notitle
    unset label 1000
}
load 'plots/key.gp'
