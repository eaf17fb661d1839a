/* The rotary family: its plan, its outputs in every form, and its rotation.
 *
 * One rule makes all forms: pair c has a frequency, an axis and two channels. Tables of pairs (cos and sin, half as
 * wide as the head), tables expanded to the head's channels in either layout, complex pairs and matrices are the same
 * waves in other columns, so none has a formula of its own, and each value is correctly rounded in each form
 * (core/waves). The opposite direction changes the sign of the sines only.
 *
 * Planning goes in one direction: the fields as read (struct pe_rotary_fields, the plan's config) → what they resolve
 * to (struct pe_rotary_resolved; rotary_resolve.c) → the tables (struct pe_rotary; rotary_tables.c). Then the config
 * gets the resolved values, for the answer to show. */
#include "core/schemes/rotary/rotary.h"
#include "core/attend.h"

#include <stdlib.h>

const char *const pe_rotary_forms[] = {
    [PE_FORM_PAIRS] = "pairs",     [PE_FORM_EXPANDED] = "expanded", [PE_FORM_CONCAT] = "concat",
    [PE_FORM_COMPLEX] = "complex", [PE_FORM_MATRIX] = "matrix",     NULL};
const struct pe_input_row pe_rotary_inputs[] = {
    PE_INPUT("q", "batch,num_heads,n,head_dim", PE_ROTATE, true, "queries", "queries; leading axes may be missing"),
    PE_INPUT("k", "batch,num_heads,n,head_dim", PE_ROTATE, true, "keys", "keys; may have fewer heads"),
    {.name = NULL},
};

/* ---- The plan ---- */

/* The frequency and axis of each pair, with scaling, and coordinates that are stored in a list. */
void pe_rotary_cost(const struct pe_plan *plan, struct pe_cost *cost)
{
    const struct pe_rotary_fields *c = plan->config;
    double n = (double)c->head_dim / 2;
    bool float32 = c->arith == PE_ARITH_FLOAT32;
    pe_cost_ladder(cost, n, float32);
    pe_cost_each(cost, n, sizeof(struct pe_dd) + sizeof(unsigned char), 400);
    pe_cost_each(cost, c->arith == PE_ARITH_GGML ? n : 0, sizeof(struct pe_ggml_steps), 20);
    pe_coords_cost(&c->at, &plan->seq, cost);
    if (plan->seq.k->list || plan->seq.is_counted) /* a list may have coordinates for each of three axes */
        pe_cost_each(cost, (double)pe_positions_count(plan->seq.k), 0, 3 * PE_NS_VISIT);
}

/* The config that the answer shows: resolved, and what a pasted object states is in fields of their own. */
static void show(const struct pe_rotary_resolved *now, struct pe_rotary *r, struct pe_rotary_fields *config)
{
    struct pe_scaling *s = &config->scaling;
    struct pe_tensor widths = {.dtype = PE_I64, .rank = 1, .shape = {now->n_widths}, .data = r->widths};
    if (!config->inv_freq.n)
        pe_scaling_show(&now->scaling, s);
    s->attention_factor = s->rope_theta = PE_UNSET;
    s->mrope_section = (struct pe_reals){.n = 0};
    s->mrope_interleaved = NULL;
    if (!pe_scaling_rule_of_word(s->type)->has_whole_head)
        s->partial_rotary_factor = PE_UNSET;
    config->attention_factor = now->attention_factor;
    config->partial_rotary_factor = PE_UNSET; /* is rotary_dim */
    config->rotary_dim = 2 * (int64_t)now->n_pairs;
    config->base = now->given->axis_base.n ? PE_UNSET : now->use.base;
    config->channels = now->channels;
    config->at.coords = now->at.coords;
    if (now->n_widths)
        *(now->channels == PE_UNSET_WORD ? &config->axes_dim : &config->mrope_section) =
            (struct pe_reals){.array = widths, .n = now->n_widths};
}

enum pe_status pe_rotary_plan(struct pe_plan *plan, struct pe_failure *err)
{
    struct pe_rotary_resolved resolved;
    if (pe_rotary_resolve(plan, &resolved, err) || pe_rotary_tables(&resolved, plan, err))
        return err->status;
    show(&resolved, plan->tables, plan->config);
    return PE_OK;
}

void pe_rotary_drop(struct pe_plan *plan)
{
    struct pe_rotary *r = plan->tables;
    free(r->at.lists);
    free(r->extra);
    free(r->steps);
}

/* ---- Attention ---- */

/* DeepSeek's models multiply the softmax scale by the square of YaRN's magnitude. */
static double softmax_scale(const struct pe_plan *plan, size_t head_dim)
{
    const struct pe_rotary_fields *c = plan->config;
    double factor = c->scaling.softmax_scale_factor;
    return (isnan(factor) ? 1 : factor) / sqrt((double)head_dim);
}

