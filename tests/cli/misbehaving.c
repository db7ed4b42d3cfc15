/* A policy that works until it is asked for its n-th block and then does harm to its process: what
 * runs of their own process must survive. Built as a shared object by test_isolate.sh. */
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

#include "tests/cli/on_skeleton.h"

extern const struct ar_policy_ops misbehaving_policy;

enum harm { HARM_NONE, HARM_CRASH, HARM_HANG, HARM_LEAVE, HARM_CUT };

struct misbehaving_values {
    struct skeleton_values inner;
    uint64_t harm, after;
};

static const struct ar_option misbehaving_options[] = {
    AR_POLICY_COMMON_OPTIONS,
    {"least", AR_OPTION_BYTES, offsetof(struct skeleton_values, least_bytes), "512", 1, 1073741824,
     NULL, "bytes of the smallest class"},
    {"harm", AR_OPTION_COUNT, offsetof(struct misbehaving_values, harm), "0", 0, HARM_CUT, NULL,
     "1: crash, 2: hang, 3: leave the process, 4: the same, with success"},
    {"after", AR_OPTION_COUNT, offsetof(struct misbehaving_values, after), "3", 0, 1000000, NULL,
     "requests that go well"},
    {0},
};

/* What is left until the harm, kept in the counter that the inner policy does not use. */
static enum ar_status misbehaving_create(const struct ar_policy_context *context,
                                         const void *values, struct ar_policy **out,
                                         struct ar_error *error)
{
    const struct misbehaving_values *given = values;
    enum ar_status status = skeleton_create(context, &given->inner, out, error);
    if (status)
        return status;
    struct skeleton *self = (struct skeleton *)*out;
    self->base.ops = &misbehaving_policy;
    self->counted.count.flushes = given->harm << 32 | given->after;
    return AR_OK;
}

static void do_harm(enum harm harm)
{
    if (harm == HARM_CRASH) {
        signal(SIGSEGV, SIG_DFL); /* also where a sanitizer would report it */
        raise(SIGSEGV);
    }
    const char *mark = harm == HARM_HANG ? getenv("MISBEHAVING_MARK") : NULL;
    if (mark)
        fclose(fopen(mark, "w")); /* tells a test that the process hangs now */
    while (harm == HARM_HANG)
        pause();
    if (harm != HARM_NONE)
        _exit(harm == HARM_LEAVE ? 7 : 0);
}

static enum ar_status misbehaving_alloc(struct ar_policy *base,
                                        const struct ar_policy_request *request,
                                        struct ar_policy_block *out)
{
    struct skeleton *self = (struct skeleton *)base;
    if (!(uint32_t)self->counted.count.flushes)
        do_harm((enum harm)(self->counted.count.flushes >> 32));
    else
        self->counted.count.flushes--;
    return skeleton_alloc(base, request, out);
}

const struct ar_policy_ops misbehaving_policy = {
    ON_SKELETON,
    .name = "misbehaving",
    .summary = "does harm to its process",
    .options = misbehaving_options,
    .values_bytes = sizeof(struct misbehaving_values),
    .create = misbehaving_create,
    .alloc = misbehaving_alloc,
};

const struct ar_policy_ops *allocrig_policy(void)
{
    return &misbehaving_policy;
}
