#include "bench/report/sentence.h"

#include <string.h>

void sentence_print(FILE *stream, const char *sentence)
{
    int column = 0;
    for (const char *word = sentence; *word;) {
        int length = (int)strcspn(word, " ");
        if (column && column + 1 + length > 95)
            column = fprintf(stream, "\n ") - 1;
        column += fprintf(stream, "%s%.*s", column ? " " : "", length, word);
        word += length;
        word += strspn(word, " ");
    }
    fputc('\n', stream);
}
