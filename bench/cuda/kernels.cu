/* The kernels of the CUDA device. Host side: kernels.c. Shapes are already cut to their operands
 * (sim/kernel_shape.h); the kernels do not check them again.
 *
 * Common to all: grids of any size (each thread strides over the work), 16-byte accesses between
 * an unaligned head and tail, no memory of their own but the two records below, no header but
 * ours, so that compiling for six architectures stays short. What must be known of the
 * number formats stands in their structs: 16-bit floats are computed as 32-bit ones and rounded
 * to the nearest. The least architecture is 7.0, whose threads of a warp make progress apart: the
 * lock in `tell_wrong` needs it. */
#include "bench/cuda/kernels.cuh"
#include "bench/cuda/kernels_shared.h"

__device__ struct kernels_wrong kernels_wrong;
__device__ struct kernels_timer kernels_timer;

static __device__ inline uint64_t thread_index()
{
    return (uint64_t)blockIdx.x * blockDim.x + threadIdx.x;
}

static __device__ inline uint64_t thread_count()
{
    return (uint64_t)gridDim.x * blockDim.x;
}

/* ---- a range of bytes as head, 16-byte vectors and tail -------------------------------------- */

struct range {
    uint64_t head, vectors, tail; /* bytes, vectors, bytes */

    __device__ range(const uint8_t *base, uint64_t bytes)
    {
        head = (16 - (uint64_t)base % 16) % 16;
        head = head < bytes ? head : bytes;
        vectors = (bytes - head) / 16;
        tail = bytes - head - 16 * vectors;
    }
};

/* ---- what the bytes should be: a pattern, or a constant of up to 8 bytes --------------------- */

struct pattern {
    uint64_t key;
    __device__ uint64_t operator()(uint64_t offset) const
    {
        return pattern_bytes(key, offset);
    }
};

struct constant {
    uint64_t value;
    __device__ uint64_t operator()(uint64_t offset) const
    {
        unsigned shift = (unsigned)(offset % 8) * 8;
        return shift ? (value >> shift) | (value << (64 - shift)) : value;
    }
};

template <typename Source>
static __device__ void write_range(uint8_t *base, uint64_t bytes, Source source)
{
    range r(base, bytes);
    uint64_t i = thread_index();
    ulonglong2 *vectors = (ulonglong2 *)(base + r.head);
    for (uint64_t v = i; v < r.vectors; v += thread_count()) {
        uint64_t offset = r.head + 16 * v;
        vectors[v] = make_ulonglong2(source(offset), source(offset + 8));
    }
    if (i < r.head)
        base[i] = (uint8_t)source(i);
    if (i < r.tail)
        base[bytes - r.tail + i] = (uint8_t)source(bytes - r.tail + i);
}

extern "C" __global__ void fill(uint8_t *base, uint64_t bytes, uint64_t block)
{
    write_range(base, bytes, pattern{pattern_key(block)});
}

extern "C" __global__ void set(uint8_t *base, uint64_t bytes, uint64_t value)
{
    write_range(base, bytes, constant{value});
}

/* ---- verify ---------------------------------------------------------------------------------- */

/* What one thread has seen: wrong bytes, and the first of them as offset << 8 | byte found. The
 * byte is kept as it was read: in a race it may be another one a moment later. */
struct seen {
    uint64_t count, first;

    __device__ void look(uint64_t found, uint64_t expected, uint64_t offset)
    {
        uint64_t difference = found ^ expected;
        for (unsigned i = 0; difference >> (8 * i); i++) {
            uint64_t mine = (offset + i) << 8 | (found >> (8 * i) & 0xff);
            if (difference >> (8 * i) & 0xff) {
                count++;
                first = mine < first ? mine : first;
            }
            if (i == 7)
                break;
        }
    }
};

/* One thread of a block: adds to the count and keeps the first by (verification, offset). A launch
 * comes here at most once a block, and not at all where nothing is wrong. */
