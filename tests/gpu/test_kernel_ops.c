/* Real work on the card against the host: random inputs in every type, shapes that fit and shapes
 * that do not, and bytes around the operands that must stay as they are. */
#include <inttypes.h>
#include <math.h>

#include "allocators/base/rng.h"
#include "tests/gpu/card.h"
#include "tests/gpu/numbers.h"

/* Operands lie one behind the other, each between guards. */
enum { GUARD = 256, GUARD_BYTE = 0x5a, SLOT_BYTES = 8 << 20, OUT = 0 };

static uint8_t *slot(const struct card *card, uint32_t which)
{
    return card->host + (uint64_t)which * SLOT_BYTES + GUARD;
}

static struct ar_device_operand operand(const struct card *card, uint32_t which, uint64_t bytes)
{
    return (struct ar_device_operand){card->arena + (uint64_t)which * SLOT_BYTES + GUARD, bytes};
}

/* Fills a slot on host and card with random numbers in [-1, 1), or small integers. */
static struct ar_device_operand random_operand(struct card *card, struct ar_rng *rng,
                                               uint32_t which, enum ar_device_type type,
                                               uint64_t count)
{
    uint64_t bytes = count * number_bytes(type);
    memset(card->host + (uint64_t)which * SLOT_BYTES, GUARD_BYTE, 2 * GUARD + bytes);
    for (uint64_t i = 0; i < count; i++)
        number_set(slot(card, which), type, i,
                   type == AR_DEVICE_I8 || type == AR_DEVICE_I64
                       ? (double)ar_rng_below(rng, 41) - 20
                       : 2 * ar_rng_unit(rng) - 1);
    card_put(card, (uint64_t)which * SLOT_BYTES, card->host + (uint64_t)which * SLOT_BYTES,
             2 * GUARD + bytes);
    return operand(card, which, bytes);
}

/* Runs the work and fetches `out` into slot 7, guards with it. */
static const uint8_t *done(struct card *card, const struct ar_kernel_op *op)
{
    uint64_t all = 2 * GUARD + op->out.bytes;
    uint8_t *result = card->host + (uint64_t)7 * SLOT_BYTES;
    card_done(card, kernels_op(card->kernels, op, card->stream), "work");
    card_get(card, 0, result, all);
    for (uint64_t i = 0; i < GUARD; i++)
        check_that(&card->check, result[i] == GUARD_BYTE && result[all - 1 - i] == GUARD_BYTE,
                   "a byte %" PRIu64 " outside of the operand changed", i + 1);
    return result + GUARD;
}

/* `scale`: the sum of the magnitudes that went into it. */
static void compare(struct card *card, const uint8_t *result, enum ar_device_type type, uint64_t i,
                    double expected, double scale)
{
    double found = number_get(result, type, i);
    check_that(&card->check, fabs(found - expected) <= number_tolerance(type) * scale,
               "%s [%" PRIu64 "]: %.9g, not %.9g", number_name(type), i, found, expected);
}

/* ---- one case for each kind of work ---------------------------------------------------------- */

static void elementwise_in(struct card *card, struct ar_rng *rng, enum ar_device_type type,
                           uint32_t inputs, uint64_t count)
{
    struct ar_kernel_op op = {
        .kind = AR_KERNEL_OP_elementwise, .type = type, .input_count = inputs};
    op.out = random_operand(card, rng, OUT, type, count);
    for (uint32_t j = 0; j < inputs; j++)
        op.in[j] = random_operand(card, rng, j + 1, type, count + 3 * j);
    const uint8_t *result = done(card, &op);
    for (uint64_t i = 0; i < count; i++) {
        double sum = 0, scale = 0;
        for (uint32_t j = 0; j < inputs; j++) {
            double x = number_get(slot(card, j + 1), type, i);
            sum += x;
            scale += fabs(x);
        }
        compare(card, result, type, i, inputs == 1 ? fmax(sum, 0) : sum, scale);
    }
}

static void elementwise_equals_the_host(struct card *card)
{
    static const uint64_t counts[] = {1, 3, 4, 17, 1000, 100003};
    struct ar_rng rng;
    ar_rng_seed(&rng, 1);
    for (int type = 0; type < NUMBER_TYPES; type++)
        for (uint32_t inputs = 1; inputs <= AR_KERNEL_OP_INPUTS; inputs++)
            for (size_t c = 0; c < sizeof counts / sizeof counts[0]; c++)
                elementwise_in(card, &rng, (enum ar_device_type)type, inputs, counts[c]);
}

