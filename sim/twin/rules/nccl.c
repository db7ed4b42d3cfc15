#include "sim/twin/rules/nccl.h"

#include "allocators/base/size.h"

#define STEPS         8  /* NCCL_STEPS */
#define SHARED_STEPS  16 /* NCCL_SHARED_STEPS */
#define SEND_BYTES    512
#define RECEIVE_BYTES 4096
#define LL_BYTES      UINT64_C(524288)  /* 8 lines x 512 threads x 8 steps x 16 bytes */
#define LL128_BYTES   UINT64_C(4915200) /* 120 elements x 640 threads x 8 steps x 8 bytes */
#define NVLS_CHUNK    UINT64_C(131072)  /* NCCL_NVLS_CHUNKSIZE */
#define SMALL_BYTES   (256 * AR_KIB) /* up to here a tree serves an all-reduce of several nodes */

/* CU_MULTICAST_GRANULARITY_RECOMMENDED of an NVLink 4 system. Not in a log that we know; NCCL's
 * notes on 2.26 say that the change "potentially saves hundreds of MBs". */
#define MULTICAST_BYTES (512 * AR_MIB)

enum { SENDS = 1, RECEIVES = 2 };

static uint32_t least(uint32_t a, uint32_t b)
{
    return a < b ? a : b;
}

static uint32_t power_of_two_up(uint32_t n)
{
    uint32_t power = 1;
    while (power < n)
        power *= 2;
    return power;
}

static struct nccl_setup with_defaults(const struct nccl_setup *given)
{
    struct nccl_setup setup = *given;
    if (!setup.release)
        setup.release = NCCL_RELEASE_DEFAULT;
    if (!setup.ranks_per_node)
        setup.ranks_per_node = 8;
    setup.ranks_per_node = least(setup.ranks_per_node, NCCL_LOCAL_PEERS);
    if (!setup.buffer_bytes)
        setup.buffer_bytes = 4 * AR_MIB;
    setup.no_cumem |= setup.release < 219;
    setup.eager |= setup.no_cumem || setup.release < 222;
    setup.no_nvls |= !setup.nvlink || setup.compute < 90 || setup.release < 217;
    return setup;
}

/* The number of channels that the search finds on the usual server of that kind of card. */
static uint32_t search_channels(const struct nccl_communicator *self)
{
    const struct nccl_setup *setup = &self->setup;
    uint32_t most = setup->release < 225 ? 32 : 64;
    if (self->ranks == 1)
        return most;
    if (setup->channels)
        return least(setup->channels, most);
    if (!setup->nvlink)
        return self->nodes == 1 ? 2 : 4;
    if (self->nodes > 1)
        return self->local_ranks > 1 ? 16 : 4;
    return setup->compute >= 100 ? 32 : setup->compute >= 80 ? 24 : 12;
}

static uint32_t local_ranks_of(const struct nccl_communicator *self, uint32_t node)
{
    uint32_t first = node * self->setup.ranks_per_node;
    return least(self->setup.ranks_per_node, self->ranks - first);
}

static uint32_t node_of(const struct nccl_communicator *self, uint32_t rank)
{
    return rank / self->setup.ranks_per_node;
}

struct nccl_communicator nccl_communicator(const struct nccl_setup *setup, uint32_t ranks,
                                           uint32_t rank)
{
    struct nccl_communicator self = {.setup = with_defaults(setup), .ranks = ranks, .rank = rank};
    self.nodes = node_of(&self, ranks - 1) + 1;
    self.local_ranks = local_ranks_of(&self, node_of(&self, rank));
    self.channels = search_channels(&self);
    self.p2p_channels = power_of_two_up(self.channels);
    self.p2p_per_peer = self.setup.nvlink && self.nodes == 1 ? self.p2p_channels : 2;
    self.p2p_per_peer = least(self.p2p_per_peer, self.p2p_channels);
    if (!self.setup.no_nvls && self.local_ranks > (self.setup.release < 228 ? 2U : 1U))
        self.nvls_channels = self.setup.compute < 100 || self.nodes > 1 ? 16 : 24;
    return self;
}

/* One allocation. Without cuMem small ones share pages. */
static uint64_t allocation(const struct nccl_communicator *self, uint64_t bytes)
{
    if (self->setup.no_cumem)
        return bytes < AR_MIB ? 0 : bytes;
    return ar_size_round_up(bytes, NCCL_PAGE_BYTES);
}

static uint64_t taken(struct nccl_communicator *self, uint64_t bytes)
{
    self->bytes += bytes;
    return bytes;
}

/* Whether the receiver reads from the sender's memory: A100s with each other over NVLink. */
static bool reads(const struct nccl_setup *setup)
{
    return setup->nvlink && setup->compute == 80;
}

