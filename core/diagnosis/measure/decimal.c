/* The decimals that people write. */
#include "core/diagnosis/measure/measure.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>

/* Is x written with so many digits clearly beyond the tolerance? Arithmetic tells, where a text would take long. */
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
