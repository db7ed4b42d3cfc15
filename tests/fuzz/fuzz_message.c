/* Texts taken for out-of-memory messages: read with all that a page needs, or refused with a
 * sentence. */
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>

#include "bench/report/pages.h"
#include "tests/fuzz/target.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t bytes)
{
    struct message message;
    struct ar_error error = {""};
    enum ar_status status = message_read((const char *)data, bytes, &message, &error);
    if ((status == AR_OK) == (error.text[0] != '\0'))
        abort();
    if (status)
        return 0;
    if (!message.figures[MESSAGE_FIGURE_ASKED].known && !message.bare && !message.printed)
        abort();
    if (message.count == 0 ||
        (message.cause == MESSAGE_UNKNOWN) != (message.confidence == MESSAGE_OPEN))
        abort();
    FILE *nowhere = fopen("/dev/null", "w");
    if (!nowhere)
        abort();
    message_page_print(nowhere, &message, bytes % 2);
    fclose(nowhere);
    return 0;
}
