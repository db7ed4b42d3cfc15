/* How: of each mapped page the blocks in use on it are counted. A page is given back where no block
 * lies on it, since free blocks that touch each other are one. */
#include "workloads/formats/torch/snapshot_pages.h"

void snapshot_pages_close(struct snapshot_pages *self)
{
    ar_map_close(&self->uses);
    ar_map_close(&self->blocks);
}

/* The first page that lies in the bytes, or the one that they begin on. */
static uint64_t first_page(struct snapshot_page_size size, uint64_t address)
{
    return address - (address - size.phase % size.bytes) % size.bytes;
}

enum ar_status snapshot_pages_map(struct snapshot_pages *self, struct snapshot_page_size size,
                                  uint64_t address, uint64_t bytes, uint64_t *free_pages)
{
    enum ar_status status = AR_OK;
    uint64_t count, page = first_page(size, address);
    for (; page < address + bytes && !status; page += size.bytes) {
        self->steps++;
        if (ar_map_get(&self->uses, page, &count))
            continue;
        status = ar_map_put(&self->uses, page, 1);
        *free_pages += !status;
    }
    return status;
}

void snapshot_pages_unmap(struct snapshot_pages *self, struct snapshot_page_size size,
                          uint64_t address, uint64_t bytes, uint64_t *free_pages)
{
    uint64_t count, page = first_page(size, address);
    for (; page < address + bytes; page += size.bytes) {
        self->steps++;
        if (!ar_map_get(&self->uses, page, &count))
            continue;
        ar_map_remove(&self->uses, page);
        *free_pages -= count == 1;
    }
}

/* One block more, or one less, on each mapped page of these bytes. */
static enum ar_status count_block(struct snapshot_pages *self, struct snapshot_page_size size,
                                  uint64_t address, uint64_t bytes, bool more, uint64_t *free_pages)
{
    enum ar_status status = AR_OK;
    uint64_t count, page = first_page(size, address);
    for (; page < address + bytes && !status; page += size.bytes) {
        self->steps++;
        if (!ar_map_get(&self->uses, page, &count)) /* past the pages: it cannot be in use */
            break;
        if (!more && count == 1)
            continue;
        status = ar_map_put(&self->uses, page, more ? count + 1 : count - 1);
        *free_pages += !more && count == 2;
        *free_pages -= more && count == 1;
    }
    return status;
}

enum ar_status snapshot_pages_use(struct snapshot_pages *self, struct snapshot_page_size size,
                                  uint64_t address, uint64_t bytes, uint64_t *free_pages)
{
    uint64_t before;
    if (!bytes || ar_map_get(&self->blocks, address, &before))
        return AR_OK;
    enum ar_status status = ar_map_put(&self->blocks, address, bytes);
    return status ? status : count_block(self, size, address, bytes, true, free_pages);
}

enum ar_status snapshot_pages_leave(struct snapshot_pages *self, struct snapshot_page_size size,
                                    uint64_t address, uint64_t *free_pages)
{
    uint64_t bytes;
    if (!ar_map_get(&self->blocks, address, &bytes))
        return AR_OK;
    ar_map_remove(&self->blocks, address);
    return count_block(self, size, address, bytes, false, free_pages);
}
