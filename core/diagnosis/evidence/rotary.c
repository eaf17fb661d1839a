/* Evidence of rotary schemes: the tables cos and sin, or q before and after rotation. */
#include "core/diagnosis/model/recipe.h"
#include "core/request/operand.h"
#include "core/rotate/rotate_rows.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* ---- Sizes ---- */

static enum pe_status check_scheme(const struct pe_diagnosis *d, struct pe_error *err)
{
    const struct pe_scheme *scheme = d->belief.inheritance->scheme;
    if (scheme->rotate)
        return PE_OK;
    return pe_fail(err, "/scheme",
                   "scheme \"%s\" does not rotate, so it explains no %s; schemes of the rotary family "
                   "do, as \"rope\"",
                   scheme->info.name, d->evidence.kind->tensors[0]);
}

static enum pe_status wrong_shape(const struct pe_diagnosis *d, const char *needed, struct pe_error *err)
{
    char shape[96], pointer[24];
    const struct pe_tensor *t = &d->evidence.tensors[0];
    pe_shape_print(t->shape, t->rank, shape, sizeof shape);
    snprintf(pointer, sizeof pointer, "/%s", d->evidence.kind->tensors[0]);
    return pe_fail(err, pointer, "%s has the shape %s; needed: %s", pointer + 1, shape, needed);
}

static enum pe_status fix_len(struct pe_diagnosis *d, struct pe_error *err)
{
    if (pe_belief_has_sequence(d))
        return PE_OK;
    return pe_belief_fix(d, "len", pe_evidence_length(&d->evidence), d->evidence.kind->tensors[0], err);
}

static void set_form(struct pe_diagnosis *d, const char *form)
{
    if (!pe_belief_given(d, "form"))
        pe_belief_set(d, "form", (struct pe_value){.kind = PE_STRING, .string = form});
}

/* ---- cos and sin ---- */

/* rotary_dim as the belief gives it; 0: it does not. */
static double believed_width(const struct pe_diagnosis *d)
{
    const struct pe_value *r = pe_belief_given(d, "rotary_dim"), *h = pe_belief_given(d, "head_dim");
    const struct pe_value *share = pe_belief_given(d, "partial_rotary_factor"), *axes = pe_belief_given(d, "axes_dim");
    double sum = 0, head_dim = h && h->kind == PE_INTEGER ? (double)h->integer : 0;
    if (r && r->kind == PE_INTEGER)
        return (double)r->integer;
    if (head_dim > 0 && share && share->kind == PE_REAL)
        return floor(head_dim * share->real);
    for (uint64_t i = 0; axes && axes->kind == PE_ARRAY && i < axes->array.shape[0]; i++)
        sum += pe_real_at(&(struct pe_reals){axes->array, axes->array.shape[0]}, i);
    return sum > 0 ? sum : head_dim;
}

/* Do so many rotated channels fit into a head, of the belief or of the usual size? */
static bool has_room(const struct pe_diagnosis *d, double width)
{
    const struct pe_param *row = pe_param_find(d->belief.inheritance->scheme->info.params, "head_dim");
    return pe_belief_given(d, "head_dim") || !row || width <= row->fallback;
}

/* Do rows of cos and sin state each number twice, as expanded tables do? Columns j and j + apart, in steps of step. */
static bool is_doubled(const struct pe_evidence *e, size_t apart, size_t step)
{
    double a, b;
    for (size_t t = 0; t < e->n_tensors; t++)
        for (uint64_t row = 0; row < e->n_rows && row < 8; row++)
            for (size_t i = 0; i < e->row_len / 2; i++) {
                pe_evidence_read(e, t, e->n_rows - 1 - row, i * step, 1, &a);
                pe_evidence_read(e, t, e->n_rows - 1 - row, i * step + apart, 1, &b);
                if (a != b)
                    return false;
            }
    return true;
}

static bool looks_expanded(const struct pe_evidence *e)
{
    return e->row_len % 2 == 0 && (is_doubled(e, e->row_len / 2, 1) || is_doubled(e, 1, 2));
}

/* Is the believed width, or half of it, the other axis only? */
static bool is_turned(const struct pe_evidence *e, double width)
{
    const struct pe_tensor *t = &e->tensors[0];
    double rows = (double)t->shape[t->rank - 2], columns = (double)t->shape[t->rank - 1];
    return width > 0 && width != columns && width != 2 * columns && (width == rows || width == 2 * rows);
}

