/* A configuration as the keys of a GGUF file, and the divisors of its frequencies.
 *
 * Reals are stored as f32. What the keys have no word for is said by divisors d_c = w_c/w'_c where the architecture's
 * graph uses them: then its frequency is w'_c, rounded. The converter writes fewer keys than the program would read;
 * what it leaves out has been left out of the configuration before (core/tools/tools/llama_cpp.c). */
#include "core/models/gguf/gguf.h"
#include "core/numeric/numeric.h"
#include "core/params.h"
#include "core/schemes/scalings/scaling.h"

#include <math.h>
#include <stdio.h>
#include <string.h>

enum { KEYS_MAX = 40 };

struct keys {
    const struct pe_gguf_wish *wish;
    const struct pe_gguf_architecture *row;
    struct pe_values *values;
    struct pe_field *fields; /* [KEYS_MAX] */
    size_t n;
    struct pe_field *tensors; /* [PE_GGUF_TENSORS] */
    size_t n_tensors;
    bool failed;
};

static const struct pe_value *full(const struct keys *k) { return k->wish->full->config; }

/* A number of the full kind's configuration. */
static double at(const struct keys *k, const char *path, double otherwise)
{
    return pe_config_number(full(k), path, otherwise);
}

static double f32(double x) { return (double)(float)x; }

static void put_key(struct keys *k, enum pe_gguf_key_id id, struct pe_value value)
{
    enum { NAME_MAX_BYTES = 96 };
    char *name = pe_values_room(k->values, NAME_MAX_BYTES);
    if (!name) {
        k->failed = true;
        return;
    }
    snprintf(name, NAME_MAX_BYTES, "%.40s.%s", k->wish->architecture, pe_gguf_key_at(id)->name);
    k->fields[k->n++] = (struct pe_field){name, value};
}

static void put_count(struct keys *k, enum pe_gguf_key_id id, double x) { put_key(k, id, pe_integer((int64_t)x)); }

static void put_real(struct keys *k, enum pe_gguf_key_id id, double x) { put_key(k, id, pe_real(f32(x))); }

static void put_word(struct keys *k, enum pe_gguf_key_id id, const char *word) { put_key(k, id, pe_word(word)); }

/* n numbers, stored as f32. */
static double *room(struct keys *k, size_t n)
{
    double *numbers = pe_values_room(k->values, (n + 1) * sizeof *numbers);
    k->failed |= !numbers;
    return numbers;
}

/* n integers, 0 at first, stored as i32. */
static int64_t *room_of_counts(struct keys *k, size_t n)
{
    int64_t *counts = pe_values_room(k->values, (n + 1) * sizeof *counts);
    k->failed |= !counts;
    return counts;
}

static void put_counts(struct keys *k, enum pe_gguf_key_id id, const int64_t *counts, size_t n)
{
    put_key(k, id,
            (struct pe_value){.kind = PE_ARRAY, .array = {.dtype = PE_I64, .rank = 1, .shape = {n}, .data = counts}});
}

static void put_tensor(struct keys *k, enum pe_gguf_tensor which, const double *numbers, size_t n)
{
    k->tensors[k->n_tensors++] = (struct pe_field){pe_gguf_tensor_names[which], pe_list_of(numbers, n)};
}

/* A list of the configuration; false: it has none. */
static bool put_list(struct keys *k, enum pe_gguf_tensor which, const char *path)
{
    struct pe_value given = pe_config_at(full(k), path);
    struct pe_reals list = {given.array, given.kind == PE_ARRAY ? given.array.shape[0] : 0};
    double *numbers = given.kind == PE_ARRAY ? room(k, list.n) : NULL;
    for (uint64_t i = 0; numbers && i < list.n; i++)
        numbers[i] = f32(pe_real_at(&list, i));
    if (numbers)
        put_tensor(k, which, numbers, list.n);
    return given.kind == PE_ARRAY;
}

/* ---- Widths, base, layers ---- */

