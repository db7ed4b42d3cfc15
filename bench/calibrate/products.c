/* What the host does for matrix products before it launches them: the first one of a process loads
 * the library (cuBLAS), the first of a type and order of lengths the kernels that it chooses for
 * it.
 *
 * 1. Products of two types in all six orders of three lengths, each done twice. The second one tells
 *    what a launch takes: the first one's time beyond it is what there was to prepare.
 * 2. The figure of all but the very first is their plain mean. They differ a hundredfold, by what
 *    was loaded before, and a program meets a handful: what counts is their sum.
 * 3. Last of all parts: the library keeps memory of the card. */
#include "bench/calibrate/parts.h"

#define LENGTHS     3u
#define ORDERS      6u
#define BLOCK_BYTES (UINT64_C(8) << 20) /* the longest two lengths in the widest type */

static const enum ar_device_type types[] = {AR_DEVICE_BF16, AR_DEVICE_F32};
#define TYPES (sizeof types / sizeof types[0])

static const uint64_t orders[ORDERS][LENGTHS] = {
    {4096, 512, 64}, {4096, 64, 512}, {512, 4096, 64},
    {64, 4096, 512}, {512, 64, 4096}, {64, 512, 4096},
};

/* On a device without memory the host's part is all there is. */
static bool product(struct meter *meter, const struct ar_kernel_op *op, uint64_t *took_ns)
{
    const struct ar_device_ops *ops = meter->device->ops;
    uint64_t begun_ns = meter_now(meter);
    if (ops->kernel_op && ops->kernel_op(meter->device, op) != AR_OK)
        return false;
    if (!ops->kernel_op)
        ops->prepare(meter->device, op);
    *took_ns = meter_now(meter) - begun_ns;
    meter_sync(meter);
    return true;
}

static void measure(struct meter *meter, struct sim_profile *out, const uint64_t *blocks)
{
    uint64_t first_ns = 0, others_ns = 0, count = 0;
    for (size_t i = 0; i < TYPES * ORDERS; i++) {
        const uint64_t *lengths = orders[i % ORDERS];
        struct ar_kernel_op op = {
            .kind = AR_KERNEL_OP_matmul,
            .type = types[i / ORDERS],
            .stream = METER_STREAM,
            .input_count = 2,
            .m = lengths[0],
            .n = lengths[1],
            .k = lengths[2],
            .out = {blocks[0], BLOCK_BYTES},
            .in = {{blocks[1], BLOCK_BYTES}, {blocks[2], BLOCK_BYTES}},
        };
        uint64_t new_ns, again_ns;
        if (!product(meter, &op, &new_ns) || !product(meter, &op, &again_ns))
            return;
        uint64_t prepared_ns = new_ns > again_ns ? new_ns - again_ns : 0;
        if (i == 0)
            first_ns = prepared_ns;
        else
            others_ns += prepared_ns;
        count += i != 0;
    }
    parts_figure(meter, out, SIM_COST_product_first, 1, first_ns);
    parts_figure(meter, out, SIM_COST_product_new, 1, (others_ns + count / 2) / count);
}

void parts_products(struct meter *meter, struct sim_profile *out, uint64_t bytes)
{
    const struct ar_device_ops *ops = meter->device->ops;
    uint64_t blocks[LENGTHS];
    uint32_t held = 0;
    (void)bytes;
    if (!ops->kernel_op && !ops->prepare)
        return;
    while (held < LENGTHS && meter_alloc(meter, BLOCK_BYTES, &blocks[held], NULL))
        held++;
    if (held == LENGTHS)
        measure(meter, out, blocks);
    while (held)
        (void)meter_free(meter, blocks[--held], NULL);
}
