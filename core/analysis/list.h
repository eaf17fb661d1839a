/* Every metric, one line each, in the order of answers: METRIC(name) is the row pe_metric_name of core/analysis/name.c.
 */
METRIC(unique)
METRIC(shift)
METRIC(bounds)
METRIC(step)
METRIC(norms)
METRIC(similarity)
METRIC(collisions)
