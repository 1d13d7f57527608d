/* The pen in C: what pen.py does, at a fifth of its cost. See pen.py for what each method means.
 *
 * All of it runs under the GIL, so that a method is one step to other threads and to signal handlers, except
 * where it calls Python: for a text that is new, and at the end of a file. A record is published by storing its
 * marker last, with release semantics: a reader in another process sees all of it or nothing.
 */
#define PY_SSIZE_T_CLEAN
#include <Python.h>
#include <stdint.h>
#include <string.h>
#include <structmember.h>
#include <time.h>

#if defined(__BYTE_ORDER__) && __BYTE_ORDER__ != __ORDER_LITTLE_ENDIAN__
#error "records are little-endian"
#endif

enum { SPAN_BEGIN = 1, SPAN_END, COLL_BEGIN, COLL_END, COLL_ROLLUP, COLL_ROLLUP2, SCALAR };
enum { FLAG_P2P = 16, NO_STEP = -1, RING_TOKEN = -2, MAX_SUMS = 256, DROPPED_OFFSET = 48 };
#define EVERY_STEP (INT64_C(1) << 62)

typedef struct {
    int64_t t, a, b, c, d;
    uint32_t name, pg;
    int32_t step;
    uint32_t attr;
    uint16_t tag;
    uint8_t kind, flags;
    uint32_t marker;
} Record;
_Static_assert(sizeof(Record) == 64, "a record is 64 bytes");
enum { BODY = offsetof(Record, marker) };

typedef struct {
    int64_t step, open, count, bytes, total, longest, first, last, ended, seq;
    uint32_t pg;
} Sum;

typedef struct Pen {
    PyObject_HEAD
    PyObject *ids, *intern, *place, *wake, *describe, *ring;
    unsigned long main_thread;
    int has_main, has_view, is_ring;
    Py_buffer view;
    char *records;
    int64_t first, count, wake_at;
    uint64_t slots;
    long long dropped, step, step_category, full_until;
    uint32_t pairs;
    int sum_count, sum_hit;
    Sum sums[MAX_SUMS];
} Pen;

static PyTypeObject PenType;
static _Thread_local uint32_t thread_tag; /* plus one; 0: not known yet */
static uint32_t next_tag = 1;

static int64_t now_ns(void)
{
    struct timespec ts;
    clock_gettime(CLOCK_MONOTONIC, &ts);
    return (int64_t)ts.tv_sec * 1000000000 + ts.tv_nsec;
}

static uint16_t tag_of(Pen *self)
{
    if (!thread_tag) {
        int is_main = self->has_main && PyThread_get_thread_ident() == self->main_thread;
        thread_tag = (is_main ? 0 : (next_tag++ & 0xFFFF)) + 1;
    }
    return (uint16_t)(thread_tag - 1);
}

/* Count records that are lost, also in the header of the file; whatever was raised is forgotten. */
static void lose(Pen *self, int64_t count)
{
    PyErr_Clear();
    self->dropped += count;
    if (self->has_view && !self->is_ring && self->view.len >= DROPPED_OFFSET + 8) {
        uint64_t told = (uint64_t)self->dropped;
        memcpy((char *)self->view.buf + DROPPED_OFFSET, &told, 8);
    }
}

static void store(char *at, Record *record, uint64_t slot)
{
    memcpy(at, record, BODY);
    __atomic_store_n((uint32_t *)(at + BODY), (uint32_t)(slot + 1), __ATOMIC_RELEASE);
}

/* A slot outside of the current file: asks `place`. */
static int store_elsewhere(Pen *self, Record *record, uint64_t slot)
{
    Py_buffer view;
    int done = 0;
    PyObject *found = PyObject_CallFunction(self->place, "K", (unsigned long long)slot);
    if (found && PyTuple_Check(found) && PyTuple_GET_SIZE(found) == 2
        && PyObject_GetBuffer(PyTuple_GET_ITEM(found, 0), &view, PyBUF_WRITABLE) == 0) {
        Py_ssize_t at = PyLong_AsSsize_t(PyTuple_GET_ITEM(found, 1));
        if (at >= 0 && at <= view.len - (Py_ssize_t)sizeof(Record)) {
            store((char *)view.buf + at, record, slot);
            done = 1;
        }
        PyBuffer_Release(&view);
    }
    Py_XDECREF(found);
    if (!done)
        lose(self, 1);
    return done;
}

