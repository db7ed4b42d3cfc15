/* Histories of results: whatever the bytes, they are read, judged and shown, or refused with a
 * sentence that names the file. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "bench/regress/history.h"
#include "tests/fuzz/target.h"

static void show(const struct history *history)
{
    const struct history_rules rules = {.effect = 0.05, .alpha = 0.001, .last = 10};
    struct history_judged judged;
    struct ar_error error;
    FILE *nowhere = fopen("/dev/null", "w");
    if (!nowhere || history_judge(&judged, history, &rules, NULL, &error))
        abort();
    const struct history_view view = {history, &judged, &rules, true};
    for (size_t i = 0; i < judged.change_count; i++)
        if (judged.changes[i].point == 0 || judged.changes[i].line >= history->count)
            abort();
    if (history_page(&view, nowhere, TABLE_TEXT, &error) ||
        history_figure(&view, 6, nowhere, &error))
        abort();
    history_json(&view, nowhere);
    history_annotations(&view, nowhere);
    fclose(nowhere);
    history_judged_close(&judged);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t bytes)
{
    char path[64];
    struct ar_error error = {{0}};
    struct history history;
    int file = target_file(data, bytes, path);
    enum ar_status status = history_read(&history, path, &error);
    if (status && status != AR_HOST_MEMORY && !strstr(error.text, path))
        abort();
    if (!status)
        show(&history);
    history_close(&history);
    close(file);
    return 0;
}
