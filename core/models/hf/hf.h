/* Reading a model's config.json, between the files here: the reader's state, its helper functions, and the row
 * that states what the code of a model_type does with its positions. */
#ifndef PE_MODELS_HF_H
#define PE_MODELS_HF_H

#include "core/models/models.h"
#include "core/inside.h"
#include "core/values.h"

/* ---- Marks of what is read ---- */

enum { PE_HF_OBJECTS_MAX = 8, PE_HF_DEFAULTS_MAX = 24 };

/* An object of the config that was looked into. */
struct pe_hf_seen {
    const struct pe_value *object;
    const char *at; /* the pointer to it */
};

enum { PE_HF_KINDS_MAX = 8, PE_HF_KIND_BYTES = 48, PE_HF_LAYERS_MAX = PE_MODEL_LAYERS_MAX };

/* The kinds of layers of a config's model. */
struct pe_hf_layers {
    char kinds[2 * PE_HF_KINDS_MAX][PE_HF_KIND_BYTES]; /* from PE_HF_KINDS_MAX on those that are no attention */
    size_t n_kinds;                                    /* at least 1 */
    size_t n_others;                                   /* kinds that are no attention */
    size_t n;                                          /* layers of one stack; 0: not known */
    unsigned char kind_of[PE_HF_LAYERS_MAX];
    bool are_certain;                /* the model has no other kinds */
    bool are_merged;                 /* layers of other masks are among the one kind, and nothing states which */
    bool are_too_many;               /* … kinds to be listed here */
    bool are_stacks;                 /* each kind is a stack of its own, … */
    int64_t depths[PE_HF_KINDS_MAX]; /* … of so many layers; 0: not known */
};

/* Marks that the reader leaves; NULL where they are of no interest. */
struct pe_hf_marks {
    const struct pe_field **read; /* fields that were read; owned */
    size_t n_read, room;
    struct pe_hf_seen seen[PE_HF_OBJECTS_MAX];
    char pointers[PE_HF_OBJECTS_MAX][PE_POINTER_MAX];
    size_t n_seen;
    struct pe_field defaults[PE_HF_DEFAULTS_MAX]; /* values taken for missing fields */
    size_t n_defaults;
    const char *model_type;
    struct pe_hf_layers layers;
    const char *layer_type;      /* NULL: not given, and all kinds are alike */
    int64_t first;               /* position of the first token in the model's own code */
    bool scheme_is_given;        /* the request states what a model_type without a row is */
    enum pe_certainty certainty; /* of the row */
    bool no_memory;
};

void pe_hf_mark_read(struct pe_hf_marks *marks, const struct pe_field *field); /* NULL is accepted, as below */
void pe_hf_mark_seen(struct pe_hf_marks *marks, const struct pe_value *object, const char *at);
void pe_hf_mark_default(struct pe_hf_marks *marks, const char *name, struct pe_value value);

/* ---- The reader ---- */

struct pe_hf_reader;
struct pe_hf_place;

/* The kinds of positions, of core/models/hf/list.h. */
enum pe_hf_kind {
#define KIND(ID, name, read, text) PE_HF_##ID,
#define TRAIT(hook, name, text, source)
#include "core/models/hf/list.h"
#undef KIND
#undef TRAIT
};

/* Which masks a class gives its layers where no field states; positions are the same. */
enum pe_hf_masks {
    PE_HF_MASKS_UNSTATED,
    PE_HF_MASKS_ALIKE, /* one for all layers: there is no other kind */
    PE_HF_MASKS_DIFFER /* some are sliding */
};

/* Values of fields, as a config or a request would have them. */
struct pe_hf_fields {
    const struct pe_field *fields;
    size_t n;
};

/* What transformers' code does for one model_type (or several, "a|b"): a block of core/models/types.txt, whose head
 * explains the keys. Zero means the usual. */