/* Claim a slot and publish; returns it, -1 when the record was dropped. Sets no exception. */
static int64_t put(Pen *self, Record *record)
{
    uint64_t slot = self->slots++;
    int64_t place = (int64_t)slot - self->first;
    if (!self->has_view)
        return -1;
    if (self->is_ring)
        place &= self->count - 1;
    else if (place < 0 || place >= self->count)
        return store_elsewhere(self, record, slot) ? (int64_t)slot : -1;
    store(self->records + place * (int64_t)sizeof(Record), record, slot);
    if ((int64_t)slot == self->wake_at) {
        PyObject *done = PyObject_CallNoArgs(self->wake);
        if (done)
            Py_DECREF(done);
        else
            PyErr_Clear();
    }
    return (int64_t)slot;
}

/* --- arguments ---------------------------------------------------------------------------------------- */

static int bind(const char *function, const char *const *names, int count, int required, PyObject *const *args,
                Py_ssize_t given, PyObject *kwnames, PyObject **out)
{
    if (given > count) {
        PyErr_Format(PyExc_TypeError, "%s() takes at most %d arguments (%zd given)", function, count, given);
        return -1;
    }
    for (int i = 0; i < count; i++)
        out[i] = i < given ? args[i] : NULL;
    for (Py_ssize_t k = 0; kwnames && k < PyTuple_GET_SIZE(kwnames); k++) {
        PyObject *name = PyTuple_GET_ITEM(kwnames, k);
        int i = 0;
        while (i < count && PyUnicode_CompareWithASCIIString(name, names[i]) != 0)
            i++;
        if (i == count || out[i]) {
            PyErr_Format(PyExc_TypeError, "%s() got an unexpected or repeated argument '%U'", function, name);
            return -1;
        }
        out[i] = args[given + k];
    }
    for (int i = 0; i < required; i++)
        if (!out[i]) {
            PyErr_Format(PyExc_TypeError, "%s() misses the argument '%s'", function, names[i]);
            return -1;
        }
    return 0;
}

/* An integer within [low, high]; `fallback` for NULL. Returns -1 with an exception set otherwise. */
static int integer(PyObject *value, int64_t low, int64_t high, int64_t fallback, int64_t *out)
{
    *out = fallback;
    if (!value)
        return 0;
    int64_t found = PyLong_AsLongLong(value);
    if (found == -1 && PyErr_Occurred())
        return -1;
    if (found < low || found > high) {
        PyErr_SetString(PyExc_OverflowError, "out of range");
        return -1;
    }
    *out = found;
    return 0;
}

/* The id of a text, "" for NULL; -1 with an exception set when there is none. */
static int64_t id_of(Pen *self, PyObject *text)
{
    if (!text)
        return 0;
    PyObject *found = PyDict_GetItemWithError(self->ids, text);
    if (found)
        return PyLong_AsLongLong(found);
    if (PyErr_Occurred())
        return -1;
    found = PyObject_CallOneArg(self->intern, text);
    if (!found)
        return -1;
    int64_t id = PyLong_AsLongLong(found);
    Py_DECREF(found);
    return id;
}

/* A step that was given, or the current one; NO_STEP for one that no record can hold. */
static int step_of(Pen *self, PyObject *given, int64_t *out)
{
    int overflow = 0;
    *out = self->step;
    if (!given || given == Py_None)
        return 0;
    *out = PyLong_AsLongLongAndOverflow(given, &overflow);
    if (*out == -1 && PyErr_Occurred())
        return -1;
    if (overflow || *out < INT32_MIN || *out > INT32_MAX)
        *out = NO_STEP;
    return 0;
}

static PyObject *tuple_of(const int64_t *values, int count)
{
    PyObject *made = PyTuple_New(count);
    for (int i = 0; made && i < count; i++) {
        PyObject *value = PyLong_FromLongLong(values[i]);
        if (!value) {
            Py_DECREF(made);
            return NULL;
        }
        PyTuple_SET_ITEM(made, i, value);
    }
    return made;
}

