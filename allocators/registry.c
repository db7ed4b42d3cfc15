/* The steps of registry_create:
 * 1. look up every link, read its options and check them;
 * 2. from the outermost decorator inwards, open the memory of those that have one;
 * 3. make the policy with the innermost memory; if it is from a shared object, with a guard;
 * 4. from the innermost decorator outwards, wrap each around the result.
 * A step that fails undoes the steps before it. */
#include <dlfcn.h>
#include <errno.h>
#include <fenv.h>
#include <langinfo.h>
#include <unistd.h>

#include "allocators/registry.h"

#define POLICY(name)    extern const struct ar_policy_ops name;
#define DECORATOR(name) extern const struct decorator_ops name;
#include "allocators/policies.def"
#undef POLICY
#undef DECORATOR

/* Around a policy of a shared object; no spec names it. */
extern const struct decorator_ops guard_decorator;

static const struct ar_policy_ops *const policies[] = {
#define POLICY(name) &name,
#define DECORATOR(name)
#include "allocators/policies.def"
#undef POLICY
#undef DECORATOR
};

static const struct decorator_ops *const decorators[] = {
#define POLICY(name)
#define DECORATOR(name) &name,
#include "allocators/policies.def"
#undef POLICY
#undef DECORATOR
};

/* A link of a spec: a policy or a decorator, and its options. */
struct part {
    const struct ar_policy_ops *policy;
    const struct decorator_ops *decorator;
    void *values;
    bool loaded; /* from a shared object */
};

const struct ar_policy_ops *registry_policy(size_t index)
{
    return index < AR_COUNT(policies) ? policies[index] : NULL;
}

const struct decorator_ops *registry_decorator(size_t index)
{
    return index < AR_COUNT(decorators) ? decorators[index] : NULL;
}

const struct ar_policy_ops *registry_find(const char *name)
{
    for (size_t i = 0; i < AR_COUNT(policies); i++)
        if (strcmp(policies[i]->name, name) == 0)
            return policies[i];
    return NULL;
}

static const struct decorator_ops *find_decorator(const char *name)
{
    for (size_t i = 0; i < AR_COUNT(decorators); i++)
        if (strcmp(decorators[i]->name, name) == 0)
            return decorators[i];
    return NULL;
}

static bool names_object(const char *name)
{
    size_t length = strlen(name);
    return strchr(name, '/') || (length > 3 && strcmp(name + length - 3, ".so") == 0);
}

bool registry_names_object(const struct ar_spec *spec)
{
    return spec->link_count && names_object(spec->links[spec->link_count - 1].name);
}

static enum ar_status unknown_policy(const char *name, struct ar_error *error)
{
    if (find_decorator(name))
        return ar_invalid(error,
                          "%s is a decorator and needs a policy after it; write %s+NAME, with "
                          "options %s(KEY=VALUE)+NAME",
                          name, name, name);
    if (strchr(name, ','))
        return ar_invalid(
            error,
            "there is no policy \"%.60s\"; give each policy its own -p, and options after a colon",
            name);
    const char *names[AR_COUNT(policies)];
    for (size_t i = 0; i < AR_COUNT(policies); i++)
        names[i] = policies[i]->name;
    return ar_name_unknown("there is no policy", name, names, AR_COUNT(policies),
                           "\"allocrig list policies\" lists them, and a shared object needs a "
                           "slash or .so in its name",
                           error);
}

static enum ar_status unknown_decorator(const char *name, struct ar_error *error)
{
    if (registry_find(name) || names_object(name))
        return ar_invalid(
            error, "%.60s is a policy, and only decorators may be before a plus sign; put it last",
            name);
    const char *names[AR_COUNT(decorators)];
    for (size_t i = 0; i < AR_COUNT(decorators); i++)
        names[i] = decorators[i]->name;
    const char *near = ar_nearest_name(name, names, AR_COUNT(decorators));
    return ar_invalid(error, "there is no decorator \"%.60s\"; did you mean \"%s\"?", name,
                      near ? near : decorators[0]->name);
}

/* Loads a policy from a shared object, which stays loaded until the program ends: its ops and code
 * may be in use anywhere. A second load returns the same ops. */
