"""Random numbers that the program's CPU generator would have drawn for tensors without data.

Sizes of a program often come from its own random numbers: lengths of sequences, edges of graphs. They are those of the
real program only if the generator has drawn everything that came before. Initial values of parameters and large inputs
are not computed here, so the generator skips as many numbers as they take. Rules: native/cpu/DistributionTemplates.h
of PyTorch 2.11. One number of 32 bits for each element, two for doubles; normal_ of at least 16 elements draws the last
16 again if their number is not a multiple of 16.
"""

import torch

SMALL = 4096  # elements of a tensor that is computed, whatever the operator
CHUNK = 1 << 20
MOST = 1 << 30  # elements that are skipped in one program: some seconds
UNIFORM, NORMAL = ("uniform_", "rand", "rand_like"), ("normal_", "randn", "randn_like")
_buffers = {}
_skipped = 0


def skip(session, func, shape, dtype, generator=None, contiguous=True):
    """Draws from the CPU generator what an operator on the CPU would draw for a tensor of this shape."""
    global _skipped
    name = func._schema.name.split("::")[1]
    if name not in UNIFORM and name not in NORMAL or not dtype.is_floating_point:
        return
    count = 1
    for n in shape:
        count *= n
    with session.paused():
        if count <= SMALL or name in NORMAL and not contiguous:
            if count <= MOST >> 8:
                sample = torch.empty(count, dtype=dtype)
                sample.uniform_(generator=generator) if name in UNIFORM else sample.normal_(generator=generator)
            return
        if name in NORMAL and count % 16:
            count += 16
        if _skipped + count > MOST:
            return
        _skipped += count
        kind = torch.float64 if dtype is torch.float64 else torch.float32
        buffer = _buffers.setdefault(kind, torch.empty(CHUNK, dtype=kind))
        while count > 0:
            buffer[:count].uniform_(generator=generator)
            count -= CHUNK


def install(current):
    """A state of the CPU generator carries that of the tracer's own draws: a recomputation draws what the forward pass
    drew, as on a card, such as the same experts."""
    get, put = torch.get_rng_state, torch.set_rng_state

    def get_rng_state():
        state, session = get(), current()
        if session is not None:
            state._draws = session.generator.get_state()
        return state

    def set_rng_state(state):
        put(state)
        session, draws = current(), getattr(state, "_draws", None)
        if session is not None and draws is not None:
            session.generator.set_state(draws)

    torch.get_rng_state = torch.random.get_rng_state = get_rng_state
    torch.set_rng_state = torch.random.set_rng_state = set_rng_state
