/* Reading a model's config.json, between the files here: the reader's state, its helper functions, and the row
 * that states what the code of a model_type does with its positions. */
#ifndef PE_MODELS_HF_H
#define PE_MODELS_HF_H

#include "core/models/hf/marks.h"
#include "core/models/models.h"

enum pe_hf_kind {
    PE_HF_ROPE,
    PE_HF_LEARNED, /* a table of max_position_embeddings + extra_rows rows */
    PE_HF_PATCHES, /* a table of extra_rows + (image_size / patch_size)^2 rows */
    PE_HF_SINUSOIDAL,
    PE_HF_ALIBI,
    PE_HF_MPT,      /* ALiBi, with the numbers of attn_config */
    PE_HF_FALCON,   /* ALiBi or rotary, as alibi states */
    PE_HF_T5,       /* buckets of distances: in two stacks, … */
    PE_HF_BUCKETS,  /* … in an encoder: MPNet, WavLM, … */
    PE_HF_LAYOUTLM, /* … in three tables; style "scaled": their sum is divided by the root of head_dim */
    PE_HF_NEZHA,
    PE_HF_DEBERTA, /* style "own": positions have projections of their own, and no buckets (v1) */
    PE_HF_TRANSFO_XL,
    PE_HF_XLNET,
    PE_HF_CONFORMER,
    PE_HF_SWIN, /* both versions: the scheme `style` */
    PE_HF_BEIT,
    PE_HF_PARTS,  /* its `layers` are parts of different kinds: the part x of type t has a row of its own, "t/x" */
    PE_HF_NONE,   /* its code has no positions */
    PE_HF_NESTED, /* only holds other models: `inner` names the object of the language model */
    PE_HF_OTHER   /* positions that no scheme here gives: `style` states which */
};

/* Which layers of a period are of the second type of a row's `mixed`, counted from 1. */
enum pe_hf_turn {
    PE_HF_AT_END,    /* the last of each period */
    PE_HF_AT_START,  /* the first of each period */
    PE_HF_FROM_LAST, /* every period-th counted back from the model's last layer */
    PE_HF_AND_FIRST, /* the last of each period, and the model's first layer */
    PE_HF_AND_LAST   /* … and the model's last layer */
};

/* Which masks a class gives its layers where no field states; positions are the same. */
enum pe_hf_masks {
    PE_HF_MASKS_UNSTATED,
    PE_HF_MASKS_ALIKE, /* one for all layers: there is no other kind */
    PE_HF_MASKS_DIFFER /* some are sliding */
};

