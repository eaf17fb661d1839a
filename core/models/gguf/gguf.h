/* Reading the keys of a GGUF file, between the files here: the tables of keys and architectures, the reader's state,
 * and what it finds. */
#ifndef PE_MODELS_GGUF_H
#define PE_MODELS_GGUF_H

#include "core/models/hf/hf.h"
#include "core/models/models.h"

/* ---- The tables: core/models/gguf/llama_cpp.c ---- */

enum pe_gguf_key_id {
#define KEY(id, name, types, fields) PE_GGUF_##id,
#include "core/models/gguf/keys.h"
#undef KEY
    PE_GGUF_N_KEYS
};

enum pe_gguf_kind { PE_GGUF_ROPE, PE_GGUF_ALIBI, PE_GGUF_T5, PE_GGUF_LEARNED, PE_GGUF_NONE };

/* Which divisors of the frequencies an architecture's graph uses. */
enum pe_gguf_divisors {
    PE_GGUF_NO_DIVISORS,
    PE_GGUF_FREQS,  /* rope_freqs */
    PE_GGUF_LISTS,  /* the two lists, whatever the type */
    PE_GGUF_BY_TYPE /* the two lists with type longrope, else rope_freqs */
};

/* Sections of several axes: needed, or decided by whether the first two of them are above 0. */
enum pe_gguf_sections { PE_GGUF_NO_SECTIONS, PE_GGUF_SECTIONS, PE_GGUF_SECTIONS_IF };

/* Which layers slide where there is a window. The pattern is the array of the file. */
enum pe_gguf_pattern {
    PE_GGUF_PERIOD,           /* by the period alone; an array is not read */
    PE_GGUF_PATTERN_OPTIONAL, /* by the array, else the period */
    PE_GGUF_PATTERN_NEEDED
};

enum pe_gguf_base { PE_GGUF_BASE_SAME, PE_GGUF_BASE_10000, PE_GGUF_BASE_FULL /* freq_base_swa is not read */ };

/* Which layers do not turn. */
enum pe_gguf_still {
    PE_GGUF_ALL_TURN,
    PE_GGUF_EVERY_FOURTH, /* l + 1 divisible by 4 */
    PE_GGUF_FIRST_OF_FOUR,
    PE_GGUF_FULL_LAYERS,
    PE_GGUF_FULL_BEHIND_DENSE /* full layers from leading_dense_block_count on */
};

/* What multiplies q·k in the graph. */
enum pe_gguf_scale {
    PE_GGUF_SCALE_USUAL,  /* 1/sqrt of a head's width */
    PE_GGUF_SCALE_BY_KEY, /* attention.scale, where it is not 0 */
    PE_GGUF_SCALE_OUT,    /* attention.output_scale */
    PE_GGUF_SCALE_ONE,
    PE_GGUF_SCALE_OF_WIDTH, /* 1/(embedding_length/head_count) */
    PE_GGUF_SCALE_OF_27B    /* 1/sqrt of that in files of layers_of_27b layers, else the usual */
};

/* What multiplies queries by their positions. */
enum pe_gguf_temperature {
    PE_GGUF_NO_TEMPERATURE,
    PE_GGUF_TEMPERATURE_OF_STILL, /* Llama 4's numbers, in layers without positions */
    PE_GGUF_TEMPERATURE_ORIGINAL, /* temperature_scale, over the original context */
    PE_GGUF_TEMPERATURE_LENGTH_OF /* temperature_scale, over temperature_length */
};

/* Numbers by which a file is known to lack divisors that its model has: those of a rule of the scheme. */
struct pe_gguf_expected {
    double base;
    int64_t longer_than; /* context_length */
    const char *rule;
    double factor, low, high, original;
};