/* The buffers of one channel for a connection to `peer`, in one direction. */
static uint64_t connection(const struct nccl_communicator *self, uint32_t peer, bool sends)
{
    const struct nccl_setup *setup = &self->setup;
    uint64_t bytes;
    if (node_of(self, peer) != node_of(self, self->rank))
        bytes = LL128_BYTES + setup->buffer_bytes;
    else if (setup->no_p2p)
        bytes = 0;
    else if (sends)
        bytes = SEND_BYTES + (reads(setup) ? setup->buffer_bytes : 0);
    else
        bytes = RECEIVE_BYTES + LL_BYTES + LL128_BYTES + (reads(setup) ? 0 : setup->buffer_bytes);
    return ar_size_round_up(bytes, NCCL_PAGE_BYTES);
}

/* The rank at `place` of a channel's ring: node by node, each turned by the number of the channel,
 * so that channels leave a node at different ranks. */
static uint32_t ring_rank(const struct nccl_communicator *self, uint32_t channel, uint32_t place)
{
    if (self->nodes == 1)
        return place;
    uint32_t node = node_of(self, place), first = node * self->setup.ranks_per_node;
    return first + (place - first + channel) % local_ranks_of(self, node);
}

static uint32_t ring_place(const struct nccl_communicator *self, uint32_t channel)
{
    if (self->nodes == 1)
        return self->rank;
    uint32_t first = node_of(self, self->rank) * self->setup.ranks_per_node;
    uint32_t local = self->local_ranks;
    return first + (self->rank - first + local - channel % local) % local;
}

/* The same; `network`: only of a connection through the network. */
static uint64_t link_bytes(const struct nccl_communicator *self, uint32_t peer, bool sends,
                           bool network)
{
    if (network && node_of(self, peer) == node_of(self, self->rank))
        return 0;
    return connection(self, peer, sends);
}

/* The connections of rings or trees. Both are of NCCL's connection index 0 and share those that
 * they have in common: the tree of a node is a chain in the order of the ring. */
static uint64_t connect_channels(const struct nccl_communicator *self, bool network)
{
    const bool ring = self->ring, tree = self->tree;
    uint64_t bytes = 0;
    uint32_t n = self->ranks;
    if (n == 1)
        return 0;
    for (uint32_t c = 0; c < self->channels; c++) {
        uint32_t place = ring_place(self, c);
        uint32_t next = ring_rank(self, c, (place + 1) % n);
        uint32_t previous = ring_rank(self, c, (place + n - 1) % n);
        bool has_next = tree && place + 1 < n, has_previous = tree && place > 0;
        bool sends_next = ring || has_next, sends_previous = has_previous;
        bool gets_next = has_next, gets_previous = ring || has_previous;
        if (next == previous) {
            sends_next |= sends_previous;
            gets_previous |= gets_next;
            sends_previous = gets_next = false;
        }
        bytes += sends_next ? link_bytes(self, next, true, network) : 0;
        bytes += sends_previous ? link_bytes(self, previous, true, network) : 0;
        bytes += gets_next ? link_bytes(self, next, false, network) : 0;
        bytes += gets_previous ? link_bytes(self, previous, false, network) : 0;
    }
    return bytes;
}

static uint64_t connect(struct nccl_communicator *self, bool ring, bool tree)
{
    uint64_t before = connect_channels(self, false), kept = connect_channels(self, true);
    self->ring |= ring;
    self->tree |= tree;
    self->kept += connect_channels(self, true) - kept;
    return taken(self, connect_channels(self, false) - before);
}

/* One buffer for all channels, heads and both directions. */
static uint64_t connect_nvls(struct nccl_communicator *self)
{
    const struct nccl_setup *setup = &self->setup;
    if (self->nvls || !self->nvls_channels)
        return 0;
    self->nvls = true;
    uint64_t one = setup->release < 221 ? setup->buffer_bytes : NVLS_CHUNK * STEPS;
    if (setup->release < 222)
        one += NCCL_PAGE_BYTES;
    uint64_t bytes = one * 2 * self->nvls_channels * self->local_ranks;
    bytes = ar_size_round_up(bytes, setup->release < 226 ? MULTICAST_BYTES : NCCL_PAGE_BYTES);
    self->kept += bytes;
    return taken(self, bytes);
}

/* The buffer that sends to ranks of other nodes share; up to 2.21 and with NCCL_RUNTIME_CONNECT=0
 * every communicator has one. */
static uint64_t shared_bytes(const struct nccl_communicator *self)
{
    uint64_t chunk = self->nodes == 1 && self->setup.nvlink ? 512 * AR_KIB : 128 * AR_KIB;
    if (self->ranks == 1)
        chunk = 512 * AR_KIB;
    if (chunk > self->setup.buffer_bytes / STEPS)
        chunk = self->setup.buffer_bytes / STEPS;
    return allocation(self, self->p2p_channels * SHARED_STEPS * chunk);
}

