"""Sizes that cuDNN's recurrent networks and batch norm ask for, as formulas.

Fitted to the answers of cuDNN 9.19 (cudnnGetRNNTempSpaceSizes, cudnnGetBatchNormalization...Size)
on an H200: kernels/CUDNN.md has the residuals. Buffers of cuDNN begin at multiples of 16 to 64 bytes, which the
formulas leave out: a few hundred bytes of a workspace of megabytes.
"""
import math

RELU, TANH, LSTM, GRU = 0, 1, 2, 3
STANDARD, PERSISTENT, SMALL_HIDDEN = 0, 1, 3  # cudnnRNNAlgo_t
GATES = {RELU: 1, TANH: 1, LSTM: 4, GRU: 3}
STREAM_BYTES = 8 << 20                        # of each layer and direction
DROPOUT_STATE = 6488064                       # cudnnDropoutGetStatesSize on an H200: 132 multiprocessors x 49152


def rnn_algorithm(mode, hidden, projection, layers, both, inputs, batch, packed, dtype, forward, sm, sms):
    """native/cudnn/RNN.cpp, get_algo (PyTorch 2.11)."""
    if projection or packed:
        return STANDARD
    if dtype != "float64" and hidden <= ({True: 384, False: 256} if mode in (RELU, TANH) else
                                         {True: 192, False: 128})[forward]:
        return SMALL_HIDDEN
    static = layers == 1 and hidden <= 1024 and not both and hidden % 128 == 0 and inputs % 128 == 0
    if dtype == "float16" and static and int(float(sm)) >= 8 and sms >= 98 and mode != GRU:
        wide = mode in (RELU, TANH) and batch >= 96 and hidden >= 896
        if batch % 8 == 0 and batch <= 128 and not wide:
            return PERSISTENT
    return STANDARD


def rnn_weights(mode, inputs, hidden, projection, layers, both, biases=True):
    """Elements of the weight buffer. cuDNN has room for both biases even if the layer has none."""
    directions, out, count = 2 if both else 1, projection or hidden, 0
    for layer in range(layers):
        width = inputs if layer == 0 else out * directions
        count += directions * (GATES[mode] * hidden * (width + out) + (hidden * out if projection else 0)
                               + (2 * GATES[mode] * hidden if biases else 0))
    return count


def rnn_reserve(mode, hidden, projection, layers, both, rows, size, dropped=0):
    """What the forward pass keeps for the backward pass. rows: time steps x batch, or of a packed batch its rows.
    dropped: with dropout, time steps x batch (also of a packed batch): masks of one bit between two layers."""
    if dropped:
        bits = dropped * (projection or hidden) * (4 if both else 1) * (layers - 1)
        whole = -(-bits // (128 * size)) * 16 * size
        return whole + rnn_reserve(mode, hidden, projection, layers, both, rows, size)
    directions, out = 2 if both else 1, projection or hidden
    cell = {RELU: 1, TANH: 1, LSTM: 5, GRU: 6}[mode] * hidden
    if projection:
        return 256 + size * rows * directions * (6 * hidden + out) * layers
    return 256 + size * rows * directions * (cell * layers + out * (layers - 1))


def rnn_workspace(algorithm, mode, inputs, hidden, projection, layers, both, rows, steps, batch, packed, dtype,
                  training, dropout=False):
    """Bytes of the workspace; in training of whichever of the three passes needs most, as PyTorch asks for it."""
    size = {"float32": 4, "float64": 8}.get(dtype, 2)
    directions, out, lstm, gates = 2 if both else 1, projection or hidden, mode == LSTM, GATES[mode]
    weights = rnn_weights(mode, inputs, hidden, projection, layers, both, biases=False)
    persistent = algorithm != STANDARD and dtype in ("float16", "float32")
    streams = STREAM_BYTES * layers * directions + 256
    if not packed:
        streams += 32 * -(-batch // 4)  # two lists of lengths, each of a multiple of 16 bytes
    widest, state = max(inputs, out), batch * hidden * layers * directions
    x, y = rows * inputs, rows * out
    if persistent:
        cell = {LSTM: 21 if not both else 30, GRU: 16 if not both else 24}.get(mode, 6 if not both else 12)
        forward = rows * hidden * cell + x + state * ({LSTM: 8, GRU: 4}.get(mode, 4) + (1 if both else 0))
        cell = {LSTM: 15 if not both else 18, GRU: 17 if not both else 20}.get(mode, 12 if not both else 15)
        more = (1 if not both else 2) if layers > 1 else 0
        backward = (rows * hidden * (cell + more) + 2 * x + rows * widest * (4 if both else 1)
                    + state * ({LSTM: 12}.get(mode, 6) + (1 if both else 0)))
    elif not both:
        forward = gates * min(rows, 256 * batch) * hidden + state * {LSTM: 10, GRU: 5}.get(mode, 3)
        backward = state * (11 if lstm else 5)
        chunk = 8 if batch >= 10 else 16 if batch >= 3 else 32
        backward += y if layers == 1 else min(rows, chunk * (layers + 1) * batch) * out
        if packed:
            forward, backward = forward - state * (4 if lstm else 2), backward - state * (8 if lstm else 4)
            backward += rows * widest
        else:
            forward += y + x
            if projection:
                forward += rows * hidden - 2 * state
            backward += 2 * y + 2 * x + rows * widest
    elif packed:
        forward = rows * (2 * gates * hidden + 4 * out) + state * ({LSTM: 8, GRU: 5}.get(mode, 3))
        ends = 2 * inputs + 2 * widest
        backward = rows * (2 * out + ends if layers == 1 else 4 * out + max(ends, 4 * out)) + state * (5 if lstm else 3)
    else:
        forward = rows * (2 * gates * hidden + 6 * out) + x + state * {LSTM: 12, GRU: 7}.get(mode, 5)
        backward = (rows * ((6 if layers == 1 else 8) * out + 2 * inputs + 4 * widest) + state * (13 if lstm else 7))
    if dropout and layers > 1 and not both:
        forward += y  # outputs of a layer without what dropout removes
    return streams + size * (weights + (max(forward, backward) if training else forward))


def batch_norm_workspace(shape, channels_last, dtype, backward):
    """Bytes for a training step. Only channels last takes any: partial sums of tiles of rows and channels."""
    if not channels_last:
        return 0
    channels, rows = shape[1], shape[0] * math.prod(shape[2:])
    tile = 64 if channels % 4 == 0 else 4 if channels < 4 else 16
    tiles = -(-channels // tile)
    if backward:
        return 1056 + 4 * tiles + 8 * tile * tiles * -(-rows // 96)
    return 1072 + 4 * tiles + 4 * (2 * tile + 1) * tiles * -(-rows // (64 if dtype == "float32" else 160))