static __device__ void tell_wrong(const uint8_t *base, uint64_t block, uint64_t number,
                                  uint64_t count, uint64_t first)
{
    uint64_t offset = first >> 8;
    volatile struct kernels_wrong *kept = &kernels_wrong;
    atomicAdd((unsigned long long *)&kernels_wrong.count, (unsigned long long)count);
    while (atomicCAS((unsigned long long *)&kernels_wrong.lock, 0ull, 1ull))
        __nanosleep(200);
    __threadfence();
    if (!kept->number || number < kept->number ||
        (number == kept->number && offset < kept->offset)) {
        kept->number = number;
        kept->address = (uint64_t)base + offset;
        kept->block = block;
        kept->offset = offset;
        kept->expected = (uint32_t)(pattern_bytes(pattern_key(block), offset) & 0xff);
        kept->found = (uint32_t)(first & 0xff);
    }
    __threadfence();
    atomicExch((unsigned long long *)&kernels_wrong.lock, 0ull);
}

extern "C" __global__ void verify(const uint8_t *base, uint64_t bytes, uint64_t block,
                                  uint64_t number)
{
    __shared__ unsigned long long count, first;
    range r(base, bytes);
    pattern expected = {pattern_key(block)};
    seen mine = {0, ~(uint64_t)0};
    uint64_t i = thread_index();
    const ulonglong2 *vectors = (const ulonglong2 *)(base + r.head);
    for (uint64_t v = i; v < r.vectors; v += thread_count()) {
        uint64_t offset = r.head + 16 * v;
        ulonglong2 found = vectors[v];
        uint64_t low = expected(offset), high = expected(offset + 8);
        if (found.x != low || found.y != high) {
            mine.look(found.x, low, offset);
            mine.look(found.y, high, offset + 8);
        }
    }
    if (i < r.head)
        mine.look(base[i], expected(i) & 0xff, i);
    if (i < r.tail) {
        uint64_t offset = bytes - r.tail + i;
        mine.look(base[offset], expected(offset) & 0xff, offset);
    }
    if (!__syncthreads_or(mine.count != 0))
        return;
    if (threadIdx.x == 0) {
        count = 0;
        first = ~0ull;
    }
    __syncthreads();
    if (mine.count) {
        atomicAdd(&count, (unsigned long long)mine.count);
        atomicMin(&first, (unsigned long long)mine.first);
    }
    __syncthreads();
    if (threadIdx.x == 0)
        tell_wrong(base, block, number, count, first);
}

/* ---- touch ----------------------------------------------------------------------------------- */

/* Reads and writes one word of each 4 KiB page, and the last word, and leaves every byte as it is:
 * an atomic OR with 0, which is harmless even if another kernel writes. Partial words at the ends,
 * and ranges shorter than a word, are read and written back as bytes. */
extern "C" __global__ void touch(uint8_t *base, uint64_t bytes)
{
    uint64_t skip = (4 - (uint64_t)base % 4) % 4;
    uint64_t words = bytes > skip ? (bytes - skip) / 4 : 0;
    uint64_t pages = (words + 1023) / 1024;
    unsigned *word = (unsigned *)(base + skip);
    for (uint64_t p = thread_index(); p < pages; p += thread_count())
        atomicOr(word + 1024 * p, 0u);
    if (thread_index() != 0)
        return;
    if (words) {
        atomicOr(word + words - 1, 0u);
    } else {
        volatile uint8_t *byte = base;
        for (uint64_t i = 0; i < bytes; i++)
            byte[i] = byte[i];
    }
}

/* ---- time ------------------------------------------------------------------------------------ */

/* One thread waits for so many nanoseconds of the card's timer, or cycles of its clock. */
extern "C" __global__ void spin_timer(uint64_t nanoseconds)
{
    uint64_t start = card_timer();
    while (card_timer() - start < nanoseconds)
        ;
}

extern "C" __global__ void spin_clock(uint64_t cycles)
{
    uint64_t start = (uint64_t)clock64();
    while ((uint64_t)clock64() - start < cycles)
        ;
}

/* How coarse the timer is: `wanted` changes of it are watched, for 2^27 cycles (70 ms) at most. */
extern "C" __global__ void time_timer(uint64_t wanted)
{
    uint64_t give_up = (uint64_t)clock64() + (1u << 27);
    uint64_t last = card_timer(), first = 0, changes = 0, least = ~(uint64_t)0;
    while (changes < wanted && (uint64_t)clock64() < give_up) {
        uint64_t now = card_timer();
        if (now == last)
            continue;
        if (!first)
            first = now; /* the step before it was watched only in part */
        else {
            least = now - last < least ? now - last : least;
            changes++;
        }
        last = now;
    }
    kernels_timer.changes = changes;
    kernels_timer.total_ns = first ? last - first : 0;
    kernels_timer.least_ns = changes ? least : 0;
}

