/* Words, numbers and times in the text of other programs' files. */
#include "workloads/io/fields.h"

#include "allocators/base/utf8.h"

#define NS_PER_S UINT64_C(1000000000)

typedef enum ar_status take_line(void *self, char *line, uint64_t number, struct ar_error *error);

/* Gives the lines of `lines`, which was started, and frees it. */
static enum ar_status give_lines(struct trace_lines *lines, take_line *take, void *self,
                                 struct ar_error *error)
{
    char *line = NULL;
    size_t length;
    enum ar_status status;
    while (!(status = trace_lines_next(lines, &line, &length, error)) && line) {
        status = length ? take(self, line, lines->number, error) : AR_OK;
        if (status) {
            (void)ar_error_prefix(error, status, "%s:%llu", trace_input_path(lines->input),
                                  (unsigned long long)lines->number);
            break;
        }
    }
    free(lines);
    return status;
}

enum ar_status fields_lines(struct trace_input *input, take_line *take, void *self,
                            struct ar_error *error)
{
    struct trace_lines *lines = malloc(sizeof *lines);
    AR_TRY_MEMORY(lines, error, "a file");
    trace_lines_start(lines, input);
    return give_lines(lines, take, self, error);
}

enum ar_status fields_log_lines(struct trace_input *input, take_line *take, void *self,
                                struct ar_error *error)
{
    struct trace_lines *lines = malloc(sizeof *lines);
    AR_TRY_MEMORY(lines, error, "a file");
    trace_lines_start_log(lines, input, TRACE_LINE_LIMIT);
    return give_lines(lines, take, self, error);
}

size_t fields_split(char *line, char separator, char **fields, size_t room)
{
    size_t count = 0;
    for (char *at = line; at; count++) {
        char *end = strchr(at, separator);
        if (count < room)
            fields[count] = at;
        if (end)
            *end++ = 0;
        at = end;
    }
    return count;
}

size_t head_blanks(const char *head, size_t count, size_t at)
{
    if (!at && count >= 3 && !memcmp(head, "\xef\xbb\xbf", 3))
        at = 3;
    while (at < count && (head[at] == ' ' || (head[at] >= '\t' && head[at] <= '\r')))
        at++;
    return at;
}

bool head_holds(const char *head, size_t count, const char *text)
{
    size_t length = strlen(text);
    for (const char *at = head, *end = head + count; at < end; at++) {
        at = memchr(at, text[0], (size_t)(end - at));
        if (!at || (size_t)(end - at) < length)
            return false;
        if (!memcmp(at, text, length))
            return true;
    }
    return false;
}

bool head_line(const char *head, size_t count, char *line, size_t room)
{
    const char *end = memchr(head, '\n', count);
    size_t length = end ? (size_t)(end - head) : count;
    if (length >= room || memchr(head, 0, length))
        return false;
    memcpy(line, head, length);
    line[length] = 0;
    line[strcspn(line, "\r")] = 0;
    return true;
}

bool field_begins_with(const char *text, const char *stem)
{
    return strncmp(text, stem, strlen(stem)) == 0;
}

bool field_ends_with(const char *text, const char *ending)
{
    size_t length = strlen(text), size = strlen(ending);
    return length >= size && strcmp(text + length - size, ending) == 0;
}

const char *field_file_name(const char *path)
{
    const char *slash = strrchr(path, '/');
    return slash ? slash + 1 : path;
}

static bool is_plain(const char *text, size_t bytes)
{
    return bytes && (unsigned char)*text >= ' ' && *text != 0x7f;
}

size_t field_plain(const char *text, size_t length)
{
    size_t at = 0;
    for (size_t bytes; at < length && is_plain(text + at, bytes = ar_utf8_bytes(text + at));)
        at += bytes;
    return at;
}

void field_text(const char *text, char *out, size_t room)
{
    size_t used = 0;
    while (*text) {
        size_t bytes = ar_utf8_bytes(text);
        bool plain = is_plain(text, bytes);
        size_t wanted = plain ? bytes : 1;
        if (used + wanted >= room)
            break;
        if (plain)
            memcpy(out + used, text, bytes);
        else
            out[used] = '_';
        used += wanted;
        text += bytes ? bytes : 1;
    }
    out[used] = 0;
}

