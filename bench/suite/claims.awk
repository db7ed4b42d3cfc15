# Reads the table of claims (workloads/suites/claims/claims.ini); bench/suite/claims.sh calls it.
#   -v mode=experiments   name, command, split_step, tape, phase and later_steps, separated by |, of the experiments that
#                         can be measured with -v device=sim or cuda and -v cards=N
#   -v mode=judge         the page in Markdown, from the numbers in the second file (experiment,field,value);
#                         -v tsv=FILE: verdicts and the data of figures; -v swap=ROW (all: all rows): with experiment and
#                         control exchanged. Exit status 1 if a verdict is not the expected one. swap=each: each row in turn,
#                         in `tsv` alone; the lines of a row end with a line "status", the row and that status
# A claim's measure is one number, or two with / or - between. Its letters a and b are the experiments that the
# row names; for the control they are the experiments that `control` names.
function fail(text) {
    printf "claims: %s:%d: %s\n", FILENAME, FNR, text >"/dev/stderr"
    failed = 2
    exit 2
}
# An error that is found after the table is read.
function wrong(text) {
    printf "claims: %s: %s\n", ARGV[1], text >"/dev/stderr"
    failed = 2
    exit 2
}
function trim(text) { gsub(/^[ \t]+|[ \t]+$/, "", text); return text }
function get(row, key) { return (row SUBSEP key) in of ? of[row, key] : "" }
BEGIN {
    number["machine", "cards"] = cards == "" ? 1 : cards # the numbers override it if they have it
    known["experiment"] = " command capacity split_step tape phase later_steps device on_card "
    known["document"] = " title "
    known["claim"] = " says document against experiment control measure holds expected device note "
}
FNR == 1 { files++; sub(/^\357\273\277/, "") }
{ sub(/\r$/, "") }
files == 2 {
    at = index($0, ",")
    field = substr($0, at + 1)
    number[substr($0, 1, at - 1), substr(field, 1, index(field, ",") - 1)] = substr(field, index(field, ",") + 1)
    next
}
/^[ \t]*(#|$)/ { next }
/^\[/ {
    if (!match($0, /^\[(document|experiment|claim) [a-z0-9_]+\]$/)) fail("wanted [document NAME], [experiment NAME] or [claim NAME]: " $0)
    split(substr($0, 2, length($0) - 2), word, " ")
    kind = word[1]; name = word[2]; section = kind " " name
    if (section in there) fail(section " is there twice")
    there[section] = 1
    if (kind == "claim") claims[++claim_count] = name
    if (kind == "experiment") experiments[++experiment_count] = name
    next
}
{
    if (!(at = index($0, "=")) || section == "") fail("wanted key = value in a section: " $0)
    key = trim(substr($0, 1, at - 1))
    if (!index(known[kind], " " key " ")) fail("there is no key \"" key "\" in a section [" kind "]")
    if ((section SUBSEP key) in of) fail("\"" key "\" is there twice")
    of[section, key] = trim(substr($0, at + 1))
}
# The words of the command of an experiment on the device.
function command(name,    text, on) {
    text = get("experiment " name, "command")
    if (text ~ /^tenants /) return text (device == "sim" ? "" : " -d " device)
    on = text ~ /^capacity / ? "sim" : device
    if (get("experiment " name, "capacity") != "") on = on ":capacity=" get("experiment " name, "capacity")
    return text " -d " on
}
# Why an experiment cannot be measured here; "" if it can.
function obstacle(name,    text, wanted) {
    text = get("experiment " name, "command")
    wanted = get("experiment " name, "device")
    if (wanted == "cuda" && device == "sim") return "needs a card"
    if (device == "sim") return ""
    if (text !~ /^tenants /) return ""
    if (get("experiment " name, "on_card") != "yes") return "several processes: simulated only"
    wanted = cards_of(text)
    return wanted <= number["machine", "cards"] ? "" : "needs " wanted " cards"
}
# The number of cards in the suite of a command.
function cards_of(text,    part, line, count) {
    split(text, part, " ")
    while ((getline line <part[2]) > 0) count += line ~ /^card *=/
    close(part[2])
    return count
}
function list_experiments(    i, name) {
    for (i = 1; i <= experiment_count; i++) {
        name = experiments[i]
        if (get("experiment " name, "command") == "") wrong("[experiment " name "] has no command")
        if (obstacle(name) == "")
            print name "|" command(name) "|" get("experiment " name, "split_step") "|" get("experiment " name, "tape") "|" get("experiment " name, "phase") "|" get("experiment " name, "later_steps")
    }
}
# Checks each row before anything is measured. `side` is experiment or control.
function check_side(row, side, text,    list, count, which) {
    which = index("ab", substr(text, 1, 1))
    count = split(get(row, side), list, " ")
    if (text !~ /^[ab]\.[a-z0-9_.]+$/) wrong("[" row "]: no such operand: \"" text "\"; a.FIELD or b.FIELD")
    if (which > count) wrong("[" row "]: " text " wants a second " side)
    for (; count; count--)
        if (!(("experiment " list[count]) in there)) wrong("[" row "]: there is no [experiment " list[count] "]")
}
function check(name,    row, part, parts, i) {
    row = "claim " name
    if (get(row, "says") == "" || get(row, "holds") == "" || get(row, "measure") == "" || get(row, "experiment") == "" || get(row, "control") == "")
        wrong("[" row "] wants says, experiment, control, measure and holds")
    if (get(row, "holds") !~ /^[<>]= [-+]?[0-9.]+([eE][-+]?[0-9]+)?$/) wrong("[" row "]: a bound is >= or <= and a number: \"" get(row, "holds") "\"")
    if (get(row, "expected") !~ /^(|holds|does not hold)$/) wrong("[" row "]: expected is \"holds\" or \"does not hold\", not \"" get(row, "expected") "\"")
    parts = split(get(row, "measure"), part, " ")
    if (parts != 1 && (parts != 3 || part[2] !~ /^[-\/]$/)) wrong("[" row "]: a measure is X, X / Y or X - Y: \"" get(row, "measure") "\"")
    for (i = 1; i <= parts; i += 2) {
        check_side(row, "experiment", part[i])
        check_side(row, "control", part[i])
    }
}
# The value of one operand, FIELD of a or b; `names` are the experiments. Sets `missing`.
function operand(text, names,    list, which, field, key) {
    split(names, list, " ")
    which = index("ab", substr(text, 1, 1))
    field = substr(text, 3)
    if (obstacle(list[which]) != "") { missing = obstacle(list[which]); return 0 }
    if (!((list[which], field) in number) || number[list[which], field] !~ /^[-+]?[0-9.]+([eE][-+]?[0-9]+)?$/) {
        missing = "not measured: " field " of " list[which]
        return 0
    }
    return number[list[which], field] + 0
}
# The measure of a row; `first` and `second` are its operands.
function measured(row, names,    part, parts) {
    missing = ""
    parts = split(get(row, "measure"), part, " ")
    if (parts == 1) return first = operand(part[1], names)
    first = operand(part[1], names)
    second = operand(part[3], names)
    if (part[2] == "-") return first - second
    return second ? first / second : first > 0 ? 1e308 : 0
}
function meets(value, bound,    part) {
    split(bound, part, " ")
    return part[1] == ">=" ? value >= part[2] + 0 : value <= part[2] + 0
}
function shown(value) {
    return value >= 1e308 ? "from nothing" : value == int(value) && value < 1e15 ? sprintf("%.0f", value) : sprintf("%.4g", value)
}
function size(bytes) {
    return bytes >= 2 ^ 30 ? sprintf("%.2f GiB", bytes / 2 ^ 30) : sprintf("%.1f MiB", bytes / 2 ^ 20)
}
# "0.0039 (4.0 MiB / 1.00 GiB)"
function told(row, value,    part) {
    split(get(row, "measure"), part, " ")
    if (part[1] !~ /bytes$/) return shown(value)
    if (!(3 in part)) return size(value)
    return shown(value) " (" size(first) " " part[2] " " size(second) ")"
}
# The titles of the documents whose names are listed; other words stay unchanged.
function titles(names,    list, i, count, text) {
    count = split(names, list, " ")
    for (i = 1; i <= count; i++) {
        if (!(("document " list[i]) in there)) return names
        text = text (i > 1 ? "; " : "") "\"" get("document " list[i], "title") "\""
    }
    return text
}
function shell_text(names,    list, i, count, text, one) {
    count = split(names, list, " ")
    for (i = 1; i <= count; i++) {
        one = command(list[i])
        text = text (i > 1 ? "; " : "") (count > 1 ? substr("ab", i, 1) ": " : "") "`" one "`" \
            (device != "sim" && one ~ /^capacity / ? ", and `run` on the card with that capacity and with one page less" : "")
    }
    return text
}
function judge(name,    row, yes, no, value, told_a, told_b, verdict, expected, swapped) {
    row = "claim " name
    yes = get(row, "experiment"); no = get(row, "control")
    if (swap == name || swap == "all") { swapped = yes; yes = no; no = swapped }
    expected = get(row, "expected") == "" ? "holds" : get(row, "expected")
    value = measured(row, yes)
    if (missing != "") { verdict = missing; told_a = told_b = value = control = "-" }
    else {
        told_a = told(row, value)
        holds = meets(value, get(row, "holds"))
        control = measured(row, no)
        told_b = told(row, control)
        if (missing != "") verdict = missing
        # The result of the control must be the opposite: otherwise the measure shows nothing.
        else if (meets(control, get(row, "holds")) == holds) verdict = "not shown: the control comes out the same way"
        else verdict = holds ? "holds" : "does not hold"
    }
    count[verdict == expected ? "as" : verdict ~ /^(needs|several)/ ? "not run" : "else"]++
    if (verdict ~ /^(holds|does not hold|not )/ && verdict != expected) bad = 1
    if (tsv != "") print name, verdict, expected, value, control, get(row, "holds"), yes, no, told_a, told_b, get(row, "measure"), get(row, "says") >tsv
    if (verdict != expected && verdict !~ /^(needs|several)/) verdict = "**" verdict "**"
    picture = value == "-" ? "-" : "[figure](figures/claim-" name ".svg)"
    rows = rows sprintf("| %s | %s | %s | %s | %s %s | %s | %s | %s | %s |\n", name, get(row, "says"), shell_text(yes), shell_text(no), get(row, "measure"), get(row, "holds"), told_a, told_b, verdict, picture)
    detail = detail sprintf("\n### %s: %s\n\n%s. Said by: %s.\n\n- experiment: %s\n- control: %s\n", name, verdict, get(row, "says"), titles(get(row, "document")), shell_text(get(row, "experiment")), shell_text(get(row, "control")))
    if (get(row, "note") != "") detail = detail "- " get(row, "note") "\n"
    if (value != "-") detail = detail sprintf("\n![%s](figures/claim-%s.svg)\n", get(row, "says"), name)
    if (get(row, "against") != "")
        contradictions = contradictions sprintf("| %s | %s | %s | %s |\n", titles(get(row, "document")), get(row, "says"), get(row, "against"), verdict)
}
# Judges all rows as often as there are rows, each time with another one exchanged.
function judge_each(    s, c) {
    for (s = 1; s <= claim_count && !failed; s++) {
        swap = claims[s]
        bad = 0; rows = detail = contradictions = ""
        for (c = 1; c <= claim_count && !failed; c++) judge(claims[c])
        print "status", swap, bad >tsv
    }
}
END {
    if (failed) exit failed
    if (!claim_count) wrong("there is no [claim] in it")
    for (c = 1; c <= claim_count; c++) check(claims[c])
    if (mode == "experiments") { list_experiments(); if (failed) exit failed; exit 0 }
    OFS = "\t"; OFMT = "%.12g" # "5e+09" is no number to gnuplot
    if (tsv != "") print "row", "verdict", "expected", "value", "control_value", "bound", "experiment", "control", "measured", "control_measured", "measure", "says" >tsv
    if (swap == "each") { judge_each(); exit failed }
    for (c = 1; c <= claim_count && !failed; c++) judge(claims[c])
    if (failed) exit failed
    print "# What people say about GPU memory, row by row\n"
    printf "Device `%s`. Written by `make claims` from workloads/suites/claims/claims.ini. A row holds if its measure meets the\n", device
    print "bound and its control does not. The control is the same measure of a program or policy for which the claim is not true. The"
    print "policies and the rules of settings are this rig's own models of the frameworks; no framework runs here. A rule of its generator"
    print "(`workloads/gen`) decides what a generated program keeps and when. Rows that were not run do not count as holding.\n"
    printf "%d of %d rows came out as expected, %d did not, %d were not run here.\n\n", count["as"], claim_count, count["else"], count["not run"]
    print "| row | claim | experiment | control | measure and bound | measured | by the control | verdict | figure |\n| --- | --- | --- | --- | --- | ---: | ---: | --- | --- |"
    printf "%s", rows
    print "\n## Documents that contradict each other or known facts\n\n| document | says | against it | verdict on what it says |\n| --- | --- | --- | --- |"
    printf "%s", contradictions
    print "\n## Each row: experiment, control, figure"
    printf "%s", detail
    exit bad
}
