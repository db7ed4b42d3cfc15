/* The range of kernel ops that are cut to their operands: shapes that fit and shapes that do not,
 * operands that are not there or lie askew, odd sizes, lengths beyond 64 bits, elements of 1, 2, 4
 * and 8 bytes. Expected values are worked out by hand. */
#include "sim/kernel_shape.h"
#include "tests/support/test.h"

/* An operand of `bytes` bytes, and one at an offset from an aligned address. */
#define OF(count)                                                                                  \
    {                                                                                              \
        4096, count                                                                                \
    }
#define ASKEW(by, count)                                                                           \
    {                                                                                              \
        4096 + (by), count                                                                         \
    }
#define NONE                                                                                       \
    {                                                                                              \
        0, 0                                                                                       \
    }
#define BIT(exponent) (UINT64_C(1) << (exponent))

#define COUNT_OF(rows) (sizeof(rows) / sizeof *(rows))

#define WIDTH 6

static void assert_row(size_t row, const uint64_t found[WIDTH], const uint64_t expected[WIDTH])
{
    for (size_t i = 0; i < WIDTH; i++) {
        if (found[i] != expected[i])
            print_error("row %zu, value %zu: %" PRIu64 "\n", row, i, found[i]);
        assert_true(found[i] == expected[i]);
    }
}

struct row {
    struct ar_kernel_op op;
    uint64_t expected[WIDTH]; /* the rest is 0 */
};

#define WORK(kind, type, inputs, m, n, k, ...)                                                     \
    {                                                                                              \
        AR_KERNEL_OP_##kind, AR_DEVICE_##type, 0, inputs, m, n, k, __VA_ARGS__                     \
    }

/* m, n, k, pitch */
TEST(products)
{
    static const struct row rows[] = {
        {WORK(matmul, BF16, 2, 100, 20, 30, OF(4000), {OF(6000), OF(1200)}), {100, 20, 30, 30}},
        /* the left one has 10 rows; the right one 10, then 29 and a part; out 5 */
        {WORK(matmul, F32, 2, 100, 20, 30, OF(8000), {OF(1200), OF(2400)}), {10, 20, 30, 30}},
        {WORK(matmul, TF32, 2, 100, 20, 30, OF(8000), {OF(12000), OF(800)}), {100, 20, 10, 30}},
        {WORK(matmul, F32, 2, 100, 20, 30, OF(8000), {OF(12000), OF(2399)}), {100, 20, 29, 30}},
        {WORK(matmul, F16, 2, 100, 20, 30, OF(200), {OF(6000), OF(1200)}), {5, 20, 30, 30}},
        {WORK(matmul, I8, 2, 7, 3, 5, OF(20), {OF(34), OF(15)}), {6, 3, 5, 5}},
        {WORK(matmul, I64, 2, 2, 2, 2, OF(32), {OF(31), OF(32)}), {1, 2, 2, 2}},
        {WORK(matmul, F32, 2, 9, 9, 9, OF(324), {OF(324), NONE}), {0}},
        {WORK(matmul, F32, 2, 9, 9, 9, OF(324), {NONE, OF(324)}), {0}},
        {WORK(matmul, F32, 2, 9, 9, 9, NONE, {OF(324), OF(324)}), {0}},
        {WORK(matmul, F32, 2, 9, 9, 0, OF(324), {OF(324), OF(324)}), {0}},
        {WORK(matmul, F32, 2, 9, 9, 9, OF(35), {OF(324), OF(324)}), {0}}, /* no whole row */
        {WORK(matmul, F32, 2, BIT(40), BIT(40), BIT(40), OF(BIT(44)), {OF(BIT(44)), OF(BIT(45))}),
         {4, BIT(40), 8, BIT(40)}},
        {WORK(matmul, F32, 2, BIT(40), BIT(40), BIT(40), OF(BIT(20)), {OF(BIT(20)), OF(BIT(20))}),
         {0}},
        {WORK(matmul, F32, 2, 3, 3, 3, OF(36), {OF(36), ASKEW(2, 36)}), {0}},
        {WORK(matmul, F16, 2, 3, 3, 3, OF(18), {OF(18), ASKEW(2, 18)}), {3, 3, 3, 3}},
    };
    for (size_t i = 0; i < COUNT_OF(rows); i++) {
        struct kernel_shape_matmul cut = kernel_shape_matmul(&rows[i].op);
        const uint64_t found[WIDTH] = {cut.m, cut.n, cut.k, cut.pitch_elements};
        assert_row(i, found, rows[i].expected);
    }
}

