/* Runs a fuzz target over its committed corpus without a fuzzer, so that every build and every
 * test run replays what once broke. Usage: fuzz_x FOLDER_OR_FILE...
 * Prints one `ok` line per target, as tests/run.sh counts it; a crash is a failed test. */
#include <dirent.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

#include "tests/fuzz/target.h"

/* Returns the number of inputs replayed: 1, or 0 where the file cannot be read. */
static int replay_file(const char *path)
{
    FILE *file = fopen(path, "rb");
    if (!file) {
        printf("not ok cannot open %s\n", path);
        return 0;
    }
    size_t capacity = 1u << 20, bytes;
    uint8_t *data = malloc(capacity);
    if (!data) {
        fclose(file);
        return 0;
    }
    bytes = fread(data, 1, capacity, file);
    fclose(file);
    /* A copy of exactly that size, so that a sanitizer sees a read past its end. */
    uint8_t *exact = malloc(bytes ? bytes : 1);
    if (exact) {
        memcpy(exact, data, bytes);
        LLVMFuzzerTestOneInput(exact, bytes);
    }
    free(exact);
    free(data);
    return exact != NULL;
}

static int replay_folder(const char *path)
{
    struct dirent **entries = NULL;
    int count = scandir(path, &entries, NULL, alphasort), replayed = 0;
    for (int i = 0; i < count; i++) {
        char name[4096];
        if (entries[i]->d_name[0] != '.') {
            snprintf(name, sizeof name, "%s/%s", path, entries[i]->d_name);
            replayed += replay_file(name);
        }
        free(entries[i]);
    }
    free(entries);
    return replayed;
}

int main(int argc, char **argv)
{
    int replayed = 0;
    for (int i = 1; i < argc; i++) {
        struct stat info;
        if (stat(argv[i], &info) == 0)
            replayed += S_ISDIR(info.st_mode) ? replay_folder(argv[i]) : replay_file(argv[i]);
    }
    /* An empty corpus tests nothing. */
    printf("%s corpus of %d inputs\n", replayed > 0 ? "ok" : "not ok", replayed);
    return replayed > 0 ? 0 : 1;
}
