/* Rotary positions of a kind of layers: widths, base, pairing, axes, and the scaling that llama.cpp computes in the
 * end. With s the factor, a the key attn_factor, L the log multiplier and m(s, k) = 1 + 0.1·k·ln s (1 for s ≤ 1):
 *
 *     yarn: cos and sin times a·Y, Y = m(s, 1)/m(s, L)         (deepseek2 with another L than 1 and 0: m(s, L)/m(s, L))
 *     other types: times a
 *     softmax of MLA models: times (a'·(1 + 0.1·ln s)·(1 + 0.1·L·ln s))²,   a' = a·Y/(1 + 0.1·ln s) with yarn, else a
 *
 * The operator itself multiplies by 1 + 0.1·ln s with yarn, which llama.cpp has divided out before. */
#include "core/models/gguf/gguf.h"
#include "core/numeric/numeric.h"
#include "core/params.h"
#include "core/schemes/scalings/scaling.h"

#include <math.h>
#include <string.h>

/* ---- Widths ---- */

static enum pe_status divide_width(struct pe_gguf_reader *r, int64_t *head_dim)
{
    static const char what[] = "the width of a head needs it, or attention.key_length";
    int64_t width = 0, heads = 0;
    if (pe_gguf_size(r, PE_GGUF_HEADS, NULL, &heads) || pe_gguf_size(r, PE_GGUF_EMBEDDING, what, &width) ||
        pe_gguf_size(r, PE_GGUF_HEADS, what, &heads))
        return r->err->status;
    if (width % heads)
        return pe_gguf_wrong(r, PE_GGUF_HEADS, "a divisor of embedding_length, or attention.key_length beside it");
    *head_dim = width / heads;
    return PE_OK;
}

static enum pe_status read_head_dim(struct pe_gguf_reader *r, bool is_sliding, int64_t *head_dim)
{
    *head_dim = 0;
    bool is_mla = pe_gguf_has(r, PE_GGUF_KEY_LENGTH_MLA);
    if (pe_gguf_size(r, PE_GGUF_KEY_LENGTH, NULL, head_dim) ||
        pe_gguf_size(r, PE_GGUF_KEY_LENGTH_MLA, NULL, head_dim) ||
        (is_sliding && !is_mla && pe_gguf_size(r, PE_GGUF_KEY_LENGTH_SWA, NULL, head_dim)))
        return r->err->status;
    return *head_dim ? PE_OK : divide_width(r, head_dim);
}

static enum pe_status put_widths(struct pe_gguf_reader *r, bool is_sliding, int64_t *head_dim, int64_t *rotary)
{
    bool has_own = is_sliding && pe_gguf_has(r, PE_GGUF_DIMENSION_COUNT_SWA);
    enum pe_gguf_key_id id = has_own ? PE_GGUF_DIMENSION_COUNT_SWA : PE_GGUF_DIMENSION_COUNT;
    if (read_head_dim(r, is_sliding, head_dim))
        return r->err->status;
    *rotary = *head_dim;
    if (pe_gguf_size(r, id, NULL, rotary))
        return r->err->status;
    if (!pe_gguf_has(r, id))
        pe_gguf_default(r, id, pe_integer(*rotary));
    if (r->row->turns_whole_head && *rotary != *head_dim)
        return pe_gguf_wrong(r, id, "the width of a head: llama.cpp refuses another one for this architecture");
    if (*rotary > *head_dim)
        return pe_gguf_wrong(r, id, "at most the width of a head");
    if (r->row->full_turns_half && !is_sliding)
        *rotary /= 2;
    pe_hf_put_integer(r->out, "head_dim", *head_dim);
    pe_hf_put_integer(r->out, "rotary_dim", *rotary);
    if (r->row->turns_last && *head_dim > *rotary)
        pe_hf_put_integer(r->out, "rotary_offset", *head_dim - *rotary);
    return PE_OK;
}

/* ---- Base ---- */

