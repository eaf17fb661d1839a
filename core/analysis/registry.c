/* The table of all metrics. It calls them, and they call nothing that calls it. */
#include "core/analysis/analysis.h"

#define METRIC(name) extern const struct pe_metric pe_metric_##name;
#include "core/analysis/list.h"
#undef METRIC

static const struct pe_metric *const metrics[] = {
#define METRIC(name) &pe_metric_##name,
#include "core/analysis/list.h"
#undef METRIC
};

enum { N_METRICS = sizeof metrics / sizeof metrics[0] };
_Static_assert(N_METRICS <= 32, "a set of metrics is one word of bits");

size_t pe_n_metrics(void) { return N_METRICS; }

const struct pe_metric *pe_metric_get(size_t m) { return metrics[m]; }

const struct pe_metric_info *pe_metric_at(size_t m) { return &metrics[m]->info; }
