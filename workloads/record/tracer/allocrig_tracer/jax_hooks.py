"""Where the tracer takes the place of parts of JAX: lowering, compiling, transfers, and what a program asks of its
devices. Known to fit JAX 0.10 to 0.12; `check` finds out whether the places are there."""

import inspect

import numpy

from .jax_arrays import SMALL_BYTES, Buffer
from .jax_execute import Executable
from .jax_values import Values


def _places():
    """The functions that are replaced, as (module, name)."""
    from jax._src import compiler, pjit
    from jax._src.interpreters import mlir, pxla
    from jax._src.lib import xla_client

    return (
        (mlir, "lower_jaxpr_to_module"),
        (compiler, "compile_or_get_cached"),
        (compiler, "backend_compile_and_load"),
        (pjit, "_get_fastpath_data"),
        (pxla.MeshExecutable, "create_cpp_call"),
        (xla_client, "batched_device_put"),
        (xla_client, "batched_copy_array_to_devices_with_sharding"),
    )


def check():
    """Errors: RuntimeError if this JAX lacks a function that the tracer replaces."""
    import jax

    try:
        missing = [name for module, name in _places() if not hasattr(module, name)]
    except ImportError as error:
        missing = [str(error)]
    if missing:
        raise RuntimeError(
            f"allocrig trace: JAX {jax.__version__} has no {', '.join(missing)}: the tracer knows JAX 0.10 to 0.12"
        )


class CudaBackend:
    """The CPU client under the name of the platform that is lowered for."""

    platform = _raw_platform = "cuda"

    def __init__(self, client):
        self.client = client

    def __getattr__(self, name):
        return getattr(self.client, name)


def install(session):
    """Replaces the functions; each calls JAX's own if the recording is over."""
    from jax._src import compiler, pjit
    from jax._src.interpreters import mlir, pxla
    from jax._src.lib import xla_client
    lower, compile_cached = mlir.lower_jaxpr_to_module, compiler.compile_or_get_cached
    load = compiler.backend_compile_and_load
    lowered = {}  # what was lowered to each module that is not compiled yet

    def lower_jaxpr_to_module(module_name, jaxpr, **keys):
        if session.real():
            return lower(module_name, jaxpr, **keys)
        if session.compiler.platform == "cuda" and tuple(keys.get("platforms", ())) == ("cpu",):
            keys["platforms"] = ("cuda",)
            if keys.get("backend") is not None:
                keys["backend"] = CudaBackend(keys["backend"])
        result = lower(module_name, jaxpr, **keys)
        effects = len(keys.get("ordered_effects") or ())
        lowered[id(result.module)] = (result.module, jaxpr, effects, keys.get("num_const_args", 0))
        return result

    signature = inspect.signature(compile_cached)

    def compile_or_get_cached(*arguments, **keys):
        if session.real():
            return compile_cached(*arguments, **keys)
        given = signature.bind(*arguments, **keys).arguments
        module = given["computation"]
        _, jaxpr, tokens, constants = lowered.get(id(module), (module, None, 0, 0))
        devices = list(numpy.asarray(given["devices"]).flatten())
        executable, program = session.compiler.compile(
            load,
            given["backend"],
            module,
            given["compile_options"],
            given["host_callbacks"],
            given["executable_devices"],
        )
        session.compiled(program, devices)
        values = Values(jaxpr, session_value(session), session.on_cpu) if jaxpr is not None else None
        return Executable(session, executable, program, devices, values, tokens, constants)

    mlir.lower_jaxpr_to_module = lower_jaxpr_to_module
    compiler.compile_or_get_cached = compile_or_get_cached
    pjit._get_fastpath_data = lambda *arguments, **keys: None
    pxla.MeshExecutable.create_cpp_call = lambda *arguments, **keys: None
    _transfers(session, xla_client)
    _device(session)


def session_value(session):
    """A function that gives the value of a constant of a function, or None if it is large or not known."""

    def value(constant):
        if isinstance(constant, session.arrays.array_type):
            buffer = session.arrays.find(constant) if len(constant.devices()) == 1 else None
            return buffer.value if buffer is not None else None
        try:
            array = numpy.asarray(constant)
        except Exception:
            return None
        return array if array.nbytes <= SMALL_BYTES else None

    return value