/* What transformers' code does for one model_type (or several, "a|b"). Zero means the usual. */
struct pe_hf_model {
    const char *types;
    enum pe_hf_kind kind;
    const char *fields;  /* the class's defaults of the fields read here: "hidden_size=4096 rope_theta=1e6"; numbers,
                          * words, true, false, null, [lists]; "rope_parameters.factor=32" is in an object */
    const char *ignores; /* fields that this code does not read, though others do: "a|b" */
    const char *reads;   /* fields that only some types' code reads, and this one too, though it has no value for them:
                          * "a|b" (core/models/hf/read.c lists them) */
    const char *refuses; /* fields whose effect is not read here: "a|b=true" is refused with any value, or with that */
    const char
        *needs; /* fields of which the config must say one, because versions of transformers differ in the default */
    const char *inner, *inner_type; /* the object of the language model, and its model_type if it states none */
    const char *made;               /* … where there is no such object, if that has numbers of its own */
    bool inner_is;                  /* inner_type counts even if the object states another model_type */
    bool must_hold;                 /* a config without that object is refused: not every version has defaults for it */
    bool flat;                      /* … whose fields may be in the outer object instead, as older files have it */
    const char *layers;             /* layer types if not the usual ones, "a|b", the default first */
    const char *none;               /* layer types without positions, "a|b" */
    const char *mixed;              /* layer types of the class where the config lists none, "a|b" */
    const char *period;   /* the field that states every how many layers there is a b; NULL: only released files state
                           * it, so each is a kind */
    enum pe_hf_turn turn; /* at which of them */
    enum pe_hf_masks masks;
    const char *style;  /* position_style of M-RoPE, form of ALiBi, how a table is resized, "flip" of
                         * sinusoids with the cosines first, "alpha" of Hunyuan's scaling, or as its kind states */
    int64_t extra_rows; /* tables: rows beyond the positions */
    int64_t row_offset; /* tables: row of position 0; -1: pad_token_id + 1 */
    double freq_shift;  /* sinusoidal */
    const char *odd;    /* sinusoidal */
    int64_t first;      /* sinusoidal: position of the first token; -1: pad_token_id + 1 */
    /* Rotary. */
    const char *layout; /* "half"; multi-head latent attention: "interleaved" */
    const char
        *channels; /* which axis a pair of channels belongs to; "two_axes": each has half of them, and its own base */
    const char *head_dim;   /* the field with the head's width, if not the usual one */
    int64_t wider;          /* without that field the width is so many times hidden_size / num_attention_heads */
    const char *base;       /* the field with the base, if not the usual one */
    const char *local_base; /* the field with the base of sliding_attention */
    const char *rope_if;    /* "use_mem_rope=true": without that there are no positions */
    bool reads_share;       /* partial_rotary_factor, which has no default; code that has a default reads it too */
    bool clockwise;         /* direction -1 */
    bool rotary_last;       /* the rotated channels are the last of a head */
    bool local_unscaled;    /* sliding_attention has no scaling */
    bool local_scaled;      /* sliding_attention has the scaling, though it has a base of its own */
    bool yarn_is_longrope;  /* Phi-3's old word */
    bool yarn_is_another;   /* the same word, in code that multiplies by another factor: refused */
    bool none_if_window;    /* `none` holds only if there is a sliding_window */
    bool unscaled_yarn;     /* yarn's attention_factor is 1 unless the config states another */
    bool unread;            /* some of it from memory or by likeness: confirm it before relying on it */
    const char *source;     /* files and symbols, below transformers' models/ */
};

/* The row of that model_type; NULL if there is none. */
const struct pe_hf_model *pe_hf_model_find(const char *model_type);

/* The same, also of a part: "t/x". No config has such a name. */
const struct pe_hf_model *pe_hf_row_find(const char *name);

/* All rows, for tables and searches: the i-th, NULL past the last. */
const struct pe_hf_model *pe_hf_model_at(size_t i);

/* Each file of core/models/types ends with its table; types.c puts the tables in order. */
struct pe_hf_table {
    const struct pe_hf_model *rows;
    size_t n;
};
extern const struct pe_hf_table pe_hf_types_llama_kin, pe_hf_types_rotary, pe_hf_types_multimodal, pe_hf_types_tables,
    pe_hf_types_patches, pe_hf_types_sinusoids, pe_hf_types_biases, pe_hf_types_none, pe_hf_types_refused,
    pe_hf_types_nested;

/* The types nearest to a name, written "a", "b" (at most three); "" if none is near. */
void pe_hf_nearest_types(const char *model_type, char *out, size_t room);

/* Unpacks the text of a row's fields; false if it does not fit, which is a mistake in the row. */
bool pe_hf_defaults_set(struct pe_hf_defaults *defaults, const char *text);

/* An object of the config and the pointer to it. */
struct pe_hf_place {
    const struct pe_value *object; /* NULL: there is none */
    char at[PE_POINTER_MAX];
    struct pe_hf_marks *marks;             /* NULL: what is read is of no interest */
    const struct pe_hf_defaults *defaults; /* of the class; NULL: none */
    const struct pe_hf_model *row;         /* whose code reads the object; NULL: every name is read */
};