const struct pe_attend pe_rotary_attend = {.softmax_scale = softmax_scale};

/* ---- Columns ---- */

enum quarter { SINE, COSINE, MINUS_SINE };

/* The wave of pair c. The opposite direction only changes the sign of the sines. The unit of the axis's coordinates
 * is multiplied into the frequency, so that positions stay exact. */
static struct pe_wave wave(const struct pe_rotary *r, size_t c, enum quarter quarter)
{
    struct pe_dd f = r->float32 ? r->inv_freq[c] : pe_quarter_turns(dd_mul(r->inv_freq[c], r->at.unit[r->axis[c]]));
    if (r->direction < 0 && quarter != COSINE)
        quarter = quarter == SINE ? MINUS_SINE : SINE;
    return (struct pe_wave){f.hi,         f.lo,       r->attention_factor.hi,        r->attention_factor.lo,
                            (int)quarter, r->axis[c], r->steps ? &r->steps[c] : NULL};
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

/* ---- One number, step by step ---- */

/* The pair and the wave of a column, counted over the whole row of a position. */
static size_t pair_of(const struct pe_rotary *r, size_t id, size_t column, enum quarter *quarter)
{
    static const enum quarter of_matrix[] = {COSINE, MINUS_SINE, SINE, COSINE};
    size_t n = r->n_pairs, c = 0, channels[2] = {column, column};
    *quarter = id == PE_SIN || id == PE_SIN_EXPANDED ? SINE : COSINE;
    switch (id) {
    case PE_COS_EXPANDED:
    case PE_SIN_EXPANDED:
        for (channels_of(r, 0, channels); channels[0] != column && channels[1] != column;)
            channels_of(r, ++c, channels);
        return c;
    case PE_COS_SIN: *quarter = column < n ? COSINE : SINE; return column % n;
    case PE_FREQS_CIS: *quarter = column % 2 ? SINE : COSINE; return column / 2;
    case PE_MATRIX: *quarter = of_matrix[column % 4]; return column / 4;
    default: return column;
    }
}

/* θ, by the frequency or by what the recipe has in its place. */
static struct pe_dd state_angle(const struct pe_plan *plan, size_t c, double p, struct pe_dd w, struct pe_derivation *d)
{
    const struct pe_rotary *r = plan->tables;
    const char *sign = r->direction < 0 ? "−" : "", *of = d->n ? d->at[d->n - 1].symbol : "w";
    struct pe_dd unit = r->at.unit[r->axis[c]], x = dd_mul_d(unit, p);
    if (unit.hi != 1 || unit.lo != 0) {
        x = pe_derived(d, "x", pe_derived_round(d, PE_F32, x), "%s·%s", pe_shown(p).text, pe_brief(unit, 7).text);
        pe_derived_says(d, "the coordinate of this position");
    }
    enum pe_rungs rungs = pe_recipes[d->recipe].rungs;
    struct pe_dd angle = pe_derived_angle(d, x, w, c);
    if (r->direction < 0)
        angle = dd_neg(angle);
    if (rungs == PE_RUNGS_DIVISOR)
        return pe_derived(d, "θ", angle, "%s%s/b", sign, pe_brief(x, 15).text);
    if (rungs == PE_RUNGS_PRODUCT)
        return pe_derived(d, "θ", angle, "%s%s·t^%zu", sign, pe_brief(x, 15).text, c);
    return pe_derived(d, "θ", angle, "%s%s·%s", sign, pe_brief(x, 15).text, of);
}

/* ggml's own steps, where a scaling changes them. */
static enum pe_status derive_ggml(const struct pe_plan *plan, size_t c, double p, struct pe_derivation *d,
                                  struct pe_dd *angle, struct pe_failure *err)
{
    const struct pe_rotary *r = plan->tables;
    struct pe_rotary_resolved now;
    struct pe_ggml_chain chain = {0, 0, 0};
    struct pe_ggml_steps steps[PE_HEAD_DIM_MAX / 2];
    if (!pe_rotary_resolve_ggml(plan, &now))
        return pe_fail(err, "/recipe", "recipe ggml does not have this configuration");
    pe_rotary_steps(&now, steps);
    pe_derived(d, "t", dd((double)steps[c].power), "base^(-2/r)");
    float x = pe_ggml_angle(&steps[c], &chain, p);
    *angle = pe_derived(d, "θ", dd(r->direction * (double)x), "%s·t^%zu", pe_shown(p).text, c);
    return PE_OK;
}

static void state_number(const struct pe_rotary *r, struct pe_dd angle, enum quarter quarter, struct pe_derivation *d)
{
    static const char *const symbols[] = {[SINE] = "sin θ", [COSINE] = "cos θ", [MINUS_SINE] = "−sin θ"};
    static const char *const scaled[] = {[SINE] = "m·sin θ", [COSINE] = "m·cos θ", [MINUS_SINE] = "−m·sin θ"};
    struct pe_dd m = r->attention_factor;
    struct pe_dd x = pe_derived(d, symbols[quarter], pe_derived_sine(d, angle, (int)quarter), "%s", "");
    if (m.hi == 1)
        return;
    x = pe_derived_round(d, pe_recipes[d->recipe].result, dd_mul(x, pe_derived_round(d, PE_F32, m)));
    pe_derived(d, scaled[quarter], x, "%s·%s", pe_shown(m.hi).text, symbols[quarter]);
    pe_derived_says(d, "attention_factor multiplies cosines and sines");
}

enum pe_status pe_rotary_derive(const struct pe_plan *plan, size_t id, const struct pe_address *at,
                                struct pe_derivation *d, struct pe_failure *err)
{
    const struct pe_rotary *r = plan->tables;
    struct pe_rotary_resolved now;
    struct pe_dd w, angle;
    enum quarter quarter;
    if (id > PE_INV_FREQ)
        return pe_fail(err, "/tensor",
                       "this tensor has positions, which no formula gives; allowed: cosines, sines and frequencies");
    size_t c = id == PE_INV_FREQ ? at->col : pair_of(r, id, at->col, &quarter);
    double p = pe_position_at(&plan->seq.k[r->axis[c]], at->row);
    if (!pe_rotary_resolve_built(plan, &now))
        return pe_no_memory(err);
    if (d->recipe == PE_RECIPE_GGML && id != PE_INV_FREQ) {
        if (derive_ggml(plan, c, p, d, &angle, err))
            return err->status;
        state_number(r, angle, quarter, d);
        return PE_OK;
    }
    if (pe_rotary_frequency(&now, c, d, &w, err))
        return err->status;
    if (id != PE_INV_FREQ)
        state_number(r, state_angle(plan, c, p, w, d), quarter, d);
    return PE_OK;
}

/* ---- The outputs that are no waves ---- */

enum pe_dtype pe_rotary_dtype(const struct pe_plan *plan, size_t id, enum pe_dtype usual)
{
    const struct pe_rotary *r = plan->tables;
    return id == PE_POSITIONS && !pe_coords_are_integers(&r->at, &plan->seq) ? PE_F64 : usual;
}

const struct pe_coords *pe_rotary_coords(const struct pe_plan *plan)
{
    return &((const struct pe_rotary *)plan->tables)->at;
}

static double coordinate(const struct pe_plan *plan, unsigned axis, uint64_t i)
{
    const struct pe_rotary *r = plan->tables;
    return pe_coords_at(&r->at, &plan->seq.k[axis], axis, i);
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
                       : id == PE_POSITIONS ? coordinate(plan, (unsigned)(b->row0 + i), b->col0 + j)
                                            : rope_delta(plan);
            pe_store(output->dtype, dst, (size_t)(i * b->n_cols + j), v);
        }
}

