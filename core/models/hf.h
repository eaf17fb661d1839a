/* Reading a model's config.json, between the files hf_*.c: the reader's state, its helper functions, and the row
 * that states how a model_type differs from the usual. */
#ifndef PE_MODELS_HF_H
#define PE_MODELS_HF_H

#include "core/models/hf_marks.h"
#include "core/models/models.h"

enum pe_hf_kind {
    PE_HF_ROPE,
    PE_HF_LEARNED, /* a table of max_position_embeddings + extra_rows rows */
    PE_HF_PATCHES, /* a table of extra_rows + (image_size / patch_size)^2 rows */
    PE_HF_SINUSOIDAL,
    PE_HF_ALIBI,
    PE_HF_MPT,      /* ALiBi or a learned table, as attn_config says */
    PE_HF_FALCON,   /* ALiBi or rotary, as alibi says */
    PE_HF_T5,       /* buckets of distances: in two stacks, … */
    PE_HF_BUCKETS,  /* … in an encoder: MPNet, WavLM, … */
    PE_HF_LAYOUTLM, /* … in three tables; style "scaled": their sum is divided by the root of head_dim */
    PE_HF_NEZHA,
    PE_HF_DEBERTA, /* style "own": positions have projections of their own, and no buckets (v1) */
    PE_HF_TRANSFO_XL,
    PE_HF_XLNET,
    PE_HF_CONFORMER,
    PE_HF_SWIN, /* both versions: the scheme `style` */
    PE_HF_BEIT
};

/* Transformers' defaults for one model_type (or several, "a|b") where the config has no value. Zero means the usual
 * default. */
struct pe_hf_model {
    const char *types;
    enum pe_hf_kind kind;
    const char *layout;    /* rope: "half", multi-head latent attention: "interleaved" */
    double base;           /* 10000 */
    double local_base;     /* of sliding_attention: as base */
    int64_t head_dim;      /* hidden_size / num_attention_heads */
    double share;          /* partial_rotary_factor: 1 */
    const char *channels;  /* which axis a pair of channels belongs to */
    const double *section; /* mrope_section: three numbers */
    const char *style;     /* position_style of M-RoPE, form of ALiBi, or as its kind states */
    const char *layers;    /* layer types if not the usual ones, "a|b", the default first */
    bool yarn_is_longrope; /* Phi-3's old word */
    bool full_has_none;    /* full_attention layers have no positions if there is a sliding_window */
    int64_t extra_rows;    /* tables: rows beyond the positions */
    int64_t row_offset;    /* tables: row of position 0; -1: pad_token_id + 1 */
    double freq_shift;     /* sinusoidal */
    const char *odd;       /* sinusoidal */
};

/* The row of that model_type; NULL if there is none. */
const struct pe_hf_model *pe_hf_model_find(const char *model_type);

/* An object of the config and the pointer to it. */
struct pe_hf_place {
    const struct pe_value *object; /* NULL: there is none */
    char at[PE_POINTER_MAX];
    struct pe_hf_marks *marks; /* NULL: nobody wants to know what is read */
};

struct pe_hf_reader {
    struct pe_hf_place config;       /* the language model's object: the whole, or a nested text_config */
    struct pe_hf_place around;       /* the object that contains it; the same object if none does */
    struct pe_hf_place rope;         /* rope_parameters or rope_scaling, of the layer type asked for */
    const char *model_type;          /* "" if not given */
    const struct pe_hf_model *model; /* a row of zeros if the type is unknown */
    const char *layer_type;          /* NULL: not given */
    struct pe_model_fields *out;
    struct pe_error *err;
};

/* ---- hf_read.c: looking things up. names are alternatives, "a|b", the first that is there wins ---- */

const struct pe_field *pe_hf_find(const struct pe_hf_place *place, const char *names); /* NULL if none */

/* Fails because of the value of a field of place. */
enum pe_status pe_hf_wrong(const struct pe_hf_place *place, const struct pe_field *field, const char *allowed,
                           struct pe_error *err);

