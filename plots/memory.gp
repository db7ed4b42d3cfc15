# Memory over time of one workload, one panel for each policy; policies with the same curves share one.
# Live bytes of the program (grey), reserved bytes by the policy's own count (black, visible if they
# differ) and physical bytes that the device charges (coloured). Below the names: the peak of physical
# bytes, with the policy's mark at its first occurrence. All panels have one scale. A policy with more
# than four times the peak of live bytes does not set the scale: its curve lies on the upper edge while
# it is above, and the number is its peak. A policy that did not finish has no numbers: its curves end
# with a cross at the first request that failed.
load 'plots/style.gp'

# Whether the recording has times.
timed = int(system(sprintf("awk -F, 'NR > 1 && $3 + 0 > 0 { print 1; found = 1; exit } END { if (!found) print 0 }' '%s'", IN)))
x = timed ? 3 : 2
peak_live = system(sprintf("awk -F, 'NR > 1 && $4 + 0 > m { m = $4 } END { printf \"%%.0f\", m }' '%s'", IN)) + 0.0
unit = peak_live >= 2 * GIB ? GIB : MIB
unit_name = peak_live >= 2 * GIB ? 'GiB' : 'MiB'

GROUPS = system(sprintf("awk -v x=%d -v wide=%d -f plots/same.awk '%s'", x, NARROW ? 30 : 34, IN))
W = words(GROUPS) / 8
field(w, n) = word(GROUPS, 8 * (w - 1) + n)
head(w) = field(w, 1)
names(w) = system(sprintf("echo '%s' | tr '~|;^' \" \\n,'\"", field(w, 2)))
reserved(w) = field(w, 3) + 0.0
physical(w) = field(w, 4) + 0.0
peak_at(w) = field(w, 5) + 0.0
failed(w) = field(w, 6) + 0.0 >= 0
failed_at(w) = field(w, 6) + 0.0
failed_bytes(w) = physical(w) > 0 ? field(w, 8) + 0.0 : field(w, 7) + 0.0
# A device that charges nothing has no physical bytes: the peak is then that of the reserved bytes.
peak(w) = physical(w) > 0 ? physical(w) : reserved(w)
number(name) = (sum [i = 1:N] (word(POLICIES, i) eq name ? i : 0))
lines_of(w) = int(system(sprintf("echo '%s' | tr '|' '\\n' | wc -l", field(w, 2)))) + (failed(w) ? 1 : 0)

top = peak_live
lines = 1
do for [w = 1:W] {
    if (larger(reserved(w), physical(w)) <= 4 * peak_live) { top = larger(top, larger(reserved(w), physical(w))) }
    lines = larger(lines, lines_of(w))
}

# If there are several replicates, the first is shown.
replicates = int(system(sprintf("awk -F, 'NR == 1 { for (i = 1; i <= NF; i++) if ($i == \"draws\") c = i } NR == 2 { print c ? $c + 0 : 0 }' '%s'", IN)))
FIRST = replicates > 1 ? sprintf('the first of %d replicates', replicates) : ''

rest = key_add('live', GREY, 0, 1, 9)
rest = key_add('reserved, by the policy''s own count', '#000000', 0, 2, 1)
rest = key_add('physical: what the device charges', COLOUR[1], 0, 1, 1.8)
rest = key_add('peak of physical (each policy''s mark)', COLOUR[1], POINT[1], 1, 0)
if (sum [w = 1:W] failed(w)) { rest = key_add('did not finish: first failed request', '#444444', 2, 1, 0) }
if (NARROW && FIRST ne '') { rest = key_add(FIRST, GREY, 0, 1, 0) } # where no title says it
TITLE = 'memory of '.NAME.' over time'.(FIRST eq '' ? '' : ': '.FIRST)
MOST_COLUMNS = 4
COLUMN_COLUMNS = 2
# In a column twenty panels are as high as a page: only the lowest ones have numbers on the time axis.
ABOVE = NARROW ? 17 + 13 * lines : 30 + 15 * lines
BELOW = NARROW ? 6 : 50
FOOT = NARROW ? 42 : 0
ROW = ABOVE + BELOW + (NARROW ? (W <= 8 ? 140 : W <= 18 ? 78 : W <= 20 ? 58 : 46) : W <= 8 ? 190 : 130)
GAP = 25
load 'plots/grid.gp'