static void put_widths(struct keys *k)
{
    bool is_latent = k->row->turns_last && k->row->has_softmax_factor;
    put_count(k, is_latent ? PE_GGUF_KEY_LENGTH_MLA : PE_GGUF_KEY_LENGTH, at(k, "head_dim", 0));
    put_count(k, PE_GGUF_DIMENSION_COUNT, at(k, "rotary_dim", 0) * (k->row->full_turns_half && k->wish->local ? 2 : 1));
    if (!k->wish->local)
        return;
    const struct pe_value *local = k->wish->local->config;
    if (pe_config_number(local, "head_dim", 0) != at(k, "head_dim", 0))
        put_count(k, PE_GGUF_KEY_LENGTH_SWA, pe_config_number(local, "head_dim", 0));
    if (pe_config_number(local, "rotary_dim", 0) != at(k, "rotary_dim", 0))
        put_count(k, PE_GGUF_DIMENSION_COUNT_SWA, pe_config_number(local, "rotary_dim", 0));
}

/* base · s^(r/(r - 2)) for ntk, which no key states. */
static double base_of(const struct keys *k)
{
    double base = at(k, "base", 10000), r = at(k, "rotary_dim", 0);
    bool is_stretched = r > 2 && pe_same(pe_config_word(full(k), "scaling.type"), "ntk");
    return is_stretched ? pe_scaling_stretched(base, at(k, "scaling.factor", 1), r) : base;
}

/* DeepSeek V4: its sliding layers are not compressed. */
static bool is_main(const char *layer_type) { return pe_gguf_slides(layer_type) || pe_same(layer_type, "main"); }

static void put_bases_of_compressed(struct keys *k)
{
    const struct pe_stated_kind *main_kind = k->wish->local ? k->wish->local : k->wish->full;
    put_real(k, PE_GGUF_FREQ_BASE, pe_config_number(main_kind->config, "base", 10000));
    if (!is_main(k->wish->full->layer_type))
        put_real(k, PE_GGUF_COMPRESS_BASE, at(k, "base", 10000));
}

/* Where no layer has full attention, full is a sliding kind, whose base may be read from a key of its own. */
static void put_base(struct keys *k)
{
    if (k->row->is_compressed) {
        put_bases_of_compressed(k);
        return;
    }
    const struct pe_stated_kind *local = k->wish->local;
    if (!local && k->row->local_base == PE_GGUF_BASE_10000 && pe_gguf_slides(k->wish->full->layer_type))
        local = k->wish->full;
    put_real(k, PE_GGUF_FREQ_BASE, base_of(k));
    if (local && pe_same(pe_config_word(local->config, "scheme"), "rope"))
        put_real(k, PE_GGUF_FREQ_BASE_SWA, pe_config_number(local->config, "base", 10000));
}

bool pe_gguf_slides(const char *layer_type)
{
    return strstr(layer_type, "sliding") != NULL || strstr(layer_type, "chunked") != NULL;
}

/* 1 for each layer that slides. */
static void put_pattern(struct keys *k, size_t n_layers)
{
    int64_t *marks = room_of_counts(k, n_layers);
    for (size_t i = 0; marks && i < k->wish->n_kinds; i++)
        for (size_t l = 0; pe_gguf_slides(k->wish->kinds[i].layer_type) && l < k->wish->kinds[i].n_layers; l++)
            marks[k->wish->kinds[i].layers[l]] = 1;
    if (marks)
        put_counts(k, PE_GGUF_PATTERN, marks, n_layers);
}

static bool has_layer(const struct pe_stated_kind *kind, int64_t layer)
{
    for (size_t l = 0; l < kind->n_layers; l++)
        if (kind->layers[l] == layer)
            return true;
    return false;
}

/* A period other than the architecture's, which the converter does not write: by the first layer that does not slide,
 * if its kind has every layer of that period. What the file then means is read back. */
static void put_period(struct keys *k)
{
    const struct pe_stated_kind *first = NULL;
    for (size_t i = 0; i < k->wish->n_kinds; i++) {
        const struct pe_stated_kind *kind = &k->wish->kinds[i];
        if (!pe_gguf_slides(kind->layer_type) && kind->n_layers && (!first || kind->layers[0] < first->layers[0]))
            first = kind;
    }
    if (!first)
        return;
    int64_t period = k->row->full_is_first ? first->n_layers > 1 ? first->layers[1] : 0 : first->layers[0] + 1;
    bool is_regular = period > 1 && period != (int64_t)k->row->period;
    for (size_t l = 0; is_regular && l < first->n_layers; l++)
        is_regular = has_layer(first, first->layers[0] + (int64_t)l * period);
    if (is_regular)
        put_count(k, PE_GGUF_PATTERN, (double)period);
}