struct pe_hf_model {
    const char *types;
    bool is_class; /* … names of classes of diffusers, `_class_name` */
    enum pe_hf_kind kind;
    struct pe_hf_fields fields; /* the class's values of fields read here */
    struct pe_hf_fields gives;  /* fields of the answer that depend on nothing … */
    const char *chosen;         /* … and those of them that the pipeline decides: "a|b" */
    const char *ignores, *reads, *refuses, *needs;
    const char *inner, *inner_type, *without;
    const char *layers, *none, *none_if, *mixed, *period;
    enum pe_hf_masks masks;
    int64_t extra_rows, row_offset, first; /* PE_HF_AFTER_PADDING: pad_token_id + 1 */
    const char *layout, *channels, *position_style, *head_dim, *base, *local_base, *rope_if;
    const char *axes; /* grid: how the head is shared among axes */
    const char *form, *buckets, *distance, *interpolate, *positions, *send, *remark;
    const char *indexer; /* of sparse attention: how its heads turn, half, interleaved, or last|interleaved */
    const char *scale, *cap, *sinks; /* of scores; scale NULL: the attention code was not read */
    const char *source;              /* files and symbols, below transformers' models/ */
    enum pe_certainty certainty;

    /* Traits: what this code does in its own way, NULL for the usual way. The functions are in types.c, each named
     * pe_hf_ and its trait's name; list.h has them all. */
    bool (*missing)(const struct pe_hf_reader *r, struct pe_hf_place *inner); /* is there a model without the object? */
    void (*sliding)(struct pe_hf_reader *r, bool has_own_base); /* what a sliding layer keeps of the rope object */
    void (*heads)(int64_t *head_dim); /* a head's width, if it is that of the model divided by the heads */
    enum pe_status (*before)(struct pe_hf_reader *r, int64_t rotary, int64_t *rest); /* channels before the rotated */
    bool (*second)(int64_t layer, int64_t n_layers, int64_t period);       /* is the layer of the second of `mixed`? */
    const char *(*by_ratio)(const struct pe_reals *ratios, int64_t layer); /* the layer's type by compress_ratios */
    enum pe_status (*scaling)(struct pe_hf_reader *r, const char **type);  /* the meaning of a type; NULL: all is put */
    void (*scaled)(struct pe_hf_reader *r, const char *type, size_t *n);   /* adds fields of scaling */
    enum pe_status (*then)(struct pe_hf_reader *r);                        /* adds fields after those of the kind */
    enum pe_status (*scores)(struct pe_hf_reader *r);                      /* … after scale and cap */
};

enum { PE_HF_AFTER_PADDING = -1 };

/* The rows of types.txt in its order; core/models/rows.awk makes them. */
extern const struct pe_hf_model pe_hf_type_rows[];
extern const size_t pe_n_hf_type_rows;

/* The row of that model_type; NULL if there is none. */
const struct pe_hf_model *pe_hf_model_find(const char *model_type);

/* The same, also of a part: "t/x". No config has such a name. */
const struct pe_hf_model *pe_hf_row_find(const char *name);

/* The names nearest to one, written "a", "b" (at most three); "" if none is near. names(i): "a|b", NULL past the last.
 */
void pe_hf_nearest_of(const char *name, const char *(*names)(size_t i), char *out, size_t room);
/* Is it a config.json of timm? Then it is refused with the words that say what its model has. */
bool pe_hf_is_timm(const struct pe_hf_place *config);
enum pe_status pe_hf_refuse_timm(const struct pe_hf_place *config, struct pe_failure *err);
/* A class of diffusers without a row. */
enum pe_status pe_hf_refuse_class(const struct pe_hf_place *config, const char *class, struct pe_failure *err);
void pe_hf_nearest_types(const char *model_type, char *out, size_t room);

/* An object of the config and the pointer to it. */
struct pe_hf_place {
    const struct pe_value *object; /* NULL: there is none */
    char at[PE_POINTER_MAX];
    struct pe_hf_marks *marks;           /* NULL: what is read is of no interest */
    const struct pe_hf_fields *defaults; /* of the class; NULL: none */
    const struct pe_hf_model *row;       /* whose code reads the object; NULL: every name is read */
};

