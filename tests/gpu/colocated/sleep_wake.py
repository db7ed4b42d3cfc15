#!/usr/bin/env python3
"""A trainer and a generator in one process, whose memory sleeps in turn: sleep_wake.py OUT [options]

The generator's weights and its paged key-value cache lie in two torch.cuda.MemPool over sleeping_memory.so; its CUDA
graphs have a pool of their own. A cycle trains, sends the weights to the generator, generates, and puts it to sleep.
OUT.phases.json has the figures after each phase, OUT.csv.gz and OUT.json the allocator's history (common.py).

--order A to D: what is released first. --level: of sleep, as in vLLM (1 keeps the weights in pinned host memory, 2
drops them). --empty: empty_cache after offloads and sleep. --toggle: expandable segments are off while a pool is open.
"""

import argparse
import ctypes
import gc
import json
import random
import time

import common
import torch
import torch.nn.functional as F

PAGE, PAGES, MOST, CHUNK = 16, 40, 64, 2048  # tokens of a page, pages of a sequence, sequences, tokens of a prefill
SIZES = (64, 32, 16, 8, 4, 2, 1)
ORDERS = {
    "A": ["actor.train", "actor.offload optimizer", "rollout.wake weights", "rollout.update", "actor.offload weights",
          "rollout.wake kv_cache", "rollout.generate", "rollout.sleep", "actor.reload"],
    "B": ["actor.train", "rollout.wake weights", "rollout.wake kv_cache", "rollout.update", "actor.offload weights",
          "actor.offload optimizer", "rollout.generate", "actor.reload", "rollout.sleep"],
    "C": ["actor.train", "rollout.wake weights", "rollout.update", "actor.offload weights", "rollout.wake kv_cache",
          "actor.offload optimizer", "rollout.generate", "rollout.sleep", "actor.reload"],
    "D": ["actor.train", "rollout.wake kv_cache", "actor.offload optimizer", "rollout.wake weights", "rollout.update",
          "rollout.generate", "actor.offload weights", "actor.reload", "rollout.sleep"],
}  # fmt: skip
EMPTY_AFTER = ("actor.offload optimizer", "actor.offload weights", "rollout.sleep")


class Sleeping:
    """Pools whose segments can sleep. Without a library they are plain pools, which cannot."""

    TAGS = ("weights", "kv_cache")

    def __init__(self, library, toggle):
        self.toggle, self.pools, self.copies = toggle, {}, {}
        self.lib = self.allocator = None
        if library:
            self.lib = ctypes.CDLL(library)
            for name in ("sleeping_save", "sleeping_restore"):
                getattr(self.lib, name).argtypes = [ctypes.c_int, ctypes.c_void_p]
            made = torch.cuda.memory.CUDAPluggableAllocator(library, "sleeping_malloc", "sleeping_free")
            self.allocator = made.allocator()
        for tag in self.TAGS:
            self.pools[tag] = torch.cuda.MemPool(self.allocator) if library else torch.cuda.MemPool()

    def make(self, tag, function):
        if self.lib:
            self.lib.sleeping_tag(self.TAGS.index(tag))
        if self.toggle:
            torch.cuda.memory._set_allocator_settings("expandable_segments:False")
        try:
            with torch.cuda.use_mem_pool(self.pools[tag]):
                function()
        finally:
            if self.toggle:
                torch.cuda.memory._set_allocator_settings("expandable_segments:True")

    def segments(self):
        """Address, bytes, tag, and whether it is awake, of each segment in the order made."""
        rows = []
        for i in range(self.lib.sleeping_count() if self.lib else 0):
            row = (ctypes.c_uint64 * 4)()
            self.lib.sleeping_segment(i, row)
            rows.append(list(row))
        return rows

    def sleep(self, kept):
        torch.cuda.synchronize()
        for i, (address, size, tag, awake) in enumerate(self.segments()):
            if not (address and awake):
                continue
            if self.TAGS[tag] in kept:
                copy = torch.empty(size, dtype=torch.uint8, pin_memory=True)
                self.lib.sleeping_save(i, copy.data_ptr())
                self.copies[i] = copy
            self.lib.sleeping_unmap(i)

    def wake(self, wanted):
        for i, (address, _, tag, awake) in enumerate(self.segments()):
            if address and not awake and self.TAGS[tag] == wanted:
                if not self.lib.sleeping_map(i):
                    raise RuntimeError("a segment cannot wake")
                if i in self.copies:
                    self.lib.sleeping_restore(i, self.copies.pop(i).data_ptr())

    def bytes_of(self, awake):
        return {t: sum(s[1] for s in self.segments() if s[0] and s[3] == awake and s[2] == i)
                for i, t in enumerate(self.TAGS)}  # fmt: skip