/* 0 for each layer that is not compressed; of the others 128 or, of those that choose among the compressed keys, 4. */
static void put_ratios(struct keys *k, size_t n_layers)
{
    int64_t *ratios = room_of_counts(k, n_layers);
    for (size_t i = 0; ratios && i < k->wish->n_kinds; i++) {
        const struct pe_stated_kind *kind = &k->wish->kinds[i];
        int64_t ratio = is_main(kind->layer_type) ? 0 : strstr(kind->layer_type, "heavily") ? 128 : 4;
        for (size_t l = 0; l < kind->n_layers; l++)
            ratios[kind->layers[l]] = ratio;
    }
    if (ratios)
        put_counts(k, PE_GGUF_COMPRESS_RATIOS, ratios, n_layers);
}

static void put_layers(struct keys *k)
{
    size_t n = pe_stated_layers_end(k->wish->kinds, k->wish->n_kinds);
    bool some_slide = false;
    for (size_t i = 0; i < k->wish->n_kinds; i++)
        some_slide |= pe_gguf_slides(k->wish->kinds[i].layer_type);
    if (n)
        put_count(k, PE_GGUF_BLOCK_COUNT, (double)n);
    if (k->wish->length > 0)
        put_count(k, PE_GGUF_CONTEXT, (double)k->wish->length);
    if (k->row->is_compressed && n)
        put_ratios(k, n);
    if (!k->row->period)
        return;
    if (some_slide && !k->row->is_chunked)
        put_count(k, PE_GGUF_WINDOW, k->wish->window > 0 ? k->wish->window : 4096);
    if (k->row->pattern == PE_GGUF_PATTERN_NEEDED && n && some_slide)
        put_pattern(k, n);
    else if (some_slide && !k->row->is_chunked && !k->wish->is_converter)
        put_period(k);
}

static void put_sections(struct keys *k)
{
    struct pe_value sections = pe_config_at(full(k), "mrope_section");
    if (sections.kind != PE_ARRAY || k->row->sections == PE_GGUF_NO_SECTIONS)
        return;
    struct pe_reals given = {sections.array, sections.array.shape[0]};
    int64_t *four = room_of_counts(k, 4);
    for (uint64_t i = 0; four && i < 4 && i < given.n; i++)
        four[i] = (int64_t)pe_real_at(&given, i);
    if (four)
        put_counts(k, PE_GGUF_DIMENSION_SECTIONS, four, 4);
}

/* ---- Scaling ---- */

static bool uses_freqs(const struct keys *k)
{
    return k->row->divisors == PE_GGUF_FREQS || k->row->divisors == PE_GGUF_BY_TYPE;
}

static bool uses_lists(const struct keys *k)
{
    return k->row->divisors == PE_GGUF_LISTS || k->row->divisors == PE_GGUF_BY_TYPE;
}

/* base^(-2c/r) */
static struct pe_dd plain_frequency(double base, size_t c, size_t n)
{
    struct pe_dd power = dd_mul(pe_dd_log(dd(base)), dd_div(dd((double)c), dd((double)n)));
    return pe_dd_exp(dd_neg(power));
}

static void put_divisors(struct keys *k)
{
    const struct pe_stated_kind *turn = k->wish->full;
    double base = f32(at(k, "base", 10000)), *d = room(k, turn->n);
    for (size_t c = 0; d && c < turn->n; c++)
        d[c] = turn->w[c] == 0 ? 1e30 : f32(dd_div(plain_frequency(base, c, turn->n), dd(turn->w[c])).hi);
    if (d)
        put_tensor(k, PE_GGUF_ROPE_FREQS, d, turn->n);
}

static void put_attention(struct keys *k, double over)
{
    double factor = at(k, "attention_factor", 1) / over;
    if (!k->wish->is_converter && !k->row->is_compressed && f32(factor) != 1)
        put_real(k, PE_GGUF_ATTN_FACTOR, factor);
}

static void put_yarn(struct keys *k)
{
    double s = at(k, "scaling.factor", 1), m = 0;
    put_word(k, PE_GGUF_SCALING_TYPE, "yarn");
    put_real(k, PE_GGUF_FACTOR, s);
    put_count(k, PE_GGUF_ORIGINAL, at(k, "scaling.original_max_position_embeddings", 0));
    if (k->row->beta_fast > 0) {
        put_real(k, PE_GGUF_BETA_FAST, at(k, "scaling.beta_fast", 32));
        put_real(k, PE_GGUF_BETA_SLOW, at(k, "scaling.beta_slow", 1));
    }
    if (k->row->log_multiplier > 0)
        m = at(k, "scaling.mscale_all_dim", 0);
    if (m > 0)
        put_real(k, PE_GGUF_LOG_MULTIPLIER, m / k->row->log_multiplier);
    put_attention(
        k, dd_div(pe_scaling_magnitude(s, k->row->log_multiplier_is_scale && m > 0 ? m : 1), pe_scaling_magnitude(s, m))
               .hi);
}

