# Makes a CSV file of results plain for gnuplot and awk. A quoted field loses its quotes. In it commas
# become ;, spaces become _, and apostrophes are removed, so that a policy spec stays one word.
{
    line = ""
    quoted = 0
    for (i = 1; i <= length($0); i++) {
        c = substr($0, i, 1)
        if (c == "\"") {
            quoted = !quoted
            continue
        }
        if (quoted && c == ",") c = ";"
        if (c == " ") c = "_"
        if (c != "'") line = line c
    }
    print line
}