def _transfers(session, xla_client):
    """Arrays that come from the host or from another device."""
    copy_arrays = xla_client.batched_copy_array_to_devices_with_sharding
    arrays = session.arrays

    def place(x, dtype, device, kind, tag, at):
        """A stand-in on a device for an array of the host, or for one on another device."""
        pinned = kind == "pinned_host"
        if isinstance(x, arrays.array_type):
            found = arrays.find(x)
            value, shape = found.value if found else None, x.shape
        else:
            x = numpy.asarray(x)
            value, shape = (x.astype(dtype) if x.nbytes <= SMALL_BYTES else None), x.shape
        size = int(numpy.prod(shape, dtype=object)) * numpy.dtype(dtype).itemsize
        number = session.request(size, device.id, tag, at, pinned) if size else None
        buffer = Buffer(number, size, value, device.id, pinned)
        return arrays.make(buffer, shape, dtype, device, kind if pinned else None)

    def batched_device_put(aval, sharding, xs, devices, committed=True, *rest, **keys):
        if session.real():
            return arrays.put(aval, sharding, xs, devices, committed, *rest, **keys)
        with session.lock:
            session.flush()
            at, pieces = session.user_line(), []
            for x, device in zip(xs, devices):
                if isinstance(x, arrays.array_type) and x.devices() == {device}:
                    pieces.append(x)
                else:
                    pieces.append(place(x, aval.dtype, device, sharding.memory_kind, "device_put", at))
            return arrays.array_type(aval, sharding, pieces, committed=committed, _skip_checks=True)

    def batched_copy(xs, devices, shardings, semantics, *rest):
        if session.real() or not xs:
            return copy_arrays(xs, devices, shardings, semantics, *rest)
        results = []
        with session.lock:
            session.flush()
            for x, to, sharding, semantic in zip(xs, devices, shardings, semantics):
                reused = semantic != xla_client.ArrayCopySemantics.ALWAYS_COPY
                pieces = arrays.pieces(x)
                same = [p.devices() == {d} for p, d in zip(pieces, list(to))]
                same_kind = (x.sharding.memory_kind == "pinned_host") == (sharding.memory_kind == "pinned_host")
                if reused and same_kind and all(same):
                    results.extend(copy_arrays([x], [to], [sharding], [semantic], *rest))
                    continue
                at = session.user_line()
                kind = sharding.memory_kind
                moved = [place(p, p.dtype, d, kind, "device_put", at) for p, d in zip(pieces, list(to))]
                results.append(arrays.array_type(x.aval, sharding, moved, committed=True, _skip_checks=True))
        return results

    xla_client.batched_device_put = batched_device_put
    xla_client.batched_copy_array_to_devices_with_sharding = batched_copy


def _device(session):
    """What a program asks of its devices, and reading values."""
    import jax
    from jax._src import xla_bridge
    from jax._src.lib import xla_client

    def initialize(*arguments, **keys):
        session.refuse("the program consists of several processes (jax.distributed), of which one was run, on its own")

    jax.distributed.initialize = initialize
    array_type = session.arrays.array_type
    get_backend = xla_bridge._get_backend_uncached

    def backend(platform=None):
        return get_backend("cpu" if platform in ("gpu", "cuda") else platform)

    xla_bridge._get_backend_uncached = backend
    jax.default_backend = lambda: "gpu"

    def memory_stats(device):
        with session.lock:
            session.flush()
        limit = int(session.card_bytes * 0.75)
        return {
            "bytes_in_use": session.live[device.id],
            "peak_bytes_in_use": session.peak[device.id],
            "largest_alloc_size": session.largest[device.id],
            "num_allocs": session.requests[device.id],
            "bytes_limit": limit,
            "bytes_reserved": 0,
            "peak_bytes_reserved": 0,
        }

    try:
        from jax._src.export import _export

        _export.default_export_platform = lambda: session.compiler.platform
    except ImportError:
        pass
    device_type = xla_client.Device
    device_type.memory_stats = memory_stats
    device_type.platform = property(lambda device: "gpu")
    device_type.device_kind = property(lambda device: session.card_name)
    device_type.__repr__ = device_type.__str__ = lambda device: f"CudaDevice(id={device.id})"

    def reading(name, refused):
        """Counts reads of values that are not known."""
        own = getattr(array_type, name)

        def read(array, *arguments, **keys):
            if not session.real():
                with session.lock:
                    session.waited()
                    buffer = session.arrays.find(array) if len(array.devices()) == 1 else None
                    if array.size and (buffer is None or buffer.value is None):
                        session.reads["read_" + array.dtype.name] += 1
                        if refused:
                            session.refuse(
                                f"the program branches at {session.user_line()} on a value that only the card computes"
                            )
            return own(array, *arguments, **keys)

        setattr(array_type, name, read)

    for name in ("__bool__", "__index__"):
        reading(name, True)
    for name in ("__int__", "__float__", "__array__", "tolist", "item", "__complex__"):
        if hasattr(array_type, name):
            reading(name, False)
    ready = array_type.block_until_ready

    def block_until_ready(array):
        if not session.real():
            with session.lock:
                session.waited()
        return ready(array)

    array_type.block_until_ready = block_until_ready
