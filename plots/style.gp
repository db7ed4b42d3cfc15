# The style of every figure: one palette, one font, one size of letters. plots/render.sh runs each
# script from the root of the repository and sets
#   IN         the CSV file (after plots/clean.awk)
#   OUT, TERM  the file to write, and its form: svg, png, or pdf, as wide as a paper's column (8.5 cm);
#              svg-column and png-column are the same picture as that
#   POLICIES   all policies of the run, in its order: a policy has one style in all figures
#   NAME       the workload, for figures of one workload
# A script loads this file, sets the variables that grid.gp needs, and loads grid.gp.

NARROW = TERM eq 'pdf' || strstrt(TERM, '-column') > 0
set encoding utf8
set datafile separator ','
set datafile missing ''

# Colours after Okabe and Ito, which every kind of colour vision can tell apart. There are eight colours,
# eleven marks and four dashes: colour and mark together repeat after 88 policies, colour and dash after 32.
array COLOUR[8] = ['#0072B2', '#D55E00', '#009E73', '#CC79A7', '#E69F00', '#56B4E9', '#7A4B00', '#000000']
array POINT[11] = [7, 5, 9, 13, 11, 6, 4, 8, 12, 10, 3]
colour(i) = COLOUR[(i - 1) % 8 + 1]
point(i) = POINT[(i - 1) % 11 + 1]
dash(i) = (i - 1) / 8 % 4 + 1
GREY = '#D9D9D9'
N = words(POLICIES)

set border 3 lc rgb '#666666' lw 1
set tics nomirror out scale 0.5 textcolor rgb '#222222'
set grid y lc rgb '#E4E4E4' lw 1 lt 1
set title offset 0,-0.6 font ',11' textcolor rgb '#222222'
set xlabel textcolor rgb '#222222'
set ylabel textcolor rgb '#222222'
unset key

GIB = 1024.0 ** 3
MIB = 1024.0 ** 2

# The rows of IN in which the first column, or the first two, hold a value.
rows1(value) = sprintf("< awk -F, '$1 == \"%s\"' '%s'", value, IN)
rows2(first, second) = sprintf("< awk -F, '$1 == \"%s\" && $2 == \"%s\"' '%s'", first, second, IN)
# The different values of column c, in the order of the file, of rows in which `shown_by` is not empty.
values(c, shown_by) = system(sprintf("awk -F, 'NR > 1 && $%d != \"\" && !seen[$%d]++ { printf \"%%s \", $%d }' '%s'", shown_by, c, c, IN))
# Whether `name` is a word of `list`; the larger of two numbers; a quotient of whole numbers, rounded up.
has(list, name) = strstrt(' '.list.' ', ' '.name.' ') > 0
larger(a, b) = a > b ? a : b
parts(a, b) = (a + b - 1) / b

# The key: one entry for each policy that has rows in IN. A script may add entries or write a key of its
# own. A mark or a width of 0 is not drawn.
array KEY_NAME[N + 8]
array KEY_COLOUR[N + 8]
array KEY_POINT[N + 8]
array KEY_DASH[N + 8]
array KEY_WIDTH[N + 8]
K = 0
KEY_BAR = 0 # the entry that is drawn as a mark with a whisker
key_add(name, rgb, mark, dashes, width) = (K = K + 1, KEY_NAME[K] = name, KEY_COLOUR[K] = rgb, KEY_POINT[K] = mark, KEY_DASH[K] = dashes, KEY_WIDTH[K] = width, K)
# A spec as a reader can paste it: plots/clean.awk writes ; for its commas and ^ for its apostrophes.
swapped(text, from, to) = (place = strstrt(text, from), place == 0 ? text : text[1:place - 1].to.swapped(text[place + 1:*], from, to))
pasted(text) = swapped(swapped(text, ';', ','), '^', "'")
# A workload without the folders and the ending of its file, as recordings are named.
plain(name) = system("echo '".name."' | sed 's|[^:=;]*/||g; s|[.]csv[.]gz||g; s|[.]default||g'")
# A name of more than `most` letters is cut after its last : or ; before that.
cut_at(text, most) = strlen(text) <= most ? strlen(text) : (cut = most, (sum [i = 1:most + 1] (has(': ;', text[i:i]) ? (cut = i, 0) : 0)), cut)
in_lines(text, most) = strlen(text) <= most ? pasted(text) : pasted(text[1:cut_at(text, most)])."\n".in_lines(text[cut_at(text, most) + 1:*], most)
lines_in(text, most) = strlen(text) <= most ? 1 : 1 + lines_in(text[cut_at(text, most) + 1:*], most)
# Of the names in `list`: the length of the longest, and the most lines that one has.
longest_in(list) = (widest = 0, (sum [i = 1:words(list)] (widest = larger(widest, strlen(word(list, i))), 0)), widest)
most_lines(list, most) = (lines = 1, (sum [i = 1:words(list)] (lines = larger(lines, lines_in(word(list, i), most)), 0)), lines)
# Adds all policies in `list`, with lines of `width`; returns their number.
key_policies(list, width) = (sum [i = 1:N] (has(list, word(POLICIES, i)) ? key_add(word(POLICIES, i), colour(i), point(i), dash(i), width) > 0 : 0))
