/* The decimals that people write. */
#include "core/diagnosis/measure/measure.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>

double pe_shortest_decimal(double x, double tolerance)
{
    char text[40];
    for (int digits = 0; digits < 17; digits++) {
        snprintf(text, sizeof text, "%.*e", digits, x);
        double y = strtod(text, NULL);
        if (fabs(y - x) <= tolerance * fabs(x))
            return y;
    }
    return x;
}
