/* What was done to the believed numbers as a whole, where nothing else explains the tensor: they are cut off at two
 * limits, or they are all there in another order (heads or rows that were exchanged, a transposed array that was read
 * as if it were not). Both are asked of every number, in float32's accuracy, of tensors that are not too large. */
#include "core/diagnosis/diagnosis.h"
#include "core/diagnosis/measure/profile.h"

#include <math.h>
#include <stdlib.h>

enum { LEAST = 64, MOST = 1 << 16 };
/* Of the largest number; what float32 loses of angles that are not far from position 0. */
static const double tolerance = 0x1p-20;

struct number {
    double x;
    uint32_t at; /* (t·n_rows + row)·row_len + column */
};

static int by_size(const void *a, const void *b)
{
    return pe_rising(&((const struct number *)a)->x, &((const struct number *)b)->x);
}

static uint64_t count(const struct pe_evidence *e) { return e->n_tensors * e->n_rows * e->row_len; }

static bool is_asked(const struct pe_diagnosis *d)
{
    const struct pe_evidence *e = &d->evidence;
    bool is_wide = pe_dtype_is_real(e->dtype) && !pe_narrow_type(e->dtype) && e->narrow == PE_DTYPE_NONE;
    return d->belief.is_given && d->belief.model && d->belief.model->has_shape && is_wide && !e->is_typed &&
           !pe_is_printed(e) && !e->aside && !e->padding && count(e) >= LEAST && count(e) <= MOST && e->largest > 0;
}

/* Both lists in the order of the tensor; a number that is not finite ends it. */
static bool read_all(const struct pe_diagnosis *d, struct number *found, struct number *believed, double *room)
{
    const struct pe_evidence *e = &d->evidence;
    size_t n = (size_t)e->row_len;
    uint32_t at = 0;
    for (size_t t = 0; t < e->n_tensors; t++)
        for (uint64_t row = 0; row < e->n_rows && !pe_is_cancelled(); row++) {
            pe_evidence_read(e, t, row, 0, n, room);
            pe_model_fill(d->belief.model, t, row, 0, n, room + n);
            for (size_t c = 0; c < n; c++, at++) {
                if (!isfinite(room[c]) || !isfinite(room[n + c]))
                    return false;
                found[at] = (struct number){room[c], at};
                believed[at] = (struct number){room[n + c], at};
            }
        }
    return !pe_is_cancelled();
}

/* ---- Cut off ---- */

static bool is_cut(const struct pe_evidence *e, const struct number *found, const struct number *believed,
                   struct pe_changed *out)
{
    size_t each = (size_t)count(e) / e->n_tensors;
    double near = tolerance * e->largest;
    out->n = 0;
    for (size_t t = 0; t < e->n_tensors; t++) {
        const struct number *x = found + t * each, *y = believed + t * each;
        double low = x[0].x, high = x[0].x;
        for (size_t i = 1; i < each; i++) {
            low = fmin(low, x[i].x);
            high = fmax(high, x[i].x);
        }
        uint64_t before = out->n;
        for (size_t i = 0; i < each; i++) {
            if (!(fabs(x[i].x - fmax(low, fmin(high, y[i].x))) <= near))
                return false;
            out->n += y[i].x > high + near || y[i].x < low - near;
        }
        if (out->n > before) { /* both tensors have the same limits, or one of them is cut */
            out->low = low;
            out->high = high;
        }
    }
    return out->n > 0;
}

/* ---- In another order ---- */

static struct pe_number_place place_of(const struct pe_evidence *e, uint32_t at)
{
    uint64_t row = at / e->row_len;
    return (struct pe_number_place){(size_t)(row / e->n_rows), row % e->n_rows, at % e->row_len};
}

/* Sorts both; the example is the number that has moved and whose neighbours are farthest. */
static bool is_reordered(const struct pe_evidence *e, struct number *found, struct number *believed,
                         struct pe_changed *out)
{
    size_t n = (size_t)count(e), n_off = 0;
    double near = tolerance * e->largest, most = 8 * near;
    bool is_any = false;
    qsort(found, n, sizeof *found, by_size);
    qsort(believed, n, sizeof *believed, by_size);
    for (size_t i = 0; i < n; i++)
        n_off += fabs(found[i].x - believed[i].x) <= near ? 0 : 1;
    for (size_t i = 1; 1000 * n_off <= n && i + 1 < n; i++) {
        double alone = fmin(found[i].x - found[i - 1].x, found[i + 1].x - found[i].x);
        if (alone > most && found[i].at != believed[i].at) {
            *out = (struct pe_changed){.is_reordered = true,
                                       .x = found[i].x,
                                       .found = place_of(e, found[i].at),
                                       .believed = place_of(e, believed[i].at)};
            most = alone;
            is_any = true;
        }
    }
    return is_any;
}

bool pe_changed_measure(struct pe_diagnosis *d, struct pe_changed *out)
{
    enum { SORTING = 64 }; /* multiply-adds of a number */
    const struct pe_evidence *e = &d->evidence;
    *out = (struct pe_changed){.n = 0};
    size_t n = is_asked(d) ? (size_t)count(e) : 0,
           bytes = 2 * n * sizeof(struct number) + 2 * (size_t)e->row_len * sizeof(double);
    struct number *found = n ? malloc(bytes) : NULL;
    d->no_memory |= n && !found;
    if (!found)
        return false;
    struct number *believed = found + n;
    bool is_any = read_all(d, found, believed, (double *)(void *)(believed + n)) &&
                  (is_cut(e, found, believed, out) || is_reordered(e, found, believed, out));
    d->work += SORTING * (double)n;
    free(found);
    return is_any;
}
