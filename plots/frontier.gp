# Frontier: the capacities that serve a workload as one of its parameters grows, one panel for each policy.
# A filled mark: the program finished; a cross: it did not. The line is the program's peak of live
# bytes: no policy can serve it with less.
load 'plots/style.gp'

SHOWN = values(1, 1)
W = words(SHOWN)
VALUES = values(3, 3)
V = words(VALUES)
PARAMETER = word(values(2, 2), 1)
rest = key_add('finished', '#0072B2', 7, 1, 0)
rest = key_add('did not finish', '#D55E00', 2, 1, 0)
rest = key_add('peak of live bytes', '#222222', 0, 1, 1.6)
most = system(sprintf("awk -F, 'NR > 1 { if ($4 + 0 > m) m = $4 + 0; if ($6 + 0 > m) m = $6 + 0 } END { print m }' '%s'", IN)) + 0.0
unit = most >= 4 * GIB ? GIB : MIB

TITLE = 'which capacities serve '.NAME
MOST_COLUMNS = 4
COLUMN_COLUMNS = 2
# Letters of a title; the longest one decides how many lines all have.
TITLE_MOST = NARROW ? 30 : 34
TITLE_LINES = 1
do for [w = 1:W] { TITLE_LINES = larger(TITLE_LINES, lines_in(word(SHOWN, w), TITLE_MOST)) }
ABOVE = 28 + 13 * (TITLE_LINES - 1)
BELOW = NARROW ? 26 : 50
ROW = (NARROW ? 137 : 222) + ABOVE
FOOT = NARROW ? 24 : 12
GAP = 25
load 'plots/grid.gp'

at = sprintf("BEGIN { n = split(\"%s\", v, \" \"); for (i = 1; i <= n; i++) at[v[i]] = i }", VALUES)
of(policy, passed) = sprintf("< awk -F, '%s $1 == \"%s\" && $5 == \"%s\" { print at[$3] \",\" $4 }' '%s'", at, policy, passed, IN)
peak(policy) = sprintf("< awk -F, '%s $1 == \"%s\" && !seen[$3]++ { print at[$3] \",\" $6 }' '%s'", at, policy, IN)
set xrange [0.5:V + 0.5]
set yrange [0:1.06 * most / unit]
set xtics scale 0.5 ('' 1)
do for [i = 1:V] { set xtics add ((V <= 6 || i % parts(V, 6) == 1 ? word(VALUES, i) : '') i) }
do for [w = 1:W] {
    eval panel(w)
    set title in_lines(word(SHOWN, w), TITLE_MOST) font (NARROW && strlen(word(SHOWN, w)) > 22 ? ',7' : ',11')
    if (lowest(w)) { set xlabel PARAMETER } else { unset xlabel }
    if (leftmost(w)) { set ylabel 'capacity ('.(unit == GIB ? 'GiB' : 'MiB').')'; set format y '%g' } else { unset ylabel; set format y '' }
    plot of(word(SHOWN, w), 'true') using 1:($2 / unit) with points pt 7 ps (NARROW ? 0.8 : 1) lc rgb '#0072B2' notitle, \
         of(word(SHOWN, w), 'false') using 1:($2 / unit) with points pt 2 ps (NARROW ? 0.7 : 0.9) lw 1.4 lc rgb '#D55E00' notitle, \
         peak(word(SHOWN, w)) using 1:($2 / unit) with linespoints pt 0 lw 1.6 lc rgb '#222222' notitle
    unset label 1000
}
load 'plots/key.gp'
