#!/bin/bash
# Judges the measurements of bench/suite/claims_card.sh and writes the page, in Markdown, to standard output.
# Usage: bench/suite/claims_page.sh FOLDER [FIGURES]     (FIGURES: the folder of the page's pictures)
# A claim holds if all its measurements exist and meet their bounds, which the page states, and if each control, a
# program or policy for which the claim is not true, comes out the other way.
# Exit status 1 if a claim does not hold or was not measured.
usage() { sed -n '2,/^[^#]/s/^# \{0,1\}//p' "$0" | fold -sw 80; }
case ${1:-} in -h | --help) usage && exit 0 ;; esac
set -u
[ $# -ge 1 ] || { usage; exit 2; }
[ -e "$1/numbers.csv" ] || { echo "claims: $1/numbers.csv is not there: bench/suite/claims_card.sh writes it" >&2; exit 2; }
awk -F, -v figures="${2:-figures}" '
function known(key) { return key in n && n[key] != "" }
function size(bytes) {
    if (bytes >= 2^30 || bytes <= -2^30) return sprintf("%.2f GiB", bytes / 2^30)
    return bytes % 2^20 ? sprintf("%.1f MiB", bytes / 2^20) : sprintf("%d MiB", bytes / 2^20)
}
function of(key) { return known(key) ? size(n[key]) : "not measured" }
function percent(part, all) { return all > 0 ? sprintf("%.1f %%", 100 * part / all) : "-" }
# claim NAME TEXT: begins a claim; the measurements that follow belong to it
function claim(name, text) {
    close_claim()
    picture = name
    heading = text
    rows = ""
    holds = measured = 1
}
# measure TEXT NUMBER BOUND MET: a row; MET is 1, 0, or "" if a number was not measured
function measure(text, value, bound, met) {
    if (met == "") measured = 0
    else if (!met) holds = 0
    rows = rows "| " text " | " value " | " bound " | " (met == "" ? "not measured" : met ? "yes" : "**no**") " |\n"
}
function close_claim(    verdict) {
    if (heading == "") return
    verdict = !holds ? "does not hold" : measured ? "holds" : "not measured in full"
    if (verdict != "holds") bad = 1
    summary = summary "| " heading " | " verdict " |\n"
    body = body "\n## " heading ": " verdict "\n\n| measurement | value | bound | met |\n| --- | --- | --- | --- |\n" rows \
        "\n![" heading "](" figures "/claim-" picture ".svg)\n"
}
# have KEYS: 1 if all are measured
function have(keys,    list, i, count) {
    count = split(keys, list, " ")
    for (i = 1; i <= count; i++) if (!known(list[i])) return 0
    return 1
}
# test KEYS MET: MET if all keys are measured
function test(keys, met) { return have(keys) ? met + 0 : "" }
{ value = substr($0, length($1) + 2); n[$1] = value ~ /^-?[0-9]+$/ ? value + 0 : value }
END {
    capacity = n["greedy_capacity_bytes"]
    on_card = n["device"] != "sim"

    claim("greedy", "Greedy takes nearly everything at once")
    measure("reserved after the first request, of 4 MiB", of("greedy_first_reserved_bytes") ", " percent(n["greedy_first_reserved_bytes"], capacity) " of " size(capacity), \
        "at least 90 %", test("greedy_first_reserved_bytes greedy_capacity_bytes", n["greedy_first_reserved_bytes"] >= 0.9 * capacity))
    measure("segments allocated from the driver later", n["greedy_later_pieces"], "0", test("greedy_later_pieces", n["greedy_later_pieces"] == 0))
    measure("control: growth after the first request", of("growth_first_reserved_bytes"), "under 1 %", test("growth_first_reserved_bytes", n["growth_first_reserved_bytes"] < 0.01 * capacity))
    measure("control: direct after the first request", of("direct_first_reserved_bytes"), "under 1 %", test("direct_first_reserved_bytes", n["direct_first_reserved_bytes"] < 0.01 * capacity))

    claim("growth", "Growth starts small, grows in ever larger pieces and gives nothing back")
    measure("first segment", of("growth_first_piece_bytes"), "under 1 % of its end", test("growth_first_piece_bytes growth_most_reserved_bytes", n["growth_first_piece_bytes"] < 0.01 * n["growth_most_reserved_bytes"]))
    measure("segments smaller than the one before", n["growth_smaller_pieces"] " of " n["growth_pieces"], "0", test("growth_smaller_pieces", n["growth_smaller_pieces"] == 0))
    measure("largest segment, for blocks of one size", of("growth_largest_piece_bytes"), "at least 8 times the first", test("growth_largest_piece_bytes growth_first_piece_bytes", n["growth_largest_piece_bytes"] >= 8 * n["growth_first_piece_bytes"]))
    measure("live at the end", of("growth_end_live_bytes"), "0", test("growth_end_live_bytes", n["growth_end_live_bytes"] == 0))
    measure("reserved at the end, of the peak", of("growth_end_reserved_bytes") " of " of("growth_most_reserved_bytes"), "all of it", test("growth_end_reserved_bytes growth_most_reserved_bytes", n["growth_end_reserved_bytes"] == n["growth_most_reserved_bytes"]))
    if (on_card)
        measure("used on the card at the end: growth, direct", of("growth_end_card_bytes") ", " of("direct_end_card_bytes"), "growth more by all that it reserved, within 64 MiB", \
            test("growth_end_card_bytes direct_end_card_bytes", n["growth_end_card_bytes"] - n["direct_end_card_bytes"] >= n["growth_most_reserved_bytes"] - 2^26))
    measure("control: largest segment of direct", of("direct_largest_piece_bytes"), "under 8 times its first", test("direct_largest_piece_bytes direct_first_piece_bytes", n["direct_largest_piece_bytes"] < 8 * n["direct_first_piece_bytes"]))
    measure("control: reserved at the end by direct, by torch after its cache is released", of("direct_end_reserved_bytes") ", " of("torch_end_reserved_bytes"), "0", test("direct_end_reserved_bytes torch_end_reserved_bytes", n["direct_end_reserved_bytes"] == 0 && n["torch_end_reserved_bytes"] == 0))

    claim("embedding", "The embedding'\''s memory rises slowly, then rapidly after first use")
    span = n["embedding_steps"] " steps"
    whats = split("live reserved physical", what, " ")
    for (i = 1; i <= whats; i++) {
        b = "embedding_" what[i] "_rise_before_bytes"; a = "embedding_" what[i] "_rise_after_bytes"
        measure(what[i] ": rise in the " span " before first use, in as many after", of(b) ", " of(a), "after at least 10 times before", test(a " " b, n[a] > 0 && n[a] >= 10 * n[b]))
    }
    b = "no_table_reserved_rise_before_bytes"; a = "no_table_reserved_rise_after_bytes"
    measure("control: reserved, no tables, the same steps", of(b) ", " of(a), "after under 10 times before", test(a " " b, n[a] == 0 || n[a] < 10 * n[b]))

    claim("tape", "A tape holds activations until backward")
    asked = n["tape_activations_asked_bytes"]
    measure("live: begin of the step, loss, end of backward, end of the step", of("tape_live_begin_bytes") ", " of("tape_live_loss_bytes") ", " of("tape_live_backward_bytes") ", " of("tape_live_end_bytes"), \
        "rises, falls, ends as it began", test("tape_live_begin_bytes tape_live_loss_bytes tape_live_backward_bytes tape_live_end_bytes", \
        n["tape_live_loss_bytes"] > n["tape_live_begin_bytes"] && n["tape_live_backward_bytes"] < n["tape_live_loss_bytes"] && n["tape_live_end_bytes"] == n["tape_live_begin_bytes"]))
    measure("activations requested in the forward pass that are live at the loss", percent(n["tape_activations_at_loss_bytes"], asked) " of " size(asked), "at least 90 %", test("tape_activations_asked_bytes tape_activations_at_loss_bytes", n["tape_activations_at_loss_bytes"] >= 0.9 * asked))
    measure("of those, live after the backward pass", percent(n["tape_activations_after_backward_bytes"], asked), "under 10 %", test("tape_activations_after_backward_bytes", n["tape_activations_after_backward_bytes"] < 0.1 * asked))
    measure("control: live at the loss if the forward pass is run again", percent(n["recompute_activations_at_loss_bytes"], n["recompute_activations_asked_bytes"]), "under 90 %", test("recompute_activations_at_loss_bytes recompute_activations_asked_bytes", n["recompute_activations_at_loss_bytes"] < 0.9 * n["recompute_activations_asked_bytes"]))
    measure("control: live after the backward pass of a persistent tape", percent(n["persistent_activations_after_backward_bytes"], n["persistent_activations_asked_bytes"]), "10 % or more", test("persistent_activations_after_backward_bytes persistent_activations_asked_bytes", n["persistent_activations_after_backward_bytes"] >= 0.1 * n["persistent_activations_asked_bytes"]))

    claim("kept", "Workspaces and kernels stay after the tensors are gone, inside and outside the pool")
    measure("inside: tensors at the end, workspace and tables of kernels", of("products_tensors_bytes") ", " of("products_kept_bytes"), "0, more than 0", test("products_tensors_bytes products_kept_bytes", n["products_tensors_bytes"] == 0 && n["products_kept_bytes"] > 0))
    measure("inside: reserved by torch, caches released", of("products_torch_end_reserved_bytes"), "at least the kept bytes", test("products_torch_end_reserved_bytes products_kept_bytes", n["products_torch_end_reserved_bytes"] >= n["products_kept_bytes"]))
    measure("inside: reserved by growth", of("products_growth_end_reserved_bytes"), "at least the kept bytes", test("products_growth_end_reserved_bytes", n["products_growth_end_reserved_bytes"] >= n["products_kept_bytes"]))
    measure("control: reserved by torch at the end of a program without products", of("torch_end_reserved_bytes"), "0", test("torch_end_reserved_bytes", n["torch_end_reserved_bytes"] == 0))
    measure("outside, all blocks free: no product, own kernel, cuBLAS", of("outside_none_bytes") ", " of("outside_plain_bytes") ", " of("outside_cublas_bytes"), "cuBLAS at least 4 MiB more than own kernel", test("outside_plain_bytes outside_cublas_bytes", n["outside_cublas_bytes"] - n["outside_plain_bytes"] >= 2^22))
    measure("control: own kernel against no product", have("outside_none_bytes outside_plain_bytes") ? size(n["outside_plain_bytes"] - n["outside_none_bytes"]) : "not measured", "less than cuBLAS adds", test("outside_none_bytes outside_plain_bytes outside_cublas_bytes", n["outside_plain_bytes"] - n["outside_none_bytes"] < n["outside_cublas_bytes"] - n["outside_plain_bytes"]))
    measure("outside: increase if the trace holds " of("outside_trace_bytes") " for its kernels (o events)", have("outside_cublas_bytes outside_modules_bytes") ? size(n["outside_modules_bytes"] - n["outside_cublas_bytes"]) : "not measured", "as much, within 2 MiB", \
        test("outside_cublas_bytes outside_modules_bytes", n["outside_modules_bytes"] - n["outside_cublas_bytes"] - n["outside_trace_bytes"] <= 2^21 && n["outside_trace_bytes"] - n["outside_modules_bytes"] + n["outside_cublas_bytes"] <= 2^21))
    close_claim()

    print "# What people say about GPU memory, measured on " (n["card"] == "" ? "an unknown card" : n["card"]) "\n"
    print "Device `" n["device"] "`. Each number is from one run of the rig; the bounds are those of the script. A control is a"
    print "policy or a program for which the claim is not true: its result must be the opposite. The claims"
    print "have no numbers, so the bounds (90 %, 10 times, ..) are this project'\''s reading of \"nearly\", \"rapidly\", \"small\".\n"
    print "**What is measured.** The policies are this rig'\''s own models of the frameworks'\'' allocators (`allocrig list policies`); no"
    print "framework runs here. Embedding, tape and products are generated programs with their kernels. A rule of the generator"
    print "(`workloads/gen/`) decides when a block is freed, and live bytes show that rule; the tags of the trace say which blocks are"
    print "activations, workspaces or tables. The memory that policy and card hold for them is measured. The card itself reports its"
    print "memory outside of the pool, once per run, when all blocks are free: other processes on the card would change it.\n"
    print "    bench/suite/claims_card.sh FOLDER " n["device"] "            # runs"
    print "    plots/claims.sh FOLDER FIGURES                   # figures"
    print "    bench/suite/claims_page.sh FOLDER FIGURES        # this page\n"
    print "| claim | verdict |\n| --- | --- |"
    printf "%s%s", summary, body
    exit bad
}' "$1/numbers.csv"