static enum pe_status read_base(struct pe_gguf_reader *r, enum pe_gguf_key_id id, double fallback, double *base)
{
    *base = fallback;
    if (pe_gguf_real(r, id, base))
        return r->err->status;
    if (!pe_gguf_has(r, id))
        pe_gguf_default(r, id, pe_real(fallback));
    return *base > 0 ? PE_OK : pe_gguf_wrong(r, id, "a number above 0");
}

/* Hunyuan's alpha: base · alpha^(d/(d - 2)), d the width of a head. */
static enum pe_status apply_alpha(struct pe_gguf_reader *r, int64_t head_dim, double *base)
{
    double alpha = 0;
    if (!r->row->reads_alpha || pe_gguf_real(r, PE_GGUF_ALPHA, &alpha) || !(alpha > 0))
        return r->row->reads_alpha && pe_gguf_has(r, PE_GGUF_ALPHA) && alpha < 0
                   ? pe_gguf_wrong(r, PE_GGUF_ALPHA, "a number of at least 0")
                   : PE_OK;
    if (head_dim <= 2)
        return pe_gguf_wrong(r, PE_GGUF_ALPHA, "0 where a head has 2 channels: the exponent d/(d - 2) divides by zero");
    *base = pe_scaling_stretched(*base, alpha, (double)head_dim);
    return PE_OK;
}

static enum pe_status put_base(struct pe_gguf_reader *r, bool is_sliding, int64_t head_dim)
{
    const struct pe_gguf_architecture *row = r->row;
    double base = 10000;
    bool is_own = is_sliding && row->local_base == PE_GGUF_BASE_10000;
    bool has_own =
        is_own || (is_sliding && row->local_base != PE_GGUF_BASE_FULL && pe_gguf_has(r, PE_GGUF_FREQ_BASE_SWA));
    if (row->is_compressed && is_sliding) {
        if (!pe_gguf_has(r, PE_GGUF_COMPRESS_BASE))
            return pe_gguf_needs(r, PE_GGUF_COMPRESS_BASE, "this architecture needs it");
        if (read_base(r, PE_GGUF_COMPRESS_BASE, base, &base))
            return r->err->status;
    } else if (!row->is_never_scaled) {
        if ((!is_own && read_base(r, PE_GGUF_FREQ_BASE, base, &base)) ||
            (has_own && read_base(r, PE_GGUF_FREQ_BASE_SWA, base, &base)))
            return r->err->status;
    }
    if (apply_alpha(r, head_dim, &base))
        return r->err->status;
    pe_hf_put_number(r->out, "base", base);
    return PE_OK;
}

/* ---- Axes ---- */

static enum pe_status put_axes(struct pe_gguf_reader *r, bool *has_sections)
{
    struct pe_reals sections = {.n = 0};
    double *kept = r->out->numbers;
    *has_sections = false;
    if (r->row->sections == PE_GGUF_NO_SECTIONS)
        return PE_OK;
    if (pe_gguf_numbers(r, PE_GGUF_DIMENSION_SECTIONS, &sections))
        return r->err->status;
    if (!sections.n && r->row->sections == PE_GGUF_SECTIONS)
        return pe_gguf_needs(r, PE_GGUF_DIMENSION_SECTIONS, "this architecture needs it: pairs of time, height, width");
    if (!sections.n)
        return PE_OK;
    if (sections.n != 3 && sections.n != 4)
        return pe_gguf_wrong(r, PE_GGUF_DIMENSION_SECTIONS, "a list of 4 integers");
    for (size_t i = 0; i < sections.n; i++)
        kept[i] = pe_real_at(&sections, i);
    *has_sections = r->row->sections == PE_GGUF_SECTIONS || (kept[0] > 0 && kept[1] > 0);
    if (!*has_sections)
        return PE_OK;
    bool has_fourth = sections.n == 4 && kept[3] != 0 && pe_same(r->row->channels, "imrope");
    pe_hf_put_word(r->out, "channels", r->row->channels);
    pe_hf_put_list(r->out, "mrope_section", kept, has_fourth ? 4 : 3);
    return PE_OK;
}

