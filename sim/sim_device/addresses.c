#include "sim/sim_device/state.h"

#include <errno.h>

#include "allocators/base/array.h"
#include "allocators/base/size.h"

#define ADDRESS_END (UINT64_C(1) << 60) /* end of all addresses */
#define TOP         (UINT64_C(1) << 47) /* end of the addresses of a card's driver */
#define DRIVER_UNIT (UINT64_C(32) << 20)
#define DRAWS_MOST  10000
#define PAGE_BYTES  (UINT64_C(2) << 20)
#define START_BYTES (UINT64_C(72) << 20)  /* that the driver has in its first range at the start */
#define LOCAL_BYTES (UINT64_C(150) << 20) /* beside the local memory of all threads, in its range */

static const char address_header[] = "ordinal,bytes,address";

/* Three whole numbers, separated by commas. */
static bool row_parse(char *line, uint64_t *ordinal, struct sim_address_row *row)
{
    line[strcspn(line, "\r\n")] = '\0';
    const char *words[3];
    for (int i = 0; i < 3; i++)
        if (!(words[i] = strsep(&line, ",")))
            return false;
    return !line && ar_count_parse(words[0], ordinal, NULL) == AR_OK &&
           ar_count_parse(words[1], &row->bytes, NULL) == AR_OK &&
           ar_count_parse(words[2], &row->address, NULL) == AR_OK;
}

/* Returns the error of a row, or NULL. */
static const char *row_check(const struct sim_addresses *self, const struct sim_address_row *row,
                             uint64_t granule_bytes)
{
    bool small = row->bytes < self->boundary_bytes;
    if (row->bytes == 0)
        return "a segment of no bytes";
    if (row->address > ADDRESS_END || row->bytes > ADDRESS_END)
        return "an address or a size beyond 2^60";
    if (row->address % (small ? granule_bytes : self->boundary_bytes))
        return small ? "an address that is no multiple of the granule"
                     : "an address that is no multiple of the 2 MiB page";
    if (small && row->address % self->boundary_bytes + row->bytes > self->boundary_bytes)
        return "a small segment that crosses the end of its page";
    return NULL;
}

static enum ar_status list_line(struct sim_addresses *self, char *line, size_t number, size_t *room,
                                uint64_t granule_bytes, struct ar_error *error)
{
    if (number == 1) {
        line[strcspn(line, "\r\n")] = '\0';
        if (strcmp(line, address_header) == 0)
            return AR_OK;
        return ar_error_set(error, AR_FORMAT,
                            "%s, line 1: an address list starts with the line \"%s\"", self->path,
                            address_header);
    }
    uint64_t ordinal;
    struct sim_address_row row;
    if (!row_parse(line, &ordinal, &row))
        return ar_error_set(error, AR_FORMAT,
                            "%s, line %zu: not three whole numbers, ordinal,bytes,address",
                            self->path, number);
    if (ordinal != self->row_count)
        return ar_error_set(error, AR_FORMAT, "%s, line %zu: ordinal %" PRIu64 " where %zu is next",
                            self->path, number, ordinal, self->row_count);
    const char *wrong = row_check(self, &row, granule_bytes);
    if (wrong)
        return ar_invalid(error, "%s, line %zu: %s", self->path, number, wrong);
    AR_TRY(AR_APPEND(self->rows, self->row_count, *room, row, error, "%s", self->path));
    AR_RAISE(self->next, row.address + row.bytes);
    return AR_OK;
}

static enum ar_status list_read(struct sim_addresses *self, uint64_t granule_bytes,
                                struct ar_error *error)
{
    FILE *file = fopen(self->path, "r");
    if (!file)
        return ar_error_set(error, AR_IO, "the address list %s cannot be read: %s", self->path,
                            strerror(errno));
    char line[128];
    size_t number = 0, room = 0;
    enum ar_status status = AR_OK;
    while (status == AR_OK && fgets(line, sizeof line, file))
        status = list_line(self, line, ++number, &room, granule_bytes, error);
    int cause = errno;
    if (status == AR_OK && ferror(file))
        status = ar_error_set(error, AR_IO, "the address list %s cannot be read: %s", self->path,
                              strerror(cause));
    fclose(file);
    return status;
}

