# Of a long series keeps what a picture can show: of each of `buckets` runs of rows the first row,
# and those with the least and the most in column `by`. Peaks survive. Rows of other policies than
# `policy` are left out. Reads the file twice: awk -f thin.awk FILE FILE.
BEGIN { FS = OFS = "," }
$1 != policy { next }
NR == FNR { total++; next }
{
    bucket = int(seen++ * buckets / total)
    if (bucket != last) { flush(); last = bucket; first = $0; least = most = $by; low = high = first; order = 0 }
    else {
        if ($by + 0 < least + 0) { least = $by; low = $0; order = 1 }
        if ($by + 0 > most + 0) { most = $by; high = $0; order = 0 }
    }
}
END { flush() }
function flush() {
    if (first == "") return
    print first
    # In the order in which they came.
    if (order) { if (high != first) print high; if (low != first) print low }
    else { if (low != first) print low; if (high != first) print high }
}