static int untuple(PyObject *token, int64_t *values, int count)
{
    if (!PyTuple_Check(token) || PyTuple_GET_SIZE(token) != count) {
        PyErr_SetString(PyExc_ValueError, "no token");
        return -1;
    }
    for (int i = 0; i < count; i++) {
        values[i] = PyLong_AsLongLong(PyTuple_GET_ITEM(token, i));
        if (values[i] == -1 && PyErr_Occurred())
            return -1;
    }
    return 0;
}

/* --- sums --------------------------------------------------------------------------------------------- */

static Sum *sum_of(Pen *self, int64_t step, uint32_t pg)
{
    if (self->sum_hit < self->sum_count) {
        Sum *hit = &self->sums[self->sum_hit];
        if (hit->step == step && hit->pg == pg)
            return hit;
    }
    for (int i = self->sum_count - 1; i >= 0; i--)
        if (self->sums[i].step == step && self->sums[i].pg == pg) {
            self->sum_hit = i;
            return &self->sums[i];
        }
    return NULL;
}

static void sum_begin(Pen *self, int64_t step, uint32_t pg, int64_t t)
{
    Sum *sum = sum_of(self, step, pg);
    if (!sum) {
        if (self->sum_count == MAX_SUMS)
            return;
        sum = &self->sums[self->sum_hit = self->sum_count++];
        memset(sum, 0, sizeof *sum);
        sum->step = step, sum->pg = pg, sum->first = t;
    }
    sum->open++;
    sum->last = t;
}

static void sum_end(Pen *self, int64_t step, uint32_t pg, int64_t t, int64_t end, int64_t bytes, int64_t seq)
{
    Sum *sum = sum_of(self, step, pg);
    if (!sum)
        return;
    sum->open--, sum->count++, sum->bytes += bytes, sum->total += end - t;
    sum->longest = end - t > sum->longest ? end - t : sum->longest;
    sum->ended = end > sum->ended ? end : sum->ended;
    sum->seq = seq > sum->seq ? seq : sum->seq;
}

static void publish_sums(Pen *self, int64_t step)
{
    for (int i = 0; i < self->sum_count;) {
        Sum sum = self->sums[i];
        if (sum.step > step || (sum.step == step && sum.open)) {
            i++;
            continue;
        }
        /* Taken out first: put() may let other threads in. */
        memmove(&self->sums[i], &self->sums[i + 1], (size_t)(self->sum_count - i - 1) * sizeof(Sum));
        self->sum_count--;
        if (!sum.count)
            continue;
        uint32_t pair = self->pairs++;
        Record one = {.t = sum.ended, .a = sum.count, .b = sum.bytes, .c = sum.total, .d = sum.longest,
                      .pg = sum.pg, .step = (int32_t)sum.step, .attr = pair, .kind = COLL_ROLLUP};
        Record two = {.t = sum.last, .a = sum.first, .b = sum.seq, .pg = sum.pg, .step = (int32_t)sum.step,
                      .attr = pair, .kind = COLL_ROLLUP2};
        put(self, &one);
        put(self, &two);
    }
}

/* --- methods ------------------------------------------------------------------------------------------ */

static PyObject *pen_record(Pen *self, PyObject *const *args, Py_ssize_t given, PyObject *kwnames)
{
    static const char *const names[] = {"kind", "t", "a", "b", "c", "d", "name", "pg", "step", "attr", "tag", "flags"};
    PyObject *in[12];
    int64_t v[12];
    if (bind("record", names, 12, 2, args, given, kwnames, in) < 0)
        return NULL;
    if (!self->has_view)
        return PyLong_FromLong(-1);
    static const int64_t low[] = {0, INT64_MIN, INT64_MIN, INT64_MIN, INT64_MIN, INT64_MIN, 0, 0, INT32_MIN, 0, 0, 0};
    static const int64_t high[] = {UINT8_MAX, INT64_MAX, INT64_MAX, INT64_MAX, INT64_MAX, INT64_MAX,
                                   UINT32_MAX, UINT32_MAX, INT32_MAX, UINT32_MAX, UINT16_MAX, UINT8_MAX};
    for (int i = 0; i < 12; i++)
        if (integer(in[i], low[i], high[i], i == 8 ? NO_STEP : 0, &v[i]) < 0) {
            lose(self, 1);
            return PyLong_FromLong(-1);
        }
    Record record = {.kind = (uint8_t)v[0], .t = v[1], .a = v[2], .b = v[3], .c = v[4], .d = v[5],
                     .name = (uint32_t)v[6], .pg = (uint32_t)v[7], .step = (int32_t)v[8],
                     .attr = (uint32_t)v[9], .tag = (uint16_t)v[10], .flags = (uint8_t)v[11]};
    return PyLong_FromLongLong(put(self, &record));
}

