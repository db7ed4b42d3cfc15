
#include "allocators/base/size.h"
#include "sim/device_memory/device_memory.h"

/* ---- uses ----------------------------------------------------------------------------------- */

struct hazard {
    struct range range;
    uint32_t count;
    struct sim_use *uses;
    struct sim_use first; /* space for one, which most need */
};

static void hazard_free(struct hazard *hazard)
{
    if (hazard->uses != &hazard->first)
        free(hazard->uses);
    free(hazard);
}

static struct hazard *hazard_from(const struct sim_hazards *self, uint64_t address)
{
    return (struct hazard *)ranges_from(&self->ranges, address);
}

void sim_hazards_close(struct sim_hazards *self)
{
    while (self->ranges.root) {
        struct hazard *hazard = (struct hazard *)self->ranges.root;
        ranges_remove(&self->ranges, &hazard->range);
        hazard_free(hazard);
    }
}

/* A new entry with `count` uses. */
static struct hazard *hazard_add(struct sim_hazards *self, uint64_t start, uint64_t end,
                                 const struct sim_use *uses, uint32_t count)
{
    struct hazard *hazard = calloc(1, sizeof *hazard);
    if (!hazard)
        return NULL;
    hazard->uses = &hazard->first;
    if (count > 1 && !(hazard->uses = malloc(count * sizeof *uses))) {
        free(hazard);
        return NULL;
    }
    memcpy(hazard->uses, uses, count * sizeof *uses);
    hazard->count = count;
    hazard->range.start = start;
    hazard->range.end = end;
    ranges_insert(&self->ranges, &hazard->range);
    return hazard;
}

/* Splits the entry that crosses `address`, if there is one. */
static bool hazards_divide(struct sim_hazards *self, uint64_t address)
{
    struct hazard *hazard = hazard_from(self, address);
    if (!hazard || hazard->range.start >= address)
        return true;
    uint64_t end = hazard->range.end;
    hazard->range.end = address;
    if (hazard_add(self, address, end, hazard->uses, hazard->count))
        return true;
    hazard->range.end = end;
    return false;
}

/* Adds a use to an entry. It replaces the earlier use of the same stream and mapping. */
static bool hazard_use(struct hazard *hazard, const struct sim_use *use)
{
    for (uint32_t i = 0; i < hazard->count; i++) {
        struct sim_use *old = &hazard->uses[i];
        if (old->stream == use->stream && old->mapping == use->mapping) {
            *old = *use;
            return true;
        }
    }
    struct sim_use *grown = malloc((hazard->count + 1) * sizeof *grown);
    if (!grown)
        return false;
    memcpy(grown, hazard->uses, hazard->count * sizeof *grown);
    grown[hazard->count++] = *use;
    if (hazard->uses != &hazard->first)
        free(hazard->uses);
    hazard->uses = grown;
    return true;
}

bool sim_hazards_use(struct sim_hazards *self, uint64_t start, uint64_t end,
                     const struct sim_use *use)
{
    if (!hazards_divide(self, start) || !hazards_divide(self, end))
        return false;
    while (start < end) {
        struct hazard *hazard = hazard_from(self, start);
        uint64_t next = hazard && hazard->range.start < end ? hazard->range.start : end;
        if (start < next) {
            if (!hazard_add(self, start, next, use, 1))
                return false;
            start = next;
        } else {
            if (!hazard_use(hazard, use))
                return false;
            start = hazard->range.end;
        }
    }
    return true;
}

bool sim_hazards_visit(const struct sim_hazards *self, uint64_t start, uint64_t end,
                       sim_hazard_visit *visit, void *argument)
{
    const struct hazard *hazard = hazard_from(self, start);
    while (hazard && hazard->range.start < end) {
        uint64_t from = hazard->range.start > start ? hazard->range.start : start;
        uint64_t to = hazard->range.end < end ? hazard->range.end : end;
        for (uint32_t i = 0; i < hazard->count; i++)
            if (!visit(argument, &hazard->uses[i], from, to))
                return false;
        hazard = hazard_from(self, hazard->range.end);
    }
    return true;
}

