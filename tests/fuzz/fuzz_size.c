/* Sizes and counts as people write them: what parses prints back as the same number. */
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include "allocators/base/size.h"
#include "tests/fuzz/target.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t bytes)
{
    char text[256], printed[64];
    uint64_t value = 0, again = 0;
    if (bytes >= sizeof text)
        return 0;
    memcpy(text, data, bytes);
    text[bytes] = '\0';
    if (ar_count_parse(text, &value, NULL) != AR_OK && ar_size_parse(text, &value, NULL) != AR_OK)
        return 0;
    if (value >> 63) /* a count may be larger than any size */
        return 0;
    ar_size_print_exact(value, printed, sizeof printed);
    if (ar_size_parse(printed, &again, NULL) != AR_OK || again != value)
        abort();
    return 0;
}