struct pe_hf_reader {
    struct pe_hf_place config;       /* the language model's object: the whole, or a nested text_config */
    struct pe_hf_place around;       /* the object that contains it; the same object if none does */
    struct pe_hf_place rope;         /* rope_parameters or rope_scaling, of the layer type asked for */
    struct pe_hf_place base;         /* … whose rope_theta counts, also where the layers have no scaling */
    const char *model_type;          /* "" if not given */
    const struct pe_hf_model *model; /* never NULL */
    const char *layer_type;          /* NULL: not given */
    bool is_told;                    /* the request states the scheme, because the model_type has no row … */
    bool says_channels;              /* … and the axis of each pair of channels */
    bool is_nested;                  /* the model is inside another one */
    struct pe_model_fields *out;
    struct pe_error *err;
};

/* ---- read.c: looking things up. names are alternatives, "a|b": the first that the object has wins, else the first
 * that the class's defaults have. null is none, and no default holds then. ---- */

const struct pe_field *pe_hf_find(const struct pe_hf_place *place, const char *names); /* NULL if none */
bool pe_hf_says(const struct pe_hf_place *place, const char *names); /* does the object itself have one, not null? */
/* Has the row a value of the class for name? */
bool pe_hf_has_default(const struct pe_hf_model *row, const char *name);
/* Does the object, or the class, have "name=true", "name=word", or "name" with any value but null? */
bool pe_hf_holds(const struct pe_hf_place *place, const char *condition);

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

/* "a|b|c" as "a, b, c". */
void pe_hf_spell(const char *names, char *out, size_t room);

/* Reads a required integer of at least 1; `what` states its purpose in the error text. */
enum pe_status pe_hf_needed(const struct pe_hf_place *place, const char *names, const char *what, int64_t *out,
                            struct pe_error *err);

/* *head_dim = channels of the width for each head. */
enum pe_status pe_hf_divide_width(const struct pe_hf_reader *r, int64_t *head_dim);

enum { PE_HF_SIDE_MAX = 65536 }; /* patches along a side */

#define PE_HF_LAYOUT_FLAGS "rope_interleave|rotary_emb_interleaved|rope_interleaved" /* true: pairs of neighbours */
#define PE_HF_WIDTH "hidden_size|d_model|n_embd|dim|embed_dim|width|emb_dim|n_embed"
#define PE_HF_HEADS                                                                                                    \
    "num_attention_heads|n_head|n_heads|num_heads|encoder_attention_heads|encoder_num_attention_heads|speech_encoder_" \
    "attention_heads"
#define PE_HF_LENGTH                                                                                                   \
    "max_position_embeddings|n_positions|max_seq_len|max_sequence_length|seq_length|n_ctx|max_target_positions|"       \
    "block_size|max_encoder_position_embeddings|max_decoder_position_embeddings|num_hash_buckets"

/* ---- Appending to the output; there is room for all that the rules here write ---- */

void pe_hf_put(struct pe_model_fields *out, const char *name, struct pe_value value);
void pe_hf_put_word(struct pe_model_fields *out, const char *name, const char *word);
void pe_hf_put_flag(struct pe_model_fields *out, const char *name, bool flag);
void pe_hf_put_integer(struct pe_model_fields *out, const char *name, int64_t x);
void pe_hf_put_number(struct pe_model_fields *out, const char *name, double x);
void pe_hf_put_list(struct pe_model_fields *out, const char *name, const double *numbers, size_t n); /* borrowed */

/* num_heads, and head_dim: under one of names (NULL: none), else the width divided by the heads. */
enum pe_status pe_hf_put_heads(struct pe_hf_reader *r, const char *head_dim_names);

/* ---- The rules ---- */

enum pe_status pe_hf_rope(struct pe_hf_reader *r);    /* rope.c */
enum pe_status pe_hf_scaling(struct pe_hf_reader *r); /* scaling.c: the field `scaling`, from r->rope */
enum pe_status pe_hf_axes(struct pe_hf_reader *r);    /* axes.c: channels, mrope_section, position_style … */

