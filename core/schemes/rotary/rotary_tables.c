/* The rotary family: its tables, computed from what the fields resolve to. Only memory can fail here.
 *
 * Coordinates are start + i times a unit; the unit is multiplied into the frequency in double-double, so that positions
 * stay exact integers and runs stay runs. */
#include "core/schemes/rotary/rotary.h"

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

/* ---- One ladder for all axes: which axis each pair looks at ---- */

/* The axis of pair c: 0 time (or rows), 1 height (or columns), 2 width. */
static unsigned axis_of(const struct pe_rotary_resolved *now, size_t c)
{
    const size_t *pairs = now->pairs; /* of time, height and width */
    switch ((enum pe_rotary_channels)now->channels) {
    case PE_PIXTRAL:
    case PE_DINOV3: return c >= now->n_pairs / 2;
    case PE_MROPE:
        return c < pairs[0] ? 0 : c < pairs[0] + pairs[1] ? 1 : 2; /* transformers Qwen2-VL */
    /* transformers Qwen3-VL: all pairs are time's, then every third is overwritten, as far as the sections reach. */
    case PE_MROPE_INTERLEAVED: return c % 3 == 1 && c < 3 * pairs[1] ? 1 : c % 3 == 2 && c < 3 * pairs[2] ? 2 : 0;
    /* ggml_mrope_cache_init: a pair that its own section does not reach is of a fourth axis (is_still). */
    case PE_IMROPE: return (unsigned)(c % 3);
    case PE_CHANNELS_VIDEOROPE: return c >= pairs[1] + pairs[2] ? 0 : 1 + c % 2; /* time has the low frequencies */
    }
    return 0;
}

/* imrope: the fourth axis has coordinate 0 in text and images, so its pairs do not turn. Other channels have none. */
static bool is_still(const struct pe_rotary_resolved *now, size_t c)
{
    return now->channels == PE_IMROPE && c >= 3 * now->pairs[c % 3];
}

/* pixtral: the even frequencies for rows, then the odd ones for columns (mistral-inference). dinov3: 2π·base^(-4i/r)
 * for each of the two axes. The others: the usual frequencies. */
static enum pe_status spread_ladder(const struct pe_rotary_resolved *now, struct pe_rotary *r, struct pe_failure *err)
{
    size_t n = r->n_pairs;
    struct pe_scaling_use use = now->use;
    struct pe_dd *ladder = malloc(n * sizeof *ladder);
    if (!ladder)
        return pe_no_memory(err);
    if (now->channels == PE_DINOV3)
        use.dim = (double)n;
    pe_scaling_ladder(&now->scaling, &use, n, ladder);
    for (size_t i = 0; i < n; i++)
        r->inv_freq[i] = now->channels == PE_PIXTRAL  ? ladder[2 * (i % (n / 2)) + (i >= n / 2)]
                         : now->channels == PE_DINOV3 ? dd_mul(dd_mul_d(pi, 2), ladder[i % (n / 2)])
                                                      : ladder[i];
    for (size_t i = 0; r->float32 && i < n; i++)
        r->inv_freq[i] = dd((double)(float)r->inv_freq[i].hi);
    free(ladder);
    return PE_OK;
}

