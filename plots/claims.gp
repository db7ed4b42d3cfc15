# Measured claims about GPU memory: one figure for each claim, from the folder that
# bench/suite/claims_card.sh writes. plots/claims.sh sets IN (that folder), OUT, TERM and NAME:
# greedy, growth, embedding, tape or kept. A policy has the same colour in all five.
POLICIES = 'greedy growth direct torch'
load 'plots/style.gp'

number(key) = system(sprintf("awk -F, '$1 == \"%s\" { print $2 }' '%s/numbers.csv'", key, IN))
series(run) = sprintf("%s/series-%s.csv", IN, run)
calls(run) = sprintf("< awk -F, 'NR > 1 && $6 + 0 == 0 && $2 ~ /alloc|create/ { print ++n \",\" $3 }' '%s/calls-%s.csv'", IN, run)
last_event(run) = system(sprintf("tail -n 1 '%s' | cut -d, -f1", series(run))) + 0
GREEDY = COLOUR[1]; GROWTH = COLOUR[2]; DIRECT = COLOUR[3]; TORCH = COLOUR[4]
# A vertical line through the panel at an event, with a label above: what happens from there, or up to `until`.
mark_at(i, event, until, text) = sprintf("set arrow %d from first %f, graph 0 to first %f, graph 1 nohead back lc rgb '#666666' dt 2; set label %d '%s' at first %f, graph 1.03 center font ',9' textcolor rgb '#444444'", i, event, event, i, text, (event + until) / 2.0)
CARD = number('card')
MOST_COLUMNS = 3
ROW = 400
ABOVE = 55
BELOW = 55
GAP = 90
set style fill solid noborder

