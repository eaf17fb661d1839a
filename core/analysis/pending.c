#include "core/analysis/internal.h"
enum pe_status pe_unique_of(const struct pe_rows *rows, double *value, struct pe_error *err)
{
    (void)err;
    *value = NAN;
    for (size_t i = 0; i < rows->n; i++)
        for (size_t j = i + 1; j < rows->n; j++) {
            double s = 0;
            for (size_t c = 0; c < rows->dim; c++)
                s += (rows->at[i * rows->dim + c] - rows->at[j * rows->dim + c]) *
                     (rows->at[i * rows->dim + c] - rows->at[j * rows->dim + c]);
            *value = fmin(*value, sqrt(s));
        }
    return PE_OK;
}
enum pe_status pe_shift_of(struct pe_analysis *study, struct pe_subject *subject, uint64_t k, double *value,
                           struct pe_error *err)
{
    (void)study, (void)k, (void)err;
    *value = subject->ladder.n ? 0 : 1;
    return PE_OK;
}
static bool applies(const struct pe_analysis *study, const struct pe_subject *subject)
{
    (void)study;
    return subject->family != PE_BIAS && subject->is_run;
}
static void cost(const struct pe_analysis *study, const struct pe_subject *subject, struct pe_metric_cost *cost)
{
    (void)study, (void)subject, (void)cost;
}
const struct pe_metric pe_metric_shift;
const struct pe_metric pe_metric_shift = {.applies = applies, .cost = cost};
