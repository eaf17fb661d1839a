/* The addition theorem of sinusoids. */
#include "core/analysis/analysis.h"

#include <stdlib.h>
#include <string.h>

static bool is_scheme(const struct pe_subject *subject, const char *name)
{
    return strcmp(pe_plan_scheme(subject->plan)->name, name) == 0;
}

/* ---- Which columns belong together ---- */

/* The padding of an odd width. */
static bool is_zero(const struct pe_wave *w) { return w->fh == 0 && w->quarter % 2 == 0; }

static bool is_pair(const struct pe_wave *a, const struct pe_wave *b)
{
    return a->fh == b->fh && a->fl == b->fl && a->ah == b->ah && a->al == b->al && a->axis == b->axis;
}

/* The next column from *c on that is a sine (0), or a cosine (1), of any sign; dim: none is left. */
static size_t next_column(const struct pe_addition *a, size_t c, int quarter)
{
    while (c < a->dim && (is_zero(&a->columns[c]) || a->columns[c].quarter % 2 != quarter))
        c++;
    return c;
}

/* [cos | sin] of all pairs; those that do not turn are pairs too. */
static bool pair_halves(struct pe_addition *a)
{
    size_t half = a->dim / 2;
    for (size_t c = 0; c < half; c++) {
        a->partner[c] = half + c;
        a->partner[half + c] = c;
    }
    return true;
}

/* The i-th sine with the i-th cosine, in whatever order the layout has them. */
static bool find_partners(struct pe_addition *a)
{
    size_t s = next_column(a, 0, 0), c = next_column(a, 0, 1);
    for (size_t i = 0; i < a->dim; i++)
        a->partner[i] = a->dim;
    for (; s < a->dim && c < a->dim; s = next_column(a, s + 1, 0), c = next_column(a, c + 1, 1)) {
        if (!is_pair(&a->columns[s], &a->columns[c]))
            return false;
        a->partner[s] = c;
        a->partner[c] = s;
    }
    return s == a->dim && c == a->dim;
}

static bool read_columns(struct pe_addition *a, const struct pe_subject *subject)
{
    struct pe_rotation rotation;
    const struct pe_scheme *scheme = subject->plan->scheme;
    if (subject->family == PE_ROTARY) {
        scheme->rotate(subject->plan, &rotation, a->columns);
        return pair_halves(a);
    }
    return is_scheme(subject, "sinusoidal") && scheme->columns(subject->plan, 0, a->columns) && find_partners(a);
}

/* ---- The matrix ---- */

enum pe_status pe_addition_init(struct pe_addition *a, const struct pe_subject *subject, bool *has,
                                struct pe_failure *err)
{
    size_t dim = subject->dim;
    *a = (struct pe_addition){.dim = dim, .is_identity = is_scheme(subject, "none")};
    a->is_float32 = subject->plan->arith != PE_ARITH_EXACT;
    a->columns = calloc(dim, sizeof *a->columns);
    a->partner = malloc(dim * sizeof *a->partner);
    a->cosine = malloc(2 * dim * sizeof *a->cosine);
    *has = false;
    if (!a->columns || !a->partner || !a->cosine)
        return pe_no_memory(err);
    a->sine = a->cosine + dim;
    for (size_t c = 0; c < dim; c++)
        a->partner[c] = dim;
    *has = a->is_identity || read_columns(a, subject);
    return PE_OK;
}

void pe_addition_drop(struct pe_addition *a)
{
    free(a->columns);
    free(a->partner);
    free(a->cosine);
}

bool pe_addition_has(const struct pe_subject *subject)
{
    struct pe_addition a;
    struct pe_failure err;
    bool has;
    pe_addition_init(&a, subject, &has, &err);
    pe_addition_drop(&a);
    return has;
}

/* cos and sin of k times the column's frequency. A product of k with a float's radians is exact in a double. */
static void turn(const struct pe_addition *a, const struct pe_wave *w, double k, double *cosine, double *sine)
{
    double twice[] = {k, k}, parts[] = {w->fh, w->fl};
    if (a->is_float32) {
        *cosine = cos(k * w->fh);
        *sine = sin(k * w->fh);
        return;
    }
    struct pe_phase phase = pe_phase_of_products(twice, parts, 2);
    pe_phases_fill(PE_F64, &phase, 1, sine, 0);
    phase.whole++;
    pe_phases_fill(PE_F64, &phase, 1, cosine, 0);
}

/* A column of quarter q is turned towards that of quarter q + 1; its partner is that or its negative. */
void pe_addition_set(struct pe_addition *a, int64_t k)
{
    for (size_t c = 0; c < a->dim && (c % 256 || !pe_is_cancelled()); c++) {
        const struct pe_wave *w = &a->columns[c];
        a->cosine[c] = a->is_identity;
        a->sine[c] = 0;
        if (a->partner[c] == a->dim)
            continue;
        turn(a, w, (double)k, &a->cosine[c], &a->sine[c]);
        bool is_next = (a->columns[a->partner[c]].quarter - w->quarter + 4) % 4 == 1;
        a->sine[c] = is_next ? a->sine[c] : -a->sine[c];
    }
}
