# Memory over time of one workload: what the program holds live (grey), and for each policy what it
# has reserved (above) and what the device charges for it (below). Policies that hold more than four
# times the peak of live bytes all along would flatten the rest: they are named, not drawn.
HEIGHT = 640
policy_column = 1
load 'plots/style.gp'

first_policy = system(sprintf("awk -F, 'NR == 2 { print $1 }' '%s'", IN))
# Is there a time in the recording?
timed = int(system(sprintf("awk -F, 'NR > 1 && $3 + 0 > 0 { print 1; found = 1; exit } END { if (!found) print 0 }' '%s'", IN)))
x = timed ? 3 : 2
peak_live = system(sprintf("awk -F, 'NR > 1 && $4 + 0 > m { m = $4 } END { printf \"%%.0f\", m }' '%s'", IN)) + 0.0
top = 4 * peak_live
unit = peak_live >= 2 * GIB ? GIB : MIB
unit_name = peak_live >= 2 * GIB ? 'GiB' : 'MiB'

# The policies that stay below `top`, and a text that names the others with what they hold.
shown(column) = system(sprintf("awk -F, -v top=%.0f -v c=%d 'NR > 1 { if (!($1 in m)) order[++n] = $1; if ($c + 0 > m[$1] + 0) m[$1] = $c } END { for (i = 1; i <= n; i++) if (m[order[i]] + 0 <= top) printf \"%%s \", order[i] }' '%s'", top, column, IN))
others(column) = system(sprintf("awk -F, -v top=%.0f -v c=%d -v unit=%.0f -v name=%s 'NR > 1 { if (!($1 in m)) order[++n] = $1; if ($c + 0 > m[$1] + 0) m[$1] = $c } END { for (i = 1; i <= n; i++) if (m[order[i]] + 0 > top) printf \"%%s %%.1f %%s\\n\", order[i], m[order[i]] / unit, name }' '%s'", top, column, unit, unit_name, IN))
has(list, name) = strstrt(' '.list.' ', ' '.name.' ') > 0

# The end of the time axis is the end of the data.
end_x = system(sprintf("awk -F, -v c=%d 'NR > 1 && $c + 0 > m { m = $c } END { print m + 0 }' '%s'", x, IN)) + 0.0
thin(policy, column) = sprintf("< awk -v policy='%s' -v by=%d -v x=%d -v end=%.9g -v buckets=500 -f plots/thin.awk '%s'", policy, column, x, end_x, IN)
set xrange [0:end_x > 0 ? end_x : 1]
set yrange [0:*]
set offsets 0,0,graph 0.06,0
set style fill solid noborder
set multiplot title 'memory of '.NAME.' over time' font ',13'
set lmargin at screen 0.075
set rmargin at screen 0.80
set ylabel sprintf('memory (%s)', unit_name)

array PANEL[2] = ['reserved: what the policy holds, by its own count', 'physical: the pages that the device charges']
do for [p = 1:2] {
    column = 4 + p
    list = shown(column)
    set tmargin at screen (p == 1 ? 0.90 : 0.44)
    set bmargin at screen (p == 1 ? 0.55 : 0.09)
    set title PANEL[p]
    if (p == 2) { set xlabel (timed ? 'time in the recording (s)' : 'event') } else { unset xlabel }
    unset label 1
    note = others(column)
    if (strlen(note) > 0) { set label 1 "not drawn, too high:\n".note at screen 0.815, screen (p == 1 ? 0.90 - 0.0285 * (N + 2) : 0.44) left font ',9' textcolor rgb '#666666' }
    if (p == 1) { set key at screen 0.815, screen 0.90 left top vertical maxrows 30 } else { unset key }
    plot thin(first_policy, 4) using x:($4 / unit) with fillsteps lc rgb GREY title 'live', \
         for [i = 1:N] (has(list, word(POLICIES, i)) ? thin(word(POLICIES, i), column) : '/dev/null') \
            using x:(column(column) / unit) with steps lw 1.6 dt dash(i) lc rgb colour(i) notitle, \
         for [i = 1:N] NaN with lines lw 2.5 dt dash(i) lc rgb colour(i) title name_if_in_file(i)
}
unset multiplot