bool sim_hazards_forget(struct sim_hazards *self, uint64_t start, uint64_t end)
{
    if (!hazards_divide(self, start) || !hazards_divide(self, end))
        return false;
    struct hazard *hazard;
    while ((hazard = hazard_from(self, start)) && hazard->range.start < end) {
        ranges_remove(&self->ranges, &hazard->range);
        hazard_free(hazard);
    }
    return true;
}

/* ---- segments, physical memory, mappings ---------------------------------------------------- */

#define FIRST_PHYSICAL_ADDRESS (UINT64_C(1) << 61)

void device_memory_open(struct device_memory *self, char *problem, size_t problem_bytes)
{
    *self = (struct device_memory){.next_physical_address = FIRST_PHYSICAL_ADDRESS,
                                   .problem = problem,
                                   .problem_bytes = problem_bytes};
}

void device_memory_close(struct device_memory *self)
{
    sim_hazards_close(&self->hazards);
}

void memory_segment_enter(struct device_memory *self, struct memory_segment *segment,
                          uint64_t ordinal, uint64_t address, uint64_t end, uint64_t bytes,
                          bool reserved)
{
    segment->range.start = address;
    segment->range.end = end;
    segment->bytes = bytes;
    segment->reserved = reserved;
    segment->ordinal = ordinal;
    ranges_insert(&self->segments, &segment->range);
}

struct memory_segment *memory_segment_find(const struct device_memory *self, uint64_t address)
{
    return (struct memory_segment *)ranges_find(&self->segments, address);
}

void memory_segment_remove(struct device_memory *self, struct memory_segment *segment)
{
    if (!segment->reserved &&
        !sim_hazards_forget(&self->hazards, segment->range.start, segment->range.end))
        self->lost = true;
    ranges_remove(&self->segments, &segment->range);
    free(segment);
}

void memory_physical_enter(struct device_memory *self, struct memory_physical *physical,
                           uint64_t bytes)
{
    physical->handle.start = ++self->next_handle;
    physical->handle.end = physical->handle.start + 1;
    physical->bytes = bytes;
    physical->address = self->next_physical_address;
    self->next_physical_address += bytes;
    ranges_insert(&self->physicals, &physical->handle);
}

struct memory_physical *memory_physical_find(const struct device_memory *self,
                                             ar_backing_handle handle)
{
    struct memory_physical *physical =
        (struct memory_physical *)ranges_find(&self->physicals, handle);
    return physical && !physical->destroyed ? physical : NULL;
}

bool memory_physical_settle(struct device_memory *self, struct memory_physical *physical)
{
    if (!physical->destroyed || physical->mappings)
        return false;
    if (!sim_hazards_forget(&self->hazards, physical->address, physical->address + physical->bytes))
        self->lost = true;
    ranges_remove(&self->physicals, &physical->handle);
    free(physical);
    return true;
}

void memory_mapping_enter(struct device_memory *self, struct memory_mapping *mapping,
                          struct memory_physical *physical, struct memory_segment *range,
                          uint64_t address)
{
    mapping->range.start = address;
    mapping->range.end = address + physical->bytes;
    mapping->number = ++self->next_mapping;
    mapping->physical = physical;
    ranges_insert(&self->mappings, &mapping->range);
    physical->mappings++;
    range->mapped_bytes += physical->bytes;
}

struct memory_mapping *memory_mapping_find(const struct device_memory *self, uint64_t address)
{
    return (struct memory_mapping *)ranges_find(&self->mappings, address);
}

struct memory_physical *memory_mapping_remove(struct device_memory *self,
                                              struct memory_mapping *mapping)
{
    struct memory_physical *physical = mapping->physical;
    memory_segment_find(self, mapping->range.start)->mapped_bytes -= physical->bytes;
    ranges_remove(&self->mappings, &mapping->range);
    free(mapping);
    physical->mappings--;
    return physical;
}

struct memory_piece memory_piece_at(const struct device_memory *self, uint64_t address,
                                    uint64_t bytes)
{
    struct memory_piece piece = {.start = address, .usable = true, .length = bytes};
    const struct memory_segment *segment = memory_segment_find(self, address);
    uint64_t end = segment ? segment->range.end : UINT64_MAX;
    if (segment && segment->reserved) {
        const struct memory_mapping *mapping =
            (struct memory_mapping *)ranges_from(&self->mappings, address);
        piece.usable = false;
        if (mapping && mapping->range.start <= address) {
            end = mapping->range.end;
            piece.start = mapping->physical->address + (address - mapping->range.start);
            piece.mapping = mapping->number;
            piece.usable = mapping->usable;
        } else if (mapping && mapping->range.start < end) {
            end = mapping->range.start;
        }
    }
    if (end - address < bytes)
        piece.length = end - address;
    piece.end = piece.start + piece.length;
    return piece;
}

