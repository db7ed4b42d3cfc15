#!/bin/bash
# Logs of other programs that are read as traces: recognised by content, packed or not; what is
# refused, in which line, and that a hostile file costs no memory.
set -u
# shellcheck source=tests/cli/lib.bash
. "$(dirname "$0")/lib.bash"
tmp=$TEST_TMP
events() { # FILE: the events of a trace in text
    grep -v '^#' "$1"
}

# -- RMM
cat >"$tmp/log" <<'END'
Thread,Time,Action,Pointer,Size,Stream
7,23:59:59.999999,allocate,0x7f0000000000,1048576,0x0
7,00:00:00.000001,allocate failure,(nil),99999999999,0x0
7,00:00:00.000002,allocate,0x7f0000100000,512,0x5583
7,00:00:00.000003,free,0x7f0000000000,1048576,0x0
END
check rmm quietly "$ALLOCRIG" convert "$tmp/log" "$tmp/rmm.txt"
check rmm_events [ "$(events "$tmp/rmm.txt" | grep -c '^[apfr],')" = 5 ]
check rmm_passes_midnight grep -qx 't,2000' "$tmp/rmm.txt"
check rmm_keeps_failures grep -qx 'p,1,99999999999,thread=7' "$tmp/rmm.txt"
gzip -c "$tmp/log" >"$tmp/log.packed"
check rmm_packed quietly "$ALLOCRIG" convert "$tmp/log.packed" "$tmp/packed.txt"
check rmm_packed_is_the_same [ "$(events "$tmp/rmm.txt")" = "$(events "$tmp/packed.txt")" ]
check rmm_is_replayed quietly "$ALLOCRIG" run -d sim -p growth -w "$tmp/log"
check rmm_is_listed quietly "$ALLOCRIG" list formats rmm
sed 's/,512,/,half,/' "$tmp/log" >"$tmp/bad"
refuses rmm_names_the_line 2 "$tmp/bad:4: Size: " convert "$tmp/bad" "$tmp/x.txt"


# -- a byte-order mark and CR LF, as spreadsheets and Windows write them
# shellcheck disable=SC2317  # called by check
marked() { # NAME TEXT: the marked file is the same trace as the plain one
    printf '%b' "$2" >"$tmp/$1"
    printf '\357\273\277%b' "${2//\\n/\\r\\n}" >"$tmp/$1.marked"
    quietly "$ALLOCRIG" convert "$tmp/$1" "$tmp/$1.txt" && quietly "$ALLOCRIG" convert "$tmp/$1.marked" "$tmp/$1.2.txt" &&
        [ -n "$(events "$tmp/$1.txt")" ] && [ "$(events "$tmp/$1.txt")" = "$(events "$tmp/$1.2.txt")" ]
}
check marked_rmm marked rmm_m 'Thread,Time,Action,Pointer,Size,Stream\n7,23:59:59.999999,allocate,0x7f00,1024,0x0\n'
check marked_minimalloc marked minimalloc_m 'id,lower,upper,size\n0,0,4,8\n1,1,3,8\n'
check marked_stalloc marked stalloc_m 'Iteration Index : 0\n1 0x7f00 512 0\n0 0x7f00 512 0\n'
check marked_text marked text_m '# allocrig-trace 1\na,0,512\nf,0\n'
check marked_oracle marked oracle_m 'a,0,512\nf,0\n'

# -- MiniMalloc
problem=tests/golden/data/minimalloc/A.1048576.csv
check minimalloc quietly "$ALLOCRIG" convert "$problem" "$tmp/a.txt"
check minimalloc_events [ "$(grep -c '^[af],' "$tmp/a.txt")" = 308 ]
check minimalloc_is_replayed quietly "$ALLOCRIG" run -d sim -p best-fit -w "$problem"
printf 'id,lower,upper,size\n0,5,4,1\n' >"$tmp/bad"
refuses minimalloc_names_the_line 2 "$tmp/bad:2: the buffer ends" convert "$tmp/bad" "$tmp/x.txt"

# -- STAlloc, Umpire
printf '%s\n' 'Iteration Index : 0' '1 0x7f00 512 0' '0 0x7f00 512 0' 'Iteration Index : end' >"$tmp/log"
check stalloc quietly "$ALLOCRIG" convert "$tmp/log" "$tmp/s.txt"
check stalloc_events [ "$(events "$tmp/s.txt" | paste -sd ' ')" = 'a,0,512 !,alloc,32512 f,0 m,step' ]
{
    echo '{ "kind":"replay", "uid":1, "timestamp":1, "event": "makeMemoryResource", "payload": { "name": "DEVICE" }, "result": "0x9" }'
    echo '{ "kind":"replay", "uid":1, "timestamp":2, "event": "allocate", "payload": { "allocator_ref": "0x9", "size": 8 }, "result": { "memory_ptr": "0x10" } }'
} >"$tmp/log"
check umpire quietly "$ALLOCRIG" convert "$tmp/log" "$tmp/u.txt"
check umpire_events [ "$(events "$tmp/u.txt" | paste -sd ' ')" = 't,0 a,0,8,tag=DEVICE !,alloc,16' ]
echo '{ "kind":"replay", "event": "allocate"' >>"$tmp/log"
refuses umpire_names_the_line 2 "$tmp/log:3: this is not JSON" convert "$tmp/log" "$tmp/x.txt"

# -- Nsight Systems; the database is one of the fuzzer's
export=tests/fuzz/corpus/nsys/late
check nsys quietly "$ALLOCRIG" convert "$export" "$tmp/n.txt"
check nsys_has_kernels grep -qx 'k,1,100' "$tmp/n.txt"
check nsys_has_frees grep -qx 'f,1' "$tmp/n.txt"
gzip -c "$export" >"$tmp/export.gz"
check nsys_packed quietly "$ALLOCRIG" convert "$tmp/export.gz" "$tmp/n2.txt"
check nsys_packed_is_the_same [ "$(events "$tmp/n.txt")" = "$(events "$tmp/n2.txt")" ]
{ gzip -1 <"$export" && head -c 1000000 /dev/zero | members 100; } >"$tmp/export.gz"
refuses nsys_packed_bomb 2 'it has more bytes than its header says' convert "$tmp/export.gz" "$tmp/x.txt"
refuses nsys_views_are_not_run 2 'has no table CUDA_GPU_MEMORY_USAGE_EVENTS' convert tests/fuzz/corpus/nsys/view "$tmp/x.txt"

# -- hostile
echo 'Thread,Time,Action,Pointer,Size,Stream' >"$tmp/long"
truncate -s 1000000000 "$tmp/long" # takes no room on the disk
bounded 262144 convert "$tmp/long" "$tmp/x.txt"
check long_line_is_refused [ "$status" = 2 ]
check long_line_is_told grep -q "$tmp/long:2: the line has more than 65536 bytes" "$err"
check nothing_is_left [ ! -e "$tmp/x.txt" ]
# -- a published problem of MiniMalloc: its peak is the sum of its rows, moment by moment
run inspect tests/golden/data/minimalloc/A.1048576.csv
check minimalloc_is_read [ "$(awk '$1 == "name" || $1 == "format" { print $2 } $2 == "alloc" { print $3 } $2 == "free" { print $4 }' "$out" | tr '\n' ' ')" \
    = 'A.1048576 minimalloc 154 154 ' ]
check minimalloc_has_its_peak says '^live peak +1\.000 MiB '
finish
