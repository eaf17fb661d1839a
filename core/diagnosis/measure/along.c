/* Numbers that are made of their neighbours: of the believed ones here and one step before or behind, and of what was
 * made there. y[i] = a·x[i] + b·x[i-1] + c·y[i-1] has running sums, differences, means of two and decaying means, along
 * the rows or along the columns, forwards or backwards. */
#include "core/diagnosis/diagnosis.h"
#include "core/diagnosis/measure/changed.h"

/* Along one axis: numbers `step` apart, `n` of them in a line. */
struct lines {
    size_t n, step;
    bool is_backwards;
};

enum { HERE, BESIDE, MADE, N_TERMS };

/* The terms of number i, [n]; false: it is the first of its line. */
static bool terms_of(const struct pe_numbers *s, const struct lines *l, const size_t *terms, size_t n, size_t i,
                     double *x)
{
    size_t place = i / l->step % l->n;
    if (place == (l->is_backwards ? l->n - 1 : 0))
        return false;
    size_t before = l->is_backwards ? i + l->step : i - l->step;
    const double all[N_TERMS] = {s->believed[i], s->believed[before], s->found[before]};
    for (size_t k = 0; k < n; k++)
        x[k] = all[terms[k]];
    return true;
}

static bool is_along(struct pe_numbers *s, const struct lines *l, const size_t *terms, size_t n, double *a)
{
    struct pe_terms f = {.n = n};
    double x[N_TERMS];
    for (size_t i = 0; i < s->n; i++)
        if (terms_of(s, l, terms, n, i, x))
            pe_terms_add(&f, x, s->found[i]);
    s->work += 8 * (double)s->n;
    if (!pe_terms_solve(&f, a) || pe_is_cancelled())
        return false;
    for (size_t i = 0; i < s->n; i++) {
        double y = -s->found[i];
        bool is_any = terms_of(s, l, terms, n, i, x);
        for (size_t k = 0; k < n; k++)
            y += a[k] * x[k];
        if (is_any && fabs(y) > 8 * s->near)
            return false;
    }
    return true;
}

bool pe_changed_along(struct pe_numbers *s, struct pe_changed *out)
{
    static const struct {
        size_t n, terms[N_TERMS];
    } rules[] = {{2, {HERE, BESIDE}}, {2, {HERE, MADE}}, {3, {HERE, BESIDE, MADE}}};
    static const char *const names[2][N_TERMS] = {{"x[i]", "x[i-1]", "y[i-1]"}, {"x[i]", "x[i+1]", "y[i+1]"}};
    const struct lines lines[] = {
        {s->sizes.row, s->n_cols, false}, {s->sizes.row, s->n_cols, true}, {s->n_cols, 1, false}, {s->n_cols, 1, true}};
    for (size_t i = 0; i < s->n; i++)
        if (isnan(s->found[i]))
            return false;
    for (size_t r = 0; r < sizeof rules / sizeof *rules; r++)
        for (size_t l = 0; l < sizeof lines / sizeof *lines; l++) {
            double a[N_TERMS];
            const char *terms[N_TERMS];
            if (lines[l].n < 3 || !is_along(s, &lines[l], rules[r].terms, rules[r].n, a))
                continue;
            for (size_t k = 0; k < rules[r].n; k++)
                terms[k] = names[lines[l].is_backwards][rules[r].terms[k]];
            out->change = lines[l].step == 1 ? PE_CHANGED_ALONG_COLUMNS : PE_CHANGED_ALONG_ROWS;
            pe_terms_state(a, terms, rules[r].n, out->rule);
            return true;
        }
    return false;
}
