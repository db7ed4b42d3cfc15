/* How:
 *
 * 1. The file goes by in a window of WINDOW_BYTES, so memory is bounded, and lines may be of any length.
 * 2. A message may be told over many lines, and needs its end: one that begins in the second half
 *    of the window, which the first half alone does not show, is read again when the window has
 *    moved on by half, less what a message may have before its first words.
 * 3. Where no window has a whole message, what the first one lacks is said. */
#include "bench/cli/message_file.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>
#include <sys/stat.h>

#define WINDOW_BYTES ((size_t)8 << 20)
#define FIRST_BYTES  ((size_t)1 << 16) /* of the window, which grows: most files are short */
#define BEFORE_BYTES ((size_t)1 << 18) /* that a message may have before its first words */

struct window {
    FILE *file;
    const char *path;
    char *text;
    size_t bytes, room;
    bool ended;
};

static enum ar_status grow(struct window *self, struct ar_error *error)
{
    size_t room = self->room ? 2 * self->room : FIRST_BYTES;
    char *text = realloc(self->text, room);
    if (!text)
        return ar_error_set(error, AR_HOST_MEMORY, "no host memory left for the message");
    self->text = text;
    self->room = room;
    return AR_OK;
}

static enum ar_status fill(struct window *self, struct ar_error *error)
{
    enum ar_status status = AR_OK;
    while (!self->ended && !status && self->bytes < WINDOW_BYTES) {
        if (self->bytes == self->room)
            status = grow(self, error);
        size_t got =
            status ? 0 : fread(self->text + self->bytes, 1, self->room - self->bytes, self->file);
        self->bytes += got;
        self->ended = !status && !got;
    }
    if (!status && ferror(self->file))
        return ar_error_set(error, AR_IO, "%s: cannot be read: %s", self->path, strerror(errno));
    return status;
}

static void move_on(struct window *self, size_t bytes)
{
    memmove(self->text, self->text + bytes, self->bytes - bytes);
    self->bytes -= bytes;
}

/* Rule 2: `*whole` where the window holds a message, and more than half a window behind its beginning. */
static enum ar_status read_window(const struct window *self, struct message *out, bool *whole,
                                  struct ar_error *error)
{
    struct message half;
    struct ar_error ignored;
    enum ar_status status = message_read(self->text, self->bytes, out, error);
    *whole = !status;
    if (!status && !self->ended)
        *whole = !message_read(self->text, WINDOW_BYTES / 2, &half, &ignored);
    return status;
}

static enum ar_status read_all(struct window *self, struct message *out, struct ar_error *error)
{
    struct ar_error first = {""}; /* of what is wrong with them */
    bool incomplete = false, whole = false;
    for (;;) {
        enum ar_status status = fill(self, error);
        if (status)
            return status;
        status = read_window(self, out, &whole, error);
        if (whole || (status && status != AR_INVALID))
            return status;
        if (status && !incomplete) {
            incomplete = out->incomplete;
            first = *error;
        }
        if (self->ended)
            break;
        move_on(self, WINDOW_BYTES / 2 - BEFORE_BYTES);
    }
    *error = first;
    return AR_INVALID;
}

enum ar_status message_file_read(const char *path, struct message *out, bool *more,
                                 struct ar_error *error)
{
    struct window window = {.path = path};
    window.file = strcmp(path, "-") == 0 ? stdin : fopen(path, "re");
    if (!window.file)
        return ar_error_set(error, AR_IO, "%s: cannot be read: %s", path, strerror(errno));
    enum ar_status status = read_all(&window, out, error);
    *more = !window.ended;
    if (window.file != stdin)
        fclose(window.file);
    free(window.text);
    return status;
}

bool message_file_is_meant(const char *text)
{
    static const char *const endings[] = {".txt", ".log", ".out", ".err", ".json", ".md", ".gz"};
    struct stat stat_of;
    size_t length = strlen(text);
    if (strcmp(text, "-") == 0 || (length < 4096 && stat(text, &stat_of) == 0))
        return true;
    if (length >= 4096 || text[strcspn(text, " \t\r\n")])
        return false;
    for (size_t i = 0; i < sizeof endings / sizeof *endings; i++) {
        size_t ending = strlen(endings[i]);
        if (length > ending && strcasecmp(text + length - ending, endings[i]) == 0)
            return true;
    }
    return strchr(text, '/') != NULL;
}
