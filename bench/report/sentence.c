#include "bench/report/sentence.h"

#include <stdarg.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ioctl.h>
#include <unistd.h>

#define LEAST_WIDTH 40 /* a smaller width of a terminal is taken for an error */

/* The length up to the next space outside of backticks: a command between them is one word if a
 * line has `room` for it, so that it can be copied. */
static int word_length(const char *word, int room)
{
    int whole = 0;
    bool open = false;
    while (word[whole] && word[whole] != '\n' && (open || word[whole] != ' '))
        open ^= word[whole++] == '`';
    return open || whole > room ? (int)strcspn(word, " \n") : whole;
}

void sentence_wrap(FILE *stream, const char *text, int column, int indent, int width)
{
    int spaces = 0; /* before the word, as many as in the text, because names may have several */
    for (const char *word = text + strspn(text, " \n"); *word;) {
        int length = word_length(word, width - indent);
        if (spaces && column + spaces + length > width) {
            fprintf(stream, "\n%*s", indent, "");
            column = indent;
        } else if (spaces) {
            fprintf(stream, "%*s", spaces, "");
            column += spaces;
        }
        fprintf(stream, "%.*s", length, word);
        column += length;
        word += length;
        spaces = (int)strspn(word, " ");
        if (word[spaces] == '\n')
            spaces = 1;
        word += strspn(word, " \n");
    }
    fputc('\n', stream);
}

/* Breaks the text to `width`, or prints one long line if it is 0 or without memory. Keeps the
 * leading spaces. */
static void print_wrapped(FILE *stream, int indent, int width, const char *format,
                          va_list arguments)
{
    char *text = NULL;
    va_list again;
    va_copy(again, arguments);
    if (width && vasprintf(&text, format, arguments) >= 0) {
        int column = (int)strspn(text, " ");
        fprintf(stream, "%*s", column, "");
        sentence_wrap(stream, text, column, indent, width);
        free(text);
    } else {
        vfprintf(stream, format, again);
        fputc('\n', stream);
    }
    va_end(again);
}

void say(FILE *stream, const char *format, ...)
{
    va_list arguments;
    va_start(arguments, format);
    print_wrapped(stream, 2, SENTENCE_WIDTH, format, arguments);
    va_end(arguments);
}

void sentence_format(FILE *stream, int indent, const char *format, ...)
{
    va_list arguments;
    va_start(arguments, format);
    print_wrapped(stream, indent, SENTENCE_WIDTH, format, arguments);
    va_end(arguments);
}

/* Several texts, one on each line. */
static void print_parts(FILE *stream, const char *text, size_t indent)
{
    for (const char *end; (end = strstr(text, "; ")); text = end + 2)
        fprintf(stream, "%.*s\n%*s", (int)(end - text), text, (int)indent, "");
    fprintf(stream, "%s\n", text);
}

static size_t longest_part(const char *text)
{
    size_t longest = 0;
    for (const char *end; (end = strstr(text, "; ")); text = end + 2)
        longest = (size_t)(end - text) > longest ? (size_t)(end - text) : longest;
    return strlen(text) > longest ? strlen(text) : longest;
}

void sentence_copied(FILE *stream, const char *label, const char *text)
{
    size_t used = strlen(label);
    int shown = (int)used;
    if (used + strlen(text) <= SENTENCE_WIDTH) {
        fprintf(stream, "%s%s\n", label, text);
    } else if (used + longest_part(text) <= SENTENCE_WIDTH) {
        fputs(label, stream);
        print_parts(stream, text, used);
    } else {
        while (shown > 0 && label[shown - 1] == ' ')
            shown--;
        if (shown > 0)
            fprintf(stream, "%.*s\n", shown, label);
        print_parts(stream, text, 0);
    }
}

void sentence_say(FILE *stream, const char *format, ...)
{
    struct winsize size = {0};
    int width = isatty(fileno(stream)) ? SENTENCE_WIDTH : 0;
    va_list arguments;
    va_start(arguments, format);
    if (width && ioctl(fileno(stream), TIOCGWINSZ, &size) == 0 && size.ws_col >= LEAST_WIDTH)
        width = size.ws_col;
    print_wrapped(stream, 2, width, format, arguments);
    va_end(arguments);
}

void text_add(char *text, size_t room, const char *format, ...)
{
    size_t used = strlen(text);
    va_list arguments;
    va_start(arguments, format);
    vsnprintf(text + used, room - used, format, arguments);
    va_end(arguments);
}

bool text_end(FILE *stream, char **text)
{
    bool whole = stream && !ferror(stream);
    if (stream)
        whole = fclose(stream) == 0 && *text && whole;
    if (whole)
        return true;
    free(*text);
    *text = NULL;
    return false;
}