enum ar_status sim_addresses_open(struct sim_addresses *self, const char *form_text,
                                  uint64_t first_address, uint64_t boundary_bytes,
                                  uint64_t granule_bytes, uint64_t seed, struct ar_error *error)
{
    memset(self, 0, sizeof *self);
    self->boundary_bytes = boundary_bytes;
    self->next = first_address;
    if (!form_text)
        return AR_OK;
    if (strcmp(form_text, "random") == 0) {
        self->form = SIM_ADDRESSES_RANDOM;
        ar_rng_seed(&self->rng, seed);
        return AR_OK;
    }
    if (strcmp(form_text, "driver") == 0) {
        self->form = SIM_ADDRESSES_DRIVER;
        return address_space_open(&self->space, TOP, DRIVER_UNIT)
                   ? AR_OK
                   : ar_error_set(error, AR_HOST_MEMORY, "no memory for the addresses of a device");
    }
    self->path = strdup(form_text);
    if (!self->path)
        return ar_error_set(error, AR_HOST_MEMORY, "no memory for the address list %s", form_text);
    enum ar_status status = list_read(self, granule_bytes, error);
    if (status != AR_OK)
        sim_addresses_close(self);
    else if (self->row_count)
        self->form = SIM_ADDRESSES_LIST;
    return status;
}

void sim_addresses_close(struct sim_addresses *self)
{
    free(self->rows);
    free(self->path);
    address_space_close(&self->space);
    self->rows = NULL;
    self->path = NULL;
}

enum ar_status sim_addresses_new(struct sim_addresses *self, uint64_t bytes,
                                 const struct ranges *taken, const struct ranges *pages,
                                 uint64_t *address)
{
    if (bytes > ADDRESS_END)
        return AR_REFUSED;
    if (self->form == SIM_ADDRESSES_DRIVER)
        return address_space_take(&self->space, bytes, address) ? AR_OK : AR_REFUSED;
    if (self->form == SIM_ADDRESSES_RANDOM && bytes < TOP / 2) {
        uint64_t places = (TOP - bytes) / self->boundary_bytes;
        for (int i = 0; i < DRAWS_MOST; i++) {
            /* From 1: address 0 is no address on a card. */
            uint64_t drawn = (1 + ar_rng_below(&self->rng, places)) * self->boundary_bytes;
            if (!ranges_overlap(taken, drawn, drawn + bytes) &&
                !ranges_overlap(pages, drawn, drawn + bytes)) {
                *address = drawn;
                return AR_OK;
            }
        }
        return AR_REFUSED;
    }
    uint64_t start = ar_size_round_up(self->next, self->boundary_bytes);
    if (start + bytes > ADDRESS_END)
        return AR_REFUSED;
    *address = start;
    self->next = start + bytes;
    return AR_OK;
}

void sim_addresses_released(struct sim_addresses *self, uint64_t address, uint64_t bytes)
{
    if (self->form == SIM_ADDRESSES_DRIVER)
        address_space_give(&self->space, address, bytes);
}

enum ar_status sim_addresses_recorded(const struct sim_addresses *self, uint64_t bytes,
                                      uint64_t *address, char *problem, size_t problem_bytes)
{
    if (self->row_next == self->row_count) {
        snprintf(problem, problem_bytes,
                 "segment %zu of %" PRIu64 " bytes was asked for, but %s lists only %zu segments; "
                 "give the list of a recording of the same policy and workload, or none",
                 self->row_next, bytes, self->path, self->row_count);
        return AR_INVALID;
    }
    const struct sim_address_row *row = &self->rows[self->row_next];
    if (row->bytes != bytes) {
        snprintf(problem, problem_bytes,
                 "segment %zu of %" PRIu64 " bytes was asked for, but %s lists %" PRIu64
                 " bytes for it; give the list of a recording of the same policy and workload, "
                 "or none",
                 self->row_next, bytes, self->path, row->bytes);
        return AR_INVALID;
    }
    *address = row->address;
    return AR_OK;
}

enum ar_status sim_addresses_used_up(const struct sim_addresses *self, struct ar_error *error)
{
    if (self->row_next == self->row_count)
        return AR_OK;
    return ar_invalid(error,
                      "%s lists %zu segments, but only %zu were asked for; give the list of a "
                      "recording of the same policy and workload, or none",
                      self->path, self->row_count, self->row_next);
}

/* ---- as a driver places them ---- */

#define TAKE_NODES 2 /* that a take adds; a give adds one, which the take makes room for */

static struct ar_range_node *at(const struct address_space *self, uint32_t node)
{
    return &self->pool.nodes[node];
}

static void add(struct address_space *self, uint32_t *root, uint64_t address, uint64_t bytes)
{
    if (!bytes)
        return;
    uint32_t node = ar_range_pool_take(&self->pool);
    at(self, node)->address = address;
    at(self, node)->bytes = bytes;
    ar_range_tree_insert(&self->pool, root, AR_RANGE_BY_ADDRESS, node);
}

static void drop(struct address_space *self, uint32_t *root, uint32_t node)
{
    ar_range_tree_remove(&self->pool, root, AR_RANGE_BY_ADDRESS, node);
    ar_range_pool_give(&self->pool, node);
}

