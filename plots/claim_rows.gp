# One row of the table of claims: the memory of the experiment, the memory of its control, and the measure of
# both with its bound. plots/claim_rows.sh sets IN (the folder of data), OUT and TERM, and for the row SAYS,
# VERDICT, MEASURE, the names EXPERIMENT and CONTROL (one or two each), VALUE, CONTROL_VALUE, their texts TOLD
# and CONTROL_TOLD, and BOUND. If driver calls were measured by step, their time is drawn instead of memory.
POLICIES = 'a b'
load 'plots/style.gp'
file(name) = sprintf("%s/%s.csv", IN, name)
processes(name) = system(sprintf("awk -F, 'NR > 1 && !seen[$1]++ { printf \"%%s \", $1 }' '%s' 2>/dev/null", file(name)))
of(name, process) = sprintf("< awk -F, 'NR > 1 && $1 == \"%s\"' '%s'", process, file(name))
most(name) = system(sprintf("awk -F, 'NR > 1 { if ($4 > m) m = $4; if ($3 > m) m = $3 } END { printf \"%%.0f\", m }' '%s' 2>/dev/null", file(name))) + 0.0
last_event(name) = system(sprintf("awk -F, 'NR > 1 && $2 > m { m = $2 } END { print m + 0 }' '%s' 2>/dev/null", file(name))) + 0.0
# A quarter of it, rounded to 1, 2 or 5 times a power of ten.
step(most) = (power = 10.0 ** floor(log10(most / 4)), first = most / 4 / power, (first < 1.5 ? 1 : first < 3.5 ? 2 : 5) * power)
several(name) = processes(name) ne 'pool ' && processes(name) ne ''
steps(name) = sprintf("%s/%s.steps", IN, name)
most_ms(name) = system(sprintf("awk -F, 'NR > 1 && $2 > m { m = $2 } END { print m / 1e6 }' '%s'", steps(name))) + 0.0
A = word(EXPERIMENT, 1); C = word(CONTROL, 1)
BY_STEP = system(sprintf("test -e '%s' -a -e '%s' && echo yes", steps(A), steps(C))) eq 'yes'
SEVERAL = several(A) || several(C)
if (BY_STEP) {
    rest = key_add('driver calls of a step', colour(1), 0, 1, 9)
} else { if (SEVERAL) {
    names = processes(A) ne '' ? processes(A) : processes(C)
    do for [i = 1:words(names)] { rest = key_add(word(names, i).': reserved', colour(i), point(i), 1, 2.5) }
} else {
    rest = key_add('live', GREY, 0, 1, 9)
    rest = key_add('a: reserved', colour(1), 0, 1, 2.5)
    if (words(EXPERIMENT) > 1) { rest = key_add('b: reserved', colour(2), 0, 3, 2.5) }
} }
TITLE = SAYS.': '.VERDICT
W = 3
MOST_COLUMNS = 3
ROW = NARROW ? 240 : 380
ABOVE = 55
BELOW = 55
GAP = 75
load 'plots/grid.gp'
set style fill solid noborder
do for [w = 1:2] {
    eval panel(w)
    LIST = w == 1 ? EXPERIMENT : CONTROL
    NAME = word(LIST, 1)
    heading = (w == 1 ? 'experiment: ' : 'control: ').(words(LIST) > 1 ? sprintf('a %s, b %s', word(LIST, 1), word(LIST, 2)) : NAME)
    set title heading font (NARROW && strlen(heading) > 44 ? ',9' : ',11')
    set xlabel SEVERAL ? 'round of steps' : 'event'
    set ylabel 'memory (GiB)'
    set xrange [*:*]
    # 18k, and few of them: labels of six digits would overlap.
    events = last_event(NAME)
    set format x (events > 5000 ? '%.0s%c' : '%g')
    if (events > 5000) { set xtics step(events) } else { set xtics autofreq }
    top = words(LIST) > 1 ? larger(most(NAME), most(word(LIST, 2))) : most(NAME)
    set yrange [0:larger(top, 1.0) / GIB * 1.08]
    names = processes(NAME)
    if (BY_STEP) {
        set xlabel 'step'
        set ylabel 'time in driver calls (ms)'
        set format x '%g'
        set xtics autofreq
        set yrange [0:larger(most_ms(NAME), 1e-3) * 1.08]
        set boxwidth 0.7
        plot steps(NAME) using 1:($2 / 1e6) with boxes lc rgb colour(1)
    } else { if (names eq '') {
        set yrange [0:1]
        set xrange [0:1]
        set label 1 'no memory over time: refused, or on a card' at graph 0.5, 0.5 center textcolor rgb '#666666'
        plot NaN
        unset label 1
    } else { if (SEVERAL) {
        plot for [i = 1:words(names)] of(NAME, word(names, i)) using 2:($4 / GIB) with steps lw 2.5 lc rgb colour(i), \
             for [i = 1:words(names)] of(NAME, word(names, i)) using 2:($4 / GIB) with points pt point(i) ps 0.7 lc rgb colour(i)
    } else { if (words(LIST) > 1) {
        plot of(NAME, 'pool') using 2:($3 / GIB) with filledcurves y1=0 lc rgb GREY, \
             '' using 2:($4 / GIB) with steps lw 2.5 lc rgb colour(1), \
             of(word(LIST, 2), 'pool') using 2:($4 / GIB) with steps lw 2.5 dt 3 lc rgb colour(2)
    } else {
        plot of(NAME, 'pool') using 2:($3 / GIB) with filledcurves y1=0 lc rgb GREY, \
             '' using 2:($4 / GIB) with steps lw 2.5 lc rgb colour(1)
    } } } }
    unset label 1000
}
eval panel(3)
set title MEASURE."\nbound (dashed): ".BOUND font ',9'
unset xlabel; unset ylabel
set format x '%g'
set xrange [0.4:2.6]
limit = word(BOUND, 2) + 0.0
value = VALUE + 0.0 > 1e300 ? limit * 2 : VALUE + 0.0
control = CONTROL_VALUE + 0.0 > 1e300 ? limit * 2 : CONTROL_VALUE + 0.0
high_end = larger(larger(value, control), limit)
set yrange [0:1.25 * larger(high_end, 1e-9)]
set xtics scale 0 ('experiment' 1, 'control' 2)
set boxwidth 0.6
# A number above its bar, on white if the line of the bound would cross it.
set style textbox opaque noborder fillcolor rgb '#FFFFFF'
set label 3 TOLD at first 1, first value center offset 0,0.6 front boxed font ',9' textcolor rgb '#222222'
set label 4 CONTROL_TOLD at first 2, first control center offset 0,0.6 front boxed font ',9' textcolor rgb '#222222'
# Large numbers of bytes get a suffix: 40M, not 4e+07.
if (high_end >= 1e5) { set format y '%.0s%c' }
plot '+' every ::::0 using (1):(value) with boxes lc rgb COLOUR[1], '+' every ::::0 using (2):(control) with boxes lc rgb GREY, \
     limit with lines lc rgb '#000000' dt 2 lw 1
unset xtics; unset arrow
load 'plots/key.gp'
