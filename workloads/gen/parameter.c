/* See parameter.h. */
#include "workloads/gen/parameter.h"

unsigned optimizer_states(enum optimizer optimizer)
{
    static const unsigned states[] = {0, 0, 1, 1, 2};
    return states[optimizer];
}

void parameter_make(struct eager *eager, struct parameter *self, uint64_t elements, uint64_t bytes)
{
    *self = (struct parameter){.elements = elements};
    self->value = emit_alloc(eager->emit, bytes, "parameter");
    struct emit_kernel_op kernel_op = eager_set(eager_type(eager));
    kernel_op.out = &self->value;
    eager_kernel(eager, roofline_bytes_ns(bytes), &kernel_op);
}

void parameter_accumulate(struct eager *eager, struct parameter *self, struct emit_block gradient)
{
    if (!self->gradient.held) {
        self->gradient = gradient;
        return;
    }
    struct emit_kernel_op kernel_op = eager_combine(eager_type(eager), &self->gradient, &gradient);
    kernel_op.out = &self->gradient;
    eager_kernel(eager, roofline_bytes_ns(3 * gradient.bytes), &kernel_op);
    emit_free(eager->emit, &gradient);
}

void parameter_prepare(struct eager *eager, struct parameter *self, enum optimizer optimizer,
                       bool master)
{
    if (optimizer == OPTIMIZER_NONE)
        return;
    if (master && !self->master.held)
        self->master = eager_make(eager, 4 * self->elements, self->value.bytes, "master",
                                  eager_combine(EAGER_F32, &self->value, NULL));
    for (unsigned i = 0; i < optimizer_states(optimizer); i++)
        if (!self->state[i].held)
            self->state[i] =
                eager_make(eager, 4 * self->elements, 0, "optimizer", eager_set(EAGER_F32));
}

void parameter_update(struct eager *eager, struct parameter *const *parameters, size_t count,
                      enum optimizer optimizer, bool master, struct emit_block *scratch)
{
    if (optimizer == OPTIMIZER_NONE)
        return;
    for (size_t i = 0; i < count; i++)
        parameter_prepare(eager, parameters[i], optimizer, master);
    for (size_t i = 0; i < count; i++) {
        struct parameter *self = parameters[i];
        uint64_t states = optimizer_states(optimizer) + (master ? 1 : 0);
        if (optimizer == OPTIMIZER_ADAM || optimizer == OPTIMIZER_ADAGRAD)
            scratch[i] = eager_make(
                eager, 4 * self->elements, 4 * self->elements, "optimizer scratch",
                eager_combine(EAGER_F32, &self->state[optimizer == OPTIMIZER_ADAM], NULL));
        eager_kernel(eager,
                     roofline_bytes_ns(2 * self->value.bytes + self->gradient.bytes +
                                       8 * states * self->elements),
                     &(struct emit_kernel_op){
                         .op = "elementwise",
                         .type = eager_type(eager),
                         .out = &self->value,
                         .in = {&self->gradient, &self->state[0], &self->state[1], &self->master}});
    }
    if (optimizer == OPTIMIZER_ADAM || optimizer == OPTIMIZER_ADAGRAD)
        for (size_t i = 0; i < count; i++)
            emit_free(eager->emit, &scratch[i]);
}

void parameter_drop(struct eager *eager, struct parameter *self)
{
    emit_free(eager->emit, &self->gradient);
    emit_free(eager->emit, &self->state[1]);
    emit_free(eager->emit, &self->state[0]);
    emit_free(eager->emit, &self->master);
    emit_free(eager->emit, &self->value);
}
