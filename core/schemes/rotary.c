/* The rotary family: parameters resolved, its outputs in every form, and its rotation.
 *
 * One rule makes all forms: pair c has a frequency, an axis and two channels. Tables of pairs (cos and sin, half as
 * wide as the head), tables expanded to the head's channels in either layout, complex pairs and matrices are the same
 * waves in other columns, so none has a formula of its own, and each value is correctly rounded in each form
 * (core/waves). The opposite direction changes the sign of the sines only.
 *
 * Resolving goes in one order, because each step needs what the one before has fixed: widths; axes and their shares of
 * the channels (rotary_axes.c); the scaling's fields (scaling.c); then the ladder of frequencies. A pasted
 * rope_parameters object is unpacked first, and what it states twice must agree. */
#include "core/schemes/rotary.h"

#include <stdlib.h>
#include <string.h>

const char *const pe_rotary_layouts[] = {[PE_LAYOUT_INTERLEAVED] = "interleaved",
                                         [PE_LAYOUT_HALF] = "half",
                                         [PE_LAYOUT_HALF_PER_AXIS] = "half_per_axis",
                                         [PE_LAYOUT_INTERLEAVED_TO_HALF] = "interleaved_to_half",
                                         [PE_LAYOUT_VJEPA2] = "vjepa2",
                                         NULL};
const char *const pe_rotary_forms[] = {
    [PE_FORM_PAIRS] = "pairs",     [PE_FORM_EXPANDED] = "expanded", [PE_FORM_CONCAT] = "concat",
    [PE_FORM_COMPLEX] = "complex", [PE_FORM_MATRIX] = "matrix",     NULL};

const struct pe_input_row pe_rotary_inputs[] = {
    PE_INPUT("q", "batch,num_heads,n,head_dim", PE_ROTATE, true, "queries", "queries; leading axes may be missing"),
    PE_INPUT("k", "batch,num_heads,n,head_dim", PE_ROTATE, true, "keys", "keys; may have fewer heads"),
    {.name = NULL},
};

/* ---- The parameters ----
 *
 * Planning has two of them: `given`, what the request gave, which no step writes, and the plan's config, what is
 * resolved from it, which the answer shows. */

/* A pasted object may have the base. */
static enum pe_status resolve_base(const struct pe_plan *plan, const struct pe_rotary_fields *given, double *base,
                                   struct pe_error *err)
{
    double pasted = given->scaling.rope_theta;
    if (isnan(pasted))
        return PE_OK;
    if (pe_plan_gave(plan, "base") && given->base != pasted)
        return pe_fail(err, "/scaling/rope_theta", "rope_theta is %.17g, base is %.17g; give one", pasted, given->base);
    *base = pasted;
    return PE_OK;
}

/* The rotated share of the head; a pasted object may have it, where its rule does not keep it. */
static enum pe_status find_share(const struct pe_rotary_fields *given, double *share, struct pe_error *err)
{
    double pasted = pe_scaling_meant(&given->scaling)->has_whole_head ? PE_UNSET : given->scaling.partial_rotary_factor;
    bool has_width = given->rotary_dim != PE_UNSET_INT;
    *share = has_width ? (double)given->rotary_dim / (double)given->head_dim : given->partial_rotary_factor;
    if (!isnan(pasted) && !isnan(*share) && *share != pasted)
        return pe_fail(err, "/scaling/partial_rotary_factor",
                       "partial_rotary_factor is %.10g, beside scaling it is %.10g; "
                       "give one",
                       pasted, *share);
    *share = has_width ? PE_UNSET : !isnan(pasted) ? pasted : *share;
    return PE_OK;
}

/* rotary_dim from head_dim or its share, or what the axes have together; int() as the libraries do: 0.3 · 80 = 24. */
static enum pe_status resolve_width(const struct pe_rotary_fields *given, double share, int64_t axes_width,
                                    int64_t *rotary_dim, struct pe_error *err)
{
    const char *pointer = !isnan(share) ? "/partial_rotary_factor" : "/rotary_dim";
    long long r = given->rotary_dim != PE_UNSET_INT ? given->rotary_dim : axes_width;
    if (!isnan(share))
        r = (long long)((double)given->head_dim * share);
    else if (r == PE_UNSET_INT) {
        r = given->head_dim;
        pointer = "/head_dim";
    }
    *rotary_dim = r;
    if (r < 2)
        return pe_fail(err, pointer, "rotary_dim would be %lld; needed: at least one pair of channels, 2", r);
    if (r % 2)
        return pe_fail(err, pointer, "%s %s%lld, which is odd: channels are rotated in pairs; write %lld or %lld%s",
                       pointer + 1, pointer[1] == 'r' ? "is " : "makes rotary_dim ", r, r - 1, r + 1,
                       pointer[1] == 'h' ? ", or give an even rotary_dim" : "");
    if (given->rotary_offset + r > given->head_dim)
        return pe_fail(err, given->rotary_offset ? "/rotary_offset" : pointer,
                       "rotary_offset %lld + rotary_dim %lld is %lld; allowed: at most head_dim, %lld",
                       (long long)given->rotary_offset, r, (long long)given->rotary_offset + r,
                       (long long)given->head_dim);
    return PE_OK;
}

