# Fragmentation: each policy at each workload, by three definitions and by what it costs in the end.
# The means are over the whole run, weighted by a clock that no policy moves. Lower is better in all
# four. A figure that has no bytes behind it is null and not drawn.
HEIGHT = 760
load 'plots/style.gp'

WORKLOADS = system(sprintf("awk -F, 'NR > 1 && !seen[$1]++ { printf \"%%s \", $1 }' '%s'", IN))
W = words(WORKLOADS)
array NAMES[4] = ['internal: 1 - live / granted', 'external: 1 - largest servable / free', 'unusable free index at the median request', 'overhead: peak physical / peak live']
array COLUMN[4] = [3, 4, 5, 6]
# Beside each other around the workload's place, so that equal values are all seen.
place(w, i) = w + (N > 1 ? 0.7 * ((i - 1.0) / (N - 1) - 0.5) : 0)
above = system(sprintf("awk -F, 'NR > 1 && $6 + 0 > m { m = $6 } END { print m + 0 }' '%s'", IN)) + 0.0

set multiplot title 'fragmentation (lower is better)' font ',13'
set xrange [0.5:W + 0.5]
unset key
do for [p = 1:4] {
    left = (p % 2 == 1)
    set lmargin at screen (left ? 0.08 : 0.51)
    set rmargin at screen (left ? 0.43 : 0.86)
    set tmargin at screen (p <= 2 ? 0.91 : 0.49)
    set bmargin at screen (p <= 2 ? 0.565 : 0.145)
    set title NAMES[p]
    set ylabel (p == 4 ? 'ratio' : 'fraction')
    unset logscale y
    set ytics autofreq
    if (p == 4) {
        if (above > 4) { set logscale y; set ytics (1, 2, 5, 10, 20, 50, 100, 200, 500, 1000, 10000, 100000); set yrange [0.9:above * 1.2] } else { set yrange [0.95:*] }
    } else { if (p == 1) { set yrange [-0.005:*] } else { set yrange [-0.03:1.03] } }
    unset arrow
    if (p > 2) {
        set xtics nomirror scale 0 rotate by 30 right font ',9' ('' 0)
        do for [w = 1:W] { set xtics add (word(WORKLOADS, w) w) }
    } else {
        set xtics nomirror scale 0 ('' 0)
    }
    do for [w = 1:W - 1] { set arrow from w + 0.5, graph 0 to w + 0.5, graph 1 nohead lc rgb '#E4E4E4' }
    if (p == 2) { set key at screen 0.865, screen 0.91 left top vertical maxrows 30 } else { unset key }
    # For each policy and workload one point: the values of the column in the order of the file.
    plot for [i = 1:N] for [w = 1:W] rows2(word(WORKLOADS, w), word(POLICIES, i)) using (place(w, i)):(column(COLUMN[p])) \
            with points pt point(i) ps 0.75 lc rgb colour(i) notitle, \
         for [i = 1:N] NaN with points pt point(i) ps 0.9 lc rgb colour(i) title name_if_in_file(i)
}
unset multiplot
