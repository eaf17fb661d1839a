/* The fault of forgotten axes: the tensor has positions on two or three axes, the belief on one.
 *
 * No field states where its rows are, so the positions on each axis are read from the phases of that axis's pairs
 * (faults/steps.c), under each way in which libraries share the channels of a head among axes. Most readings make no
 * sense, which a few rows show: coordinates must be integers, or those of a rule. The last axis is read first, because
 * it has slow waves whose turns are not ambiguous.
 *
 * Coordinates are then written as a person would: a grid, if they are one; segments of text, images and videos, if they
 * are such; else the list. Encodings have no phases of pairs: there, columns that repeat in periods or in blocks give
 * away the axes and their lengths. */
#include "core/diagnosis/diagnosis.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

bool pe_axes_are_forgotten(const struct pe_diagnosis *d, unsigned n_axes)
{
    const struct pe_sequence *seq = &d->belief.model->plan->seq;
    return seq->n_axes == n_axes && pe_edit_value(d, NULL, "len") && d->belief.n > 3 && seq->k->n == d->belief.n;
}

/* ---- Positions as segments: runs of text, and images and videos whose rows are read one after the other ---- */

/* [n] ids of time, height, width. */
struct ids {
    const double *t, *h, *w;
    size_t n;
};

/* Tokens from `first` on; 1 × 1 × 1: a token of text. */
struct block {
    size_t first, frames, rows, columns;
    double begin, step; /* the first id; from frame to frame */
};

static bool is_at(const struct ids *p, size_t i, double t, double h, double w)
{
    return i < p->n && p->t[i] == t && p->h[i] == h && p->w[i] == w;
}

static bool is_row(const struct ids *p, const struct block *b, size_t i, double t, size_t row)
{
    for (size_t k = 0; k < b->columns; k++)
        if (!is_at(p, i + k, t, b->begin + (double)row, b->begin + (double)k))
            return false;
    return true;
}

static bool is_frame(const struct ids *p, const struct block *b, size_t i, double t)
{
    for (size_t row = 0; row < b->rows; row++)
        if (!is_row(p, b, i + row * b->columns, t, row))
            return false;
    return true;
}

/* The largest block that begins at a token; its first id must be `begin`. */
static bool find_block(const struct ids *p, size_t first, double begin, struct block *b)
{
    *b = (struct block){first, 1, 1, 1, begin, 0};
    if (!is_at(p, first, begin, begin, begin))
        return false;
    while (is_at(p, first + b->columns, begin, begin, begin + (double)b->columns))
        b->columns++;
    while (is_row(p, b, first + b->rows * b->columns, begin, b->rows))
        b->rows++;
    size_t size = b->rows * b->columns;
    b->step = size > 1 && first + size < p->n ? p->t[first + size] - begin : 0;
    while (size > 1 && b->step > 0 && is_frame(p, b, first + b->frames * size, begin + (double)b->frames * b->step))
        b->frames++;
    return true;
}

static double after(const struct block *b)
{
    double last = (double)(b->rows > b->columns ? b->rows : b->columns) - 1;
    return b->begin + fmax(last, b->step * (double)(b->frames - 1)) + 1;
}

/* A segment as it is written: patches are merged by two on each side. */
struct written {
    struct pe_field fields[3];
    double grid[3];
};

static struct pe_value word(const char *x) { return (struct pe_value){.kind = PE_STRING, .string = x}; }

static struct pe_value write_text(struct written *room, size_t n)
{
    room->fields[0] = (struct pe_field){"type", word("text")};
    room->fields[1] = (struct pe_field){"len", {.kind = PE_INTEGER, .integer = (int64_t)n}};
    return (struct pe_value){.kind = PE_OBJECT, .object = {room->fields, 2}};
}

static struct pe_value write_block(struct written *room, const struct block *b)
{
    enum { MERGED = 2, IDS_PER_SECOND = 2 };
    bool is_video = b->frames > 1;
    memcpy(room->grid, (double[]){(double)b->frames, (double)(MERGED * b->rows), (double)(MERGED * b->columns)},
           sizeof room->grid);
    struct pe_tensor grid = {.dtype = PE_F64, .rank = 1, .shape = {3}, .data = room->grid};
    room->fields[0] = (struct pe_field){"type", word(is_video ? "video" : "image")};
    room->fields[1] = (struct pe_field){"grid", {.kind = PE_ARRAY, .array = grid}};
    room->fields[2] = (struct pe_field){"second_per_grid", {.kind = PE_REAL, .real = b->step / IDS_PER_SECOND}};
    return (struct pe_value){.kind = PE_OBJECT, .object = {room->fields, is_video ? 3 : 2}};
}