static enum pe_status check(const struct pe_rotary_fields *c, struct pe_error *err)
{
    const struct pe_scaling_rule *rule = pe_scaling_rule_of_word(c->scaling.type);
    if (c->direction == 0)
        return pe_fail(err, "/direction", "direction is 0; allowed: 1 (counter-clockwise) or -1 (the inverse)");
    if (c->base == 1)
        return pe_fail(
            err, "/base",
            "base is 1, which gives every pair the same frequency; allowed: any other number from 0.001 to 1e12");
    if (rule->has_whole_head && c->rotary_dim != c->head_dim)
        return pe_fail(err, "/rotary_dim",
                       "rotary_dim is %lld; scaling %s turns every channel of the head (those it leaves out "
                       "by angle 0): leave rotary_dim out",
                       (long long)c->rotary_dim, rule->name);
    if (c->inv_freq.n)
        return pe_reals_expect(&c->inv_freq, (uint64_t)c->rotary_dim / 2, "inv_freq", "one per pair: rotary_dim/2",
                               err);
    return PE_OK;
}

/* The scaling, without the values of a pasted object that are now in fields of their own. */
static enum pe_status resolve_scaling(const struct pe_rotary_fields *given, const struct pe_scaling_use *use,
                                      struct pe_scaling *s, struct pe_error *err)
{
    struct pe_scaling rest = given->scaling;
    if (given->inv_freq.n)
        return PE_OK;
    rest.rope_theta = PE_UNSET;
    rest.mrope_section = (struct pe_reals){.n = 0};
    rest.mrope_interleaved = NULL;
    if (!pe_scaling_meant(&rest)->has_whole_head)
        rest.partial_rotary_factor = PE_UNSET;
    return pe_scaling_resolve(&rest, use, s, err);
}

/* ---- The plan ---- */

static struct pe_rotary *rotary_new(const struct pe_rotary_fields *c)
{
    size_t n = (size_t)c->rotary_dim / 2;
    struct pe_rotary *r = calloc(1, sizeof *r + n * (sizeof *r->inv_freq + sizeof *r->axis));
    if (!r)
        return NULL;
    r->inv_freq = (struct pe_dd *)(void *)(r + 1);
    r->axis = (unsigned char *)(r->inv_freq + n);
    r->n_pairs = n;
    r->head_dim = (size_t)c->head_dim;
    r->rotary_offset = (size_t)c->rotary_offset;
    r->layout = (enum pe_rotary_layout)c->layout;
    r->form = (enum pe_rotary_form)c->form;
    r->direction = (int)c->direction;
    r->float32 = c->arith == PE_ARITH_FLOAT32;
    return r;
}
_Static_assert(sizeof(struct pe_rotary) % _Alignof(struct pe_dd) == 0, "the frequencies stand behind the struct");

/* The request's own attention_factor takes precedence over the scaling's. */
static void resolve_factor(const struct pe_rotary_fields *given, struct pe_rotary_fields *c, struct pe_rotary *r)
{
    double scalings = given->inv_freq.n ? 1 : c->scaling.attention_factor;
    c->attention_factor = isnan(given->attention_factor) ? scalings : given->attention_factor;
    c->scaling.attention_factor = PE_UNSET;
    r->attention_factor = dd(c->attention_factor);
}

/* The frequency and axis of each pair, with scaling, and coordinates that are stored in a list. */
void pe_rotary_cost(const struct pe_plan *plan, struct pe_cost *cost)
{
    const struct pe_rotary_fields *c = plan->config;
    double n = (double)c->head_dim / 2, listed = 0;
    bool float32 = c->arith == PE_ARITH_FLOAT32;
    pe_cost_ladder(cost, n, float32);
    pe_cost_each(cost, n, sizeof(struct pe_dd) + sizeof(unsigned char), 400);
    for (unsigned a = 0; float32 && c->coords != PE_COORDS_INDEX && a < plan->seq.n_grid; a++)
        listed += (double)plan->seq.grid[a];
    pe_cost_each(cost, fmin(listed, PE_LISTED_POSITIONS_MAX), sizeof(double), PE_NS_PLACE);
    if (plan->seq.k->list || plan->seq.is_counted) /* a list may have coordinates for each of three axes */
        pe_cost_each(cost, (double)plan->seq.k->n, 0, 3 * PE_NS_VISIT);
}

