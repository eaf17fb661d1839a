/* The kinds of layers of a file's model. A kind is whether its layers slide, and whether they turn at all; its name is
 * that of its mask, or "nope" for layers without positions beside others of the same mask. */
#include "core/models/gguf/gguf.h"
#include "core/params.h"

#include <stdio.h>
#include <string.h>

enum { UNKNOWN_LAYERS = 48 }; /* a multiple of all periods: every kind occurs among so many */

struct pattern {
    bool has_window;
    int64_t n, period, dense;
    const struct pe_value *list; /* NULL: by the period */
};

/* ---- What the keys state ---- */

static uint64_t length_of(const struct pe_value *list)
{
    return list->kind == PE_LIST ? list->list.n : list->array.shape[0];
}

static bool is_set(const struct pe_value *list, uint64_t i)
{
    if (list->kind == PE_LIST)
        return list->list.items[i].boolean;
    struct pe_reals numbers = {list->array, list->array.shape[0]};
    return pe_real_at(&numbers, i) != 0;
}

static bool is_pattern(const struct pe_value *list)
{
    if (list->kind == PE_ARRAY)
        return list->array.rank == 1;
    for (size_t i = 0; list->kind == PE_LIST && i < list->list.n; i++)
        if (list->list.items[i].kind != PE_BOOLEAN)
            return false;
    return list->kind == PE_LIST;
}

static enum pe_status read_pattern(struct pe_gguf_reader *r, struct pattern *p)
{
    const struct pe_field *field = r->keys[PE_GGUF_PATTERN];
    bool is_list = field && (field->value.kind == PE_LIST || field->value.kind == PE_ARRAY);
    if (!p->period || !p->has_window)
        return PE_OK;
    if (r->row->pattern == PE_GGUF_PATTERN_NEEDED && !is_list)
        return pe_gguf_needs(r, PE_GGUF_PATTERN, "this architecture needs it, a list with true for layers that slide");
    if (field && !is_list) {
        if (pe_gguf_count(r, PE_GGUF_PATTERN, &p->period))
            return r->err->status;
        return p->period ? PE_OK : pe_gguf_wrong(r, PE_GGUF_PATTERN, "an integer from 1 to 4294967295");
    }
    if (!is_list || r->row->pattern == PE_GGUF_PERIOD) {
        pe_gguf_default(r, PE_GGUF_PATTERN, pe_integer(p->period));
        return PE_OK;
    }
    r->was_read[PE_GGUF_PATTERN] = true;
    p->list = &field->value;
    if (!is_pattern(p->list) || length_of(p->list) > PE_HF_LAYERS_MAX)
        return pe_gguf_wrong(r, PE_GGUF_PATTERN, "a list of booleans or numbers, at most 4096");
    if (length_of(p->list) < (uint64_t)(p->n ? p->n : 1))
        return pe_gguf_wrong(r, PE_GGUF_PATTERN, "a list with an element for each layer");
    if (!p->n)
        p->n = (int64_t)length_of(p->list);
    return PE_OK;
}

static enum pe_status read_layers(struct pe_gguf_reader *r, struct pattern *p)
{
    int64_t drafted = 0, window = r->row->is_chunked ? 8192 : 0;
    if (pe_gguf_count(r, PE_GGUF_BLOCK_COUNT, &p->n) || pe_gguf_count(r, PE_GGUF_NEXTN, &drafted) ||
        (r->row->period && pe_gguf_count(r, PE_GGUF_WINDOW, &window)) ||
        (r->row->still == PE_GGUF_FULL_BEHIND_DENSE && pe_gguf_count(r, PE_GGUF_LEADING_DENSE, &p->dense)))
        return r->err->status;
    if (p->n > PE_HF_LAYERS_MAX)
        return pe_gguf_wrong(r, PE_GGUF_BLOCK_COUNT, "at most 4096 layers");
    p->n = p->n > drafted ? p->n - drafted : 0;
    p->has_window = window > 0;
    p->period = r->row->period;
    if (r->row->layers_of_period && p->n != r->row->layers_of_period)
        p->period = 0;
    return read_pattern(r, p);
}

/* ---- The kind of a layer ---- */

static bool slides(const struct pe_gguf_architecture *row, const struct pattern *p, int64_t l)
{
    if (!p->period || !p->has_window)
        return false;
    if (p->list)
        return is_set(p->list, (uint64_t)l);
    return row->full_is_first ? l % p->period != 0 : l % p->period != p->period - 1;
}