/* ---- Scaling ---- */

struct scaling {
    const char *type; /* as llama.cpp takes it */
    double factor, original, attn, log_multiplier, beta_fast, beta_slow, ext, yarn_attn;
    bool ramps; /* yarn's blend */
};

static enum pe_status read_factor(struct pe_gguf_reader *r, struct scaling *s)
{
    s->type = "linear";
    s->factor = 0;
    enum pe_gguf_key_id id = pe_gguf_has(r, PE_GGUF_FACTOR) ? PE_GGUF_FACTOR : PE_GGUF_SCALE_LINEAR;
    if (pe_gguf_word(r, PE_GGUF_SCALING_TYPE, &s->type) || pe_gguf_real(r, id, &s->factor))
        return r->err->status;
    if (!pe_is_among("none|linear|yarn|longrope", s->type))
        return pe_gguf_wrong(r, PE_GGUF_SCALING_TYPE, "none, linear, yarn, longrope");
    if (s->factor < 0)
        return pe_gguf_wrong(r, id, "a number of at least 0; 0 means 1");
    if (s->factor == 0 || pe_same(s->type, "none"))
        s->factor = 1;
    return PE_OK;
}

enum pe_status pe_gguf_original(struct pe_gguf_reader *r, double *original)
{
    int64_t length = 0;
    if (pe_gguf_count(r, PE_GGUF_CONTEXT, &length))
        return r->err->status;
    if (!pe_gguf_has(r, PE_GGUF_ORIGINAL) && pe_gguf_has(r, PE_GGUF_CONTEXT))
        pe_gguf_default(r, PE_GGUF_ORIGINAL, pe_integer(length));
    if (pe_gguf_count(r, PE_GGUF_ORIGINAL, &length))
        return r->err->status;
    *original = (double)length;
    return PE_OK;
}

/* The betas, where they are read: others run with 32 and 1. */
static enum pe_status read_betas(struct pe_gguf_reader *r, struct scaling *s)
{
    static const enum pe_gguf_key_id ids[] = {PE_GGUF_BETA_FAST, PE_GGUF_BETA_SLOW};
    double *betas[] = {&s->beta_fast, &s->beta_slow};
    s->beta_fast = r->row->beta_fast > 0 ? r->row->beta_fast : 32;
    s->beta_slow = 1;
    for (size_t i = 0; r->row->beta_fast > 0 && i < 2; i++) {
        if (!pe_gguf_has(r, ids[i]))
            pe_gguf_default(r, ids[i], pe_real(*betas[i]));
        if (pe_gguf_real(r, ids[i], betas[i]))
            return r->err->status;
        if (!(*betas[i] > 0))
            return pe_gguf_wrong(r, ids[i], "a number above 0");
    }
    return PE_OK;
}

/* Below 0 the weight of the ramp is 1 for yarn and 0 for the others. */
static enum pe_status read_ext(struct pe_gguf_reader *r, struct scaling *s)
{
    s->ext = -1;
    s->yarn_attn = 1;
    if (r->row->reads_ext &&
        (pe_gguf_real(r, PE_GGUF_EXT_FACTOR, &s->ext) || pe_gguf_real(r, PE_GGUF_YARN_ATTN_FACTOR, &s->yarn_attn)))
        return r->err->status;
    if (s->ext < 0)
        s->ext = pe_same(s->type, "yarn") ? 1 : 0;
    if (s->ext > 1)
        return pe_gguf_wrong(r, PE_GGUF_EXT_FACTOR, "a number of at most 1");
    s->ramps = s->ext != 0;
    return PE_OK;
}