enum pe_status pe_rotary_plan(struct pe_plan *plan, struct pe_error *err)
{
    struct pe_rotary_fields *c = plan->config;
    const struct pe_rotary_fields given = *c;
    int64_t axes_width = PE_UNSET_INT;
    double share;
    if (resolve_base(plan, &given, &c->base, err) || find_share(&given, &share, err))
        return err->status;
    c->partial_rotary_factor = PE_UNSET; /* becomes rotary_dim */
    if (pe_rotary_choose_axes(plan, &given, share, &axes_width, err) ||
        resolve_width(&given, share, axes_width, &c->rotary_dim, err) || check(c, err))
        return err->status;
    struct pe_rotary *r = plan->tables = rotary_new(c);
    if (!r)
        return pe_no_memory(err);
    struct pe_scaling_use use = {.base = c->base,
                                 .dim = (double)c->rotary_dim,
                                 .seq_len = pe_sequence_reach(&plan->seq),
                                 .head_dim = (double)c->head_dim,
                                 .float32 = r->float32};
    if (resolve_scaling(&given, &use, &c->scaling, err) || pe_rotary_set_pairs(plan, r, &use, err) ||
        pe_rotary_set_coords(plan, r, err))
        return err->status;
    resolve_factor(&given, c, r);
    return PE_OK;
}

void pe_rotary_drop(struct pe_plan *plan)
{
    struct pe_rotary *r = plan->tables;
    if (r) {
        free(r->coords);
        free(r->extra);
    }
    free(r);
}

/* ---- Columns ---- */

enum quarter { SINE, COSINE, MINUS_SINE };

/* The wave of pair c. The opposite direction only changes the sign of the sines. The unit of the axis's coordinates
 * is multiplied into the frequency, so that positions stay exact. */
static struct pe_wave wave(const struct pe_rotary *r, size_t c, enum quarter quarter)
{
    struct pe_dd f = r->float32 ? r->inv_freq[c] : pe_quarter_turns(dd_mul(r->inv_freq[c], r->unit[r->axis[c]]));
    if (r->direction < 0 && quarter != COSINE)
        quarter = quarter == SINE ? MINUS_SINE : SINE;
    return (struct pe_wave){f.hi, f.lo, r->attention_factor.hi, r->attention_factor.lo, (int)quarter, r->axis[c]};
}

/* Finds the block of pair c: its first pair and its number of pairs. */
static size_t block_of(const struct pe_rotary *r, size_t c, size_t *pairs)
{
    size_t first = 0, b = 0;
    for (; c >= first + r->block_pairs[b]; b++)
        first += r->block_pairs[b];
    *pairs = r->block_pairs[b];
    return first;
}

/* The two channels of pair c in an expanded table, counted from the first rotated channel. */
static void channels_of(const struct pe_rotary *r, size_t c, size_t channels[2])
{
    size_t pairs, first;
    switch (r->layout) {
    case PE_LAYOUT_INTERLEAVED:
        channels[0] = 2 * c;
        channels[1] = 2 * c + 1;
        return;
    case PE_LAYOUT_HALF:
    case PE_LAYOUT_INTERLEAVED_TO_HALF:
        channels[0] = c;
        channels[1] = c + r->n_pairs;
        return;
    case PE_LAYOUT_HALF_PER_AXIS:
    case PE_LAYOUT_VJEPA2:
        first = block_of(r, c, &pairs);
        channels[0] = first + c;
        channels[1] = first + c + pairs;
    }
}

