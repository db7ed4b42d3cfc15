"""The requests of skyrl-1768.trace.gz, on standard output: two steps of one Megatron rank that trains
GLM 4.7 Flash with TP 2, EP 4, DP 4, 65,536 tokens and full recomputation, as SkyRL does at 4e7fa48f.

    python3 skyrl_1768.py | gzip -9n >skyrl-1768.trace.gz
"""

SEQUENCE = 65536
LOCAL = SEQUENCE // 2  # of sequence parallelism
HIDDEN = 2048
HEADS = 20 // 2
EXPERTS = 64 // 4
USED = 4  # experts of a token
EXPERT = 1536
DENSE = 10240
LAYERS = 47
VOCABULARY = 154880 // 2
HALF = 2  # bytes of bfloat16
CHUNK = 1024 * VOCABULARY * 4  # logprobs_chunk_size, in float32
CHUNKS = SEQUENCE // 1024
LOGITS = SEQUENCE * VOCABULARY * 4

lines = ["# allocrig-trace 1", "# name: skyrl-1768"]
made = 0


def take(size, tag=None):
    global made
    lines.append(f"a,{made},{size}" + (f",tag={tag}" if tag else ""))
    made += 1
    return made - 1


def free(*blocks):
    lines.extend(f"f,{block}" for block in blocks)


