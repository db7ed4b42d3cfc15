/* Device memory that NCCL takes beside the pool of a framework, by rule: what each communicator
 * allocates when it is made and when an operation first needs a connection.
 *
 * The sources are NCCL's own, 2.17 to 2.30. Buffers of the two directions of a connection are from
 * src/transport/p2p.cc (p2pSendSetup, p2pRecvSetup) and net.cc, the arrays of each channel from
 * channel.cc (initChannel), NVLink SHARP from nvls.cc (ncclNvlsSetup, ncclNvlsBufferSetup), the
 * order of it all from init.cc (initTransportsRank). Differences of releases:
 *
 *   before 2.19  cudaMalloc: small arrays share pages and are not counted here
 *   2.19         cuMemCreate by default (driver 12.0): each allocation is a multiple of 2 MiB
 *   2.19..2.21   each operation that a graph captures keeps a buffer of its own, 2 MiB
 *                (enqueue.cc, uploadWork); from 2.22 on its arguments are part of the kernel
 *   before 2.21  NVLS: NCCL_BUFFSIZE and 2 MiB for each direction of a channel and head
 *   2.21         NVLS: 8 chunks of 128 KiB, and 2 MiB; from 2.22 on without the 2 MiB
 *   before 2.22  all connections are made with the communicator; from 2.22 on by the first
 *                operation that needs them (NCCL_RUNTIME_CONNECT=1)
 *   2.25         up to 64 channels instead of 32
 *   before 2.28  two cards have no NVLS (nvls.cc, ncclNvlsInit; 2.28.7 on)
 *   before 2.26  memory of NVLS is a multiple of the recommended granularity of multicast objects
 *
 * What is not exact: NCCL searches the number of channels in the topology of the machine. Here it
 * is that of the usual server, or `channels`. Trees between nodes are chains here. Kernels of NCCL
 * that the driver loads are counted by parts/nccl.c. */
#pragma once

#include <stdbool.h>
#include <stdint.h>

#define NCCL_PAGE_BYTES      (UINT64_C(2) << 20) /* of cuMemCreate, and of a shared buffer */
#define NCCL_RELEASE_DEFAULT 228                 /* 2.28, which PyTorch 2.11 brings */
#define NCCL_LOCAL_PEERS     128 /* a node, or an NVLink domain, has no more ranks */

/* The machine and NCCL's settings. A zeroed struct with `compute` and `ranks_per_node` is valid:
 * zero is the default of each other field. */
struct nccl_setup {
    uint32_t release;        /* 228: NCCL 2.28; 0: NCCL_RELEASE_DEFAULT */
    uint32_t compute;        /* compute capability times ten: 90 for an H100 */
    uint32_t ranks_per_node; /* ranks that NVLink or PCIe connects; 0: 8 */
    bool no_p2p;             /* cards of a node reach each other through host memory (SHM) */
    bool nvlink;             /* all cards of a node are connected through NVLink switches */
    bool no_cumem;           /* NCCL_CUMEM_ENABLE=0, or a driver before 12.0 */
    bool eager;              /* NCCL_RUNTIME_CONNECT=0 */
    bool no_nvls;            /* NCCL_NVLS_ENABLE=0, or switches without multicast */
    uint32_t channels;       /* of rings and trees; 0: as found on the usual server */
    uint64_t buffer_bytes;   /* NCCL_BUFFSIZE; 0: 4 MiB */
};

enum nccl_operation {
    NCCL_ALL_REDUCE,
    NCCL_ALL_GATHER, /* also reduce-scatter, broadcast and reduce: the ring */
    NCCL_ALL_TO_ALL, /* every rank sends to every other */
    NCCL_GATHER,     /* to rank 0 (PyTorch's, torch/csrc/cuda/nccl.cpp, gather) */
    NCCL_OPERATIONS,
};

/* One communicator of one rank, and what it has connected. */
struct nccl_communicator {
    struct nccl_setup setup; /* with all defaults filled in */
    uint32_t ranks, rank, nodes, local_ranks;
    uint32_t channels, p2p_channels, p2p_per_peer, nvls_channels;
    bool ring, tree, nvls, shared, net_send, net_receive;
    uint8_t peers[NCCL_LOCAL_PEERS]; /* bits: sends to, receives from that local rank */
    uint64_t bytes;
    uint64_t kept; /* of `bytes`: stays while suspended */
    bool suspended;
};

/* A communicator of `ranks` ranks, of which this process is number `rank`. Ranks fill one node
 * after the other. Nothing is allocated yet. */
struct nccl_communicator nccl_communicator(const struct nccl_setup *setup, uint32_t ranks,
                                           uint32_t rank);

/* Each returns the bytes that are newly allocated; they are added to `bytes`. PyTorch makes the
 * communicator of a process group at its first operation (or in init_process_group if a device_id
 * is given). */
uint64_t nccl_start(struct nccl_communicator *self);
uint64_t nccl_use(struct nccl_communicator *self, enum nccl_operation operation, uint64_t bytes);
/* Sends to, and receives from, one other rank. */
uint64_t nccl_send(struct nccl_communicator *self, uint32_t peer);
uint64_t nccl_receive(struct nccl_communicator *self, uint32_t peer);

/* What ncclCommDestroy returns to the driver: all of `bytes`. The communicator can start again. */
uint64_t nccl_finalize(struct nccl_communicator *self);

/* ncclCommSuspend with NCCL_SUSPEND_MEM, from 2.29.7 on (mem_manager.cc): releases what cuMem
 * allocations the communicator has, with copies in pinned host memory of the same size, but for the
 * buffers of NVLS (nvls.cc) and of the network (net.cc), which are ncclMemPersist. Returns the
 * bytes that are released. Without cuMem there are none. */
uint64_t nccl_suspend(struct nccl_communicator *self);
/* ncclCommResume: the same bytes are taken again. */
void nccl_resume(struct nccl_communicator *self);
/* The bytes of the card that it has now. */
uint64_t nccl_held(const struct nccl_communicator *self);

/* What captured graphs keep for `operations` operations of NCCL, until they are destroyed. */
uint64_t nccl_captured_bytes(const struct nccl_setup *setup, uint64_t operations);

/* Host memory of each connection through shared memory (no_p2p): "Allocated 9637892 bytes of shared
 * memory" in NCCL's log; a connection through a network without GPUDirect pins as much. */
uint64_t nccl_host_bytes(const struct nccl_setup *setup);

/* Device memory of one ncclMemAlloc. */
uint64_t nccl_mem_alloc_bytes(const struct nccl_setup *setup, uint64_t bytes);

/* The registration of a user buffer takes no device memory by itself. It maps the buffer at the
 * peers; NCCL keeps its own buffers for operations that are not registered. From 2.22 on they are
 * never made if all operations are registered. */