static PyObject *pen_begin(Pen *self, PyObject *const *args, Py_ssize_t given, PyObject *kwnames)
{
    static const char *const names[] = {"category", "name", "step", "attrs"};
    static const int64_t none[] = {0, -1, 0, 0, NO_STEP, 0};
    PyObject *in[4];
    if (bind("begin", names, 4, 1, args, given, kwnames, in) < 0)
        return NULL;
    if (!self->has_view)
        return tuple_of(none, 6);
    int64_t name, category, attr = 0, step;
    if ((name = id_of(self, in[1])) < 0 || (category = id_of(self, in[0])) < 0)
        goto lost;
    if (in[3] && in[3] != Py_None) {
        int any = PyObject_IsTrue(in[3]);
        PyObject *text = any > 0 ? PyObject_CallOneArg(self->describe, in[3]) : NULL;
        if (any < 0 || (any && !text))
            goto lost;
        attr = id_of(self, text);
        Py_XDECREF(text);
        if (attr < 0)
            goto lost;
    }
    if (step_of(self, in[2], &step) < 0)
        goto lost;
    Record record = {.t = now_ns(), .name = (uint32_t)name, .pg = (uint32_t)category, .step = (int32_t)step,
                     .attr = (uint32_t)attr, .tag = tag_of(self), .kind = SPAN_BEGIN};
    int64_t token[] = {record.t, put(self, &record), name, category, step, attr};
    return tuple_of(token, 6);
lost:
    lose(self, 1);
    return tuple_of(none, 6);
}

static PyObject *pen_end(Pen *self, PyObject *const *args, Py_ssize_t given, PyObject *kwnames)
{
    static const char *const names[] = {"token", "flags"};
    PyObject *in[2];
    int64_t v[6], flags;
    if (bind("end", names, 2, 1, args, given, kwnames, in) < 0)
        return NULL;
    if (!self->has_view)
        Py_RETURN_NONE;
    if (untuple(in[0], v, 6) < 0 || integer(in[1], 0, UINT8_MAX, 0, &flags) < 0) {
        lose(self, 1);
        Py_RETURN_NONE;
    }
    if (!v[3]) /* it began when nothing was recorded */
        Py_RETURN_NONE;
    Record record = {.t = now_ns(), .a = v[0], .b = v[1], .name = (uint32_t)v[2], .pg = (uint32_t)v[3],
                     .step = (int32_t)v[4], .attr = (uint32_t)v[5], .tag = tag_of(self), .kind = SPAN_END,
                     .flags = (uint8_t)flags};
    put(self, &record);
    if (v[3] == self->step_category)
        publish_sums(self, v[4]);
    Py_RETURN_NONE;
}

static PyObject *pen_scalar(Pen *self, PyObject *const *args, Py_ssize_t given, PyObject *kwnames)
{
    static const char *const names[] = {"name", "value", "step"};
    PyObject *in[3];
    if (bind("scalar", names, 3, 2, args, given, kwnames, in) < 0)
        return NULL;
    if (!self->has_view)
        Py_RETURN_NONE;
    double value = PyFloat_AsDouble(in[1]);
    int64_t name, step;
    if ((value == -1.0 && PyErr_Occurred()) || (name = id_of(self, in[0])) < 0 || step_of(self, in[2], &step) < 0) {
        lose(self, 1);
        Py_RETURN_NONE;
    }
    Record record = {.t = now_ns(), .name = (uint32_t)name, .step = (int32_t)step, .tag = tag_of(self),
                     .kind = SCALAR};
    memcpy(&record.a, &value, sizeof value);
    put(self, &record);
    Py_RETURN_NONE;
}