/* Adds a free range within [low, high) and merges it with its neighbours there. Returns the
 * result. */
static struct ar_range_node merge(struct address_space *self, uint32_t *root, uint64_t address,
                                  uint64_t bytes, uint64_t low, uint64_t high)
{
    uint32_t before = ar_range_tree_last(&self->pool, *root, address);
    if (before && at(self, before)->address >= low &&
        at(self, before)->address + at(self, before)->bytes == address) {
        address = at(self, before)->address;
        bytes += at(self, before)->bytes;
        drop(self, root, before);
    }
    uint32_t after = ar_range_tree_first(&self->pool, *root, address + bytes, 1);
    if (after && at(self, after)->address == address + bytes && address + bytes < high) {
        bytes += at(self, after)->bytes;
        drop(self, root, after);
    }
    return (struct ar_range_node){.address = address, .bytes = bytes};
}

bool address_space_open(struct address_space *self, uint64_t top, uint64_t unit_bytes)
{
    memset(self, 0, sizeof *self);
    self->top = top;
    self->unit_bytes = unit_bytes;
    ar_range_pool_open(&self->pool, &self->host);
    if (!ar_range_pool_reserve(&self->pool, 1))
        return false;
    add(self, &self->gaps, 0, top);
    return true;
}

void address_space_close(struct address_space *self)
{
    if (self->unit_bytes)
        ar_range_pool_close(&self->pool);
}

/* Takes the low end of a free range. */
static uint64_t cut(struct address_space *self, uint32_t *root, uint32_t node, uint64_t bytes)
{
    uint64_t address = at(self, node)->address;
    uint64_t left = at(self, node)->bytes - bytes;
    if (left)
        ar_range_tree_change(&self->pool, *root, node, address + bytes, left);
    else
        drop(self, root, node);
    return address;
}

bool address_space_take(struct address_space *self, uint64_t bytes, uint64_t *address)
{
    if (bytes >= self->top || self->taken >= UINT32_MAX / 2 ||
        !ar_range_pool_reserve(&self->pool, self->taken + 1 + TAKE_NODES))
        return false;
    uint32_t rest = ar_range_tree_first(&self->pool, self->rests, 0, bytes);
    if (rest) {
        *address = cut(self, &self->rests, rest, bytes);
        self->taken++;
        return true;
    }
    uint64_t range_bytes = ar_size_round_up(bytes, self->unit_bytes);
    uint32_t gap = ar_range_tree_first(&self->pool, self->gaps, 0, range_bytes + self->unit_bytes);
    if (!gap)
        return false;
    *address = self->top - cut(self, &self->gaps, gap, range_bytes) - range_bytes;
    add(self, &self->ranges, *address, range_bytes);
    add(self, &self->rests, *address + bytes, range_bytes - bytes);
    self->taken++;
    return true;
}

/* A range that nothing is left of becomes a gap, unless it stays. */
static void give_in_range(struct address_space *self, uint64_t address, uint64_t bytes, bool stays)
{
    uint32_t range = ar_range_tree_last(&self->pool, self->ranges, address);
    uint64_t low = at(self, range)->address, range_bytes = at(self, range)->bytes;
    struct ar_range_node rest = merge(self, &self->rests, address, bytes, low, low + range_bytes);
    if (stays || rest.bytes < range_bytes) {
        add(self, &self->rests, rest.address, rest.bytes);
        return;
    }
    drop(self, &self->ranges, range);
    struct ar_range_node gap =
        merge(self, &self->gaps, self->top - low - range_bytes, range_bytes, 0, self->top);
    add(self, &self->gaps, gap.address, gap.bytes);
}

void address_space_local(struct address_space *self, uint64_t bytes)
{
    uint64_t before = self->local, before_bytes = self->local_bytes, address;
    bytes = ar_size_round_up(bytes + LOCAL_BYTES, PAGE_BYTES);
    if (!before && (self->taken || !address_space_take(self, START_BYTES, &address)))
        return;
    if (bytes <= before_bytes || !address_space_take(self, bytes, &address))
        return;
    self->local = address;
    self->local_bytes = bytes;
    if (before) { /* the driver keeps the range, whether or not there is more in it */
        self->taken--;
        give_in_range(self, before, before_bytes, true);
    }
}

void address_space_taken(struct address_space *self, uint64_t bytes)
{
    uint64_t address;
    if (self->local)
        (void)address_space_take(self, ar_size_round_up(bytes, PAGE_BYTES), &address);
}

void address_space_give(struct address_space *self, uint64_t address, uint64_t bytes)
{
    self->taken--;
    give_in_range(self, address, bytes, false);
}