static enum pe_status read_scaling(struct pe_gguf_reader *r, struct scaling *s)
{
    s->attn = 1;
    s->log_multiplier = 0;
    if (read_factor(r, s) || pe_gguf_real(r, PE_GGUF_ATTN_FACTOR, &s->attn) || read_ext(r, s))
        return r->err->status;
    if (r->row->log_multiplier > 0 && pe_gguf_real(r, PE_GGUF_LOG_MULTIPLIER, &s->log_multiplier))
        return r->err->status;
    if (r->row->log_multiplier == 10) /* the file has a tenth of it */
        s->log_multiplier /= 0.1;
    if (s->log_multiplier < 0)
        return pe_gguf_wrong(r, PE_GGUF_LOG_MULTIPLIER, "a number of at least 0");
    if (!(s->attn > 0))
        return pe_gguf_wrong(r, PE_GGUF_ATTN_FACTOR, "a number above 0");
    if (!s->ramps)
        return PE_OK;
    return pe_gguf_original(r, &s->original) ? r->err->status : read_betas(r, s);
}

/* a·Y */
static struct pe_dd attention_of(const struct pe_gguf_reader *r, const struct scaling *s)
{
    double l = s->log_multiplier, k = r->row->log_multiplier_is_scale && l != 0 ? l : 1;
    if (!s->ramps)
        return dd_mul_d(dd(s->attn), s->yarn_attn);
    return dd_mul_d(dd_div(pe_scaling_magnitude(s->factor, k), pe_scaling_magnitude(s->factor, l)), s->attn);
}

static double softmax_of(const struct pe_gguf_reader *r, const struct scaling *s)
{
    struct pe_dd tenth = dd_div(pe_dd_log(dd(s->factor)), dd(10)), one = dd(1);
    struct pe_dd by_l = dd_add(one, dd_mul_d(tenth, s->log_multiplier));
    struct pe_dd by_1 = s->ramps ? one : dd_add(one, tenth); /* divided out of a' with yarn */
    struct pe_dd root = dd_mul(dd_mul(attention_of(r, s), by_1), by_l);
    return dd_mul(root, root).hi;
}

/* ---- Divisors ---- */

/* A file may be sent in part: {"needs":[first,last]}, bytes of the file; null: its table of tensors is cut. */
static enum pe_status fail_unsent(const struct pe_gguf_reader *r, const struct pe_value *v, const char *pointer,
                                  const char *name)
{
    const struct pe_value *needs = v->kind == PE_OBJECT ? pe_field_find(v->object.fields, v->object.n, "needs") : NULL;
    bool is_list = needs && needs->kind == PE_LIST && needs->list.n == 2 && needs->list.items[0].kind == PE_INTEGER &&
                   needs->list.items[1].kind == PE_INTEGER;
    if (needs && !is_list)
        pe_fail(r->err, pointer,
                "the table of tensors is cut, so it is not known whether the file has %s, whose numbers divide the "
                "frequencies; send more of it",
                name);
    else
        pe_fail(r->err, pointer, "the file has %s, which was not sent, and its numbers divide the frequencies; send it",
                name);
    r->err->needs = is_list ? PE_NEEDS : PE_NEEDS_UNKNOWN;
    for (size_t i = 0; is_list && i < 2; i++)
        r->err->need[i] = needs->list.items[i].integer;
    return r->err->status;
}

