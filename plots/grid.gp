# Panels side by side, one per workload, and one cell for the names of the policies. Sets PANELS (the
# workloads of IN in which column `shown_by` holds something), COLUMNS and ROWS, and begins the
# multiplot. To be loaded with `shown_by` set, in place of style.gp.
PANELS = system(sprintf("awk -F, -v c=%d 'NR > 1 && $c != \"\" && !seen[$1]++ { printf \"%%s \", $1 }' '%s'", shown_by, IN))
CELLS = words(PANELS) + 1
COLUMNS = CELLS <= 4 ? 2 : 3
ROWS = (CELLS + COLUMNS - 1) / COLUMNS
HEIGHT = 250 * ROWS + 40
load 'plots/style.gp'
set multiplot layout ROWS,COLUMNS title TITLE font ',13' margins 0.065,0.985,0.5 / (ROWS * 3.2),1 - 65.0 / HEIGHT spacing 0.065,0.36 / ROWS