/* elements, bytes of each operand, how many inputs, which */
TEST(elements)
{
    static const struct row rows[] = {
        {WORK(elementwise, F32, 2, 0, 0, 0, OF(400), {OF(800), OF(404)}), {100, 400, 2, 0, 1}},
        {WORK(elementwise, I64, 2, 5, 2, 0, OF(400), {NONE, OF(800)}), {10, 80, 1, 1}},
        {WORK(elementwise, I8, 4, 3, 0, 5, OF(99), {OF(99), NONE, NONE, OF(14)}),
         {14, 14, 2, 0, 3}},
        {WORK(elementwise, F16, 1, 0, 0, 0, OF(401), {OF(399)}), {199, 398, 1}},
        {WORK(elementwise, F32, 1, BIT(40), BIT(40), 0, OF(4096), {OF(4098)}), {1024, 4096, 1}},
        {WORK(elementwise, I64, 1, BIT(40), BIT(40), 1, OF(4103), {OF(4104)}), {512, 4096, 1}},
        {WORK(elementwise, F32, 2, 0, 0, 0, OF(400), {NONE, NONE}), {0}},
        {WORK(elementwise, F32, 0, 0, 0, 0, OF(400), {NONE}), {0}},
        {WORK(elementwise, F32, 1, 0, 0, 0, NONE, {OF(400)}), {0}},
        {WORK(elementwise, I64, 2, 0, 0, 0, OF(64), {OF(64), OF(7)}), {0}}, /* no whole one */
        {WORK(elementwise, F16, 1, 0, 0, 0, ASKEW(1, 64), {OF(64)}), {0}},
        {WORK(elementwise, F16, 1, 0, 0, 0, ASKEW(2, 64), {OF(64)}), {32, 64, 1}},
    };
    for (size_t i = 0; i < COUNT_OF(rows); i++) {
        struct kernel_shape_elementwise cut = kernel_shape_elementwise(&rows[i].op);
        const uint64_t found[WIDTH] = {cut.element_count, cut.operand_bytes, cut.input_count,
                                       cut.inputs[0],     cut.inputs[1],     cut.inputs[2]};
        assert_row(i, found, rows[i].expected);
    }
}

/* rows, columns, pitch */
TEST(sums)
{
    static const struct row rows[] = {
        {WORK(reduce, BF16, 1, 1000, 64, 0, OF(128), {OF(128000)}), {1000, 64, 64}},
        {WORK(reduce, BF16, 1, 1000, 64, 0, OF(127), {OF(127999)}), {999, 63, 64}},
        {WORK(reduce, F32, 1, 10, 0, 0, OF(100), {OF(12)}), {3, 1, 1}},
        {WORK(reduce, I8, 1, 5, 7, 0, OF(7), {OF(34)}), {4, 7, 7}},
        {WORK(reduce, I64, 1, 4, 2, 0, OF(8), {OF(640)}), {4, 1, 2}},
        {WORK(reduce, F32, 1, BIT(40), 4, 0, OF(16), {OF(BIT(20))}), {BIT(16), 4, 4}},
        {WORK(reduce, F32, 1, BIT(40), BIT(40), 0, OF(BIT(20)), {OF(BIT(20))}), {0}},
        {WORK(reduce, F32, 1, BIT(40), BIT(40), 0, OF(BIT(20)), {OF(BIT(43))}),
         {2, BIT(18), BIT(40)}},
        {WORK(reduce, F32, 1, 0, 4, 0, OF(16), {OF(160)}), {0}},
        {WORK(reduce, F32, 1, 9, 4, 0, NONE, {OF(160)}), {0}},
        {WORK(reduce, F32, 1, 9, 4, 0, OF(16), {NONE}), {0}},
        {WORK(reduce, F32, 1, 9, 4, 0, OF(16), {ASKEW(2, 160)}), {0}},
    };
    for (size_t i = 0; i < COUNT_OF(rows); i++) {
        struct kernel_shape_reduce cut = kernel_shape_reduce(&rows[i].op);
        const uint64_t found[WIDTH] = {cut.row_count, cut.column_count, cut.pitch_elements};
        assert_row(i, found, rows[i].expected);
    }
}