/* The lists go into the file; what a converter of Phi-3's kin computes is the factor that longrope has. */
static void put_longrope(struct keys *k)
{
    put_word(k, PE_GGUF_SCALING_TYPE, "longrope");
    put_count(k, PE_GGUF_ORIGINAL, at(k, "scaling.original_max_position_embeddings", 0));
    double factor = at(k, "attention_factor", 1);
    if (f32(factor) != 1 && (!k->wish->is_converter || k->row->divisors == PE_GGUF_LISTS))
        put_real(k, PE_GGUF_ATTN_FACTOR, factor);
    put_list(k, PE_GGUF_FACTORS_LONG, "scaling.long_factor");
    put_list(k, PE_GGUF_FACTORS_SHORT, "scaling.short_factor");
}

/* A converter's class may write no rule, or longrope only. */
static bool is_written(const struct keys *k, const char *rule)
{
    return !k->wish->has_no_rope && (!k->wish->has_lists_only || pe_same(rule, "longrope"));
}

/* Can yarn's keys state the ramp? Few architectures read its ends, none reads that they are not rounded. */
static bool has_usual_ramp(const struct keys *k)
{
    struct pe_value truncate = pe_config_at(full(k), "scaling.truncate");
    bool is_rounded = truncate.kind != PE_BOOLEAN || truncate.boolean;
    bool has_ends =
        k->row->beta_fast > 0 || (at(k, "scaling.beta_fast", 32) == 32 && at(k, "scaling.beta_slow", 1) == 1);
    return is_rounded && has_ends && at(k, "scaling.extrapolation_factor", 1) == 1;
}

static void put_scaling(struct keys *k)
{
    const char *type = pe_config_word(full(k), "scaling.type");
    if (!is_written(k, type))
        return;
    bool has_divisors = !k->wish->is_converter && uses_freqs(k) && put_list(k, PE_GGUF_ROPE_FREQS, "scaling.divisors");
    bool is_stretched = pe_same(type, "ntk"); /* said by the base */
    bool has_list = pe_config_at(full(k), "inv_freq").kind != PE_NULL;
    bool is_default = (!*type || pe_same(type, "default") || is_stretched) && !has_list;
    if (pe_same(type, "linear")) {
        put_word(k, PE_GGUF_SCALING_TYPE, type);
        put_real(k, PE_GGUF_FACTOR, at(k, "scaling.factor", 1));
        put_attention(k, 1);
    } else if (pe_same(type, "yarn") &&
               (has_usual_ramp(k) || !uses_freqs(k) || k->wish->is_converter || has_divisors)) {
        put_yarn(k);
    } else if (pe_same(type, "longrope") && uses_lists(k)) {
        put_longrope(k);
    } else {
        if (!is_default && !has_divisors && uses_freqs(k))
            put_divisors(k);
        put_attention(k, 1);
    }
}

/* ---- Scores ---- */

static void put_scores(struct keys *k)
{
    double scale = at(k, "softmax_scale", 0), cap = at(k, "softcap", 0), beta = at(k, "query_scale.beta", 0);
    if (scale != 0 && k->row->scale == PE_GGUF_SCALE_BY_KEY)
        put_real(k, PE_GGUF_SCALE, scale);
    if (scale != 0 && k->row->scale == PE_GGUF_SCALE_OUT)
        put_real(k, PE_GGUF_OUTPUT_SCALE, scale);
    if (k->row->scale >= PE_GGUF_SCALE_OF_WIDTH && k->wish->width > 0 && k->wish->heads > 0) {
        put_count(k, PE_GGUF_EMBEDDING, (double)k->wish->width);
        put_count(k, PE_GGUF_HEADS, (double)k->wish->heads);
        if (k->wish->depth > 0 && !pe_stated_layers_end(k->wish->kinds, k->wish->n_kinds))
            put_count(k, PE_GGUF_BLOCK_COUNT, (double)k->wish->depth);
    }
    if (cap > 0 && k->row->cap > 0)
        put_real(k, PE_GGUF_SOFTCAP, cap);
    if (beta == 0 || k->row->temperature < PE_GGUF_TEMPERATURE_ORIGINAL)
        return;
    put_real(k, PE_GGUF_TEMPERATURE_SCALE, beta);
    if (k->row->temperature == PE_GGUF_TEMPERATURE_LENGTH_OF)
        put_count(k, PE_GGUF_TEMPERATURE_LENGTH, at(k, "query_scale.original_max_position_embeddings", 0));
}