static bool has_memory(const struct memory_piece *piece)
{
    return piece->mapping || piece->usable;
}

void memory_use(struct device_memory *self, uint64_t address, uint64_t bytes, struct sim_use use)
{
    while (bytes) {
        struct memory_piece piece = memory_piece_at(self, address, bytes);
        use.mapping = piece.mapping;
        if (has_memory(&piece) && !sim_hazards_use(&self->hazards, piece.start, piece.end, &use))
            self->lost = true;
        address += piece.length;
        bytes -= piece.length;
    }
}

void memory_pass_on(struct device_memory *self, const struct memory_piece *piece,
                    sim_hazard_visit *visit, void *argument)
{
    if (!has_memory(piece))
        return;
    (void)sim_hazards_visit(&self->hazards, piece->start, piece->end, visit, argument);
    if (!sim_hazards_forget(&self->hazards, piece->start, piece->end))
        self->lost = true;
}

/* The finalizer of splitmix64: neighbouring starts get unrelated ranks. */
static uint64_t range_rank(uint64_t start)
{
    uint64_t mixed = start + UINT64_C(0x9e3779b97f4a7c15);
    mixed = (mixed ^ (mixed >> 30)) * UINT64_C(0xbf58476d1ce4e5b9);
    mixed = (mixed ^ (mixed >> 27)) * UINT64_C(0x94d049bb133111eb);
    return mixed ^ (mixed >> 31);
}

/* Splits a tree into the ranges that start below `start` and the rest. */
static void ranges_split(struct range *tree, uint64_t start, struct range **below,
                         struct range **rest)
{
    while (tree) {
        if (tree->start < start) {
            *below = tree;
            below = &tree->right;
            tree = tree->right;
        } else {
            *rest = tree;
            rest = &tree->left;
            tree = tree->left;
        }
    }
    *below = NULL;
    *rest = NULL;
}

void ranges_insert(struct ranges *self, struct range *range)
{
    struct range **link = &self->root;
    range->rank = range_rank(range->start);
    while (*link && (*link)->rank >= range->rank)
        link = range->start < (*link)->start ? &(*link)->left : &(*link)->right;
    ranges_split(*link, range->start, &range->left, &range->right);
    *link = range;
    self->count++;
}

void ranges_remove(struct ranges *self, struct range *range)
{
    struct range **link = &self->root;
    while (*link != range)
        link = range->start < (*link)->start ? &(*link)->left : &(*link)->right;
    struct range *left = range->left;
    struct range *right = range->right;
    while (left && right) {
        if (left->rank >= right->rank) {
            *link = left;
            link = &left->right;
            left = left->right;
        } else {
            *link = right;
            link = &right->left;
            right = right->left;
        }
    }
    *link = left ? left : right;
    self->count--;
}

struct range *ranges_from(const struct ranges *self, uint64_t address)
{
    struct range *found = NULL;
    struct range *at = self->root;
    while (at) {
        if (at->end > address) {
            found = at;
            at = at->left;
        } else {
            at = at->right;
        }
    }
    return found;
}

struct range *ranges_find(const struct ranges *self, uint64_t address)
{
    struct range *range = ranges_from(self, address);
    return range && range->start <= address ? range : NULL;
}

bool ranges_overlap(const struct ranges *self, uint64_t start, uint64_t end)
{
    const struct range *range = ranges_from(self, start);
    return range && range->start < end;
}

uint64_t sim_ledger_units(const struct sim_ledger *self, uint64_t bytes)
{
    if (bytes > UINT64_C(1) << 62)
        return UINT64_MAX;
    return ar_size_round_up(bytes, self->unit_bytes);
}

uint64_t sim_ledger_free(const struct sim_ledger *self)
{
    return self->capacity_bytes - self->physical_bytes - self->outside_bytes - self->others_bytes;
}

