/* Profiles from files: read or refused with a sentence. What is read has a cost for every kind and
 * size, and is written as text that reads as the same. */
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "sim/sim_device/profile.h"
#include "tests/fuzz/target.h"

#define LINES_MOST 512u

/* Takes the text apart. */
static enum ar_status read_text(char *text, struct sim_profile *out, struct ar_error *error)
{
    const char *lines[LINES_MOST + 1];
    size_t count = 0;
    for (char *line = strsep(&text, "\n"); line && count < LINES_MOST; line = strsep(&text, "\n"))
        if (text || *line)
            lines[count++] = line;
    lines[count] = NULL;
    return sim_profile_read(lines, "input", out, error);
}

static void ask(struct sim_profile *profile)
{
    for (int kind = 0; kind < SIM_COST_COUNT; kind++)
        for (uint64_t bytes = 1; bytes < UINT64_C(1) << 60; bytes *= 3)
            for (int busy = 0; busy < 2; busy++)
                (void)sim_profile_cost(profile, (enum sim_cost)kind, bytes, busy);
    for (int op = 0; op < SIM_KERNEL_OP_COUNT; op++)
        for (uint64_t size = 1; size < UINT64_C(1) << 60; size *= 3)
            (void)sim_profile_kernel_op(profile, (enum sim_kernel_op)op, size);
}

static void write_and_read(const struct sim_profile *profile)
{
    static struct sim_profile again;
    struct ar_error error = {""};
    char *text = NULL;
    size_t length = 0;
    FILE *file = open_memstream(&text, &length);
    if (!file)
        abort();
    sim_profile_write(profile, file);
    fclose(file);
    if (read_text(text, &again, &error) != AR_OK || memcmp(profile, &again, sizeof again) != 0)
        abort();
    free(text);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t bytes)
{
    static struct sim_profile profile;
    struct ar_error error = {""};
    char *text = malloc(bytes + 1);
    if (!text)
        return 0;
    memcpy(text, data, bytes);
    text[bytes] = '\0';
    enum ar_status status = read_text(text, &profile, &error);
    if ((status == AR_OK) == (error.text[0] != '\0'))
        abort();
    if (status == AR_OK) {
        write_and_read(&profile);
        ask(&profile);
    }
    free(text);
    return 0;
}
