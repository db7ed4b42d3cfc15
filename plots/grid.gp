# Panels in rows, and the key: in the free positions of the last row if it fits there, otherwise below
# all panels. Load it after style.gp, when these are set:
#   TITLE          above all panels
#   W              the number of panels
#   MOST_COLUMNS   the maximum number of panels in a row
#   ROW            pixels from one row to the next
#   ABOVE, BELOW   pixels of ROW above a panel (its title) and below it (its axis)
#   GAP            pixels between two panels of one row
#   LEFT_LEAST     the minimum number of pixels left of all panels, if a script needs more than the default
#   FOOT           pixels below the last row, for labels that only the lowest panels have (default 0)
# A script calls `eval panel(w)` before each plot and `load 'plots/key.gp'` at its end. In the form for
# a paper's column the picture is 420 pixels wide, which are 8.5 cm there: letters have
# 7.6 points, a row has fewer panels (COLUMN_COLUMNS, default 1), and there is no title, because the
# caption is the title.
WIDTH = NARROW ? 420 : 1200
LEFT = larger(NARROW ? 76 : 95, exists('LEFT_LEAST') ? LEFT_LEAST : 0)
TOP = NARROW ? 8 : 40
KEY_ROW = NARROW ? 15 : 19
if (!exists('FOOT')) { FOOT = 0 }
if (!exists('COLUMN_COLUMNS')) { COLUMN_COLUMNS = 1 }
if (NARROW && MOST_COLUMNS > COLUMN_COLUMNS) { MOST_COLUMNS = COLUMN_COLUMNS }
ROWS = parts(W, MOST_COLUMNS)
COLUMNS = parts(W, ROWS)
RIGHT = NARROW ? 18 : 25
PITCH = (WIDTH - LEFT - RIGHT + 0.0 + GAP) / COLUMNS

# The lines of the key: an entry has several if its name is wider than the picture.
KEY_MOST = int((WIDTH - 10 - 42) / 7.2)
array LINE_TEXT[4 * K + 1]
array LINE_KEY[4 * K + 1] # its entry if it is the first line of that, else 0
KEY_LINES = 0
do for [k = 1:K] {
    left_over = KEY_NAME[k]
    entry = k
    while (strlen(left_over) > 0 && KEY_LINES < 4 * K) {
        line_end = cut_at(left_over, KEY_MOST)
        KEY_LINES = KEY_LINES + 1
        LINE_TEXT[KEY_LINES] = left_over[1:line_end]
        LINE_KEY[KEY_LINES] = entry
        left_over = left_over[line_end + (left_over[line_end + 1:line_end + 1] eq ' ' ? 2 : 1):*]
        entry = 0
    }
}

# The key has as many columns as fit, each as wide as its longest line (7.5 pixels a letter at most, over
# five letters: shorter names can consist of wide ones); one column if an entry has several lines.
entry_width(k) = 42 + 7.5 * larger(5, strlen(LINE_TEXT[k])) + 15
longest_of(from, to) = (widest = 0, (sum [k = from:to] (widest = larger(widest, entry_width(k)), 0)), widest)
column_width(c, rows) = longest_of((c - 1) * rows + 1, c * rows < KEY_LINES ? c * rows : KEY_LINES)
key_width(rows) = (sum [c = 1:parts(KEY_LINES, rows)] column_width(c, rows)) - 15
fewest_rows(room) = KEY_LINES > K ? KEY_LINES : (found = 0, (sum [r = 1:KEY_LINES] (found == 0 && key_width(r) <= room ? (found = r, 0) : 0)), found > 0 ? found : KEY_LINES)
KEY_LEFT = LEFT + W % COLUMNS * PITCH
KEY_ROWS = fewest_rows(WIDTH - KEY_LEFT - 8)
KEY_INSIDE = W % COLUMNS != 0 && key_width(KEY_ROWS) <= WIDTH - KEY_LEFT - 8 && KEY_ROWS * KEY_ROW <= ROW - 30
if (!KEY_INSIDE) {
    KEY_ROWS = fewest_rows(WIDTH - (NARROW ? 10 : LEFT + 25))
    KEY_LEFT = larger(8, NARROW ? (WIDTH - key_width(KEY_ROWS)) / 2 : LEFT + (WIDTH - LEFT - 25 - key_width(KEY_ROWS)) / 2)
}
HEIGHT = TOP + ROW * ROWS + FOOT + (KEY_INSIDE ? 0 : KEY_ROWS * KEY_ROW + 20)

CM = 8.5 / 420
if (TERM eq 'pdf') {
    set terminal pdfcairo size WIDTH * CM cm,HEIGHT * CM cm font 'DejaVu Sans,10' fontscale 0.57 linewidth 0.6 pointscale 0.6 background rgb 'white'
} else { if (TERM[1:3] eq 'png') {
    set terminal pngcairo size WIDTH,HEIGHT font 'DejaVu Sans,10' background rgb 'white'
} else {
    set terminal svg size WIDTH,HEIGHT font 'DejaVu Sans,12' background rgb 'white'
} }
set termoption noenhanced # an underscore is an underscore
set output OUT

# Pixels from the left and from the top, as fractions of the picture.
across(pixels) = pixels / (1.0 * WIDTH)
high(pixels) = 1 - pixels / (1.0 * HEIGHT)
from_left(w) = LEFT + (w - 1) % COLUMNS * PITCH
from_above(w) = TOP + (w - 1) / COLUMNS * ROW
panel(w) = sprintf("set lmargin at screen %f; set rmargin at screen %f; set tmargin at screen %f; set bmargin at screen %f", \
    across(from_left(w)), across(from_left(w) + PITCH - GAP), high(from_above(w) + ABOVE), high(from_above(w) + ROW - BELOW))
# Whether the panel is the lowest of its column, and whether it is the first of its row.
lowest(w) = w + COLUMNS > W
leftmost(w) = (w - 1) % COLUMNS == 0

set multiplot
set label 1000 (NARROW ? '' : TITLE) at screen 0.5, screen high(18) center font ',13' textcolor rgb '#222222'
