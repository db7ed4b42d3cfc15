# Intervals of medians. If the points of a figure are medians of replicates or repetitions, its data have
# the columns runs, over and level, and after them low and high of each figure in turn
# (plots/README.md). SPREAD is the position of `runs`, or 0 if points are single runs and nothing is drawn.
# Load it after style.gp and before grid.gp. It adds an explanation of the whiskers, SPREAD_OF, to the key.
# A script keeps their plot in WHISKERS, which is empty if there are none.
SPREAD = int(system(sprintf("awk -F, 'NR == 1 { for (i = 1; i <= NF; i++) if ($i == \"runs\") c = i; exit } END { print c + 0 }' '%s'", IN)))
SPREAD_OF = SPREAD == 0 ? '' : system(sprintf("awk -F, -v c=%d 'NR > 1 && $c != \"\" { print \"median of \" $c \" \" ($(c + 1) == \"draws\" ? \"replicates\" : $(c + 1)) \", \" ($(c + 2) != \"\" ? \"95 %% interval: not drawn if shorter than its mark\" : \"least to most\"); exit }' '%s'", SPREAD, IN))
if (SPREAD_OF ne '') { KEY_BAR = key_add(SPREAD_OF, '#444444', 7, 1, 0) }
# The columns of the n-th figure's interval.
low_of(n) = SPREAD + 1 + 2 * n
high_of(n) = SPREAD + 2 + 2 * n
# The maximum of the n-th figure, which is in column c: with whiskers their highest end. (gnuplot does not
# read 5e-05 as a number, but 5.0e-05.)
most_of(c, n) = system(sprintf("awk -F, -v c=%d 'NR > 1 && $c + 0 > m { m = $c } END { m = m + 0 \"\"; if (m !~ /[.]/) sub(/e/, \".0e\", m); print m }' '%s'", SPREAD_OF eq '' ? c : high_of(n), IN)) + 0.0
set errorbars 0.6
# A whisker that is not longer than its mark is not drawn: in an open mark it would look like another
# mark. `pixels` is its length.
drawn(value, pixels) = pixels > (NARROW ? 7 : 9) ? value : NaN
