# Panels side by side, one per workload, and the names of the policies below them. To be loaded, with
# `shown_by` and TITLE set, in place of style.gp. Gives PANELS: the workloads of IN in which column
# `shown_by` holds something. A script calls `eval panel(w)` before each plot and `eval key_only`
# before the last one.
PANELS = system(sprintf("awk -F, -v c=%d 'NR > 1 && $c != \"\" && !seen[$1]++ { printf \"%%s \", $1 }' '%s'", shown_by, IN))
W = words(PANELS)
COLUMNS = W <= 2 ? W : (W == 4 ? 2 : 3)
ROWS = (W + COLUMNS - 1) / COLUMNS
KEY_ROWS = (words(POLICIES) + 1 + 5) / 6
HEIGHT = 245 * ROWS + 50 + 10 + 22 * KEY_ROWS
load 'plots/style.gp'

# In pixels: 45 for the title, each row 245 of which 70 are below the axis.
high(pixels) = 1 - pixels / (1.0 * HEIGHT)
wide = 0.90 / COLUMNS
panel(w) = sprintf("set lmargin at screen %f; set rmargin at screen %f; set tmargin at screen %f; set bmargin at screen %f", \
    0.09 + (w - 1) % COLUMNS * wide, (w - 1) % COLUMNS * wide + wide + 0.03, \
    high(70 + (w - 1) / COLUMNS * 245), high(45 + 245 - 50 + (w - 1) / COLUMNS * 245))
# Is nothing below it; is it the first of its row?
lowest(w) = w + COLUMNS > W
leftmost(w) = (w - 1) % COLUMNS == 0
key_only = sprintf("unset border; unset tics; unset grid; unset xlabel; unset ylabel; unset title; unset logscale; \
unset label; unset arrow; set xrange [0:1]; set yrange [0:1]; set lmargin at screen 0.03; set rmargin at screen 0.97; \
set bmargin at screen 0; set tmargin at screen %f; set key center center horizontal maxcols 6 width 2", (22.0 * KEY_ROWS + 10) / HEIGHT)

set multiplot title TITLE font ',13'