struct pe_hf_reader {
    struct pe_hf_place config;       /* the language model's object: the whole, or a nested text_config */
    struct pe_hf_place around;       /* the object that contains it; the same object if none does */
    struct pe_hf_place rope;         /* rope_parameters or rope_scaling, of the layer type asked for */
    struct pe_hf_place base;         /* … whose rope_theta counts, also where the layers have no scaling */
    const char *model_type;          /* "" if not given */
    const char *type_key;            /* the field that states it: "model_type", or diffusers' "_class_name" */
    const struct pe_hf_model *model; /* never NULL */
    const struct pe_hf_model *class; /* the row of model_type, also where the request states the scheme; NULL: none */
    const char *layer_type;          /* NULL: not given */
    const struct pe_value *fps;      /* NULL: not given, or taken by the class */
    bool scheme_is_given;            /* the request states the scheme, because the model_type has no row … */
    bool says_channels;              /* … and the axis of each pair of channels */
    bool is_nested;                  /* the model is inside another one */
    struct pe_model_fields *out;
    struct pe_failure *err;
};

/* The language model of a config, which is an object: its own object, which others may contain, and its row. */
struct pe_hf_language {
    struct pe_hf_place place;
    const struct pe_hf_model *row;
    const char *model_type;
};
enum pe_status pe_hf_language(const struct pe_value *config, const struct pe_hf_asked *asked,
                              struct pe_hf_language *out, struct pe_failure *err); /* config.c */

/* ---- read.c: looking things up ----------------------------------------------------------------------------------- */

/* names are alternatives, "a|b": the first that the object has wins, else the first that the class's defaults have.
 * null is none, and no default holds then. */

const struct pe_field *pe_hf_find(const struct pe_hf_place *place, const char *names); /* NULL if none */
bool pe_hf_says(const struct pe_hf_place *place, const char *names); /* does the object itself have one, not null? */
/* Has the row a value of the class for name? */
bool pe_hf_has_default(const struct pe_hf_model *row, const char *name);
/* Does the object, or the class, have "name=true", "name=word", or "name" with any value but null? */
bool pe_hf_holds(const struct pe_hf_place *place, const char *condition);

/* Of a list of numbers: names the element that is none. */
enum pe_status pe_hf_wrong_list(const struct pe_hf_place *place, const struct pe_field *field, const char *allowed,
                                struct pe_failure *err);

/* A field that is a list of numbers; none if it is anything else. */
struct pe_reals pe_hf_numbers(const struct pe_hf_place *place, const char *name);
/* A number of layers, 1 to PE_HF_LAYERS_MAX; 0 if the field is anything else. */
int64_t pe_hf_count(const struct pe_hf_place *place, const char *names);

/* Names between bars, one a call; false past the last. */
bool pe_hf_next_name(const char **names, const char **name, size_t *n);

/* Fails because of the value of a field of place. */
enum pe_status pe_hf_wrong(const struct pe_hf_place *place, const struct pe_field *field, const char *allowed,
                           struct pe_failure *err);

/* The same of the first of names that it has, also where that is null. */
enum pe_status pe_hf_wrong_value(const struct pe_hf_place *place, const char *names, const char *allowed,
                                 struct pe_failure *err);

/* *out is unchanged if the place has none of names. Integers are at least 0. */
enum pe_status pe_hf_integer(const struct pe_hf_place *place, const char *names, int64_t *out, struct pe_failure *err);
enum pe_status pe_hf_number(const struct pe_hf_place *place, const char *names, double *out, struct pe_failure *err);
/* Of any sign. */
enum pe_status pe_hf_signed(const struct pe_hf_place *place, const char *names, int64_t *out, struct pe_failure *err);
enum pe_status pe_hf_flag(const struct pe_hf_place *place, const char *names, bool *out, struct pe_failure *err);
/* Refuses what is neither a word nor absent. */
enum pe_status pe_hf_word(const struct pe_hf_place *place, const char *names, const char **out, struct pe_failure *err);
/* *inner = the first object of names inside place; inner->object is NULL if there is none. */
enum pe_status pe_hf_object(const struct pe_hf_place *place, const char *names, struct pe_hf_place *inner,
                            struct pe_failure *err);