static void reduce_in(struct card *card, struct ar_rng *rng, enum ar_device_type type, uint64_t m,
                      uint64_t n)
{
    struct ar_kernel_op op = {
        .kind = AR_KERNEL_OP_reduce, .type = type, .input_count = 1, .m = m, .n = n};
    op.out = random_operand(card, rng, OUT, type, n);
    op.in[0] = random_operand(card, rng, 1, type, m * n);
    const uint8_t *result = done(card, &op);
    for (uint64_t j = 0; j < n; j++) {
        double sum = 0, scale = 0;
        for (uint64_t i = 0; i < m; i++) {
            double x = number_get(slot(card, 1), type, i * n + j);
            sum += x;
            scale += fabs(x);
        }
        compare(card, result, type, j, type == AR_DEVICE_I8 ? number_wrap_i8(sum) : sum, scale);
    }
}

static void reduce_equals_the_host(struct card *card)
{
    struct ar_rng rng;
    ar_rng_seed(&rng, 2);
    for (int type = 0; type < NUMBER_TYPES; type++) {
        static const uint64_t shapes[][2] = {{1, 1}, {1, 70}, {1000, 1}, {33, 5}, {257, 129}};
        for (size_t s = 0; s < sizeof shapes / sizeof shapes[0]; s++)
            reduce_in(card, &rng, (enum ar_device_type)type, shapes[s][0], shapes[s][1]);
    }
}

/* Names of rows, some beyond the table: they wrap. */
static uint64_t name_rows(struct card *card, struct ar_rng *rng, uint32_t which, uint64_t m,
                          uint64_t width, struct ar_device_operand *out)
{
    for (uint64_t i = 0; i < m; i++) {
        uint64_t name = ar_rng_below(rng, 4000);
        memcpy(slot(card, which) + i * width, &name, width); /* little endian */
    }
    card_put(card, (uint64_t)which * SLOT_BYTES + GUARD, slot(card, which), m * width);
    *out = operand(card, which, m * width);
    return m;
}

static uint64_t row_name(const struct card *card, uint32_t which, uint64_t width, uint64_t i)
{
    uint64_t name = 0;
    memcpy(&name, slot(card, which) + i * width, width);
    return name;
}

static void gather_in(struct card *card, struct ar_rng *rng, enum ar_device_type type, uint64_t n,
                      uint64_t width)
{
    const uint64_t rows = 700;
    struct ar_kernel_op op = {.kind = AR_KERNEL_OP_gather, .type = type, .input_count = 2, .n = n};
    op.m = name_rows(card, rng, 2, 300, width, &op.in[1]);
    op.out = random_operand(card, rng, OUT, type, op.m * n);
    op.in[0] = random_operand(card, rng, 1, type, rows * n);
    const uint8_t *result = done(card, &op);
    for (uint64_t i = 0; i < op.m * n; i++) {
        uint64_t row = row_name(card, 2, width, i / n) % rows;
        compare(card, result, type, i, number_get(slot(card, 1), type, row * n + i % n), 0);
    }
}

static void gather_equals_the_host(struct card *card)
{
    static const uint64_t columns[] = {1, 2, 3, 64, 129};
    struct ar_rng rng;
    ar_rng_seed(&rng, 3);
    for (int type = 0; type < NUMBER_TYPES; type++)
        for (size_t c = 0; c < sizeof columns / sizeof columns[0]; c++)
            for (uint64_t width = 4; width <= 8; width += 4)
                gather_in(card, &rng, (enum ar_device_type)type, columns[c], width);
}

