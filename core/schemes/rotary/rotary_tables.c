/* The rotary family: its tables, computed from what the fields resolve to. Only memory, and coordinates that
 * have no room, can fail here.
 *
 * The unit of an axis's coordinates is multiplied into the frequency in double-double, so that positions stay exact
 * and runs stay runs (core/sequence/coords/coords.h). */
#include "core/schemes/rotary/rotary.h"

#include <stdio.h>
#include <stdlib.h>

static const struct pe_dd pi = {0x1.921fb54442d18p+1, 0x1.1a62633145c07p-53};

static struct pe_rotary *rotary_new(const struct pe_rotary_resolved *now)
{
    size_t n = now->n_pairs;
    struct pe_rotary *r = calloc(1, sizeof *r + n * (sizeof *r->inv_freq + sizeof *r->axis));
    if (!r)
        return NULL;
    r->inv_freq = (struct pe_dd *)(void *)(r + 1);
    r->axis = (unsigned char *)(r->inv_freq + n);
    r->n_pairs = n;
    r->head_dim = (size_t)now->given->head_dim;
    r->rotary_offset = (size_t)now->given->rotary_offset;
    r->layout = (enum pe_rotary_layout)now->given->layout;
    r->form = (enum pe_rotary_form)now->given->form;
    r->direction = (int)now->given->direction;
    r->float32 = now->given->arith != PE_ARITH_EXACT;
    r->attention_factor = dd(now->attention_factor);
    return r;
}
_Static_assert(sizeof(struct pe_rotary) % _Alignof(struct pe_dd) == 0, "the frequencies stand behind the struct");

/* ---- Frequencies ---- */

/* lucidrains' pixel: π·linspace(1, max_freq/2, n). */
static struct pe_dd pixel_frequency(double max_freq, size_t i, size_t n)
{
    struct pe_dd share = n > 1 ? dd_div(dd((double)i), dd((double)(n - 1))) : dd(0);
    return dd_mul(pi, dd_add(dd(1), dd_mul(share, dd_sub(dd(max_freq / 2), dd(1)))));
}

/* The ladder of one axis, over the pairs that look at it. Where it is one pair, NTK-aware scaling has no exponent. */
static enum pe_status own_ladder(const struct pe_rotary_resolved *now, struct pe_rotary *r, const signed char *axis,
                                 unsigned a, struct pe_dd *ladder, struct pe_failure *err)
{
    size_t n = 0, k = 0;
    struct pe_scaling_use use = now->use;
    for (size_t i = 0; i < r->n_pairs; i++)
        n += axis[i] == (signed char)a;
    if (now->n_axes > 1 || n < r->n_pairs) /* on one axis use.dim may be another: a ladder of more channels */
        use.dim = 2 * (double)n;
    use.base = now->axis_base[a];
    if (n == 1 && pe_same(now->axis_scaling[a].rule->name, "ntk") && pe_scaling_check_exponent("ntk", &use, err)) {
        snprintf(err->pointer, sizeof err->pointer, now->given->axis_scaling ? "/axis_scaling/%u" : "/scaling/type", a);
        return err->status;
    }
    if (n > 0 && now->at.coords != PE_COORDS_pixel)
        pe_scaling_ladder(&now->axis_scaling[a], &use, n, ladder);
    for (size_t i = 0; i < r->n_pairs; i++)
        if (axis[i] == (signed char)a) {
            r->inv_freq[i] =
                now->at.coords == PE_COORDS_pixel ? pixel_frequency(now->given->max_freq, k, n) : ladder[k];
            k++;
        }
    return PE_OK;
}

