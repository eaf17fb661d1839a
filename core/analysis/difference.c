/* difference: how far an entry's numbers are from those of the first entry, once both are rounded to the dtype of the
 * request, and whether both mean the same (verdict.c). Compared are the outputs that both have with the same shape and,
 * of rotary schemes, the rotated vector
 *
 *     rotated = R_p v,   v_j = 1 + j/head_dim
 *
 * which also distinguishes layouts. Both sides are computed block by block and never held whole. */
#include "core/analysis/analysis.h"

#include <stdio.h>
#include <string.h>

/* ---- Tables ---- */

/* What is compared: the outputs that both sides have with the same name and shape, and the rotated vector. */

static bool is_alike(const struct pe_output *a, const struct pe_output *b)
{
    bool is_same = pe_same(a->name, b->name) && a->rank == b->rank;
    for (unsigned axis = 0; is_same && axis < a->rank; axis++)
        is_same = a->shape[axis] == b->shape[axis];
    return is_same;
}

/* Positions are rows: of a bias its queries, of channels first the last axes. */
static void set_rows(const struct pe_plan *plan, struct pe_difference_table *t)
{
    t->heads_first = t->rank == 3 && pe_same(t->name, "bias");
    t->rows = t->rank ? t->shape[t->heads_first] : 1;
    t->inner = t->heads_first ? t->shape[2] : t->n / t->rows;
    if (pe_absolute_channels_first(plan) && t->rank > 1) {
        t->rows = t->n / t->shape[0];
        t->inner = 1;
    }
}

static void add_output(const struct pe_plan *const plans[2], size_t i, size_t j, struct pe_difference_table *tables,
                       size_t *n)
{
    const struct pe_output *a = pe_plan_output(plans[0], i), *b = pe_plan_output(plans[1], j);
    if (*n == PE_DIFFERENCE_TABLES_MAX || !is_alike(a, b))
        return;
    struct pe_difference_table *t = &tables[(*n)++];
    *t = (struct pe_difference_table){.name = b->name,
                                      .output = {i, j},
                                      .rank = b->rank,
                                      .is_integer = !pe_dtype_is_real(a->dtype) && !pe_dtype_is_real(b->dtype)};
    for (unsigned axis = 0; axis < t->rank; axis++)
        t->shape[axis] = b->shape[axis];
    t->n = b->n_rows * b->row_len;
    set_rows(plans[1], t);
}

static void add_rotated(const struct pe_plan *const plans[2], struct pe_difference_table *tables, size_t *n)
{
    struct pe_rotation a, b;
    if (!plans[0]->scheme->rotate || !plans[1]->scheme->rotate)
        return;
    plans[0]->scheme->rotate(plans[0], &a, NULL);
    plans[1]->scheme->rotate(plans[1], &b, NULL);
    uint64_t rows = plans[1]->seq.k[0].n;
    if (a.head_dim == b.head_dim && plans[0]->seq.k[0].n == rows)
        tables[(*n)++] = (struct pe_difference_table){.name = "rotated",
                                                      .output = {PE_DIFFERENCE_ROTATED, PE_DIFFERENCE_ROTATED},
                                                      .rank = 2,
                                                      .shape = {rows, b.head_dim},
                                                      .n = rows * b.head_dim,
                                                      .inner = b.head_dim,
                                                      .rows = rows};
}

size_t pe_difference_tables(const struct pe_analysis *study, const struct pe_subject *subject,
                            struct pe_difference_table *tables)
{
    const struct pe_plan *const plans[2] = {study->subjects[0].plan, subject->plan};
    size_t n = 0;
    for (size_t j = 0; j < pe_plan_n_outputs(plans[1]); j++)
        for (size_t i = 0; i < pe_plan_n_outputs(plans[0]); i++)
            add_output(plans, i, j, tables, &n);
    add_rotated(plans, tables, &n);
    return n;
}

/* ---- The metric ---- */

/* ---- The witness ---- */

