"""Asks cuDNN itself which plans it has for a convolution, without a GPU.

cuDNN 9.8 and later answers for a device that is not there: a device property descriptor, made from
JSON (CUDNN_ATTR_DEVICEPROP_JSON_REPRESENTATION), replaces the handle. Heuristics and plans, and with
them the workspaces, are then those of that card. The library needs no driver. It comes with the CUDA
wheel of PyTorch, or alone: pip install nvidia-cudnn-cu13.

PyTorch's side (aten/src/ATen/native/cudnn/Conv_v8.cpp, PyTorch 2.11): one operation in the graph;
engine configurations from CUDNN_HEUR_MODE_INSTANT, then those from CUDNN_HEUR_MODE_FALLBACK;
configurations that convert inputs to a smaller type are dropped, with deterministic also those with
the note NONDETERMINISTIC, and without TF32 those with the note TENSOR_CORE if the type is float32.
"""
import ctypes
import glob
import os

FORWARD, BACKWARD_WEIGHT, BACKWARD_INPUT = 10, 11, 12  # cudnnBackendDescriptorType_t of the operation
HEURISTICS, FALLBACK = 0, 2                            # cudnnBackendHeurMode_t
DATA_TYPES = {"float32": 0, "float64": 1, "float16": 2, "bfloat16": 9}
_TENSOR_CORE, _DOWN_CONVERT, _NONDETERMINISTIC = 0, 1, 4

# descriptors and attributes of cudnn_graph.h, as far as they are used here
_CONVOLUTION, _ENGINE, _ENGINECFG, _ENGINEHEUR, _PLAN = 1, 2, 3, 4, 5
_KNOB, _GRAPH, _TENSOR, _DEVICEPROP = 7, 15, 17, 38
_OPERATION = {  # alpha, beta, convolution, w, x, y
    FORWARD: (700, 701, 702, 703, 704, 705),
    BACKWARD_INPUT: (706, 707, 708, 709, 710, 711),
    BACKWARD_WEIGHT: (712, 713, 714, 715, 716, 717),
}
_TYPES = {"handle": (0, ctypes.c_void_p), "data_type": (1, ctypes.c_int), "bool": (2, ctypes.c_bool),
          "int64": (3, ctypes.c_int64), "float": (4, ctypes.c_float), "double": (5, ctypes.c_double),
          "mode": (7, ctypes.c_int), "heur": (8, ctypes.c_int), "knob": (9, ctypes.c_int), "note": (11, ctypes.c_int),
          "descriptor": (15, ctypes.c_void_p), "char": (24, ctypes.c_char)}


class CudnnError(Exception):
    pass


def _wheel_folders():
    """Folders with libraries of NVIDIA's wheels: nvidia/cudnn/lib, nvidia/cu13/lib and so on."""
    try:
        import nvidia
    except ImportError:
        return []
    return [folder for root in nvidia.__path__ for folder in glob.glob(os.path.join(root, "*", "lib"))]


def load():
    """The library, or None if there is none that answers without a device."""
    folders = _wheel_folders()
    for name in ("libnvrtc.so.1?", "libcublasLt.so.1?", "libcublas.so.1?"):
        for folder in folders:
            for path in glob.glob(os.path.join(folder, name)):
                try:
                    ctypes.CDLL(path, mode=ctypes.RTLD_GLOBAL)
                except OSError:
                    pass  # cuDNN loads what it needs itself, or offers fewer engines
    candidates = [os.path.join(f, "libcudnn.so.9") for f in folders] + ["libcudnn.so.9"]
    for path in candidates:
        if os.sep in path and not os.path.exists(path):
            continue
        try:
            library = ctypes.CDLL(path, mode=ctypes.RTLD_GLOBAL)
            library.cudnnGetVersion.restype = ctypes.c_size_t
            if library.cudnnGetVersion() < 90800:
                continue
        except (OSError, AttributeError):
            continue
        pointer = ctypes.c_void_p
        library.cudnnBackendCreateDescriptor.argtypes = [ctypes.c_int, ctypes.POINTER(pointer)]
        library.cudnnBackendDestroyDescriptor.argtypes = [pointer]
        library.cudnnBackendFinalize.argtypes = [pointer]
        library.cudnnBackendSetAttribute.argtypes = [pointer, ctypes.c_int, ctypes.c_int, ctypes.c_int64, pointer]
        library.cudnnBackendGetAttribute.argtypes = [
            pointer, ctypes.c_int, ctypes.c_int, ctypes.c_int64, ctypes.POINTER(ctypes.c_int64), pointer]
        return library
    return None


class _Descriptor:
    """A backend descriptor; it keeps those alive that it refers to."""

    def __init__(self, library, kind):
        self._library, self._kept, self.pointer = library, [], ctypes.c_void_p()
        self._check(library.cudnnBackendCreateDescriptor(kind, ctypes.byref(self.pointer)), "create", kind)

    def __del__(self):
        if self.pointer:
            self._library.cudnnBackendDestroyDescriptor(self.pointer)

    @staticmethod
    def _check(status, what, which):
        if status:
            raise CudnnError(f"cuDNN: {what} {which}: status {status}")

    def set(self, attribute, kind, *values):
        number, ctype = _TYPES[kind]
        if kind == "descriptor":
            self._kept.extend(values)
            values = [v.pointer for v in values]
        array = (ctype * len(values))(*values)
        self._check(self._library.cudnnBackendSetAttribute(
            self.pointer, attribute, number, len(values), ctypes.cast(array, ctypes.c_void_p)), "set", attribute)
        return self

    def finalize(self):
        self._check(self._library.cudnnBackendFinalize(self.pointer), "finalize", "")
        return self

    def get(self, attribute, kind, most):
        number, ctype = _TYPES[kind]
        array, count = (ctype * max(most, 1))(), ctypes.c_int64()
        self._check(self._library.cudnnBackendGetAttribute(
            self.pointer, attribute, number, most, ctypes.byref(count),
            ctypes.cast(array, ctypes.c_void_p) if most else None), "get", attribute)
        return list(array)[:min(count.value, most)] if most else count.value

    def fill(self, attribute, descriptors):
        """Get an attribute whose value is descriptors, into descriptors made by the caller."""
        array, count = (ctypes.c_void_p * len(descriptors))(*[d.pointer for d in descriptors]), ctypes.c_int64()
        self._check(self._library.cudnnBackendGetAttribute(
            self.pointer, attribute, 15, len(descriptors), ctypes.byref(count),
            ctypes.cast(array, ctypes.c_void_p)), "get", attribute)
        return descriptors[:count.value]