static bool is_still(const struct pe_gguf_architecture *row, const struct pattern *p, int64_t l, bool is_sliding)
{
    bool is_mixed = p->period && p->has_window;
    switch (row->still) {
    case PE_GGUF_ALL_TURN: return false;
    case PE_GGUF_EVERY_FOURTH:
        return row->is_chunked && !p->has_window ? l == p->n - 1 : (l + 1) % 4 == 0; /* llama4 with a window of 0 */
    case PE_GGUF_FIRST_OF_FOUR: return is_mixed && l % 4 == 0;
    case PE_GGUF_FULL_LAYERS: return is_mixed && !is_sliding;
    case PE_GGUF_FULL_BEHIND_DENSE: return is_mixed && !is_sliding && l >= p->dense;
    }
    return false;
}

static unsigned kind_of(const struct pe_gguf_architecture *row, const struct pattern *p, int64_t l)
{
    bool is_sliding = slides(row, p, l);
    return (is_sliding ? PE_GGUF_SLIDING : 0) | (is_still(row, p, l, is_sliding) ? PE_GGUF_STILL : 0);
}

/* ---- Their names ---- */

static const char *name_of(const struct pe_gguf_architecture *row, const bool occurs[PE_GGUF_N_KINDS], unsigned kind)
{
    if (kind & PE_GGUF_STILL && occurs[kind & ~(unsigned)PE_GGUF_STILL])
        return "nope";
    return !(kind & PE_GGUF_SLIDING) ? PE_HF_FULL : row->is_chunked ? "chunked_attention" : "sliding_attention";
}

static size_t add_kind(struct pe_gguf_reader *r, const char *name, unsigned kind)
{
    struct pe_hf_layers *layers = &r->layers;
    size_t k = 0;
    while (k < layers->n_kinds && !pe_same(layers->kinds[k], name))
        k++;
    if (k < layers->n_kinds)
        return k;
    snprintf(layers->kinds[k], sizeof layers->kinds[k], "%s", name);
    r->kinds[k] = kind;
    layers->n_kinds++;
    return k;
}

static void list_usual(struct pe_gguf_reader *r, const struct pattern *p)
{
    bool occurs[PE_GGUF_N_KINDS] = {false};
    int64_t n = p->n ? p->n : UNKNOWN_LAYERS;
    for (int64_t l = 0; l < n; l++)
        occurs[kind_of(r->row, p, l)] = true;
    for (int64_t l = 0; l < n; l++) {
        unsigned kind = kind_of(r->row, p, l);
        r->layers.kind_of[l] = (unsigned char)add_kind(r, name_of(r->row, occurs, kind), kind);
    }
}

/* DeepSeek V4: a ratio of 0 is a layer of the main kind. */
static enum pe_status list_ratios(struct pe_gguf_reader *r, const struct pattern *p)
{
    struct pe_reals ratios;
    if (pe_gguf_numbers(r, PE_GGUF_COMPRESS_RATIOS, &ratios))
        return r->err->status;
    if (!ratios.n)
        return pe_gguf_needs(r, PE_GGUF_COMPRESS_RATIOS, "this architecture needs it, a number for each layer");
    if (ratios.n > PE_HF_LAYERS_MAX || ratios.n < (uint64_t)p->n)
        return pe_gguf_wrong(r, PE_GGUF_COMPRESS_RATIOS, "a list with an element for each layer, at most 4096");
    r->layers.n = p->n ? (size_t)p->n : (size_t)ratios.n;
    for (size_t l = 0; l < r->layers.n; l++) {
        bool is_main = pe_real_at(&ratios, l) == 0;
        r->layers.kind_of[l] = (unsigned char)add_kind(r, is_main ? "main" : "compress", is_main ? 0 : PE_GGUF_SLIDING);
    }
    return PE_OK;
}

/* T5's stacks; the depth of the decoder is not known. */
static void list_stacks(struct pe_gguf_reader *r, const struct pattern *p)
{
    r->layers.are_stacks = r->row->is_decoder;
    add_kind(r, r->row->is_decoder ? "encoder" : PE_HF_FULL, 0);
    r->layers.depths[0] = p->n;
    if (r->row->is_decoder)
        add_kind(r, "decoder", PE_GGUF_SLIDING);
}

enum pe_status pe_gguf_list_layers(struct pe_gguf_reader *r)
{
    struct pattern p = {.n = 0};
    r->layers.n_kinds = r->layers.n_others = r->layers.n = 0;
    r->layers.are_stacks = r->layers.are_merged = r->layers.are_too_many = false;
    r->layers.are_certain = true;
    memset(r->layers.depths, 0, sizeof r->layers.depths);
    if (read_layers(r, &p))
        return r->err->status;
    r->layers.n = (size_t)p.n;
    if (r->row->is_compressed)
        return list_ratios(r, &p);
    if (r->row->kind == PE_GGUF_T5)
        list_stacks(r, &p);
    else
        list_usual(r, &p);
    memset(r->layers.kind_of, 0, r->layers.n * (r->row->kind == PE_GGUF_T5));
    return PE_OK;
}