/* Writes the segments, or only counts them (items NULL); 0: the ids are something else, or text alone. */
static size_t write_segments(const struct ids *p, struct pe_value *items, struct written *room)
{
    size_t n = 0, text = 0, blocks = 0;
    double next = 0;
    struct block b;
    for (size_t i = 0; i < p->n; i += b.frames * b.rows * b.columns, next = after(&b)) {
        if (!find_block(p, i, next, &b))
            return 0;
        bool is_text = b.rows * b.columns == 1;
        text = is_text ? text + 1 : 0;
        n += !(is_text && text > 1);
        blocks += !is_text;
        if (items)
            items[n - 1] = is_text ? write_text(&room[n - 1], text) : write_block(&room[n - 1], &b);
    }
    return blocks ? n : 0;
}

static bool set_segments(struct pe_diagnosis *d, struct pe_edit *edit, const struct ids *p)
{
    size_t n = write_segments(p, NULL, NULL);
    struct pe_value *items = n ? pe_edit_room(edit, n * sizeof *items) : NULL;
    struct written *room = items ? pe_edit_room(edit, n * sizeof *room) : NULL;
    if (!room)
        return false;
    write_segments(p, items, room);
    pe_edit_remove_sequence(d, edit);
    pe_edit_set(edit, "segments", (struct pe_value){.kind = PE_LIST, .list = {items, n}});
    return true;
}

/* ---- Position ids ---- */

static bool ids_axes_missing(struct pe_diagnosis *d, size_t i, struct pe_edit *edit)
{
    size_t n = (size_t)d->evidence.row_len;
    (void)i;
    if (d->evidence.n_rows != 3 || !pe_axes_are_forgotten(d, 3))
        return false;
    double *x = pe_edit_room(edit, 3 * n * sizeof *x);
    for (uint64_t row = 0; x && row < 3; row++)
        pe_evidence_read(&d->evidence, 0, row, 0, n, x + row * n);
    d->work += 16 * 3 * (double)n;
    return x && set_segments(d, edit, &(struct ids){x, x + n, x + 2 * n, n});
}
const struct pe_fault pe_fault_ids_axes_missing = {
    FAULT_TEXT("axes_missing", "ids", AXES, 2, "axes forgotten",
               "The positions are on several axes; the configuration has one.",
               "The positions are on several axes; the configuration has one."),

    .evidence = PE_EVIDENCE_BIT(IDS), .is_of_tensor = true, .n_alternatives = 1, .apply = ids_axes_missing};

/* ---- Positions from phases ---- */

#define SCORE_MIN 0.9

struct fit {
    struct pe_model *model;
    const struct pe_reading *reading;
    unsigned n_axes;
    size_t n;
    double *w;        /* [n_axes, n_waves]: frequencies of the waves of an axis, 0 for the others */
    double *position; /* [n_axes, n] */
};

static bool open_fit(struct pe_diagnosis *d, struct pe_edit *edit, struct fit *v)
{
    unsigned char axis[PE_HEAD_DIM_MAX];
    double w[PE_HEAD_DIM_MAX];
    *v = (struct fit){.n = 0};
    if (!pe_edit_model(d, edit, &v->model))
        return false;
    edit->is_hopeless = !pe_lengths_agree(v->model);
    if (edit->is_hopeless || !(v->reading = pe_read_waves(d, v->model)))
        return false;
    size_t waves = v->reading->n_waves;
    v->n = v->reading->n;
    v->n_axes = v->model->plan->seq.n_axes;
    if (v->n_axes < 2 || waves > PE_HEAD_DIM_MAX)
        return false;
    v->w = pe_edit_room(edit, v->n_axes * waves * sizeof *v->w);
    v->position = pe_edit_room(edit, v->n_axes * v->n * sizeof *v->position);
    if (edit->failed)
        return false;
    pe_wave_frequencies(v->model, waves, w);
    pe_wave_axes(v->model, waves, axis);
    for (size_t k = 0; k < waves; k++)
        v->w[axis[k] * waves + k] = w[k];
    return true;
}

static bool read_position(struct fit *v, unsigned axis, size_t i)
{
    struct pe_solved s = pe_shift_at(v->reading, v->w + axis * v->reading->n_waves, NULL, i, 1);
    double near = nearbyint(s.x);
    v->position[axis * v->n + i] = fabs(s.x - near) < 1e-3 + 8 * fmin(s.error, 0.03) ? near : s.x;
    return s.score >= SCORE_MIN;
}

/* ---- Positions as a grid ---- */

struct side {
    double n, first, step;
};

static bool is_near(double x, double y, double unit) { return fabs(x - y) <= 0.05 * fabs(unit); }

