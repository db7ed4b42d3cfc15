"""Bytes that NCCL takes outside of PyTorch's pool, by rule.

The rule is that of NCCL 2.28.9, which PyTorch 2.11 for CUDA 13 brings. Every allocation below is one of its source:
buffers of the two directions of a connection in src/transport/p2p.cc (p2pSendSetup, p2pRecvSetup) and
src/transport/net.cc, arrays of each channel in src/channel.cc, NVLS in src/transport/nvls.cc, the number of channels in
src/graph/search.cc, connect.cc and paths.cc. With the driver's cuMem interface, which is the default, each allocation
is a multiple of 2 MiB, and a connection is made when the first operation needs it (NCCL_RUNTIME_CONNECT).

What is not exact: the number of channels is searched by NCCL in the topology of the machine, and is taken here from the
kind of the card (NVSwitch or PCIe); which algorithm an all-reduce uses depends on a model of its time, here on its
size; kernels of NCCL that the driver loads belong to the context and are not counted. Public figures: nvidia/nccl#964
(A100: 544 and 688 MiB for each group, which the rule gives without cuMem), #1685 (H100: buffers of 10 and 2 MiB, 32 for
each pair of GPUs), #2363 (64 channels in a group of one rank).
"""

import os

MIB = 1 << 20
PAGE = 2 * MIB  # granularity of cuMemCreate, and CUDA_IPC_MIN
STEPS = 8  # NCCL_STEPS
SHARED_STEPS = 16  # NCCL_SHARED_STEPS
MAX_CHANNELS = 64  # MAXCHANNELS
SMALL_ALL_REDUCE = 256 << 10  # bytes up to which an all-reduce of more than two ranks uses the tree
VERSION = "2.28.9"
LATENCY_NS, REACHED = 12000, 0.8  # of an operation of NCCL, and the part of a link's bandwidth that it reaches


def up(size, unit=PAGE):
    """The size rounded up to a multiple."""
    return (size + unit - 1) // unit * unit


def pow2_up(n):
    return 1 << max(n - 1, 0).bit_length()


def setting(name, default):
    """An integer from NCCL's environment variable."""
    try:
        return int(os.environ.get(f"NCCL_{name}", ""), 0)
    except ValueError:
        return default


def has_nvswitch(card):
    """Whether GPUs of this kind are connected by NVLink switches in the usual server."""
    name = card.upper()
    if "PCIE" in name or "NVL" in name.split():
        return False
    return any(part in name for part in ("SXM", "HBM3", "H20", "H800", "B200", "B300", "GH200"))


class Machine:
    """What the rule needs to know of the machine: card, compute capability times ten, ranks of each node."""

    def __init__(self, card, sm, ranks_per_node):
        self.nvswitch = has_nvswitch(card)
        self.sm = sm
        self.ranks_per_node = max(ranks_per_node, 1)
        self.cumem = setting("CUMEM_ENABLE", 1) != 0
        self.lazy = self.cumem and setting("RUNTIME_CONNECT", 1) != 0
        self.simple = setting("BUFFSIZE", 4 * MIB)
        self.ll = setting("LL_BUFFSIZE", 8 * 512 * STEPS * 16)
        self.ll128 = setting("LL128_BUFFSIZE", 120 * 640 * STEPS * 8)
        self.nvls_chunk = setting("NVLS_CHUNKSIZE", 128 << 10)
        self.nvls = self.nvswitch and sm >= 90 and setting("NVLS_ENABLE", 2) != 0


