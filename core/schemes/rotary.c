/* The rotary family: its outputs in every form, and its rotation. */
#include "core/schemes/rotary.h"

#include <stdlib.h>
#include <string.h>

const char *const pe_rotary_layouts[] = {[PE_LAYOUT_INTERLEAVED] = "interleaved", [PE_LAYOUT_HALF] = "half", NULL};
const char *const pe_rotary_forms[] = {
    [PE_FORM_PAIRS] = "pairs",     [PE_FORM_EXPANDED] = "expanded", [PE_FORM_CONCAT] = "concat",
    [PE_FORM_COMPLEX] = "complex", [PE_FORM_MATRIX] = "matrix",     NULL};

enum output { COS, SIN, COS_EXPANDED, SIN_EXPANDED, COS_SIN, FREQS_CIS, MATRIX, INV_FREQ, POSITIONS };

const struct pe_output_row pe_rotary_outputs[] = {
    [COS] = {"cos", "n,rotary_dim/2", 1, PE_DTYPE_NONE, false, "form=pairs", "cosine of each pair's angle"},
    [SIN] = {"sin", "n,rotary_dim/2", 1, PE_DTYPE_NONE, false, "form=pairs", "sine of each pair's angle"},
    [COS_EXPANDED] = {"cos", "n,rotary_dim", 1, PE_DTYPE_NONE, false, "form=expanded",
                      "cosine for each channel, in the order of the layout"},
    [SIN_EXPANDED] = {"sin", "n,rotary_dim", 1, PE_DTYPE_NONE, false, "form=expanded",
                      "sine for each channel, in the order of the layout"},
    [COS_SIN] = {"cos_sin", "n,rotary_dim", 1, PE_DTYPE_NONE, false, "form=concat", "cosines of all pairs, then sines"},
    [FREQS_CIS] = {"freqs_cis", "n,rotary_dim/2,2", 2, PE_DTYPE_NONE, false, "form=complex",
                   "complex e^(i·angle): cos, sin"},
    [MATRIX] = {"matrix", "n,rotary_dim/2,2,2", 3, PE_DTYPE_NONE, false, "form=matrix",
                "[[cos, -sin], [sin, cos]] of each pair"},
    [INV_FREQ] = {"inv_freq", "rotary_dim/2", 1, PE_F64, true, NULL,
                  "angular frequency of each pair, radians per position"},
    [POSITIONS] = {"positions", "axes,n", 1, PE_I64, true, NULL, "the positions used; f64 where one is fractional"},
    {.name = NULL},
};

const struct pe_input_row pe_rotary_inputs[] = {
    {"q", "batch,num_heads,n,head_dim", PE_ROTATE, true, "queries; leading axes may be missing"},
    {"k", "batch,num_heads,n,head_dim", PE_ROTATE, true, "keys; may have fewer heads"},
    {.name = NULL},
};

struct pe_rotary *pe_rotary_new(size_t n_pairs)
{
    struct pe_rotary *rotary = calloc(1, sizeof *rotary + n_pairs * sizeof *rotary->inv_freq);
    if (rotary)
        rotary->n_pairs = n_pairs;
    return rotary;
}

void pe_rotary_drop(struct pe_plan *plan) { free(plan->tables); }

/* ---- Columns ---- */

enum quarter { SINE, COSINE, MINUS_SINE };

/* The wave of pair c; turning the other way only changes the sign of the sines. */
static struct pe_wave wave(const struct pe_rotary *r, size_t c, enum quarter quarter)
{
    struct pe_dd f = r->float32 ? r->inv_freq[c] : pe_quarter_turns(r->inv_freq[c]);
    if (r->direction < 0 && quarter != COSINE)
        quarter = quarter == SINE ? MINUS_SINE : SINE;
    return (struct pe_wave){f.hi, f.lo, r->attention_factor.hi, r->attention_factor.lo, (int)quarter, 0};
}

/* The two channels that pair c turns, counted from the first rotated one. */
static void channels_of(const struct pe_rotary *r, size_t c, size_t channels[2])
{
    bool half = r->layout == PE_LAYOUT_HALF;
    channels[0] = half ? c : 2 * c;
    channels[1] = half ? c + r->n_pairs : 2 * c + 1;
}

static void pair_columns(const struct pe_rotary *r, size_t id, size_t c, struct pe_wave *columns)
{
    size_t channels[2];
    switch ((enum output)id) {
    case COS: columns[c] = wave(r, c, COSINE); break;
    case SIN: columns[c] = wave(r, c, SINE); break;
    case COS_EXPANDED:
    case SIN_EXPANDED:
        channels_of(r, c, channels);
        columns[channels[0]] = columns[channels[1]] = wave(r, c, id == COS_EXPANDED ? COSINE : SINE);
        break;
    case COS_SIN:
        columns[c] = wave(r, c, COSINE);
        columns[r->n_pairs + c] = wave(r, c, SINE);
        break;
    case FREQS_CIS:
        columns[2 * c] = wave(r, c, COSINE);
        columns[2 * c + 1] = wave(r, c, SINE);
        break;
    case MATRIX:
        columns[4 * c] = columns[4 * c + 3] = wave(r, c, COSINE);
        columns[4 * c + 1] = wave(r, c, MINUS_SINE);
        columns[4 * c + 2] = wave(r, c, SINE);
        break;
    case INV_FREQ:
    case POSITIONS: break;
    }
}

bool pe_rotary_columns(const struct pe_plan *plan, size_t id, struct pe_wave *columns)
{
    const struct pe_rotary *r = plan->tables;
    if (id == INV_FREQ || id == POSITIONS)
        return false;
    for (size_t c = 0; c < r->n_pairs; c++)
        pair_columns(r, id, c, columns);
    return true;
}

/* ---- The outputs that are no waves ---- */

enum pe_dtype pe_rotary_dtype(const struct pe_plan *plan, size_t id, enum pe_dtype usual)
{
    return id == POSITIONS && !pe_positions_are_integers(plan->seq.k) ? PE_F64 : usual;
}

void pe_rotary_fill(const struct pe_plan *plan, const struct pe_output *output, size_t id, const struct pe_block *b,
                    void *dst)
{
    const struct pe_rotary *r = plan->tables;
    for (size_t j = 0; j < b->n_cols; j++) /* both have one row */
        pe_store(output->dtype, dst, j,
                 id == INV_FREQ ? r->inv_freq[b->col0 + j].hi : pe_position_at(plan->seq.k, b->col0 + j));
}

void pe_rotary_rotate(const struct pe_plan *plan, struct pe_rotation *rotation, struct pe_wave *columns)
{
    const struct pe_rotary *r = plan->tables;
    bool half = r->layout == PE_LAYOUT_HALF;
    *rotation = (struct pe_rotation){.head_dim = r->head_dim,
                                     .n_pairs = r->n_pairs,
                                     .offset = r->rotary_offset,
                                     .pair_step = half ? 1 : 2,
                                     .partner = half ? r->n_pairs : 1};
    if (columns)
        pe_rotary_columns(plan, COS_SIN, columns);
}