uint64_t nccl_start(struct nccl_communicator *self)
{
    uint32_t most = self->channels > self->p2p_channels ? self->channels : self->p2p_channels;
    if (self->nvls_channels > most)
        most = self->nvls_channels;
    uint64_t arrays = 3 * (uint64_t)most, others = 2; /* of each channel; of the communicator */
    if (self->nvls_channels)
        others += self->nvls_channels + 1;
    uint64_t bytes = taken(self, (arrays + others) * allocation(self, 512));
    /* Suspended are connections of one node, and from 2.30 on the arrays of channels
     * (ncclMemOffload in p2p.cc and channel.cc). */
    self->kept += (others + (self->setup.release < 230 ? arrays : 0)) * allocation(self, 512);
    if (!self->setup.eager)
        return bytes;
    bytes += connect(self, true, true) + connect_nvls(self);
    self->shared = true;
    self->kept += shared_bytes(self);
    return bytes + taken(self, shared_bytes(self));
}

static uint64_t connect_net(struct nccl_communicator *self, bool *done)
{
    if (*done)
        return 0;
    *done = true;
    self->kept += shared_bytes(self);
    return taken(self, shared_bytes(self));
}

static uint64_t connect_peer(struct nccl_communicator *self, uint32_t peer, uint8_t direction)
{
    if (peer == self->rank)
        return 0;
    if (node_of(self, peer) != node_of(self, self->rank))
        return connect_net(self, direction == SENDS ? &self->net_send : &self->net_receive);
    uint8_t *known = &self->peers[peer % self->setup.ranks_per_node];
    if (*known & direction)
        return 0;
    *known |= direction;
    return taken(self, self->p2p_per_peer * connection(self, peer, direction == SENDS));
}

uint64_t nccl_send(struct nccl_communicator *self, uint32_t peer)
{
    return connect_peer(self, peer, SENDS);
}

uint64_t nccl_receive(struct nccl_communicator *self, uint32_t peer)
{
    return connect_peer(self, peer, RECEIVES);
}

/* Whether a ring serves an all-reduce in one server sooner than NVLS, by NCCL's model of times in
 * microseconds (graph/tuning.cc of 2.28, ncclTopoTuneModel): low latency's 6.6 and 0.6 for each
 * step at 141 GB/s on Hopper and twice that on Blackwell, and NVLS's 25 at 480 and 960 GB/s of the
 * links, 0.85 and 0.74 of them, in both directions. A tree of one server is a chain: never sooner.
 */
static bool ring_is_sooner(const struct nccl_communicator *self, uint64_t bytes)
{
    const bool blackwell = self->setup.compute >= 100;
    double steps = 2 * (self->ranks - 1.0), part = self->ranks / steps, size = (double)bytes / 1e3;
    double ring = 6.6 + 0.6 * steps + size / ((blackwell ? 282 : 141) * part);
    double nvls = 25 + size / ((blackwell ? 0.74 * 960 : 0.85 * 480) * 2 * part);
    return ring < nvls;
}

uint64_t nccl_use(struct nccl_communicator *self, enum nccl_operation operation, uint64_t bytes)
{
    uint64_t added = 0;
    if (operation == NCCL_ALL_TO_ALL || operation == NCCL_GATHER) {
        const bool all = operation == NCCL_ALL_TO_ALL;
        for (uint32_t peer = 0; peer < self->ranks; peer++) {
            added += all || peer == 0 ? nccl_send(self, peer) : 0;
            added += all || self->rank == 0 ? nccl_receive(self, peer) : 0;
        }
        return added;
    }
    if (operation == NCCL_ALL_GATHER)
        return connect(self, true, false);
    if (self->nodes > 1 && bytes <= SMALL_BYTES)
        return connect(self, false, true);
    if (self->nvls_channels && self->local_ranks > 2 &&
        (self->nodes > 1 || !ring_is_sooner(self, bytes)))
        return connect_nvls(self) + (self->nodes > 1 ? connect(self, false, true) : 0);
    return connect(self, true, false);
}

uint64_t nccl_finalize(struct nccl_communicator *self)
{
    uint64_t bytes = self->bytes;
    self->ring = self->tree = self->nvls = false;
    self->shared = self->net_send = self->net_receive = false;
    memset(self->peers, 0, sizeof self->peers);
    self->bytes = self->kept = 0;
    self->suspended = false;
    return bytes;
}

uint64_t nccl_suspend(struct nccl_communicator *self)
{
    uint64_t before = nccl_held(self);
    self->suspended = true;
    return before - nccl_held(self);
}

void nccl_resume(struct nccl_communicator *self)
{
    self->suspended = false;
}

uint64_t nccl_held(const struct nccl_communicator *self)
{
    return self->suspended && !self->setup.no_cumem ? self->kept : self->bytes;
}

uint64_t nccl_captured_bytes(const struct nccl_setup *setup, uint64_t operations)
{
    struct nccl_setup full = with_defaults(setup);
    return full.no_cumem || full.release >= 222 ? 0 : operations * NCCL_PAGE_BYTES;
}

uint64_t nccl_host_bytes(const struct nccl_setup *setup)
{
    return 4 + RECEIVE_BYTES + LL_BYTES + LL128_BYTES + with_defaults(setup).buffer_bytes;
}

uint64_t nccl_mem_alloc_bytes(const struct nccl_setup *setup, uint64_t bytes)
{
    struct nccl_setup full = with_defaults(setup);
    return full.no_cumem ? bytes : ar_size_round_up(bytes, NCCL_PAGE_BYTES);
}