/* rows, columns, bytes of a row, rows of the table, width of names */
static const struct row gathers[] = {
    {WORK(gather, F32, 2, 50, 16, 0, OF(6400), {OF(64000), OF(400)}), {50, 16, 64, 1000, 8}},
    {WORK(gather, F32, 2, 50, 16, 0, OF(6400), {OF(64000), OF(399)}), {50, 16, 64, 1000, 4}},
    {WORK(gather, F32, 2, 50, 16, 0, OF(6400), {OF(64000), OF(123)}), {30, 16, 64, 1000, 4}},
    {WORK(gather, F32, 2, 50, 16, 0, OF(6400), {OF(64000), ASKEW(4, 400)}), {50, 16, 64, 1000, 4}},
    {WORK(gather, F32, 2, 50, 16, 0, OF(6400), {OF(64000), ASKEW(2, 400)}), {0}},
    {WORK(gather, F32, 2, 50, 16, 0, OF(640), {OF(127), OF(400)}), {10, 16, 64, 1, 8}},
    {WORK(gather, F32, 2, 50, 16, 0, OF(640), {OF(63), OF(400)}), {0}},
    {WORK(gather, F32, 2, 50, 16, 0, OF(63), {OF(640), OF(400)}), {0}},
    {WORK(gather, F32, 2, 50, 16, 0, OF(640), {OF(640), NONE}), {0}},
    {WORK(gather, F16, 2, 5, 3, 0, OF(20), {OF(13), OF(31)}), {3, 3, 6, 2, 4}},
    {WORK(gather, F32, 2, 5, 3, 0, ASKEW(1, 60), {ASKEW(3, 60), OF(40)}), {5, 3, 12, 5, 8}},
    {WORK(gather, I8, 2, 9, 0, 0, OF(9), {OF(5), OF(72)}), {9, 1, 1, 5, 8}},
    {WORK(gather, I64, 2, 2, 3, 0, OF(47), {OF(72), OF(16)}), {1, 3, 24, 3, 8}},
    {WORK(gather, F32, 2, BIT(40), BIT(40), 0, OF(BIT(43)), {OF(BIT(44)), OF(80)}),
     {2, BIT(40), BIT(42), 4, 4}},
    {WORK(gather, F32, 2, 1, BIT(63), 0, OF(BIT(43)), {OF(BIT(44)), OF(80)}), {0}},
    {WORK(gather, F32, 2, 0, 16, 0, OF(640), {OF(640), OF(80)}), {0}},
};

static const struct row scatters[] = {
    {WORK(scatter_add, BF16, 2, 50, 16, 0, OF(64000), {OF(1600), OF(400)}), {50, 16, 32, 2000, 8}},
    {WORK(scatter_add, F32, 2, 50, 16, 0, OF(64000), {OF(100), OF(400)}), {1, 16, 64, 1000, 8}},
    {WORK(scatter_add, I64, 2, 3, 2, 0, OF(47), {OF(33), OF(12)}), {2, 2, 16, 2, 4}},
    /* of 15 bytes 12 are whole words, of 3 none */
    {WORK(scatter_add, I8, 2, 4, 3, 0, OF(15), {OF(12), OF(32)}), {4, 3, 3, 4, 8}},
    {WORK(scatter_add, I8, 2, 4, 5, 0, OF(15), {OF(20), OF(32)}), {4, 5, 5, 2, 8}},
    {WORK(scatter_add, I8, 2, 4, 1, 0, OF(3), {OF(12), OF(32)}), {0}},
    {WORK(scatter_add, I8, 2, 4, 3, 0, ASKEW(2, 12), {OF(12), OF(32)}), {0}},
    {WORK(scatter_add, I8, 2, 4, 3, 0, ASKEW(4, 12), {ASKEW(1, 12), OF(32)}), {4, 3, 3, 4, 8}},
    {WORK(scatter_add, F32, 2, 4, 3, 0, OF(48), {ASKEW(2, 48), OF(32)}), {0}},
    {WORK(scatter_add, I64, 2, 4, 3, 0, ASKEW(4, 96), {OF(96), OF(32)}), {0}},
    {WORK(scatter_add, F16, 2, BIT(40), BIT(40), 0, OF(BIT(42)), {OF(BIT(43)), OF(12)}),
     {3, BIT(40), BIT(41), 2, 4}},
    {WORK(scatter_add, F16, 2, 4, 4, 0, NONE, {OF(32), OF(32)}), {0}},
    {WORK(scatter_add, F16, 2, 4, 4, 0, OF(32), {NONE, OF(32)}), {0}},
    {WORK(scatter_add, F16, 2, 4, 4, 0, OF(32), {OF(32), OF(3)}), {0}},
};

