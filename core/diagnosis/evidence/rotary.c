/* Evidence of rotary schemes: the tables cos and sin, or q before and after rotation.
 *
 * A shape alone decides little: [n, 64] may be cosines of 64 pairs, or of 32 pairs twice, in either layout. So sizes
 * are fixed in this order: from the request; from the tensor itself, since expanded tables repeat each number in a
 * pattern that shows the layout; from the belief. A table may also be complex, a matrix for each pair, or cos and sin
 * in one tensor. All of them are predicted from the same plan in the form that the tensor has, so that nothing but the
 * form differs. */
#include "core/diagnosis/diagnosis.h"
#include "core/request/request.h"
#include "core/rotate/rotate_rows.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* ---- Sizes ---- */

enum pe_status pe_rotary_check_scheme(const struct pe_diagnosis *d, struct pe_failure *err)
{
    const struct pe_scheme *scheme = d->belief.inheritance->scheme;
    if (scheme->rotate)
        return PE_OK;
    return pe_fail(err, "/scheme",
                   "scheme \"%s\" does not rotate, so it explains no %s; schemes of the rotary family "
                   "do, as \"rope\"",
                   scheme->info.name, d->evidence.kind->tensors[0]);
}

enum pe_status pe_rotary_wrong_shape(const struct pe_diagnosis *d, const char *needed, struct pe_failure *err)
{
    char shape[96], pointer[24];
    const struct pe_tensor *t = &d->evidence.sent;
    pe_shape_print(t->shape, t->rank, shape, sizeof shape);
    snprintf(pointer, sizeof pointer, "/%s", d->evidence.kind->tensors[0]);
    return pe_fail(err, pointer, "%s has the shape %s; needed: %s", pointer + 1, shape, pe_text(needed));
}

static enum pe_status fix_len(struct pe_diagnosis *d, struct pe_failure *err)
{
    if (pe_belief_has_sequence(d))
        return PE_OK;
    return pe_belief_fix(d, "len", pe_evidence_length(&d->evidence), d->evidence.kind->tensors[0], err);
}

void pe_rotary_set_form(struct pe_diagnosis *d, const char *form)
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

static bool has_halves(const struct pe_evidence *e) { return e->row_len % 2 == 0 && is_doubled(e, e->row_len / 2, 1); }
static bool has_neighbours(const struct pe_evidence *e) { return e->row_len % 2 == 0 && is_doubled(e, 1, 2); }

/* Sines whose first channel of each pair has the minus of the rotation: [-s, s] beside [c, c]. */
static bool is_folded(struct pe_evidence *e, size_t apart)
{
    bool are_tables = e->kind->id == PE_OF_TABLES && e->n_tensors == 2 && !e->first_table && e->row_len % 2 == 0;
    double a[PE_HEAD_DIM_MAX], last = 0;
    bool holds = are_tables && e->row_len <= PE_HEAD_DIM_MAX;
    for (size_t t = 0; holds && t < 2; t++)
        for (uint64_t row = 0; holds && row < e->n_rows && row < 8; row++) {
            pe_evidence_read(e, t, e->n_rows - 1 - row, 0, (size_t)e->row_len, a);
            for (size_t i = 0; holds && i < e->row_len / 2; i++) {
                size_t at = apart == 1 ? 2 * i : i;
                holds = a[at + apart] == (t == 1 ? -a[at] : a[at]);
                last = t == 1 && a[at] != 0 ? a[at] : last;
            }
        }
    return holds && last != 0;
}

static void find_folded(struct pe_evidence *e)
{
    size_t half = (size_t)e->row_len / 2;
    e->folded = is_folded(e, half) ? half : is_folded(e, 1) ? 1 : 0;
}

/* Expanded tables show their layout, where they are not constant: no belief need state it. */
static void set_layout(struct pe_diagnosis *d)
{
    bool is_half = has_halves(&d->evidence);
    bool has_layout = pe_param_find(d->belief.inheritance->scheme->info.params, "layout") != NULL;
    if (has_layout && !pe_belief_given(d, "layout") && is_half != has_neighbours(&d->evidence))
        pe_belief_set(d, "layout", (struct pe_value){.kind = PE_STRING, .string = is_half ? "half" : "interleaved"});
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
            pe_fill(plan, pe_evidence_table(e, t), row % plan->outputs[0].n_rows * e->row_len, (size_t)e->row_len,
                    expected);
            for (size_t j = 0; j < e->row_len; j++) {
                largest = fmax(largest, fabs(expected[j]));
                error = fmax(error, fabs(found[j] - expected[j]));
            }
        }
    return error <= 0.01 * largest;
}

/* Angles and frequencies are no numbers of the plan. */
static bool looks_alike(const struct pe_evidence *e, const struct pe_plan *plan)
{
    if (e->kind->id == PE_OF_TABLES)
        return has_numbers(e, plan);
    return e->kind->id == PE_OF_LADDER || !(has_halves(e) || has_neighbours(e));
}

/* Does the belief give these tables with the sizes it has by default? A share of head_dim is no size, and the table has
 * no other that head_dim could follow from, so there the shape is enough. */
