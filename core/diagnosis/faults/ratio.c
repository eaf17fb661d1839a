/* The one factor between numbers predicted and numbers found. */
#include "core/diagnosis/diagnosis.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>

void pe_ratio_init(struct pe_ratio *r)
{
    *r = (struct pe_ratio){-(double)INFINITY, (double)INFINITY, -(double)INFINITY, (double)INFINITY};
}

static void narrow_to(struct pe_ratio *r, double ratio, double u)
{
    double once = 1.001 * u * fabs(ratio), thrice = 3 * u * fabs(ratio);
    r->least = fmax(r->least, ratio - once);
    r->most = fmin(r->most, ratio + once);
    r->wide_least = fmax(r->wide_least, ratio - thrice);
    r->wide_most = fmin(r->wide_most, ratio + thrice);
}

bool pe_ratio_add(struct pe_ratio *r, const double *found, const double *predicted, size_t n, double u)
{
    for (size_t i = 0; i < n; i++) {
        if (isinf(found[i]) || isinf(predicted[i]))
            continue;
        if (predicted[i] == 0 && found[i] != 0)
            return false;
        if (predicted[i] != 0)
            narrow_to(r, found[i] / predicted[i], u);
    }
    return true;
}

bool pe_ratio_is_known(const struct pe_ratio *r) { return !isinf(r->wide_most); }

bool pe_ratio_is_consistent(const struct pe_ratio *r) { return r->wide_least <= r->wide_most; }

static double shortest_between(double least, double most)
{
    double middle = least + (most - least) / 2;
    char text[40];
    for (int digits = 1; digits < 17; digits++) {
        snprintf(text, sizeof text, "%.*g", digits, middle);
        double x = strtod(text, NULL);
        if (x >= least && x <= most)
            return x;
    }
    return middle;
}

bool pe_ratio_choose(const struct pe_ratio *r, double *factor)
{
    if (!pe_ratio_is_known(r) || !pe_ratio_is_consistent(r))
        return false;
    if (r->least <= r->most)
        *factor = shortest_between(r->least, r->most);
    else
        *factor = r->wide_least + (r->wide_most - r->wide_least) / 2;
    return true;
}
