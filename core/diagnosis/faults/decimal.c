/* The decimals that people write, and the factors that they use. */
#include "core/diagnosis/diagnosis.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>

/* Is x written with so many digits clearly beyond the tolerance? Arithmetic decides, where a text would take long. */
static bool is_beyond(double x, int digits, double tolerance)
{
    double lead = fabs(x) / pow(10, floor(log10(fabs(x)))), unit = pow(10, digits);
    return fabs(nearbyint(lead * unit) / unit - lead) > (tolerance + 1e-13) * lead;
}

double pe_shortest_decimal(double x, double tolerance)
{
    char text[40];
    for (int digits = 0; digits < 17; digits++) {
        if (is_beyond(x, digits, tolerance))
            continue;
        snprintf(text, sizeof text, "%.*e", digits, x);
        double y = strtod(text, NULL);
        if (fabs(y - x) <= tolerance * fabs(x))
            return y;
    }
    return x;
}

/* ---- What a factor is ---- */

/* Rounded to 16 bits, a factor is known less well. */
static double tolerance_of(const struct pe_evidence *e)
{
    enum pe_dtype dtype = e->narrow == PE_DTYPE_NONE ? e->dtype : e->narrow;
    return dtype == PE_BF16 || dtype == PE_F16 ? 1e-3 : 1e-5;
}

const char *pe_factor_meaning(const struct pe_diagnosis *d, double factor)
{
    const double log2e = 1.4426950408889634, two_pi = 6.283185307179586;
    const struct pe_model *m = d->belief.model;
    bool is_turned = m->columns && d->evidence.kind->id != PE_OF_LADDER;
    double head_dim = pe_edit_real(d, NULL, "head_dim", (double)NAN), own = is_turned ? m->columns[0].ah : 1;
    own = own == 1 ? (double)NAN : own;
    const struct {
        const char *name;
        double factor;
    } known[] = {{"1/sqrt(head_dim)", 1 / sqrt(head_dim)},
                 {"log2(e)", log2e},
                 {"log2(e)/sqrt(head_dim)", log2e / sqrt(head_dim)},
                 {"sqrt(head_dim)", sqrt(head_dim)},
                 {"attention_factor", own},
                 {"attention_factor^2", own * own},
                 {"1/attention_factor", 1 / own},
                 {"1/attention_factor^2", 1 / (own * own)},
                 {"2*pi", two_pi},
                 {"1/(2*pi)", 1 / two_pi}};
    for (size_t i = 0; i < sizeof known / sizeof *known; i++)
        if (fabs(factor - known[i].factor) <= tolerance_of(&d->evidence) * known[i].factor)
            return known[i].name;
    return NULL;
}