static PyObject *pen_collective_begin(Pen *self, PyObject *const *args, Py_ssize_t given, PyObject *kwnames)
{
    static const char *const names[] = {"op", "pg", "seq", "size_bytes", "signature", "flags", "peer"};
    static const int64_t none[] = {0, -1, 0, 0, 0, 0, 0, NO_STEP, 0};
    PyObject *in[7];
    int64_t op, pg, attr, seq, size, flags, peer;
    if (bind("collective_begin", names, 7, 3, args, given, kwnames, in) < 0)
        return NULL;
    if (!self->has_view)
        return tuple_of(none, 9);
    if ((op = id_of(self, in[0])) < 0 || (pg = id_of(self, in[1])) < 0 || (attr = id_of(self, in[4])) < 0
        || integer(in[2], INT64_MIN, INT64_MAX, 0, &seq) < 0 || integer(in[3], INT64_MIN, INT64_MAX, 0, &size) < 0
        || integer(in[5], 0, UINT8_MAX, 0, &flags) < 0 || integer(in[6], INT64_MIN, INT64_MAX, -1, &peer) < 0) {
        lose(self, 1);
        return tuple_of(none, 9);
    }
    int64_t step = self->step;
    Pen *ring = self->ring && step >= self->full_until ? (Pen *)self->ring : NULL;
    Record record = {.t = now_ns(), .a = seq, .b = size, .c = peer, .name = (uint32_t)op, .pg = (uint32_t)pg,
                     .step = (int32_t)step, .attr = (uint32_t)attr, .tag = tag_of(self), .kind = COLL_BEGIN,
                     .flags = (uint8_t)flags};
    int64_t slot = put(ring ? ring : self, &record);
    if (!(flags & FLAG_P2P))
        sum_begin(self, step, (uint32_t)pg, record.t);
    int64_t token[] = {record.t, ring ? RING_TOKEN - slot : slot, op, pg, seq, size, attr, step, flags};
    return tuple_of(token, 9);
}

static PyObject *pen_collective_end(Pen *self, PyObject *const *args, Py_ssize_t given, PyObject *kwnames)
{
    static const char *const names[] = {"token", "flags"};
    PyObject *in[2];
    int64_t v[9], flags;
    if (bind("collective_end", names, 2, 1, args, given, kwnames, in) < 0)
        return NULL;
    if (!self->has_view)
        Py_RETURN_NONE;
    if (untuple(in[0], v, 9) < 0 || integer(in[1], 0, UINT8_MAX, 0, &flags) < 0) {
        lose(self, 1);
        Py_RETURN_NONE;
    }
    if (!v[2])
        Py_RETURN_NONE;
    Pen *pen = self;
    int64_t slot = v[1];
    if (slot <= RING_TOKEN) {
        slot = RING_TOKEN - slot;
        pen = (Pen *)self->ring;
        if (!pen)
            Py_RETURN_NONE;
    }
    Record record = {.t = now_ns(), .a = v[4], .b = v[5], .c = v[0], .d = slot, .name = (uint32_t)v[2],
                     .pg = (uint32_t)v[3], .step = (int32_t)v[7], .attr = (uint32_t)v[6], .tag = tag_of(self),
                     .kind = COLL_END, .flags = (uint8_t)(v[8] | flags)};
    put(pen, &record);
    if (!(v[8] & FLAG_P2P))
        sum_end(self, v[7], (uint32_t)v[3], v[0], record.t, v[5], v[4]);
    Py_RETURN_NONE;
}

static PyObject *pen_publish(Pen *self, PyObject *args)
{
    long long step = EVERY_STEP;
    if (!PyArg_ParseTuple(args, "|L", &step))
        return NULL;
    if (self->has_view)
        publish_sums(self, step);
    Py_RETURN_NONE;
}

static void release_view(Pen *self)
{
    if (self->has_view) {
        self->has_view = 0;
        PyBuffer_Release(&self->view);
    }
}

