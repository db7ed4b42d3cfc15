#include "bench/suite/ini.h"

#include <ctype.h>
#include <errno.h>
#include <sys/stat.h>

#include "allocators/options.h"

static char *trim(char *text)
{
    while (isspace((unsigned char)*text))
        text++;
    char *end = text + strlen(text);
    while (end > text && isspace((unsigned char)end[-1]))
        end--;
    *end = '\0';
    return text;
}

/* "tenant *" stands for all sections [tenant NAME]. */
static bool is_of_kind(const char *name, const char *known)
{
    size_t length = strlen(known);
    return length > 2 && !strcmp(known + length - 2, " *") && !strncmp(name, known, length - 1) &&
           name[length - 1];
}

/* Sets the section of the following lines. `named` has room for a name. */
static enum ar_status begin_section(struct ini_line *line, char named[INI_SECTION_ROOM],
                                    const char *const *sections, size_t count,
                                    struct ar_error *error)
{
    size_t length = strlen(line->text);
    if (line->text[length - 1] != ']')
        return ar_error_set(error, AR_FORMAT, "%s:%u: the section's closing ] is missing",
                            line->path, line->number);
    line->text[length - 1] = '\0';
    line->section_number = line->number;
    const char *name = trim(line->text + 1);
    for (size_t i = 0; i < count; i++) {
        if (strcmp(sections[i], name) == 0) {
            line->section = sections[i];
            return AR_OK;
        }
        if (is_of_kind(name, sections[i]) && strlen(name) < INI_SECTION_ROOM) {
            line->section = strcpy(named, name);
            return AR_OK;
        }
    }
    /* "engin llm" is nearest to "engine *". */
    char kind[INI_SECTION_ROOM];
    snprintf(kind, sizeof kind, "%.*s%s", (int)strcspn(name, " "), name,
             strchr(name, ' ') ? " *" : "");
    const char *near = ar_nearest_name(kind, sections, count);
    near = near ? near : sections[0];
    size_t named_of = strlen(near) > 2 && !strcmp(near + strlen(near) - 2, " *") ? 1 : 0;
    return ar_error_set(error, AR_FORMAT, "%s:%u: there is no section [%s]; did you mean [%.*s%s]?",
                        line->path, line->number, name, (int)(strlen(near) - named_of), near,
                        named_of ? "NAME" : "");
}

/* " # ..." at the end of a line is a comment too. */
static void cut_comment(char *text)
{
    for (char *at = text; (at = strchr(at, '#')) != NULL; at++)
        if (at > text && isspace((unsigned char)at[-1])) {
            *at = '\0';
            trim(text);
            return;
        }
}

static enum ar_status read_line(struct ini_line *line, char named[INI_SECTION_ROOM],
                                const char *const *sections, size_t count, ini_entry *begin,
                                ini_entry *entry, void *argument, struct ar_error *error)
{
    if (line->text[0] == '\0' || line->text[0] == '#' || line->text[0] == ';')
        return AR_OK;
    cut_comment(line->text);
    if (line->text[0] == '[') {
        enum ar_status status = begin_section(line, named, sections, count, error);
        return status || !begin ? status : begin(argument, line, error);
    }
    if (!line->section)
        return ar_error_set(error, AR_FORMAT,
                            "%s:%u: \"%.40s\" is before the first section; begin with [%s]",
                            line->path, line->number, line->text, sections[0]);
    return entry(argument, line, error);
}

/* Reads the next line without its end into `text`, which has room for INI_LINE_MOST bytes and a
 * NUL. */
static enum ar_status next_line(FILE *file, const struct ini_line *line, char *text, bool *more,
                                struct ar_error *error)
{
    size_t length = 0;
    int byte;
    errno = 0;
    while ((byte = getc_unlocked(file)) != EOF && byte != '\n') {
        if (byte == '\0')
            return ar_error_set(error, AR_FORMAT, "%s:%u: holds a zero byte; is this a text file?",
                                line->path, line->number);
        if (length == INI_LINE_MOST)
            return ar_error_set(error, AR_FORMAT,
                                "%s:%u: the line has more than %d bytes; is this a text file?",
                                line->path, line->number, INI_LINE_MOST);
        text[length++] = (char)byte;
    }
    text[length] = '\0';
    if (byte == EOF && ferror(file))
        return ar_error_set(error, AR_IO, "%s:%u: cannot be read further: %s", line->path,
                            line->number, strerror(errno));
    *more = byte != EOF || length > 0;
    if (*more && line->number > INI_LINES_MOST)
        return ar_error_set(error, AR_FORMAT, "%s: has more than %d lines; is this a suite?",
                            line->path, INI_LINES_MOST);
    return AR_OK;
}

static FILE *open_file(const char *path, struct ar_error *error)
{
    struct stat info;
    FILE *file = fopen(path, "re");
    if (file && fstat(fileno(file), &info) == 0 && S_ISDIR(info.st_mode)) {
        fclose(file);
        file = NULL;
        errno = EISDIR;
    }
    if (!file)
        (void)ar_error_set(error, AR_IO, "%s: cannot be read: %s", path, strerror(errno));
    return file;
}

enum ar_status ini_read(const char *path, const char *const *sections, size_t section_count,
                        ini_entry *entry, void *argument, struct ar_error *error)
{
    return ini_read_sections(path, sections, section_count, NULL, entry, argument, error);
}

enum ar_status ini_read_sections(const char *path, const char *const *sections,
                                 size_t section_count, ini_entry *begin, ini_entry *entry,
                                 void *argument, struct ar_error *error)
{
    FILE *file = open_file(path, error);
    if (!file)
        return AR_IO;
    struct ini_line line = {.path = path};
    char named[INI_SECTION_ROOM];
    char *buffer = malloc(INI_LINE_MOST + 1);
    bool more = true;
    enum ar_status status = AR_OK;
    if (!buffer)
        status = ar_error_set(error, AR_HOST_MEMORY, "%s: no host memory to read it", path);
    while (!status && more) {
        line.number++;
        status = next_line(file, &line, buffer, &more, error);
        if (status || !more)
            break;
        bool marked = line.number == 1 && strncmp(buffer, "\xef\xbb\xbf", 3) == 0;
        line.text = trim(buffer + (marked ? 3 : 0)); /* byte-order mark */
        status = read_line(&line, named, sections, section_count, begin, entry, argument, error);
    }
    if (status == AR_FORMAT && !line.section && (!line.text || line.text[0] != '[') &&
        !strcmp(sections[0], "suite"))
        status =
            ar_error_prefix(error, status, "no suite (a trace stands after -w, or in a suite)");
    free(buffer);
    fclose(file);
    return status;
}

enum ar_status ini_split(const struct ini_line *line, const char **key, const char **value,
                         struct ar_error *error)
{
    char *equals = strchr(line->text, '=');
    if (!equals || equals == line->text)
        return ar_error_set(error, AR_FORMAT, "%s:%u: \"%.60s\" is not of the form key = value",
                            line->path, line->number, line->text);
    *equals = '\0';
    *key = trim(line->text);
    *value = trim(equals + 1);
    return AR_OK;
}