/* What llama.cpp does with the positions of an architecture, or several "a|b". Zero means the usual. */
struct pe_gguf_architecture {
    const char *names;
    enum pe_gguf_kind kind;
    bool is_half;     /* pairs are halves; else neighbours */
    bool is_permuted; /* the converter has stored rows of q and k in the order of neighbours */
    enum pe_gguf_sections sections;
    const char *channels; /* with sections */
    enum pe_gguf_divisors divisors;
    bool turns_whole_head;        /* dimension_count must be that */
    bool turns_last;              /* the last channels of the head */
    bool full_turns_half;         /* full layers turn half of dimension_count */
    bool is_never_scaled;         /* base 10000, whatever the keys state */
    bool needs_finetuned;         /* without the flag finetuned, by default true, there are no positions */
    double log_multiplier;        /* factor on the key of that name; 0: it is not read */
    bool log_multiplier_is_scale; /* … and replaces the factor 1 of the magnitude */
    bool has_softmax_factor;
    double beta_fast; /* of a file without the key; 0: both betas are not read */
    bool reads_ext, reads_alpha;

    /* ---- Layers that differ ---- */
    unsigned period;           /* layer l slides unless l mod period is period - 1; 0: all layers are of one kind */
    bool full_is_first;        /* … unless it is 0 */
    unsigned layers_of_period; /* the only number of layers for which that holds; 0: any */
    enum pe_gguf_pattern pattern;
    bool
        is_chunked; /* the mask of sliding layers; without the key the window is 8192, with 0 the last layer is still */
    enum pe_gguf_base local_base;
    bool local_is_unscaled, local_is_plain; /* … without divisors; and without attn_factor */
    enum pe_gguf_still still;
    bool is_compressed; /* kinds main and compress, by the ratios of the file */

    /* ---- Scores ---- */
    enum pe_gguf_scale scale;
    unsigned layers_of_27b;
    double cap; /* of a file without the key attn_logit_softcapping; 0: no cap, the key is not read */
    enum pe_gguf_temperature temperature;
    const char *sinks; /* the tensor behind "blk.N."; NULL: none */

    bool alibi_is_8, alibi_of_40_layers;     /* ALiBi whose slopes no key states; … in files of so many layers */
    bool is_decoder;                         /* T5: kinds encoder and decoder */
    const struct pe_gguf_expected *expected; /* divisors of well-known models; NULL: none */
    const char *certainty;                   /* NULL: its code was read */
};

extern const struct pe_gguf_architecture pe_gguf_architectures[];
extern const size_t pe_n_gguf_architectures;
extern const char pe_gguf_source[],
    pe_gguf_scores_unread[]; /* the latter: architectures, "a|b", whose scores were not read */
const struct pe_gguf_key *pe_gguf_key_at(enum pe_gguf_key_id id);

const struct pe_gguf_architecture *pe_gguf_architecture_find(const char *name); /* NULL: there is none */

/* ---- The reader ---- */

enum { PE_GGUF_TENSORS = 3, PE_GGUF_IGNORED_MAX = 64, PE_GGUF_IGNORED_BYTES = 128, PE_GGUF_DEFAULTS_MAX = 8 };
enum pe_gguf_tensor { PE_GGUF_ROPE_FREQS, PE_GGUF_FACTORS_LONG, PE_GGUF_FACTORS_SHORT };

/* A kind of layers: bits. */
enum { PE_GGUF_SLIDING = 1, PE_GGUF_STILL = 2, PE_GGUF_N_KINDS = 4 };

struct pe_gguf_reader {
    const struct pe_value *object;
    const char *architecture;
    const struct pe_gguf_architecture *row;
    const struct pe_field *keys[PE_GGUF_N_KEYS]; /* NULL: the file has none */
    const struct pe_value *tensors[PE_GGUF_TENSORS];
    bool was_read[PE_GGUF_N_KEYS];
    struct pe_hf_layers layers;
    unsigned kinds[PE_HF_KINDS_MAX]; /* bits of each kind of layers.kinds */
    struct pe_field defaults[PE_GGUF_DEFAULTS_MAX];
    char default_names[PE_GGUF_DEFAULTS_MAX][PE_GGUF_IGNORED_BYTES];
    size_t n_defaults;
    struct pe_model_fields *out;
    struct pe_failure *err;
};

/* keys.c: the architecture, and the places of its keys. Reads nothing but the object. */
enum pe_status pe_gguf_open(struct pe_gguf_reader *r, const struct pe_value *object);
enum pe_status pe_gguf_unknown(const char *name, const char *pointer, struct pe_failure *err); /* with the nearest */