static PyObject *look_at(Pen *self, PyObject *mapped, Py_ssize_t offset, long long first, long long count,
                         long long wake_at)
{
    Py_buffer view;
    if (PyObject_GetBuffer(mapped, &view, PyBUF_WRITABLE) < 0)
        return NULL;
    if (offset < 0 || count < 0 || offset + count * (Py_ssize_t)sizeof(Record) > view.len || offset % 4) {
        PyBuffer_Release(&view);
        PyErr_SetString(PyExc_ValueError, "the file is shorter than its records");
        return NULL;
    }
    release_view(self);
    self->view = view, self->has_view = 1;
    self->records = (char *)view.buf + offset;
    self->first = first, self->count = count, self->wake_at = wake_at;
    Py_RETURN_NONE;
}

static PyObject *pen_point(Pen *self, PyObject *args)
{
    PyObject *mapped;
    Py_ssize_t offset;
    long long first, count, wake_at = -1;
    if (!PyArg_ParseTuple(args, "OnLL|L", &mapped, &offset, &first, &count, &wake_at))
        return NULL;
    return look_at(self, mapped, offset, first, count, wake_at);
}

static PyObject *pen_circle(Pen *self, PyObject *args)
{
    PyObject *mapped;
    Py_ssize_t offset;
    long long count;
    if (!PyArg_ParseTuple(args, "OnL", &mapped, &offset, &count))
        return NULL;
    self->is_ring = 1;
    return look_at(self, mapped, offset, 0, count, -1);
}

static PyObject *pen_stop(Pen *self, PyObject *Py_UNUSED(ignored))
{
    release_view(self);
    Py_CLEAR(self->ring);
    Py_RETURN_NONE;
}

static PyObject *pen_drop(Pen *self, PyObject *args)
{
    long long count = 1;
    if (!PyArg_ParseTuple(args, "|L", &count))
        return NULL;
    lose(self, count);
    Py_RETURN_NONE;
}

static PyObject *pen_next(Pen *self)
{
    return PyLong_FromUnsignedLongLong(self->slots++);
}

static PyObject *get_on(Pen *self, void *Py_UNUSED(closure))
{
    return PyBool_FromLong(self->has_view);
}

static PyObject *get_is_fast(Pen *Py_UNUSED(self), void *Py_UNUSED(closure))
{
    Py_RETURN_TRUE;
}

static PyObject *get_ring(Pen *self, void *Py_UNUSED(closure))
{
    return Py_NewRef(self->ring ? self->ring : Py_None);
}

static int set_ring(Pen *self, PyObject *value, void *Py_UNUSED(closure))
{
    if (value == Py_None)
        value = NULL;
    if (value && !PyObject_TypeCheck(value, &PenType)) {
        PyErr_SetString(PyExc_TypeError, "a ring is a pen too");
        return -1;
    }
    Py_XINCREF(value);
    Py_XSETREF(self->ring, value);
    return 0;
}

static int pen_init(Pen *self, PyObject *args, PyObject *kwargs)
{
    static char *names[] = {"ids", "intern", "place", "wake", "main_thread", "describe", NULL};
    PyObject *ids, *intern, *place, *wake, *main_thread, *describe;
    if (!PyArg_ParseTupleAndKeywords(args, kwargs, "O!OOOOO", names, &PyDict_Type, &ids, &intern, &place, &wake,
                                     &main_thread, &describe))
        return -1;
    if (main_thread != Py_None) {
        self->main_thread = PyLong_AsUnsignedLong(main_thread);
        if (PyErr_Occurred())
            return -1;
        self->has_main = 1;
    }
    Py_XSETREF(self->ids, Py_NewRef(ids));
    Py_XSETREF(self->intern, Py_NewRef(intern));
    Py_XSETREF(self->place, Py_NewRef(place));
    Py_XSETREF(self->wake, Py_NewRef(wake));
    Py_XSETREF(self->describe, Py_NewRef(describe));
    self->step = NO_STEP, self->step_category = -1, self->full_until = EVERY_STEP, self->wake_at = -1;
    return 0;
}

static int pen_traverse(Pen *self, visitproc visit, void *arg)
{
    Py_VISIT(self->ids);
    Py_VISIT(self->intern);
    Py_VISIT(self->place);
    Py_VISIT(self->wake);
    Py_VISIT(self->describe);
    Py_VISIT(self->ring);
    return 0;
}

