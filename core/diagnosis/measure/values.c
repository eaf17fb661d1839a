/* Every number found is one function of the believed number: y = a·f(x) + b.
 *
 * f is a row of the grammar below. a and b are fitted by least squares: of all numbers, or of each head, row or column
 * its own, and each number is then compared. A coefficient takes what one number carries, so groups must have many more
 * numbers than coefficients. The plainest comes first: no coefficient, one of all numbers, one of each group. */
#include "core/diagnosis/diagnosis.h"
#include "core/diagnosis/measure/changed.h"

#include <stdio.h>
#include <stdlib.h>

static double same(double x) { return x; }
static double square(double x) { return x * x; }
static double root(double x) { return sqrt(fabs(x)); }
static double logistic(double x) { return 1 / (1 + exp(-x)); }
static double logarithm(double x) { return log1p(fabs(x)); }
static double positive(double x) { return fmax(x, 0); }

static const struct function {
    double (*of)(double x);
    const char *text; /* of x, and of a distance d */
    bool is_plain;    /* asked without coefficients alone */
    const char *of_distance;
} functions[] = {
    {same, "x", false, "d"},
    {fabs, "|x|", false, NULL},
    {square, "x²", false, "d²"}, /* N_COARSE */
    {root, "sqrt(|x|)", false, "sqrt(d)"},
    {trunc, "trunc(x)", true, NULL},
    {floor, "floor(x)", true, NULL},
    {ceil, "ceil(x)", true, NULL},
    {nearbyint, "round(x)", true, NULL},
    {positive, "max(x, 0)", false, NULL},
    {tanh, "tanh(x)", false, NULL},
    {exp, "exp(x)", false, NULL},
    {logistic, "1/(1 + exp(-x))", false, NULL},
    {logarithm, "ln(1 + |x|)", false, "ln(1 + d)"},
    {sin, "sin(x)", false, NULL},
    {cos, "cos(x)", false, NULL},
};
enum { N_FUNCTIONS = sizeof functions / sizeof *functions, N_COARSE = 3 }; /* so many can be distinguished in 16 bits */

enum by { ALL, HEADS, ROWS, COLUMNS };
enum { A = 1, B = 2 }; /* which coefficients are free; else a = 1, b = 0 */

/* One group: its sums, then its coefficients. */
struct group {
    double n, f, ff, y, fy, yy, least, most, a, b; /* f: less `first` */
    double first;
};

struct fit {
    struct pe_numbers *s;
    struct group *groups;
    size_t n_groups;
    enum by by;
    const struct function *f;
    const double *unit; /* [heads of all]: the number at distance 1, by which x is divided; NULL: it is not */
    unsigned free;
    size_t step; /* of the rows that are looked at */
};

static size_t group_of(const struct pe_numbers *s, enum by by, size_t i)
{
    size_t row = i / s->n_cols;
    return by == ALL     ? 0
           : by == ROWS  ? row
           : by == HEADS ? row / s->sizes.row
                         : i % s->n_cols + row / s->d->evidence.n_rows * s->n_cols;
}

static double value_of(const struct fit *t, size_t i)
{
    double x = t->s->believed[i];
    return t->f->of(t->unit ? x / t->unit[group_of(t->s, HEADS, i)] : x);
}

/* The next number, in this row or in the next one that is looked at. */
static size_t next_of(const struct fit *t, size_t i)
{
    return (i + 1) % t->s->n_cols ? i + 1 : i + 1 + (t->step - 1) * t->s->n_cols;
}

static void add_up(const struct fit *t)
{
    for (size_t g = 0; g < t->n_groups; g++)
        t->groups[g] = (struct group){.least = HUGE_VAL, .most = -HUGE_VAL};
    for (size_t i = 0; i < t->s->n; i = next_of(t, i)) {
        double f = value_of(t, i), y = t->s->found[i];
        struct group *g = &t->groups[group_of(t->s, t->by, i)];
        if (isnan(y))
            continue;
        g->least = fmin(g->least, f);
        g->most = fmax(g->most, f);
        g->first = g->n > 0 ? g->first : t->free & B ? f : 0;
        f -= g->first;
        g->n++;
        g->f += f;
        g->ff += f * f;
        g->y += y;
        g->fy += f * y;
        g->yy += y * y;
    }
}

/* false: a group has lost what the configuration has. */
static bool solve(const struct fit *t, struct group *g)
{
    double spread = g->n * g->ff - g->f * g->f;
    double width = g->most - g->least;
    bool is_level = !(width > 1e-9 * fmax(fabs(g->least), fabs(g->most)));
    g->a = t->free == A ? g->fy / g->ff : t->free & A ? (g->n * g->fy - g->f * g->y) / spread : 1;
    if (!(t->free & A) || !isfinite(g->a) || (is_level && t->free & B))
        g->a = 1;
    g->b = t->free & B ? (g->y - g->a * g->f) / g->n - g->a * g->first : 0;
    return width <= 64 * t->s->near || fabs(g->a) * width > 16 * t->s->near;
}

