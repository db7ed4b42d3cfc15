# The look of every figure: one palette, one font, one size of letters. plots/render.sh runs each
# script from the root of the repository and gives it
#   IN         the CSV file (plots/clean.awk has been over it)
#   OUT, TERM  the file to write, and svg or png
#   POLICIES   all policies of the run, in its order: a policy has one colour in all figures
#   NAME       the workload, for figures of one workload
# A script sets HEIGHT before it loads this.

WIDTH = 1000
if (TERM eq 'png') {
    set terminal pngcairo size WIDTH,HEIGHT font 'DejaVu Sans,10' background rgb 'white'
} else {
    set terminal svg size WIDTH,HEIGHT font 'DejaVu Sans,12' background rgb 'white'
}
set termoption noenhanced # an underscore is an underscore
set output OUT
set encoding utf8
set datafile separator ','
set datafile missing ''

# Okabe and Ito's colours, told apart with every kind of colour vision, then darker ones of the
# same kind; beyond eight a dash tells them apart.
array COLOUR[8] = ['#0072B2', '#D55E00', '#009E73', '#CC79A7', '#E69F00', '#56B4E9', '#7A4B00', '#000000']
array POINT[8] = [7, 5, 9, 13, 11, 15, 6, 4]
colour(i) = COLOUR[(i - 1) % 8 + 1]
point(i) = POINT[(i - 1) % 8 + 1]
dash(i) = (i - 1) / 8 + 1
GREY = '#D9D9D9'
N = words(POLICIES)

set border 3 lc rgb '#666666' lw 1
set tics nomirror out scale 0.5 textcolor rgb '#222222'
set grid y lc rgb '#E4E4E4' lw 1 lt 1
set title offset 0,-0.6 font ',11' textcolor rgb '#222222'
set xlabel textcolor rgb '#222222'
set ylabel offset 0.5,0 textcolor rgb '#222222'
set key Left reverse samplen 1.6 spacing 1.15 textcolor rgb '#222222'

GIB = 1024.0 ** 3
MIB = 1024.0 ** 2

# The rows of IN in which the first column, or the first two, hold a value.
rows1(value) = sprintf("< awk -F, '$1 == \"%s\"' '%s'", value, IN)
rows2(first, second) = sprintf("< awk -F, '$1 == \"%s\" && $2 == \"%s\"' '%s'", first, second, IN)

# The name of policy i where column `policy_column` of IN holds it; nothing, and so no entry in the
# key, where this figure has no number for it.
if (!exists("policy_column")) policy_column = 2
IN_FILE = ' '.system(sprintf("awk -F, -v c=%d 'NR > 1 && !seen[$c]++ { printf \"%%s \", $c }' '%s'", policy_column, IN))
name_if_in_file(i) = strstrt(IN_FILE, ' '.word(POLICIES, i).' ') > 0 ? word(POLICIES, i) : ''
