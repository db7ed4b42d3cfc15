#include "workloads/io/fields.h"
#include "workloads/record/recording.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

#include "allocators/base/array.h"

#define PATH_ROOM 4096

/* ---- files ---------------------------------------------------------------------------------- */

/* Whether a mapped file is a spool of this layout; counts its records. */
static bool is_spool(struct spool_file *file)
{
    if (file->bytes < SPOOL_HEAD_BYTES ||
        memcmp(file->head->magic, SPOOL_MAGIC, sizeof file->head->magic) != 0)
        return false;
    size_t room = (file->bytes - SPOOL_HEAD_BYTES) / sizeof *file->records;
    file->records =
        (const struct spool_record *)(const void *)((const char *)file->head + SPOOL_HEAD_BYTES);
    while (file->count < room && file->records[file->count].kind != SPOOL_NONE)
        file->count++;
    return true;
}

static enum ar_status add_file(struct spools *spools, const char *path, struct ar_error *error)
{
    AR_TRY_MEMORY(ar_array_make_room(&spools->files, spools->file_count, &spools->file_capacity,
                                     sizeof *spools->files),
                  error, "a recording");
    struct stat about;
    int descriptor = open(path, O_RDONLY | O_CLOEXEC);
    if (descriptor < 0 || fstat(descriptor, &about) != 0) {
        int why = errno;
        if (descriptor >= 0)
            close(descriptor);
        return ar_error_set(error, AR_IO, "%s: cannot be read: %s", path, strerror(why));
    }
    struct spool_file file = {.bytes = (size_t)about.st_size};
    void *mapped =
        file.bytes ? mmap(NULL, file.bytes, PROT_READ, MAP_SHARED, descriptor, 0) : MAP_FAILED;
    close(descriptor);
    spools->empty += file.bytes < SPOOL_HEAD_BYTES; /* or the thread was killed when it began */
    if (mapped == MAP_FAILED)
        return AR_OK;
    file.head = mapped;
    if (is_spool(&file))
        spools->files[spools->file_count++] = file;
    else
        munmap(mapped, file.bytes);
    return AR_OK;
}

static void add_why(struct spools *spools, const char *path)
{
    FILE *file = fopen(path, "re");
    if (!file)
        return;
    spools->unrecorded++;
    if (!spools->why[0]) {
        size_t length = fread(spools->why, 1, sizeof spools->why - 1, file);
        spools->why[length] = '\0';
    }
    fclose(file);
}

static enum ar_status read_folder(struct spools *spools, const char *folder, struct ar_error *error)
{
    DIR *entries = opendir(folder);
    if (!entries)
        return ar_error_set(error, AR_IO, "%s: cannot be read: %s", folder, strerror(errno));
    enum ar_status status = AR_OK;
    struct dirent *entry;
    while (!status && (entry = readdir(entries))) {
        char path[PATH_ROOM];
        snprintf(path, sizeof path, "%s/%s", folder, entry->d_name);
        if (field_ends_with(entry->d_name, SPOOL_WHY_END))
            add_why(spools, path);
        else if (field_ends_with(entry->d_name, SPOOL_FILE_END))
            status = add_file(spools, path, error);
    }
    closedir(entries);
    return status;
}

/* ---- order ---------------------------------------------------------------------------------- */

static uint64_t first_time(const struct spool_file *file)
{
    return file->count ? file->records[0].time_ns : UINT64_MAX;
}

static int by_process(const void *left, const void *right)
{
    const struct spool_file *a = left, *b = right;
    AR_ORDER(a->head->process_started_ns, b->head->process_started_ns);
    AR_ORDER((uint64_t)a->head->process, (uint64_t)b->head->process);
    AR_ORDER(first_time(a), first_time(b));
    AR_ORDER((uint64_t)a->head->thread, (uint64_t)b->head->thread);
    return 0;
}

static int by_time(const void *left, const void *right)
{
    const struct spool_place *a = left, *b = right;
    AR_ORDER(a->time_ns, b->time_ns);
    AR_ORDER(a->file, b->file);
    AR_ORDER(a->index, b->index);
    return 0;
}

static int by_call(const void *left, const void *right)
{
    const struct spool_kernel *a = left, *b = right;
    AR_ORDER(a->process, b->process);
    AR_ORDER(a->correlation, b->correlation);
    AR_ORDER(a->start_ns, b->start_ns);
    return 0;
}

