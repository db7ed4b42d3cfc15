# A figure of addresses from the placements of one run: a rectangle for each block, from the event that
# requests it to the event that frees it, at its address. Variables: wide and high, the pixels of the
# figure. Reads the file twice.
#  1. The length of a segment is the end of its last block. Segments are stacked in the order of their
#     first block. A segment that begins after all blocks of an equally long one are free takes its
#     position, so that a policy that calls the driver for each block does not need a high figure.
#  2. A block smaller than a pixel is drawn as one pixel. A block that covers only pixels of other blocks
#     of its class is left out, which bounds the size of the picture.
# Prints two blocks of data: `from,to,low,high` of segments, and `from,to,low,high,class` of
# blocks, in events and bytes. Class 0 is under 64 KiB, each next one is 16 times larger, up to 4.
BEGIN { FS = ","; top = 0 }
FNR == 1 { next }
NR == FNR {
    if ($1 > last) last = $1
    if ($2 == "f") { gone[$6] = $1; held[$6]--; next }
    if ($5 + 0 == 0) next
    if (!($6 in begun)) { begun[$6] = $1; order[++segments] = $6 }
    held[$6]++
    if ($7 + $5 > size[$6]) size[$6] = $7 + $5
    next
}
function place_all(    i, s, l, key, list, n, found) {
    for (i = 1; i <= segments; i++) {
        s = order[i]
        end[s] = held[s] > 0 ? last + 1 : gone[s]
        found = 0
        n = split(lanes[size[s]], list, " ")
        for (l = 1; l <= n && !found; l++) if (until[list[l]] <= begun[s]) found = list[l]
        if (!found) {
            found = ++lane_count
            low[found] = top
            top += size[s]
            lanes[size[s]] = lanes[size[s]] " " found
        }
        until[found] = end[s]
        base[s] = low[found]
        print begun[s] "," end[s] "," base[s] "," base[s] + size[s]
    }
    print "\n"
}
function class(bytes,    c) { for (c = 0; c < 4 && bytes >= 65536 * 16 ^ c; c++); return c }
function draw(id, to,    x0, x1, y0, y1, x, fresh) {
    x0 = int(at[id] / (last + 1) * wide); x1 = int(to / (last + 1) * wide)
    y0 = int(from[id] / top * high); y1 = int((from[id] + bytes[id]) / top * high)
    if (y1 - y0 <= 1 || x1 - x0 <= 1) {
        fresh = 0
        for (x = x0; x <= x1; x++) if (!((x, y0, kind[id]) in covered)) { covered[x, y0, kind[id]] = 1; fresh = 1 }
        if (!fresh) return
    }
    if (x1 - x0 < 1) to = at[id] + (last + 1) / wide
    print at[id] "," to "," from[id] "," (y1 - y0 < 1 ? from[id] + top / high : from[id] + bytes[id]) "," kind[id]
}
!placed { place_all(); placed = 1 }
$2 == "f" { if ($3 in at) { draw($3, $1); delete at[$3] } next }
$5 + 0 > 0 { at[$3] = $1; from[$3] = base[$6] + $7; bytes[$3] = $5 + 0; kind[$3] = class($5 + 0); ids[++n_ids] = $3 }
END { for (i = 1; i <= n_ids; i++) if (ids[i] in at) { draw(ids[i], last + 1); delete at[ids[i]] } }
