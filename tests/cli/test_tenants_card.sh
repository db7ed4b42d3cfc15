#!/bin/bash
# `tenants` with real processes, on a stand-in for the driver: they end as simulated ones do. And many processes.
set -u
# shellcheck source=tests/cli/lib.bash
. "$(dirname "$0")/lib.bash"
tmp=$TEST_TMP
suites=workloads/suites/tenants

stand_in=$PWD/.build/${TEST_VARIANT:-release}/tests/cuda_stand_in
if [ -f "$stand_in/libcuda.so.1" ]; then
    env LD_LIBRARY_PATH="$stand_in" "$ALLOCRIG" tenants "$suites/card_limited_limited.ini" -d cuda --wide \
        --csv "$tmp/card.csv" >"$tmp/card"
    check as_simulated_on_a_card grep -qE '^second .* failed at step 2: fragmentation$' "$tmp/card"
    "$ALLOCRIG" tenants "$suites/card_limited_limited.ini" --csv "$tmp/sim.csv" >"$out"
    # outcome, steps, the failure, peaks of the pool
    check as_simulated_in_figures cmp -s <(cut -d, -f 1-3,6-11,14-16 "$tmp/sim.csv") <(cut -d, -f 1-3,6-11,14-16 "$tmp/card.csv")
    env STAND_IN_CARDS=2 LD_LIBRARY_PATH="$stand_in" "$ALLOCRIG" tenants "$suites/two_cards_given.ini" -d cuda --no-alone >"$out"
    check on_the_second_card grep -qE '^on_1 +1 .* passed$' "$out"
    # Where they share its cards: what they end with is what is simulated, barriered, and one of that, free.
    mkdir "$tmp/nvml"
    "${CC:-cc}" -std=c11 -shared -fPIC -o "$tmp/nvml/libnvidia-ml.so.1" tests/cli/nvml_stand_in.c
    # shared CARDS ARGUMENTS..: on so many cards that are held by nobody
    shared() {
        local cards=$1
        shift
        rm -f "$tmp/held"
        env LD_LIBRARY_PATH="$tmp/nvml:$stand_in" STAND_IN_SHARED="$tmp/held" STAND_IN_CARDS="$cards" "$ALLOCRIG" tenants -d cuda --no-alone "$@"
    }
    for suite in card_greedy_greedy card_greedy_growth card_growth_growth card_limited_limited card_race two_cards_given \
        two_cards_both two_cards_least_loaded; do
        cards=1
        [ "${suite#two_cards}" = "$suite" ] || cards=2
        "$ALLOCRIG" tenants "$suites/$suite.ini" --no-alone --csv "$tmp/sim.csv" >"$out"
        shared $cards "$suites/$suite.ini" --csv "$tmp/card.csv" >"$out" 2>"$err"
        # process, outcome, card, arrival, steps, the step of the failure, its cause, by whom
        check "${suite}_as_simulated" cmp -s <(cut -d, -f 2-7,10,12 "$tmp/sim.csv") <(cut -d, -f 2-7,10,12 "$tmp/card.csv")
        check "${suite}_uses_as_much" awk -F, 'FNR > 1 { if (FNR == NR) sim[$2] = $19; else if ($19 < 0.9 * sim[$2] || $19 > 1.1 * sim[$2]) bad = 1 }
            END { exit bad }' "$tmp/sim.csv" "$tmp/card.csv"
        case $suite in
        two_cards_* | card_growth_growth | card_limited_limited)
            long "${suite}_seen_is_simulated" "${suite}_nothing_stays" || continue
            ;;
        esac
        shared $cards "$suites/$suite.ini" --mode free --replicates 6 >"$tmp/card"
        sed -nE 's/^ +[0-9]+  (.* (passed|failed|no room).*)/\1/p' "$tmp/card" | sort >"$tmp/seen"
        for replicates in 40 200 5000; do # more of them where the machine did what is rare
            "$ALLOCRIG" tenants "$suites/$suite.ini" --mode free --no-alone --replicates $replicates >"$tmp/sim"
            sed -nE 's/^ +[0-9]+  (.* (passed|failed|no room).*)/\1/p' "$tmp/sim" | sort >"$tmp/possible"
            [ -n "$(comm -23 "$tmp/seen" "$tmp/possible")" ] || break
        done
        check "${suite}_seen_is_simulated" [ -s "$tmp/seen" -a -z "$(comm -23 "$tmp/seen" "$tmp/possible")" ]
        check "${suite}_nothing_stays" [ -z "$(od -A n -v -t u8 "$tmp/held" | tr -d ' 0\n')" ]
    done

    # trials: each is told as it ends, and is in the file then, also where the command is ended
    env LD_LIBRARY_PATH="$stand_in" "$ALLOCRIG" tenants "$suites/card_limited_limited.ini" -d cuda --mode free --replicates 2 \
        --no-alone --csv "$tmp/trials.csv" >"$tmp/trials"
    check trials_are_told grep -qE '^trial 2 of 2: first passed; second failed at step 2: fragmentation$' "$tmp/trials"
    check a_row_of_each_trial [ "$(wc -l <"$tmp/trials.csv")" = 5 ]
    printf '[machine]\ncard = sim\n[run]\nmode = free\ndraws = 10000\n[tenant a]\npolicy = torch\nworkload = linear_ramp\n' >"$tmp/long.ini"
    env LD_LIBRARY_PATH="$stand_in" "$ALLOCRIG" tenants "$tmp/long.ini" -d cuda --no-alone --csv "$tmp/cut.csv" >"$tmp/cut" &
    job=$!
    until grep -qs "^trial 2 " "$tmp/cut" || ! kill -0 "$job"; do sleep 0.1; done
    kill "$job"
    wait "$job" 2>/dev/null
    check what_is_known_stays grep -q '^1,a,passed,' "$tmp/cut.csv"
    env LD_LIBRARY_PATH="$stand_in" "$ALLOCRIG" tenants "$suites/card_growth_growth.ini" -d cuda --csv "$tmp/alone.csv" >"$out"
    check slowdown_on_a_card [ "$(awk -F, 'NR > 1 && $22 > 0' "$tmp/alone.csv" | wc -l)" = 2 ]
    LD_LIBRARY_PATH=$stand_in refuses no_place_for_rows 2 'no_such_folder' tenants "$tmp/long.ini" -d cuda --replicates 1 --csv "$tmp/no_such_folder/x"
    bad=$tmp/bad.so
    "${CC:-cc}" -std=c11 -D_GNU_SOURCE -O1 -shared -fPIC -I. -o "$bad" tests/cli/misbehaving.c
    printf '[machine]\ncard = sim\n[tenant %s]\npolicy = %s:harm=%s\nworkload = gradient_tape:steps=2\n' crashes "$bad" 1 >"$tmp/bad.ini"
    printf '[tenant %s]\npolicy = %s:harm=%s\nworkload = gradient_tape:steps=2\n' hangs "$bad" 2 >>"$tmp/bad.ini"
    printf '[tenant fine]\npolicy = torch\nworkload = gradient_tape:steps=2\n' >>"$tmp/bad.ini"
    for limit in 2 8 32 128 512; do # the shortest in which the others answer; a crash under a sanitizer takes longest
        env LD_LIBRARY_PATH="$stand_in" "$ALLOCRIG" tenants "$tmp/bad.ini" -d cuda --timeout "$limit" >"$tmp/ended"
        ! grep -qE '^(fine|crashes): it did not answer' "$tmp/ended" || continue
        break
    done
    check a_process_that_dies_is_an_outcome grep -q '^crashes: its process died' "$tmp/ended"
    check silence_is_an_outcome grep -q '^hangs: it did not answer in time' "$tmp/ended"
    check the_others_go_on grep -qE '^fine .* passed$' "$tmp/ended"
fi

# ---- many of them; at its full size it takes a minute and more -----

check many_give_the_same_bytes quietly env ALLOCRIG="$ALLOCRIG" bench/suite/many_tenants.sh 8 2 20000
finish
