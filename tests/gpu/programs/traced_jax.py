"""Four JAX programs for the comparison of `allocrig trace` with the card (results/published/h200/traced_jax.md):

    python3 traced_jax.py gpt|resnet|recommender|decode

gpt: training of a decoder with scanned, rematerialised layers and donated state. resnet: convolutions and batch
statistics in Flax. recommender: embedding tables, batches of five sizes, nothing donated, eager metrics. decode: a
key/value cache that is updated in place, prompts of several lengths, greedy sampling.
Each prints the figures of the device's allocator as one line, `stats KEY=VALUE ..`."""
import sys

import jax
import jax.numpy as jnp
import numpy
import optax

KEYS = ("num_allocs", "peak_bytes_in_use", "bytes_in_use", "largest_alloc_size", "peak_pool_bytes", "bytes_limit")


def normal(key, shape, scale=0.02, dtype=jnp.float32):
    return scale * jax.random.normal(key, shape, dtype)


def gpt(steps=6, layers=12, width=768, heads=12, vocabulary=50304, batch=8, length=1024):
    keys = jax.random.split(jax.random.key(0), 8)
    parameters = {
        "embedding": normal(keys[0], (vocabulary, width)),
        "positions": normal(keys[1], (length, width)),
        "layers": {
            "norm": jnp.ones((layers, 2, width)),
            "qkv": normal(keys[2], (layers, width, 3 * width)),
            "out": normal(keys[3], (layers, width, width)),
            "up": normal(keys[4], (layers, width, 4 * width)),
            "down": normal(keys[5], (layers, 4 * width, width)),
        },
        "norm": jnp.ones(width),
    }
    optimizer = optax.adamw(3e-4)
    state = optimizer.init(parameters)

    def norm(x, scale):
        x = x.astype(jnp.float32)
        x = x - x.mean(-1, keepdims=True)
        return (x * jax.lax.rsqrt((x * x).mean(-1, keepdims=True) + 1e-5) * scale).astype(jnp.bfloat16)

    @jax.checkpoint
    def layer(x, weights):
        b, t, _ = x.shape
        weights = jax.tree.map(lambda w: w.astype(jnp.bfloat16), weights)
        qkv = norm(x, weights["norm"][0]) @ weights["qkv"]
        q, k, v = (p.reshape(b, t, heads, -1) for p in jnp.split(qkv, 3, -1))
        x = x + jax.nn.dot_product_attention(q, k, v, is_causal=True).reshape(b, t, -1) @ weights["out"]
        return x + jax.nn.gelu(norm(x, weights["norm"][1]) @ weights["up"]) @ weights["down"], None

    def loss_of(parameters, tokens):
        x = parameters["embedding"][tokens[:, :-1]] + parameters["positions"]
        x, _ = jax.lax.scan(layer, x.astype(jnp.bfloat16), parameters["layers"])
        logits = norm(x, parameters["norm"]) @ parameters["embedding"].T.astype(jnp.bfloat16)
        return optax.softmax_cross_entropy_with_integer_labels(logits.astype(jnp.float32), tokens[:, 1:]).mean()

    def step(parameters, state, tokens):
        loss, gradient = jax.value_and_grad(loss_of)(parameters, tokens)
        updates, state = optimizer.update(gradient, state, parameters)
        return optax.apply_updates(parameters, updates), state, loss

    step = jax.jit(step, donate_argnums=(0, 1))
    random = numpy.random.default_rng(0)
    for _ in range(steps):
        tokens = random.integers(0, vocabulary, (batch, length + 1), dtype=numpy.int32)
        parameters, state, loss = step(parameters, state, tokens)
        loss.block_until_ready()
    return parameters


def resnet(steps=6, batch=64, size=224):
    import flax.linen as nn

    class Block(nn.Module):
        width: int
        stride: int = 1

        @nn.compact
        def __call__(self, x):
            y = nn.relu(nn.BatchNorm(False)(nn.Conv(self.width, (1, 1), use_bias=False)(x)))
            y = nn.Conv(self.width, (3, 3), (self.stride, self.stride), use_bias=False)(y)
            y = nn.relu(nn.BatchNorm(False)(y))
            y = nn.BatchNorm(False)(nn.Conv(4 * self.width, (1, 1), use_bias=False)(y))
            if x.shape != y.shape:
                x = nn.Conv(4 * self.width, (1, 1), (self.stride, self.stride), use_bias=False)(x)
                x = nn.BatchNorm(False)(x)
            return nn.relu(x + y)

    class ResNet(nn.Module):
        @nn.compact
        def __call__(self, x):
            x = nn.Conv(64, (7, 7), (2, 2), use_bias=False)(x)
            x = nn.max_pool(nn.relu(nn.BatchNorm(False)(x)), (3, 3), (2, 2), "SAME")
            for stage, blocks in enumerate((3, 4, 6, 3)):
                for block in range(blocks):
                    x = Block(64 << stage, 2 if stage and not block else 1)(x)
            return nn.Dense(1000)(x.mean((1, 2)))

    model = ResNet()
    variables = jax.jit(model.init)(jax.random.key(0), jnp.zeros((1, size, size, 3)))
    parameters, statistics = variables["params"], variables["batch_stats"]
    optimizer = optax.sgd(0.1, momentum=0.9)
    state = optimizer.init(parameters)

    @jax.jit
    def step(parameters, statistics, state, images, labels):
        def loss_of(parameters):
            logits, new = model.apply(
                {"params": parameters, "batch_stats": statistics}, images, mutable=["batch_stats"]
            )
            loss = optax.softmax_cross_entropy_with_integer_labels(logits, labels).mean()
            return loss, new["batch_stats"]

        (loss, new), gradient = jax.value_and_grad(loss_of, has_aux=True)(parameters)
        updates, new_state = optimizer.update(gradient, state, parameters)
        return optax.apply_updates(parameters, updates), new, new_state, loss

    random = numpy.random.default_rng(0)
    for _ in range(steps):
        images = random.standard_normal((batch, size, size, 3), dtype=numpy.float32)
        labels = random.integers(0, 1000, batch, dtype=numpy.int32)
        parameters, statistics, state, loss = step(parameters, statistics, state, images, labels)
        float(loss)
    return parameters