# The end of the time axis is the end of the data.
end_x = system(sprintf("awk -F, -v c=%d 'NR > 1 && $c + 0 > m { m = $c } END { print m + 0 }' '%s'", x, IN)) + 0.0
thin(policy, column) = sprintf("< awk -v policy='%s' -v by=%d -v x=%d -v end=%.9g -v buckets=%d -f plots/thin.awk '%s'", policy, column, x, end_x, int((PITCH - GAP) / 1.5), IN)
# The same as the corners of one area, from 0 and back to 0: gnuplot's fillsteps writes a path for each step.
area(policy, column) = thin(policy, column).sprintf(" | awk -F, -v x=%d -v y=%d 'NR == 1 { print $x \",0\" } NR > 1 { print $x \",\" last } { last = $y; print $x \",\" last } END { print $x \",0\" }'", x, column)
set xrange [0:end_x > 0 ? end_x : 1]
# About four numbers on each time axis: a step of 1, 2 or 5 times a power of ten.
LABELS = NARROW ? 4.0 : 5.0
power = end_x > 0 ? 10 ** floor(log10(end_x / LABELS)) : 1
step = power * (end_x / LABELS <= power ? 1 : end_x / LABELS <= 2 * power ? 2 : end_x / LABELS <= 5 * power ? 5 : 10)
# Numbers of events in a column would touch each other.
thousands(n) = n >= 1e6 ? sprintf('%gM', n / 1e6) : n >= 1000 ? sprintf('%gk', n / 1000) : sprintf('%g', n)
set yrange [0:1.06 * top / unit]
if (NARROW) {
    power = 10 ** floor(log10(top / unit / 4))
    set ytics power * (top / unit / 4 <= power ? 1 : top / unit / 4 <= 2 * power ? 2 : top / unit / 4 <= 5 * power ? 5 : 10)
}
# A small number has two decimals, a large one none.
short(value) = value < 10 ? sprintf('%.2f', value) : value < 1000 ? sprintf('%.1f', value) : sprintf('%.0f', value)
inside(bytes) = (bytes < 1.03 * top ? bytes : 1.03 * top) / unit
moment(at) = timed ? sprintf('%.4g s', at) : sprintf('event %.0f', at)
# With an outline, because a peak narrower than a pixel would fade.
set style fill solid border lc rgb GREY
do for [w = 1:W] {
    eval panel(w)
    i = number(head(w))
    set title names(w)."\n".(failed(w) ? sprintf("did not finish: first failed\nrequest at %s", moment(failed_at(w))) \
        : sprintf('%s %s, %s × live%s', short(peak(w) / unit), unit_name, short(peak(w) / peak_live), \
            peak(w) > 1.06 * top ? (NARROW ? ': above' : ': above the scale') : '')) font (NARROW ? ',8' : ',10')
    if (lowest(w)) { set xlabel (timed ? 'time in the recording (s)' : 'event') } else { unset xlabel }
    set format x (NARROW && !lowest(w) ? '' : '% h')
    if (NARROW && !timed && step >= 1000 && lowest(w)) {
        set xtics ('0' 0)
        do for [i = 1:int(end_x / step)] { set xtics add (thousands(i * step) i * step) }
    } else { set xtics step }
    if (leftmost(w)) { set ylabel NARROW && W > 18 ? unit_name : sprintf('memory (%s)', unit_name); set format y '%g' } else { unset ylabel; set format y '' }
    plot area(head(w), 4) using 1:($2 / unit) with filledcurves closed lc rgb GREY lw 1 notitle, \
         thin(head(w), 5) using x:(inside($5)) with steps lw 1 dt 2 lc rgb '#000000' notitle, \
         thin(head(w), 6) using x:(inside($6)) with steps lw 1.8 lc rgb colour(i) notitle, \
         '+' every ::::0 using (failed(w) ? failed_at(w) : peak_at(w)):(failed(w) ? inside(failed_bytes(w)) : physical(w) > 0 ? inside(physical(w)) : NaN) \
            with points pt failed(w) ? 2 : point(i) ps failed(w) ? 1.2 : 1 lw failed(w) ? 2 : 1 lc rgb failed(w) ? '#444444' : colour(i) notitle
    unset label 1000
}
load 'plots/key.gp'
