/* The settings of a process: the visible cards, the virtual devices, and the functions that the
 * frameworks' readers share. */
#include "sim/tenants/process.h"

#include <ctype.h>

#include "allocators/options.h"

const char *process_exception_name(enum process_exception exception)
{
    static const char *const names[] = {
        [PROCESS_NO_EXCEPTION] = "",
        [PROCESS_RUNTIME_ERROR] = "RuntimeError",
        [PROCESS_VALUE_ERROR] = "ValueError",
        [PROCESS_INVALID_ARGUMENT] = "InvalidArgumentError",
        [PROCESS_UNKNOWN_ERROR] = "UnknownError",
    };
    return names[exception];
}

void process_warnings(const struct process *process, char *text, size_t room)
{
    size_t length = 0;
    text[0] = '\0';
    for (size_t i = 0; i < process->warning_count && length + 1 < room; i++) {
        int more =
            snprintf(text + length, room - length, "%s%s", i ? "; " : "", process->warnings[i]);
        length += more > 0 ? (size_t)more : 0;
    }
}

static bool is_variable(const struct process_line *line)
{
    return isupper((unsigned char)line->key[0]);
}

const char *process_variable(const struct process_reading *self, const char *name)
{
    for (size_t i = self->line_count; i-- > 0;) /* the last one counts, as in a shell */
        if (!strcmp(self->lines[i].key, name))
            return self->lines[i].value;
    return NULL;
}

void process_warn(struct process_reading *self, const char *format, ...)
{
    struct process *process = self->process;
    if (process->warning_count == PROCESS_WARNINGS)
        return;
    AR_PRINT(process->warnings[process->warning_count++], sizeof process->warnings[0], format);
}

enum ar_status process_raise(struct process_reading *self, const struct process_line *line,
                             enum process_exception exception, const char *format, ...)
{
    char text[512];
    AR_PRINT(text, sizeof text, format);
    self->process->exception = exception;
    self->process->line = line ? line->line : 0;
    return ar_error_set(self->error, AR_NEGATIVE, "%s: %s", process_exception_name(exception),
                        text);
}

enum ar_status process_bad_line(struct process_reading *self, const struct process_line *line,
                                const char *what)
{
    self->process->line = line->line;
    return ar_invalid(self->error, "line %u: \"%s = %s\": %s", line->line, line->key, line->value,
                      what);
}

enum ar_status process_add_pool(struct process_reading *self, uint32_t visible_card,
                                struct process_pool **pool)
{
    struct process *process = self->process;
    if (process->pool_count == PROCESS_POOLS)
        return ar_invalid(self->error,
                          "a process has more than %d pools; use fewer logical devices",
                          PROCESS_POOLS);
    *pool = &process->pools[process->pool_count++];
    **pool = (struct process_pool){
        .card = self->visible[visible_card],
        .limit_bytes = UINT64_MAX,
    };
    return AR_OK;
}

bool process_read_cards(const struct process_reading *self, const char **text, size_t *first,
                        size_t *last)
{
    char *end;
    if (!strncmp(*text, "all", 3) && (!(*text)[3] || (*text)[3] == ' ')) {
        *first = 0;
        *last = self->visible_count - 1;
        *text += 3;
    } else {
        if (!isdigit((unsigned char)**text))
            return false;
        *first = *last = (size_t)strtoull(*text, &end, 10);
        if (*end && *end != ' ')
            return false;
        *text = end;
    }
    *text += strspn(*text, " ");
    return true;
}

bool process_read_number(const char *text, double *number)
{
    char *end;
    if (!*text || isspace((unsigned char)*text))
        return false;
    *number = strtod(text, &end);
    return !*end;
}

bool process_read_bool(const char *text, bool *value)
{
    *value = !strcmp(text, "true") || !strcmp(text, "True") || !strcmp(text, "1");
    return *value || !strcmp(text, "false") || !strcmp(text, "False") || !strcmp(text, "0");
}

