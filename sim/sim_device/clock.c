#include "allocators/base/array.h"
#include "sim/sim_device/clock.h"

/* ---- vector clocks -------------------------------------------------------------------------- */

#define FAN_OUT_BITS 4u
#define FAN_OUT      (1u << FAN_OUT_BITS)

union entries {
    uint64_t sequences[FAN_OUT];        /* on level 1 */
    struct vector_node *below[FAN_OUT]; /* on higher levels; NULL: none is set */
};

struct vector_node {
    uint32_t holders;
    bool learned; /* all of it and below it */
    union entries is;
};

static struct vector_node *node_new(void)
{
    struct vector_node *made = calloc(1, sizeof *made);
    if (made)
        made->holders = 1;
    return made;
}

static struct vector_node *node_hold(struct vector_node *node)
{
    if (node)
        node->holders++;
    return node;
}

static void node_drop(struct vector_node *node, uint32_t height)
{
    if (!node || --node->holders)
        return;
    for (uint32_t i = 0; height > 1 && i < FAN_OUT; i++)
        node_drop(node->is.below[i], height - 1);
    free(node);
}

struct vector_clock vector_clock_copy(const struct vector_clock *self)
{
    (void)node_hold(self->root);
    return *self;
}

void vector_clock_drop(struct vector_clock *self)
{
    node_drop(self->root, self->height);
    *self = (struct vector_clock){.root = NULL};
}

/* The index of the child of a node on that level that contains the stream. */
static uint32_t place_of(uint32_t stream, uint32_t height)
{
    return stream >> FAN_OUT_BITS * (height - 1) & (FAN_OUT - 1);
}

/* The height of a tree that can hold the stream. */
static uint32_t height_for(uint32_t stream)
{
    uint32_t height = 1;
    while (stream >>= FAN_OUT_BITS)
        height++;
    return height;
}

uint64_t vector_clock_at(const struct vector_clock *self, uint32_t stream)
{
    const struct vector_node *node = self->root;
    if (!node || (uint64_t)stream >> FAN_OUT_BITS * self->height)
        return 0;
    for (uint32_t height = self->height; node && height > 1; height--)
        node = node->is.below[place_of(stream, height)];
    return node ? node->is.sequences[place_of(stream, 1)] : 0;
}

/* Adds levels until there are `height`. */
static bool grow_to(struct vector_clock *self, uint32_t height)
{
    for (; self->height < height; self->height++) {
        if (!self->root)
            continue;
        struct vector_node *top = node_new();
        if (!top)
            return false;
        top->learned = self->root->learned;
        top->is.below[0] = self->root;
        self->root = top;
    }
    return true;
}

/* Makes sure that only this clock holds the node of `link`, if that is true of its parent. NULL: no
 * host memory. */
static struct vector_node *node_own(struct vector_node **link, uint32_t height)
{
    struct vector_node *node = *link;
    if (node && node->holders == 1)
        return node;
    struct vector_node *own = node_new();
    if (own && node) {
        own->is = node->is;
        for (uint32_t i = 0; height > 1 && i < FAN_OUT; i++)
            (void)node_hold(own->is.below[i]);
        own->learned = node->learned;
        node->holders--;
    }
    if (own)
        *link = own;
    return own;
}

bool vector_clock_raise(struct vector_clock *self, uint32_t stream, uint64_t sequence)
{
    if (vector_clock_at(self, stream) >= sequence)
        return true;
    if (!grow_to(self, height_for(stream)))
        return false;
    struct vector_node **link = &self->root;
    for (uint32_t height = self->height; height; height--) {
        struct vector_node *node = node_own(link, height);
        if (!node)
            return false; /* the new nodes say the same as before */
        node->learned = false;
        if (height > 1)
            link = &node->is.below[place_of(stream, height)];
        else
            node->is.sequences[place_of(stream, 1)] = sequence;
    }
    return true;
}

