/* The rows of all model_types: found by name, and by likeness; what the code of some types does in its own way. */
#include "core/models/hf/hf.h"
#include "core/params.h"

#include <math.h>
#include <stdio.h>
#include <string.h>

const struct pe_hf_model *pe_hf_model_find(const char *model_type)
{
    return strchr(model_type, '/') ? NULL : pe_hf_row_find(model_type);
}

const struct pe_hf_model *pe_hf_row_find(const char *name)
{
    for (size_t i = 0; i < pe_n_hf_type_rows; i++)
        if (pe_is_among(pe_hf_type_rows[i].types, name))
            return &pe_hf_type_rows[i];
    return NULL;
}

/* ---- The nearest names ---- */

enum { TYPES_MAX = 1200, TYPES_BYTES = 32768, NEAREST = 3 };

void pe_hf_nearest_of(const char *name, const char *(*names)(size_t i), char *out, size_t room)
{
    char text[TYPES_BYTES], *at = text; /* words with their ends */
    const char *list[TYPES_MAX + 1] = {NULL};
    size_t n = 0, used = 0;
    for (size_t i = 0; names(i); i++) {
        const char *rest = names(i), *word;
        for (size_t length; pe_hf_next_name(&rest, &word, &length) && n < TYPES_MAX;) {
            if (strchr(names(i), '/') || at + length >= text + sizeof text) /* a part */
                continue;
            list[n++] = memcpy(at, word, length);
            at[length] = '\0';
            at += length + 1;
        }
    }
    list[n] = NULL;
    *out = '\0';
    for (int i = 0; i < NEAREST && used < room; i++) {
        const char *nearest = *name ? pe_nearest(name, list) : NULL;
        if (!nearest)
            return;
        used += (size_t)snprintf(out + used, room - used, "%s\"%s\"", i ? ", " : "", nearest);
        size_t k = 0;
        while (list[k] != nearest)
            k++;
        memmove(&list[k], &list[k + 1], (n-- - k) * sizeof *list);
    }
}

static const char *types_at(size_t i) { return i < pe_n_hf_type_rows ? pe_hf_type_rows[i].types : NULL; }

void pe_hf_nearest_types(const char *model_type, char *out, size_t room)
{
    pe_hf_nearest_of(model_type, types_at, out, room);
}

/* ---- Traits ---- */

/* What the code of some model_types does in its own way. A block of core/models/types.txt names them; list.h
 * names the library file that each follows, and hf.h (struct pe_hf_model) what the usual code does in its place. */

/* ---- missing: a nested model's config without the object. The usual class makes one of its own numbers. ---- */

/* Not every version of transformers makes one. */
bool pe_hf_must_hold(const struct pe_hf_reader *r, struct pe_hf_place *inner)
{
    *inner = r->config;
    return false;
}

/* Older files have its fields in the outer object. */
bool pe_hf_may_be_flat(const struct pe_hf_reader *r, struct pe_hf_place *inner)
{
    *inner = r->config;
    return true;
}

/* ---- sliding: layers with a base of their own usually have no scaling, others have all of the rope object. ---- */

/* Scaled, though they have a base of their own. */
void pe_hf_sliding_scaled(struct pe_hf_reader *r, bool has_own_base) { (void)r, (void)has_own_base; }

/* Only the base of the rope object is theirs. */
void pe_hf_sliding_unscaled(struct pe_hf_reader *r, bool has_own_base)
{
    pe_hf_sliding_usual(r, has_own_base);
    r->rope.object = NULL;
}

/* ---- heads: usually num_attention_heads of them share the model's width. ---- */

/* The shared layers of Zamba 2 have the hidden states and the embeddings side by side as their input. */
void pe_hf_twice_as_wide(int64_t *head_dim) { *head_dim *= 2; }

/* ---- before: latent attention usually has qk_nope_head_dim channels before the qk_rope_head_dim rotated ones. ---- */

/* All of head_dim but the rotated ones. */
enum pe_status pe_hf_rotary_last(struct pe_hf_reader *r, int64_t rotary, int64_t *rest)
{
    int64_t head_dim = 0;
    if (pe_hf_head_dim(r, &head_dim))
        return r->err->status;
    if (head_dim < rotary)
        return pe_fail(r->err, r->config.at, "head_dim is %lld; allowed: at least qk_rope_head_dim, %lld",
                       (long long)head_dim, (long long)rotary);
    *rest = head_dim - rotary;
    return PE_OK;
}

/* ---- second: usually the last layer of each period is of the second of the kinds in `mixed`. ---- */

bool pe_hf_first_of_period(int64_t layer, int64_t n_layers, int64_t period)
{
    (void)n_layers;
    return layer % period == 0;
}

bool pe_hf_counted_back(int64_t layer, int64_t n_layers, int64_t period)
{
    return (n_layers - 1 - layer) % period == 0;
}

bool pe_hf_and_first_layer(int64_t layer, int64_t n_layers, int64_t period)
{
    (void)n_layers;
    return layer == 0 || (layer + 1) % period == 0;
}