void field_word(const char *text, size_t length, const char *refused, char *out, size_t room)
{
    size_t used = 0;
    for (; used < length && used + 1 < room && text[used]; used++) {
        bool plain = text[used] > ' ' && text[used] < 0x7f && !strchr(refused, text[used]);
        out[used] = plain ? text[used] : '_';
    }
    out[used] = 0;
}

enum ar_status field_pointer(const char *text, uint64_t *value, struct ar_error *error)
{
    static const char *const none[] = {"(nil)", "NULL", "nullptr", "(null)"};
    *value = 0;
    for (size_t i = 0; i < AR_COUNT(none); i++)
        if (strcmp(text, none[i]) == 0)
            return AR_OK;
    const char *at = text[0] == '0' && (text[1] == 'x' || text[1] == 'X') ? text + 2 : text;
    const char *begin = at;
    for (; field_hex_digit(*at) < 16 && !(*value >> 60); at++)
        *value = *value << 4 | field_hex_digit(*at);
    if (at == begin || *at || *value == UINT64_MAX)
        return ar_invalid(error, "\"%.40s\" is not an address such as 0x7f00", text);
    return AR_OK;
}

/* A number of 1 to `digits` digits; false if there are none or more. */
static bool take_number(const char **at, unsigned digits, uint64_t *value)
{
    const char *begin = *at;
    *value = 0;
    for (; **at >= '0' && **at <= '9' && (size_t)(*at - begin) < digits; ++*at)
        *value = *value * 10 + (unsigned)(**at - '0');
    return *at > begin && !(**at >= '0' && **at <= '9');
}

/* The fraction of a second in nanoseconds; further digits are ignored. */
static uint64_t take_fraction(const char **at)
{
    uint64_t ns = 0;
    unsigned digits = 0;
    for (; **at >= '0' && **at <= '9'; ++*at)
        if (digits++ < 9)
            ns = ns * 10 + (unsigned)(**at - '0');
    for (; digits < 9; digits++)
        ns *= 10;
    return ns;
}

/* Days since 1970-01-01. Years begin in March here, so that the leap day is the last of its
 * year. */
static uint64_t days_of(uint64_t year, uint64_t month, uint64_t day)
{
    uint64_t shifted = year - (month <= 2);
    uint64_t month_from_march = (month + 9) % 12;
    uint64_t day_of_year = (153 * month_from_march + 2) / 5 + day - 1;
    return shifted * 365 + shifted / 4 - shifted / 100 + shifted / 400 + day_of_year - 719468;
}

static bool take_date(const char **at, uint64_t *days)
{
    uint64_t year, month, day;
    if (!take_number(at, 4, &year) || *(*at)++ != '-' || !take_number(at, 2, &month) ||
        *(*at)++ != '-' || !take_number(at, 2, &day) || (**at != ' ' && **at != 'T'))
        return false;
    ++*at;
    *days = days_of(year, month, day);
    return year >= 1971 && month >= 1 && month <= 12 && day >= 1 && day <= 31;
}

/* "Z", "+01:00", or nothing. It is ignored: all times of a log are of one zone. */
static bool is_zone(const char *at)
{
    if (*at == '+' || *at == '-')
        return strspn(at + 1, "0123456789:") == strlen(at + 1);
    return !*at || strcmp(at, "Z") == 0;
}

static bool take_clock(const char **at, uint64_t *seconds)
{
    uint64_t hours, minutes, rest;
    if (!take_number(at, 2, &hours) || *(*at)++ != ':' || !take_number(at, 2, &minutes) ||
        *(*at)++ != ':' || !take_number(at, 2, &rest))
        return false;
    *seconds = (hours * 60 + minutes) * 60 + rest;
    return hours < 24 && minutes < 60 && rest <= 60;
}

enum ar_status field_time(const char *text, uint64_t *time_ns, bool *dated, struct ar_error *error)
{
    const char *at = text;
    uint64_t days = 0, seconds = 0, ns = 0;
    bool good, clock = strchr(text, ':') != NULL;
    *dated = !clock || (strlen(text) > 4 && text[4] == '-');
    if (clock)
        good = (!*dated || take_date(&at, &days)) && take_clock(&at, &seconds);
    else
        good = take_number(&at, 10, &seconds);
    if (good && (*at == '.' || *at == ',' || (clock && *at == ':'))) {
        at++;
        ns = take_fraction(&at);
    }
    if (!good || !(clock ? is_zone(at) : !*at) || seconds / 86400 + days > 50000)
        return ar_invalid(error, "\"%.40s\" is not a time such as 23:59:59.999999", text);
    *time_ns = (days * 86400 + seconds) * NS_PER_S + ns;
    return AR_OK;
}