/* The higher of two nodes on one level, each of which may be NULL, for a new holder. Without host
 * memory it clears `enough`, and the caller drops the result. */
static struct vector_node *node_higher(struct vector_node *a, struct vector_node *b,
                                       uint32_t height, bool *enough)
{
    if (a == b || !b)
        return node_hold(a);
    if (!a)
        return node_hold(b);
    union entries higher;
    bool is_a = true;
    bool is_b = true;
    for (uint32_t i = 0; i < FAN_OUT; i++) {
        if (height > 1) {
            higher.below[i] = node_higher(a->is.below[i], b->is.below[i], height - 1, enough);
            is_a &= higher.below[i] == a->is.below[i];
            is_b &= higher.below[i] == b->is.below[i];
        } else {
            uint64_t of_a = a->is.sequences[i];
            uint64_t of_b = b->is.sequences[i];
            higher.sequences[i] = of_a > of_b ? of_a : of_b;
            is_a &= of_a >= of_b;
            is_b &= of_b >= of_a;
        }
    }
    struct vector_node *made = is_a || is_b ? NULL : node_new();
    if (made) {
        made->is = higher;
        made->learned = a->learned && b->learned;
        return made;
    }
    for (uint32_t i = 0; height > 1 && i < FAN_OUT; i++)
        node_drop(higher.below[i], height - 1);
    *enough &= is_a || is_b;
    return is_a || is_b ? node_hold(is_a ? a : b) : NULL;
}

bool vector_clock_raise_all(struct vector_clock *self, const struct vector_clock *other)
{
    if (!other->root || other->root == self->root)
        return true;
    struct vector_clock with = vector_clock_copy(other);
    bool enough = grow_to(&with, self->height) && grow_to(self, with.height);
    struct vector_node *higher =
        enough ? node_higher(self->root, with.root, self->height, &enough) : NULL;
    if (enough) {
        node_drop(self->root, self->height);
        self->root = higher;
    } else {
        node_drop(higher, self->height);
    }
    vector_clock_drop(&with);
    return enough;
}

static void node_learn(struct vector_node *node, uint32_t height, uint32_t first,
                       vector_clock_visit *visit, void *argument)
{
    if (!node || node->learned)
        return;
    node->learned = true;
    for (uint32_t i = 0; i < FAN_OUT; i++) {
        uint32_t stream = first + (i << FAN_OUT_BITS * (height - 1));
        if (height > 1)
            node_learn(node->is.below[i], height - 1, stream, visit, argument);
        else if (node->is.sequences[i])
            visit(argument, stream, node->is.sequences[i]);
    }
}

void vector_clock_learn(struct vector_clock *self, vector_clock_visit *visit, void *argument)
{
    node_learn(self->root, self->height, 0, visit, argument);
}

/* ---- the clock ------------------------------------------------------------------------------ */

/* The most fences of a stream that are remembered one by one. Older fences whose time has passed
 * are joined: a poll of any of them then marks all of them as done. */
#define MARKS_MOST 4096u

/* The least number of events before any is removed. */
#define EVENTS_LEAST 1024u

struct sim_event {
    struct range range; /* start is the event's number */
    struct sim_moment moment;
};

void sim_clock_open(struct sim_clock *self, uint32_t launch_queue)
{
    memset(self, 0, sizeof *self);
    self->launch_queue = launch_queue;
    self->events_bound = EVENTS_LEAST;
}

/* Removes the first `count` fences. */
static void marks_drop(struct sim_stream *stream, uint32_t count)
{
    for (uint32_t i = 0; i < count; i++)
        vector_clock_drop(&stream->marks[stream->mark_first + i].clock);
    stream->mark_first += count;
    stream->mark_count -= count;
    stream->marks_gone += count;
}