/* Sets ordinals of processes and threads. A thread with times of kernels only is not counted. */
static void number_files(struct spools *spools)
{
    uint32_t thread = 0;
    if (spools->file_count)
        qsort(spools->files, spools->file_count, sizeof *spools->files, by_process);
    for (size_t i = 0; i < spools->file_count; i++) {
        struct spool_file *file = &spools->files[i];
        const struct spool_file *before = i ? file - 1 : NULL;
        bool same = before && before->head->process_started_ns == file->head->process_started_ns &&
                    before->head->process == file->head->process;
        if (!same) {
            spools->process_count++;
            thread = 0;
        }
        bool calls = false;
        for (size_t j = 0; j < file->count && !calls; j++)
            calls = file->records[j].kind != SPOOL_KERNEL;
        file->process = spools->process_count - 1;
        file->thread = thread;
        thread += calls;
        spools->thread_count += calls;
        spools->lost += file->head->lost;
    }
}

static enum ar_status order_records(struct spools *spools, struct ar_error *error)
{
    size_t total = 0, kernels = 0;
    for (size_t i = 0; i < spools->file_count; i++) {
        total += spools->files[i].count;
        for (size_t j = 0; j < spools->files[i].count; j++)
            kernels += spools->files[i].records[j].kind == SPOOL_KERNEL;
    }
    spools->order = malloc((total - kernels + 1) * sizeof *spools->order);
    spools->kernels = malloc((kernels + 1) * sizeof *spools->kernels);
    AR_TRY_MEMORY(spools->order && spools->kernels, error, "a recording");
    for (size_t i = 0; i < spools->file_count; i++)
        for (size_t j = 0; j < spools->files[i].count; j++) {
            const struct spool_file *file = &spools->files[i];
            const struct spool_record *record = &file->records[j];
            if (record->kind == SPOOL_KERNEL)
                spools->kernels[spools->kernel_count++] =
                    (struct spool_kernel){.process = file->process,
                                          .correlation = record->correlation,
                                          .start_ns = record->other,
                                          .duration_ns = record->bytes};
            else
                spools->order[spools->order_count++] = (struct spool_place){
                    .time_ns = record->time_ns, .file = (uint32_t)i, .index = (uint32_t)j};
        }
    qsort(spools->order, spools->order_count, sizeof *spools->order, by_time);
    qsort(spools->kernels, spools->kernel_count, sizeof *spools->kernels, by_call);
    return AR_OK;
}

enum ar_status spools_open(const char *folder, struct spools *out, struct ar_error *error)
{
    *out = (struct spools){0};
    AR_TRY(read_folder(out, folder, error));
    number_files(out);
    return order_records(out, error);
}

void spools_close(struct spools *spools)
{
    for (size_t i = 0; i < spools->file_count; i++)
        munmap((void *)(uintptr_t)spools->files[i].head, spools->files[i].bytes);
    free(spools->files);
    free(spools->order);
    free(spools->kernels);
    *spools = (struct spools){0};
}

struct spool_kernel *spools_kernels_of(const struct spools *spools, uint32_t process,
                                       uint32_t correlation, size_t *count)
{
    const struct spool_kernel key = {.process = process, .correlation = correlation};
    size_t low = 0, high = spools->kernel_count;
    while (low < high) {
        size_t middle = low + (high - low) / 2;
        if (by_call(&spools->kernels[middle], &key) < 0)
            low = middle + 1;
        else
            high = middle;
    }
    *count = 0;
    while (low + *count < spools->kernel_count &&
           spools->kernels[low + *count].process == process &&
           spools->kernels[low + *count].correlation == correlation)
        ++*count;
    return spools->kernels + low;
}

void spools_remove(const char *folder)
{
    DIR *entries = opendir(folder);
    struct dirent *entry;
    while (entries && (entry = readdir(entries))) {
        char path[PATH_ROOM];
        snprintf(path, sizeof path, "%s/%s", folder, entry->d_name);
        if (field_ends_with(entry->d_name, SPOOL_WHY_END) ||
            field_ends_with(entry->d_name, SPOOL_FILE_END))
            (void)unlink(path);
    }
    if (entries)
        closedir(entries);
    (void)rmdir(folder);
}