static bool holds(const struct fit *t)
{
    for (size_t i = 0; i < t->s->n; i = next_of(t, i)) {
        const struct group *g = &t->groups[group_of(t->s, t->by, i)];
        if (fabs(g->a * value_of(t, i) + g->b - t->s->found[i]) > 2 * t->s->near)
            return false;
    }
    return true;
}

/* Numbers beyond those that the coefficients take, of groups that are not one number. */
static double spare(const struct fit *t)
{
    double n = 0;
    for (size_t i = 0; i < t->n_groups; i++) {
        const struct group *g = &t->groups[i];
        n += fabs(g->a) * (g->most - g->least) > 16 * t->s->near ? fmax(g->n - 1 - (double)t->free, 0) : 0;
    }
    return n;
}

static bool fits_rows(struct fit *t, size_t step)
{
    bool is_any = true;
    t->step = step;
    add_up(t);
    for (size_t g = 0; is_any && g < t->n_groups; g++)
        is_any = t->groups[g].n == 0 || solve(t, &t->groups[g]);
    t->s->work += 12 * (double)(t->s->n / step);
    return is_any && !pe_is_cancelled() && holds(t);
}

/* Some rows are looked at first: most functions end there. */
static bool is_fitted(struct fit *t)
{
    enum { LEAST = 32, SHARE = 4, FEW_ROWS = 32 };
    size_t step = t->s->n_rows / FEW_ROWS;
    return (step < 2 || fits_rows(t, step)) && fits_rows(t, 1) && spare(t) >= LEAST &&
           SHARE * spare(t) >= (double)t->s->n;
}

/* ---- In words ---- */

static void state_rule(const struct fit *t, struct pe_changed *out)
{
    const struct group *g = &t->groups[0];
    const char *f = t->unit ? t->f->of_distance : t->f->text;
    char factor[24] = "", shift[32] = "";
    bool is_own = t->by != ALL;
    int n = 0;
    if (t->free & A && fabs(g->a - 1) > 1e-6)
        snprintf(factor, sizeof factor, "%.6g*", g->a);
    if (t->free & B && fabs(g->b) > 1e-6)
        snprintf(shift, sizeof shift, "%c%.6g", g->b < 0 ? '-' : '+', fabs(g->b));
    snprintf(out->rule, sizeof out->rule, "%s%s%s", t->free & A && is_own ? "a*" : factor, f,
             t->free & B && is_own ? "+b" : shift);
    if (t->free & A && is_own)
        n = snprintf(out->first, sizeof out->first, "a = %.6g%s", g->a, t->free & B ? ", " : "");
    if (t->free & B && is_own)
        snprintf(out->first + n, sizeof out->first - (size_t)n, "b = %.6g", g->b);
}

/* Has each group the mean 0 and the variance 1? */
static bool are_normal(const struct fit *t)
{
    for (size_t g = 0; g < t->n_groups; g++) {
        double n = t->groups[g].n, mean = t->groups[g].y / n;
        if (!(fabs(mean) < 1e-4 && fabs(t->groups[g].yy / n - 1) < 2 / n + 1e-3))
            return false;
    }
    return true;
}

static void state(const struct fit *t, struct pe_changed *out)
{
    static const enum pe_changed_how of[] = {PE_CHANGED_NUMBERS, PE_CHANGED_OF_HEADS, PE_CHANGED_OF_ROWS,
                                             PE_CHANGED_OF_COLUMNS};
    const struct pe_evidence_kind *kind = t->s->d->evidence.kind;
    bool is_map = kind->id == PE_OF_BIAS || kind == &pe_evidence_scores;
    bool is_of_x = t->f->of == same, is_normal = is_of_x && t->free == (A | B) && are_normal(t);
    out->change = t->unit                                                       ? PE_CHANGED_OF_DISTANCE
                  : is_normal && t->by == ROWS                                  ? PE_CHANGED_NORMAL_ROWS
                  : is_normal && t->by == COLUMNS                               ? PE_CHANGED_NORMAL_COLUMNS
                  : is_map && is_of_x && t->free == B                           ? PE_CHANGED_SHIFTED_ROWS
                  : kind == &pe_evidence_probs && t->by == ROWS && t->free == A ? PE_CHANGED_UNNORMALISED
                                                                                : of[t->by];
    state_rule(t, out);
}

/* ---- A factor of the row and one of the column ---- */

/* One row and one column of a map have the factors, those with the largest of the numbers that are least: no mask hides
 * them. Rotated tensors are one matrix. */
