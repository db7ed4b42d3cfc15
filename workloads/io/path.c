/* Apart from file.c, whose libraries the plug-in does not need. */
#include <limits.h>
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