const char *pe_hf_rope_names(const struct pe_hf_reader *r); /* rope.c: rope_scaling and rope_parameters, in order */

/* kinds.c: the kinds of layers that the config's model has, and which layers they are. Of a row that is found. */
enum pe_status pe_hf_list_layers(const struct pe_hf_reader *r, struct pe_hf_layers *layers);
bool pe_hf_has_kind(const struct pe_hf_layers *layers, const char *kind); /* of attention or not */
/* Writes the layers of a kind (NULL: of any) to indices, PE_HF_LAYERS_MAX of them at most; their number. */
#define PE_HF_FULL "full_attention" /* the kind where a model has one */
size_t pe_hf_layers_of(const struct pe_hf_layers *layers, const char *kind, int64_t *indices);
bool pe_hf_layers_known(const struct pe_hf_layers *layers, const char *kind);

/* differ.c: kinds whose positions are compared, a line for each. */
struct pe_hf_difference {
    const struct pe_hf_layers *layers;
    bool differ;
    char lines[PE_DETAIL_MAX - 128];
};
/* Adds the line of kind k. Shown is what differs from the other kind, and what a reader knows
 * a rotation by. */
void pe_hf_describe(struct pe_hf_difference *difference, size_t k, const struct pe_model_fields *fields,
                    const struct pe_model_fields *other);
/* Fails at /layer_type with all lines: a kind must be named (NULL), or this one is none of the model's. */
enum pe_status pe_hf_differ(const struct pe_hf_difference *difference, const char *model_type, const char *named,
                            struct pe_error *err);
/* The kinds of the problem's layer_types. */
void pe_hf_name_kinds(const struct pe_hf_layers *layers, struct pe_error *err);

/* layers.c: is this a layer type of the model, and does it have positions? */
enum pe_status pe_hf_layer_check(const struct pe_hf_reader *r, bool *has_positions);
const char *pe_hf_layer_type(const struct pe_hf_reader *r);          /* as asked, or the default */
bool pe_hf_is_layer(const struct pe_hf_reader *r, const char *name); /* may an object of a layer type have this name? */
bool pe_hf_is_no_attention(const char *layer_type);
bool pe_hf_has_other_layers(const struct pe_hf_model *row); /* which are no attention? */

/* tables.c */
enum pe_status pe_hf_side(const struct pe_hf_reader *r, int64_t *side); /* patches along one side of the image */
enum pe_status pe_hf_learned(struct pe_hf_reader *r);                   /* a table of positions */
enum pe_status pe_hf_patches(struct pe_hf_reader *r);                   /* a table of patches */
enum pe_status pe_hf_sinusoidal(struct pe_hf_reader *r);
enum pe_status pe_hf_nothing(struct pe_hf_reader *r); /* no positions */

/* bias.c */
enum pe_status pe_hf_alibi(struct pe_hf_reader *r); /* form: the model's style, else symmetric */
enum pe_status pe_hf_mpt(struct pe_hf_reader *r);
enum pe_status pe_hf_falcon(struct pe_hf_reader *r);
enum pe_status pe_hf_t5(struct pe_hf_reader *r);
enum pe_status pe_hf_buckets(struct pe_hf_reader *r);
enum pe_status pe_hf_layoutlm(struct pe_hf_reader *r);

/* relative.c */
enum pe_status pe_hf_relative_key(struct pe_hf_reader *r, const char *type); /* BERT's; type is the table_style */
enum pe_status pe_hf_nezha(struct pe_hf_reader *r);
enum pe_status pe_hf_deberta(struct pe_hf_reader *r);
enum pe_status pe_hf_transfo_xl(struct pe_hf_reader *r);
enum pe_status pe_hf_xlnet(struct pe_hf_reader *r);
enum pe_status pe_hf_conformer(struct pe_hf_reader *r);

/* window.c */
enum pe_status pe_hf_swin(struct pe_hf_reader *r);
enum pe_status pe_hf_beit(struct pe_hf_reader *r);

#endif