/* ---- number formats: how an element lies in memory, and what it is added up as --------------- */

struct f32 {
    typedef float raw;
    typedef float sum;
    static __device__ float load(float x)
    {
        return x;
    }
    static __device__ float store(float x)
    {
        return x;
    }
    static __device__ void add(float *to, float x)
    {
        atomicAdd(to, x);
    }
};

struct i64 {
    typedef unsigned long long raw; /* unsigned: sums wrap around */
    typedef unsigned long long sum;
    static __device__ unsigned long long load(unsigned long long x)
    {
        return x;
    }
    static __device__ unsigned long long store(unsigned long long x)
    {
        return x;
    }
    static __device__ void add(unsigned long long *to, unsigned long long x)
    {
        atomicAdd(to, x);
    }
};

struct i8 {
    typedef uint8_t raw;
    typedef unsigned sum;
    static __device__ unsigned load(uint8_t x)
    {
        return (unsigned)(int)(signed char)x;
    }
    static __device__ uint8_t store(unsigned x)
    {
        return (uint8_t)x;
    }
    /* Exchanges the aligned word that the byte lies in. */
    static __device__ void add(uint8_t *to, unsigned x)
    {
        unsigned *word = (unsigned *)((uint64_t)to & ~(uint64_t)3);
        unsigned shift = (unsigned)((uint64_t)to & 3) * 8;
        unsigned old = *(volatile unsigned *)word, before;
        do {
            before = old;
            unsigned byte = ((before >> shift) + x) & 0xff;
            old = atomicCAS(word, before, (before & ~(0xffu << shift)) | byte << shift);
        } while (old != before);
    }
};

/* The two 16-bit floats; `add` by exchange, since not every architecture adds bf16. */
template <typename Format> struct half_float {
    typedef uint16_t raw;
    typedef float sum;
    static __device__ float load(uint16_t x)
    {
        return Format::widen(x);
    }
    static __device__ uint16_t store(float x)
    {
        return Format::round(x);
    }
    static __device__ void add(uint16_t *to, float x)
    {
        unsigned short old = *(volatile unsigned short *)to, before;
        do {
            before = old;
            old = atomicCAS(to, before, Format::round(Format::widen(before) + x));
        } while (old != before);
    }
};

struct f16_format {
    static __device__ float widen(uint16_t x)
    {
        return card_float_of_half(x);
    }
    static __device__ uint16_t round(float x)
    {
        return card_half_of_float(x);
    }
};

struct bf16_format {
    static __device__ float widen(uint16_t x)
    {
        return __uint_as_float((unsigned)x << 16);
    }
    static __device__ uint16_t round(float x)
    {
        unsigned bits = __float_as_uint(x);
        if ((bits & 0x7fffffff) > 0x7f800000)
            return (uint16_t)(bits >> 16 | 0x40); /* NaN stays NaN */
        return (uint16_t)((bits + 0x7fff + (bits >> 16 & 1)) >> 16);
    }
};

typedef half_float<f16_format> f16;
typedef half_float<bf16_format> bf16;

/* ---- elementwise: out = sum of the inputs; of a single input: max(in, 0) --------------------- */

/* Loops over inputs are unrolled to it: an index that varies would put arguments into memory. */
enum { INPUTS = 4 };

template <typename T> static __device__ typename T::sum positive(typename T::sum x)
{
    return x > 0 ? x : 0;
}

template <> __device__ unsigned positive<i8>(unsigned x)
{
    return (int)x > 0 ? x : 0;
}

template <> __device__ unsigned long long positive<i64>(unsigned long long x)
{
    return (long long)x > 0 ? x : 0;
}

template <typename T>
static __device__ typename T::raw combine(const struct kernels_inputs &in, uint64_t i)
{
    typename T::sum sum = T::load(((const typename T::raw *)in.address[0])[i]);
    if (in.count == 1)
        return T::store(positive<T>(sum));
#pragma unroll
    for (unsigned j = 1; j < INPUTS; j++)
        if (j < in.count)
            sum += T::load(((const typename T::raw *)in.address[j])[i]);
    return T::store(sum);
}

template <typename T> struct pack {
    alignas(16) typename T::raw element[16 / sizeof(typename T::raw)];
};