static enum pe_status read_tensor(const struct pe_gguf_reader *r, enum pe_gguf_tensor which, int64_t pairs,
                                  struct pe_reals *list)
{
    const struct pe_value *v = r->tensors[which];
    const char *name = pe_gguf_tensor_names[which];
    char pointer[PE_POINTER_MAX];
    list->n = 0;
    if (!v)
        return PE_OK;
    pe_pointer_join(pointer, sizeof pointer, "/gguf/tensors", name);
    if (v->kind == PE_NULL || v->kind == PE_OBJECT)
        return fail_unsent(r, v, pointer, name);
    if (v->kind != PE_ARRAY || v->array.rank != 1)
        return pe_fail(r->err, pointer, "%s is not a list of numbers", name);
    *list = (struct pe_reals){v->array, v->array.shape[0]};
    /* step35 has as many as the wider of its two kinds */
    if (r->row->full_turns_half && (int64_t)list->n > pairs)
        list->array.shape[0] = list->n = (uint64_t)pairs;
    if ((int64_t)list->n != pairs)
        return pe_fail(r->err, pointer, "%s has %llu numbers; needed: %lld, one per rotated pair", name,
                       (unsigned long long)list->n, (long long)pairs);
    for (uint64_t i = 0; i < list->n; i++)
        if (!(pe_real_at(list, i) > 0) || !isfinite(pe_real_at(list, i)))
            return pe_fail(r->err, pointer, "%s has %.10g at index %llu; allowed: finite numbers above 0", name,
                           pe_real_at(list, i), (unsigned long long)i);
    return PE_OK;
}

static void add_member(struct pe_gguf_reader *r, size_t *n, const char *name, struct pe_value value)
{
    r->out->scaling[(*n)++] = (struct pe_field){name, value};
}

/* A list of the file, times the factor. kept has room for it. */
static void add_list(struct pe_gguf_reader *r, size_t *n, const char *name, const struct pe_reals *list, double factor,
                     double *kept)
{
    for (uint64_t i = 0; factor != 1 && i < list->n; i++)
        kept[i] = pe_real_at(list, i) * factor;
    add_member(r, n, name,
               factor != 1 ? pe_list_of(kept, list->n)
                           : (struct pe_value){.kind = PE_ARRAY, .from_text = true, .array = list->array});
}

/* Which list is used depends on the allocated context, which is by default that of the file. */
static enum pe_status add_longrope(struct pe_gguf_reader *r, size_t *n, const struct scaling *s,
                                   const struct pe_reals *lists)
{
    double *kept = r->out->numbers;
    int64_t context = 0;
    struct scaling lengths = *s;
    if (s->factor != 1 && 2 * lists[0].n > PE_MODEL_NUMBERS_MAX) {
        const char *name = pe_gguf_tensor_names[PE_GGUF_FACTORS_LONG];
        return pe_fail_at(r->err, "/gguf/tensors", name, "%s has %llu numbers; allowed beside a factor: at most %d",
                          name, (unsigned long long)lists[0].n, PE_MODEL_NUMBERS_MAX / 2);
    }
    if (pe_gguf_count(r, PE_GGUF_CONTEXT, &context) || pe_gguf_original(r, &lengths.original))
        return r->err->status;
    add_member(r, n, "type", pe_word("longrope"));
    add_member(r, n, "convention", pe_word("ggml"));
    if (lengths.original > 0)
        add_member(r, n, "original_max_position_embeddings", pe_real(lengths.original));
    if (context > 0)
        add_member(r, n, "seq_len", pe_real((double)context));
    add_list(r, n, "short_factor", &lists[1], s->factor, kept);
    add_list(r, n, "long_factor", &lists[0], s->factor, kept + lists[0].n);
    return PE_OK;
}

static void add_rule(struct pe_gguf_reader *r, size_t *n, const struct scaling *s, const struct pe_reals *divisors)
{
    bool is_linear = !s->ramps && s->factor != 1;
    add_member(r, n, "type", pe_word(s->ramps ? "yarn" : is_linear ? "linear" : "default"));
    if (s->ramps || is_linear || divisors->n)
        add_member(r, n, "convention", pe_word("ggml"));
    if (s->ramps || is_linear)
        add_member(r, n, "factor", pe_real(s->factor));
    if (s->ramps) {
        if (s->original > 0)
            add_member(r, n, "original_max_position_embeddings", pe_real(s->original));
        add_member(r, n, "beta_fast", pe_real(s->beta_fast));
        add_member(r, n, "beta_slow", pe_real(s->beta_slow));
        if (s->ext != 1)
            add_member(r, n, "extrapolation_factor", pe_real(s->ext));
        add_member(r, n, "attention_factor", pe_real(attention_of(r, s).hi));
    }
    if (divisors->n)
        add_member(r, n, "divisors", (struct pe_value){.kind = PE_ARRAY, .from_text = true, .array = divisors->array});
}

