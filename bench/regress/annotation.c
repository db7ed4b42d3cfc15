#include "bench/regress/annotation.h"

#include <string.h>

static void escaped(FILE *stream, const char *text)
{
    for (; *text; text++) {
        if (strchr("%\r\n,:", *text))
            fprintf(stream, "%%%02X", (unsigned)(unsigned char)*text);
        else
            fputc(*text, stream);
    }
}

void annotation_worse(FILE *stream, const char *level, const char *figure, const char *text)
{
    fprintf(stream, "::%s title=", level);
    escaped(stream, figure);
    fputs(" is worse::", stream);
    escaped(stream, text);
    fputc('\n', stream);
}