template <typename T>
static __device__ pack<T> combine_packs(const struct kernels_inputs &in, uint64_t v)
{
    const unsigned width = 16 / sizeof(typename T::raw);
    typename T::sum sum[width];
    pack<T> result = ((const pack<T> *)in.address[0])[v];
    for (unsigned e = 0; e < width; e++)
        sum[e] = T::load(result.element[e]);
#pragma unroll
    for (unsigned j = 1; j < INPUTS; j++) {
        if (j >= in.count)
            break;
        pack<T> other = ((const pack<T> *)in.address[j])[v];
        for (unsigned e = 0; e < width; e++)
            sum[e] += T::load(other.element[e]);
    }
    for (unsigned e = 0; e < width; e++)
        result.element[e] = T::store(in.count == 1 ? positive<T>(sum[e]) : sum[e]);
    return result;
}

template <typename T>
static __device__ void elementwise(typename T::raw *out, const struct kernels_inputs &in,
                                   uint64_t count)
{
    uint64_t low_bits = (uint64_t)out;
#pragma unroll
    for (unsigned j = 0; j < INPUTS; j++)
        low_bits |= in.address[j]; /* those that are not there are 0 */
    const uint64_t width = 16 / sizeof(typename T::raw);
    uint64_t packs = low_bits % 16 ? 0 : count / width;
    for (uint64_t v = thread_index(); v < packs; v += thread_count())
        ((pack<T> *)out)[v] = combine_packs<T>(in, v);
    for (uint64_t i = packs * width + thread_index(); i < count; i += thread_count())
        out[i] = combine<T>(in, i);
}

/* ---- reduce: out[j] = sum over the rows i of in[i * pitch + j]
 * ---------------------------------- */

/* A block of 256 threads takes `width` columns (a power of two up to 32), 256 / width rows at a
 * time, and adds up in shared memory. The order of the additions is always the same. */
template <typename T>
static __device__ void reduce(typename T::raw *out, const typename T::raw *in,
                              const struct kernels_matrix &shape, unsigned width)
{
    __shared__ typename T::sum partial[256];
    if (!shape.columns) /* nor is there a width */
        return;
    unsigned column = threadIdx.x % width, row = threadIdx.x / width, rows = blockDim.x / width;
    for (uint64_t left = (uint64_t)blockIdx.x * width; left < shape.columns;
         left += (uint64_t)gridDim.x * width) {
        uint64_t j = left + column;
        typename T::sum sum = 0;
        if (j < shape.columns)
            for (uint64_t i = row; i < shape.rows; i += rows)
                sum += T::load(in[i * shape.pitch + j]);
        partial[threadIdx.x] = sum;
        for (unsigned half = rows / 2; half; half /= 2) {
            __syncthreads();
            if (row < half)
                partial[threadIdx.x] += partial[threadIdx.x + half * width];
        }
        __syncthreads();
        if (row == 0 && j < shape.columns)
            out[j] = T::store(partial[column]);
        __syncthreads();
    }
}

/* ---- gather and scatter_add: rows named by an index, modulo the rows of the table ----------- */

static __device__ inline uint64_t row_named(const struct kernels_rows &rows, uint64_t i)
{
    uint64_t name = rows.index_bytes == 8 ? ((const uint64_t *)rows.index)[i]
                                          : ((const uint32_t *)rows.index)[i];
    return name < rows.table_rows ? name : name % rows.table_rows;
}

/* Elements are only copied: Unit is the widest that addresses and row length allow, and
 * `columns` counts units. Blocks are 32 x 8: a warp a row. */
template <typename Unit>
static __device__ void gather(Unit *out, const Unit *table, const struct kernels_rows &rows)
{
    for (uint64_t i = (uint64_t)blockIdx.x * blockDim.y + threadIdx.y; i < rows.rows;
         i += (uint64_t)gridDim.x * blockDim.y) {
        const Unit *from = table + row_named(rows, i) * rows.columns;
        for (uint64_t j = threadIdx.x; j < rows.columns; j += blockDim.x)
            out[i * rows.columns + j] = from[j];
    }
}