/* A variable that no framework reads has no effect and is probably a typing error. */
static void warn_of_unknown_variables(struct process_reading *self)
{
    static const char *const known[] = {
        "CUDA_VISIBLE_DEVICES",
        "TF_FORCE_GPU_ALLOW_GROWTH",
        "TF_GPU_ALLOCATOR",
        "TF_DEVICE_MIN_SYS_MEMORY_IN_MB",
        "TF_ENABLE_GPU_GARBAGE_COLLECTION",
        "TF_GPU_HOST_MEM_LIMIT_IN_MB",
        "TF_BFC_MEMORY_DUMP",
        "TF_FORCE_UNIFIED_MEMORY",
        "TF_DETERMINISTIC_ALLOCATOR",
        "TF_CUDA_MALLOC_ASYNC_SUPPORTED_PREALLOC",
        "XLA_PYTHON_CLIENT_PREALLOCATE",
        "XLA_CLIENT_MEM_FRACTION",
        "XLA_PYTHON_CLIENT_MEM_FRACTION",
        "XLA_PYTHON_CLIENT_ALLOCATOR",
        "XLA_PYTHON_CLIENT_COLLECTIVE_MEM_SIZE_MB",
        "PYTORCH_ALLOC_CONF",
        "PYTORCH_CUDA_ALLOC_CONF",
        "PYTORCH_NO_CUDA_MEMORY_CACHING",
    };
    const size_t count = AR_COUNT(known);
    for (size_t i = 0; i < self->line_count; i++) {
        const char *key = self->lines[i].key;
        bool found = !is_variable(&self->lines[i]);
        for (size_t k = 0; k < count && !found; k++)
            found = !strcmp(key, known[k]);
        const char *near = found ? NULL : ar_nearest_name(key, known, count);
        if (!found)
            process_warn(self, "the variable %s is not known and has no effect%s%s%s", key,
                         near ? " (did you mean " : "", near ? near : "", near ? "?)" : "");
    }
}

/* CUDA_VISIBLE_DEVICES is a list of the machine's card numbers. The first invalid entry ends it.
 * Absent: all cards. */
static enum ar_status see_cards(struct process_reading *self)
{
    const char *list = process_variable(self, "CUDA_VISIBLE_DEVICES");
    if (!list) {
        for (size_t i = 0; i < self->card_count; i++)
            self->visible[self->visible_count++] = (uint32_t)i;
        return AR_OK;
    }
    while (*list && self->visible_count < PROCESS_CARDS) {
        char *end;
        unsigned long long card = strtoull(list, &end, 10);
        if (!isdigit((unsigned char)*list) || card >= self->card_count || (*end && *end != ','))
            break;
        for (size_t i = 0; i < self->visible_count; i++)
            if (self->visible[i] == card)
                return ar_invalid(self->error,
                                  "CUDA_VISIBLE_DEVICES names card %llu twice; the driver then "
                                  "hides all cards from the process",
                                  card);
        self->visible[self->visible_count++] = (uint32_t)card;
        list = *end ? end + 1 : end;
    }
    if (!self->visible_count)
        return ar_invalid(self->error,
                          "CUDA_VISIBLE_DEVICES=%s selects none of the %zu cards of the machine",
                          process_variable(self, "CUDA_VISIBLE_DEVICES"), self->card_count);
    return AR_OK;
}

enum ar_status process_configure(const struct process_card *cards, size_t card_count,
                                 const struct process_line *lines, size_t line_count,
                                 struct process *process, struct ar_error *error)
{
    static const struct {
        const char *name;
        enum ar_status (*run)(struct process_reading *self);
    } frameworks[] = {
        {"tensorflow", process_tensorflow}, {"jax", process_jax}, {"torch", process_torch}};
    struct process_reading self = {
        .cards = cards,
        .card_count = card_count,
        .lines = lines,
        .line_count = line_count,
        .process = process,
        .error = error,
    };
    memset(process, 0, sizeof *process);
    if (!card_count || card_count > PROCESS_CARDS)
        return ar_invalid(error, "a machine has 1 to %d cards", PROCESS_CARDS);
    size_t at = 0;
    while (at < line_count && is_variable(&lines[at]))
        at++;
    if (at == line_count || strcmp(lines[at].key, "framework") != 0)
        return ar_invalid(error,
                          "the first line of a process is framework = tensorflow, jax or torch");
    warn_of_unknown_variables(&self);
    AR_TRY(see_cards(&self));
    for (size_t i = 0; i < AR_COUNT(frameworks); i++)
        if (!strcmp(lines[at].value, frameworks[i].name)) {
            enum ar_status status = frameworks[i].run(&self);
            process->pool_count = status ? 0 : process->pool_count;
            return status;
        }
    return process_bad_line(&self, &lines[at], "the frameworks are tensorflow, jax and torch");
}

