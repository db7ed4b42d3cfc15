"""tape, products, embedding: the documents' programs in JAX. The number of allocations is that of its
own allocator (`memory_stats`), in a run without XLA_PYTHON_CLIENT_ALLOCATOR=platform, which asks for
the same; live bytes are those of its live arrays, in every run."""
import gc
import sys
import time

import jax
import jax.numpy as jnp
import numpy

import common


def mark(size):
    jax.device_put(numpy.zeros(size, dtype=numpy.uint8)).block_until_ready()


def live_bytes():
    gc.collect()
    time.sleep(0.3)  # memory of what is no longer live goes back behind our back
    return sum(array.nbytes for array in jax.live_arrays())


def allocations():
    stats = jax.devices()[0].memory_stats()
    return stats["num_allocs"] if stats and "num_allocs" in stats else -1


def tape(keep):
    """y = x W + b, the sum of (y - x)^2, and the gradients of W and b."""
    width = 100

    def loss(parameters, x):
        y = x @ parameters[0] + parameters[1]
        return ((y - x) ** 2).sum()

    gradient = jax.value_and_grad(loss)
    parameters = (jnp.ones((width, width)), jnp.zeros(width))
    for i in range(40):
        x = jax.random.normal(jax.random.key(i), (width, width))
        _, (of_weight, of_bias) = gradient(parameters, x)
        parameters = (parameters[0] - 1e-6 * of_weight, parameters[1] - 1e-6 * of_bias)
    keep.append(parameters)


def products(keep):
    for n in (100, 1000, 4000, 100, 333):
        for i in range(5):
            first = jax.random.normal(jax.random.key(i), (n, n))
            second = jax.random.normal(jax.random.key(i + 1), (n, n))
            result = first @ first
            result = second @ second
            del first, second
            third = jax.random.normal(jax.random.key(i + 2), (n, n))
            result = third @ third
            result.block_until_ready()
    keep.append(result)


@jax.jit
def embedding_step(tables, ids, target):
    def loss(rows):
        vectors = [jnp.take(table, places, axis=0).mean(axis=1)
                   for table, places in zip(rows, ids)]
        return ((sum(vectors) - target) ** 2).sum()

    value, gradients = jax.value_and_grad(loss)(tables)
    return value, [table - 0.01 * of_table for table, of_table in zip(tables, gradients)]


def embedding(keep):
    """Tables that are made on first use, one every four steps."""
    batch, width = 2048, 64
    key = jax.random.key(0)
    tables = []
    for step in range(16):
        if step % 4 == 0:
            rows = (20000, 300000, 60000, 1000000)[step // 4]
            tables.append(jax.random.normal(jax.random.fold_in(key, step), (rows, width)))
        ids = [jax.random.randint(jax.random.fold_in(key, 100 * step + i), (batch, 8), 0, table.shape[0])
               for i, table in enumerate(tables)]
        value, tables = embedding_step(tables, ids, jnp.zeros((batch, width)))
        value.block_until_ready()
    keep.append(tables)


def main():
    program = {"tape": tape, "products": products, "embedding": embedding}[sys.argv[1]]
    program([])
    keep = []
    live_bytes()
    mark(common.BEGIN_BYTES)
    before = (allocations(), live_bytes())
    program(keep)
    jax.block_until_ready(keep)
    after = (allocations(), live_bytes())
    mark(common.END_BYTES)
    common.write(allocations=after[0] - before[0] if before[0] >= 0 else -1, allocated_bytes=-1,
                 live_change_bytes=after[1] - before[1])


main()
