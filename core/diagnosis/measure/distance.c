/* A bias or buckets by distance, where no rule that is known gives them: at which distances they are other ones. */
#include "core/diagnosis/diagnosis.h"
#include "core/diagnosis/measure/changed.h"
#include "core/diagnosis/measure/maps.h"

#include <stdio.h>
#include <stdlib.h>

/* The distance that is nearest to the query at which a head differs; counts all of them. */
static bool find_first(const struct pe_lines *l, size_t head, int64_t *first, uint64_t *n)
{
    const double *found = l->found + head * l->n, *believed = l->believed + head * l->n;
    bool is_any = false;
    *n = 0;
    for (size_t i = 0; i < l->n; i++) {
        int64_t by = (int64_t)i - (int64_t)l->zero;
        if (isnan(found[i]) || pe_lines_are_near(l, found[i], believed[i]))
            continue;
        *first = is_any && llabs(*first) <= llabs(by) ? *first : by;
        is_any = true;
        ++*n;
    }
    return is_any;
}

bool pe_changed_distance(struct pe_diagnosis *d, struct pe_changed *out)
{
    enum pe_evidence_id id = d->evidence.kind->id;
    struct pe_edit edit;
    struct pe_lines l = {.found = NULL};
    int64_t first = 0;
    bool is_any = false;
    if ((id != PE_OF_BIAS && id != PE_OF_BUCKETS) || !d->belief.model || !d->belief.model->has_shape)
        return false;
    pe_edit_init(&edit);
    if (pe_measure_lines(d, &edit, &l) && l.zero < l.n)
        for (size_t h = 0; !is_any && h < l.n_heads; h++) {
            is_any = find_first(&l, h, &first, &out->n);
            size_t at = h * l.n + (size_t)((int64_t)l.zero + first);
            if (!is_any)
                continue;
            snprintf(out->first, sizeof out->first, "%lld", (long long)first);
            snprintf(out->rule, sizeof out->rule, "%.7g", l.found[at]);
            snprintf(out->before, sizeof out->before, "%.7g", l.believed[at]);
        }
    out->change = id == PE_OF_BUCKETS ? PE_CHANGED_BUCKETS : PE_CHANGED_BY_DISTANCE;
    pe_lines_drop(&l);
    pe_edit_drop(&edit);
    return is_any;
}