/* Does the plan give the first rows, but for rounding and angles in f32? */
static bool has_numbers(const struct pe_evidence *e, const struct pe_plan *plan)
{
    enum { ROWS = 8 };
    double found[PE_HEAD_DIM_MAX], expected[PE_HEAD_DIM_MAX], largest = 0, error = 0;
    for (size_t t = 0; t < e->n_tensors; t++)
        for (uint64_t row = 0; row < e->n_rows && row < ROWS; row++) {
            pe_evidence_read(e, t, row, 0, (size_t)e->row_len, found);
            pe_fill(plan, t, row * e->row_len, (size_t)e->row_len, expected);
            for (size_t j = 0; j < e->row_len; j++) {
                largest = fmax(largest, fabs(expected[j]));
                error = fmax(error, fabs(found[j] - expected[j]));
            }
        }
    return error <= 0.01 * largest;
}

/* Does the belief give these tables with the sizes it has by default? A share of head_dim is no size, and the table has
 * no other that head_dim could follow from, so there the shape is enough. */
static bool fits_as_it_is(struct pe_diagnosis *d)
{
    const struct pe_evidence *e = &d->evidence;
    bool is_share = pe_belief_given(d, "partial_rotary_factor") && !pe_belief_given(d, "head_dim");
    struct pe_plan *plan = pe_belief_try(d, e->tensors[0].shape[e->tensors[0].rank - 2]);
    bool fits = plan && plan->outputs[0].n_rows == e->n_rows && plan->outputs[0].row_len == e->row_len &&
                (is_share || has_numbers(e, plan));
    pe_plan_free(plan);
    return fits;
}

static enum pe_status choose_form(struct pe_diagnosis *d, struct pe_error *err)
{
    const struct pe_evidence *e = &d->evidence;
    const struct pe_value *form = pe_belief_given(d, "form");
    double width = believed_width(d);
    if (fits_as_it_is(d)) {
        set_form(d, "pairs");
        return PE_OK;
    }
    d->evidence.is_turned = is_turned(e, width);
    double len = (double)pe_evidence_width(e);
    bool states = form && form->kind == PE_STRING;
    bool expanded = states ? pe_same(form->string, "expanded") : width > 0 ? width == len : looks_expanded(e);
    if (states && !pe_is_among("pairs|expanded", form->string))
        return pe_fail(err, "/form", "form is \"%s\"; cos and sin come as pairs or expanded", form->string);
    if (width > 0 && width != (expanded ? len : 2 * len))
        return pe_fail(err,
                       pe_belief_given(d, "rotary_dim") ? "/rotary_dim"
                       : pe_belief_given(d, "head_dim") ? "/head_dim"
                                                        : "/axes_dim",
                       "the configuration rotates %.0f channels, but cos has %.0f columns; needed: %.0f (pairs) or "
                       "%.0f (expanded)",
                       width, len, width / 2, width);
    set_form(d, expanded ? "expanded" : "pairs");
    uint64_t rotated = (expanded ? 1 : 2) * pe_evidence_width(e);
    return width > 0 && has_room(d, width) ? PE_OK : pe_belief_fix(d, "head_dim", rotated, "cos", err);
}

static enum pe_status read_tables(struct pe_diagnosis *d, struct pe_error *err)
{
    const struct pe_tensor *t = &d->evidence.tensors[0];
    enum pe_status status = check_scheme(d, err);
    bool is_table = t->rank >= 2 && t->shape[t->rank - 1] <= PE_HEAD_DIM_MAX;
    for (unsigned a = 0; is_table && a + 2 < t->rank; a++)
        is_table = t->shape[a] == 1;
    if (status)
        return status;
    if (!is_table)
        return wrong_shape(d, "[n, rotary_dim/2] (pairs) or [n, rotary_dim] (expanded)", err);
    status = choose_form(d, err);
    return status ? status : fix_len(d, err);
}

static void fill_tables(const struct pe_model *m, size_t t, uint64_t row, uint64_t col0, size_t n, double *out)
{
    if (m->transforms.recipe) /* the columns are the cosines'; sines are a quarter behind */
        pe_recipe_tables(m, t, row, col0, n, out);
    else
        pe_fill(m->plan, t, row * pe_plan_output(m->plan, t)->row_len + col0, n, out);
}

static void phases_of_tables(const struct pe_model *m, size_t t, uint64_t row, uint64_t col0, size_t n, double *out)
{
    (void)t;
    if (m->columns)
        pe_wave_phases(m, row, col0, n, out);
}

const struct pe_evidence_kind pe_evidence_tables = {.id = PE_OF_TABLES,
                                                    .tensors = {"cos", "sin"},
                                                    .scheme = "rope",
                                                    .outputs = {"cos", "sin"},
                                                    .read = read_tables,
                                                    .fill = fill_tables,
                                                    .phases = phases_of_tables};

/* ---- q and q_out ---- */