bool pe_gguf_has(const struct pe_gguf_reader *r, enum pe_gguf_key_id id);
/* *x is unchanged if there is no such key. Of a list, heads: the first that is not 0. */
enum pe_status pe_gguf_count(struct pe_gguf_reader *r, enum pe_gguf_key_id id, int64_t *x);
/* … which may not be 0 where it is there; needed: what for it has to be there, NULL: it need not. */
enum pe_status pe_gguf_size(struct pe_gguf_reader *r, enum pe_gguf_key_id id, const char *needed, int64_t *x);
enum pe_status pe_gguf_real(struct pe_gguf_reader *r, enum pe_gguf_key_id id, double *x);
enum pe_status pe_gguf_flag(struct pe_gguf_reader *r, enum pe_gguf_key_id id, bool *x);
enum pe_status pe_gguf_word(struct pe_gguf_reader *r, enum pe_gguf_key_id id, const char **word);
/* A list of numbers; n = 0: there is none. */
enum pe_status pe_gguf_numbers(struct pe_gguf_reader *r, enum pe_gguf_key_id id, struct pe_reals *list);
/* Writes "/gguf/ARCHITECTURE.KEY". */
void pe_gguf_pointer(const struct pe_gguf_reader *r, enum pe_gguf_key_id id, char pointer[PE_POINTER_MAX]);
enum pe_status pe_gguf_wrong(const struct pe_gguf_reader *r, enum pe_gguf_key_id id, const char *allowed);
enum pe_status pe_gguf_needs(const struct pe_gguf_reader *r, enum pe_gguf_key_id id, const char *what);
void pe_gguf_default(struct pe_gguf_reader *r, enum pe_gguf_key_id id, struct pe_value value);

/* read.c: what a file is, before a kind of layers is named. */
struct pe_gguf_outline {
    const char *architecture; /* of the object */
    const struct pe_gguf_architecture *row;
    int64_t length; /* context_length; 0: not known */
    struct pe_hf_layers layers;
};
enum pe_status pe_gguf_outline(const struct pe_value *object, struct pe_gguf_outline *out, struct pe_failure *err);
/* Has the converter stored the rows of q and k of these keys' architecture in the order of neighbours? */
bool pe_gguf_is_permuted(const struct pe_value *object);

/* As answers name the order of the rows of q and k. */
static inline const char *pe_rows_name(bool is_permuted) { return is_permuted ? "permuted" : "as_published"; }

/* layers.c: r->layers and r->kinds. */
enum pe_status pe_gguf_list_layers(struct pe_gguf_reader *r);

/* rope.c: the fields of a kind. */
enum pe_status pe_gguf_rope(struct pe_gguf_reader *r, unsigned kind);
enum pe_status pe_gguf_original(struct pe_gguf_reader *r, double *original); /* the length of the training */

/* scores.c: softmax_scale, softcap, query_scale of a kind. */
enum pe_status pe_gguf_scores(struct pe_gguf_reader *r, unsigned kind);
/* write.c: the keys of a file that states kinds of layers. */
struct pe_gguf_wish {
    const char *architecture;
    const struct pe_stated_kind *full, *local; /* local NULL: all layers are alike */
    const struct pe_stated_kind *kinds;        /* whose layers they are */
    size_t n_kinds;
    int64_t length;                   /* 0: not known */
    double window;                    /* of sliding layers; 0: not known */
    int64_t width, heads, depth;      /* of the model; 0: not known */
    bool is_converter;                /* as the converter writes it; else as well as the keys can */
    bool has_no_rope, has_lists_only; /* … by its class: neither a base nor a rule; of the rules only longrope */
};
bool pe_gguf_slides(const char *layer_type);
/* An architecture whose graph turns as the configuration does, where nothing names one. has_local: sliding layers have
 * another base. */
const char *pe_gguf_assume(const struct pe_value *config, bool has_local, bool slides_unscaled);
/* Chooses full and local among the kinds that turn; full stays NULL if none does. */
void pe_gguf_choose_kinds(struct pe_gguf_wish *wish);
/* The name in the file of one of the kinds that it states. */
const char *pe_gguf_kind_name(const struct pe_gguf_outline *outline, const char *layer_type);
enum pe_status pe_gguf_write(const struct pe_gguf_wish *wish, struct pe_values *values, struct pe_value *out,
                             struct pe_failure *err);

#endif
