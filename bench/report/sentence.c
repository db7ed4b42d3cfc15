#include "bench/report/sentence.h"

#include <string.h>

void sentence_wrap(FILE *stream, const char *text, int column, int indent, int width)
{
    bool begun = false;
    for (const char *word = text; *word;) {
        int length = (int)strcspn(word, " \n");
        if (begun && column + 1 + length > width) {
            fprintf(stream, "\n%*s", indent, "");
            column = indent;
        } else if (begun) {
            fputc(' ', stream);
            column++;
        }
        fprintf(stream, "%.*s", length, word);
        column += length;
        begun = true;
        word += length;
        word += strspn(word, " \n");
    }
    fputc('\n', stream);
}

void sentence_print(FILE *stream, const char *sentence)
{
    sentence_wrap(stream, sentence, 0, 2, SENTENCE_WIDTH);
}
