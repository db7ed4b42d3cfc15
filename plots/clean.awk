# Makes a CSV file of results plain for gnuplot and awk. A quoted field loses its quotes. In it commas
# become ;, spaces become _, and apostrophes become ^, so that a policy spec stays one word.
{
    parts = split($0, part, "\"")
    line = part[1]
    for (i = 2; i <= parts; i++) {
        if (i % 2 == 0) gsub(/,/, ";", part[i])
        line = line part[i]
    }
    gsub(/ /, "_", line)
    gsub(/'/, "^", line)
    print line
}