if (NAME eq 'greedy') {
    rest = key_add('live: what the program asked for', GREY, 0, 1, 9)
    rest = key_add('greedy: reserved', GREEDY, 0, 1, 2.5)
    rest = key_add('growth: reserved', GROWTH, 0, 1, 2.5)
    rest = key_add('direct: reserved (control)', DIRECT, 0, 3, 2.5)
    rest = key_add('all that the card has for the process', '#000000', 0, 2, 1)
    TITLE = 'greedy takes nearly everything at its first request ('.CARD.')'
    W = 1
    load 'plots/grid.gp'
    eval panel(1)
    capacity = number('greedy_capacity_bytes') + 0.0
    set xlabel 'event: 1024 blocks of 4 MiB, then all freed'
    set ylabel 'memory (GiB)'
    set xrange [-20:last_event('fill-greedy')]
    set yrange [0:capacity / GIB * 1.06]
    plot series('fill-greedy') skip 1 using 1:($2 / GIB) with filledcurves y1=0 lc rgb GREY, \
         capacity / GIB with lines lc rgb '#000000' dt 2 lw 1, \
         '' skip 1 using 1:($3 / GIB) with steps lw 2.5 lc rgb GREEDY, \
         series('fill-growth') skip 1 using 1:($3 / GIB) with steps lw 2.5 lc rgb GROWTH, \
         series('fill-direct') skip 1 using 1:($3 / GIB) with steps lw 2.5 dt 3 lc rgb DIRECT
}
if (NAME eq 'growth') {
    rest = key_add('live: what the program asked for', GREY, 0, 1, 9)
    rest = key_add('growth', GROWTH, POINT[2], 1, 2.5)
    rest = key_add('direct (control)', DIRECT, POINT[3], 3, 2.5)
    TITLE = 'growth starts small, takes ever larger segments and keeps them ('.CARD.')'
    W = 2
    load 'plots/grid.gp'
    eval panel(1)
    set title 'reserved bytes'
    set xlabel 'event: 1024 blocks of 4 MiB, then all freed'
    set ylabel 'memory (GiB)'
    set xrange [-20:last_event('fill-growth')]
    set yrange [0:1.06 * number('growth_most_reserved_bytes') / GIB]
    plot series('fill-growth') skip 1 using 1:($2 / GIB) with filledcurves y1=0 lc rgb GREY, \
         '' skip 1 using 1:($3 / GIB) with steps lw 2.5 lc rgb GROWTH, \
         series('fill-direct') skip 1 using 1:($3 / GIB) with steps lw 2.5 dt 3 lc rgb DIRECT
    unset label 1000
    eval panel(2)
    set title 'size of each segment from the driver, in order'
    set xlabel 'segment'
    set ylabel 'MiB'
    pieces = number('growth_pieces') + 0
    set xrange [0.5:pieces + 0.5]
    set yrange [1:1.5 * number('growth_largest_piece_bytes') / MIB]
    set logscale y 2
    plot calls('fill-growth') using 1:($2 / MIB) with linespoints lw 1.5 pt POINT[2] ps 1 lc rgb GROWTH, \
         calls('fill-direct') using ($1 <= pieces ? $1 : NaN):($2 / MIB) with linespoints lw 1.5 dt 3 pt POINT[3] ps 1 lc rgb DIRECT
}
if (NAME eq 'embedding') {
    rest = key_add('live', GREY, 0, 1, 9)
    rest = key_add('growth: reserved', GROWTH, 0, 1, 2.5)
    rest = key_add(NARROW ? 'growth: the same without tables (control)' : 'growth: reserved by the same program without tables (control)', DIRECT, 0, 3, 2.5)
    TITLE = 'an embedding: memory rises slowly, then rapidly after first use ('.CARD.')'
    W = 1
    load 'plots/grid.gp'
    eval panel(1)
    first = number('embedding_first_use_event') + 0
    # The control has fewer events: after its end its last value is drawn.
    set xrange [0:5 * first]
    set xlabel 'event of the first steps'
    set ylabel 'memory (GiB)'
    set yrange [0:*]
    eval mark_at(1, first, 3 * first, NARROW ? 'the step in which a table is first used' : 'first use of a table: in the step that begins at the line')
    plot series('embedding') skip 1 using 1:($2 / GIB) with filledcurves y1=0 lc rgb GREY, \
         '' skip 1 using 1:($3 / GIB) with steps lw 2.5 lc rgb GROWTH, \
         series('no_table') skip 1 using 1:($3 / GIB) with steps lw 2.5 dt 3 lc rgb DIRECT
}
if (NAME eq 'tape') {
    rest = key_add('live', GREY, 0, 1, 9)
    rest = key_add('growth: reserved', GROWTH, 0, 1, 2.5)
    TITLE = 'a tape holds activations until the backward pass: the third step of each program ('.CARD.')'
    W = 3
    GAP = 35
    load 'plots/grid.gp'
    set yrange [0:*]
    array RUN[3] = ['tape', 'recompute', 'persistent']
    array SAYS[3] = ['tape', 'control: forward run again in segments of 4', 'control: tape kept until the next begins']
    most = 0
    do for [w = 1:3] {
        stats series(RUN[w]) skip 1 using 3 nooutput
        most = larger(most, STATS_max)
    }
    do for [w = 1:3] {
        eval panel(w)
        begin = number(RUN[w].'_begin_event') + 0
        set title SAYS[w] offset 0,1
        set xrange [begin:number(RUN[w].'_end_event') + 0]
        set yrange [0:1.05 * most / GIB]
        set xlabel 'event'
        if (w == 1) { set ylabel 'memory (GiB)' } else { unset ylabel }
        loss = number(RUN[w].'_loss_event') + 0
        update = number(RUN[w].'_backward_event') + 0
        eval mark_at(1, begin, loss, 'forward')
        eval mark_at(2, loss, update, 'backward')
        eval mark_at(3, update, number(RUN[w].'_end_event') + 0, 'update')
        plot series(RUN[w]) skip 1 using 1:($2 / GIB) with filledcurves y1=0 lc rgb GREY, \
             '' skip 1 using 1:($3 / GIB) with steps lw 2.5 lc rgb GROWTH
        unset label 1000
    }
    unset arrow
}
if (NAME eq 'kept') {
    rest = key_add('live', GREY, 0, 1, 9)
    rest = key_add('torch: reserved', TORCH, 0, 1, 2.5)
    rest = key_add('growth: reserved', GROWTH, 0, 1, 2.5)
    rest = key_add('card, beside the pool', GREEDY, 0, 1, 9)
    TITLE = 'workspaces and kernels stay after the tensors are gone ('.CARD.')'
    W = 2
    load 'plots/grid.gp'
    eval panel(1)
    set title 'inside the pool'
    set xlabel NARROW ? 'event: products, then all is freed and released' : 'event: products, then all tensors freed and caches released'
    set ylabel 'memory (MiB)'
    end = last_event('products-torch')
    set xrange [0:end * (NARROW ? 1.2 : 1.08)]
    set yrange [0:*]
    set label 1 sprintf("%.0f MiB", number('products_torch_end_reserved_bytes') / MIB) at first end, first number('products_torch_end_reserved_bytes') / MIB left offset 0.6,0.5 textcolor rgb TORCH
    set label 2 sprintf("%.0f", number('products_growth_end_reserved_bytes') / MIB) at first end, first number('products_growth_end_reserved_bytes') / MIB left offset 0.6,0 textcolor rgb GROWTH
    plot series('products-torch') skip 1 using 1:($2 / MIB) with filledcurves y1=0 lc rgb GREY, \
         '' skip 1 using 1:($3 / MIB) with steps lw 2.5 lc rgb TORCH, \
         series('products-growth') skip 1 using 1:($3 / MIB) with steps lw 2.5 lc rgb GROWTH
    unset label 1000; unset label 1; unset label 2
    eval panel(2)
    set title 'outside the pool, when all is freed (policy direct)'
    unset xlabel
    set xrange [0.4:4.6]
    set yrange [0:*]
    array HELD[4]
    HELD[1] = number('outside_none_bytes'); HELD[2] = number('outside_plain_bytes'); HELD[3] = number('outside_cublas_bytes'); HELD[4] = number('outside_modules_bytes')
    if (NARROW) {
        set xtics scale 0 font ',9' ("no product\n(control)" 1, "own\nkernel" 2, "cuBLAS" 3, "cuBLAS and\no events" 4)
    } else {
        set xtics scale 0 ("no product\n(control)" 1, "products by\nown kernel" 2, "products by\ncuBLAS" 3, "cuBLAS, and\ntrace's o events" 4)
    }
    if (strlen(HELD[3]) > 0) {
        do for [i = 1:4] { set label 10 + i sprintf("%.0f MiB", HELD[i] / MIB) at first i, first HELD[i] / MIB center offset 0,0.6 textcolor rgb '#222222' }
        set boxwidth 0.6
        plot for [i = 1:4] '+' every ::::0 using (i):(HELD[i] / MIB) with boxes lc rgb GREEDY
    } else {
        set yrange [0:1]
        set label 10 'not measured: only a card has it' at graph 0.5, 0.5 center textcolor rgb '#666666'
        plot NaN
    }
    unset xtics
}
load 'plots/key.gp'