static void check_rows(const struct row *rows, size_t count,
                       struct kernel_shape_rows (*cut_of)(const struct ar_kernel_op *))
{
    for (size_t i = 0; i < count; i++) {
        struct kernel_shape_rows cut = cut_of(&rows[i].op);
        const uint64_t found[WIDTH] = {cut.row_count, cut.column_count, cut.row_bytes,
                                       cut.table_row_count, cut.index_bytes};
        assert_row(i, found, rows[i].expected);
    }
}

TEST(rows_that_move)
{
    check_rows(gathers, COUNT_OF(gathers), kernel_shape_gather);
    check_rows(scatters, COUNT_OF(scatters), kernel_shape_scatter_add);
}

/* of a copy, of a set of the same */
TEST(bytes)
{
    static const struct row rows[] = {
        {WORK(copy, F32, 1, 0, 0, 0, OF(400), {OF(300)}), {300, 400}},
        {WORK(copy, F32, 1, 0, 0, 0, ASKEW(1, 7), {ASKEW(3, 9)}), {7, 7}},
        {WORK(copy, F16, 1, 30, 0, 0, OF(400), {OF(300)}), {60, 60}},
        {WORK(copy, I8, 1, 3, 0, 5, OF(400), {OF(14)}), {14, 15}},
        {WORK(copy, I64, 1, 3, 2, 1, OF(47), {OF(300)}), {47, 47}},
        {WORK(copy, I64, 1, 3, 2, 1, OF(49), {OF(300)}), {48, 48}},
        {WORK(copy, F32, 1, BIT(40), BIT(40), 0, OF(400), {OF(300)}), {300, 400}},
        {WORK(copy, I64, 1, BIT(61), 0, 0, OF(400), {OF(300)}), {300, 400}}, /* 2^64 bytes */
        {WORK(copy, F32, 1, 0, 0, 0, OF(400), {NONE}), {0, 400}},
        {WORK(copy, F32, 1, 0, 0, 0, NONE, {OF(300)}), {0, 0}},
    };
    for (size_t i = 0; i < COUNT_OF(rows); i++) {
        const uint64_t found[WIDTH] = {kernel_shape_copy_bytes(&rows[i].op),
                                       kernel_shape_set_bytes(&rows[i].op)};
        assert_row(i, found, rows[i].expected);
    }
}

TEST(units)
{
    assert_int_equal(kernel_shape_element_bytes(AR_DEVICE_F32), 4);
    assert_int_equal(kernel_shape_element_bytes(AR_DEVICE_TF32), 4);
    assert_int_equal(kernel_shape_element_bytes(AR_DEVICE_F16), 2);
    assert_int_equal(kernel_shape_element_bytes(AR_DEVICE_BF16), 2);
    assert_int_equal(kernel_shape_element_bytes(AR_DEVICE_I8), 1);
    assert_int_equal(kernel_shape_element_bytes(AR_DEVICE_I64), 8);
    assert_true(kernel_shape_times(BIT(31), BIT(32)) == BIT(63));
    assert_true(kernel_shape_times(BIT(32), BIT(32)) == UINT64_MAX);
    assert_true(kernel_shape_times(BIT(40), BIT(40)) == UINT64_MAX);
    assert_true(kernel_shape_times(UINT64_MAX, 0) == 0);
}
