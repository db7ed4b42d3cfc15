/* How long a kernel runs on an H100 SXM, by the roofline: what takes longer of its arithmetic
 * at the peak of its type and its bytes at the peak of the memory, each at 70 % of the
 * datasheet's peak, which is what good kernels reach, and 1.5 us to start and drain. Whole
 * numbers throughout, so that times are the same on every machine. */
#ifndef WORKLOADS_GEN_ROOFLINE_H
#define WORKLOADS_GEN_ROOFLINE_H

#include <stdint.h>

/* The types in which a model holds its weights. */
enum numeric { NUMERIC_FLOAT32, NUMERIC_FLOAT16, NUMERIC_BFLOAT16, NUMERIC_INT8 };
#define NUMERIC_CHOICES "float32|float16|bfloat16|int8"

/* Bytes of a weight; and of an activation or gradient, which int8 models hold in 16 bits. */
uint64_t numeric_weight_bytes(enum numeric type);
uint64_t numeric_value_bytes(enum numeric type);

/* Nanoseconds of a kernel that moves so many bytes, reads and writes together. */
uint64_t roofline_bytes_ns(uint64_t bytes);
/* Nanoseconds of the product of rows x inner with inner x columns in this type. */
uint64_t roofline_product_ns(enum numeric type, uint64_t rows, uint64_t columns, uint64_t inner);
/* Nanoseconds of a copy from the host, over PCIe 5 x16. */
uint64_t roofline_upload_ns(uint64_t bytes);

#endif