void sim_ledger_charge(struct sim_ledger *self, uint64_t unit_bytes)
{
    self->physical_bytes += unit_bytes;
    AR_RAISE(self->peak_physical_bytes, self->physical_bytes);
}

/* Removes from the backlog what was cleaned until now. */
static void ledger_clean(struct sim_ledger *self, uint64_t now_ns)
{
    if (self->backlog_bytes) {
        uint64_t passed_ns = now_ns - self->cleaned_at_ns;
        uint64_t rate = self->cleaning_bytes_per_us;
        uint64_t cleaned_bytes = self->backlog_bytes;
        if (passed_ns / 1000 <= self->backlog_bytes / rate)
            cleaned_bytes = passed_ns / 1000 * rate + passed_ns % 1000 * rate / 1000;
        self->backlog_bytes -=
            cleaned_bytes < self->backlog_bytes ? cleaned_bytes : self->backlog_bytes;
    }
    self->cleaned_at_ns = now_ns;
}

void sim_ledger_release(struct sim_ledger *self, uint64_t unit_bytes, uint64_t now_ns)
{
    self->physical_bytes -= unit_bytes;
    if (!self->cleaning_bytes_per_us)
        return;
    ledger_clean(self, now_ns);
    self->backlog_bytes += unit_bytes;
}

uint64_t sim_ledger_cleaning_ns(struct sim_ledger *self, uint64_t unit_bytes,
                                uint64_t all_from_bytes, uint64_t now_ns)
{
    if (!self->backlog_bytes)
        return 0;
    ledger_clean(self, now_ns);
    uint64_t free_bytes = sim_ledger_free(self);
    uint64_t clean_bytes = free_bytes > self->backlog_bytes ? free_bytes - self->backlog_bytes : 0;
    uint64_t missing_bytes = unit_bytes > clean_bytes ? unit_bytes - clean_bytes : 0;
    if (missing_bytes > self->backlog_bytes || (all_from_bytes && unit_bytes >= all_from_bytes))
        missing_bytes = self->backlog_bytes;
    uint64_t rate = self->cleaning_bytes_per_us;
    return missing_bytes / rate * 1000 + (missing_bytes % rate * 1000 + rate - 1) / rate;
}

bool sim_ledger_outside(struct sim_ledger *self, uint64_t bytes)
{
    uint64_t charged_bytes = sim_ledger_units(self, bytes);
    if (charged_bytes == UINT64_MAX || charged_bytes > sim_ledger_free(self) + self->outside_bytes)
        return false;
    self->outside_bytes = charged_bytes;
    return true;
}

bool sim_ledger_others(struct sim_ledger *self, uint64_t bytes)
{
    uint64_t charged_bytes = sim_ledger_units(self, bytes);
    if (charged_bytes == UINT64_MAX || charged_bytes > sim_ledger_free(self) + self->others_bytes)
        return false;
    self->others_bytes = charged_bytes;
    return true;
}

/* Misuse of a device that its memory bookkeeping shows. Both devices refuse it with the same
 * sentence before they do anything. */

__attribute__((format(printf, 2, 3))) static enum ar_status misuse(const struct device_memory *self,
                                                                   const char *format, ...)
{
    AR_PRINT(self->problem, self->problem_bytes, format);
    return AR_INVALID;
}

enum ar_status memory_check_bytes(const struct device_memory *self, const char *what,
                                  uint64_t bytes)
{
    if (bytes == 0 || bytes % self->page_bytes)
        return misuse(self, "%s of %" PRIu64 " bytes, which is no multiple of the page of %" PRIu64,
                      what, bytes, self->page_bytes);
    return AR_OK;
}

static enum ar_status free_misuse(const struct device_memory *self, uint64_t address)
{
    const struct memory_segment *segment = memory_segment_find(self, address);
    if (!segment)
        return misuse(self,
                      "a free of %" PRIu64 ", where no segment lies: it was freed before, or never "
                      "allocated",
                      address);
    if (segment->pool)
        return misuse(self,
                      "a driver free of %" PRIu64 ", which the stream-ordered pool allocated; free "
                      "it on a stream",
                      address);
    if (segment->reserved)
        return misuse(self,
                      "a driver free of %" PRIu64 ", which lies in a reserved range; release the "
                      "range instead",
                      address);
    return misuse(self,
                  "a free of %" PRIu64 ", which lies inside segment %" PRIu64
                  " and is not its start, %" PRIu64,
                  address, segment->ordinal, segment->range.start);
}

