# History: figures over commits, a panel for each, with the commits at which they changed. Exact figures
# are a line of steps; times are a point for each measurement, and a line at the level between two changes.
load 'plots/style.gp'

PANELS = values(1, 9)
W = words(PANELS)
field(panel, c) = system(sprintf("awk -F, '$1 == \"%s\" { print $%d; exit }' '%s'", panel, c, IN))
any(c, text) = system(sprintf("awk -F, '$%d == \"%s\" { n++ } END { print n + 0 }' '%s'", c, text, IN)) + 0
extreme(panel, sign) = system(sprintf("awk -F, -v s=%d '$1 == \"%s\" { for (c = 9; c <= 10; c++) if (m == \"\" || s * $c > s * m) m = $c + 0 } END { printf \"%%.17g\", m }' '%s'", sign, panel, IN)) + 0.0
changed(panel, how) = sprintf("< awk -F, '$1 == \"%s\" && $11 == \"%s\" { print $7 \",\" $10 \",\" $8 }' '%s'", panel, how, IN)
ticks(panel) = system(sprintf("awk -F, '$1 == \"%s\" { print $7 \" \" $8 }' '%s' | awk '{ p[NR] = $0 } END { s = int((NR + 4) / 5); for (i = 1; i <= NR; i += s) print p[i] }'", panel, IN))

LINE = '#0072B2'
WORSE = '#D55E00'
BETTER = '#009E73'
OTHER = '#222222'
if (any(6, 'exact') + any(6, 'count') > 0) { rest = key_add('value', LINE, 7, 1, 1.8) }
if (any(6, 'timed') > 0) { rest = key_add('measured', '#999999', 7, 1, 0); rest = key_add('level', LINE, 0, 1, 1.8) }
if (any(11, 'worse') > 0) { rest = key_add('worse', WORSE, 11, 1, 0) }
if (any(11, 'better') > 0) { rest = key_add('better', BETTER, 9, 1, 0) }
if (any(11, 'unclear') > 0) { rest = key_add('within one commit', OTHER, 4, 1, 0) }

TITLE = 'where figures changed'
MOST_COLUMNS = 2
ROW = NARROW ? 165 : 210
ABOVE = 42
BELOW = 26
GAP = 90
load 'plots/grid.gp'

# The unit in which a unit of the data is shown, by the largest value.
shown(unit, most) = unit eq 'bytes' ? (most >= 4 * GIB ? 'GiB' : most >= 4 * MIB ? 'MiB' : most >= 4096 ? 'KiB' : 'bytes') \
    : unit eq 'ns' ? (most >= 4e9 ? 's' : most >= 4e6 ? 'ms' : most >= 4e3 ? 'µs' : 'ns') : unit
size(name) = name eq 'GiB' ? GIB : name eq 'MiB' ? MIB : name eq 'KiB' ? 1024.0 : name eq 's' ? 1e9 : name eq 'ms' ? 1e6 : name eq 'µs' ? 1e3 : 1.0
nice(step) = (ten = 10.0 ** floor(log10(step)), step <= 2 * ten ? 2 * ten : step <= 5 * ten ? 5 * ten : 10 * ten)
letters(text) = NARROW && strlen(text) > 57 ? ',7' : NARROW && strlen(text) > 46 ? ',9' : ',10'

# On white, because the line of the commit crosses its name.
set style textbox opaque noborder fillcolor rgb '#FFFFFF' margins 0.3,0.1
set xtics scale 0.5
do for [w = 1:W] {
    eval panel(w)
    p = word(PANELS, w)
    low = extreme(p, -1)
    most = extreme(p, 1)
    name = shown(field(p, 5), most)
    u = size(name)
    low = low / u
    most = most / u
    pad = larger((NARROW ? 0.45 : 0.32) * (most - low), larger(0.01 * abs(most), 1e-9))
    set yrange [low - pad:most + pad]
    set ytics nice((most - low + 2 * pad) / 3.5)
    set format y '%.5g'
    head = field(p, 2).', '.field(p, 3)
    set title head."\n".field(p, 4).(strlen(name) > 0 ? ' ('.name.')' : '') font letters(head) offset (NARROW ? -4 : 0),-0.4
    at = ticks(p)
    first = word(at, 1) + 0
    last = system(sprintf("awk -F, '$1 == \"%s\" { n = $7 } END { print n }' '%s'", p, IN)) + 0
    set xrange [first - 0.5:last + 0.5]
    unset xtics
    set xtics scale 0.5 nomirror textcolor rgb '#222222' font ',9' (word(at, 2) first)
    do for [i = 2:words(at) / 2] { set xtics add (word(at, 2 * i) word(at, 2 * i - 1) + 0) }
    timed = field(p, 6) eq 'timed'
    plot for [how in 'worse better unclear'] changed(p, how) using 1:(low - pad):(0):(most - low + 2 * pad) with vectors nohead lw 1 dt 2 lc rgb '#BBBBBB' notitle, \
         rows1(p) using 7:($9 / u) with points pt 7 ps (timed ? 0.45 : 0.5) lc rgb (timed ? '#999999' : LINE) notitle, \
         rows1(p) using 7:($10 / u) with steps lw 1.8 lc rgb LINE notitle, \
         changed(p, 'worse') using 1:($2 / u) with points pt 11 ps (NARROW ? 1.3 : 1.6) lc rgb WORSE notitle, \
         changed(p, 'better') using 1:($2 / u) with points pt 9 ps (NARROW ? 1.3 : 1.6) lc rgb BETTER notitle, \
         changed(p, 'unclear') using 1:($2 / u) with points pt 4 ps (NARROW ? 1.1 : 1.4) lc rgb OTHER notitle, \
         for [how in 'worse better'] changed(p, how) using 1:($2 / u):3 with labels boxed offset 0,(how eq 'worse' ? 0.9 : -0.9) font ',9' textcolor rgb '#222222' notitle
    unset label 1000
}
load 'plots/key.gp'