/* The side of a grid that goes on after so many rows, from the first n rows; false: it is none. */
static bool find_side(const double *p, size_t stride, size_t n, struct side *side)
{
    size_t length = 1;
    double step = stride < n ? p[stride] - p[0] : 0;
    while (length * stride < n && step != 0 && !is_near(p[length * stride], p[0], step))
        length++;
    *side = (struct side){(double)length, p[0], step};
    for (size_t i = 0; i < n; i++)
        if (!is_near(p[i], p[0] + step * (double)(i / stride % length), step != 0 ? step : 1))
            return false;
    return true;
}

/* The sides of a grid whose last axis is the fastest, from its first n rows; false: it is none. */
static bool find_sides(const struct fit *v, size_t n, struct side *sides)
{
    size_t stride = 1;
    for (unsigned a = v->n_axes; a-- > 0; stride *= (size_t)sides[a].n)
        if (!find_side(v->position + a * v->n, stride, n, &sides[a]))
            return false;
    return true;
}

/* Are some rows a grid? Phases of few waves are near those of some number, whatever they are. */
static bool begins_as_grid(struct fit *v)
{
    enum { FIRST_ROWS = 8 };
    struct side sides[PE_AXES_MAX];
    size_t n = v->n < FIRST_ROWS ? v->n : FIRST_ROWS;
    for (unsigned a = 0; a < v->n_axes; a++)
        for (size_t i = 0; i < n; i++)
            if (!read_position(v, a, i))
                return false;
    return find_sides(v, n, sides);
}

/* The last axis first: it has slow waves, which are solved at once, and most readings make no sense. */
static bool read_positions(struct fit *v)
{
    enum { TRIED_ROWS = 6 };
    bool are_whole = true;
    for (unsigned a = v->n_axes; a-- > 0;)
        for (size_t i = 1; i <= TRIED_ROWS; i++) {
            size_t row = i * (v->n - 1) / TRIED_ROWS;
            if (!read_position(v, a, row))
                return false;
            are_whole &= v->position[a * v->n + row] == nearbyint(v->position[a * v->n + row]);
        }
    if (!are_whole && !begins_as_grid(v))
        return false;
    for (unsigned a = 0; a < v->n_axes; a++)
        for (size_t i = 0; i < v->n; i++)
            if (!read_position(v, a, i) || (i % 64 == 0 && pe_is_cancelled()))
                return false;
    return true;
}

/* Are the coordinates of all axes those of a rule? Of one token there is no step. */
static bool follows(const struct fit *v, const struct side *sides, const char *coords)
{
    for (unsigned a = 0; a < v->n_axes; a++) {
        double n = sides[a].n, first = 0, step = 1;
        if (pe_same(coords, "one_based"))
            first = 1;
        if (pe_same(coords, "centered"))
            first = v->n_axes > 2 && a == 0 ? 0 : -(n - floor(n / 2));
        if (pe_same(coords, "normalized")) {
            step = 2 / n;
            first = (1 - n) / n;
        }
        if (pe_same(coords, "resized"))
            step = nearbyint(n * sides[a].step) / n;
        if (!is_near(sides[a].first, first, step) || (n > 1 && !is_near(sides[a].step, step, step)))
            return false;
    }
    return true;
}

static bool set_grid(struct pe_diagnosis *d, struct pe_edit *edit, const struct fit *v)
{
    static const char *const coords[] = {"index", "normalized", "one_based", "centered", "resized"};
    struct side sides[PE_AXES_MAX];
    double grid[PE_AXES_MAX], trained[PE_AXES_MAX];
    size_t i = 0;
    double n = 1;
    if (!find_sides(v, v->n, sides))
        return false;
    for (unsigned a = 0; a < v->n_axes; a++)
        n *= sides[a].n;
    while (i < sizeof coords / sizeof *coords && !follows(v, sides, coords[i]))
        i++;
    if (i == sizeof coords / sizeof *coords || n != (double)v->n)
        return false;
    for (unsigned a = 0; a < v->n_axes; a++) {
        grid[a] = sides[a].n;
        trained[a] = fmax(1, sides[a].n > 1 ? nearbyint(sides[a].n * sides[a].step) : 1);
    }
    pe_edit_remove_sequence(d, edit);
    pe_edit_set_reals(edit, "grid", grid, v->n_axes);
    pe_edit_set_word(edit, "coords", coords[i]);
    if (pe_same(coords[i], "resized"))
        pe_edit_set_reals(edit, "ref_grid", trained, v->n_axes);
    return true;
}

