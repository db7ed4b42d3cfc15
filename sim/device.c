/* Devices by name: what a spec names is opened here. */
#include "sim/device.h"

#define KINDS_MOST 16

const char *ar_device_call_name(enum ar_device_call call)
{
    static const char *const names[] = {
#define X(name, text) #name,
        AR_DEVICE_CALLS(X)
#undef X
    };
    return (unsigned)call < AR_DEVICE_CALL_COUNT ? names[call] : "unknown";
}

void ar_device_count(struct ar_device *self, enum ar_device_call call, uint64_t bytes, uint64_t ns,
                     uint64_t waited_ns, bool refused)
{
    struct ar_device_counters *counters = &self->counters;
    counters->calls[call]++;
    counters->call_ns[call] += ns;
    counters->call_bytes[call] += refused ? 0 : bytes;
    counters->driver_ns += ns;
    counters->stall_ns += waited_ns;
    counters->refused += refused;
    if (self->observer.call)
        self->observer.call(self->observer.argument, call, bytes, ns, waited_ns, refused);
}

static enum ar_status unknown(const char *name, struct ar_error *error)
{
    const char *names[KINDS_MOST];
    char all[160] = "";
    size_t count = 0;
    for (; count < KINDS_MOST && device_kinds[count]; count++) {
        names[count] = device_kinds[count]->name;
        size_t used = strlen(all);
        snprintf(all + used, sizeof all - used, "%s%s",
                 !count                    ? ""
                 : device_kinds[count + 1] ? ", "
                                           : " and ",
                 names[count]);
    }
    const char *near = ar_nearest_name(name, names, count);
    return ar_invalid(error,
                      "there is no device \"%s\"%s%s%s. There are %s; a card is written "
                      "sim:profile=NAME (`list devices`), a capacity sim:capacity=24GiB",
                      name, near ? " (did you mean \"" : "", near ? near : "", near ? "\"?)" : "",
                      all);
}

static const struct ar_device_kind *find(const struct ar_device_kind *const *kinds,
                                         const char *name)
{
    while (*kinds && strcmp((*kinds)->name, name) != 0)
        kinds++;
    return *kinds;
}

enum ar_status ar_device_open(const struct ar_spec *spec, struct ar_device **out,
                              struct ar_error *error)
{
    if (spec->link_count != 1)
        return ar_invalid(error,
                          "device \"%s\": a device takes no decorators; write one name, as in sim",
                          spec->text);
    const struct ar_spec_link *link = &spec->links[0];
    const struct ar_device_kind *kind = find(device_kinds, link->name);
    if (!kind && spec->catalog)
        kind = find(spec->catalog->devices, link->name);
    return kind ? kind->open(link, out, error) : unknown(link->name, error);
}

enum ar_status ar_device_open_text(const char *text, struct ar_device **out, struct ar_error *error)
{
    AR_CLOSED(ar_spec_close) struct ar_spec spec = {0};
    AR_TRY(ar_spec_parse(text, &spec, error));
    return ar_device_open(&spec, out, error);
}
