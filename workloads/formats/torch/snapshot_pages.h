/* Which pages of growing segments no block in use lies on: those that a release gives back. */
#ifndef WORKLOADS_FORMATS_TORCH_SNAPSHOT_PAGES_H
#define WORKLOADS_FORMATS_TORCH_SNAPSHOT_PAGES_H

#include "allocators/base/map.h"

/* The pages of one range: as long as each other, and one begins at `phase`. */
struct snapshot_page_size {
    uint64_t phase, bytes;
};

/* A zeroed struct is empty. */
struct snapshot_pages {
    struct ar_map uses;   /* by the first address of a page: 1 + how many blocks lie on it */
    struct ar_map blocks; /* bytes of those in use, by address */
    uint64_t steps;       /* pages that were touched, for those who set a limit */
};

void snapshot_pages_close(struct snapshot_pages *self);

/* What each of these does to the pages that are mapped and free is added to `*free_pages`. Pages that
 * are there already, or are not, and blocks likewise are passed over. HOST_MEMORY. */
enum ar_status snapshot_pages_map(struct snapshot_pages *self, struct snapshot_page_size size,
                                  uint64_t address, uint64_t bytes,
                                  uint64_t *free_pages) AR_STATUS_CHECKED;
void snapshot_pages_unmap(struct snapshot_pages *self, struct snapshot_page_size size,
                          uint64_t address, uint64_t bytes, uint64_t *free_pages);
enum ar_status snapshot_pages_use(struct snapshot_pages *self, struct snapshot_page_size size,
                                  uint64_t address, uint64_t bytes,
                                  uint64_t *free_pages) AR_STATUS_CHECKED;
enum ar_status snapshot_pages_leave(struct snapshot_pages *self, struct snapshot_page_size size,
                                    uint64_t address, uint64_t *free_pages) AR_STATUS_CHECKED;

#endif
