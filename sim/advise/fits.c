#include "sim/advise/fits.h"

#include "allocators/base/array.h"
#include "allocators/base/size.h"
#include "sim/sim_device/profile.h"

const char *fits_note_name(enum fits_note_kind kind)
{
    static const char *const names[FITS_NOTE_KINDS] = {
        [FITS_DRAWN] = "drawn",   [FITS_OUTSIDE_TABLE] = "outside_table",
        [FITS_UNSURE] = "unsure", [FITS_RULE] = "rule",
        [FITS_RAISED] = "raised",
    };
    return names[kind];
}

/* If `text` is "WORD,REST", returns REST; else NULL. */
static const char *after(const char *text, const char *word)
{
    size_t length = strlen(word);
    return strncmp(text, word, length) == 0 && text[length] == ',' ? text + length + 1 : NULL;
}

static struct fits_note read_fields(enum fits_note_kind kind, const char *text)
{
    struct fits_note note = {.kind = kind};
    uint64_t *const numbers[] = {&note.count, &note.bytes, &note.most_bytes};
    snprintf(note.name, sizeof note.name, "%.*s", (int)strcspn(text, ","), text);
    text = strchr(text, ',');
    for (size_t i = 0; text && i < AR_COUNT(numbers); i++) {
        *numbers[i] = strtoull(text + 1, NULL, 10);
        text = strchr(text + 1, ',');
    }
    if (kind == FITS_OUTSIDE_TABLE && note.count)
        note.more_bytes = note.bytes / note.count;
    if (kind == FITS_UNSURE && note.most_bytes > note.bytes)
        note.more_bytes = note.most_bytes - note.bytes;
    return note;
}

static enum ar_status read_note(struct fits_notes *self, const char *text, struct ar_error *error)
{
    const char *rest;
    recorded_driver_follow(text, &self->driver);
    if (!(text = after(text, "traced")))
        return AR_OK;
    self->traced = true;
    if ((rest = after(text, "versions")))
        snprintf(self->versions, sizeof self->versions, "%s", rest);
    if ((rest = after(text, "measured")))
        snprintf(self->measured, sizeof self->measured, "%s", rest);
    if ((rest = after(text, "outside_envelope")) && !self->refusal[0])
        snprintf(self->refusal, sizeof self->refusal, "%s", rest);
    for (int kind = 0; kind < FITS_NOTE_KINDS; kind++) {
        if (!(rest = after(text, fits_note_name((enum fits_note_kind)kind))))
            continue;
        const struct fits_note note = read_fields((enum fits_note_kind)kind, rest);
        AR_RAISE(self->more_bytes, note.more_bytes);
        AR_TRY(AR_APPEND(self->at, self->count, self->room, note, error, "the notes"));
    }
    return AR_OK;
}

static void see_request(struct fits_notes *self, struct trace_source *source,
                        const struct trace_event *event)
{
    const struct trace_attributes *keys = trace_attributes_of(source, event->attributes);
    const char *at = keys->rest ? keys->rest : "";
    if (event->value <= self->largest_bytes || keys->space == TRACE_SPACE_PINNED)
        return;
    while (*at && strncmp(at, "at=", 3) != 0)
        at += strcspn(at, ",") + (at[strcspn(at, ",")] != '\0');
    self->largest_bytes = event->value;
    if (*at)
        snprintf(self->largest, sizeof self->largest, "%.*s", (int)strcspn(at + 3, ","), at + 3);
    else
        snprintf(self->largest, sizeof self->largest, "%s", keys->tag ? keys->tag : "");
}

static int compare_notes(const void *left, const void *right)
{
    const struct fits_note *a = left, *b = right;
    AR_ORDER(a->kind, b->kind);
    int order = (a->more_bytes < b->more_bytes) - (a->more_bytes > b->more_bytes);
    return order ? order : strcmp(a->name, b->name);
}

enum ar_status fits_notes_read(struct trace_source *source, struct fits_notes *out,
                               struct ar_error *error)
{
    struct trace_cursor cursor = {.source = source};
    *out = (struct fits_notes){0};
    enum ar_status status = trace_rewind(source, error);
    for (const struct trace_event *event; (event = trace_read(&cursor, &status, error)) != NULL;)
        if (event->kind == TRACE_ALLOC)
            see_request(out, source, event);
        else if (event->kind == TRACE_NOTE)
            status = read_note(out, trace_text_of(source, event->value), error);
    if (out->count)
        qsort(out->at, out->count, sizeof *out->at, compare_notes);
    if (!source->info.recorder[0])
        memcpy(source->info.recorder, out->versions, sizeof source->info.recorder);
    return status;
}

