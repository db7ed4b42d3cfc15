# Of a long series keeps what a picture can show: of each of `buckets` runs of rows the first row,
# and those with the least and the most in column `by`; of equal values behind each other the first,
# and the last of all, which is the same curve in steps. Peaks survive. Rows of other policies than
# `policy` are left out. Reads the file twice: awk -f thin.awk FILE FILE.
BEGIN { FS = OFS = "," }
$1 != policy { next }
NR == FNR { total++; next }
{
    bucket = int(seen++ * buckets / total)
    if (bucket != last || seen == 1) { flush(); last = bucket; first = low = high = $0; least = most = $by + 0; low_is_later = 0 }
    else {
        if ($by + 0 < least) { least = $by + 0; low = $0; low_is_later = 1 }
        if ($by + 0 > most) { most = $by + 0; high = $0; low_is_later = 0 }
    }
    end = $0
}
END { flush(); if (end != "" && end != shown) print end }
function flush() {
    if (first == "") return
    show(first)
    # In the order in which they came.
    show(low_is_later ? high : low)
    show(low_is_later ? low : high)
}
function show(row,    fields) {
    split(row, fields, FS)
    if (row == shown || (shown != "" && fields[by] == value)) return
    print row
    shown = row
    value = fields[by]
}