static enum ar_status load_object(const char *path, const struct ar_policy_ops **out,
                                  struct ar_error *error)
{
    /* Without a slash, dlopen searches the folders of the system and not this one. */
    char here[4096];
    const char *file = path;
    if (!strchr(path, '/')) {
        if (snprintf(here, sizeof here, "./%s", path) >= (int)sizeof here)
            return ar_invalid(error, "the file name of the policy is too long");
        file = here;
    }
    if (access(file, R_OK) != 0)
        return ar_invalid(error, "the policy \"%.200s\" cannot be loaded: %s", path,
                          strerror(errno));
    void *object = dlopen(file, RTLD_NOW | RTLD_LOCAL);
    if (!object) {
        const char *why = dlerror();
        return ar_invalid(
            error, "the policy \"%.200s\" cannot be loaded (%.300s); %s", path, why,
            strstr(why, "undefined symbol")
                ? "the program offers only names that begin with ar_: add the source of this one "
                  "to the shared object"
                : "give the path of a shared object, built with -shared -fPIC");
    }
    void *symbol = dlsym(object, AR_POLICY_ENTRY_NAME);
    if (!symbol)
        return ar_invalid(error,
                          "\"%.200s\" is not a policy: it has no function %s; "
                          "allocators/README.md shows the one to write",
                          path, AR_POLICY_ENTRY_NAME);
    /* ISO C has no conversion from a data pointer to a function pointer; POSIX guarantees that the
     * bytes are the same. */
    ar_policy_entry *entry;
    memcpy(&entry, &symbol, sizeof entry);
    const struct ar_policy_ops *ops = entry();
    if (!ops)
        return ar_invalid(error, "%s in \"%.200s\" returned NULL", AR_POLICY_ENTRY_NAME, path);
    AR_TRY(ar_error_prefix(error, ar_policy_check(ops, error), "in \"%.200s\"", path));
    *out = ops;
    return AR_OK;
}

/* A policy of the catalog of the spec, or NULL. */
static const struct ar_policy_ops *find_registered(const struct ar_spec *spec, const char *name)
{
    const struct ar_policy_ops *const *at = spec->catalog ? spec->catalog->policies : NULL;
    while (at && *at && strcmp((*at)->name, name) != 0)
        at++;
    return at ? *at : NULL;
}

static enum ar_status find_policy(const struct ar_spec *spec, const char *name, struct part *part,
                                  struct ar_error *error)
{
    part->policy = registry_find(name);
    if (!part->policy)
        part->policy = find_registered(spec, name);
    if (part->policy)
        return ar_policy_check(part->policy, error);
    part->loaded = names_object(name);
    return part->loaded ? load_object(name, &part->policy, error) : unknown_policy(name, error);
}

static enum ar_status part_read(struct part *part, const struct ar_spec_link *link,
                                const struct ar_option *options, size_t values_bytes,
                                const char *kind, const char *name, struct ar_error *error)
{
    char owner[100];
    snprintf(owner, sizeof owner, "%s %.80s", kind, name);
    part->values = calloc(1, values_bytes + 1);
    AR_TRY_MEMORY(part->values, error, "the options of %s", owner);
    return ar_options_read(options, link, owner, part->values, error);
}

static void parts_close(struct part *parts, size_t count)
{
    for (size_t i = 0; parts && i < count; i++)
        free(parts[i].values);
    free(parts);
}

/* Step 1. On success the caller calls parts_close. */
static enum ar_status parts_open(const struct ar_spec *spec, struct part **out,
                                 struct ar_error *error)
{
    size_t count = spec->link_count;
    struct part *parts = calloc(count, sizeof *parts);
    AR_TRY_MEMORY(parts, error, "the spec \"%.60s\"", spec->text);
    enum ar_status status = AR_OK;
    for (size_t i = 0; i < count && !status; i++) {
        const struct ar_spec_link *link = &spec->links[i];
        if (i + 1 < count) {
            const struct decorator_ops *ops = find_decorator(link->name);
            parts[i].decorator = ops;
            status = ops ? part_read(&parts[i], link, ops->options, ops->values_bytes, "decorator",
                                     ops->name, error)
                         : unknown_decorator(link->name, error);
        } else {
            status = find_policy(spec, link->name, &parts[i], error);
            AR_THEN(status, part_read(&parts[i], link, parts[i].policy->options,
                                      parts[i].policy->values_bytes, "policy",
                                      parts[i].policy->name, error));
        }
    }
    if (status)
        parts_close(parts, count);
    else
        *out = parts;
    return status;
}