/* ---- virtual devices ------------------------------------------------------------------------
 *
 * The checks, in this order:
 *
 * 1. There are at most as many lists as usable GPUs; GPUs without a list are not used.
 * 2. Priorities are given for all virtual devices of all GPUs or for none. The same holds for
 *    ordinals.
 *
 * Source: tensorflow, gpu_device.cc (VerifyVirtualDeviceSettings). */

static const char *const keys[VIRTUAL_KEYS] = {
    [VIRTUAL_LIMITS] = "virtual_devices",
    [VIRTUAL_PRIORITIES] = "virtual_device_priorities",
    [VIRTUAL_ORDINALS] = "virtual_device_ordinals",
};

static enum ar_status read_lists(struct process_virtual *self, enum virtual_key key,
                                 struct process_reading *reading, const struct process_line *line)
{
    const char *at = line->value;
    size_t gpu = 0, *count = self->count[key];
    memset(count, 0, sizeof self->count[key]);
    while (*at) {
        char *end = NULL;
        if (*at == '/') {
            if (++gpu == PROCESS_CARDS)
                return process_bad_line(reading, line, "there are lists of more than 16 GPUs");
            at++;
        } else {
            long long number = strtoll(at, &end, 10);
            bool limit = key == VIRTUAL_LIMITS;
            if (end == at || (*end && *end != ' ' && *end != '/') || (limit && number <= 0) ||
                number >= 1 << 30 || count[gpu] == VIRTUAL_MOST)
                return process_bad_line(reading, line,
                                        limit ? "write MiB from 1 on with spaces between, at most "
                                                "16 for each GPU, and / between GPUs"
                                              : "write numbers with spaces between, at most 16 for "
                                                "each GPU, and / between GPUs");
            if (limit)
                self->mib[gpu][count[gpu]] = (uint64_t)number;
            count[gpu]++;
            at = end;
        }
        at += strspn(at, " ");
    }
    self->gpu_count[key] = gpu + 1;
    return AR_OK;
}

enum ar_status process_virtual_line(struct process_virtual *self, struct process_reading *reading,
                                    const struct process_line *line, bool *taken)
{
    *taken = false;
    for (size_t key = 0; key < VIRTUAL_KEYS; key++)
        if (!strcmp(line->key, keys[key])) {
            *taken = true;
            return read_lists(self, (enum virtual_key)key, reading, line);
        }
    return AR_OK;
}

enum ar_status process_virtual_check(const struct process_virtual *self,
                                     struct process_reading *reading,
                                     const struct process_line *line, size_t gpu_count)
{
    if (self->gpu_count[VIRTUAL_LIMITS] > gpu_count)
        return process_raise(reading, line, PROCESS_UNKNOWN_ERROR,
                             "Not enough GPUs to create virtual devices: %zu lists, and %zu to use",
                             self->gpu_count[VIRTUAL_LIMITS], gpu_count);
    for (size_t key = VIRTUAL_PRIORITIES; key < VIRTUAL_KEYS; key++)
        for (size_t gpu = 0; gpu < PROCESS_CARDS && self->gpu_count[key]; gpu++)
            if (self->count[key][gpu] != self->count[VIRTUAL_LIMITS][gpu])
                return process_raise(reading, line, PROCESS_INVALID_ARGUMENT,
                                     "%s: GPU %zu has %zu, and %zu memory limits; give one for "
                                     "each virtual device, or none at all",
                                     keys[key], gpu, self->count[key][gpu],
                                     self->count[VIRTUAL_LIMITS][gpu]);
    return AR_OK;
}
