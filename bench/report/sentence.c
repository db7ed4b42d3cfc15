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

void sentence_print(FILE *stream, const char *sentence)
{
    sentence_wrap(stream, sentence, 0, 2, SENTENCE_WIDTH);
}

/* Keeps the leading spaces of the text. */
static void wrap_indented(FILE *stream, const char *text, int indent, int width)
{
    int column = (int)strspn(text, " ");
    fprintf(stream, "%*s", column, "");
    sentence_wrap(stream, text, column, indent, width);
}

void sentence_format(FILE *stream, int indent, const char *format, ...)
{
    char *text;
    va_list arguments, again;
    va_start(arguments, format);
    va_copy(again, arguments);
    if (vasprintf(&text, format, arguments) >= 0) {
        wrap_indented(stream, text, indent, SENTENCE_WIDTH);
        free(text);
    } else { /* no memory: one long line */
        vfprintf(stream, format, again);
        fputc('\n', stream);
    }
    va_end(again);
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
    char *text = NULL;
    va_list arguments, again;
    va_start(arguments, format);
    va_copy(again, arguments);
    if (isatty(fileno(stream)) && vasprintf(&text, format, arguments) >= 0) {
        bool known = ioctl(fileno(stream), TIOCGWINSZ, &size) == 0 && size.ws_col >= LEAST_WIDTH;
        wrap_indented(stream, text, 2, known ? size.ws_col : SENTENCE_WIDTH);
        free(text);
    } else {
        vfprintf(stream, format, again);
        fputc('\n', stream);
    }
    va_end(again);
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
