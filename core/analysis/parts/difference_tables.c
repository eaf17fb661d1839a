/* What is compared: the outputs that both sides have with the same name and shape, and the rotated vector. */
#include "core/analysis/parts/difference.h"

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
