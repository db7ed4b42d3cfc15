/* See roofline.h. Peaks from NVIDIA's H100 SXM5 datasheet, dense: float32 without tensor cores
 * 67 TFLOP/s (frameworks do not use TF32 unless asked), 16 bits 989 TFLOP/s, int8 1979 TOP/s,
 * memory 3.35 TB/s; PCIe 5 x16 64 GB/s, of which pageable copies reach a quarter. */
#include "workloads/gen/roofline.h"

#define LATENCY_NS          1500u
#define MEMORY_BYTES_PER_NS 2345u /* 70 % of 3350 */
#define UPLOAD_BYTES_PER_NS 16u

uint64_t numeric_weight_bytes(enum numeric type)
{
    static const uint64_t bytes[] = {4, 2, 2, 1};
    return bytes[type];
}

uint64_t numeric_value_bytes(enum numeric type)
{
    return type == NUMERIC_FLOAT32 ? 4 : 2;
}

uint64_t roofline_bytes_ns(uint64_t bytes)
{
    return LATENCY_NS + bytes / MEMORY_BYTES_PER_NS;
}

uint64_t roofline_product_ns(enum numeric type, uint64_t rows, uint64_t columns, uint64_t inner)
{
    static const uint64_t flops_per_ns[] = {46900, 692300, 692300, 1385300}; /* 70 % */
    uint64_t elements = rows * columns + rows * inner + inner * columns;
    uint64_t memory_ns = elements * numeric_value_bytes(type) / MEMORY_BYTES_PER_NS;
    uint64_t compute_ns = 2 * rows * columns * inner / flops_per_ns[type];
    return LATENCY_NS + (compute_ns > memory_ns ? compute_ns : memory_ns);
}

uint64_t roofline_upload_ns(uint64_t bytes)
{
    return LATENCY_NS + bytes / UPLOAD_BYTES_PER_NS;
}
