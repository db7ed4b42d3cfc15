# Fragmentation: each policy at each workload, by three definitions and by the overhead.
# The means are over the whole run, weighted by a clock that no policy influences. Lower is better in all
# four. A figure that is not computed from any bytes is null and not drawn.
load 'plots/style.gp'

WORKLOADS = values(1, 1)
L = words(WORKLOADS)
SHOWN = values(2, 1)
M = key_policies(SHOWN, 0)
load 'plots/spread.gp'
array NAMES[4] = ['internal: mean of 1 - live / granted', 'external: mean of 1 - largest servable / free', 'unusable free index at the median request, mean', 'overhead: peak physical / peak live']
# The policies are next to each other at the workload's position, so that equal values are all visible.
place(w, k) = w + (M > 1 ? 0.8 * ((k - 1.0) / (M - 1) - 0.5) : 0)
inside = most_of(3, 1)
above = most_of(6, 4)

TITLE = 'fragmentation (lower is better)'
W = 4
MOST_COLUMNS = 1
# Names of workloads that do not fit next to each other are rotated.
longest = 0
do for [w = 1:L] { longest = larger(longest, strlen(word(WORKLOADS, w))) }
ASLANT = longest * 7.6 > (NARROW ? 330.0 : 1090.0) / L
# A rotated name goes left and down from its workload's position, 6.3 and 2.9 pixels a letter. With LEFT
# pixels left of the panels the position of the w-th is at LEFT + (WIDTH - LEFT) (w - 0.5) / L.
left_of(w) = (6.3 * strlen(word(WORKLOADS, w)) - (NARROW ? 402.0 : 1175.0) * (w - 0.5) / L) / (1 - (w - 0.5) / L)
LEFT_LEAST = 0
if (ASLANT) { do for [w = 1:L] { LEFT_LEAST = larger(LEFT_LEAST, left_of(w)) } }
LEFT_LEAST = larger(0, LEFT_LEAST < 200 ? LEFT_LEAST : 200)
DEEPER = ASLANT ? larger(0, 2.9 * longest + 10 - 85) : 0
ROW = (ASLANT ? (NARROW ? 240 : 300) : (NARROW ? 180 : 240)) + DEEPER
ABOVE = 32
BELOW = ASLANT ? 85 + DEEPER : 30
GAP = 20
load 'plots/grid.gp'
# Long names of workloads in a column leave too little space for the longest title.
if (WIDTH - LEFT - RIGHT < 7.1 * strlen(NAMES[3])) { NAMES[3] = 'unusable free index, mean' }
if (WIDTH - LEFT - RIGHT < 7.1 * strlen(NAMES[2])) { NAMES[2] = 'external, mean' }

set xrange [0.5:L + 0.5]
if (ASLANT) { set xtics nomirror scale 0 rotate by 25 right font ',9' ('' 0) } else { set xtics nomirror scale 0 ('' 0) }
do for [w = 1:L] { set xtics add (word(WORKLOADS, w) w) }
do for [w = 1:L - 1] { set arrow w from w + 0.5, graph 0 to w + 0.5, graph 1 nohead back lc rgb '#CCCCCC' }
# Pixels from `low` to `high` in panel p.
PANEL = ROW - ABOVE - BELOW
tall(low, high) = p == 4 ? (above > 4 ? log10(high / low) / log10(above * 1.2 / 0.9) : (high - low) / larger(above - 0.95, 0.05)) * PANEL \
    : (high - low) / 1.08 / (p == 1 ? larger(inside, 0.001) : 1) * PANEL
WHISKERS = SPREAD_OF eq '' ? '' : 'for [k = 1:M] for [w = 1:L] rows2(word(WORKLOADS, w), KEY_NAME[k]) using (place(w, k)):(drawn(column(p + 2), tall(column(low_of(p)), column(high_of(p))))):(column(low_of(p))):(column(high_of(p))) with yerrorbars pt 0 lw 1 lc rgb KEY_COLOUR[k] notitle, '
do for [p = 1:4] {
    eval panel(p)
    set title NAMES[p]
    # At a fixed place, where numbers of any length leave it space.
    set label 2 (p == 4 ? 'ratio' : 'fraction') at screen across(NARROW ? 8 : 22), graph 0.5 center rotate textcolor rgb '#222222'
    set ytics autofreq
    if (p == 4) {
        if (above > 4) { set logscale y; set ytics (1, 2, 5, 10, 20, 50, 100, 200, 500, 1000, 10000, 100000); set yrange [0.9:above * 1.2] } else { set yrange [0.95:*] }
    } else { if (p == 1) { set yrange [-0.04 * larger(inside, 0.001):1.04 * larger(inside, 0.001)] } else { set yrange [-0.04:1.04] } }
    # One point for each policy and workload: the values of the column in the order of the file.
    plot @WHISKERS for [k = 1:M] for [w = 1:L] rows2(word(WORKLOADS, w), KEY_NAME[k]) using (place(w, k)):(column(p + 2)) \
            with points pt KEY_POINT[k] ps 0.85 lc rgb KEY_COLOUR[k] notitle
    unset label 1000
}
load 'plots/key.gp'