/* *out is unchanged if the place has none of names. Integers are at least 0. */
enum pe_status pe_hf_integer(const struct pe_hf_place *place, const char *names, int64_t *out, struct pe_error *err);
enum pe_status pe_hf_number(const struct pe_hf_place *place, const char *names, double *out, struct pe_error *err);
/* Of any sign. */
enum pe_status pe_hf_signed(const struct pe_hf_place *place, const char *names, int64_t *out, struct pe_error *err);
enum pe_status pe_hf_flag(const struct pe_hf_place *place, const char *names, bool *out, struct pe_error *err);
/* Refuses what is neither a word nor absent. */
enum pe_status pe_hf_word(const struct pe_hf_place *place, const char *names, const char **out, struct pe_error *err);
/* *inner = the first object of names inside place; inner->object is NULL if there is none. */
enum pe_status pe_hf_object(const struct pe_hf_place *place, const char *names, struct pe_hf_place *inner,
                            struct pe_error *err);

/* Reads a required integer of at least 1; `what` states its purpose in the error text. */
enum pe_status pe_hf_needed(const struct pe_hf_place *place, const char *names, const char *what, int64_t *out,
                            struct pe_error *err);

/* *head_dim = channels of the width for each head. */
enum pe_status pe_hf_divide_width(const struct pe_hf_reader *r, int64_t *head_dim);

enum { PE_HF_SIDE_MAX = 65536 }; /* patches along a side */

#define PE_HF_WIDTH "hidden_size|d_model|n_embd|dim"
#define PE_HF_HEADS "num_attention_heads|n_head|n_heads|num_heads|encoder_attention_heads"
#define PE_HF_LENGTH "max_position_embeddings|n_positions|max_seq_len|max_sequence_length|seq_length|n_ctx"

/* ---- Appending to the output; there is room for all that the rules here write ---- */

void pe_hf_put(struct pe_model_fields *out, const char *name, struct pe_value value);
void pe_hf_put_word(struct pe_model_fields *out, const char *name, const char *word);
void pe_hf_put_flag(struct pe_model_fields *out, const char *name, bool flag);
void pe_hf_put_integer(struct pe_model_fields *out, const char *name, int64_t x);
void pe_hf_put_number(struct pe_model_fields *out, const char *name, double x);
void pe_hf_put_list(struct pe_model_fields *out, const char *name, const double *numbers, size_t n); /* borrowed */

/* num_heads, and head_dim: under one of names (NULL: none), else from the model's row, else the width divided by the
 * heads. */
enum pe_status pe_hf_put_heads(struct pe_hf_reader *r, const char *head_dim_names);

/* ---- The rules ---- */

enum pe_status pe_hf_rope(struct pe_hf_reader *r);    /* hf_rope.c */
enum pe_status pe_hf_scaling(struct pe_hf_reader *r); /* hf_scaling.c: the field `scaling`, from r->rope */
enum pe_status pe_hf_axes(struct pe_hf_reader *r);    /* hf_axes.c: channels, mrope_section, position_style … */

/* hf_tables.c */
enum pe_status pe_hf_side(const struct pe_hf_reader *r, int64_t *side); /* patches along one side of the image */
enum pe_status pe_hf_learned(struct pe_hf_reader *r);                   /* a table of positions */
enum pe_status pe_hf_patches(struct pe_hf_reader *r);                   /* a table of patches */
enum pe_status pe_hf_sinusoidal(struct pe_hf_reader *r);

/* hf_bias.c */
enum pe_status pe_hf_alibi(struct pe_hf_reader *r); /* form: the model's style, else symmetric */
enum pe_status pe_hf_mpt(struct pe_hf_reader *r);
enum pe_status pe_hf_falcon(struct pe_hf_reader *r);
enum pe_status pe_hf_t5(struct pe_hf_reader *r);
enum pe_status pe_hf_buckets(struct pe_hf_reader *r);
enum pe_status pe_hf_layoutlm(struct pe_hf_reader *r);

/* hf_relative.c */
enum pe_status pe_hf_relative_key(struct pe_hf_reader *r, const char *type); /* BERT's; type is the table_style */
enum pe_status pe_hf_nezha(struct pe_hf_reader *r);
enum pe_status pe_hf_deberta(struct pe_hf_reader *r);
enum pe_status pe_hf_transfo_xl(struct pe_hf_reader *r);
enum pe_status pe_hf_xlnet(struct pe_hf_reader *r);
enum pe_status pe_hf_conformer(struct pe_hf_reader *r);

/* hf_window.c */
enum pe_status pe_hf_swin(struct pe_hf_reader *r);
enum pe_status pe_hf_beit(struct pe_hf_reader *r);

#endif
