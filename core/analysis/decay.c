/* decay: the bound on scores of Su et al. 2021 (arXiv 2104.09864), section 3.4.3:
 *
 *     B(δ) = 1/C · Σ over j = 1..C of |Σ over c < j of e^(i·δ·w_c)| */
#include "core/analysis/analysis.h"

#include <stdlib.h>
#include <string.h>

/* Angles computed at a time: they stay in the second-level cache, and take less than a millisecond. */
enum { ANGLES = 1 << 14 };

static size_t rows_of_step(size_t pairs)
{
    size_t rows = ANGLES / pairs;
    return rows < 1 ? 1 : rows;
}

static double bound_of(const double *cosines, const double *sines, size_t n, double *sizes)
{
    double x = 0, y = 0;
    for (size_t c = 0; c < n; c++) {
        x += cosines[c];
        y += sines[c];
        sizes[c] = x * x + y * y;
    }
    for (size_t c = 0; c < n; c++)
        sizes[c] = sqrt(sizes[c]);
    return pe_sum(sizes, n) / (double)n;
}

static size_t room_of(size_t pairs) { return (2 * rows_of_step(pairs) + 1) * pairs; }

/* angles: room for the rows of one step, [cos | sin], then for one row of sizes. */
static void fill_curve(const struct pe_subject *subject, const struct pe_waves *waves, double *angles, double *curve)
{
    size_t pairs = subject->ladder.n, n = (size_t)subject->n, step = rows_of_step(pairs);
    struct pe_positions distances = {.n = n};
    for (size_t first = 0; first < n && !pe_is_cancelled(); first += step) {
        size_t rows = n - first < step ? n - first : step;
        pe_waves_fill(waves, PE_F64, &distances, first, rows, 0, 2 * pairs, angles, 2 * pairs);
        for (size_t i = 0; i < rows; i++) {
            const double *row = angles + i * 2 * pairs;
            curve[first + i] = bound_of(row, row + pairs, pairs, angles + step * 2 * pairs);
        }
    }
}

static int64_t count_rises(const double *curve, size_t n)
{
    int64_t rises = 0;
    for (size_t i = 1; i < n; i++)
        rises += curve[i] - curve[i - 1] > PE_NOISE * curve[0];
    return rises;
}

static const char *const details[] = {
    "At the largest distance the bound is {value} of the bound at 0; it is smallest at distance {witness.distance} "
    "and rises "
    "in {rises} steps.",
};

static enum pe_status compute(struct pe_analysis *study, struct pe_subject *subject, struct pe_node *out,
                              struct pe_failure *err)
{
    size_t n = (size_t)subject->n;
    struct pe_waves *waves;
    enum pe_status status = pe_ladder_waves(subject, n, &waves, err);
    if (status)
        return status;
    double *angles = malloc(room_of(subject->ladder.n) * sizeof *angles), *curve = malloc(n * sizeof *curve);
    double *tensor = pe_study_tensor(study, subject, "decay");
    status = angles && curve ? PE_OK : pe_no_memory(err);
    if (!status)
        fill_curve(subject, waves, angles, curve);
    if (!status && !pe_was_cancelled()) {
        size_t least = pe_first_extreme(curve, n, -1, curve[0]);
        pe_put_real(out, "value", curve[n - 1] / curve[0]);
        struct pe_node *witness = pe_put_object(out, "witness");
        pe_put_integer(witness, "distance", (int64_t)least);
        pe_put_real(witness, "value", curve[least]);
        pe_put_integer(out, "rises", count_rises(curve, n));
        pe_put_detail(out, study->request->lang, details[0]);
    }
    if (!status && tensor)
        memcpy(tensor, curve, n * sizeof *curve);
    free(angles);
    free(curve);
    pe_waves_free(waves);
    return status;
}

static bool applies(const struct pe_analysis *study, const struct pe_subject *subject)
{
    (void)study;
    return subject->ladder.n > 0 && subject->is_run &&
           pe_is_among("rope|sinusoidal", pe_plan_scheme(subject->plan)->name);
}

static void cost(const struct pe_analysis *study, const struct pe_subject *subject, struct pe_metric_cost *cost)
{
    (void)study;
    double pairs = (double)subject->ladder.n, n = (double)subject->n;
    cost->work = 16 * n * pairs;
    cost->bytes = ((double)room_of(subject->ladder.n) + n) * sizeof(double) + pe_ladder_waves_bytes(subject);
}

static void shape(const struct pe_analysis *study, const struct pe_subject *subject, size_t i, unsigned *rank,
                  uint64_t *shape)
{
    (void)study;
    (void)i;
    *rank = 1;
    shape[0] = subject->n;
}

static const struct pe_output_row tensors[] = {
    PE_OUTPUT("decay", "n", 1, PE_F64, false, NULL, "decay", "RoFormer's bound by distance"),
    {.name = NULL},
};

const struct pe_metric pe_metric_decay = {
    .info =
        {
            .name = "decay",
            .about = {"long-term decay", "RoFormer's bound on scores by distance"},
            .applies_to = "rope and sinusoidal at consecutive positions of one axis",
            .work = "16 n C",
            .tensors = tensors,
            .details = details,
            .n_details = sizeof details / sizeof details[0],
        },
    .applies = applies,
    .cost = cost,
    .shape = shape,
    .compute = compute,
};
