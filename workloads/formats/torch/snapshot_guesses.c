/* What the conversion of a snapshot guessed, as sentences of its import report: pools, blocks, times
 * and annotations, and what it could not use. */
#include "workloads/formats/torch/snapshot_conversion.h"

#include <inttypes.h>

#include "workloads/io/fields.h"

/* Of all devices together. */
struct guessed {
    uint64_t unknown_pools, private_pools, unknown_sizes, contradictions, pending;
    bool has_times, lacks_times, pools_untold, completions_lack;
};

static void add(struct guessed *sum, const struct snapshot_world *world)
{
    sum->unknown_pools += world->unknown_pools;
    sum->private_pools += world->private_pools;
    sum->unknown_sizes += world->unknown_sizes;
    sum->contradictions += world->contradictions;
    sum->completions_lack |= world->no_completions;
    sum->pools_untold |= !world->tells_pools && world->event_count;
    sum->has_times |= world->has_times;
    sum->lacks_times |= world->lacks_times;
    for (size_t k = 0; k < world->place_count && !world->event_count; k++)
        sum->pending += world->places[k].state == SNAPSHOT_PENDING;
}

/* "7 segments are ..", where there are any. */
static void say(const struct conversion *c, uint64_t count, const char *what)
{
    if (count)
        import_guess(c->report, "%" PRIu64 " %s", count, what);
}

static void say_pools(const struct conversion *c, const struct guessed *sum)
{
    say(c, sum->private_pools,
        "segments do not tell their pool: taken for private ones, since free memory in them was "
        "passed over, or kept where all was given back");
    if (sum->pools_untold)
        import_guess(c->report, "its segments do not tell their pools: taken for the common one");
    if (sum->unknown_pools && c->pool_count > 1)
        import_guess(c->report,
                     "%" PRIu64 " segments were given back before the end, so their pool is not "
                     "told: taken for the common one",
                     sum->unknown_pools);
}

static void say_blocks(const struct conversion *c, const struct guessed *sum)
{
    if (sum->completions_lack)
        import_guess(c->report, "it does not tell when frees are complete: taken for at once");
    say(c, sum->pending,
        "blocks wait for their free to be complete, which no history tells of: taken for in use");
    say(c, sum->unknown_sizes,
        "blocks of the start do not tell what was asked for: taken for all of their bytes");
    say(c, sum->contradictions,
        "entries about segments do not fit those at the end: passed over in the state at the "
        "start");
    say(c, c->missing_frees,
        "addresses were given out again and never freed: taken for freed at that moment");
}

static void say_times(const struct conversion *c, const struct guessed *sum)
{
    say(c, c->late, "entries are earlier than the one before: time stands still there");
    say(c, c->early_marks, "annotations are older than the history: marks at its beginning");
    say(c, c->unplaced_marks,
        "annotations cannot be placed, since there are no times: marks at the end");
    if (sum->lacks_times && c->report->records)
        import_guess(c->report, sum->has_times ? "some entries have no time: taken for that of the "
                                                 "one before"
                                               : "its entries have no times: no time passes");
    if (sum->lacks_times && c->world_count > 1)
        import_guess(c->report, "without times, what the devices did is put one behind the other");
}

void conversion_say_guesses(const struct conversion *c)
{
    struct guessed sum = {0};
    char action[40];
    for (size_t i = 0; i < c->world_count; i++) {
        const struct snapshot_world *world = &c->worlds[i];
        c->report->records += world->event_count;
        c->report->unmatched_frees += world->unmatched_frees;
        c->report->begins_in_the_middle |= world->area_count || world->place_count;
        add(&sum, world);
    }
    if (c->world_count > 1)
        import_guess(c->report,
                     "it tells of %zu devices, which follow each other as their times do: convert "
                     "--device N takes one",
                     c->world_count);
    say_pools(c, &sum);
    say_blocks(c, &sum);
    say_times(c, &sum);
    field_text(c->tree->texts.items[c->tree->first_unknown], action, sizeof action);
    if (c->tree->unknown_actions)
        import_guess(c->report, "%" PRIu64 " entries of an action that is not known (%s): left out",
                     c->tree->unknown_actions, action);
}