static void pair_columns(const struct pe_rotary *r, size_t id, size_t c, struct pe_wave *columns)
{
    size_t channels[2] = {0, 0};
    switch (id) {
    case PE_COS: columns[c] = wave(r, c, COSINE); break;
    case PE_SIN: columns[c] = wave(r, c, SINE); break;
    case PE_COS_EXPANDED:
    case PE_SIN_EXPANDED:
        channels_of(r, c, channels);
        columns[channels[0]] = columns[channels[1]] = wave(r, c, id == PE_COS_EXPANDED ? COSINE : SINE);
        break;
    case PE_COS_SIN:
        columns[c] = wave(r, c, COSINE);
        columns[r->n_pairs + c] = wave(r, c, SINE);
        break;
    case PE_FREQS_CIS:
        columns[2 * c] = wave(r, c, COSINE);
        columns[2 * c + 1] = wave(r, c, SINE);
        break;
    case PE_MATRIX:
        columns[4 * c] = columns[4 * c + 3] = wave(r, c, COSINE);
        columns[4 * c + 1] = wave(r, c, MINUS_SINE);
        columns[4 * c + 2] = wave(r, c, SINE);
        break;
    default: break;
    }
}

bool pe_rotary_columns(const struct pe_plan *plan, size_t id, struct pe_wave *columns)
{
    const struct pe_rotary *r = plan->tables;
    if (id >= PE_INV_FREQ)
        return false;
    for (size_t c = 0; c < r->n_pairs; c++)
        pair_columns(r, id, c, columns);
    return true;
}

/* ---- The outputs that are no waves ---- */

static bool positions_are_integers(const struct pe_plan *plan)
{
    const struct pe_rotary *r = plan->tables;
    for (unsigned a = 0; a < plan->seq.n_axes; a++)
        if (!pe_positions_are_integers(&plan->seq.k[a]) || r->unit[a].hi != 1)
            return false;
    return true;
}

enum pe_dtype pe_rotary_dtype(const struct pe_plan *plan, size_t id, enum pe_dtype usual)
{
    return id == PE_POSITIONS && !positions_are_integers(plan) ? PE_F64 : usual;
}

/* A coordinate, rounded once. */
static double coordinate(const struct pe_plan *plan, uint64_t axis, uint64_t i)
{
    const struct pe_rotary *r = plan->tables;
    return dd_mul_d(r->unit[axis], pe_position_at(&plan->seq.k[axis], i)).hi;
}

static double rope_delta(const struct pe_plan *plan)
{
    if (plan->seq.has_segments)
        return (double)plan->seq.segments.rope_delta;
    return pe_sequence_reach(&plan->seq) - (double)plan->seq.k->n;
}

void pe_rotary_fill(const struct pe_plan *plan, const struct pe_output *output, size_t id, const struct pe_block *b,
                    void *dst)
{
    const struct pe_rotary *r = plan->tables;
    for (uint64_t i = 0; i < b->n_rows; i++)
        for (uint64_t j = 0; j < b->n_cols; j++) {
            double v = id == PE_INV_FREQ    ? r->inv_freq[b->col0 + j].hi
                       : id == PE_POSITIONS ? coordinate(plan, b->row0 + i, b->col0 + j)
                                            : rope_delta(plan);
            pe_store(output->dtype, dst, (size_t)(i * b->n_cols + j), v);
        }
}

/* ---- Rotation ---- */

static struct pe_rotation_block block(const struct pe_rotary *r, size_t pair0, size_t n_pairs)
{
    bool neighbours = r->layout == PE_LAYOUT_INTERLEAVED || r->layout == PE_LAYOUT_INTERLEAVED_TO_HALF ||
                      r->layout == PE_LAYOUT_VJEPA2;
    return (struct pe_rotation_block){.pair0 = pair0,
                                      .n_pairs = n_pairs,
                                      .first = 2 * pair0,
                                      .step = neighbours ? 2 : 1,
                                      .partner = neighbours ? 1 : n_pairs};
}

void pe_rotary_rotate(const struct pe_plan *plan, struct pe_rotation *rotation, struct pe_wave *columns)
{
    const struct pe_rotary *r = plan->tables;
    bool by_axis = r->layout == PE_LAYOUT_HALF_PER_AXIS || r->layout == PE_LAYOUT_VJEPA2;
    *rotation = (struct pe_rotation){.head_dim = r->head_dim,
                                     .n_pairs = r->n_pairs,
                                     .offset = r->rotary_offset,
                                     .n_blocks = by_axis ? r->n_blocks : 1,
                                     .to_half = r->layout == PE_LAYOUT_INTERLEAVED_TO_HALF,
                                     .is_tiled = r->layout == PE_LAYOUT_VJEPA2};
    for (size_t b = 0, pair0 = 0; b < rotation->n_blocks; b++) {
        size_t n = by_axis ? r->block_pairs[b] : r->n_pairs;
        rotation->blocks[b] = block(r, pair0, n);
        pair0 += n;
    }
    if (columns)
        pe_rotary_columns(plan, PE_COS_SIN, columns);
}
