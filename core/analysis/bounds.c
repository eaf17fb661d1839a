/* bounds: the largest and smallest entries, and the largest and smallest norms of rows.
 *
 *     value = S = max |r_ij|,   norm_max = max over i of sqrt(sum over j of r_ij^2) */
#include "core/analysis/analysis.h"
#include "core/kernels/kernels.h"

/* The first entry whose magnitude is S, up to ties. */
static size_t find_largest(const struct pe_rows *rows)
{
    enum { PIECE = 1 << 17 };
    size_t i = 0;
    while (fabs(rows->at[i]) < rows->largest - pe_tie(rows->largest, rows->largest))
        if (++i % PIECE == 0 && pe_is_cancelled())
            return 0;
    return i;
}

/* Rows of zeros have no largest entry. */
static void put_witness(const struct pe_rows *rows, struct pe_node *out)
{
    size_t largest = find_largest(rows);
    if (rows->largest == 0) {
        pe_put_null(out, "witness");
        return;
    }
    struct pe_node *witness = pe_put_object(out, "witness");
    pe_put_row(witness, rows, largest / rows->dim);
    pe_put_integer(witness, "column", (int64_t)(largest % rows->dim));
}

struct bounds {
    double min, max, norm_min, norm_max;
};

static const char *const details[] = {
    "The largest magnitude is {value}; norms of rows lie between {norm_min} and {norm_max}.",
};

static enum pe_status compute(struct pe_analysis *study, struct pe_subject *subject, struct pe_node *out,
                              struct pe_failure *err)
{
    (void)err;
    const struct pe_rows *rows = &subject->rows;
    struct bounds b = {(double)INFINITY, -(double)INFINITY, (double)INFINITY, -(double)INFINITY};
    for (size_t i = 0; i < rows->n && (i % 16 || !pe_is_cancelled()); i++) {
        const double *row = rows->at + i * rows->dim;
        double norm = sqrt(pe_kernels()->dot_f64(row, row, rows->dim));
        b.norm_min = fmin(b.norm_min, norm);
        b.norm_max = fmax(b.norm_max, norm);
        b.min = fmin(b.min, pe_kernels()->least_f64(row, rows->dim));
        b.max = fmax(b.max, pe_kernels()->max_f64(row, rows->dim));
    }
    pe_put_real(out, "value", rows->largest);
    put_witness(rows, out);
    pe_put_real(out, "min", b.min);
    pe_put_real(out, "max", b.max);
    pe_put_real(out, "norm_min", b.norm_min);
    pe_put_real(out, "norm_max", b.norm_max);
    pe_put_detail(out, study->request->lang, details[0]);
    return PE_OK;
}

static void cost(const struct pe_analysis *study, const struct pe_subject *subject, struct pe_metric_cost *cost)
{
    (void)study;
    cost->work = (double)subject->n_rows * (double)subject->dim;
}

const struct pe_metric pe_metric_bounds = {
    .info =
        {
            .name = "bounds",
            .about = {"bounds", "the largest magnitude, and the range of entries and of norms of rows"},
            .applies_to = "schemes with rows: absolute, rotary, and biases by distance",
            .work = "n D",
            .details = details,
            .n_details = sizeof details / sizeof details[0],
        },
    .needs_rows = true,
    .positions_max = PE_UNPAIRED_POSITIONS_MAX,
    .is_of_kernels = true,
    .applies = pe_has_rows,
    .cost = cost,
    .compute = compute,
};
