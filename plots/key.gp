# Draws the key that style.gp collected, in the space that grid.gp reserved, and ends the figure. gnuplot's
# own key leaves entries out if it finds too little space, so this one is laid out here.
unset border; unset tics; unset grid; unset xlabel; unset ylabel; unset title; unset label; unset arrow; unset object
unset logscale
set xrange [0:1]
set yrange [0:1]
set lmargin at screen 0; set rmargin at screen 1; set bmargin at screen 0; set tmargin at screen 1
sample = KEY_LEFT
key_top = KEY_INSIDE ? from_above(W + 1) + 30 : TOP + ROW * ROWS + FOOT + 15
do for [l = 1:KEY_LINES] {
    if (l > 1 && (l - 1) % KEY_ROWS == 0) { sample = sample + column_width((l - 1) / KEY_ROWS, KEY_ROWS) }
    row = high(key_top + (l - 1) % KEY_ROWS * KEY_ROW)
    set label l pasted(LINE_TEXT[l]) at screen across(sample + 42), screen row left textcolor rgb '#222222'
    k = LINE_KEY[l]
    if (k == 0) { continue }
    if (KEY_WIDTH[k] > 0) {
        set arrow k from screen across(sample), screen row to screen across(sample + 34), screen row nohead \
            lc rgb KEY_COLOUR[k] lw KEY_WIDTH[k] dt KEY_DASH[k]
    }
    if (KEY_POINT[k] > 0) {
        set label KEY_LINES + k '' at screen across(sample + 17), screen row point pt KEY_POINT[k] ps 0.9 lc rgb KEY_COLOUR[k]
    }
    if (k == KEY_BAR) {
        set arrow k from screen across(sample + 17), screen row - 6.0 / HEIGHT to screen across(sample + 17), screen row + 6.0 / HEIGHT \
            heads size screen 2.5 / WIDTH,90 lc rgb KEY_COLOUR[k] lw 1
    }
}
plot NaN notitle
unset multiplot