enum ar_status memory_check_free(const struct device_memory *self, uint64_t address,
                                 struct memory_segment **segment)
{
    *segment = memory_segment_find(self, address);
    if (!*segment || (*segment)->reserved || (*segment)->pool || (*segment)->range.start != address)
        return free_misuse(self, address);
    return AR_OK;
}

enum ar_status memory_check_release(const struct device_memory *self, uint64_t address,
                                    struct memory_segment **range)
{
    *range = memory_segment_find(self, address);
    if (!*range || !(*range)->reserved || (*range)->range.start != address)
        return misuse(self,
                      "a release of %" PRIu64 ", where no reserved range starts: it was released "
                      "before, or never reserved",
                      address);
    if ((*range)->mapped_bytes)
        return misuse(self,
                      "a release of the range at %" PRIu64 " while %" PRIu64
                      " bytes of it are mapped; unmap them first",
                      address, (*range)->mapped_bytes);
    return AR_OK;
}

enum ar_status memory_check_destroy(const struct device_memory *self, ar_backing_handle handle,
                                    struct memory_physical **physical)
{
    *physical = memory_physical_find(self, handle);
    if (!*physical)
        return misuse(self,
                      "a destroy of physical memory %" PRIu64 ", which was destroyed before, or "
                      "never created",
                      handle);
    return AR_OK;
}

enum ar_status memory_check_map(const struct device_memory *self, uint64_t address,
                                ar_backing_handle handle, struct memory_physical **physical,
                                struct memory_segment **range)
{
    *physical = memory_physical_find(self, handle);
    if (!*physical)
        return misuse(self,
                      "a map of physical memory %" PRIu64 ", which was destroyed before, or never "
                      "created",
                      handle);
    if (address % self->page_bytes)
        return misuse(self, "a map at %" PRIu64 ", which is not the start of a page", address);
    *range = memory_segment_find(self, address);
    if (!*range || !(*range)->reserved)
        return misuse(self, "a map at %" PRIu64 ", which lies in no reserved range", address);
    uint64_t bytes = (*physical)->bytes;
    if (bytes > (*range)->range.end - address)
        return misuse(self,
                      "a map of %" PRIu64 " bytes at %" PRIu64
                      " reaches beyond the end of its reserved range, %" PRIu64,
                      bytes, address, (*range)->range.end);
    const struct range *there = ranges_from(&self->mappings, address);
    if (there && there->start < address + bytes)
        return misuse(
            self, "a map of %" PRIu64 " bytes at %" PRIu64 " overlaps what is mapped at %" PRIu64,
            bytes, address, there->start);
    return AR_OK;
}

enum ar_status memory_check_usable(const struct device_memory *self, const char *what,
                                   uint64_t address, uint64_t bytes)
{
    for (uint64_t done = 0; done < bytes;) {
        struct memory_piece piece = memory_piece_at(self, address + done, bytes - done);
        if (!piece.usable)
            return misuse(self, "%s at %" PRIu64 ": nothing is mapped and usable at %" PRIu64, what,
                          address, address + done);
        done += piece.length;
    }
    return AR_OK;
}

enum ar_status memory_check_run(const struct device_memory *self, const char *what,
                                uint64_t address, uint64_t bytes)
{
    AR_TRY(memory_check_bytes(self, what, bytes));
    if (bytes > UINT64_MAX - address)
        return misuse(self, "%s at %" PRIu64 " reaches beyond all addresses", what, address);
    for (uint64_t at = address; at < address + bytes;) {
        const struct range *mapping = ranges_from(&self->mappings, at);
        if (!mapping || mapping->start > at)
            return misuse(self, "%s at %" PRIu64 ": nothing is mapped at %" PRIu64, what, address,
                          at);
        if (mapping->start < at || mapping->end > address + bytes)
            return misuse(self,
                          "%s from %" PRIu64 " to %" PRIu64
                          " takes only a part of what is mapped from %" PRIu64 " to %" PRIu64,
                          what, address, address + bytes, mapping->start, mapping->end);
        at = mapping->end;
    }
    return AR_OK;
}