static enum pe_status set_ladders(const struct pe_rotary_resolved *now, struct pe_rotary *r, const signed char *axis,
                                  struct pe_failure *err)
{
    struct pe_dd *ladder = malloc(r->n_pairs * sizeof *ladder);
    if (!ladder)
        return pe_no_memory(err);
    if (now->ladder == PE_LADDER_SHARED) {
        /* One ladder for all axes. pixtral: its even frequencies for rows, then the odd ones for columns
         * (mistral-inference). dinov3: 2π·base^(-4i/r) for each of the two axes. */
        size_t n = r->n_pairs;
        struct pe_scaling_use use = now->use;
        if (now->channels == PE_DINOV3)
            use.dim = (double)n;
        pe_scaling_ladder(&now->scaling, &use, n, ladder);
        for (size_t i = 0; i < n; i++)
            r->inv_freq[i] = now->channels == PE_PIXTRAL  ? ladder[2 * (i % (n / 2)) + (i >= n / 2)]
                             : now->channels == PE_DINOV3 ? dd_mul(dd_mul_d(pi, 2), ladder[i % (n / 2)])
                                                          : ladder[i];
    }
    enum pe_status status = PE_OK;
    for (unsigned a = 0; now->ladder == PE_LADDER_OWN && a < now->n_axes && !status; a++)
        status = own_ladder(now, r, axis, a, ladder, err);
    free(ladder);
    return status;
}

/* ---- One frequency ---- */

/* Which ladder a pair is in, and where: its rule, what that uses, and its rung. */
struct rung {
    struct pe_scaling_use use;
    const struct pe_scaling_resolved *scaling;
    size_t k, n;
};

static struct rung rung_of(const struct pe_rotary_resolved *now, const signed char *axis, size_t pair)
{
    struct rung at = {.use = now->use, .scaling = &now->scaling, .k = pair, .n = now->n_pairs};
    size_t half = now->n_pairs / 2;
    if (now->ladder == PE_LADDER_SHARED) {
        at.k = now->channels == PE_PIXTRAL  ? 2 * (pair % half) + (pair >= half)
               : now->channels == PE_DINOV3 ? pair % half
                                            : pair;
        at.use.dim = now->channels == PE_DINOV3 ? (double)now->n_pairs : at.use.dim;
        return at;
    }
    at.n = at.k = 0;
    for (size_t i = 0; i < now->n_pairs; i++) {
        at.k += i < pair && axis[i] == axis[pair];
        at.n += axis[i] == axis[pair];
    }
    if (now->n_axes > 1 || at.n < now->n_pairs)
        at.use.dim = 2 * (double)at.n;
    at.use.base = now->axis_base[axis[pair]];
    at.scaling = &now->axis_scaling[axis[pair]];
    return at;
}

/* Which axis a pair follows, and which field states it. */
static void state_axis(const struct pe_rotary_resolved *now, size_t pair, int axis, struct pe_derivation *d)
{
    const struct pe_rotary_fields *given = now->given;
    char sections[PE_DERIVED_BYTES / 2] = "";
    pe_derived_case(d, "axis[%zu] = %d", pair, axis);
    if (given->channel_axis.n) {
        pe_derived_says(d, "pair %zu follows axis %d of %u: channel_axis states it", pair, axis, now->n_axes);
        return;
    }
    if (now->channels == PE_UNSET_WORD) {
        pe_derived_says(d, "pair %zu follows axis %d of %u, whose block has %zu pairs", pair, axis, now->n_axes,
                        now->pairs[axis]);
        return;
    }
    const char *word = pe_rotary_channel_words[now->channels];
    for (unsigned a = 0, used = 0; a < now->n_widths && used < sizeof sections; a++)
        used += (unsigned)snprintf(sections + used, sizeof sections - used, a ? ", %zu" : "%zu", now->pairs[a]);
    if (*sections)
        pe_derived_says(d, "pair %zu follows axis %d of %u: channels %s with the sections %s", pair, axis, now->n_axes,
                        word, sections);
    else
        pe_derived_says(d, "pair %zu follows axis %d of %u: channels %s", pair, axis, now->n_axes, word);
}

