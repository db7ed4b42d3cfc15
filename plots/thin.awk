# Reduces a long series to the rows that a picture can show. The axis (column `x`, up to `end`) is cut into
# `buckets` of equal length, about a pixel each. For each column of `by` (numbers with spaces between) a bucket
# keeps, in their order, the first and the last row and those with the minimum and the maximum. Of consecutive
# equal values the first is kept, which gives the same curve in steps. Peaks and long plateaus stay, and the last
# row. Rows of other policies than `policy` are left out; without one, the title is.
BEGIN { FS = ","; columns = split(by, column, " ") }
policy == "" ? NR == 1 : $1 != policy { next }
{
    bucket = end > 0 ? int($x * buckets / end) : 0
    if (bucket != current || last == "") {
        flush()
        current = bucket
        first = $0
        first_at = NR
        for (c = 1; c <= columns; c++) {
            from[c] = low[c] = high[c] = $column[c] + 0
            low_at[c] = high_at[c] = NR
        }
    }
    for (c = 1; c <= columns; c++) {
        value = $column[c] + 0
        if (value < low[c]) { low[c] = value; low_at[c] = NR; low_row[c] = $0 }
        if (value > high[c]) { high[c] = value; high_at[c] = NR; high_row[c] = $0 }
        to[c] = value
    }
    last = $0
    last_at = NR
}
END { flush(); if (last != "" && last_at != shown_at) print last }

function flush(    i, least) {
    if (last == "") return
    for (c = 1; c <= columns; c++) {
        offer(first_at, first, from[c])
        if (low_at[c] <= high_at[c]) offer(low_at[c], low_row[c], low[c])
        offer(high_at[c], high_row[c], high[c])
        if (low_at[c] > high_at[c]) offer(low_at[c], low_row[c], low[c])
        offer(last_at, last, to[c])
    }
    while (offered > 0) {
        for (least = i = 1; i <= offered; i++) if (at[i] < at[least]) least = i
        if (at[least] != shown_at) print row[least]
        shown_at = at[least]
        at[least] = at[offered]
        row[least] = row[offered--]
    }
}
# The row is shown unless column c has the value that it was last shown with.
function offer(number, text, amount) {
    if (c in shown && shown[c] == amount) return
    shown[c] = amount
    at[++offered] = number
    row[offered] = text == "" || number == first_at ? first : text
}