class Actor:
    """The trainer: a GPT in float32 under autocast, AdamW, batches of sequences of varied lengths."""

    def __init__(self, options):
        self.options = options
        self.model = common.Gpt(layers=options.layers).cuda()
        self.optimizer = torch.optim.AdamW(self.model.parameters(), lr=1e-4)
        self.host = {}

    def step(self, length):
        tokens = torch.randint(0, 32000, (4, length), device="cuda")
        positions = torch.arange(length, device="cuda")
        with torch.autocast("cuda", torch.bfloat16):
            logits = self.model.head(self.model(tokens, positions, common.causal))
            loss = F.cross_entropy(logits.flatten(0, 1).float(), tokens.flatten())
        loss.backward()
        torch.nn.utils.clip_grad_norm_(self.model.parameters(), 1.0)
        self.optimizer.step()
        self.optimizer.zero_grad(set_to_none=True)

    def train(self, cycle, mark):
        draw = random.Random(cycle)
        for i in range(4):
            self.step(draw.randrange(200, 1600))
            mark(f"actor.train/{i + 1}")

    def moved(self, key, tensor):
        """A tensor's copy in pinned host memory that is kept from cycle to cycle."""
        if key not in self.host:
            self.host[key] = torch.empty(tensor.shape, dtype=tensor.dtype, pin_memory=True)
        self.host[key].copy_(tensor)
        return self.host[key]

    def states(self):
        for i, p in enumerate(self.model.parameters()):
            for name in ("exp_avg", "exp_avg_sq"):
                if p in self.optimizer.state:
                    yield (i, name), p

    def offload(self, what):
        with torch.no_grad():
            if what == "weights":
                for i, p in enumerate(self.model.parameters()):
                    p.data = self.moved(i, p.data)
            else:
                for (i, name), p in self.states():
                    self.optimizer.state[p][name] = self.moved((i, name), self.optimizer.state[p][name])

    def reload(self):
        with torch.no_grad():
            for p in self.model.parameters():
                p.data = p.data.cuda()
            for (_, name), p in self.states():
                self.optimizer.state[p][name] = self.optimizer.state[p][name].cuda()

    def owners(self):
        return {
            "actor/weights": list(self.model.parameters()),
            "actor/optimizer": [self.optimizer.state[p][name] for (_, name), p in self.states()],
            "actor/gradients": [p.grad for p in self.model.parameters()],
        }