/* "a|b|c" as "a, b, c". */
void pe_hf_spell(const char *names, char *out, size_t room);

/* Reads a required integer of at least 1; `what` states its purpose in the error text. */
enum pe_status pe_hf_needed(const struct pe_hf_place *place, const char *names, const char *what, int64_t *out,
                            struct pe_failure *err);

/* *head_dim = channels of the width for each head. */
enum pe_status pe_hf_divide_width(const struct pe_hf_reader *r, int64_t *head_dim);

enum { PE_HF_SIDE_MAX = 65536 }; /* patches along a side */

#define PE_HF_LAYER_LISTS "layer_types|layers_block_type"
#define PE_HF_LAYOUT_FLAGS "rope_interleave|rotary_emb_interleaved|rope_interleaved" /* true: pairs of neighbours */
#define PE_HF_BASES "rope_theta|rotary_emb_base|global_rope_theta|rotary_base|rotary_embedding_base|theta"
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
void pe_hf_give(struct pe_hf_reader *r); /* what the row gives */

/* num_heads, and head_dim: under one of names (NULL: none), else the width divided by the heads. */
enum pe_status pe_hf_put_heads(struct pe_hf_reader *r, const char *head_dim_names);

/* scores.c: softmax_scale, softcap and query_scale, and what is known of scores beside them. */
enum pe_status pe_hf_scores(struct pe_hf_reader *r);
bool pe_hf_has_magnitude(const struct pe_hf_reader *r); /* does its code multiply scores by YaRN's magnitude squared? */
void pe_hf_put_scale(struct pe_hf_reader *r, double scale);
void pe_hf_put_query_scale(struct pe_model_fields *out, const char *type, double beta, double length);
char *pe_hf_note(struct pe_hf_reader *r); /* [PE_DETAIL_MAX]: room for one more sentence of the answer */

/* ---- The rules ---- */

enum pe_status pe_hf_rope(struct pe_hf_reader *r);    /* rope.c */
enum pe_status pe_hf_scaling(struct pe_hf_reader *r); /* scaling.c: the field `scaling`, from r->rope */
enum pe_status pe_hf_axes(struct pe_hf_reader *r);    /* channels, mrope_section, position_style … */

const char *pe_hf_rope_names(const struct pe_hf_reader *r); /* rope.c: rope_scaling and rope_parameters, in order */
enum pe_status pe_hf_head_dim(struct pe_hf_reader *r, int64_t *head_dim); /* rope.c: unchanged if it is not known */
void pe_hf_sliding_usual(struct pe_hf_reader *r,
                         bool has_own_base); /* rope.c: a sliding layer of its own base has no rope object */
void pe_hf_add(struct pe_hf_reader *r, size_t *n, const char *name, struct pe_value value); /* to scaling */

/* kinds.c: the kinds of layers that the config's model has, and which layers they are. Of a row that is found. */
const char *
pe_hf_stack_flags(const struct pe_hf_reader *r); /* conditions that decide which stacks there are, or NULL */
enum pe_status pe_hf_list_layers(const struct pe_hf_reader *r, struct pe_hf_layers *layers);
bool pe_hf_has_kind(const struct pe_hf_layers *layers, const char *kind); /* of attention or not */
/* Writes the layers of a kind (NULL: of any) to indices, PE_HF_LAYERS_MAX of them at most; their number. */
#define PE_HF_FULL "full_attention" /* the kind where a model has one */
#define PE_HF_INDEXER "indexer"     /* a part: no kind of layers, but named as one */
/* The row of a config whose class has an indexer; NULL: it has none. */
const struct pe_hf_model *pe_hf_indexer_row(const struct pe_value *config, const struct pe_hf_asked *asked);
size_t pe_hf_layers_of(const struct pe_hf_layers *layers, const char *kind, int64_t *indices);
bool pe_hf_layers_known(const struct pe_hf_layers *layers, const char *kind);
/* `layer_type` and `layers` of what an answer reports (about.c). kind NULL: the default. */
void pe_hf_put_layers(struct pe_node *root, const struct pe_hf_layers *layers, const char *kind);
const char *
pe_hf_default_kind(const struct pe_hf_layers *layers); /* full_attention where there is one, else the first */