static bool fits_as_it_is(struct pe_diagnosis *d)
{
    const struct pe_evidence *e = &d->evidence;
    bool is_share = pe_belief_given(d, "partial_rotary_factor") && !pe_belief_given(d, "head_dim");
    struct pe_plan *plan = pe_belief_try(d, e->tensors[0].shape[e->tensors[0].rank - 2]);
    bool fits = plan && pe_evidence_has_rows(e, plan->outputs[0].n_rows) && plan->outputs[0].row_len == e->row_len &&
                (is_share || looks_alike(e, plan));
    pe_plan_free(plan);
    return fits;
}

/* The width of a head that a config.json gives where its head_dim is not read; NaN: it has none. */
static double quotient_of(const struct pe_diagnosis *d)
{
    const struct pe_value *hf = pe_field_find(d->request->fields, d->request->n_fields, "hf_config");
    const struct pe_value *inner =
        hf && hf->kind == PE_OBJECT ? pe_field_find(hf->object.fields, hf->object.n, "text_config") : NULL;
    const struct pe_value *config = inner && inner->kind == PE_OBJECT ? inner : hf;
    if (!config || config->kind != PE_OBJECT)
        return (double)NAN;
    const struct pe_value *hidden = pe_field_find(config->object.fields, config->object.n, "hidden_size"),
                          *heads = pe_field_find(config->object.fields, config->object.n, "num_attention_heads");
    return hidden && heads ? pe_value_number(hidden) / pe_value_number(heads) : (double)NAN;
}

static enum pe_status wrong_width(const struct pe_diagnosis *d, double width, struct pe_failure *err)
{
    const struct pe_evidence *e = &d->evidence;
    const char *pointer = pe_belief_given(d, "rotary_dim") ? "/rotary_dim"
                          : pe_belief_given(d, "head_dim") ? "/head_dim"
                                                           : "/axes_dim";
    double len = (double)pe_evidence_width(e);
    if (e->view.form && quotient_of(d) == 2 * len)
        return pe_fail(
            err, pointer,
            "the configuration rotates %.0f channels, but %s has %.0f pairs: %.0f channels are hidden_size / "
            "num_attention_heads, so head_dim was not read; needed: %.0f pairs",
            width, pe_evidence_name(e, 0), len, 2 * len, width / 2);
    if (e->view.form)
        return pe_fail(err, pointer, "the configuration rotates %.0f channels, but %s has %.0f pairs; needed: %.0f",
                       width, pe_evidence_name(e, 0), len, width / 2);
    return pe_fail(err, pointer,
                   "the configuration rotates %.0f channels, but %s has %.0f columns; needed: %.0f (pairs) or %.0f "
                   "(expanded)",
                   width, pe_evidence_name(e, 0), len, width / 2, width);
}

/* So many channels are rotated as the tensor has. false: those of several axes are not one number. */
static bool take_width(struct pe_diagnosis *d, double width, double found)
{
    const struct pe_value *head_dim = pe_belief_given(d, "head_dim");
    bool has_width = pe_belief_given(d, "rotary_dim") != NULL;
    double of_head = head_dim && head_dim->kind == PE_INTEGER ? (double)head_dim->integer : 0;
    double needed = has_width ? found : of_head * found / width;
    if (pe_belief_given(d, "axes_dim") || pe_belief_given(d, "mrope_section") || needed != floor(needed) ||
        (has_width && of_head != width && found > of_head) || width > PE_HEAD_DIM_MAX || of_head > PE_HEAD_DIM_MAX)
        return false;
    if (has_width && of_head == width) { /* all of a head, in two fields */
        pe_belief_replace(d, "head_dim", (struct pe_value){.kind = PE_INTEGER, .integer = (int64_t)found});
        of_head = found;
    }
    pe_sizes_take_width(d, has_width ? "rotary_dim" : "head_dim", (uint64_t)needed, (uint64_t)found, (uint64_t)width);
    return true;
}

static enum pe_status choose_form(struct pe_diagnosis *d, struct pe_failure *err)
{
    const struct pe_evidence *e = &d->evidence;
    const struct pe_value *form = pe_belief_given(d, "form");
    double width = believed_width(d);
    find_folded(&d->evidence);
    if (fits_as_it_is(d)) {
        pe_rotary_set_form(d, "pairs");
        return PE_OK;
    }
    d->evidence.is_turned = is_turned(e, width);
    double len = (double)pe_evidence_width(e);
    bool states = form && form->kind == PE_STRING;
    bool expanded = states      ? pe_same(form->string, "expanded")
                    : width > 0 ? width == len
                                : has_halves(e) || has_neighbours(e);
    if (states && !pe_is_among("pairs|expanded", form->string))
        return pe_fail(err, "/form", "form is \"%s\"; allowed for cos and sin: pairs, expanded", form->string);
    if (width > 0 && width != (expanded ? len : 2 * len)) {
        if (!take_width(d, width, expanded ? len : 2 * len))
            return wrong_width(d, width, err);
        width = expanded ? len : 2 * len;
    }
    pe_rotary_set_form(d, expanded ? "expanded" : "pairs");
    if (expanded)
        set_layout(d);
    uint64_t rotated = (expanded ? 1 : 2) * pe_evidence_width(e);
    return width > 0 && has_room(d, width) ? PE_OK : pe_belief_fix(d, "head_dim", rotated, pe_evidence_name(e, 0), err);
}