enum ar_status registry_lookup(const struct ar_spec *spec, const struct ar_policy_ops **out,
                               struct ar_error *error)
{
    struct part *parts = NULL;
    AR_TRY(parts_open(spec, &parts, error));
    *out = parts[spec->link_count - 1].policy;
    parts_close(parts, spec->link_count);
    return AR_OK;
}

unsigned registry_process_state(void)
{
    return (unsigned)fegetround() << 8 | (unsigned char)nl_langinfo(RADIXCHAR)[0];
}

enum ar_status registry_process_check(unsigned state, const char *hook, struct ar_error *error)
{
    unsigned now = registry_process_state();
    if (now == state)
        return AR_OK;
    (void)fesetround((int)(state >> 8));
    return ar_error_set(error, AR_CORRUPT,
                        "%s changed %s of the process (%s), on which all figures depend", hook,
                        now >> 8 != state >> 8 ? "the rounding" : "the decimal point",
                        now >> 8 != state >> 8 ? "fesetround" : "setlocale");
}

/* Step 3. */
static enum ar_status make(const struct part *part, const struct ar_policy_context *context,
                           struct ar_policy **out, struct ar_error *error)
{
    const char *name = part->policy->name;
    *out = NULL;
    if (error)
        error->text[0] = '\0';
    unsigned state = registry_process_state();
    enum ar_status status = part->policy->create(context, part->values, out, error);
    struct ar_error changed;
    if (registry_process_check(state, "create", &changed)) {
        if (!status && *out && (*out)->ops && (*out)->ops->destroy)
            ar_policy_destroy(*out);
        *out = NULL;
        return ar_error_set(error, AR_CORRUPT, "policy %s: %s", name, changed.text);
    }
    if ((unsigned)status > AR_NEGATIVE)
        return ar_error_set(error, AR_CORRUPT,
                            "policy %s: create returned the status %u, which is none", name,
                            (unsigned)status);
    if (status && error && !error->text[0])
        return ar_error_set(error, status,
                            "policy %s: create returned %s without a sentence (ar_error_set)", name,
                            ar_status_name(status));
    if (!part->loaded || status)
        return status;
    if (!*out || !(*out)->ops)
        return ar_error_set(error, AR_CORRUPT, "policy %s: create returned OK and no instance",
                            name);
    struct ar_error why = {{0}};
    if (ar_policy_check((*out)->ops, &why))
        return ar_error_set(error, AR_CORRUPT, "policy %s: the ops of its instance: %s", name,
                            why.text);
    if (context->unguarded)
        return AR_OK;
    struct ar_policy *inner = *out;
    status = guard_decorator.wrap(context, part->values, inner, out, error);
    if (status)
        ar_policy_destroy(inner);
    return status;
}

/* Steps 2 to 4 from link `i` inwards. */
static enum ar_status build(struct part *parts, size_t i, const struct ar_policy_context *context,
                            struct ar_policy **out, struct ar_error *error)
{
    const struct decorator_ops *ops = parts[i].decorator;
    if (!ops)
        return make(&parts[i], context, out, error);
    const struct ar_policy_context *inner_context = context;
    if (ops->open)
        AR_TRY(ops->open(context, parts[i].values, &inner_context, error));
    struct ar_policy *inner = NULL;
    enum ar_status status = build(parts, i + 1, inner_context, &inner, error);
    if (!status) {
        status = ops->wrap(inner_context, parts[i].values, inner, out, error);
        if (status)
            ar_policy_destroy(inner);
    }
    if (status && ops->close)
        ops->close(inner_context);
    return status;
}

enum ar_status registry_create(const struct ar_spec *spec, const struct ar_policy_context *context,
                               struct ar_policy **out, struct ar_error *error)
{
    struct part *parts = NULL;
    AR_TRY(parts_open(spec, &parts, error));
    enum ar_status status = build(parts, 0, context, out, error);
    parts_close(parts, spec->link_count);
    return status;
}

enum ar_status registry_verdict(const struct ar_policy *policy, struct ar_error *error)
{
    const char *fault = guard_decorator.fault(policy);
    return fault ? ar_error_set(error, AR_CORRUPT, "policy %s", fault) : AR_OK;
}
