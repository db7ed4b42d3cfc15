/* Small trace files for tests. */
#include "tests/support/trace_rig.h"

#include <dirent.h>
#include <unistd.h>

#include "tests/support/test.h"
#include "workloads/formats/formats.h"

static void must(int holds, const char *what)
{
    if (!holds) {
        perror(what);
        abort();
    }
}

struct trace_rig trace_rig_open(void)
{
    struct trace_rig rig;
    const char *base = getenv("TMPDIR");
    (void)snprintf(rig.folder, sizeof rig.folder, "%.30s/allocrig-test-XXXXXX",
                   base && *base ? base : "/tmp");
    must(mkdtemp(rig.folder) != NULL, rig.folder);
    for (int i = 0; i < 4; i++) {
        size_t length = strlen(rig.folder);
        memcpy(rig.path[i], rig.folder, length);
        memcpy(rig.path[i] + length, (const char[]){'/', (char)('0' + i), 0}, 3);
    }
    return rig;
}

static size_t each_file(const struct trace_rig *rig, int remove_it)
{
    size_t count = 0;
    DIR *folder = opendir(rig->folder);
    must(folder != NULL, rig->folder);
    for (struct dirent *entry; (entry = readdir(folder));) {
        char path[512];
        if (entry->d_name[0] == '.')
            continue;
        count++;
        (void)snprintf(path, sizeof path, "%s/%s", rig->folder, entry->d_name);
        if (remove_it)
            (void)unlink(path);
    }
    closedir(folder);
    return count;
}

void trace_rig_close(struct trace_rig *rig)
{
    (void)each_file(rig, 1);
    (void)rmdir(rig->folder);
}

int trace_rig_setup(void **state)
{
    static struct trace_rig rig;
    rig = trace_rig_open();
    *state = &rig;
    return 0;
}

int trace_rig_teardown(void **state)
{
    trace_rig_close(*state);
    return 0;
}

size_t trace_rig_files(const struct trace_rig *rig)
{
    return each_file(rig, 0);
}

void trace_rig_write(const char *path, const void *bytes, size_t count)
{
    FILE *file = fopen(path, "wb");
    must(file != NULL, path);
    must(fwrite(bytes, 1, count, file) == count, path);
    must(fclose(file) == 0, path);
}

char *trace_rig_read(const char *path, size_t *count)
{
    FILE *file = fopen(path, "rb");
    must(file != NULL, path);
    must(fseek(file, 0, SEEK_END) == 0, path);
    long size = ftell(file);
    must(size >= 0 && fseek(file, 0, SEEK_SET) == 0, path);
    char *bytes = malloc((size_t)size + 1);
    must(bytes != NULL, path);
    *count = fread(bytes, 1, (size_t)size, file);
    must(*count == (size_t)size, path);
    bytes[*count] = 0;
    (void)fclose(file);
    return bytes;
}

struct trace_source *trace_rig_source(const char *path)
{
    struct trace_source *source = NULL;
    assert_ok(trace_open(path, &source, &test_error));
    return source;
}

enum ar_status trace_rig_text(struct trace_rig *rig, const char *text, struct trace_source **out,
                              struct ar_error *error)
{
    trace_rig_write(rig->path[0], text, strlen(text));
    return trace_open(rig->path[0], out, error);
}

char *trace_rig_print(struct trace_rig *rig, struct trace_source *source)
{
    const struct trace_write_options options = {.format = TRACE_FORMAT_TEXT};
    size_t count;
    if (trace_write(source, rig->path[3], &options, &test_error) != AR_OK) {
        (void)fprintf(stderr, "%s\n", test_error.text);
        abort();
    }
    return trace_rig_read(rig->path[3], &count);
}