static void scatter_add_in(struct card *card, struct ar_rng *rng, enum ar_device_type type,
                           uint64_t n)
{
    const uint64_t rows = 500;
    double *sum = calloc(2 * rows * n, sizeof *sum), *scale = sum + rows * n;
    if (!check_that(&card->check, sum != NULL, "no memory on the host"))
        return;
    struct ar_kernel_op op = {
        .kind = AR_KERNEL_OP_scatter_add, .type = type, .input_count = 2, .n = n};
    op.m = name_rows(card, rng, 2, 200, 8, &op.in[1]);
    op.out = random_operand(card, rng, OUT, type, rows * n);
    op.in[0] = random_operand(card, rng, 1, type, op.m * n);
    for (uint64_t i = 0; i < rows * n; i++) {
        sum[i] = number_get(slot(card, OUT), type, i);
        scale[i] = fabs(sum[i]);
    }
    for (uint64_t i = 0; i < op.m * n; i++) {
        uint64_t at = row_name(card, 2, 8, i / n) % rows * n + i % n;
        double x = number_get(slot(card, 1), type, i);
        sum[at] += x;
        scale[at] += fabs(x);
    }
    const uint8_t *result = done(card, &op);
    for (uint64_t i = 0; i < rows * n; i++)
        compare(card, result, type, i, type == AR_DEVICE_I8 ? number_wrap_i8(sum[i]) : sum[i],
                scale[i]);
    free(sum);
}

static void scatter_add_equals_the_host(struct card *card)
{
    struct ar_rng rng;
    ar_rng_seed(&rng, 4);
    for (int type = 0; type < NUMBER_TYPES; type++) {
        static const uint64_t columns[] = {4, 64, 129};
        for (size_t c = 0; c < sizeof columns / sizeof columns[0]; c++)
            scatter_add_in(card, &rng, (enum ar_device_type)type, columns[c]);
    }
}

static void copy_and_set_equal_the_host(struct card *card)
{
    static const uint64_t counts[] = {1, 2, 5, 16, 33, 1000, 100003};
    struct ar_rng rng;
    ar_rng_seed(&rng, 5);
    for (int type = 0; type < NUMBER_TYPES; type++)
        for (size_t c = 0; c < sizeof counts / sizeof counts[0]; c++) {
            struct ar_kernel_op op = {
                .kind = AR_KERNEL_OP_copy, .type = (enum ar_device_type)type, .input_count = 1};
            op.out = random_operand(card, &rng, OUT, op.type, counts[c]);
            op.in[0] = random_operand(card, &rng, 1, op.type, counts[c] + 1);
            for (int shift = 0; shift < 2; shift++) { /* then from the second element on */
                op.in[0].address += (uint64_t)shift * number_bytes(op.type);
                op.in[0].bytes -= (uint64_t)shift * number_bytes(op.type);
                const uint8_t *result = done(card, &op);
                for (uint64_t i = 0; i < counts[c]; i++)
                    compare(card, result, op.type, i,
                            number_get(slot(card, 1), op.type, i + (uint64_t)shift), 0);
            }
            op.kind = AR_KERNEL_OP_set;
            const uint8_t *result = done(card, &op);
            for (uint64_t i = 0; i < counts[c]; i++)
                compare(card, result, op.type, i, 1, 0);
        }
}

/* ---- matrix products ------------------------------------------------------------------------- */

static void matmul_in(struct card *card, struct ar_rng *rng, enum ar_device_type type, uint64_t m,
                      uint64_t n, uint64_t k)
{
    struct ar_kernel_op op = {
        .kind = AR_KERNEL_OP_matmul, .type = type, .input_count = 2, .m = m, .n = n, .k = k};
    op.out = random_operand(card, rng, OUT, type, m * n);
    op.in[0] = random_operand(card, rng, 1, type, m * k);
    op.in[1] = random_operand(card, rng, 2, type, k * n);
    const uint8_t *result = done(card, &op);
    for (uint64_t i = 0; i < m; i++)
        for (uint64_t j = 0; j < n; j++) {
            double sum = 0, scale = 0;
            for (uint64_t l = 0; l < k; l++) {
                double x = number_get(slot(card, 1), type, i * k + l) *
                           number_get(slot(card, 2), type, l * n + j);
                sum += x;
                scale += fabs(x);
            }
            compare(card, result, type, i * n + j, type == AR_DEVICE_I8 ? number_wrap_i8(sum) : sum,
                    scale);
        }
}

static void matmul_in_all(struct card *card, uint64_t seed)
{
    static const uint64_t shapes[][3] = {
        {17, 33, 65}, {128, 64, 256}, {100, 200, 300}, {1, 50, 40}};
    struct ar_rng rng;
    ar_rng_seed(&rng, seed);
    for (int type = 0; type < NUMBER_TYPES; type++)
        for (size_t s = 0; s < sizeof shapes / sizeof shapes[0]; s++)
            matmul_in(card, &rng, (enum ar_device_type)type, shapes[s][0], shapes[s][1],
                      shapes[s][2]);
}

