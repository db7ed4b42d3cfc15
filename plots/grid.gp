# Panels in rows, and the key: in the places that the last row leaves free if it fits there, else below
# all. To be loaded after style.gp and once these are set:
#   TITLE          above all panels
#   W              how many panels
#   MOST_COLUMNS   how many panels may stand side by side
#   ROW            pixels from one row to the next
#   ABOVE, BELOW   pixels of ROW above a panel (its title) and below it (its axis)
#   GAP            pixels between two panels of one row
# A script calls `eval panel(w)` before each plot and `load 'plots/key.gp'` at its end.
WIDTH = 1200
LEFT = 95
TOP = 40
KEY_ROW = 19
ROWS = parts(W, MOST_COLUMNS)
COLUMNS = parts(W, ROWS)
PITCH = (WIDTH - LEFT - 25.0 + GAP) / COLUMNS

# The key has as many columns as fit, each as wide as its longest name (7.5 pixels a letter at most).
entry_width(k) = 42 + 7.5 * strlen(KEY_NAME[k]) + 15
longest_of(from, to) = (widest = 0, (sum [k = from:to] (widest = larger(widest, entry_width(k)), 0)), widest)
column_width(c, rows) = longest_of((c - 1) * rows + 1, c * rows < K ? c * rows : K)
key_width(rows) = (sum [c = 1:parts(K, rows)] column_width(c, rows)) - 15
fewest_rows(room) = (found = 0, (sum [r = 1:K] (found == 0 && key_width(r) <= room ? (found = r, 0) : 0)), found > 0 ? found : K)
KEY_LEFT = LEFT + W % COLUMNS * PITCH
KEY_ROWS = fewest_rows(WIDTH - KEY_LEFT - 8)
KEY_INSIDE = W % COLUMNS != 0 && key_width(KEY_ROWS) <= WIDTH - KEY_LEFT - 8 && KEY_ROWS * KEY_ROW <= ROW - 30
if (!KEY_INSIDE) {
    KEY_ROWS = fewest_rows(WIDTH - LEFT - 25)
    KEY_LEFT = larger(8, LEFT + (WIDTH - LEFT - 25 - key_width(KEY_ROWS)) / 2)
}
HEIGHT = TOP + ROW * ROWS + (KEY_INSIDE ? 0 : KEY_ROWS * KEY_ROW + 20)

if (TERM eq 'png') {
    set terminal pngcairo size WIDTH,HEIGHT font 'DejaVu Sans,10' background rgb 'white'
} else {
    set terminal svg size WIDTH,HEIGHT font 'DejaVu Sans,12' background rgb 'white'
}
set termoption noenhanced # an underscore is an underscore
set output OUT

# Pixels from the left and from above, as parts of the picture.
across(pixels) = pixels / (1.0 * WIDTH)
high(pixels) = 1 - pixels / (1.0 * HEIGHT)
from_left(w) = LEFT + (w - 1) % COLUMNS * PITCH
from_above(w) = TOP + (w - 1) / COLUMNS * ROW
panel(w) = sprintf("set lmargin at screen %f; set rmargin at screen %f; set tmargin at screen %f; set bmargin at screen %f", \
    across(from_left(w)), across(from_left(w) + PITCH - GAP), high(from_above(w) + ABOVE), high(from_above(w) + ROW - BELOW))
# Is nothing below it; is it the first of its row?
lowest(w) = w + COLUMNS > W
leftmost(w) = (w - 1) % COLUMNS == 0

set multiplot
set label 1000 TITLE at screen 0.5, screen high(18) center font ',13' textcolor rgb '#222222'