void pe_rotary_steps(const struct pe_rotary_resolved *now, struct pe_ggml_steps *steps)
{
    pe_scaling_steps(&now->scaling, &now->use, now->n_pairs, steps);
    for (size_t i = 0; i < now->n_pairs; i++)
        if (is_still(now, i))
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

static enum pe_status set_channels(const struct pe_rotary_resolved *now, struct pe_rotary *r, struct pe_failure *err)
{
    for (size_t i = 0; i < r->n_pairs; i++)
        r->axis[i] = (unsigned char)axis_of(now, i);
    r->n_blocks = 1;
    r->block_pairs[0] = r->n_pairs;
    if (now->given->arith == PE_ARITH_GGML)
        return set_steps(now, r, err);
    enum pe_status status = now->given->inv_freq.n ? PE_OK : spread_ladder(now, r, err);
    for (size_t i = 0; i < r->n_pairs; i++)
        if (is_still(now, i))
            r->inv_freq[i] = dd(0);
    return status;
}

/* ---- A ladder for each axis ---- */

/* lucidrains' pixel: π·linspace(1, max_freq/2, n). */
static struct pe_dd pixel_frequency(double max_freq, size_t i, size_t n)
{
    struct pe_dd share = n > 1 ? dd_div(dd((double)i), dd((double)(n - 1))) : dd(0);
    return dd_mul(pi, dd_add(dd(1), dd_mul(share, dd_sub(dd(max_freq / 2), dd(1)))));
}

static void set_block(const struct pe_rotary_resolved *now, struct pe_rotary *r, size_t pair0, size_t n, unsigned axis)
{
    struct pe_scaling_use use = now->use;
    use.dim = r->n_blocks > 1 ? 2 * (double)n : use.dim;
    for (size_t i = 0; i < n; i++)
        r->axis[pair0 + i] = (unsigned char)axis;
    if (now->given->inv_freq.n || n == 0 || now->given->arith == PE_ARITH_GGML)
        return;
    if (now->coords != PE_COORDS_PIXEL)
        pe_scaling_ladder(&now->scaling, &use, n, r->inv_freq + pair0);
    for (size_t i = 0; now->coords == PE_COORDS_PIXEL && i < n; i++) {
        struct pe_dd w = pixel_frequency(now->given->max_freq, i, n);
        r->inv_freq[pair0 + i] = r->float32 ? dd((double)(float)w.hi) : w;
    }
}

static void set_blocks(const struct pe_rotary_resolved *now, struct pe_rotary *r)
{
    size_t pair0 = 0;
    r->n_blocks = now->n_axes;
    for (unsigned b = 0; b < now->n_axes; pair0 += r->block_pairs[b++]) {
        r->block_pairs[b] = now->pairs[now->order[b]];
        set_block(now, r, pair0, r->block_pairs[b], now->order[b]);
    }
}

static enum pe_status set_pairs(const struct pe_rotary_resolved *now, struct pe_rotary *r, struct pe_failure *err)
{
    const struct pe_reals *list = &now->given->inv_freq;
    for (size_t i = 0; i < list->n; i++) {
        double w = pe_real_at(list, i);
        r->inv_freq[i] = dd(r->float32 ? (double)(float)w : w);
    }
    for (unsigned a = 0; a < now->n_widths; a++)
        r->widths[a] = now->channels == PE_UNSET_WORD ? 2 * (int64_t)now->pairs[a] : (int64_t)now->pairs[a];
    if (now->channels != PE_UNSET_WORD)
        return set_channels(now, r, err);
    set_blocks(now, r);
    return now->given->arith == PE_ARITH_GGML ? set_steps(now, r, err) : PE_OK;
}

/* ---- Coordinates ---- */

/* Coordinate of index i on an axis of g: (start + i) · unit. Qwen-Image centers rows and columns; its frames count
 * from 0 (diffusers, QwenEmbedRope). */
static struct pe_dd rule(const struct pe_rotary_resolved *now, unsigned n_grid, unsigned axis, double g, double *start)
{
    switch ((enum pe_rotary_coords)now->coords) {
    case PE_COORDS_INDEX: break;
    case PE_COORDS_ONE_BASED: *start = 1; break;
    case PE_COORDS_NORMALIZED: /* 2·(i + 1/2)/g - 1 (DINOv3) */ *start = (1 - g) / 2; return dd_div(dd(2), dd(g));
    case PE_COORDS_RESIZED: /* i/g · ref (EVA-02) */ return dd_div(dd(pe_real_at(&now->given->ref_grid, axis)), dd(g));
    case PE_COORDS_CENTERED: *start = n_grid > 2 && axis == 0 ? 0 : -(g - floor(g / 2)); break;
    case PE_COORDS_PIXEL: /* linspace(-1, 1, g), which is -1 if g is 1 */
        *start = g > 1 ? -(g - 1) / 2 : -1;
        return g > 1 ? dd_div(dd(2), dd(g - 1)) : dd(1);
    }
    return dd(1);
}

/* The frameworks store coordinates in f32, so arith float32 stores a list of them; otherwise the unit is multiplied
 * into the frequencies. */
static enum pe_status list_float32(struct pe_sequence *seq, struct pe_rotary *r, struct pe_failure *err)
{
    uint64_t n = 0, at = 0;
    for (unsigned a = 0; a < seq->n_grid; a++)
        n += seq->grid[a];
    r->coords = malloc(n * sizeof *r->coords);
    if (!r->coords)
        return pe_no_memory(err);
    for (unsigned a = 0; a < seq->n_grid; at += seq->grid[a++]) {
        struct pe_positions *p = &seq->k[a];
        for (uint64_t i = 0; i < seq->grid[a]; i++)
            r->coords[at + i] = (double)(float)dd_mul_d(r->unit[a], p->start + (double)i).hi;
        p->list = r->coords + at;
        seq->q[a].list = p->list;
        r->unit[a] = dd(1);
    }
    return PE_OK;
}

static enum pe_status set_coords(const struct pe_rotary_resolved *now, struct pe_sequence *seq, struct pe_rotary *r,
                                 struct pe_failure *err)
{
    for (unsigned a = 0; a < PE_AXES_MAX; a++)
        r->unit[a] = dd(1);
    if (now->coords == PE_UNSET_WORD || now->coords == PE_COORDS_INDEX)
        return PE_OK;
    for (unsigned a = 0; a < seq->n_grid; a++) {
        r->unit[a] = rule(now, seq->n_grid, a, (double)seq->grid[a], &seq->k[a].start);
        seq->q[a].start = seq->k[a].start;
    }
    return now->use.float32 ? list_float32(seq, r, err) : PE_OK;
}

/* ---- All of it ---- */

enum pe_status pe_rotary_tables(const struct pe_rotary_resolved *now, struct pe_plan *plan, struct pe_failure *err)
{
    struct pe_rotary *r = plan->tables = rotary_new(now);
    if (!r)
        return pe_no_memory(err);
    enum pe_status status = set_pairs(now, r, err);
    return status ? status : set_coords(now, &plan->seq, r, err);
}