void fits_notes_close(struct fits_notes *self)
{
    free(self->at);
    *self = (struct fits_notes){0};
}

/* Whether it is a setting of the framework, not another allocator, that needs less: by more than
 * needs are uncertain, or so that it fits where the program's own does not. */
static bool is_better(const struct advise_result *advice, const struct advise_row *row,
                      const struct advise_row *own)
{
    if (!row->candidate.keys || row->candidate.text[0] || !row->safe_bytes)
        return false;
    return !own->safe_bytes ||
           (row->safe_bytes < own->safe_bytes &&
            (row->rank < own->rank || (row->safe_bytes <= advice->capacity_bytes &&
                                       advice->capacity_bytes < own->safe_bytes)));
}

enum advise_fit fits_row_fit(const struct advise_result *advice, const struct advise_row *row)
{
    if (row->at.begun && row->at.sensitivity)
        return ADVISE_UNSURE;
    return row->safe_bytes && row->safe_bytes <= advice->capacity_bytes ? ADVISE_FITS
                                                                        : ADVISE_FITS_NOT;
}

/* Whether another value of the same key has a row already, with the same figures. */
static bool is_repeated(const struct advise_row *row, const struct advise_row *const *rows,
                        size_t count)
{
    size_t key = strcspn(row->candidate.spec, "=");
    for (size_t i = 0; i < count; i++)
        if (strncmp(rows[i]->candidate.spec, row->candidate.spec, key + 1) == 0 &&
            rows[i]->safe_bytes == row->safe_bytes &&
            rows[i]->alone.peak_reserved_bytes == row->alone.peak_reserved_bytes)
            return true;
    return false;
}

size_t fits_rows(const struct advise_result *advice, const struct advise_row *rows[FITS_ROWS_MOST])
{
    /* Needs of one rank are equal within the uncertainty: some may fit and others not. */
    static const enum advise_fit order[] = {ADVISE_FITS, ADVISE_UNSURE, ADVISE_FITS_NOT};
    const struct advise_row *own = advise_given(advice);
    size_t count = 0;
    if (!own) /* no framework: the best policy */
        rows[count++] = advice->rows;
    else
        rows[count++] = own;
    for (size_t i = 0; own && own->candidate.keys && i < advice->own_count && count == 1; i++)
        if (!advice->rows[i].candidate.keys && !advice->rows[i].candidate.text[0])
            rows[count++] = &advice->rows[i];
    size_t most = count + 3;
    for (size_t fit = 0; own && fit < AR_COUNT(order); fit++)
        for (size_t i = 0; i < advice->own_count && count < most; i++)
            if (is_better(advice, &advice->rows[i], own) &&
                fits_row_fit(advice, &advice->rows[i]) == order[fit] &&
                !is_repeated(&advice->rows[i], rows, count))
                rows[count++] = &advice->rows[i];
    return count;
}

uint64_t fits_usable_bytes(const struct fits_notes *notes, const struct sim_profile *card)
{
    return card->usable_bytes - recorded_driver_bytes(&notes->driver, card);
}

bool fits_smallest_card(uint64_t safe_bytes, const struct fits_notes *notes,
                        struct sim_profile *out)
{
    const char *names[SIM_PROFILES_MOST];
    size_t count = sim_profile_names(names, SIM_PROFILES_MOST);
    struct sim_profile profile;
    bool found = false;
    for (size_t i = 0; i < count && safe_bytes; i++) {
        if (sim_profile_read(sim_profile_builtin(names[i]), names[i], &profile, NULL) ||
            !profile.compute[0] || fits_usable_bytes(notes, &profile) < safe_bytes ||
            (found && profile.total_bytes >= out->total_bytes))
            continue;
        *out = profile;
        found = true;
    }
    return found;
}

const char *fits_own_spec(const struct trace_info *info, char text[CANDIDATE_SPEC_ROOM])
{
    char spec[1024];
    if (!info->recorder[0] || fidelity_default_spec(info, spec, sizeof spec, NULL) ||
        candidates_without_limit(spec, text, CANDIDATE_SPEC_ROOM, NULL))
        snprintf(text, CANDIDATE_SPEC_ROOM, "torch");
    return text;
}
