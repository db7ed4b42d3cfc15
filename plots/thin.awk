# Reduces a long series to the rows that a picture can show. The axis (column `x`, up to `end`) is cut into
# `buckets` of equal length, about a pixel each. Each bucket keeps, in their order, the first and the last
# row and those with the minimum and the maximum of column `by`. Of consecutive equal values the first is
# kept, which gives the same curve in steps. Peaks and long plateaus stay. Rows of other policies than
# `policy` are left out.
BEGIN { FS = OFS = "," }
$1 != policy { next }
{
    bucket = end > 0 ? int($x * buckets / end) : 0
    if (rows == 0 || bucket != current) { flush(); current = bucket; low = high = 1; rows = 0 }
    row[++rows] = $0
    value[rows] = $by + 0
    if (value[rows] < value[low]) low = rows
    if (value[rows] > value[high]) high = rows
    # At most four rows are needed: the last is overwritten unless it is the minimum or the maximum.
    if (rows > 4) compact()
}
END { flush(); if (final != "" && final != shown) print final }

# Five rows: the first, two that may be the minimum and the maximum, the previous last, the last. Drops the
# fourth or the one that is neither minimum nor maximum.
function compact(    i, kept) {
    kept = 1
    for (i = 2; i < rows; i++)
        if (i == low || i == high) {
            kept++
            row[kept] = row[i]; value[kept] = value[i]
            if (low == i) low = kept
            if (high == i) high = kept
        }
    kept++
    row[kept] = row[rows]; value[kept] = value[rows]
    if (low == rows) low = kept
    if (high == rows) high = kept
    rows = kept
}
function flush(    i) {
    if (rows > 1) compact()
    for (i = 1; i <= rows; i++) show(row[i], value[i])
    if (rows > 0) final = row[rows]
}
function show(text, number) {
    if (shown != "" && number == last) return
    print text
    shown = text
    last = number
}
