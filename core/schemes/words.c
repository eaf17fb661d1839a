/* Words that other papers, libraries and tools have for our schemes and fields. One that can mean one thing only is
 * read as that; where it could mean another, the refusal names ours. */
#include "core/scheme.h"

#include <strings.h>

static const struct pe_other_word schemes[] = {
    {"rotary", "rope"},
    {"rotary_embedding", "rope"},
    {"rotary-embedding", "rope"},
    {"rotaryembedding", "rope"},
    {"rotary_position_embedding", "rope"},
    {"sin", "sinusoidal"},
    {"sincos", "sinusoidal"},
    {"sine", "sinusoidal"},
    {"nope", "none"},
    {"absolute", "learned"},
    {"linear_bias", "alibi"},
    {"transformer-xl", "transformer_xl"},
    {"transfo_xl", "transformer_xl"},
    {"transfo-xl", "transformer_xl"},
    {"t5_bias", "t5"},
};

static const struct pe_other_word fields[] = {
    {"theta", "base"},         {"rotary_base", "base"},
    {"rope_base", "base"},     {"freq_base", "base"},
    {"d_model", "dim"},        {"hidden_size", "dim"},
    {"embed_dim", "dim"},      {"embedding_dim", "dim"},
    {"n_embd", "dim"},         {"d_head", "head_dim"},
    {"dim_head", "head_dim"},  {"head_size", "head_dim"},
    {"rot_dim", "rotary_dim"}, {"rope_dim", "rotary_dim"},
    {"heads", "num_heads"},    {"n_heads", "num_heads"},
    {"n_head", "num_heads"},   {"num_attention_heads", "num_heads"},
    {"seq_len", "len"},        {"seq_length", "len"},
    {"seqlen", "len"},         {"sequence_length", "len"},
    {"length", "len"},         {"n_ctx", "len"},
    {"n_positions", "len"},    {"sliding_window", "window"},
    {"is_causal", "causal"},
};

static const char *find_meaning(const struct pe_other_word *rows, size_t n, const char *word)
{
    for (size_t i = 0; i < n; i++)
        if (strcasecmp(rows[i].word, word) == 0)
            return rows[i].means;
    return NULL;
}

const char *pe_scheme_meant(const char *word) { return find_meaning(schemes, sizeof schemes / sizeof *schemes, word); }

const char *pe_field_meant(const char *word) { return find_meaning(fields, sizeof fields / sizeof *fields, word); }