/* A bias has the query's axis first, like its rows. */
static void put_index(struct pe_node *out, const struct pe_difference_table *t, uint64_t element)
{
    int64_t index[PE_RANK_MAX] = {0};
    for (unsigned axis = t->rank; axis-- > 0;) {
        index[axis] = (int64_t)(element % t->shape[axis]);
        element /= t->shape[axis];
    }
    if (t->heads_first) {
        int64_t head = index[0];
        index[0] = index[1];
        index[1] = head;
    }
    pe_put_integers(out, "index", index, t->rank);
}

static void put_witness(struct pe_difference *w, struct pe_node *out, double value)
{
    double gap = isinf(value) ? value : value - pe_tie(value, w->largest);
    size_t i = 0;
    if (!(value > PE_NOISE * w->largest)) {
        pe_put_null(out, "witness");
        return;
    }
    while (w->most[i] < gap)
        i++;
    struct pe_node *witness = pe_put_object(out, "witness");
    pe_put_string(witness, "output", w->tables[i].name);
    put_index(witness, &w->tables[i], pe_difference_find(w, i, gap));
}

/* ---- The answer ---- */

static void put_first(const struct pe_difference *w, struct pe_node *out, double tolerance)
{
    size_t table = 0;
    uint64_t first = UINT64_MAX;
    for (size_t i = 0; i < w->n_tables; i++)
        for (uint64_t row = 0; row < w->tables[i].rows && row < first; row++)
            if (w->curves[i][row] > tolerance) {
                first = row;
                table = i;
            }
    if (first == UINT64_MAX) {
        pe_put_null(out, "first");
        return;
    }
    struct pe_node *node = pe_put_object(out, "first");
    pe_put_string(node, "output", w->tables[table].name);
    pe_put_integer(node, "row", (int64_t)first);
}

static const char *const details[] = {
    "Compared in {dtype}, numbers are at most {value} apart, first in {witness.output}; a share of {equal} is equal.",
    "Compared in {dtype}, all numbers are equal but for rounding: they are at most {value} apart.",
    "No output has the same name and shape in both, so nothing is compared.",
};

static bool have_positions(const struct pe_analysis *study, const struct pe_subject *subject)
{
    return !pe_same(study->subjects[0].plan->scheme->info.name, "none") ||
           !pe_same(subject->plan->scheme->info.name, "none");
}

/* The verdict and, of two dialects, its sentence; that of the numbers, if they add something, comes after it. */
static void put_verdict(const struct pe_analysis *study, const struct pe_subject *subject,
                        const struct pe_difference *w, struct pe_node *out, const char *detail)
{
    char patterns[PE_N_LANGS][PE_DETAIL_MAX];
    pe_difference_put_verdict(study, w, subject, out, patterns);
    for (enum pe_lang lang = 0; lang < PE_N_LANGS; lang++) {
        size_t n = strlen(patterns[lang]);
        if (n && (w->n_tables ? w->n_equal == w->n : !have_positions(study, subject)))
            continue;
        snprintf(patterns[lang] + n, sizeof patterns[lang] - n, "%s%s", n && lang == PE_EN ? " " : "",
                 pe_text_in(lang, detail));
    }
    pe_put_details(out, study->request->lang, (const char *const[]){patterns[PE_EN], patterns[PE_ZH]});
}

static void put_nothing(const struct pe_analysis *study, const struct pe_subject *subject,
                        const struct pe_difference *w, struct pe_node *out)
{
    static const char *const names[] = {"value", "witness", "max_ulp", "equal", "first"};
    for (size_t i = 0; i < sizeof names / sizeof names[0]; i++)
        pe_put_null(out, names[i]);
    pe_put_list(out, "compared");
    put_verdict(study, subject, w, out, details[2]);
}

/* Steps of f64 may be more than an integer of JSON holds exactly. */
static void put_steps(struct pe_node *out, uint64_t steps)
{
    if (steps < UINT64_C(1) << 53)
        pe_put_integer(out, "max_ulp", (int64_t)steps);
    else
        pe_put_real(out, "max_ulp", (double)steps);
}