void sim_clock_close(struct sim_clock *self)
{
    for (uint32_t i = 0; i < self->stream_count; i++) {
        struct sim_stream *stream = &self->streams[i];
        marks_drop(stream, stream->mark_count);
        free(stream->marks);
        vector_clock_drop(&stream->clock);
        vector_clock_drop(&stream->apart);
        free(stream->ends);
    }
    free(self->streams);
    while (self->events.root) {
        struct sim_event *event = (struct sim_event *)self->events.root;
        ranges_remove(&self->events, &event->range);
        vector_clock_drop(&event->moment.clock);
        free(event);
    }
}

/* The stream of that ordinal, created if it is new; NULL: not possible. */
static struct sim_stream *clock_stream(struct sim_clock *self, uint32_t ordinal)
{
    if (ordinal < self->stream_count)
        return &self->streams[ordinal];
    if (ordinal >= SIM_STREAMS_MOST) {
        self->failed = self->beyond = true;
        return NULL;
    }
    if (ordinal >= self->stream_room) {
        uint32_t room = 2 * self->stream_room > ordinal ? 2 * self->stream_room : ordinal + 1;
        struct sim_stream *grown = realloc(self->streams, room * sizeof *grown);
        if (!grown) {
            self->failed = true;
            return NULL;
        }
        self->streams = grown;
        self->stream_room = room;
    }
    memset(self->streams + self->stream_count, 0,
           (ordinal + 1 - self->stream_count) * sizeof *self->streams);
    self->stream_count = ordinal + 1;
    return &self->streams[ordinal];
}

static void stream_closes(struct sim_clock *self, uint32_t ordinal)
{
    self->open[ordinal / 64] &= ~(UINT64_C(1) << ordinal % 64);
    if (!self->open[ordinal / 64])
        self->open_words[ordinal / 4096] &= ~(UINT64_C(1) << ordinal / 64 % 64);
}

/* The place of the first bit from `from` on of so many words; beyond them: none. */
static uint32_t next_bit(const uint64_t *words, uint32_t count, uint32_t from)
{
    for (uint32_t word = from / 64; word < count; word++) {
        uint64_t bits = words[word];
        if (word == from / 64)
            bits &= UINT64_MAX << from % 64;
        if (bits)
            return 64 * word + (uint32_t)__builtin_ctzll(bits);
    }
    return 64 * count;
}

uint32_t sim_clock_next_open(const struct sim_clock *self, uint32_t stream)
{
    if (stream >= SIM_STREAMS_MOST)
        return SIM_STREAMS_MOST;
    uint32_t in_word = next_bit(self->open + stream / 64, 1, stream % 64);
    if (in_word < 64)
        return stream / 64 * 64 + in_word;
    uint32_t word = next_bit(self->open_words, SIM_STREAM_WORDS / 64, stream / 64 + 1);
    return word < SIM_STREAM_WORDS ? next_bit(self->open, SIM_STREAM_WORDS, 64 * word)
                                   : SIM_STREAMS_MOST;
}

void sim_clock_kernel(struct sim_clock *self, uint32_t ordinal, uint64_t nanoseconds)
{
    if (sim_clock_launch(self, ordinal, nanoseconds))
        return;
    /* The first kernel of a stream creates its queue. */
    struct sim_stream *stream = clock_stream(self, ordinal);
    if (stream && (stream->ends = calloc(self->launch_queue, sizeof *stream->ends)))
        (void)sim_clock_launch(self, ordinal, nanoseconds);
    else
        self->failed = true;
}

/* The present moment of a stream's work. */
static struct sim_moment clock_moment(const struct sim_stream *stream, uint32_t ordinal)
{
    return (struct sim_moment){.stream = ordinal,
                               .sequence = stream->sequence,
                               .time_ns = stream->tail_ns,
                               .clock = vector_clock_copy(&stream->clock)};
}

/* Removes the events that the host knows to be past. What comes before them is known too: it became
 * known with them, or with later work of the same stream. */