template <typename T>
static __device__ void scatter_add(typename T::raw *table, const typename T::raw *in,
                                   const struct kernels_rows &rows)
{
    for (uint64_t i = (uint64_t)blockIdx.x * blockDim.y + threadIdx.y; i < rows.rows;
         i += (uint64_t)gridDim.x * blockDim.y) {
        typename T::raw *to = table + row_named(rows, i) * rows.columns;
        for (uint64_t j = threadIdx.x; j < rows.columns; j += blockDim.x)
            T::add(to + j, T::load(in[i * rows.columns + j]));
    }
}

extern "C" __global__ void gather_16(uint4 *out, const uint4 *table, struct kernels_rows rows)
{
    gather(out, table, rows);
}

extern "C" __global__ void gather_4(uint32_t *out, const uint32_t *table, struct kernels_rows rows)
{
    gather(out, table, rows);
}

extern "C" __global__ void gather_1(uint8_t *out, const uint8_t *table, struct kernels_rows rows)
{
    gather(out, table, rows);
}

/* Where both have the same place within 16 bytes, in vectors; else byte by byte. */
extern "C" __global__ void copy(uint8_t *out, const uint8_t *in, uint64_t bytes)
{
    range r(out, bytes);
    uint64_t i = thread_index();
    if (((uint64_t)out ^ (uint64_t)in) % 16) {
        for (; i < bytes; i += thread_count())
            out[i] = in[i];
        return;
    }
    uint4 *to = (uint4 *)(out + r.head);
    const uint4 *from = (const uint4 *)(in + r.head);
    for (uint64_t v = i; v < r.vectors; v += thread_count())
        to[v] = from[v];
    if (i < r.head)
        out[i] = in[i];
    if (i < r.tail)
        out[bytes - r.tail + i] = in[bytes - r.tail + i];
}

/* ---- matmul: for machines without cuBLAS, and for integers ----------------------------------- */

/* Tiles of 16 x 16 in shared memory, one element of `out` a thread. */
template <typename T>
static __device__ void matmul(typename T::raw *out, const typename T::raw *a,
                              const typename T::raw *b, const struct kernels_product &shape)
{
    __shared__ typename T::sum left[16][17], right[16][17];
    unsigned x = threadIdx.x, y = threadIdx.y;
    uint64_t across = (shape.n + 15) / 16, tiles = across * ((shape.m + 15) / 16);
    for (uint64_t t = blockIdx.x; t < tiles; t += gridDim.x) {
        uint64_t row = t / across * 16 + y, column = t % across * 16 + x;
        typename T::sum sum = 0;
        for (uint64_t at = 0; at < shape.k; at += 16) {
            bool in_a = row < shape.m && at + x < shape.k;
            bool in_b = column < shape.n && at + y < shape.k;
            left[y][x] = in_a ? T::load(a[row * shape.pitch_a + at + x]) : 0;
            right[y][x] = in_b ? T::load(b[(at + y) * shape.n + column]) : 0;
            __syncthreads();
            for (unsigned i = 0; i < 16; i++)
                sum += left[y][i] * right[i][x];
            __syncthreads();
        }
        if (row < shape.m && column < shape.n)
            out[row * shape.n + column] = T::store(sum);
    }
}

/* ---- one set of kernels for each format ------------------------------------------------------ */

#define KERNELS_OF(T)                                                                              \
    extern "C" __global__ void elementwise_##T(T::raw *out, struct kernels_inputs in,              \
                                               uint64_t count)                                     \
    {                                                                                              \
        elementwise<T>(out, in, count);                                                            \
    }                                                                                              \
    extern "C" __global__ void reduce_##T(T::raw *out, const T::raw *in,                           \
                                          struct kernels_matrix shape, unsigned width)             \
    {                                                                                              \
        reduce<T>(out, in, shape, width);                                                          \
    }                                                                                              \
    extern "C" __global__ void scatter_add_##T(T::raw *table, const T::raw *in,                    \
                                               struct kernels_rows rows)                           \
    {                                                                                              \
        scatter_add<T>(table, in, rows);                                                           \
    }                                                                                              \
    extern "C" __global__ void matmul_##T(T::raw *out, const T::raw *a, const T::raw *b,           \
                                          struct kernels_product shape)                            \
    {                                                                                              \
        matmul<T>(out, a, b, shape);                                                               \
    }

KERNELS_OF(f32)
KERNELS_OF(f16)
KERNELS_OF(bf16)
KERNELS_OF(i8)
KERNELS_OF(i64)