/* ---- Rotation ---- */

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
        bool neighbours = r->layout == PE_LAYOUT_INTERLEAVED || r->layout == PE_LAYOUT_INTERLEAVED_TO_HALF ||
                          r->layout == PE_LAYOUT_VJEPA2;
        rotation->blocks[b] = (struct pe_rotation_block){.pair0 = pair0,
                                                         .n_pairs = n,
                                                         .first = 2 * pair0,
                                                         .step = neighbours ? 2 : 1,
                                                         .partner = neighbours ? 1 : n};
        pair0 += n;
    }
    if (columns)
        pe_rotary_columns(plan, PE_COS_SIN, columns);
}

const struct pe_field *pe_rotary_lengthless(const struct pe_plan *plan)
{
    const struct pe_param *rows = plan->scheme->info.params, *row = pe_param_find(rows, "scaling");
    const struct pe_scaling *shown = row ? (const void *)((const char *)plan->config + row->offset) : NULL;
    if (!shown || !pe_scaling_depends_on_length(pe_scaling_rule_of_word(shown->type)))
        return NULL;
    for (size_t i = 0; i < plan->inheritance->n; i++) {
        const struct pe_field *field = &plan->inheritance->fields[i];
        if (pe_param_find(rows, field->name) == row && field->value.kind == PE_OBJECT)
            return pe_field_find(field->value.object.fields, field->value.object.n, "seq_len") ? NULL : field;
    }
    return NULL;
}
