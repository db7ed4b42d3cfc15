/* Apart from file.c, whose libraries the plug-in does not need. */
#include <limits.h>
#include <sys/stat.h>
#include <unistd.h>

#include "workloads/io/file.h"

enum { LINKS_MOST = 40 };

char *file_behind_links(const char *path)
{
    char target[PATH_MAX];
    char *here = strdup(path);
    for (int i = 0; here && i < LINKS_MOST; i++) {
        ssize_t length = readlink(here, target, sizeof target - 1);
        if (length <= 0)
            break;
        target[length] = '\0';
        const char *slash = target[0] == '/' ? NULL : strrchr(here, '/');
        char *next = NULL;
        if (asprintf(&next, "%.*s%s", slash ? (int)(slash - here) + 1 : 0, here, target) < 0)
            next = NULL;
        free(here);
        here = next;
    }
    return here;
}

static bool visit_part(const char *part, size_t length, file_part *visit, void *argument)
{
    char path[PATH_MAX];
    struct stat about;
    snprintf(path, sizeof path, "%.*s", (int)length, part);
    return stat(path, &about) == 0 && S_ISREG(about.st_mode) && visit(argument, path);
}

bool file_parts(const char *text, const char *between, file_part *visit, void *argument)
{
    if (strlen(text) >= PATH_MAX)
        return false;
    for (const char *from = text; *from; from++) {
        if (from > text && !strchr(between, from[-1]))
            continue;
        for (const char *to = from + 1; to[-1]; to++)
            if ((!*to || strchr(between, *to)) &&
                visit_part(from, (size_t)(to - from), visit, argument))
                return true;
    }
    return false;
}
