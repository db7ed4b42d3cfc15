/* Recordings of PyTorch's cache of pinned host memory on a real card, request by request: the
 * policy `torch-pinned` must serve each from the same block, with as many blocks made, released and
 * held. Each test is one recording in tests/golden/data/pinned. */
#include "tests/support/folder_tests.h"
#include "tests/support/policy_rig.h"
#include "tests/support/sim.h"
#include "tests/support/test.h"

#define FOLDER      "tests/golden/data/pinned"
#define BLOCKS_MOST 4096

struct recording {
    struct recorded_lines from;
    struct ar_device *device;
    struct policy_rig rig;
    struct ar_policy_block blocks[BLOCKS_MOST];
    uint64_t places[BLOCKS_MOST]; /* the address of the n-th block that was made */
    uint64_t first_address;
    bool reserve; /* addresses are compared too */
};

/* `= ORDINAL MADE RELEASED BYTES OFFSET`, after a request or (`-`) a release of the cache. */
static void compare(struct recording *self, uint64_t id)
{
    char event[512], ordinal[24], offset[24];
    uint64_t made, released, bytes;
    snprintf(event, sizeof event, "%s", self->from.line);
    assert_true(recorded_next(&self->from));
    if (sscanf(self->from.line, "= %23s %" SCNu64 " %" SCNu64 " %" SCNu64 " %23s", ordinal, &made,
               &released, &bytes, offset) != 5)
        fail_msg("%s: no row follows", event);
    if (policy_rig_figure(&self->rig, "num_host_alloc") != made ||
        policy_rig_figure(&self->rig, "num_host_free") != released ||
        policy_rig_figure(&self->rig, "allocated_bytes.current") != bytes)
        fail_msg("%s: %" PRIu64 " made, %" PRIu64 " released, %" PRIu64 " bytes; recorded: %s",
                 event, policy_rig_figure(&self->rig, "num_host_alloc"),
                 policy_rig_figure(&self->rig, "num_host_free"),
                 policy_rig_figure(&self->rig, "allocated_bytes.current"), self->from.line);
    if (ordinal[0] == '-')
        return;
    uint64_t address = self->blocks[id].address;
    uint64_t place = strtoull(ordinal, NULL, 10);
    assert_in_range(place, 0, made - 1);
    if (place == made - 1 && !self->places[place])
        self->places[place] = address;
    if (self->places[place] != address)
        fail_msg("%s: another block than number %s", event, ordinal);
    uint64_t moved = strtoull(offset, NULL, 10);
    if (self->reserve && moved < 24 * AR_MIB && address - self->first_address != moved)
        fail_msg("%s: offset %" PRIu64 ", recorded %s", event, address - self->first_address,
                 offset);
}

static void play(struct recording *self)
{
    uint64_t a = 0, b = 0;
    struct ar_device *device = self->device;
    (void)sscanf(self->from.line + 1, ",%" SCNu64 ",%" SCNu64, &a, &b);
    assert_true(a < BLOCKS_MOST);
    switch (self->from.line[0]) {
    case 'a':
        assert_int_equal(policy_rig_alloc(&self->rig, b, &self->blocks[a]), AR_OK);
        if (!a)
            self->first_address = self->blocks[0].address;
        compare(self, a);
        break;
    case 'f':
        assert_int_equal(policy_rig_free(&self->rig, &self->blocks[a]), AR_OK);
        break;
    case 'u':
        assert_int_equal(ar_policy_use(self->rig.policy, &self->blocks[a], (uint32_t)b), AR_OK);
        break;
    case 'k':
        device->ops->kernel(device, (uint32_t)a, b);
        break;
    case 's':
        device->ops->sync(device, UINT32_MAX);
        break;
    default:
        assert_string_equal(self->from.line, "c,space=pinned");
        assert_int_equal(ar_policy_trim(self->rig.policy, 0), AR_OK);
        compare(self, 0);
    }
}

static void check_recording(void **state)
{
    FREED struct recording *self = calloc(1, sizeof *self);
    struct ar_error error = {""};
    size_t events = 0;
    assert_non_null(self);
    recorded_open(&self->from, FOLDER, *state);
    assert_memory_equal(self->from.line, "spec ", 5);
    self->reserve = strstr(self->from.line, "reserve") != NULL;
    self->device = sim_test_open("sim");
    if (policy_rig_open(&self->rig, self->from.line + 5, self->device->pinned, 0) != AR_OK)
        fail_msg("%s", self->rig.error.text);
    for (; recorded_next(&self->from); events++)
        play(self);
    assert_true(events > 1000);
    if (ar_policy_validate(self->rig.policy, &error) != AR_OK)
        fail_msg("%s", error.text);
    assert_int_equal(policy_rig_close(&self->rig), 0);
    self->device->ops->close(self->device);
    gzclose(self->from.file);
}

int main(void)
{
    return folder_tests_run("pinned", FOLDER, check_recording);
}