static void events_bound(struct sim_clock *self)
{
    if (self->events.count < self->events_bound)
        return;
    struct range *range = ranges_from(&self->events, 0);
    while (range) {
        struct sim_event *event = (struct sim_event *)range;
        range = ranges_from(&self->events, range->end);
        if (event->moment.time_ns <= self->now_ns &&
            sim_clock_known(self, event->moment.stream, event->moment.sequence)) {
            ranges_remove(&self->events, &event->range);
            vector_clock_drop(&event->moment.clock);
            free(event);
        }
    }
    self->events_bound = EVENTS_LEAST + 2 * self->events.count;
}

void sim_clock_event_record(struct sim_clock *self, uint64_t number, uint32_t ordinal)
{
    struct sim_stream *stream = clock_stream(self, ordinal);
    if (!stream || number == UINT64_MAX)
        return;
    struct sim_event *event = (struct sim_event *)ranges_find(&self->events, number);
    if (!event) {
        events_bound(self);
        event = calloc(1, sizeof *event);
        if (!event) {
            self->failed = true;
            return;
        }
        event->range.start = number;
        event->range.end = number + 1;
        ranges_insert(&self->events, &event->range);
    }
    vector_clock_drop(&event->moment.clock);
    event->moment = clock_moment(stream, ordinal);
}

/* Rule 3: all future work of the stream comes after the moment. */
static void stream_comes_after(struct sim_clock *self, struct sim_stream *stream,
                               const struct sim_moment *moment)
{
    if (!vector_clock_raise_all(&stream->clock, &moment->clock) ||
        !vector_clock_raise(&stream->clock, moment->stream, moment->sequence)) {
        self->failed = true;
        return;
    }
    sim_clock_opens(self, (uint32_t)(stream - self->streams));
    AR_RAISE(stream->tail_ns, moment->time_ns);
}

void sim_clock_stream_wait(struct sim_clock *self, uint32_t ordinal, uint64_t number)
{
    struct sim_stream *stream = clock_stream(self, ordinal);
    const struct sim_event *event = (struct sim_event *)ranges_find(&self->events, number);
    if (!stream || !event || event->moment.stream == ordinal)
        return;
    stream_comes_after(self, stream, &event->moment);
}

static void know(void *argument, uint32_t stream, uint64_t sequence)
{
    struct sim_clock *self = argument;
    if (sequence <= self->streams[stream].known)
        return;
    self->streams[stream].known = sequence;
    self->learned += self->learned == 0 || self->learned_stream != stream;
    self->learned_stream = stream;
}

/* The host knows that a moment is past, with all that comes before it. */
static void clock_learn(struct sim_clock *self, uint32_t stream, uint64_t sequence,
                        struct vector_clock *clock)
{
    const struct sim_stream *of = &self->streams[stream];
    vector_clock_learn(clock, know, self);
    know(self, stream, sequence);
    if (of->known >= of->sequence && of->tail_ns <= self->now_ns && clock->root == of->clock.root)
        stream_closes(self, stream);
}

uint64_t sim_clock_sync(struct sim_clock *self, uint32_t ordinal)
{
    uint64_t before_ns = self->now_ns;
    if (ordinal == SIM_ALL_STREAMS) {
        self->now_ns = sim_clock_idle_at(self);
        size_t words = (self->stream_count + 63) / 64; /* most programs have one */
        for (size_t word = 0; word < words; word++) /* of streams that are not open it knows all */
            for (uint64_t open = self->open[word]; open; open &= open - 1) {
                uint32_t stream = (uint32_t)(64 * word) + (uint32_t)__builtin_ctzll(open);
                know(self, stream, self->streams[stream].sequence);
            }
        memset(self->open, 0, words * sizeof *self->open);
        memset(self->open_words, 0, (words + 63) / 64 * sizeof *self->open_words);
        return self->now_ns - before_ns;
    }
    struct sim_stream *stream = clock_stream(self, ordinal);
    if (!stream)
        return 0;
    AR_RAISE(self->now_ns, stream->tail_ns);
    clock_learn(self, ordinal, stream->sequence, &stream->clock);
    return self->now_ns - before_ns;
}

