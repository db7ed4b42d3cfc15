#include "workloads/trace/kernel_op_keys.h"

enum key { KEY_OP, KEY_OUT, KEY_IN, KEY_SHAPE, KEY_TYPE, KEY_COUNT };
static const char *const key_names[KEY_COUNT] = {"op", "out", "in", "shape", "type"};

/* One key=value of a list; the value ends at the next comma. */
struct item {
    const char *text, *value;
    size_t key_bytes, value_bytes, bytes;
};

/* Reads the next item of the list. False at its end. */
static bool next_item(const char **list, struct item *item)
{
    const char *text = *list;
    if (!text || !*text)
        return false;
    size_t bytes = strcspn(text, ","), key_bytes = strcspn(text, "=,");
    bool has_value = key_bytes < bytes;
    *item = (struct item){
        .text = text,
        .bytes = bytes,
        .key_bytes = key_bytes,
        .value = text + key_bytes + has_value,
        .value_bytes = bytes - key_bytes - has_value,
    };
    *list = text + bytes + (text[bytes] == ',');
    return true;
}

static int key_of(const struct item *item)
{
    for (int key = 0; key < KEY_COUNT; key++)
        if (strlen(key_names[key]) == item->key_bytes &&
            memcmp(key_names[key], item->text, item->key_bytes) == 0)
            return key;
    return -1;
}

/* Decimal digits at `*at`, before `end`; below 2^60. */
static bool take_number(const char **at, const char *end, uint64_t *number)
{
    const char *first = *at;
    *number = 0;
    for (; *at < end && **at >= '0' && **at <= '9'; ++*at) {
        if (*number > (UINT64_C(1) << 60) / 10)
            return false;
        *number = *number * 10 + (uint64_t)(**at - '0');
    }
    return *at > first;
}

static bool take_reference(const char **at, const char *end, struct trace_reference *out)
{
    out->back = *at < end && **at == '~';
    *at += out->back;
    return take_number(at, end, &out->number) && (out->number || !out->back);
}

/* Values with a sign between: 4+~1 or 64x32. Returns their number; 0 if the list is invalid. */
static unsigned take_list(const struct item *item, char sign, unsigned most,
                          struct trace_reference *references, uint64_t *numbers)
{
    const char *at = item->value, *end = at + item->value_bytes;
    for (unsigned count = 0; count < most;) {
        if (references ? !take_reference(&at, end, &references[count])
                       : !take_number(&at, end, &numbers[count]))
            return 0;
        count++;
        if (at == end)
            return count;
        if (*at++ != sign)
            return 0;
    }
    return 0;
}

static bool take_name(const struct item *item, char out[TRACE_KERNEL_OP_NAME])
{
    if (!item->value_bytes || item->value_bytes >= TRACE_KERNEL_OP_NAME)
        return false;
    memcpy(out, item->value, item->value_bytes);
    out[item->value_bytes] = 0;
    return true;
}

static bool take_value(struct trace_kernel_op *out, enum key key, const struct item *item)
{
    switch (key) {
    case KEY_OP:
        return take_name(item, out->op);
    case KEY_TYPE:
        return take_name(item, out->type);
    case KEY_OUT:
        return take_list(item, '+', 1, &out->out, NULL) == 1;
    case KEY_IN:
        out->input_count = take_list(item, '+', TRACE_KERNEL_OP_INPUTS, out->in, NULL);
        return out->input_count > 0;
    default:
        out->dimension_count = take_list(item, 'x', TRACE_KERNEL_OP_DIMENSIONS, NULL, out->shape);
        return out->dimension_count > 0;
    }
}

enum ar_status trace_kernel_op_parse(const char *rest, struct trace_kernel_op *out,
                                     struct ar_error *error)
{
    static const char *const valid[KEY_COUNT] = {
        "a name of up to 15 letters", "a block's id, or ~N for the N-th request back from here",
        "up to four blocks with + between, as in 4+~1",
        "up to three numbers with x between, as in 64x32", "a name of up to 15 letters"};
    struct item item;
    bool given[KEY_COUNT] = {false};
    *out = (struct trace_kernel_op){.op = ""};
    while (next_item(&rest, &item)) {
        int key = key_of(&item);
        if (key < 0)
            continue;
        if (given[key])
            return ar_invalid(error, "the key \"%s\" is given twice", key_names[key]);
        given[key] = true;
        if (!take_value(out, (enum key)key, &item))
            return ar_invalid(error, "%.*s: must be %s", (int)(item.bytes < 80 ? item.bytes : 80),
                              item.text, valid[key]);
    }
    if (given[KEY_OP] && !given[KEY_OUT])
        return ar_invalid(error, "op=%s: it has no output; write out=ID", out->op);
    return AR_OK;
}

static size_t print_reference(char *text, size_t used, struct trace_reference reference)
{
    return used + (size_t)snprintf(text + used, TRACE_KERNEL_OP_TEXT - used, "%s%" PRIu64,
                                   reference.back ? "~" : "", reference.number);
}

void trace_kernel_op_print(const struct trace_kernel_op *kernel_op, char text[TRACE_KERNEL_OP_TEXT])
{
    size_t used = (size_t)snprintf(text, TRACE_KERNEL_OP_TEXT, "op=%s,out=", kernel_op->op);
    used = print_reference(text, used, kernel_op->out);
    for (unsigned i = 0; i < kernel_op->input_count; i++) {
        used += (size_t)snprintf(text + used, TRACE_KERNEL_OP_TEXT - used, "%s", i ? "+" : ",in=");
        used = print_reference(text, used, kernel_op->in[i]);
    }
    for (unsigned i = 0; i < kernel_op->dimension_count; i++)
        used += (size_t)snprintf(text + used, TRACE_KERNEL_OP_TEXT - used, "%s%" PRIu64,
                                 i ? "x" : ",shape=", kernel_op->shape[i]);
    if (kernel_op->type[0])
        (void)snprintf(text + used, TRACE_KERNEL_OP_TEXT - used, ",type=%s", kernel_op->type);
}

bool trace_kernel_op_id(struct trace_reference reference, uint64_t next_id, uint64_t *id)
{
    *id = reference.back ? next_id - reference.number : reference.number;
    return reference.back ? reference.number <= next_id : reference.number < next_id;
}

void trace_kernel_op_replace(const char *rest, const struct trace_kernel_op *kernel_op, char *text,
                             size_t room)
{
    struct item item;
    size_t used = 0;
    text[0] = 0;
    while (next_item(&rest, &item))
        if (key_of(&item) < 0)
            used += (size_t)snprintf(text + used, room - used, "%s%.*s", used ? "," : "",
                                     (int)item.bytes, item.text);
    if (!kernel_op)
        return;
    char printed[TRACE_KERNEL_OP_TEXT];
    trace_kernel_op_print(kernel_op, printed);
    (void)snprintf(text + used, room - used, "%s%s", used ? "," : "", printed);
}