static void plain_matmul_equals_the_host(struct card *card)
{
    card_done(card, kernels_choose_matmul(card->kernels, KERNELS_PLAIN), "choose_matmul");
    matmul_in_all(card, 6);
    card_done(card, kernels_choose_matmul(card->kernels, KERNELS_CUBLAS), "choose_matmul");
}

static void cublas_matmul_equals_the_host(struct card *card)
{
    matmul_in_all(card, 7);
    struct kernels_facts facts;
    kernels_facts(card->kernels, &facts);
    printf("# %s, %" PRIu64 " bytes of the card\n", facts.matmul, facts.matmul_bytes);
    check_that(&card->check, facts.matmul[0] != '\0', "the library of the products is not named");
}

/* ---- operands smaller than the shape, or not there ------------------------------------------- */

/* Every kind of work with a shape of 64 x 64 x 64 on operands of which one is cut to `bytes`. */
static void cut_one(struct card *card, struct ar_rng *rng, enum ar_kernel_op_kind kind,
                    enum ar_device_type type, uint32_t which, uint64_t bytes)
{
    struct ar_kernel_op op = {
        .kind = kind, .type = type, .input_count = 2, .m = 64, .n = 64, .k = 64};
    op.out = random_operand(card, rng, OUT, type, 64 * 64);
    op.in[0] = random_operand(card, rng, 1, type, 64 * 64);
    op.in[1] = random_operand(card, rng, 2, type, 64 * 64);
    struct ar_device_operand *cut = which ? &op.in[which - 1] : &op.out;
    uint8_t *result = card->host + (uint64_t)7 * SLOT_BYTES;
    cut->bytes = bytes < cut->bytes ? bytes : cut->bytes;
    card_done(card, kernels_op(card->kernels, &op, card->stream), "work");
    card_get(card, 0, result, 2 * GUARD + 64 * 64 * number_bytes(type));
    uint64_t whole = 64 * 64 * number_bytes(type);
    for (uint64_t i = op.out.bytes; i < whole; i++)
        check_that(&card->check, result[GUARD + i] == slot(card, OUT)[i],
                   "%d of %s: byte %" PRIu64 " behind %" PRIu64 " of out changed", (int)kind,
                   number_name(type), i, op.out.bytes);
    if (!bytes && !(kind == AR_KERNEL_OP_elementwise && which) &&
        !(kind == AR_KERNEL_OP_set && which) &&
        !((kind == AR_KERNEL_OP_reduce || kind == AR_KERNEL_OP_copy) && which == 2))
        check_that(&card->check, memcmp(result + GUARD, slot(card, OUT), whole) == 0,
                   "%d of %s did something without operand %u", (int)kind, number_name(type),
                   which);
}

static void work_stays_inside_its_operands(struct card *card)
{
    static const uint64_t sizes[] = {0, 1, 7, 8, 100, 1000, 4097};
    struct ar_rng rng;
    ar_rng_seed(&rng, 8);
    if (card_is_host(card)) /* cuBLAS would look for a card */
        card_done(card, kernels_choose_matmul(card->kernels, KERNELS_PLAIN), "choose_matmul");
    for (int kind = 0; kind < AR_KERNEL_OP_COUNT; kind++)
        for (int type = 0; type < NUMBER_TYPES; type++)
            for (uint32_t which = 0; which < 3; which++)
                for (size_t s = 0; s < sizeof sizes / sizeof sizes[0]; s++)
                    cut_one(card, &rng, (enum ar_kernel_op_kind)kind, (enum ar_device_type)type,
                            which, sizes[s]);
}

int main(void)
{
#define CASE(name, needs_card)                                                                     \
    {                                                                                              \
#name, name, needs_card, false                                                             \
    }
    static const struct card_case cases[] = {
        CASE(elementwise_equals_the_host, false),  CASE(reduce_equals_the_host, false),
        CASE(gather_equals_the_host, false),       CASE(scatter_add_equals_the_host, false),
        CASE(copy_and_set_equal_the_host, false),  CASE(plain_matmul_equals_the_host, false),
        CASE(cublas_matmul_equals_the_host, true), CASE(work_stays_inside_its_operands, false),
    };
    return card_main(cases, sizeof cases / sizeof cases[0]);
}