/* differ.c: reads every kind, the first into *first. Fails at /layer_type with a line for each if they differ, so that
 * one must be named, or if one is, which is none of the model's; and as read() does, which reads kind k. */
enum pe_status pe_hf_compare_kinds(const struct pe_hf_layers *layers, const char *model_type, const char *named,
                                   enum pe_status (*read)(void *reader, size_t k, struct pe_model_fields *out),
                                   void *reader, struct pe_model_fields *first, struct pe_failure *err);
/* The kinds of the problem's layer_types. */
void pe_hf_name_kinds(const struct pe_hf_layers *layers, struct pe_failure *err);

/* layers.c: is this a layer type of the model, and does it have positions? */
enum pe_status pe_hf_layer_check(const struct pe_hf_reader *r, bool *has_positions);
const char *pe_hf_layer_type(const struct pe_hf_reader *r);          /* as asked, or the default */
bool pe_hf_is_layer(const struct pe_hf_reader *r, const char *name); /* may an object of a layer type have this name? */
bool pe_hf_is_no_attention(const char *layer_type);
bool pe_hf_has_other_layers(const struct pe_hf_model *row); /* which are no attention? */
bool pe_hf_is_by_layer(const struct pe_hf_model *row); /* may each layer be of another type? Other kinds have stacks */

/* layers.c: SmolLM3 and Llama 4 mark each layer, beside its mask, as rotated or not: in a list, 1 for those with
 * positions, or by stating that every n-th has none. Empty for types whose code does not read that. */
struct pe_hf_rotations {
    struct pe_reals marks;
    int64_t interval; /* 0: none */
};
bool pe_hf_marks_rotation(const struct pe_hf_model *row); /* does its code read that? */
struct pe_hf_rotations pe_hf_rotations_of(const struct pe_hf_reader *r);
bool pe_hf_is_rotated(const struct pe_hf_rotations *rotations, int64_t layer);

/* tables.c */
enum pe_status pe_hf_side(const struct pe_hf_reader *r, int64_t *side); /* patches along one side of the image */
enum pe_status pe_hf_learned(struct pe_hf_reader *r);                   /* a table of positions */
enum pe_status pe_hf_patches(struct pe_hf_reader *r);                   /* a table of patches */
enum pe_status pe_hf_learned_or_other(struct pe_hf_reader *r);          /* in BERT's family a word chooses the kind */
enum pe_status pe_hf_sinusoidal(struct pe_hf_reader *r);
enum pe_status pe_hf_detr(struct pe_hf_reader *r);
enum pe_status pe_hf_same_temperature(struct pe_hf_reader *r);
enum pe_status pe_hf_rt_detr(struct pe_hf_reader *r);
enum pe_status pe_hf_nothing(struct pe_hf_reader *r); /* no positions */

/* bias.c */
enum pe_status pe_hf_alibi(struct pe_hf_reader *r); /* form: the row's, else symmetric */
enum pe_status pe_hf_mpt(struct pe_hf_reader *r);
enum pe_status pe_hf_falcon(struct pe_hf_reader *r);
enum pe_status pe_hf_t5(struct pe_hf_reader *r);
enum pe_status pe_hf_buckets(struct pe_hf_reader *r);
enum pe_status pe_hf_layoutlm(struct pe_hf_reader *r);

