/* Residue, drift and pinning blocks, as parts of the page of `twin`. */
#include <inttypes.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "allocators/base/size.h"
#include "bench/report/sentence.h"
#include "bench/report/table.h"
#include "bench/report/twin_page.h"

#define PIN_ROWS  8
#define LEFT_MOST 6 /* owners of what remains that are named */

static void signed_mib(struct table *table, bool known, double bytes)
{
    if (!known)
        table_cell(table, "-");
    else if (bytes == 0)
        table_cell(table, "0");
    else
        table_cell(table, "%+.3f", twin_mib(bytes));
}

/* The drift on the card where it is greatest. */
static bool most_drift(const struct twin_result *result, size_t place, double *most)
{
    bool known = false;
    for (unsigned card = 0; card < result->card_count; card++) {
        double bytes;
        if (twin_drift(result, place, card, TWIN_WARM_CYCLES, &bytes) &&
            (!known || fabs(bytes) > fabs(*most))) {
            *most = bytes;
            known = true;
        }
    }
    return known;
}

/* Bytes at the end of a phase in the first and the last cycle. */
static void pair_cells(struct table *table, bool known, bool ended, uint64_t first, uint64_t last)
{
    table_number(table, known, 1, twin_mib((double)first));
    table_number(table, known && ended, 1, twin_mib((double)last));
}

static void residue_row(struct table *table, const struct twin_page *page, size_t phase,
                        bool with_residue)
{
    const struct twin_result *result = page->result;
    const struct twin_phase *at = &result->phases[phase];
    const unsigned card = twin_answer_peak(result).card;
    size_t last = twin_phase_find(result, TWIN_CYCLE, twin_answer_cycles(result), at->place);
    size_t process = 0, there = last == SIZE_MAX ? phase : last;
    double drift = 0;
    bool sleeps = twin_answer_sleeps(page->scenario, at->text, &process);
    table_cell(table, "%s", at->text);
    if (with_residue)
        pair_cells(table, sleeps, last != SIZE_MAX, twin_answer_residue(result, phase, process),
                   twin_answer_residue(result, there, process));
    pair_cells(table, true, last != SIZE_MAX, twin_card_at(result, phase, card)->used_bytes,
               twin_card_at(result, there, card)->used_bytes);
    signed_mib(table, most_drift(result, at->place, &drift), drift);
}

enum ar_status twin_residue_print(FILE *stream, const struct twin_page *page,
                                  struct ar_error *error)
{
    static const struct table_column columns[] = {
        {"at the end of", "", true, 28}, {"residue", "first", false, 0},
        {"", "last", false, 0},          {"used", "first", false, 0},
        {"", "last", false, 0},          {"drift", "a cycle", false, 0},
    };
    static const struct table_column narrow[] = {
        {"at the end of", "", true, 28},
        {"used", "first", false, 0},
        {"", "last", false, 0},
        {"drift", "a cycle", false, 0},
    };
    const struct twin_result *result = page->result;
    bool sleeps = false;
    size_t rows = 0, process;
    for (size_t phase = 0; phase < result->phase_count; phase++) {
        const struct twin_phase *at = &result->phases[phase];
        sleeps |= at->stage == TWIN_CYCLE && twin_answer_sleeps(page->scenario, at->text, &process);
        rows += at->stage == TWIN_CYCLE;
    }
    if (!rows)
        return AR_OK;
    struct table *table = sleeps ? table_of(columns) : table_of(narrow);
    for (size_t phase = 0; phase < result->phase_count; phase++)
        if (result->phases[phase].stage == TWIN_CYCLE && result->phases[phase].cycle == 1)
            residue_row(table, page, phase, sleeps);
    fprintf(stream, "\n%s (MiB; first and last cycle)\n", sleeps ? "Residue and drift" : "Drift");
    enum ar_status status = table_end(table, stream, TABLE_TEXT, error);
    sentence_format(stream, 2,
                    "%sdrift: the change of used bytes from cycle to cycle, without the "
                    "first one.",
                    sleeps ? "residue: what the process of the step uses of the card beyond its "
                             "context, after memory was released. "
                           : "");
    return status;
}

/* Blocks that are alike share a row. */
struct pin_group {
    struct twin_pin first;
    uint64_t keeps_bytes, blocks;
};

static int by_kept(const void *left, const void *right)
{
    const struct pin_group *a = left, *b = right;
    return a->keeps_bytes != b->keeps_bytes
               ? (a->keeps_bytes < b->keeps_bytes ? 1 : -1)
               : (a->first.address > b->first.address) - (a->first.address < b->first.address);
}

static bool are_alike(const struct twin_pin *a, const struct twin_pin *b)
{
    return a->owner == b->owner && a->bytes == b->bytes && a->born_phase == b->born_phase &&
           !strcmp(a->tag ? a->tag : "", b->tag ? b->tag : "");
}

static void add_pin(struct pin_group *groups, size_t *count, const struct twin_pin *pin)
{
    size_t i = 0;
    while (i < *count && !are_alike(&groups[i].first, pin))
        i++;
    if (i == *count)
        groups[(*count)++] = (struct pin_group){.first = *pin};
    groups[i].keeps_bytes += pin->keeps_bytes;
    groups[i].blocks++;
}

