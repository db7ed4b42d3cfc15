/* Numbers as they lie in blocks, read and written by the host: the six types of sim/device.h. */
#pragma once

#include <math.h>
#include <stdint.h>
#include <string.h>

#include "sim/device.h"

#define NUMBER_TYPES 6 /* of enum ar_device_type */

static inline const char *number_name(enum ar_device_type type)
{
    static const char *const names[NUMBER_TYPES] = {"f32", "tf32", "f16", "bf16", "i8", "i64"};
    return names[type];
}

static inline uint64_t number_bytes(enum ar_device_type type)
{
    static const uint64_t bytes[NUMBER_TYPES] = {4, 4, 2, 2, 1, 8};
    return bytes[type];
}

/* Of a sum, relative to the sum of the magnitudes in it. */
static inline double number_tolerance(enum ar_device_type type)
{
    static const double tolerances[NUMBER_TYPES] = {1e-6, 1e-3, 1e-2, 1e-2, 0, 0};
    return tolerances[type];
}

static inline double number_wrap_i8(double sum)
{
    return (double)(int8_t)(uint8_t)(int64_t)sum;
}

static inline float number_of_f16(uint16_t bits)
{
    int exponent = bits >> 10 & 31, fraction = bits & 1023;
    float magnitude =
        exponent ? ldexpf((float)(1024 + fraction), exponent - 25) : ldexpf((float)fraction, -24);
    return bits >> 15 ? -magnitude : magnitude;
}

/* For magnitudes below 65504; to the nearest, ties to even. */
static inline uint16_t number_to_f16(double x)
{
    int exponent;
    double magnitude = fabs(x);
    (void)frexp(magnitude, &exponent); /* magnitude < 2^exponent */
    exponent = magnitude == 0 || exponent < -13 ? -13 : exponent;
    double units = rint(ldexp(magnitude, 11 - exponent)); /* up to 2048 */
    unsigned bits = (unsigned)units + ((unsigned)(exponent + 13) << 10);
    return (uint16_t)(bits | (signbit(x) ? 0x8000u : 0));
}

static inline double number_get(const uint8_t *base, enum ar_device_type type, uint64_t i)
{
    const uint8_t *at = base + i * number_bytes(type);
    uint64_t bits = 0;
    uint32_t word;
    float value;
    memcpy(&bits, at, number_bytes(type)); /* little endian */
    switch (type) {
    case AR_DEVICE_F16:
        return (double)number_of_f16((uint16_t)bits);
    case AR_DEVICE_I8:
        return (double)(int8_t)bits;
    case AR_DEVICE_I64:
        return (double)(int64_t)bits;
    default:
        word = type == AR_DEVICE_BF16 ? (uint32_t)bits << 16 : (uint32_t)bits;
        memcpy(&value, &word, sizeof value);
        return (double)value;
    }
}

static inline void number_set(uint8_t *base, enum ar_device_type type, uint64_t i, double x)
{
    uint64_t bits;
    uint32_t word;
    float value = (float)x;
    memcpy(&word, &value, sizeof word);
    switch (type) {
    case AR_DEVICE_F16:
        bits = number_to_f16(x);
        break;
    case AR_DEVICE_BF16: /* cut off: any number will do as an input */
        bits = word >> 16;
        break;
    case AR_DEVICE_I8:
    case AR_DEVICE_I64:
        bits = (uint64_t)(int64_t)x;
        break;
    default:
        bits = word;
    }
    memcpy(base + i * number_bytes(type), &bits, number_bytes(type));
}