/* Makes space for one more: by a move if half of it is free, else by growing. */
static bool marks_grow(struct sim_stream *stream)
{
    if (stream->mark_first + stream->mark_count < stream->mark_room)
        return true;
    if (stream->mark_first && stream->mark_first >= stream->mark_count) {
        memmove(stream->marks, stream->marks + stream->mark_first,
                stream->mark_count * sizeof *stream->marks);
        stream->mark_first = 0;
        return true;
    }
    return ar_array_make_room(&stream->marks, stream->mark_room, &stream->mark_room,
                              sizeof *stream->marks);
}

/* Joins fences if many are not polled: see MARKS_MOST. */
static void marks_bound(const struct sim_clock *self, struct sim_stream *stream)
{
    if (stream->mark_count < MARKS_MOST)
        return;
    uint32_t past = 0;
    while (past < stream->mark_count / 2 &&
           stream->marks[stream->mark_first + past].time_ns <= self->now_ns)
        past++;
    if (past)
        marks_drop(stream, past);
}

/* Whether the last fence covers all queued work. */
static bool stream_is_fenced(const struct sim_stream *stream)
{
    if (!stream->mark_count)
        return false;
    const struct sim_moment *last = &stream->marks[stream->mark_first + stream->mark_count - 1];
    return last->sequence == stream->sequence && last->time_ns == stream->tail_ns;
}

bool sim_clock_fence_is_new(const struct sim_clock *self, uint32_t ordinal)
{
    if (ordinal >= self->stream_count)
        return false;
    const struct sim_stream *stream = &self->streams[ordinal];
    return stream->sequence > stream->known && !stream_is_fenced(stream);
}

bool sim_clock_fence_is_nothing(const struct sim_clock *self, uint32_t ordinal)
{
    if (ordinal >= self->stream_count)
        return ordinal < SIM_STREAMS_MOST;
    const struct sim_stream *stream = &self->streams[ordinal];
    return !stream->sequence && !stream->tail_ns && !stream->clock.root && !stream->mark_count;
}

struct ar_backing_ticket sim_clock_fence(struct sim_clock *self, uint32_t ordinal)
{
    struct sim_stream *stream = clock_stream(self, ordinal);
    if (!stream)
        return (struct ar_backing_ticket){.stream = ordinal};
    if (!stream_is_fenced(stream)) {
        marks_bound(self, stream);
        if (!marks_grow(stream)) {
            self->failed = true;
            return (struct ar_backing_ticket){.stream = ordinal};
        }
        stream->marks[stream->mark_first + stream->mark_count++] = clock_moment(stream, ordinal);
    }
    /* Numbers begin at 1; 0 is a fence of nothing. */
    return (struct ar_backing_ticket){.stream = ordinal,
                                      .value = stream->marks_gone + stream->mark_count};
}

/* The moment of the fence, or NULL if it was found done earlier. */
static struct sim_moment *clock_mark(struct sim_clock *self, struct ar_backing_ticket ticket)
{
    if (ticket.stream >= self->stream_count)
        return NULL;
    struct sim_stream *stream = &self->streams[ticket.stream];
    if (ticket.value <= stream->marks_gone ||
        ticket.value > stream->marks_gone + stream->mark_count)
        return NULL;
    return &stream->marks[stream->mark_first + ticket.value - stream->marks_gone - 1];
}

bool sim_clock_is_open(struct sim_clock *self, struct ar_backing_ticket ticket)
{
    const struct sim_moment *mark = clock_mark(self, ticket);
    return mark && !sim_clock_known(self, mark->stream, mark->sequence);
}

bool sim_clock_done(struct sim_clock *self, struct ar_backing_ticket ticket)
{
    struct sim_moment *mark = clock_mark(self, ticket);
    if (!mark)
        return true;
    if (mark->time_ns > self->now_ns)
        return false;
    struct sim_stream *stream = &self->streams[ticket.stream];
    clock_learn(self, mark->stream, mark->sequence, &mark->clock);
    marks_drop(stream, (uint32_t)(ticket.value - stream->marks_gone));
    return true;
}

