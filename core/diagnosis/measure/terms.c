/* Least squares of a few terms, by the normal equations: numbers that fit at all do so to their last digits. */
#include "core/diagnosis/measure/changed.h"

#include <math.h>
#include <stdio.h>
#include <string.h>

bool pe_factorise(double *a, size_t n)
{
    for (size_t j = 0; j < n; j++)
        for (size_t i = j; i < n; i++) {
            double sum = a[i * n + j], own = a[j * n + j];
            for (size_t k = 0; k < j; k++)
                sum -= a[i * n + k] * a[j * n + k];
            if (i == j && !(sum > 1e-9 * own))
                return false;
            a[i * n + j] = i == j ? sqrt(sum) : sum / a[j * n + j];
        }
    return true;
}

void pe_solve(const double *l, size_t n, double *x)
{
    for (size_t i = 0; i < n; i++) {
        for (size_t k = 0; k < i; k++)
            x[i] -= l[i * n + k] * x[k];
        x[i] /= l[i * n + i];
    }
    for (size_t i = n; i-- > 0;) {
        for (size_t k = i + 1; k < n; k++)
            x[i] -= l[k * n + i] * x[k];
        x[i] /= l[i * n + i];
    }
}

void pe_terms_add(struct pe_terms *f, const double *x, double y)
{
    for (size_t i = 0; i < f->n; i++) {
        for (size_t k = 0; k <= i; k++)
            f->squares[i * f->n + k] += x[i] * x[k];
        f->products[i] += x[i] * y;
    }
    f->count++;
}

bool pe_terms_solve(struct pe_terms *f, double *a)
{
    enum { LEAST = 32 };
    memcpy(a, f->products, f->n * sizeof *a);
    if (f->count < LEAST + (double)f->n || !pe_factorise(f->squares, f->n))
        return false;
    pe_solve(f->squares, f->n, a);
    return true;
}

void pe_terms_state(const double *a, const char *const *terms, size_t n, char text[PE_CHANGED_TEXT])
{
    const double nothing = 1e-5;
    size_t used = 0;
    text[0] = 0;
    for (size_t k = 0; k < n && used + 1 < PE_CHANGED_TEXT; k++) {
        char factor[24] = "";
        if (fabs(a[k]) < nothing)
            continue;
        if (fabs(fabs(a[k]) - 1) > nothing)
            snprintf(factor, sizeof factor, "%.6g*", fabs(a[k]));
        used += (size_t)snprintf(text + used, PE_CHANGED_TEXT - used, "%s%s%s",
                                 a[k] < 0 ? "-"
                                 : used   ? "+"
                                          : "",
                                 factor, terms[k]);
    }
}