def dense_parameters(layer):
    attention = [768 * HIDDEN, 768, 768 * HEADS * 256, 576 * HIDDEN, 512, 512 * HEADS * 448, HEADS * 256 * HIDDEN]
    if layer == 0:
        return [HIDDEN, *attention, HIDDEN, DENSE * HIDDEN, DENSE * HIDDEN // 2]
    return [HIDDEN, *attention, HIDDEN, 64 * HIDDEN, 64, EXPERT * HIDDEN, EXPERT * HIDDEN // 2]


def shard(parameters, ranks):
    """What the distributed optimizer of the first rank has of a contiguous buffer."""
    left = sum(parameters) // ranks
    for values in parameters:
        if left <= 0:
            return
        yield min(values, left)
        left -= values


class Layer:
    """Requests of a layer. Without a backward pass each is freed after its last use."""

    def __init__(self, keeps):
        self.keeps = keeps
        self.saved = []

    def tensor(self, size, *dead):
        block = take(size)
        if not self.keeps:
            free(*dead)
        self.saved.append((block, size))
        return block

    def attention(self):
        tensor = self.tensor
        normal = tensor(LOCAL * HIDDEN * HALF)
        query = tensor(LOCAL * 768 * HALF)
        query = tensor(LOCAL * 768 * HALF, query)
        latent = tensor(LOCAL * 576 * HALF, normal)
        latent_normal = tensor(LOCAL * 512 * HALF)
        query = tensor(SEQUENCE * 768 * HALF, query)  # gathered
        latent = tensor(SEQUENCE * 576 * HALF, latent, latent_normal)
        query = tensor(SEQUENCE * HEADS * 256 * HALF, query)
        both = tensor(SEQUENCE * HEADS * 448 * HALF, latent)
        query = tensor(SEQUENCE * HEADS * 256 * HALF, query)  # with positions
        keys = tensor(SEQUENCE * HEADS * 256 * HALF)
        values = tensor(SEQUENCE * HEADS * 256 * HALF, both)
        output = tensor(SEQUENCE * HEADS * 256 * HALF, query, keys, values)
        sums = tensor(SEQUENCE * HEADS * 4)
        projected = tensor(SEQUENCE * HIDDEN * HALF, output, sums)
        scattered = tensor(LOCAL * HIDDEN * HALF, projected)
        return tensor(LOCAL * HIDDEN * HALF, scattered)

    def network(self, residual):
        tensor = self.tensor
        normal = tensor(LOCAL * HIDDEN * HALF)
        gathered = tensor(SEQUENCE * HIDDEN * HALF, normal)
        up = tensor(SEQUENCE * DENSE * HALF, gathered)
        active = tensor(SEQUENCE * DENSE // 2 * HALF, up)
        down = tensor(SEQUENCE * HIDDEN * HALF, active)
        scattered = tensor(LOCAL * HIDDEN * HALF, down)
        return tensor(LOCAL * HIDDEN * HALF, scattered, residual)

    def experts(self, residual):
        tensor = self.tensor
        normal = tensor(LOCAL * HIDDEN * HALF)
        rows = USED * LOCAL
        router = tensor(LOCAL * 64 * 4)
        chances = tensor(LOCAL * 64 * 4, router)
        chosen = tensor(LOCAL * 64)
        permuted = tensor(rows * HIDDEN * HALF, chosen)
        received = tensor(rows * HIDDEN * HALF, permuted)
        ordered = tensor(rows * HIDDEN * HALF, received)
        up = tensor(rows * 2 * EXPERT * HALF, ordered)
        active = tensor(rows * EXPERT * HALF, up)
        down = tensor(rows * HIDDEN * HALF, active)
        ordered = tensor(rows * HIDDEN * HALF, down)
        returned = tensor(rows * HIDDEN * HALF, ordered)
        output = tensor(LOCAL * HIDDEN * HALF, returned, chances)
        gathered = tensor(SEQUENCE * HIDDEN * HALF, normal)  # the shared expert
        up = tensor(SEQUENCE * EXPERT * HALF, gathered)
        active = tensor(SEQUENCE * EXPERT // 2 * HALF, up)
        down = tensor(SEQUENCE * HIDDEN * HALF, active)
        shared = tensor(LOCAL * HIDDEN * HALF, down)
        both = tensor(LOCAL * HIDDEN * HALF, output, shared)
        return tensor(LOCAL * HIDDEN * HALF, both, residual)

    def run(self, number):
        residual = self.attention()
        return self.network(residual) if number == 0 else self.experts(residual)


def trunk(keeps_inputs):
    inputs = [take(LOCAL * HIDDEN * HALF)]
    for number in range(LAYERS):
        output = Layer(False).run(number)
        if not keeps_inputs:
            free(inputs.pop())
        inputs.append(output)
    normal = take(LOCAL * HIDDEN * HALF)
    gathered = take(SEQUENCE * HIDDEN * HALF)
    half = take(LOGITS // 2)
    logits = take(LOGITS)  # Float16Module returns float32
    free(half)
    return inputs, normal, gathered, logits


def log_softmax():
    """_compute_distributed_log_softmax of a chunk."""
    shifted = take(CHUNK)
    free(take(CHUNK))
    result = take(CHUNK)
    free(shifted)
    return result


def score():
    """A pass without gradient for log-probabilities."""
    inputs, normal, gathered, logits = trunk(False)
    free(normal, gathered, *inputs)
    for _ in range(CHUNKS):
        free(log_softmax())
    free(logits)


def train():
    inputs, normal, gathered, logits = trunk(True)
    for _ in range(CHUNKS):
        free(log_softmax())
    free(take(LOGITS))  # the entropy, without gradient
    parts = []
    for _ in range(CHUNKS):
        result = log_softmax()
        parts.append(take(CHUNK))  # its exponential, which becomes the gradient
        free(result)
    gradient = take(LOGITS)  # torch.cat: the request that fails
    free(*parts, logits)
    half = take(LOGITS // 2)
    free(gradient)
    wide = take(SEQUENCE * HIDDEN * HALF)
    free(half)
    local = take(LOCAL * HIDDEN * HALF)
    free(wide, gathered)
    gradient = take(LOCAL * HIDDEN * HALF)
    free(local, normal, inputs.pop())
    for number in reversed(range(LAYERS)):
        layer = Layer(True)
        layer.run(number)
        for block, size in reversed(layer.saved):
            before, gradient = gradient, take(size)
            free(block, before)
        before, gradient = gradient, take(LOCAL * HIDDEN * HALF)
        free(before, inputs.pop())
    free(gradient)


vocabulary = [VOCABULARY * HIDDEN]
dense = vocabulary + [p for layer in range(LAYERS) for p in dense_parameters(layer)] + [HIDDEN] + vocabulary
experts = ([2 * EXPERT * HIDDEN] * EXPERTS + [EXPERT * HIDDEN] * EXPERTS) * (LAYERS - 1)
own = [*shard(dense, 4), *shard(experts, 2)]
for parameters in dense, experts:
    take(sum(parameters) * HALF, "weights")
for parameters in dense, experts:
    take(sum(parameters) * 4, "gradients")
for size in own:
    take(size * 4, "master weights")
lines.append("m,load")
for step in range(2):
    score()
    lines.append("c")
    train()
    lines.append("c")
    for size in own if step == 0 else []:
        take(size * 4, "optimizer state")
        take(size * 4, "optimizer state")
    lines.append("m,step")
print("\n".join(lines))