uint64_t sim_clock_wait(struct sim_clock *self, struct ar_backing_ticket ticket)
{
    const struct sim_moment *mark = clock_mark(self, ticket);
    uint64_t waited_ns = 0;
    if (mark && mark->time_ns > self->now_ns) {
        waited_ns = mark->time_ns - self->now_ns;
        self->now_ns = mark->time_ns;
    }
    (void)sim_clock_done(self, ticket);
    return waited_ns;
}

uint64_t sim_clock_stream_wait_ticket(struct sim_clock *self, uint32_t ordinal,
                                      struct ar_backing_ticket ticket)
{
    struct sim_stream *stream = clock_stream(self, ordinal);
    const struct sim_moment *mark = clock_mark(self, ticket);
    if (!stream || !mark || mark->stream == ordinal)
        return 0;
    uint64_t start_ns = stream->tail_ns > self->now_ns ? stream->tail_ns : self->now_ns;
    stream_comes_after(self, stream, mark);
    return stream->tail_ns > start_ns ? stream->tail_ns - start_ns : 0;
}

uint64_t sim_clock_touch(struct sim_clock *self, uint32_t ordinal)
{
    struct sim_stream *stream = clock_stream(self, ordinal);
    if (!stream)
        return 0;
    sim_clock_opens(self, ordinal);
    stream->touches++;
    return ++stream->sequence;
}

struct sim_moment sim_clock_here(struct sim_clock *self, uint32_t ordinal)
{
    const struct sim_stream *stream = clock_stream(self, ordinal);
    if (!stream)
        return (struct sim_moment){.stream = ordinal};
    return (struct sim_moment){
        .stream = ordinal, .sequence = stream->sequence, .time_ns = stream->tail_ns};
}

bool sim_clock_waits_for(const struct sim_clock *self, uint32_t earlier, uint64_t sequence,
                         uint32_t later)
{
    return later < self->stream_count &&
           sequence <= vector_clock_at(&self->streams[later].clock, earlier);
}

bool sim_clock_ordered(const struct sim_clock *self, uint32_t earlier, uint64_t sequence,
                       uint32_t later)
{
    return earlier == later || sim_clock_known(self, earlier, sequence) ||
           sim_clock_waits_for(self, earlier, sequence, later) ||
           (later < self->stream_count &&
            sequence <= vector_clock_at(&self->streams[later].apart, earlier));
}

/* Returns the delay of the next work of `later`, which has the order in `clock`. */
static uint64_t order(struct sim_clock *self, struct vector_clock *clock, uint32_t earlier,
                      uint64_t sequence, uint64_t time_ns, uint32_t later)
{
    struct sim_stream *stream = &self->streams[later];
    if (!vector_clock_raise(clock, earlier, sequence)) {
        self->failed = true;
        return 0;
    }
    sim_clock_opens(self, later);
    uint64_t start_ns = stream->tail_ns > self->now_ns ? stream->tail_ns : self->now_ns;
    AR_RAISE(stream->tail_ns, time_ns);
    return stream->tail_ns > start_ns ? stream->tail_ns - start_ns : 0;
}

uint64_t sim_clock_order(struct sim_clock *self, uint32_t earlier, uint64_t sequence,
                         uint64_t time_ns, uint32_t later)
{
    struct sim_stream *stream = clock_stream(self, later);
    return stream ? order(self, &stream->clock, earlier, sequence, time_ns, later) : 0;
}

uint64_t sim_clock_order_apart(struct sim_clock *self, uint32_t earlier, uint64_t sequence,
                               uint64_t time_ns, uint32_t later)
{
    struct sim_stream *stream = clock_stream(self, later);
    return stream ? order(self, &stream->apart, earlier, sequence, time_ns, later) : 0;
}