def recommender(steps=15, tables=8, rows=400_000, width=64, hidden=1024):
    keys = iter(jax.random.split(jax.random.key(0), 32))
    parameters = {
        "tables": [normal(next(keys), (rows * (i + 1) // tables, width)) for i in range(tables)],
        "bottom": [normal(next(keys), (13, hidden)), normal(next(keys), (hidden, width))],
        "top": [normal(next(keys), ((tables + 1) * width, hidden)), normal(next(keys), (hidden, 1))],
    }
    optimizer = optax.adagrad(1e-2)
    state = optimizer.init(parameters)

    def scores(parameters, dense, ids):
        x = jax.nn.relu(dense @ parameters["bottom"][0]) @ parameters["bottom"][1]
        vectors = [table[ids[:, i]].sum(1) for i, table in enumerate(parameters["tables"])]
        x = jnp.concatenate([x, *vectors], -1)
        return (jax.nn.relu(x @ parameters["top"][0]) @ parameters["top"][1])[:, 0]

    @jax.jit
    def step(parameters, state, dense, ids, labels):
        def loss_of(parameters):
            return optax.sigmoid_binary_cross_entropy(scores(parameters, dense, ids), labels).mean()

        loss, gradient = jax.value_and_grad(loss_of)(parameters)
        updates, state = optimizer.update(gradient, state, parameters)
        return optax.apply_updates(parameters, updates), state, loss

    random = numpy.random.default_rng(0)
    total = jnp.zeros(())
    for i in range(steps):
        batch = (4096, 16384, 8192, 2048, 12288)[i % 5]
        dense = random.standard_normal((batch, 13), dtype=numpy.float32)
        ids = random.integers(0, rows // tables, (batch, tables, 4), dtype=numpy.int32)
        labels = random.integers(0, 2, batch).astype(numpy.float32)
        parameters, state, loss = step(parameters, state, dense, ids, labels)
        total = total + loss * batch
        if i % 5 == 4:
            print("mean", float(total) / (5 * 8601))
    return parameters, state


def decode(layers=16, width=2048, heads=16, vocabulary=32000, room=2048, batch=8):
    keys = jax.random.split(jax.random.key(1), 8)
    half = jnp.bfloat16
    weights = {
        "embedding": normal(keys[0], (vocabulary, width), dtype=half),
        "qkv": normal(keys[1], (layers, width, 3 * width), dtype=half),
        "out": normal(keys[2], (layers, width, width), dtype=half),
        "up": normal(keys[3], (layers, width, 4 * width), dtype=half),
        "down": normal(keys[4], (layers, 4 * width, width), dtype=half),
    }

    def run(weights, cache, tokens, at):
        x = weights["embedding"][tokens]
        t = tokens.shape[1]
        places = jnp.arange(room)[None, :] <= at + jnp.arange(t)[:, None]

        def layer(x, inputs):
            w, (keys_, values) = inputs
            q, k, v = (p.reshape(batch, t, heads, -1) for p in jnp.split(x @ w["qkv"], 3, -1))
            keys_ = jax.lax.dynamic_update_slice(keys_, k, (0, at, 0, 0))
            values = jax.lax.dynamic_update_slice(values, v, (0, at, 0, 0))
            scores = jnp.einsum("bqhd,bkhd->bhqk", q, keys_).astype(jnp.float32)
            scores = jax.nn.softmax(jnp.where(places, scores, -1e9)).astype(half)
            x = x + jnp.einsum("bhqk,bkhd->bqhd", scores, values).reshape(batch, t, width) @ w["out"]
            return x + jax.nn.silu(x @ w["up"]) @ w["down"], (keys_, values)

        per_layer = {n: w for n, w in weights.items() if n != "embedding"}
        x, cache = jax.lax.scan(layer, x, (per_layer, cache))
        return cache, jnp.argmax(x[:, -1] @ weights["embedding"].T, -1).astype(jnp.int32)

    run = jax.jit(run, donate_argnums=1)
    random = numpy.random.default_rng(0)
    for length in (128, 512, 300):
        shape = (layers, batch, room, heads, width // heads)
        cache = (jnp.zeros(shape, half), jnp.zeros(shape, half))
        tokens = random.integers(0, vocabulary, (batch, length), dtype=numpy.int32)
        cache, token = run(weights, cache, tokens, 0)
        answer = [numpy.asarray(token)]
        for i in range(20):
            cache, token = run(weights, cache, token[:, None], length + i)
            answer.append(numpy.asarray(token))
        del cache, token
    return weights


def main():
    kept = {"gpt": gpt, "resnet": resnet, "recommender": recommender, "decode": decode}[sys.argv[1]]()
    jax.block_until_ready(kept)
    stats = jax.devices()[0].memory_stats()
    print("stats " + " ".join(f"{key}={stats[key]}" for key in KEYS if key in stats))


if __name__ == "__main__":
    main()