/* A belief about the whole states `complex` or `matrix`, and cos and sin are its pairs. */
static enum pe_status set_part(struct pe_diagnosis *d, const char *form_of_all, struct pe_failure *err)
{
    const struct pe_value *form = pe_belief_given(d, "form");
    const struct pe_value pairs = {.kind = PE_STRING, .string = "pairs"};
    bool fits =
        !form || (form->kind == PE_STRING && (pe_same(form->string, form_of_all) || pe_same(form->string, "pairs")));
    if (!fits)
        return pe_fail(err, "/form", "%s has the form \"%s\"; leave out form, or state it so",
                       pe_evidence_name(&d->evidence, 0), form_of_all);
    pe_belief_replace(d, "form", pairs);
    return PE_OK;
}

/* [n, columns]; of a batch [batch, n, columns], where the last axis that is longer than 1 counts positions. */
static bool fold_rows(struct pe_evidence *e)
{
    const struct pe_tensor *t = &e->tensors[0];
    unsigned axis = t->rank - 1;
    if (t->rank < 2 || pe_evidence_squeeze(e, 2))
        return t->rank > 1;
    while (t->shape[--axis] == 1)
        continue; /* two of them are longer */
    pe_evidence_fold(e, 3, (uint64_t[]){e->n_rows / t->shape[axis], t->shape[axis], e->row_len});
    return true;
}

enum pe_status pe_tables_read(struct pe_diagnosis *d, struct pe_failure *err)
{
    enum pe_status status = pe_rotary_check_scheme(d, err);
    if (status)
        return status;
    if (!fold_rows(&d->evidence) || pe_evidence_width(&d->evidence) > PE_HEAD_DIM_MAX)
        return pe_rotary_wrong_shape(d, "[n, rotary_dim/2] (pairs) or [n, rotary_dim] (expanded)", err);
    if (d->evidence.view.form)
        status = set_part(d, d->evidence.view.form, err);
    if (!status)
        status = choose_form(d, err);
    return status ? status : fix_len(d, err);
}

static void fill_tables(const struct pe_model *m, size_t t, uint64_t row, uint64_t col0, size_t n, double *out)
{
    uint64_t at, i = pe_model_position(m, row);
    const struct pe_plan *plan = pe_model_plan_at(m, i, &at);
    if (m->transforms.recipe) /* the columns are the cosines'; sines are a quarter behind */
        pe_wave_tables(m, t, i, col0, n, out);
    else if (plan)
        pe_fill(plan, t, at * pe_plan_output(plan, t)->row_len + col0, n, out);
    for (size_t j = 0; !plan && j < n; j++)
        out[j] = (double)INFINITY;
    if (m->transforms.turn == PE_TURN_COSINES && t == 1)
        memset(out, 0, n * sizeof *out);
}

void pe_tables_phases(const struct pe_model *m, size_t t, uint64_t row, uint64_t col0, size_t n, double *out)
{
    (void)t;
    if (m->columns)
        pe_wave_phases(m, pe_model_position(m, row), col0, n, out);
}

const struct pe_evidence_kind pe_evidence_tables = {.id = PE_OF_TABLES,
                                                    .tensors = {"cos", "sin"},
                                                    .scheme = "rope",
                                                    .outputs = {"cos", "sin"},
                                                    .read = pe_tables_read,
                                                    .fill = fill_tables,
                                                    .phases = pe_tables_phases};

/* One of both. The plan has both, so that sines may stand where cosines belong. */
#define LONE(name, tensor)                                                                                             \
    const struct pe_evidence_kind pe_evidence_##name = {.id = PE_OF_TABLES,                                            \
                                                        .tensors = {tensor},                                           \
                                                        .scheme = "rope",                                              \
                                                        .outputs = {"cos", "sin"},                                     \
                                                        .read = pe_tables_read,                                        \
                                                        .fill = fill_tables,                                           \
                                                        .phases = pe_tables_phases}
LONE(cosines, "cos");
LONE(sines, "sin");

bool pe_evidence_is_lone(const struct pe_evidence *e)
{
    return e->kind == &pe_evidence_cosines || e->kind == &pe_evidence_sines;
}

/* The same in one tensor. */
#define ONE_TENSOR(name, read_)                                                                                        \
    const struct pe_evidence_kind pe_evidence_##name = {.id = PE_OF_TABLES,                                            \
                                                        .tensors = {#name},                                            \
                                                        .scheme = "rope",                                              \
                                                        .outputs = {"cos", "sin"},                                     \
                                                        .view = pe_view_##name,                                        \
                                                        .read = (read_),                                               \
                                                        .fill = fill_tables,                                           \
                                                        .phases = pe_tables_phases}
ONE_TENSOR(freqs_cis, pe_tables_read);
ONE_TENSOR(cos_sin, pe_tables_read);
ONE_TENSOR(matrix, pe_matrix_read);

/* ---- q and q_out, k and k_out ---- */