bool pe_hf_and_last_layer(int64_t layer, int64_t n_layers, int64_t period)
{
    return layer == n_layers - 1 || (layer + 1) % period == 0;
}

/* ---- by_ratio: usually no class reads compress_ratios, a number for each layer. ---- */

/* Without them, as the class numbers its layers. */
const char *pe_hf_by_compress_ratio(const struct pe_reals *ratios, int64_t layer)
{
    static const char sparse[] = "compressed_sparse_attention", heavy[] = "heavily_compressed_attention";
    if ((uint64_t)layer >= ratios->n)
        return layer > 1 && layer % 2 ? sparse : heavy;
    double ratio = pe_real_at(ratios, (uint64_t)layer);
    return ratio == 0 ? "sliding_attention" : ratio == 4 ? sparse : heavy;
}

/* ---- scaling: a word that is not the library's type of that name. ---- */

/* Phi-3's old word. */
enum pe_status pe_hf_yarn_is_longrope(struct pe_hf_reader *r, const char **type)
{
    (void)r;
    if (strcmp(*type, "yarn") == 0)
        *type = "longrope";
    return PE_OK;
}

enum pe_status pe_hf_yarn_is_another(struct pe_hf_reader *r, const char **type)
{
    return strcmp(*type, "yarn") != 0
               ? PE_OK
               : pe_hf_wrong_value(&r->rope, "rope_type|type",
                                   "longrope, su; the vendor's code multiplies by 0.1 ln(s) + 1 with yarn", r->err);
}

/* Hunyuan's "dynamic" with alpha: the base grows once, as for the static NTK of that factor. */
enum pe_status pe_hf_alpha_is_ntk(struct pe_hf_reader *r, const char **type)
{
    if (!pe_is_among("dynamic|xdrope", *type) || !pe_hf_says(&r->rope, "alpha"))
        return PE_OK;
    const struct pe_field *alpha = pe_hf_find(&r->rope, "alpha");
    size_t n = 0;
    pe_hf_add(r, &n, "type", pe_word("ntk"));
    pe_hf_add(r, &n, "factor", alpha->value);
    pe_hf_put(r->out, "scaling", pe_object(r->out->scaling, n));
    *type = NULL;
    return PE_OK;
}

/* OmniGen's code reads the two lists and no name of a rule: longrope, and without the object nothing it could run. */
enum pe_status pe_hf_only_longrope(struct pe_hf_reader *r, const char **type)
{
    if (!r->rope.object)
        return pe_fail(r->err, r->config.at, "rope_scaling is missing; needed: its short_factor and long_factor");
    *type = "longrope";
    return PE_OK;
}

/* ---- scaled: fields of scaling beside those of the config. ---- */

/* yarn's attention_factor is 1 unless the config states another. */
void pe_hf_yarn_unscaled(struct pe_hf_reader *r, const char *type, size_t *n)
{
    if (strcmp(type, "yarn") == 0 && !pe_hf_says(&r->rope, "attention_factor"))
        pe_hf_add(r, n, "attention_factor", pe_real(1));
}

/* ---- then: fields beside those of the kind. ---- */

/* LayoutLMv3 divides the sum of the three biases like the logits; v2 adds the sum unchanged. */
enum pe_status pe_hf_table_scaled(struct pe_hf_reader *r)
{
    int64_t head_dim = 1;
    enum pe_status status = pe_hf_divide_width(r, &head_dim);
    pe_hf_put_number(r->out, "table_scale", 1 / sqrt((double)head_dim));
    return status;
}

/* Nomic states the rule in two fields of its own. */
enum pe_status pe_hf_ntk_beyond(struct pe_hf_reader *r)
{
    double factor = 0;
    int64_t trained = 0;
    size_t n = 0;
    if (pe_hf_number(&r->config, "rotary_scaling_factor", &factor, r->err) ||
        pe_hf_integer(&r->config, "max_trained_positions", &trained, r->err))
        return r->err->status;
    if (factor == 0 || trained == 0 || r->rope.object)
        return PE_OK;
    pe_hf_add(r, &n, "type", (struct pe_value){.kind = PE_STRING, .string = "dynamic"});
    pe_hf_add(r, &n, "factor", (struct pe_value){.kind = PE_REAL, .real = factor});
    pe_hf_add(r, &n, "max_position_embeddings", (struct pe_value){.kind = PE_INTEGER, .integer = trained});
    pe_hf_put(r->out, "scaling", (struct pe_value){.kind = PE_OBJECT, .object = {r->out->scaling, n}});
    snprintf(
        pe_hf_note(r), PE_DETAIL_MAX,
        pe_text("rotary_scaling_factor %.10g raises the base beyond max_trained_positions, %lld, with the length, as "
                "the vendor's code does; vLLM turns by one base at every length, that of its longest sequence."),
        factor, (long long)trained);
    return PE_OK;
}

enum pe_status pe_hf_table_by_layer(struct pe_hf_reader *r)
{
    snprintf(pe_hf_note(r), PE_DETAIL_MAX, "%s",
             pe_text("Each layer has a table of biases of its own, where T5's layers share that of the first."));
    return PE_OK;
}