/* ---- The whole ---- */

const char *pe_gguf_assume(const struct pe_value *config, bool has_local, bool slides_unscaled)
{
    const char *channels = pe_config_word(config, "channels"), *rule = pe_config_word(config, "scaling.type");
    bool is_half = pe_same(pe_config_word(config, "layout"), "half");
    bool has_betas = pe_config_number(config, "scaling.beta_fast", 32) != 32 ||
                     pe_config_number(config, "scaling.beta_slow", 1) != 1;
    if (pe_same(channels, "mrope"))
        return "qwen2vl";
    if (pe_is_among("mrope_interleaved|imrope", channels))
        return "qwen3vl";
    if (pe_same(rule, "proportional"))
        return "gemma4";
    if (pe_same(rule, "longrope") && is_half)
        return "phi3";
    if (pe_config_number(config, "rotary_offset", 0) > 0)
        return is_half ? "minicpm3" : "deepseek2"; /* the last channels turn */
    if (pe_config_number(config, "rotary_dim", 0) < pe_config_number(config, "head_dim", 0))
        return is_half ? "stablelm" : "chatglm";
    if (is_half && has_local)
        return "gemma3"; /* whose sliding layers have a base of their own */
    if (is_half && pe_same(rule, "yarn") && slides_unscaled)
        return "olmo2"; /* … have the base, and no scaling */
    return pe_same(rule, "yarn") && has_betas ? "mistral3" : "llama";
}

void pe_gguf_choose_kinds(struct pe_gguf_wish *wish)
{
    const struct pe_gguf_architecture *row = pe_gguf_architecture_find(wish->architecture);
    for (size_t k = 0; k < wish->n_kinds; k++) {
        const struct pe_stated_kind *kind = &wish->kinds[k];
        if (kind->n == 0)
            continue;
        if (row->is_compressed ? is_main(kind->layer_type) : pe_gguf_slides(kind->layer_type))
            wish->local = wish->local ? wish->local : kind;
        else
            wish->full = wish->full ? wish->full : kind;
    }
    if (!wish->full) {
        wish->full = wish->local;
        wish->local = NULL;
    }
}

const char *pe_gguf_kind_name(const struct pe_gguf_outline *outline, const char *layer_type)
{
    const char *of_ratio = is_main(layer_type) ? "main" : "compress";
    if (pe_hf_has_kind(&outline->layers, layer_type))
        return layer_type;
    if (outline->row->is_compressed && pe_hf_has_kind(&outline->layers, of_ratio))
        return of_ratio;
    for (size_t i = 0; i < outline->layers.n_kinds; i++)
        if (pe_gguf_slides(outline->layers.kinds[i]) == pe_gguf_slides(layer_type))
            return outline->layers.kinds[i];
    return outline->layers.kinds[0];
}

enum pe_status pe_gguf_write(const struct pe_gguf_wish *wish, struct pe_values *values, struct pe_value *out,
                             struct pe_failure *err)
{
    struct keys k = {.wish = wish, .row = pe_gguf_architecture_find(wish->architecture), .values = values};
    k.fields = pe_values_room(values, KEYS_MAX * sizeof *k.fields);
    k.tensors = pe_values_room(values, PE_GGUF_TENSORS * sizeof *k.tensors);
    if (!k.fields || !k.tensors)
        return pe_no_memory(err);
    k.fields[k.n++] = (struct pe_field){"general.architecture", {.kind = PE_STRING, .string = wish->architecture}};
    put_layers(&k);
    put_widths(&k);
    if (!wish->has_no_rope)
        put_base(&k);
    put_sections(&k);
    put_scaling(&k);
    put_scores(&k);
    if (k.n_tensors)
        k.fields[k.n++] = (struct pe_field){"tensors", {.kind = PE_OBJECT, .object = {k.tensors, k.n_tensors}}};
    *out = pe_object(k.fields, k.n);
    return k.failed ? pe_no_memory(err) : PE_OK;
}