/* The phase whose pinning blocks are shown: the last that releases memory, or where it failed. */
static size_t pin_phase(const struct twin_page *page)
{
    size_t phase = SIZE_MAX, process;
    if (page->result->outcome != TWIN_PASSED)
        return page->result->failure.phase;
    return twin_answer_last_sleep(page->scenario, page->result, &phase, &process) ? phase
                                                                                  : SIZE_MAX;
}

/* Who has the residue after the last phase that releases memory, on the rank that has most. */
enum ar_status twin_left_print(FILE *stream, const struct twin_page *page, struct ar_error *error)
{
    const struct twin_result *result = page->result;
    size_t phase, process, most = SIZE_MAX, count = 0;
    char place[160], line[800];
    if (!twin_answer_last_sleep(page->scenario, result, &phase, &process))
        return AR_OK;
    const uint64_t residue = twin_answer_residue(result, phase, process);
    for (size_t rank = result->rank_count; rank-- > 0;)
        if (result->ranks[rank].process == process &&
            twin_residue(twin_rank_at(result, phase, rank)) == residue)
            most = rank;
    if (!residue || most == SIZE_MAX)
        return AR_OK;
    const struct twin_amounts amounts =
        twin_card_at(result, phase, result->ranks[most].card)->amounts;
    struct twin_share *shares = calloc(amounts.count + 1, sizeof *shares);
    if (!shares)
        return ar_error_set(error, AR_HOST_MEMORY, "no host memory for the residue");
    for (size_t i = 0; i < amounts.count; i++) {
        const struct twin_amount *amount = &result->amounts[amounts.first + i];
        const struct twin_owner *owner = &result->owners[amount->owner];
        if (owner->process == process && owner->kind != TWIN_OWNER_CONTEXT && amount->bytes)
            shares[count++] = (struct twin_share){amount->bytes, owner->name};
    }
    qsort(shares, count, sizeof *shares, twin_by_share);
    size_t used =
        (size_t)snprintf(line, sizeof line, "%.1f MiB remain after %s:", twin_mib((double)residue),
                         twin_answer_place(result, phase, place, sizeof place));
    for (size_t i = 0; i < count && i < LEFT_MOST && used < sizeof line - 120; i++)
        used += (size_t)snprintf(line + used, sizeof line - used, "%s %.80s %.1f", i ? "," : "",
                                 shares[i].name, twin_mib((double)shares[i].bytes));
    snprintf(line + used, sizeof line - used, "%s.", count > LEFT_MOST ? " and others" : "");
    sentence_print(stream, line);
    free(shares);
    return AR_OK;
}

enum ar_status twin_pins_print(FILE *stream, const struct twin_page *page, struct ar_error *error)
{
    static const struct table_column columns[] = {
        {"keep", "MiB", false, 0}, {"blocks", "", false, 0},  {"each", "MiB", false, 0},
        {"owner", "", true, 20},   {"born in", "", true, 30}, {"tag", "", true, 0},
    };
    const struct twin_result *result = page->result;
    const size_t phase = pin_phase(page);
    struct pin_group *groups = calloc(result->pin_count + 1, sizeof *groups);
    char place[160], on[32] = "";
    size_t count = 0, blocks = 0;
    uint64_t kept = 0;
    uint32_t card = UINT32_MAX; /* the first with such blocks; others have their own */
    if (!groups)
        return ar_error_set(error, AR_HOST_MEMORY, "no host memory for the pinning blocks");
    for (size_t i = 0; i < result->pin_count; i++)
        if (result->pins[i].phase == phase && result->pins[i].keeps_bytes) {
            const uint32_t its = result->ranks[result->pins[i].rank].card;
            card = its < card ? its : card;
        }
    for (size_t i = 0; i < result->pin_count; i++)
        if (result->pins[i].phase == phase && result->pins[i].keeps_bytes &&
            result->ranks[result->pins[i].rank].card == card) {
            kept += result->pins[i].keeps_bytes;
            blocks++;
            add_pin(groups, &count, &result->pins[i]);
        }
    if (!count) {
        free(groups);
        return AR_OK;
    }
    qsort(groups, count, sizeof *groups, by_kept);
    struct table *table = table_of(columns);
    for (size_t i = 0; i < count && i < PIN_ROWS; i++) {
        const struct twin_pin *pin = &groups[i].first;
        table_cell(table, "%.1f", twin_mib((double)groups[i].keeps_bytes));
        table_cell(table, "%" PRIu64, groups[i].blocks);
        table_cell(table, "%.3f", twin_mib((double)pin->bytes));
        table_cell(table, "%s", result->owners[pin->owner].name);
        table_cell(table, "%s",
                   pin->born_phase < result->phase_count
                       ? twin_answer_place(result, pin->born_phase, place, sizeof place)
                       : "-");
        table_cell(table, "%s", pin->tag && pin->tag[0] ? pin->tag : "-");
    }
    if (result->card_count > 1)
        snprintf(on, sizeof on, " on card %" PRIu32, card);
    fputc('\n', stream);
    sentence_format(
        stream, 2,
        "Pinning blocks after %s%s: %zu live block%s keep%s %.1f MiB of free memory from "
        "being released%s",
        twin_answer_place(result, phase, place, sizeof place), on, blocks, twin_plural(blocks),
        blocks == 1 ? "s" : "", twin_mib((double)kept),
        count > PIN_ROWS ? "; those that keep most" : "");
    enum ar_status status = table_end(table, stream, TABLE_TEXT, error);
    free(groups);
    return status;
}