static enum pe_status put_rule(struct pe_gguf_reader *r, const struct scaling *s, int64_t pairs)
{
    const struct pe_gguf_architecture *row = r->row;
    bool takes_lists =
        row->divisors == PE_GGUF_LISTS || (row->divisors == PE_GGUF_BY_TYPE && pe_same(s->type, "longrope"));
    struct pe_reals lists[2] = {{.n = 0}, {.n = 0}}, divisors = {.n = 0};
    size_t n = 0;
    if (takes_lists && (read_tensor(r, PE_GGUF_FACTORS_LONG, pairs, &lists[0]) ||
                        read_tensor(r, PE_GGUF_FACTORS_SHORT, pairs, &lists[1])))
        return r->err->status;
    if (!takes_lists && row->divisors && read_tensor(r, PE_GGUF_ROPE_FREQS, pairs, &divisors))
        return r->err->status;
    if (!lists[0].n != !lists[1].n)
        return pe_fail(r->err, "/gguf/tensors",
                       "of rope_factors_long.weight and rope_factors_short.weight one is "
                       "missing; a file has both");
    if (lists[0].n && !s->ramps) {
        if (add_longrope(r, &n, s, lists))
            return r->err->status;
    } else {
        add_rule(r, &n, s, &divisors);
    }
    if (row->has_softmax_factor && softmax_of(r, s) != 1)
        add_member(r, &n, "softmax_scale_factor", pe_real(softmax_of(r, s)));
    pe_hf_put(r->out, "scaling", pe_object(r->out->scaling, n));
    if (!s->ramps && attention_of(r, s).hi != 1)
        pe_hf_put_number(r->out, "attention_factor", attention_of(r, s).hi);
    return PE_OK;
}

/* Sliding layers may be unscaled; DeepSeek V4 scales its compressed kind only, without a factor on cos and sin. */
static enum pe_status put_scaling(struct pe_gguf_reader *r, bool is_sliding, int64_t pairs)
{
    const struct pe_gguf_architecture *row = r->row;
    struct scaling s;
    bool is_unscaled = row->is_compressed ? !is_sliding : is_sliding && row->local_is_unscaled;
    if (read_scaling(r, &s))
        return r->err->status;
    double attn = is_unscaled && !row->local_is_plain && !row->is_compressed ? s.attn : 1;
    if (row->is_never_scaled || is_unscaled) {
        pe_hf_put(r->out, "scaling", pe_object(r->out->scaling, 1));
        r->out->scaling[0] = (struct pe_field){"type", {.kind = PE_STRING, .string = "default"}};
        if (attn != 1 && !row->is_never_scaled)
            pe_hf_put_number(r->out, "attention_factor", attn);
        return PE_OK;
    }
    if (put_rule(r, &s, pairs))
        return r->err->status;
    if (row->is_compressed)
        pe_hf_put_number(r->out, "attention_factor", 1);
    return PE_OK;
}

enum pe_status pe_gguf_rope(struct pe_gguf_reader *r, unsigned kind)
{
    bool is_sliding = kind & PE_GGUF_SLIDING, has_sections;
    int64_t head_dim, rotary;
    pe_hf_put_word(r->out, "scheme", "rope");
    if (put_widths(r, is_sliding, &head_dim, &rotary) || put_base(r, is_sliding, head_dim) ||
        put_axes(r, &has_sections))
        return r->err->status;
    pe_hf_put_word(r->out, "layout", r->row->is_half || has_sections ? "half" : "interleaved");
    return put_scaling(r, is_sliding, rotary / 2);
}
