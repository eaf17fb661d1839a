/* The wish n_dimensional: does the scheme have a form for grids whose products of rows depend on the differences of
 * coordinates only? */
#include "core/analysis/parts/wishes.h"

#include <stdlib.h>

enum { SIDE = 8, CELLS = SIDE * SIDE, LEAST_WIDTH = 8 };

/* Rows of the scheme's plain form on a grid of 8 by 8, with the width, base and layout of the subject. */
static size_t put_fields(const struct pe_subject *subject, struct pe_field *fields)
{
    static const double grid[] = {SIDE, SIDE};
    const struct pe_value *config = pe_plan_config(subject->plan);
    bool is_rotary = subject->family == PE_ROTARY;
    size_t n = 0;
    fields[n++] = (struct pe_field){"scheme", {.kind = PE_STRING, .string = pe_plan_scheme(subject->plan)->name}};
    fields[n++] =
        (struct pe_field){is_rotary ? "head_dim" : "dim", {.kind = PE_INTEGER, .integer = (int64_t)subject->dim}};
    fields[n++] = (struct pe_field){"grid", {.kind = PE_ARRAY, .array = {PE_F64, 1, {2}, grid}}};
    if (is_rotary)
        fields[n++] = (struct pe_field){"form", {.kind = PE_STRING, .string = "pairs"}};
    for (size_t i = 0; i < config->object.n; i++)
        if (pe_is_among("base|layout", config->object.fields[i].name))
            fields[n++] = config->object.fields[i];
    return n;
}

static enum pe_status load_grid(const struct pe_subject *subject, struct pe_rows *rows, struct pe_error *err)
{
    struct pe_field fields[6];
    struct pe_plan *plan;
    struct pe_request request = {.operation = PE_ENCODE, .fields = fields, .dtype = PE_F64};
    request.n_fields = put_fields(subject, fields);
    enum pe_status status = pe_plan_new(&request, &plan, err);
    if (status)
        return status;
    status = pe_rows_init(rows, plan, err);
    pe_plan_free(plan);
    return status;
}

/* ---- Products ---- */

struct span {
    double least, most;
};

static double product(const struct pe_rows *rows, size_t i, size_t j)
{
    double sum = 0;
    for (size_t c = 0; c < rows->dim; c++)
        sum += rows->at[i * rows->dim + c] * rows->at[j * rows->dim + c];
    return sum;
}

/* The number of the pair's difference of coordinates. */
static size_t difference_of(size_t i, size_t j)
{
    size_t y = SIDE + i / SIDE - j / SIDE, x = SIDE + i % SIDE - j % SIDE;
    return y * 2 * SIDE + x;
}

/* The largest spread at one difference, over the largest product. */
static double spread_of(const struct pe_rows *rows)
{
    struct span spans[4 * CELLS];
    double spread = 0, largest = 0;
    for (size_t k = 0; k < sizeof spans / sizeof spans[0]; k++)
        spans[k] = (struct span){(double)INFINITY, -(double)INFINITY};
    for (size_t i = 0; i < CELLS && !pe_is_cancelled(); i++)
        for (size_t j = 0; j < CELLS; j++) {
            double p = product(rows, i, j);
            struct span *span = &spans[difference_of(i, j)];
            *span = (struct span){fmin(span->least, p), fmax(span->most, p)};
            spread = fmax(spread, span->most - span->least);
            largest = fmax(largest, fabs(p));
        }
    return largest > 0 ? spread / largest : 0;
}

enum pe_status pe_wish_n_dimensional(struct pe_analysis *study, struct pe_subject *subject, struct pe_wish *wish,
                                     struct pe_error *err)
{
    const char *name = pe_plan_scheme(subject->plan)->name;
    struct pe_rows rows;
    (void)study;
    *wish = (struct pe_wish){.value = (double)NAN, .holds = pe_is_among("learned|fourier", name)};
    if (!pe_is_among("sinusoidal|rope", name) || subject->dim < LEAST_WIDTH)
        return PE_OK;
    enum pe_status status = load_grid(subject, &rows, err);
    if (status) /* a width that does not divide by two axes */
        return status == PE_INVALID ? PE_OK : status;
    wish->value = spread_of(&rows);
    wish->holds = wish->value < 1e-9;
    pe_rows_drop(&rows);
    return PE_OK;
}