/* bias.c */
enum pe_status pe_hf_relative_key(struct pe_hf_reader *r, const char *type); /* BERT's; type is the table_style */
enum pe_status pe_hf_nezha(struct pe_hf_reader *r);
enum pe_status pe_hf_deberta(struct pe_hf_reader *r);
enum pe_status pe_hf_deberta_v2(struct pe_hf_reader *r);
enum pe_status pe_hf_transfo_xl(struct pe_hf_reader *r);
enum pe_status pe_hf_xlnet(struct pe_hf_reader *r);
enum pe_status pe_hf_conformer(struct pe_hf_reader *r);

/* bias.c */
enum pe_status pe_hf_swin(struct pe_hf_reader *r);
enum pe_status pe_hf_swinv2(struct pe_hf_reader *r);
enum pe_status pe_hf_beit(struct pe_hf_reader *r);
enum pe_status pe_hf_decomposed(struct pe_hf_reader *r);
enum pe_status pe_hf_decomposed_window(struct pe_hf_reader *r);
enum pe_status pe_hf_decomposed_table(struct pe_hf_reader *r);

/* grids.c: classes of diffusers */
enum pe_status pe_hf_grid(struct pe_hf_reader *r);
enum pe_status pe_hf_sines(struct pe_hf_reader *r);
enum pe_status pe_hf_cogvideox(struct pe_hf_reader *r);
enum pe_status pe_hf_resized_to_axes(struct pe_hf_reader *r);
enum pe_status pe_hf_scaled_by_axis(struct pe_hf_reader *r);
enum pe_status pe_hf_cropped_to_video(struct pe_hf_reader *r);
enum pe_status pe_hf_resized_from_sample(struct pe_hf_reader *r);
enum pe_status pe_hf_resized_by_scale(struct pe_hf_reader *r);
enum pe_status pe_hf_windowed(struct pe_hf_reader *r);

/* types.c: the traits of list.h, one for each function of struct pe_hf_model. */
bool pe_hf_must_hold(const struct pe_hf_reader *r, struct pe_hf_place *inner);
bool pe_hf_may_be_flat(const struct pe_hf_reader *r, struct pe_hf_place *inner);
void pe_hf_sliding_scaled(struct pe_hf_reader *r, bool has_own_base);
void pe_hf_sliding_unscaled(struct pe_hf_reader *r, bool has_own_base);
void pe_hf_twice_as_wide(int64_t *head_dim);
enum pe_status pe_hf_rotary_last(struct pe_hf_reader *r, int64_t rotary, int64_t *rest);
bool pe_hf_first_of_period(int64_t layer, int64_t n_layers, int64_t period);
bool pe_hf_counted_back(int64_t layer, int64_t n_layers, int64_t period);
bool pe_hf_and_first_layer(int64_t layer, int64_t n_layers, int64_t period);
bool pe_hf_and_last_layer(int64_t layer, int64_t n_layers, int64_t period);
enum pe_status pe_hf_gpt2_flags(struct pe_hf_reader *r);
enum pe_status pe_hf_temperature(struct pe_hf_reader *r);
enum pe_status pe_hf_llama_4_beta(struct pe_hf_reader *r);
enum pe_status pe_hf_magnitude_differs(struct pe_hf_reader *r);
enum pe_status pe_hf_ntk_beyond(struct pe_hf_reader *r);
enum pe_status pe_hf_table_by_layer(struct pe_hf_reader *r);
const char *pe_hf_by_compress_ratio(const struct pe_reals *ratios, int64_t layer);
enum pe_status pe_hf_yarn_is_longrope(struct pe_hf_reader *r, const char **type);
enum pe_status pe_hf_only_longrope(struct pe_hf_reader *r, const char **type);
enum pe_status pe_hf_yarn_is_another(struct pe_hf_reader *r, const char **type);
enum pe_status pe_hf_alpha_is_ntk(struct pe_hf_reader *r, const char **type);
void pe_hf_yarn_unscaled(struct pe_hf_reader *r, const char *type, size_t *n);
enum pe_status pe_hf_table_scaled(struct pe_hf_reader *r);

#endif