static void put(const struct pe_analysis *study, const struct pe_subject *subject, struct pe_difference *w,
                struct pe_node *out)
{
    double value = 0;
    for (size_t i = 0; i < w->n_tables; i++)
        value = fmax(value, w->most[i]);
    pe_put_real(out, "value", value);
    put_witness(w, out, value);
    put_steps(out, w->steps);
    pe_put_real(out, "equal", (double)w->n_equal / (double)w->n);
    put_first(w, out, study->fields.tolerance);
    struct pe_node *compared = pe_put_list(out, "compared");
    for (size_t i = 0; i < w->n_tables; i++)
        pe_put_string(compared, NULL, w->tables[i].name);
    pe_put_string(out, "dtype", pe_dtype_name(w->dtype));
    put_verdict(study, subject, w, out, details[pe_node_child(out, "witness") == NULL]);
}

/* The tensor is as long as the first table has rows. */
static void fill_tensor(const struct pe_difference *w, uint64_t n, double *tensor)
{
    for (uint64_t row = 0; tensor && row < n; row++) {
        tensor[row] = 0;
        for (size_t i = 0; i < w->n_tables; i++)
            if (row < w->tables[i].rows)
                tensor[row] = fmax(tensor[row], w->curves[i][row]);
    }
}

/* ---- The metric ---- */

static void shape(const struct pe_analysis *study, const struct pe_subject *subject, size_t i, unsigned *rank,
                  uint64_t *shape)
{
    struct pe_difference_table tables[PE_DIFFERENCE_TABLES_MAX + 1];
    (void)i;
    *rank = 1;
    shape[0] = pe_difference_tables(study, subject, tables) ? tables[0].rows : 0;
}

static enum pe_status compute(struct pe_analysis *study, struct pe_subject *subject, struct pe_node *out,
                              struct pe_failure *err)
{
    struct pe_difference w;
    unsigned rank;
    uint64_t n;
    enum pe_status status = pe_difference_init(&w, study, subject, err);
    for (size_t i = 0; !status && i < w.n_tables; i++)
        pe_difference_compare(&w, i);
    if (!status && w.n_tables)
        put(study, subject, &w, out);
    else if (!status)
        put_nothing(study, subject, &w, out);
    shape(study, subject, 0, &rank, &n);
    if (!status)
        fill_tensor(&w, n, pe_study_tensor(study, subject, "difference"));
    pe_difference_drop(&w);
    return status;
}

static bool applies(const struct pe_analysis *study, const struct pe_subject *subject)
{
    (void)study;
    return subject->index > 0;
}

/* The numbers of one side. A rotated row needs a row of cosines and sines. */
static double side_work(const struct pe_subject *subject, const struct pe_difference_table *t, size_t side)
{
    double n = (double)t->n;
    if (t->output[side] != PE_DIFFERENCE_ROTATED)
        return pe_output_work(subject->plan, t->output[side]);
    return pe_numbers_work(subject, n) + pe_scale_work(subject, n / 2);
}

static void cost(const struct pe_analysis *study, const struct pe_subject *subject, struct pe_metric_cost *cost)
{
    struct pe_difference_table tables[PE_DIFFERENCE_TABLES_MAX + 1];
    size_t n = pe_difference_tables(study, subject, tables);
    for (size_t i = 0; i < n; i++)
        cost->work +=
            8 * (double)tables[i].n + side_work(&study->subjects[0], &tables[i], 0) + side_work(subject, &tables[i], 1);
    cost->bytes = pe_difference_bytes(tables, n);
    if (subject->plan->scheme->rotate)
        cost->bytes += 2 * pe_turn_bytes(subject->plan);
}

static const struct pe_output_row tensors[] = {
    PE_OUTPUT("difference", "n", 1, PE_F64, false, NULL, "difference by row",
              "the largest difference of each row (of a bias: of each query) from the first configuration"),
    {.name = NULL},
};

const struct pe_metric pe_metric_difference;
const struct pe_metric pe_metric_difference = {
    .info =
        {
            .name = "difference",
            .about = {"difference", "how far the numbers are from those of the first configuration"},
            .applies_to = "every configuration after the first",
            .params = "tolerance",
            .work = "8 for each number compared",
            .tensors = tensors,
            .details = details,
            .n_details = sizeof details / sizeof details[0],
        },
    .applies = applies,
    .cost = cost,
    .shape = shape,
    .compute = compute,
};
