# Addresses over time of one run. Each block is a rectangle: its width is its lifetime, its height its
# bytes, and larger blocks are darker. The lightest grey is free memory of a segment, between the first
# and the last block of that segment. plots/rectangles.awk says how segments are stacked.
load 'plots/style.gp'

# Each class is darker than the one before, so the order is visible in grey too.
array SHADE[5] = ['#F5D820', '#7AD151', '#22A884', '#2A788E', '#440154']
array CLASS[5] = ['< 64 KiB', '< 1 MiB', '< 16 MiB', '< 256 MiB', 'larger']
EMPTY = '#F0F0F0' # lighter than every class, in grey too
rest = key_add('no block', EMPTY, 0, 1, 9)
do for [c = 1:5] { rest = key_add(CLASS[c], SHADE[c], 0, 1, 9) }

TITLE = 'addresses of '.NAME.' over time'
W = 1
MOST_COLUMNS = 1
ROW = NARROW ? 330 : 560
ABOVE = NARROW ? 8 : 12
BELOW = 52
GAP = 20
load 'plots/grid.gp'

MAP = OUT.'.map'
rest = system(sprintf("awk -v wide=%d -v high=%d -f plots/rectangles.awk '%s' '%s' >'%s'", PITCH - GAP, ROW - ABOVE - BELOW, IN, IN, MAP))
stats MAP using 4 nooutput
top = STATS_max
stats MAP using 2 nooutput
unit = top >= 2 * GIB ? GIB : MIB
set xrange [0:STATS_max]
set yrange [0:top / unit]

set xlabel 'event'
set format x '%.0s%c'
set ylabel 'segments, stacked ('.(top >= 2 * GIB ? 'GiB' : 'MiB').')'
unset grid
eval panel(1)
set style fill solid noborder
plot MAP index 0 using 1:($3 / unit):1:2:($3 / unit):($4 / unit) with boxxyerror lc rgb EMPTY notitle, \
     for [c = 1:5] '' index 1 using ($5 == c - 1 ? $1 : NaN):($3 / unit):1:2:($3 / unit):($4 / unit) with boxxyerror lc rgb SHADE[c] notitle
rest = system(sprintf("rm -f '%s'", MAP))
load 'plots/key.gp'