enum pe_status pe_rotary_frequency(const struct pe_rotary_resolved *now, size_t pair, struct pe_derivation *d,
                                   struct pe_dd *w, struct pe_failure *err)
{
    signed char axis[PE_HEAD_DIM_MAX / 2];
    pe_rotary_axes(now, axis);
    if (axis[pair] < 0) {
        *w = pe_derived(d, "w", dd(0), "0");
        pe_derived_says(d, "the pair follows no axis and does not turn");
        return PE_OK;
    }
    if (now->n_axes > 1)
        state_axis(now, pair, axis[pair], d);
    if (now->given->inv_freq.n) {
        *w = pe_derived(d, "w",
                        pe_derived_round(d, pe_recipes[d->recipe].w, dd(pe_real_at(&now->given->inv_freq, pair))),
                        "inv_freq[%zu]", pair);
        return PE_OK;
    }
    struct rung at = rung_of(now, axis, pair);
    if (now->at.coords == PE_COORDS_pixel) {
        double most = now->given->max_freq;
        *w = pe_derived(d, "w", pe_derived_round(d, pe_recipes[d->recipe].w, pixel_frequency(most, at.k, at.n)),
                        "π·(1 + %zu/%zu·(%s/2 − 1))", at.k, at.n > 1 ? at.n - 1 : 1, pe_shown(most).text);
        return PE_OK;
    }
    if (pe_scaling_derive(at.scaling, &at.use, at.k, d, w, err))
        return err->status;
    if (now->channels == PE_DINOV3)
        *w = pe_derived(d, "2πw", pe_derived_round(d, pe_recipes[d->recipe].w, dd_mul(dd_mul_d(pi, 2), *w)), "2π·w");
    return PE_OK;
}

void pe_rotary_steps(const struct pe_rotary_resolved *now, struct pe_ggml_steps *steps)
{
    signed char axis[PE_HEAD_DIM_MAX / 2];
    pe_rotary_axes(now, axis);
    pe_scaling_steps(&now->scaling, &now->use, now->n_pairs, steps);
    for (size_t i = 0; i < now->n_pairs; i++)
        if (axis[i] < 0)
            steps[i].scale = steps[i].keep = 0;
}

/* ggml's steps take the place of frequencies: those that are shown are the angles at position 1. */
static enum pe_status set_steps(const struct pe_rotary_resolved *now, struct pe_rotary *r, struct pe_failure *err)
{
    struct pe_ggml_chain chain = {0, 0, 0};
    r->steps = malloc(r->n_pairs * sizeof *r->steps);
    if (!r->steps)
        return pe_no_memory(err);
    pe_rotary_steps(now, r->steps);
    for (size_t i = 0; i < r->n_pairs; i++)
        r->inv_freq[i] = dd((double)pe_ggml_angle(&r->steps[i], &chain, 1));
    return PE_OK;
}

/* ---- Pairs ---- */

static enum pe_status set_pairs(const struct pe_rotary_resolved *now, struct pe_rotary *r, struct pe_failure *err)
{
    signed char axis[PE_HEAD_DIM_MAX / 2];
    pe_rotary_axes(now, axis);
    for (size_t i = 0; i < r->n_pairs; i++)
        r->axis[i] = axis[i] < 0 ? 0 : (unsigned char)axis[i];
    for (unsigned a = 0; a < now->n_widths; a++)
        r->widths[a] = now->channels == PE_UNSET_WORD ? 2 * (int64_t)now->pairs[a] : (int64_t)now->pairs[a];
    /* Consecutive pairs that a layout by axes keeps together. */
    bool has_blocks = now->channels == PE_UNSET_WORD && !now->given->channel_axis.n;
    r->n_blocks = has_blocks ? now->n_axes : 1;
    r->block_pairs[0] = r->n_pairs;
    for (unsigned b = 0; has_blocks && b < now->n_axes; b++)
        r->block_pairs[b] = now->pairs[now->order[b]];
    const struct pe_reals *list = &now->given->inv_freq;
    if (now->given->arith == PE_ARITH_GGML)
        return set_steps(now, r, err);
    if (!list->n && set_ladders(now, r, axis, err))
        return err->status;
    for (size_t i = 0; i < r->n_pairs; i++) {
        if (list->n)
            r->inv_freq[i] = dd(pe_real_at(list, i));
        if (r->float32)
            r->inv_freq[i] = dd((double)(float)r->inv_freq[i].hi);
        if (axis[i] < 0)
            r->inv_freq[i] = dd(0);
    }
    return PE_OK;
}

/* ---- All of it ---- */

enum pe_status pe_rotary_tables(const struct pe_rotary_resolved *now, struct pe_plan *plan, struct pe_failure *err)
{
    struct pe_rotary *r = plan->tables = rotary_new(now);
    if (!r)
        return pe_no_memory(err);
    enum pe_status status = set_pairs(now, r, err);
    return status ? status : pe_coords_set(&now->at, &plan->seq, now->use.float32, &r->at, err);
}