static enum pe_status read_rotated(struct pe_diagnosis *d, struct pe_error *err)
{
    const struct pe_tensor *t = &d->evidence.tensors[0];
    const struct pe_value *form = pe_belief_given(d, "form");
    enum pe_status status = check_scheme(d, err);
    if (status)
        return status;
    if (t->rank < 2 || t->rank > 4 || t->shape[t->rank - 1] > PE_HEAD_DIM_MAX)
        return wrong_shape(d, "[batch, heads, n, head_dim], where leading axes may be missing, head_dim at most 4096",
                           err);
    status = pe_belief_fix(d, "head_dim", t->shape[t->rank - 1], "q_out", err);
    if (!status && form && !(form->kind == PE_STRING && pe_same(form->string, "concat")))
        return pe_fail(err, "/form", "form is for tables; leave it out with q and q_out");
    set_form(d, "concat");
    return status ? status : fix_len(d, err);
}

/* The rotation, the row of the table that was computed last, and the pair of each channel. */
struct rotor {
    struct pe_row_rotation turn;
    uint64_t last; /* its position number + 1; 0: none */
    double *row, *in;
    int *pair; /* [head_dim], -1: not rotated */
};

static void find_pairs(const struct pe_rotation *r, int *pair)
{
    for (size_t j = 0; j < r->head_dim; j++)
        pair[j] = -1;
    for (size_t b = 0; b < r->n_blocks; b++)
        for (size_t i = 0; i < r->blocks[b].n_pairs; i++) {
            const struct pe_rotation_block *block = &r->blocks[b];
            size_t c = block->pair0 + i, at = r->offset + block->first + i * block->step;
            pair[at] = pair[at + block->partner] = (int)c;
        }
    for (size_t c = 0; r->to_half && c < r->n_pairs; c++)
        pair[r->offset + c] = pair[r->offset + r->n_pairs + c] = (int)c;
    for (size_t i = 0; r->is_tiled && i < 2 * r->n_pairs; i++)
        pair[r->offset + i] = (int)(i % r->n_pairs);
}

static enum pe_status prepare_rotor(struct pe_model *m, struct pe_error *err)
{
    size_t d = (size_t)m->d->evidence.row_len;
    struct rotor *r = m->state = calloc(1, sizeof *r + (m->n_columns + 2 * d) * sizeof(double) + d * sizeof(int));
    if (!r)
        return pe_no_memory(err);
    m->plan->scheme->rotate(m->plan, &r->turn.rotation, NULL);
    r->row = (double *)(void *)(r + 1);
    r->in = r->row + m->n_columns;
    r->pair = (int *)(void *)(r->in + 2 * d);
    if (r->turn.rotation.head_dim != d || !m->columns)
        return pe_fail(err, "", "the width differs");
    find_pairs(&r->turn.rotation, r->pair);
    return PE_OK;
}

void pe_rotated_channels(const struct pe_model *m, uint64_t col0, size_t n, double *out)
{
    const struct rotor *r = m->state;
    for (size_t j = 0; j < n; j++)
        out[j] = r->pair[col0 + j] >= 0;
}

static const double *row_at(const struct pe_model *m, uint64_t i)
{
    struct rotor *r = m->state;
    if (m->kept)
        return m->kept + i * m->n_columns;
    if (r->last != i + 1)
        pe_rotary_row(m, i, r->row);
    r->last = i + 1;
    return r->row;
}

static void fill_rotated(const struct pe_model *m, size_t t, uint64_t row, uint64_t col0, size_t n, double *out)
{
    struct rotor *r = m->state;
    size_t d = (size_t)m->d->evidence.row_len;
    double *whole = n == d ? out : r->in + d;
    (void)t;
    pe_evidence_input(&m->d->evidence, row, r->in);
    pe_rotate_row(&r->turn, row_at(m, row % m->d->belief.n), PE_F64, r->in, PE_F64, whole);
    if (whole != out)
        memcpy(out, whole + col0, n * sizeof *out);
}

static void phases_of_rotated(const struct pe_model *m, size_t t, uint64_t row, uint64_t col0, size_t n, double *out)
{
    const struct rotor *r = m->state;
    double of_pairs[PE_HEAD_DIM_MAX / 2];
    (void)t;
    pe_wave_phases(m, row % m->d->belief.n, 0, m->n_columns / 2, of_pairs);
    for (size_t j = 0; j < n; j++)
        out[j] = r->pair[col0 + j] >= 0 ? of_pairs[r->pair[col0 + j]] : 0;
}

const struct pe_evidence_kind pe_evidence_rotated = {.id = PE_OF_ROTATED,
                                                     .tensors = {"q_out"},
                                                     .input = "q",
                                                     .scheme = "rope",
                                                     .outputs = {"cos_sin"},
                                                     .read = read_rotated,
                                                     .prepare = prepare_rotor,
                                                     .fill = fill_rotated,
                                                     .phases = phases_of_rotated};
