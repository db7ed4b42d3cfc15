/* Sizes as the logs of TensorFlow and XLA print them. */
#include <string.h>

#include "allocators/base/size.h"
#include "workloads/formats/xla/bfc_dump.h"

uint64_t bfc_human_bytes(const char *text, uint64_t *slack)
{
    static const char units[] = "KMGTP";
    double value = 0, place = 1, unit_bytes = 1;
    bool fraction = false, digits = false;
    *slack = 0;
    for (; (*text >= '0' && *text <= '9') || ((*text == '.' || *text == ',') && !fraction);
         text++) {
        if (*text == '.' || *text == ',') {
            fraction = true;
            continue;
        }
        digits = true;
        place /= fraction ? 10 : 1;
        value = fraction ? value + place * (*text - '0') : value * 10 + (*text - '0');
    }
    const char *unit = *text ? strchr(units, *text) : NULL;
    if (unit && text[1] == 'i' && text[2] == 'B') {
        for (const char *at = units; at <= unit; at++)
            unit_bytes *= (double)AR_KIB;
    } else if (*text != 'B') {
        digits = false;
    }
    value *= unit_bytes;
    if (!digits || !(value < 1e18))
        return 0;
    *slack = unit_bytes > 1 ? (uint64_t)(unit_bytes * place / 2) + 1 : 0;
    return (uint64_t)(value + 0.5);
}

uint64_t bfc_type_bytes(const char *type, size_t length)
{
    static const struct {
        const char *name;
        uint64_t bytes;
    } types[] = {
        {"float", 4},  {"double", 8}, {"half", 2}, {"bfloat16", 2},  {"int64", 8},
        {"int32", 4},  {"int16", 2},  {"int8", 1}, {"uint64", 8},    {"uint32", 4},
        {"uint16", 2}, {"uint8", 1},  {"bool", 1}, {"complex64", 8}, {"complex128", 16},
    };
    for (size_t i = 0; i < sizeof types / sizeof types[0]; i++)
        if (strlen(types[i].name) == length && !strncmp(types[i].name, type, length))
            return types[i].bytes;
    return 0;
}

uint64_t bfc_elements(const char *shape)
{
    uint64_t elements = 1;
    if (*shape != '[')
        return 0;
    for (shape++; *shape != ']'; shape += *shape == ',') {
        uint64_t length = 0;
        if (*shape < '0' || *shape > '9')
            return 0;
        for (; *shape >= '0' && *shape <= '9'; shape++)
            if (length < UINT64_C(1) << 40)
                length = length * 10 + (uint64_t)(*shape - '0');
        if (__builtin_mul_overflow(elements, length, &elements) || (*shape != ',' && *shape != ']'))
            return 0;
    }
    return elements;
}