static bool is_product_of(const struct pe_numbers *s, size_t first, size_t n_rows, size_t *n_tested)
{
    const double *y = s->found + first, *x = s->believed + first;
    size_t n_cols = s->n_cols, row = 0, column = 0;
    double best = 0;
    for (size_t r = 0; r < n_rows; r++) {
        double least = HUGE_VAL;
        for (size_t c = 0; c < n_cols; c++)
            least = fmin(least, isnan(x[r * n_cols + c]) ? 0 : fabs(x[r * n_cols + c]));
        row = least > best ? r : row;
        best = fmax(best, least);
    }
    for (size_t c = 0, most = 0; c < n_cols; c++) {
        size_t n = 0;
        for (size_t r = 0; r < n_rows; r++)
            n += fabs(x[r * n_cols + c]) > best / 2;
        column = n > most ? c : column;
        most = n > most ? n : most;
    }
    double corner = y[row * n_cols + column] / x[row * n_cols + column];
    for (size_t i = 0; i < n_rows * n_cols; i++) {
        size_t c = row * n_cols + i % n_cols, r = i / n_cols * n_cols + column;
        double factor = y[c] / x[c] * (y[r] / x[r]) / corner;
        double least = fmin(fmin(fabs(x[c]), fabs(x[r])), fabs(x[row * n_cols + column]));
        bool is_known = isfinite(factor) && least > 0;
        if (isnan(x[i]) || (!is_known && x[i] == 0 && fabs(y[i]) <= s->near))
            continue;
        if (!is_known || fabs(factor * x[i] - y[i]) > 16 * s->near * (1 + fabs(x[i] * factor) / least))
            return false;
        *n_tested += least > 64 * s->near;
    }
    return true;
}

static bool is_product(struct pe_numbers *s, struct pe_changed *out)
{
    enum { LEAST = 32 };
    enum pe_evidence_id id = s->d->evidence.kind->id;
    size_t n_rows = id == PE_OF_MAPS ? s->sizes.row : s->n_rows, n_tested = 0;
    bool holds = (id == PE_OF_MAPS || id == PE_OF_ROTATED) && n_rows > 3 && s->n_cols > 3;
    for (size_t first = 0; holds && first < s->n; first += n_rows * s->n_cols)
        holds = is_product_of(s, first, n_rows, &n_tested);
    s->work += 12 * (double)s->n;
    out->change = PE_CHANGED_PRODUCT;
    return holds && n_tested >= LEAST && 4 * n_tested > s->n;
}

/* ---- Each in its turn ---- */

/* In each head the believed numbers are whole multiples of the smallest one, -d of them: writes these, [heads]. */
static bool find_units(const struct pe_numbers *s, double *units, size_t n_heads)
{
    for (size_t h = 0; h < n_heads; h++)
        units[h] = HUGE_VAL;
    for (size_t i = 0; i < s->n; i++) {
        double x = fabs(s->believed[i]), *unit = &units[group_of(s, HEADS, i)];
        *unit = x > 0 ? fmin(*unit, x) : *unit;
    }
    for (size_t i = 0; i < s->n; i++) {
        double d = s->believed[i] / units[group_of(s, HEADS, i)];
        if (d > 0 || fabs(d - round(d)) > 1e-6)
            return false;
    }
    for (size_t h = 0; h < n_heads; h++)
        units[h] = -units[h];
    return true;
}

bool pe_changed_values(struct pe_numbers *s, struct pe_changed *out)
{
    size_t n_heads = s->n_rows / s->sizes.row, n_columns = s->d->evidence.n_tensors * s->n_cols;
    const size_t n_groups[] = {1, n_heads, s->n_rows, n_columns};
    static const struct {
        enum by by;
        unsigned free;
        bool is_any; /* function; else x alone */
    } steps[] = {{ALL, 0, true},        {ALL, A, true},      {ALL, A | B, true},     {HEADS, B, false},
                 {HEADS, A | B, false}, {ROWS, A, false},    {ROWS, B, false},       {ROWS, A | B, false},
                 {COLUMNS, A, false},   {COLUMNS, B, false}, {COLUMNS, A | B, false}};
    size_t most = s->n_rows > n_columns ? s->n_rows : n_columns;
    struct group *groups = malloc((most + 1) * sizeof *groups + n_heads * sizeof(double));
    double *units = (double *)(void *)(groups + most + 1);
    bool is_any = false;
    s->d->no_memory |= !groups;
    struct fit t = {.s = s, .groups = groups};
    for (size_t k = 0; groups && !is_any && k < sizeof steps / sizeof *steps; k++)
        for (size_t f = 0; !is_any && f < (!steps[k].is_any ? 1 : s->is_coarse ? N_COARSE : N_FUNCTIONS); f++) {
            t.by = steps[k].by;
            t.free = steps[k].free;
            t.f = &functions[f];
            t.n_groups = n_groups[t.by];
            is_any = !(t.free && t.f->is_plain) && !(f == 0 && !t.free) && is_fitted(&t);
        }
    bool is_by_distance = groups && !is_any && s->d->evidence.kind->id == PE_OF_BIAS && find_units(s, units, n_heads);
    for (size_t f = 0; is_by_distance && !is_any && f < N_FUNCTIONS; f++)
        for (unsigned free = A; functions[f].of_distance && !is_any && free <= (A | B); free += B) {
            t = (struct fit){s, groups, n_heads, HEADS, &functions[f], units, free, 1};
            is_any = is_fitted(&t);
        }
    if (is_any)
        state(&t, out);
    free(groups);
    return is_any || is_product(s, out);
}
