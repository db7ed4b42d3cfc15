/* Bytes of elements, and products beyond 64 bits. Shapes are in tests/steps/kernel_ops. */
#include "sim/kernel_shape.h"
#include "tests/support/test.h"

#define BIT(exponent) (UINT64_C(1) << (exponent))

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