/* ---- lines ----
 *
 * If the buffer holds no whole line, its rest moves to the front and the input fills the remainder.
 * A byte-order mark before the first line, which spreadsheets and the shell of Windows write, is
 * skipped. */

void trace_lines_start(struct trace_lines *lines, struct trace_input *input)
{
    trace_lines_start_log(lines, input, 0);
}

void trace_lines_start_log(struct trace_lines *lines, struct trace_input *input, size_t kept_bytes)
{
    lines->input = input;
    lines->number = 0;
    lines->kept_bytes = kept_bytes;
    lines->begin = lines->end = 0;
    lines->ended = false;
}

static enum ar_status fill(struct trace_lines *lines, struct ar_error *error)
{
    memmove(lines->buffer, lines->buffer + lines->begin, lines->end - lines->begin);
    lines->end -= lines->begin;
    lines->begin = 0;
    while (!lines->ended && lines->end < TRACE_LINE_LIMIT) {
        size_t got;
        AR_TRY(trace_input_read(lines->input, lines->buffer + lines->end,
                                sizeof lines->buffer - 1 - lines->end, &got, error));
        lines->ended = !got;
        lines->end += got;
    }
    return AR_OK;
}

/* Skips the rest of a long line, whose kept bytes lie at the front of the buffer. */
static enum ar_status skip_rest(struct trace_lines *lines, struct ar_error *error)
{
    const char *stop = NULL;
    while (!stop && !lines->ended) {
        char *rest = lines->buffer + lines->kept_bytes;
        size_t got;
        AR_TRY(trace_input_read(lines->input, rest, sizeof lines->buffer - 1 - lines->kept_bytes,
                                &got, error));
        stop = memchr(rest, '\n', got);
        lines->ended = !got;
        lines->end = lines->kept_bytes + got;
        lines->begin = stop ? (size_t)(stop + 1 - lines->buffer) : lines->end;
    }
    return AR_OK;
}

static enum ar_status refuse(const struct trace_lines *lines, const char *what,
                             struct ar_error *error)
{
    return ar_invalid(error, "%s:%llu: the line %s; is this a text file?",
                      trace_input_path(lines->input), (unsigned long long)lines->number, what);
}

enum ar_status trace_lines_next(struct trace_lines *lines, char **line, size_t *length,
                                struct ar_error *error)
{
    char *from = lines->buffer + lines->begin;
    char *stop = memchr(from, '\n', lines->end - lines->begin);
    if (!stop && !lines->ended) {
        AR_TRY(fill(lines, error));
        if (!lines->number && lines->end >= 3 && !memcmp(lines->buffer, "\xef\xbb\xbf", 3))
            lines->begin = 3;
        from = lines->buffer + lines->begin;
        stop = memchr(from, '\n', lines->end - lines->begin);
    }
    *line = NULL;
    size_t left = lines->end - lines->begin;
    if (!stop && !left)
        return AR_OK;
    lines->number++;
    size_t taken = stop ? (size_t)(stop - from) : left;
    lines->begin += taken + (stop != NULL);
    if (lines->kept_bytes && taken > lines->kept_bytes) {
        taken = lines->kept_bytes;
        from = memmove(lines->buffer, from, taken);
        AR_TRY(stop ? AR_OK : skip_rest(lines, error));
    } else if (taken >= TRACE_LINE_LIMIT) {
        return refuse(lines, "has more than 65536 bytes", error);
    }
    from[taken] = 0;
    for (char *nul = from; (nul = memchr(nul, 0, (size_t)(from + taken - nul)));) {
        if (!lines->kept_bytes)
            return refuse(lines, "holds a NUL byte", error);
        *nul = ' ';
    }
    if (taken && from[taken - 1] == '\r')
        from[--taken] = 0;
    *line = from;
    *length = taken;
    return AR_OK;
}