def packed_strides(shape, channels_last):
    """Strides of a tensor without gaps; cuDNN gets these also for dimensions of size 1."""
    order = list(range(len(shape)))
    if channels_last:
        order = [0] + order[2:] + [1]
    strides, step = [0] * len(shape), 1
    for d in reversed(order):
        strides[d] = step
        step *= shape[d]
    return strides


class Planner:
    """Plans of one card.

    properties: bytes of JSON as cuDNN writes it; without it, the card of this machine, by a handle.
    """

    def __init__(self, library, properties=None):
        self._library, self._device, self._handle = library, None, None
        if properties is not None:
            self._device = self._new(_DEVICEPROP).set(2702, "char", *[bytes([b]) for b in properties]).finalize()
        else:
            self._handle = ctypes.c_void_p()
            if library.cudnnCreate(ctypes.byref(self._handle)):
                raise CudnnError("cuDNN: no handle: this machine has no GPU that it can use")

    def _new(self, kind):
        return _Descriptor(self._library, kind)

    @property
    def handle(self):
        return self._handle

    def version(self):
        return self._library.cudnnGetVersion()

    def properties(self):
        """The JSON of this machine's card."""
        device = self._new(_DEVICEPROP).set(2701, "handle", self._handle.value).finalize()
        size = device.get(2702, "char", 0)
        return b"".join(device.get(2702, "char", size)).rstrip(b"\0")

    def _graph(self, operation, x, w, y, stride, padding, dilation, dtype, channels_last):
        def tensor(name, shape):
            return self._new(_TENSOR).set(901, "data_type", DATA_TYPES[dtype]).set(902, "int64", *shape) \
                .set(903, "int64", *packed_strides(shape, channels_last)).set(906, "int64", ord(name)) \
                .set(900, "int64", 32).finalize()
        compute = 1 if dtype == "float64" else 0
        convolution = self._new(_CONVOLUTION).set(100, "data_type", compute).set(101, "mode", 1) \
            .set(102, "int64", *dilation).set(103, "int64", *stride).set(104, "int64", *padding) \
            .set(105, "int64", *padding).set(106, "int64", len(stride)).finalize()
        alpha, beta, *fields = _OPERATION[operation]
        scale = "double" if dtype == "float64" else "float"
        op = self._new(operation).set(alpha, scale, 1.0).set(beta, scale, 0.0)
        for field, value in zip(fields, (convolution, tensor("w", w), tensor("x", x), tensor("y", y))):
            op.set(field, "descriptor", value)
        graph = self._new(_GRAPH).set(801, "descriptor", op.finalize())
        if self._handle:
            graph.set(800, "handle", self._handle.value)
        return graph.finalize()

    def _configurations(self, graph, mode, dropped):
        heuristics = self._new(_ENGINEHEUR).set(201, "descriptor", graph).set(200, "heur", mode)
        if self._device:
            heuristics.set(204, "descriptor", self._device)
        heuristics.finalize()
        found = heuristics.fill(202, [self._new(_ENGINECFG) for _ in range(heuristics.get(202, "descriptor", 0))])
        for configuration in found:
            engine = configuration.fill(300, [self._new(_ENGINE)])[0]
            if not dropped.intersection(engine.get(1303, "note", 10)):
                yield configuration, engine.get(1301, "int64", 1)[0]

    def knobs(self, configuration):
        """{type: value} of the knobs of a configuration (cudnnBackendKnobType_t)."""
        choices = configuration.fill(302, [self._new(_KNOB) for _ in range(44)])
        return {c.get(600, "knob", 1)[0]: c.get(601, "int64", 1)[0] for c in choices}

    def _workspace(self, configuration):
        plan = self._new(_PLAN)
        if self._device:
            plan.set(407, "descriptor", self._device)
        else:
            plan.set(400, "handle", self._handle.value)
        return plan.set(401, "descriptor", configuration).finalize().get(402, "int64", 1)[0]

    def plans(self, operation, x, w, y, stride, padding, dilation, dtype, channels_last, deterministic=False,
              allow_tf32=True):
        """Yields (engine, workspace in bytes, configuration) of each plan that cuDNN builds, in PyTorch's order.

        x, w and y are the shapes of input, weight and output of the convolution, whatever the operation.
        """
        dropped = {_DOWN_CONVERT}
        if deterministic:
            dropped.add(_NONDETERMINISTIC)
        if dtype == "float32" and not allow_tf32:
            dropped.add(_TENSOR_CORE)
        graph = self._graph(operation, x, w, y, stride, padding, dilation, dtype, channels_last)
        for mode in (HEURISTICS, FALLBACK):
            try:
                for configuration, engine in self._configurations(graph, mode, dropped):
                    try:
                        yield engine, self._workspace(configuration), configuration
                    except CudnnError:
                        continue  # PyTorch goes on to the next configuration as well
            except CudnnError:
                continue