/* Integers that differ between the axes somewhere. */
static bool set_positions(struct pe_diagnosis *d, struct pe_edit *edit, const struct fit *v)
{
    struct pe_tensor list = {.dtype = PE_F64, .rank = 2, .shape = {v->n_axes, v->n}, .data = v->position};
    bool differs = false;
    for (size_t i = 0; i < v->n_axes * v->n; i++) {
        if (v->position[i] != nearbyint(v->position[i]) || fabs(v->position[i]) > PE_POSITION_MAX)
            return false;
        differs |= v->position[i] != v->position[i % v->n];
    }
    if (!differs)
        return false;
    pe_edit_remove_sequence(d, edit);
    pe_edit_set(edit, "positions", (struct pe_value){.kind = PE_ARRAY, .array = list});
    return true;
}

/* ---- How the axes share the channels of a head ---- */

static const struct rule {
    const char *channels; /* NULL: a list of frequencies for each axis */
    size_t n_axes;
    double widths[3]; /* of the axes, or sections in pairs; of none: equal parts */
    bool is_reversed; /* the last axis first */
} rules[] = {
    {"mrope", 3, {16, 24, 24}, false},             /* Qwen2-VL */
    {"mrope_interleaved", 3, {24, 20, 20}, false}, /* Qwen3-VL */
    {"mrope", 3, {8, 12, 12}, false},              /* GLM-4V */
    {"mrope_interleaved", 3, {11, 11, 10}, false}, /* Qwen3.5 */
    {"videorope", 3, {16, 24, 24}, false},
    {NULL, 2, {0}, false},
    {NULL, 2, {0}, true},
    {NULL, 3, {0}, false},
    {NULL, 3, {16, 56, 56}, false}, /* Flux */
    {NULL, 3, {44, 42, 42}, false}, /* Wan */
    {NULL, 3, {32, 48, 48}, false}, /* Lumina 2 */
    {NULL, 3, {16, 24, 24}, false}, /* CogVideoX */
    {"pixtral", 2, {0}, false},
    {"dinov3", 2, {0}, false},
};
enum { N_RULES = sizeof rules / sizeof *rules };

static size_t count_rules(const struct pe_diagnosis *d) { return pe_axes_are_forgotten(d, 1) ? N_RULES : 0; }

/* The widths of a rule; false: they are not those of the rotated channels. */
static bool widths_of(const struct rule *r, double width, double *widths)
{
    double sum = 0, each = 2 * floor(width / 2 / (double)r->n_axes);
    for (size_t a = 0; a < r->n_axes; a++) {
        widths[a] = r->widths[0] > 0 ? r->widths[a] : a ? each : width - each * (double)(r->n_axes - 1);
        sum += widths[a];
    }
    return r->widths[0] > 0 ? sum == (r->channels ? width / 2 : width) : each >= 2;
}

/* The first field that is set is where the finding points: the rule of channels, or the grid. */
static bool set_rule(struct pe_diagnosis *d, struct pe_edit *edit, const struct rule *r)
{
    double widths[3], head_dim = pe_edit_real(d, edit, "head_dim", 0);
    if (!widths_of(r, pe_edit_real(d, edit, "rotary_dim", head_dim), widths))
        return false;
    if (r->channels) {
        pe_edit_set_word(edit, "channels", r->channels);
        if (r->widths[0] > 0)
            pe_edit_set_reals(edit, "mrope_section", widths, r->n_axes);
        return true;
    }
    pe_edit_remove(edit, "grid");
    pe_edit_set_reals(edit, "axes_dim", widths, r->n_axes);
    if (r->is_reversed)
        pe_edit_set_reals(edit, "axis_order", (const double[]){1, 0}, 2);
    return true;
}

static bool axes_missing(struct pe_diagnosis *d, size_t i, struct pe_edit *edit)
{
    const struct rule *r = &rules[i];
    struct fit v = {.n = 0};
    edit->is_hopeless = !set_rule(d, edit, r);
    bool done = !edit->is_hopeless && open_fit(d, edit, &v) && read_positions(&v);
    pe_model_free(v.model);
    if (!done)
        return false;
    struct ids ids = {v.position, v.position + v.n, v.position + 2 * v.n, v.n};
    bool has_segments = r->channels && r->n_axes == 3;
    return (has_segments && set_segments(d, edit, &ids)) || set_grid(d, edit, &v) || set_positions(d, edit, &v);
}

/* It reads the positions, so no other fault of positions explains anything beside it. */
const struct pe_fault pe_fault_axes_missing = {
    FAULT_TEXT("axes_missing", "axes", AXES, 2, "axes forgotten",
               "The positions are on several axes; the configuration has one.",
               "The positions are on several axes; the configuration has one."),
    .role = PE_ROLE_AXES_FORGOTTEN,
    .schemes = "rope",
    .evidence = PE_EVIDENCE_BIT(TABLES) | PE_EVIDENCE_BIT(ROTATED),
    .count = count_rules,
    .apply = axes_missing,
    .n_fits = N_RULES,
    .fit_rank = 1,
    .combines_as = PE_KIND_POSITIONS};