static int pen_clear(Pen *self)
{
    Py_CLEAR(self->ids);
    Py_CLEAR(self->intern);
    Py_CLEAR(self->place);
    Py_CLEAR(self->wake);
    Py_CLEAR(self->describe);
    Py_CLEAR(self->ring);
    release_view(self); /* nothing is recorded from here on, so none of these is needed */
    return 0;
}

static void pen_dealloc(Pen *self)
{
    PyObject_GC_UnTrack(self);
    pen_clear(self);
    Py_TYPE(self)->tp_free((PyObject *)self);
}

#define FAST(function) ((PyCFunction)(void (*)(void))(function))
static PyMethodDef pen_methods[] = {
    {"record", FAST(pen_record), METH_FASTCALL | METH_KEYWORDS, "Publish one record."},
    {"begin", FAST(pen_begin), METH_FASTCALL | METH_KEYWORDS, "Begin a span by hand."},
    {"end", FAST(pen_end), METH_FASTCALL | METH_KEYWORDS, "End a span."},
    {"collective_begin", FAST(pen_collective_begin), METH_FASTCALL | METH_KEYWORDS, "Publish a collective."},
    {"collective_end", FAST(pen_collective_end), METH_FASTCALL | METH_KEYWORDS, "A collective completed."},
    {"scalar", FAST(pen_scalar), METH_FASTCALL | METH_KEYWORDS, "A number of a step."},
    {"publish", (PyCFunction)pen_publish, METH_VARARGS, "Write roll-ups."},
    {"point", (PyCFunction)pen_point, METH_VARARGS, "Write to a file."},
    {"circle", (PyCFunction)pen_circle, METH_VARARGS, "Be a ring."},
    {"stop", (PyCFunction)pen_stop, METH_NOARGS, "Record nothing from now on."},
    {"drop", (PyCFunction)pen_drop, METH_VARARGS, "Count records that are lost."},
    {NULL, NULL, 0, NULL},
};
static PyMemberDef pen_members[] = {
    {"dropped", T_LONGLONG, offsetof(Pen, dropped), 0, NULL},
    {"step", T_LONGLONG, offsetof(Pen, step), 0, NULL},
    {"step_category", T_LONGLONG, offsetof(Pen, step_category), 0, NULL},
    {"full_until", T_LONGLONG, offsetof(Pen, full_until), 0, NULL},
    {NULL, 0, 0, 0, NULL},
};
static PyGetSetDef pen_getset[] = {
    {"on", (getter)get_on, NULL, NULL, NULL},
    {"is_fast", (getter)get_is_fast, NULL, NULL, NULL},
    {"ring", (getter)get_ring, (setter)set_ring, NULL, NULL},
    {NULL, NULL, NULL, NULL, NULL},
};
static PyTypeObject PenType = {
    PyVarObject_HEAD_INIT(NULL, 0).tp_name = "rankscope.ingest._fast.Pen",
    .tp_doc = "See rankscope.ingest.pen.Pen.",
    .tp_basicsize = sizeof(Pen),
    .tp_flags = Py_TPFLAGS_DEFAULT | Py_TPFLAGS_HAVE_GC,
    .tp_new = PyType_GenericNew,
    .tp_init = (initproc)pen_init,
    .tp_dealloc = (destructor)pen_dealloc,
    .tp_traverse = (traverseproc)pen_traverse,
    .tp_clear = (inquiry)pen_clear,
    .tp_iter = PyObject_SelfIter,
    .tp_iternext = (iternextfunc)pen_next,
    .tp_methods = pen_methods,
    .tp_members = pen_members,
    .tp_getset = pen_getset,
};

static struct PyModuleDef module = {
    PyModuleDef_HEAD_INIT, .m_name = "rankscope.ingest._fast", .m_doc = "The pen in C.", .m_size = -1,
};

PyMODINIT_FUNC PyInit__fast(void)
{
    if (PyType_Ready(&PenType) < 0)
        return NULL;
    PyObject *made = PyModule_Create(&module);
    if (made && PyModule_AddObjectRef(made, "Pen", (PyObject *)&PenType) < 0)
        Py_CLEAR(made);
    return made;
}
