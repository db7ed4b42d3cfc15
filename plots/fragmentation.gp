# Fragmentation: each policy at each workload, by three definitions and by the overhead.
# The means are over the whole run, weighted by a clock that no policy influences. Lower is better in all
# four. A figure that is not computed from any bytes is null and not drawn. A cross at the upper edge: the
# program, or with replicates one of them, did not finish, so there is no figure. ONLY, if it is not empty, has the
# names of the panels that are drawn, such as 'external overhead'.
load 'plots/style.gp'

WORKLOADS = values(1, 1)
L = words(WORKLOADS)
SHOWN = values(2, 1)
M = key_policies(SHOWN, 0)
UNFINISHED = system(sprintf("awk -F, 'NR > 1 && $6 == \"\" { printf \"%%s|%%s \", $1, $2 }' '%s'", IN))
if (UNFINISHED ne '') { crosses = key_add('did not finish', '#444444', 2, 1, 0) }
load 'plots/spread.gp'
if (SPREAD > 0 && UNFINISHED ne '') { KEY_NAME[crosses] = 'at least one run did not finish' }
array WORDS[4] = ['internal', 'external', 'unusable', 'overhead']
array NAMES[4] = ['internal: mean of 1 - live / granted', 'external: mean of 1 - largest servable / free', 'unusable free index at the median request, mean', 'overhead: peak physical / peak live']
# The policies are next to each other at the workload's position, so that equal values are all visible.
place(w, k) = w + (M > 1 ? 0.8 * ((k - 1.0) / (M - 1) - 0.5) : 0)
inside = most_of(3, 1)
above = most_of(6, 4)

TITLE = 'fragmentation (lower is better)'
if (!exists('ONLY')) { ONLY = '' }
DRAWN = ''
do for [p = 1:4] { if (ONLY eq '' || has(ONLY, WORDS[p])) { DRAWN = DRAWN.' '.p } }
W = words(DRAWN)
MOST_COLUMNS = 1
# Names of workloads have lines of at most ALONG letters. Where only few letters fit next to each other, they
# are rotated. A single one stands below the last panel alone.
SHORT = ''
do for [w = 1:L] { SHORT = SHORT.' '.plain(word(WORKLOADS, w)) }
FIT = int((NARROW ? 330.0 : 1090.0) / 7.6 / L)
ASLANT = FIT < 24 && longest_in(SHORT) > FIT
ALONG = ASLANT ? 32 : FIT
longest = longest_in(SHORT) < ALONG ? longest_in(SHORT) : ALONG
LINES = most_lines(SHORT, ALONG)
# A rotated name goes left and down from its workload's position, 6.3 and 2.9 pixels a letter. With LEFT
# pixels left of the panels the position of the w-th is at LEFT + (WIDTH - LEFT) (w - 0.5) / L.
letters(w) = strlen(word(SHORT, w)) < ALONG ? strlen(word(SHORT, w)) : ALONG
left_of(w) = (6.3 * letters(w) - (NARROW ? 402.0 : 1175.0) * (w - 0.5) / L) / (1 - (w - 0.5) / L)
LEFT_LEAST = 0
if (ASLANT) { do for [w = 1:L] { LEFT_LEAST = larger(LEFT_LEAST, left_of(w)) } }
LEFT_LEAST = larger(0, LEFT_LEAST < 200 ? LEFT_LEAST : 200)
DEEPER = ASLANT ? larger(0, 2.9 * longest + 10 + 12 * (LINES - 1) - 85) : 0
ROW = L == 1 ? (NARROW ? 165 : 225) : ASLANT ? (NARROW ? 240 : 300) + DEEPER : (NARROW ? 165 : 225) + 15 * LINES
ABOVE = 32
BELOW = L == 1 ? 12 : ASLANT ? 85 + DEEPER : 15 + 15 * LINES
FOOT = L == 1 ? 5 + 15 * LINES : 0
GAP = 20
load 'plots/grid.gp'
# Long names of workloads in a column leave too little space for the longest titles.
array BRIEF[4] = ['internal, mean', 'external, mean', 'unusable free index, mean', 'overhead']
do for [p = 1:4] { if (WIDTH - LEFT - RIGHT < 7.1 * strlen(NAMES[p])) { NAMES[p] = BRIEF[p] } }

set xrange [0.5:L + 0.5]
if (ASLANT) { set xtics nomirror scale 0 rotate by 25 right font ',9' ('' 0) } else { set xtics nomirror scale 0 ('' 0) }
do for [w = 1:L - 1] { set arrow w from w + 0.5, graph 0 to w + 0.5, graph 1 nohead back lc rgb '#CCCCCC' }
do for [w = 1:L] { do for [k = 1:M] {
    if (has(UNFINISHED, word(WORKLOADS, w).'|'.KEY_NAME[k])) {
        set label 2000 + M * w + k '' at place(w, k), graph 1 point pt 2 ps 0.85 lc rgb KEY_COLOUR[k]
    }
} }
# Pixels from `low` to `high` in panel p.
PANEL = ROW - ABOVE - BELOW
tall(low, high) = p == 4 ? (above > 4 ? log10(high / low) / log10(above * 1.2 / 0.9) : (high - low) / larger(above - 0.95, 0.05)) * PANEL \
    : (high - low) / 1.08 / (p == 1 ? larger(inside, 0.001) : 1) * PANEL
WHISKERS = SPREAD_OF eq '' ? '' : 'for [k = 1:M] for [w = 1:L] rows2(word(WORKLOADS, w), KEY_NAME[k]) using (place(w, k)):(drawn(column(p + 2), tall(column(low_of(p)), column(high_of(p))))):(column(low_of(p))):(column(high_of(p))) with yerrorbars pt 0 lw 1 lc rgb KEY_COLOUR[k] notitle, '
do for [i = 1:W] {
    eval panel(i)
    p = word(DRAWN, i) + 0
    set title NAMES[p]
    do for [w = 1:L] { set xtics add ((L > 1 || i == W ? in_lines(word(SHORT, w), ALONG) : '') w) }
    # At a fixed place, where numbers of any length leave it space.
    set label 2 'ratio' at screen across(NARROW ? 8 : 22), graph 0.5 center rotate textcolor rgb '#222222'
    set ytics autofreq
    unset logscale y
    if (p == 4) {
        if (above > 4) { set logscale y; set ytics (1, 2, 5, 10, 20, 50, 100, 200, 500, 1000, 10000, 100000); set yrange [0.9:above * 1.2] } else { set yrange [0.95:*] }
    } else { if (p == 1) { set yrange [-0.04 * larger(inside, 0.001):1.04 * larger(inside, 0.001)] } else { set yrange [-0.04:1.04] } }
    # One point for each policy and workload: the values of the column in the order of the file.
    plot @WHISKERS for [k = 1:M] for [w = 1:L] rows2(word(WORKLOADS, w), KEY_NAME[k]) using (place(w, k)):(column(p + 2)) \
            with points pt KEY_POINT[k] ps 0.85 lc rgb KEY_COLOUR[k] notitle
    unset label 1000
}
load 'plots/key.gp'
