# Bytes by owner over the phases of a scenario, stacked; the dashed line is what the card has for processes.
# plots/twin.sh sets IN (columns as plots/twin.awk makes them), OWNERS, STEPS, OUT, TERM and TITLE.
POLICIES = 'a b c d e f g h i j k l m n o p'
load 'plots/style.gp'
OWNER_COUNT = int(system(sprintf("wc -l <'%s'", OWNERS)))
STEP_COUNT = int(system(sprintf("wc -l <'%s'", STEPS)))
field(file, row, column) = system(sprintf("awk -F, 'NR == %d { print $%d }' '%s'", row, column, file))
# A part has a colour, its purposes have shades of it; greys are for what belongs to no part.
hex(text, at) = strstrt('0123456789ABCDEF', text[at:at]) - 1
part_of_colour(text, at) = 16 * hex(text, at) + hex(text, at + 1)
lighter(value, shade) = int(value + (255 - value) * (shade > 3 ? 0.8 : shade * 0.27))
shaded(text, shade) = sprintf('#%02X%02X%02X', lighter(part_of_colour(text, 2), shade), lighter(part_of_colour(text, 4), shade), lighter(part_of_colour(text, 6), shade))
grey(shade) = shade == 1 ? '#555555' : shade == 7 ? '#D9D9D9' : shade == 8 ? '#EFEFEF' : '#999999'
array FILL[OWNER_COUNT]
do for [i = 1:OWNER_COUNT] {
    hue = int(field(OWNERS, i, 2)); shade = int(field(OWNERS, i, 3))
    FILL[i] = hue > 0 ? shaded(colour(hue), shade) : grey(shade)
}
# Whether any phase has bytes of other owners, the last ones.
OTHERS = int(system(sprintf("awk -F, '{ if ($(NF - 1) - $(NF - 2) > 1e6) found = 1 } END { print found + 0 }' '%s'", IN)))
# The key has the order of the stack, the top first.
do for [i = 1:OWNER_COUNT] {
    k = OWNER_COUNT + 1 - i
    if (OTHERS || k < OWNER_COUNT) { rest = key_add(field(OWNERS, k, 1), FILL[k], 0, 1, 9) }
}
rest = key_add('the card', '#000000', 0, 2, 1.5)
W = 1
MOST_COLUMNS = 1
# The names of steps stand upright below the axis.
LONGEST = int(system(sprintf("awk -F, 'length($2) > m { m = length($2) } END { print m }' '%s'", STEPS)))
ABOVE = 45
BELOW = 15 + 6.5 * (STEP_COUNT > 64 ? 4 : LONGEST)
ROW = ABOVE + BELOW + 380
GAP = 25
load 'plots/grid.gp'
top = system(sprintf("awk -F, '{ if ($NF > m) m = $NF } END { printf \"%%.0f\", m }' '%s'", IN)) + 0.0
set xrange [0:STEP_COUNT]
set yrange [0:1.04 * top / GIB]
set ylabel 'memory of the card (GiB)'
set grid noxtics
unset xtics
SMALL = STEP_COUNT > 40 ? ',7' : ',9'
set xtics ('' 0) rotate by 90 right scale 0 font SMALL
do for [i = 1:STEP_COUNT] {
    if (STEP_COUNT <= 64) { set xtics add (field(STEPS, i, 2) i - 0.5) }
    begins = field(STEPS, i, 3)
    if (begins ne '') {
        set arrow 100 + i from i - 1, graph 0 to i - 1, graph 1.0 nohead lc rgb '#666666' dt 3 lw 0.8 front
        set label 1100 + i begins at i - 1, graph 1.025 left font ',9' textcolor rgb '#222222'
    }
}
eval panel(1)
set style fill solid noborder
plot for [k = 1:OWNER_COUNT] IN using 1:(column(OWNER_COUNT + 2 - k) / GIB) with filledcurves y1=0 lc rgb FILL[OWNER_COUNT + 1 - k] notitle, \
     IN using 1:(column(OWNER_COUNT + 2) / GIB) with lines lc rgb '#000000' dt 2 lw 1.2 notitle
do for [i = 1:STEP_COUNT] { unset label 1100 + i }
unset label 1000
load 'plots/key.gp'
