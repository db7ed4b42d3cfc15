"""What takes the place of XLA's executable: an execution writes requests and frees, and returns stand-ins."""

import numpy

from .jax_arrays import Buffer
from .jax_cards import kernel_ns


class Token:
    """Stands for the token of an execution with effects."""

    def block_until_ready(self):
        return self

    def get_token(self, device):
        return self


class Results:
    """The results of an execution, as JAX takes them: for each output the arrays on each device."""

    def __init__(self, outputs):
        self.outputs = outputs

    def consume_with_handlers(self, handlers, strict=True):
        taken, self.outputs = self.outputs[: len(handlers)], self.outputs[len(handlers) :]
        return [handler(arrays) for handler, arrays in zip(handlers, taken)]

    def disassemble_into_single_device_arrays(self):
        return self.outputs

    def disassemble_prefix_into_single_device_arrays(self, count):
        taken, self.outputs = self.outputs[:count], self.outputs[count:]
        return taken

    def consume_token(self):
        return Token()

    get_sharded_token = consume_token


class Executable:
    """In place of XLA's executable: executing writes requests and frees and returns stand-ins."""

    def __init__(self, session, executable, program, devices, values, tokens, constants):
        self.session, self.executable, self.program = session, executable, program
        self.devices, self.values = list(devices), values
        self.tokens, self.constants = tokens, constants
        self.kinds = None
        self.fingerprint = self.traceback = None
        self.client = self.devices[0].client

    def local_devices(self):
        return self.devices

    def __getattr__(self, name):  # shardings, layouts, statistics: XLA's own
        return getattr(self.executable, name)

    def cost_analysis(self):
        return {"flops": self.program.flops, "bytes accessed": self.program.accessed}

    def memory_kind(self, output):
        if self.kinds is None:
            try:
                self.kinds = self.executable.get_output_memory_kinds()[0]
            except Exception:
                self.kinds = []
        kind = self.kinds[output] if output < len(self.kinds) else None
        return kind if kind == "pinned_host" else None

    def known_values(self, arguments):
        """{output: value} of the small results."""
        if self.values is None:
            return {}
        session, known = self.session, []
        for array in arguments[self.tokens + self.constants :]:
            buffer = session.arrays.find(session.arrays.pieces(array)[0])
            whole = buffer is not None and buffer.value is not None and buffer.value.shape == array.shape
            if not array.size:
                known.append(numpy.zeros(array.shape, array.dtype))
            else:
                known.append(buffer.value if whole else None)
        return {n + self.tokens: v for n, v in self.values.compute(known).items()}

    def execute_sharded(self, arguments, with_tokens=False):
        session, program = self.session, self.program
        if session.real():
            raise RuntimeError("allocrig trace: a function of the traced program cannot run in a forked process")
        with session.lock:
            session.flush()
            at = session.user_line()
            pieces = [session.arrays.pieces(a) for a in arguments]
            values = self.known_values(arguments)
            results = [[] for _ in program.shapes]
            for place, device in enumerate(self.devices):
                self.execute_on(place, device, pieces, values, results, at)
            self.donate(pieces)
            session.flush()
            session.in_flight = True
            session.executed(program)
            return Results(results)

    def execute_on(self, place, device, pieces, values, results, at):
        """The requests and frees of one device, and its piece of each result."""
        session, program = self.session, self.program
        temporary, buffers = [], {}
        for size, output, role, pinned in program.requests:
            number = session.request(size, device.id, f"{program.name}:{role}", at, pinned)
            buffer = Buffer(number, size, None, device.id, pinned)
            if output is None:
                temporary.append(buffer)
            else:
                buffers[output] = buffer
        if not device.id:
            session.event(f"k,0,{kernel_ns(session.card_name, program.flops, program.accessed)},tag={program.name}")
        session.freed.extend(temporary)
        for output, number in program.aliases.items():
            given = session.arrays.find(pieces[number][place])
            if given is not None:
                buffers[output] = Buffer(given.number, given.size, None, device.id, given.pinned)
                given.number = None
        for output, (name, shape) in enumerate(program.shapes):
            # an output without a request of its own shares another one's memory or has none
            buffer = buffers.get(output) or Buffer(None, 0, None, device.id)
            dtype, value = dtype_of(name), values.get(output)
            if value is not None and value.shape == shape and len(self.devices) == 1:
                buffer.value = value.astype(dtype, copy=False)
            results[output].append(session.arrays.make(buffer, shape, dtype, device, self.memory_kind(output)))

    def donate(self, pieces):
        """Donated arguments are gone; their memory is free unless an output has it."""
        for number in sorted(self.program.donors):
            for piece in pieces[number] if number < len(pieces) else ():
                piece.delete()


def dtype_of(name):
    """numpy's dtype of a type of XLA."""
    import ml_dtypes

    names = {"pred": "bool", "token": "bool", "c64": "complex64", "c128": "complex128", "bf16": "bfloat16"}
    long = names.get(name)
    if long is None:
        kind, bits = {"s": "int", "u": "uint", "f": "float"}[name[0]], name[1:]
        long = kind + bits if bits.isdigit() else f"{kind}{bits[0]}_{bits[1:]}"  # f8e4m3fn: float8_e4m3fn
    return numpy.dtype(getattr(ml_dtypes, long, long))
