/* `explain`: why memory ran out. */
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

#include "bench/cli/cli.h"
#include "bench/report/message_page.h"

enum option_key { KEY_MESSAGE = CLI_KEYS };

static const struct cli_option options[] = {
    {CLI_HEADING, NULL, NULL, "Options:"},
    {KEY_MESSAGE, "message", "TEXT", "a message, a file that holds one, or - for standard input"},
    {0},
};

static const struct cli_page page = {
    .arguments = "--message TEXT",
    .text =
        "Says why memory ran out. With --message: from the out-of-memory message of PyTorch,\n"
        "TensorFlow or JAX alone, by the first rule that holds: impossible, not-the-allocator,\n"
        "fragmentation, tenant, outside, fragmentation-possible, capacity.",
    .options = options,
};

struct explain_arguments {
    const char *message;
};

static enum status take(void *argument, int key, const char *value, struct error *error)
{
    struct explain_arguments *self = argument;
    if (key == CLI_ARGUMENT)
        return error_set(error, STATUS_INVALID, "\"%s\" stands alone; messages go after --message",
                         value);
    self->message = value;
    return STATUS_OK;
}

/* All of a file, up to what message_read looks at. */
static enum status read_file(const char *path, char **text, size_t *bytes, struct error *error)
{
    FILE *file = strcmp(path, "-") == 0 ? stdin : fopen(path, "re");
    size_t room = 1 << 16;
    *bytes = 0;
    *text = malloc(room);
    if (!file) {
        free(*text);
        return error_set(error, STATUS_IO, "%s: cannot be read: %s", path, strerror(errno));
    }
    while (*text && *bytes < MESSAGE_TEXT_MOST) {
        size_t got = fread(*text + *bytes, 1, room - *bytes, file);
        *bytes += got;
        if (got == 0)
            break;
        if (*bytes < room)
            continue;
        char *larger = realloc(*text, room *= 2);
        if (!larger)
            free(*text);
        *text = larger;
    }
    bool failed = ferror(file);
    if (file != stdin)
        fclose(file);
    if (!*text)
        return error_set(error, STATUS_HOST_MEMORY, "no host memory left for the message");
    if (!failed)
        return STATUS_OK;
    free(*text);
    return error_set(error, STATUS_IO, "%s: cannot be read", path);
}

static bool is_file(const char *text)
{
    struct stat stat_of;
    return strcmp(text, "-") == 0 || (strlen(text) < 4096 && stat(text, &stat_of) == 0);
}

static enum status explain_message(const char *argument, struct error *error)
{
    struct message message;
    char *text = NULL;
    size_t bytes = strlen(argument);
    enum status status = STATUS_OK;
    if (is_file(argument))
        status = read_file(argument, &text, &bytes, error);
    if (status)
        return status;
    status = message_read(text ? text : argument, bytes, &message, error);
    free(text);
    if (status)
        return error_prefix(error, status, "explain");
    message_page_print(stdout, &message);
    return STATUS_OK;
}

enum status cmd_explain(int argc, char **argv, struct error *error)
{
    struct explain_arguments self = {0};
    bool help = false;
    enum status status = cli_parse(&page, argc, argv, take, &self, &help, error);
    if (status || help)
        return status;
    if (!self.message)
        return error_set(error, STATUS_INVALID, "explain: name a message: explain --message TEXT");
    return explain_message(self.message, error);
}