class Communicator:
    """One communicator of a rank: `start` and the methods for operations return the bytes that they newly allocate."""

    def __init__(self, machine, ranks, rank):
        """Of the global numbers `ranks`; this process is `rank`."""
        self.machine = machine
        self.ranks, self.rank = list(ranks), rank
        self.node = {r: r // machine.ranks_per_node for r in ranks}
        self.local = [r for r in ranks if self.node[r] == self.node[rank]]
        self.nodes = len(set(self.node.values()))
        self.channels = self.search_channels()
        self.p2p_channels = min(pow2_up(self.channels), MAX_CHANNELS)
        local_peers = self.p2p_channels if machine.nvswitch and self.nodes == 1 else 2
        self.p2p_per_peer = min(local_peers, self.p2p_channels)
        nvls = machine.nvls and len(self.local) > 1
        self.nvls_channels = min(16 if machine.sm < 100 or self.nodes > 1 else 24, MAX_CHANNELS) if nvls else 0
        self.connected = set()
        self.bytes = 0

    def search_channels(self):
        """Number of channels for collectives that NCCL's search finds on this kind of machine."""
        machine = self.machine
        if len(self.ranks) == 1:
            found = MAX_CHANNELS
        elif not machine.nvswitch:
            found = 2 if self.nodes == 1 else 4
        elif self.nodes > 1:
            found = 16 if len(self.local) > 1 else 4
        else:
            found = 32 if machine.sm >= 100 else 24 if machine.sm >= 80 else 12
        low, high = setting("MIN_NCHANNELS", 1), setting("MAX_NCHANNELS", MAX_CHANNELS)
        return max(low, min(found, high))

    def take(self, key, *sizes):
        """Counts allocations that are made once for a key; without cuMem small ones share pages and are not counted."""
        if key in self.connected:
            return 0
        self.connected.add(key)
        total = sum(up(s) if self.machine.cumem else s for s in sizes)
        self.bytes += total
        return total

    def start(self):
        """ncclCommInitRank: arrays of each channel, of the communicator and of NVLS."""
        small = 3 * max(self.channels, self.p2p_channels, self.nvls_channels) + 2
        if self.nvls_channels:
            small += self.nvls_channels + 1
        total = self.take("init", *[512] * small)
        if self.machine.lazy:
            return total
        total += self.ring() + self.tree() + self.nvls()
        # init.cc: of the network if there are several nodes, else by the slowest path between two of the ranks
        over_nvlink = self.nodes == 1 and (self.machine.nvswitch or len(self.ranks) == 1)
        chunk = setting("P2P_NVL_CHUNKSIZE", 512 << 10) if over_nvlink else 128 << 10
        chunk = min(chunk, self.machine.simple // STEPS)
        return total + self.take("shared", self.p2p_channels * SHARED_STEPS * chunk)

    def send_size(self, peer):
        """Buffer of this rank in a connection to a peer: only A100s read over NVLink from the sender's memory."""
        if self.node[peer] != self.node[self.rank]:
            return up(self.machine.ll128 + self.machine.simple)
        if not self.machine.nvswitch and setting("P2P_DISABLE", 0):
            return 0
        return up(512 + (self.machine.simple if self.reads() else 0))

    def receive_size(self, peer):
        if self.node[peer] != self.node[self.rank]:
            return up(self.machine.ll128 + self.machine.simple)
        if not self.machine.nvswitch and setting("P2P_DISABLE", 0):
            return 0
        return up(4096 + self.machine.ll + self.machine.ll128 + (0 if self.reads() else self.machine.simple))

    def reads(self):
        return self.machine.nvswitch and self.machine.sm == 80

    def connect(self, kind, peer, send, receive, channels):
        """Connections to a peer. Rings and trees share theirs, as both are of NCCL's connection index 0."""
        total = 0
        for c in range(channels):
            if send:
                total += self.take((kind, peer, "send", c), self.send_size(peer))
            if receive:
                total += self.take((kind, peer, "receive", c), self.receive_size(peer))
        return total

    def ring(self):
        """The ring of every channel. With several nodes, channel c leaves a node at its c-th rank."""
        ranks, at = self.ranks, self.ranks.index(self.rank)
        if len(ranks) == 1:
            return 0
        total = 0
        for c in range(self.channels):
            order = ranks if self.nodes == 1 else self.order_of(c)
            at = order.index(self.rank)
            following, before = order[(at + 1) % len(order)], order[at - 1]
            total += self.take(("coll", following, "send", c), self.send_size(following))
            total += self.take(("coll", before, "receive", c), self.receive_size(before))
        return total

    def order_of(self, channel):
        """Ranks in the order of a channel's ring: node by node, each rotated by the number of the channel."""
        order = []
        for node in sorted(set(self.node.values())):
            inside = [r for r in self.ranks if self.node[r] == node]
            turn = channel % len(inside)
            order += inside[turn:] + inside[:turn]
        return order

    def tree(self):
        """Trees: a chain within the node, so that a rank has one or two neighbours, in both directions."""
        if len(self.ranks) == 1:
            return 0
        total = 0
        for c in range(self.channels):
            order = self.ranks if self.nodes == 1 else self.order_of(c)
            at = order.index(self.rank)
            for peer in order[max(at - 1, 0) : at] + order[at + 1 : at + 2]:
                total += self.take(("coll", peer, "send", c), self.send_size(peer))
                total += self.take(("coll", peer, "receive", c), self.receive_size(peer))
        return total

    def nvls(self):
        """NVLink SHARP: one buffer for all channels, heads and both directions (ncclNvlsBufferSetup)."""
        if not self.nvls_channels:
            return 0
        return self.take("nvls", self.nvls_channels * 2 * self.machine.nvls_chunk * STEPS * len(self.local))

    def ring_is_sooner(self, size):
        """Than NVLS, in one server: as in sim/twin/rules/nccl.c."""
        blackwell = self.machine.sm >= 100
        steps = 2 * (len(self.ranks) - 1)
        part, size = len(self.ranks) / steps, size / 1e3
        ring = 6.6 + 0.6 * steps + size / ((282 if blackwell else 141) * part)
        return ring < 25 + size / ((0.74 * 960 if blackwell else 0.85 * 480) * 2 * part)

    def all_reduce(self, size):
        if self.nodes > 1 and size <= SMALL_ALL_REDUCE:
            return self.tree()
        if self.nvls_channels and len(self.local) > 2 and (self.nodes > 1 or not self.ring_is_sooner(size)):
            return self.nvls() + (self.tree() if self.nodes > 1 else 0)
        return self.ring()

    def nanoseconds(self, kind, size):
        """Time of an operation: `size` bytes of this rank's input, by the bandwidth of the slowest link of its ring."""
        n = len(self.ranks)
        if n == 1:
            link = 1500.0  # copies within the card's memory, 10^9 bytes per second
        elif self.nodes > 1:
            link = 45.0
        elif self.machine.nvswitch:
            link = 700.0 if self.machine.sm >= 100 else 370.0 if self.machine.sm >= 90 else 240.0
        else:
            link = 20.0
        factor = {"all_reduce": 2 * (n - 1) / n, "all_gather": n - 1, "reduce_scatter": (n - 1) / n}.get(kind, 1)
        return int(LATENCY_NS + size * (factor or 1) / link / REACHED)

    def p2p(self, send_to=(), receive_from=()):
        """Sends and receives, also those of which all-to-all, gather and scatter consist."""
        total = 0
        for peers, send in ((send_to, True), (receive_from, False)):
            for peer in peers:
                if peer == self.rank:
                    continue
                if self.node[peer] != self.node[self.rank]:
                    shared = self.p2p_channels * SHARED_STEPS * min(128 << 10, self.machine.simple // STEPS)
                    total += self.take(("net", send), shared)
                else:
                    total += self.connect("p2p", peer, send, not send, self.p2p_per_peer)
        return total