class Rollout:
    """The generator: a GPT in bfloat16 with a paged cache; decoding in graphs, prefill without."""

    def __init__(self, options, sleeping):
        self.options, self.sleeping = options, sleeping
        self.graphs, self.outputs, self.pool = {}, {}, None
        self.cache, self.buffers, self.experience = [], [], []

    def load(self):
        def make():
            with torch.device("cuda"):
                before = torch.get_default_dtype()
                torch.set_default_dtype(torch.bfloat16)
                self.model = common.Gpt(layers=self.options.layers).requires_grad_(False)
                torch.set_default_dtype(before)

        self.sleeping.make("weights", make)

    def allocate(self):
        shape = (2, self.options.pages, PAGE, 16, 64)

        def make():
            for _ in range(self.options.layers):
                self.cache.append(torch.zeros(shape, dtype=torch.bfloat16, device="cuda"))

        self.sleeping.make("kv_cache", make)
        self.tokens, self.positions, self.slots, self.lengths = (
            torch.zeros(MOST, dtype=torch.long, device="cuda") for _ in range(4)
        )
        self.table = torch.zeros(MOST, PAGES, dtype=torch.long, device="cuda")
        self.buffers = [self.tokens, self.positions, self.slots, self.lengths, self.table]

    def store(self, layer, slots, k, v):
        if self.cache:
            self.cache[layer][0].view(-1, 16, 64)[slots] = k
            self.cache[layer][1].view(-1, 16, 64)[slots] = v

    def prefill(self, tokens, positions, slots, bounds):
        """Flat tokens of whole prompts; the logits after the last token of each."""

        def attention(layer):
            def attend(q, k, v):
                self.store(layer, slots, k, v)
                return torch.cat([common.causal(layer)(*(t[a:b].unsqueeze(0) for t in (q, k, v))).squeeze(0)
                                  for a, b in bounds])  # fmt: skip

            return attend

        hidden = self.model(tokens, positions, attention)
        return self.model.head(hidden[[b - 1 for _, b in bounds]])

    def decode(self, size):
        """One token of `size` sequences, from the static buffers."""
        tokens, positions, slots = self.tokens[:size], self.positions[:size], self.slots[:size]
        table, seen = self.table[:size], torch.arange(PAGES * PAGE, device="cuda") < self.lengths[:size, None]

        def attention(layer):
            def attend(q, k, v):
                self.store(layer, slots, k, v)
                k, v = (c[table].view(size, PAGES * PAGE, 16, 64).transpose(1, 2) for c in self.cache[layer])
                y = F.scaled_dot_product_attention(q.unsqueeze(2), k, v, attn_mask=seen[:, None, None, :])
                return y.squeeze(2)

            return attend

        return self.model.head(self.model(tokens, positions, attention))

    def profile(self):
        """The largest prefill, without a cache, and samples for the most sequences."""
        torch.cuda.reset_peak_memory_stats()
        begun = torch.cuda.memory_allocated()
        each = CHUNK // MOST
        tokens = torch.zeros(CHUNK, dtype=torch.long, device="cuda")
        positions = torch.arange(each, device="cuda").repeat(MOST)
        self.sample(self.prefill(tokens, positions, None, [(i * each, (i + 1) * each) for i in range(MOST)]))
        return {"profile_peak": torch.cuda.max_memory_allocated() - begun}

    def sample(self, logits):
        return torch.multinomial(logits.float().softmax(-1), 1)

    def capture(self, mark):
        free = torch.cuda.mem_get_info()[0]
        self.pool, rows = torch.cuda.graph_pool_handle(), []
        for size in SIZES:
            self.decode(size)
            graph = torch.cuda.CUDAGraph(keep_graph=True)
            with torch.cuda.graph(graph, pool=self.pool):
                self.outputs[size] = self.decode(size)
            nodes = common.nodes_of(graph)
            graph.instantiate()
            self.graphs[size] = graph
            now = torch.cuda.mem_get_info()[0]
            rows.append({"size": size, "nodes": nodes, "card_bytes": free - now})
            free = now
            mark(f"rollout.capture/{size}")
        return {"graphs": rows}

    def generate(self, cycle, mark):
        """Logits of prompts and probabilities of samples are kept until the next call."""
        self.experience.clear()
        draw = random.Random(1000 + cycle)
        free = list(range(self.options.pages))
        prompts = [draw.randrange(32, 512) for _ in range(MOST)]
        left = [draw.randrange(16, 48) for _ in range(MOST)]
        pages = [[free.pop() for _ in range(-(-(n + k) // PAGE))] for n, k in zip(prompts, left)]
        tables = torch.tensor([p + [0] * (PAGES - len(p)) for p in pages])
        slot_of = [lambda t, p=p: p[t // PAGE] * PAGE + t % PAGE for p in pages]
        last, batch = {}, []
        for s in range(MOST + 1):
            if s == MOST or sum(prompts[i] for i in batch) + prompts[s] > CHUNK:
                ends = [sum(prompts[i] for i in batch[: j + 1]) for j in range(len(batch))]
                bounds = [(e - prompts[i], e) for i, e in zip(batch, ends)]
                tokens = torch.randint(0, 32000, (ends[-1],)).cuda()
                positions = torch.cat([torch.arange(prompts[i]) for i in batch]).cuda()
                slots = torch.tensor([slot_of[i](t) for i in batch for t in range(prompts[i])]).cuda()
                self.experience.append(self.prefill(tokens, positions, slots, bounds))
                for i, token in zip(batch, self.sample(self.experience[-1]).flatten().tolist()):
                    last[i] = token
                batch = []
            batch.append(s)
        mark("rollout.generate/prefill")
        done = [0] * MOST
        while active := [i for i in range(MOST) if done[i] < left[i]]:
            n = len(active)
            size = min(s for s in SIZES if s >= n)
            at = [prompts[i] + done[i] for i in active]
            self.tokens[:n].copy_(torch.tensor([last[i] for i in active]))
            self.positions[:n].copy_(torch.tensor(at))
            self.slots[:n].copy_(torch.tensor([slot_of[i](t) for i, t in zip(active, at)]))
            self.lengths[:n].copy_(torch.tensor(at) + 1)
            self.table[:n].copy_(tables[active])
            self.graphs[size].replay()
            chosen = self.sample(self.outputs[size][:n])
            self.experience.append(self.outputs[size][:n].float().log_softmax(-1).gather(1, chosen))
            for i, token in zip(active, chosen.flatten().tolist()):
                last[i] = token
                done[i] += 1

    def update(self, actor):
        with torch.no_grad():
            for mine, theirs in zip(self.model.parameters(), actor.model.parameters()):
                mine.copy_(theirs.detach().to(torch.bfloat16))

    def owners(self):
        return {
            "rollout/weights": list(self.model.parameters()),
            "rollout/kv cache": self.cache,
            "rollout/buffers": self.buffers,
            "rollout/graph outputs": list(self.outputs.values()),
            "rollout/experience": self.experience,
        }


class Run:
    def __init__(self, options):
        self.options, self.rows, self.cycle, self.failed = options, [], 0, ""
        torch.manual_seed(0)
        torch.cuda.init()
        self.card, self.history = common.Card(), common.History()
        self.pools = {(0, 0): "common"}
        self.sleeping = self.actor = self.rollout = None

    def note(self, phase, more=None):
        torch.cuda.synchronize()
        found = common.segments()
        owners = {**(self.actor.owners() if self.actor else {}), **(self.rollout.owners() if self.rollout else {})}
        if self.rollout and self.rollout.pool:
            self.pools[tuple(self.rollout.pool)] = "graphs"
        row = {"cycle": self.cycle, "phase": phase, **self.card.figures(), **common.statistics(), **(more or {})}
        row["pools"] = {self.pools.get(k, str(k)): v for k, v in common.by_pool(found).items()}
        row["owners"] = common.by_owner(found, owners)
        if self.sleeping:
            row["awake"], row["asleep"] = self.sleeping.bytes_of(1), self.sleeping.bytes_of(0)
        if hasattr(torch.cuda, "host_memory_stats"):
            host = torch.cuda.host_memory_stats()
            keys = ("allocated_bytes.current", "active_bytes.current", "allocated_bytes.peak", "num_host_alloc")
            row["host"] = {k: host[k] for k in keys if k in host}
        self.rows.append(row)
        self.history.mark(phase)
        name = phase.replace(" ", "-")
        torch.cuda.nvtx.mark(name if "." in name or name == "empty_cache" else f"rollout.{name}")
        torch.cuda.reset_peak_memory_stats()

    def phase(self, name, function, *arguments):
        began = time.time()
        try:
            more = function(*arguments)
        except Exception as e:  # noqa: BLE001  the file says which, and in which phase
            self.failed = f"{name}: {type(e).__name__}: {e}"
            raise
        more = more if isinstance(more, dict) else {}
        self.note(name, {**more, "seconds": round(time.time() - began, 4)})
        if self.options.empty and name in EMPTY_AFTER:
            gc.collect()
            torch.cuda.empty_cache()
            self.note("empty_cache")

    def act(self, name):
        actor, rollout, mark = self.actor, self.rollout, self.history.mark
        kept = ("weights",) if self.options.level == 1 else ()
        actions = {
            "actor.train": lambda: actor.train(self.cycle, mark),
            "actor.offload optimizer": lambda: actor.offload("optimizer"),
            "actor.offload weights": lambda: actor.offload("weights"),
            "actor.reload": lambda: actor.reload(),
            "rollout.wake weights": lambda: self.sleeping.wake("weights"),
            "rollout.wake kv_cache": lambda: self.sleeping.wake("kv_cache"),
            "rollout.update": lambda: rollout.update(actor),
            "rollout.generate": lambda: rollout.generate(self.cycle, mark),
            "rollout.sleep": lambda: self.sleeping.sleep(kept),
        }
        with torch.no_grad() if name.startswith("rollout") else torch.enable_grad():
            self.phase(name, actions[name])

    def all(self):
        options = self.options
        self.note("context")
        self.phase("first kernel", lambda: torch.zeros(1, device="cuda").sum().item())
        self.sleeping = Sleeping(options.library, options.toggle)
        self.pools.update({tuple(p.id): t for t, p in self.sleeping.pools.items()})
        with torch.no_grad():
            self.rollout = Rollout(options, self.sleeping)
            self.phase("rollout.load", self.rollout.load)
            self.phase("rollout.profile", self.rollout.profile)
            self.phase("rollout.allocate", self.rollout.allocate)
            self.phase("rollout.capture", self.rollout.capture, self.history.mark)
        self.act("rollout.sleep")

        def load():
            self.actor = Actor(options)

        self.phase("actor.load", load)
        for self.cycle in range(1, options.cycles + 1):
            for name in ORDERS[options.order]:
                self.act(name)


def main():
    p = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    p.add_argument("out")
    p.add_argument("--library", default="")
    p.add_argument("--order", default="A", choices=ORDERS)
    p.add_argument("--level", type=int, default=1)
    p.add_argument("--cycles", type=int, default=7)
    p.add_argument("--layers", type=int, default=12)
    p.add_argument("--pages", type=int, default=4096)
    p.add_argument("--empty", action="store_true")
    p.add_argument("--toggle", action="store_true")
    options = p.parse_args()
    common.wait_for_turn()
    run = Run(options)
    try:
        run.all()
    except Exception as e:  # noqa: BLE001  in the file
        run.failed = run.failed or f"{type(e).__name__}: {e}"
    out = {**common.about(), "options": vars(options), "failed": run.failed, "pools": list(run.pools.values()),
           "segments": run.sleeping.segments() if run.sleeping else [], "phases": run.rows}  # fmt: skip
    events = run.history.write(options.out, run.failed)
    with open(options.out + ".phases.json", "w", encoding="utf-8") as f:
        json.dump(out, f)
    print(options.out, "events", events, "phases", len(run.rows), run.failed[:600] or "finished", flush=True)


main()
