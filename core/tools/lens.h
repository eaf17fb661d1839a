/* The same positions in the words of other tools: fields of a config.json, flags, arguments of trainers, calls.
 *
 * A tool is one file in core/tools/tools/: rows that pair a member of its value with a field of our configuration, and
 * the rules of scaling that it has. One engine runs the rows forward (export: our configuration in the tool's words)
 * and backward (import: its words as a request's fields). Neither knows what the other loses: a value that was exported
 * is imported and planned, and the numbers of both are compared (core/dialects/statement.c). So a row has to be what
 * the tool does, quirks included. */
#ifndef PE_LENS_H
#define PE_LENS_H

#include "core/models/gguf/gguf.h"
#include "core/models/models.h"
#include "core/params.h"
#include "core/schemes/scalings/scaling.h"
#include "core/values.h"

/* ---- A member and a field: a row ---- */

/* What a member needs beside it to have an effect: a flag without it is named (core/dialects/find_said.c). */
struct pe_need {
    const char *what;        /* "rope-scaling yarn"; NULL ends the list */
    const char *with;        /* a member, whose value is one of … */
    const char *words;       /* … these, "true" of a flag */
    const char *otherwise;   /* its value where it is absent */
    const char *unless_zero; /* or this member is 0; NULL: none */
};

/* How the member's value follows from the field's, and back: the functions are a table in lens.c. */
enum pe_conversion {
    PE_SAME,
    PE_WHOLE,       /* a whole number of at least 1; back as it is */
    PE_RECIPROCAL,  /* 1/x */
    PE_NOT,         /* a flag and its opposite */
    PE_NEIGHBOURS,  /* layout; true: interleaved */
    PE_UNLESS_ZERO, /* back: 0 is no number */
    PE_N_CONVERSIONS
};

struct pe_conversion_row {
    struct pe_value (*forward)(struct pe_value ours), (*backward)(struct pe_value theirs); /* PE_NULL: nothing */
};
extern const struct pe_conversion_row pe_conversions[PE_N_CONVERSIONS];

/* Which direction a row is for. */
enum pe_direction { PE_BOTH_WAYS, PE_IMPORT_ONLY, PE_EXPORT_ONLY };

struct pe_lens {
    const char *theirs; /* the member; NULL: none, a constant of the tool */
    /* A field of the configuration ("head_dim", "scaling.factor"), or what follows from it: "base" (stretched by a
     * rule that no row has, if it is nothing else), "share" (of the head), "length" (of the model), "magnitude" and
     * "magnitude_all_dim" (k and l of m(s, k)/m(s, l)), "still_period", "kind" (the tool's word, of its forms), "rope"
     * (the rope object), "overrides" (an object of overrides that has it). NULL: a flag that is the rule of `when`. */
    const char *ours;
    enum pe_conversion convert;
    const char *when, *unless; /* rules of scaling, "yarn|linear"; NULL: all, none */
    enum pe_direction direction;
    double otherwise;     /* what the tool takes where the member is absent; NaN: nothing */
    double usual;         /* is_quiet: the value that need not be written, if that is another one; 0: otherwise */
    bool is_quiet;        /* not written where it is the usual value */
    bool is_always;       /* written as otherwise where `when` does not hold; … */
    bool is_null;         /* … as null */
    bool is_short;        /* a real that is written as an integer where it is one */
    bool is_rule;         /* a value other than 1 is that of the first rule of `when` */
    bool is_divisor;      /* the tool divides by it, and 0 is refused; the scheme would take its default */
    bool is_of_file;      /* of sliding layers it is in the model's file */
    bool is_none_below_0; /* a value below 0 counts as not given, … */
    bool is_none_at_0;    /* … and so does 0 */
    const struct pe_need *needs;
    /* The member's row in the catalogue. */
    enum pe_type type;
    double min, max;
    const char *only_with; /* "class=Llama3ScaledRoPE" */
};

#define PE_LENS_BASE .type = PE_T_REAL, .min = 1e-3, .max = 1e12
#define PE_LENS_FACTOR .type = PE_T_REAL, .min = PE_SCALING_FACTOR_MIN, .max = PE_SCALING_FACTOR_MAX
/* … of a rule that the member states by being other than 1. */
#define PE_LENS_FACTOR_OF PE_LENS_FACTOR, .otherwise = 1, .is_rule = true, .is_always = true
#define PE_LENS_SHARE .type = PE_T_REAL, .max = 1, .otherwise = 1
#define PE_LENS_REAL .type = PE_T_REAL
#define PE_LENS_WIDTH .type = PE_T_INT, .max = 4096, .otherwise = PE_UNSET
#define PE_LENS_LENGTH .type = PE_T_INT, .max = 0x1p40
#define PE_LENS_FLAG .type = PE_T_BOOL, .max = 1
#define PE_LENS_KIND "kind", .type = PE_T_WORD
#define PE_LENS_OBJECT .type = PE_T_VALUE
#define PE_LENS_END                                                                                                    \
    {                                                                                                                  \
        .theirs = NULL, .ours = NULL                                                                                   \
    }

static inline bool pe_lens_is(const struct pe_lens *lens) { return lens && (lens->theirs || lens->ours); }

/* vLLM's, of every version. */
#define PE_COMMAND_VLLM                                                                                                \
    .programs = "vllm|vllm.entrypoints.*|vllm-openai*|vllm-openai:*", .calls = "LLM|EngineArgs|AsyncEngineArgs",       \
    .models = "model", .before = "serve"

/* … of transformers, whose keywords replace fields of the model's config.json. */
#define PE_CALLS_TRANSFORMERS .calls = "AutoModel*|AutoConfig*", .models = "model|pretrained_model_name_or_path"

/* A word of the tool's for a kind of rotation: a class, or the value of a flag. */
struct pe_form {
    const char *word;   /* NULL ends the list */
    const char *rule;   /* that it has; NULL: whatever else is stated */
    bool decides;       /* back, the rule is this one whatever the other members are */
    const char *layout; /* NULL: any */
    const char *scheme; /* NULL: rope */
    double base;        /* of the class; 0: the member's */
};

/* ---- A rule of scaling as the tool has it ---- */

/* Where a tool looks for a number that may be in the rope object or beside it. */
enum pe_place {
    PE_INSIDE,       /* in the object only */
    PE_INSIDE_ELSE,  /* … else beside it */
    PE_OUTSIDE_ELSE, /* beside it, else in the object */
    PE_OUTSIDE       /* beside it only */
};

/* A rule in the tool's rope object, the rope_scaling or rope_parameters of a config.json. Its members are those of the
 * scaling's own row (`object`), but for those that the tool does not read. */
struct pe_rope_rule {
    const char *name;         /* the scheme's word for it; NULL ends the list */
    const char *word;         /* the tool's, where that is another one; NULL: the same */
    enum pe_place original;   /* of original_max_position_embeddings */
    double original_else;     /* where it finds none; 0: none */
    bool original_is_needed;  /* it stops without one */
    bool words_need_original; /* … in its own words, which nothing completes as it does a config.json */
    bool has_one_list;  /* it chooses one of two lists at its start, by the length: the long one beyond the original */
    bool ratio_wins;    /* the ratio of the lengths, not a stated factor, if the object has the original one */
    const char *needed; /* without this member there is no rule; NULL: none */
    const char *unread; /* members without effect */
    const char *unread_latent; /* … in models with latent attention; NULL: the same */
    bool has_convention;       /* in a config.json, too, it is the tool's own */
    bool is_of_config;         /* read in a config.json, and no word of the tool's */
    const char *types;         /* … of these model_types only; NULL: of all */
};

/* ---- A tool ---- */

struct pe_export;
struct pe_import;

struct pe_tool {
    const char *name, *label; /* "transformers4"; as people write it */
    const char *source;

    /* Its words: /translate and `said`. lenses NULL and no function: it has none. */
    struct pe_target_info info;   /* name, source and members are filled in: tools.c */
    const struct pe_lens *lenses; /* NULL: the keys of a file */
    const struct pe_form *forms;  /* of the member "kind" */
    /* Of head_dim, rotary_dim, rotary_offset, layout and axes those that its value states, "a|b"; share: rotary_dim as
     * a share of the whole head. */
    const char *carries;
    const char *layout;     /* the only one that it has; NULL: any */
    const char *convention; /* of scaling, in rules that differ by library; NULL: the usual one */
    bool is_beside_a_model; /* the words are added to a model's own files, which have its axes */
    bool has_kinds;         /* one value states every kind of layers */
    bool states_none;       /* … and that there are no positions */
    /* What rows cannot express, after them; NULL: nothing. */
    void (*export)(struct pe_export *e);
    enum pe_status (*check)(const struct pe_import *m); /* before them */
    enum pe_status (*import)(struct pe_import *m);

    /* Its rope object. */
    const struct pe_rope_rule *rules;
    const char *words; /* for a rule, which only some tools have: "deepseek_yarn" */
    enum pe_place base, share;
    bool words_need_base;        /* its own words without one stop it; else it takes 10000 */
    const char *unread;          /* members without effect, whatever the rule, in its words */
    const char *unread_by_layer; /* … of an object for each kind of layers */

    /* Its reading of a config.json: /explain. objects NULL: it reads none, or that is not known. */
    struct pe_about reads;
    const char *reads_source;
    const char *objects;          /* names of the rope object, the first that is there and not empty counts */
    const char *lacks;            /* model_types that came later, of which it has no class; NULL: none */
    const char *types;            /* model_types whose classes are known here to read it so; NULL: any */
    bool has_images;              /* it has the classes of images and videos that are no part of a language model */
    const char *unread_attention; /* fields of attn_config */
    const char *reads_magnitudes; /* model_types whose yarn it reads as that of latent attention */
    const char *scaled_sliding;   /* model_types whose sliding layers it scales too, as the model was not trained */
    bool drops_rules;             /* a rule that it has not is no rule to it; else it refuses the model */
    bool refuses_two_types;       /* type and rope_type that differ */
    bool needs_type;              /* it stops at a rope object without one; others take it for no rule */
    const char *before, *unread_before, *rules_before; /* older versions did not read these fields of these rules */
    /* It writes a file, for some model_types, which another program reads; NULL: no. */
    const char *(*architecture)(const char *model_type);
    const char *writes_no_rope;    /* … of these neither a base nor a rule, whatever the config states */
    const char *writes_lists_only; /* … of the rules only longrope */
};

extern const struct pe_tool *const pe_tools[];        /* NULL-terminated, in the order of answers */
bool pe_tool_has_words(const struct pe_tool *tool);   /* can positions be stated in them? */
const struct pe_tool *pe_tool_find(const char *name); /* NULL: there is none */
enum pe_status pe_tool_unknown(const char *name, const char *pointer,
                               struct pe_failure *err); /* fails, with the nearest */

/* ---- Export: a configuration in the tool's words ---- */

/* An object under construction. */
struct pe_words {
    struct pe_export *e;
    struct pe_field *fields; /* [PE_WORDS_MAX] */
    size_t n;
};
enum { PE_WORDS_MAX = 40 };

struct pe_export {
    const struct pe_tool *tool;
    struct pe_stated_kind kind; /* the one that is exported */
    int64_t length;             /* of the model; 0: not known */
    bool is_local;              /* a sliding kind of a model that has others, too */
    int64_t still_period;       /* every so many layers one has no positions; 0: none */
    const char *within;         /* where the model's config.json has its language model: "text_config"; "": itself */

    /* Of a tool that states every kind, and of a file. */
    const struct pe_stated_kind *kinds;
    size_t n_kinds;
    struct pe_gguf_wish file; /* its architecture, and the model's sizes */

    /* Of the kind's configuration. */
    const struct pe_value *config;
    const char *scheme, *rule; /* "default": none */
    double head_dim, rotary_dim, factor, original, attention;
    bool is_half, is_latent;

    struct pe_values *values; /* has what is exported */
    struct pe_words value;
    const struct pe_form *form; /* NULL: none */
    const char *layout;         /* as the tool pairs what is exported */
    bool failed;                /* no memory */
};

void pe_export_open(struct pe_export *e); /* of tool, kind and values */
void pe_export_members(struct pe_export *e);
double pe_export_number(const struct pe_export *e, const char *path, double otherwise);
double pe_export_base(const struct pe_export *e);  /* … of a rule that is nothing but another base */
double pe_export_share(const struct pe_export *e); /* of the head, rounded up; 1 where the last channels turn, too */
double
pe_export_max(const struct pe_export *e); /* max_position_embeddings: the rule's, else the model's; 0: not known */
/* k and l with m(s, k)/m(s, l) = the factor on cos and sin: the configuration's own, else one of them is 0. */
void pe_export_magnitudes(const struct pe_export *e, double *k, double *l);
void pe_export_object(struct pe_export *e,
                      const struct pe_lens *lens);       /* the rope object and what is around it: rope.c */
double pe_magnitude_ratio(double s, double k, double l); /* m(s, k)/m(s, l) */

struct pe_words pe_words_new(struct pe_export *e);
void pe_word_put(struct pe_words *words, const char *name, struct pe_value value);
void pe_word_number(struct pe_words *words, const char *name, double x); /* an integer if it is one */
void pe_word_object(struct pe_words *words, const char *name, const struct pe_words *object);

/* ---- Import: a tool's words as fields ---- */

union pe_taken {
    int64_t integer;
    double real;
    bool flag;
    int word;
    struct pe_reals reals;
    const struct pe_value *value;
};

struct pe_import {
    const struct pe_tool *tool;
    const struct pe_value *value;
    const char *layer_type;        /* NULL: not given */
    const struct pe_field *beside; /* the request's fields */
    size_t n_beside;
    const struct pe_param *rows;   /* members of the tool's value, … */
    const union pe_taken *members; /* … as they are read */
    const struct pe_form *form;    /* NULL: none */
    const char *rule;
    size_t n_scaling; /* fields of the object scaling */
    struct pe_model_fields *out;
    struct pe_failure *err;
};

enum pe_status pe_import_members(struct pe_import *m);
double pe_import_number(const struct pe_import *m, const char *member); /* NaN: it is not given, and nothing is taken */
const union pe_taken *pe_import_member(const struct pe_import *m, const char *member);
void pe_import_scaling(struct pe_import *m, const char *name, struct pe_value value); /* adds a field of scaling */
/* Fails at the member of that name. */
enum pe_status pe_import_wrong(const struct pe_import *m, const char *member, const char *format, ...)
    __attribute__((format(printf, 3, 4)));

enum pe_status pe_import_object(struct pe_import *m, const struct pe_lens *lens); /* rope.c */

/* ---- A config.json as a tool sees it: config.c ---- */

/* rope_type, else type; NULL: none. */
const struct pe_value *pe_rope_type(const struct pe_value *rope);
/* The scheme's word for such a value, or for a rope object's; the word itself where the scheme has none. */
const char *pe_rope_rule_word(const struct pe_value *type);
static inline const char *pe_rope_rule_of(const struct pe_value *rope) { return pe_rope_rule_word(pe_rope_type(rope)); }
const struct pe_rope_rule *pe_rope_rule_find(const struct pe_tool *tool, const char *rule); /* NULL: it has not */
/* Of a type or rope_type in the tool's words; NULL is "default". NULL: it has not. */
const struct pe_rope_rule *pe_rope_rule_of_type(const struct pe_tool *tool, const struct pe_value *type);
/* longrope's list of a tool that chooses once (has_one_list). */
static inline struct pe_value pe_rope_list(double length, double original)
{
    return pe_word(length > original ? "long" : "short");
}
static inline const char *pe_rope_word_of(const struct pe_rope_rule *rule)
{
    return rule->word ? rule->word : rule->name;
}
bool pe_rope_is_unread(const struct pe_tool *tool, const struct pe_rope_rule *rule, const char *member, bool is_latent,
                       bool is_by_layer);
const struct pe_tool *pe_reader_at(size_t i); /* of those that read one; NULL: there are no more */
bool pe_tool_has_type(const struct pe_tool *tool,
                      const char *model_type); /* is it known how the tool reads this one? */
const struct pe_tool *pe_tool_of_files(void);  /* that whose program reads GGUF files */

/* Which field of the given config a field of the rewritten one is. */
struct pe_config_copy {
    const struct pe_field *copy, *original;
};

enum { PE_CONFIG_COPIES_MAX = 1024 };

struct pe_config_view {
    struct pe_value config;
    struct pe_config_copy *copies;
    size_t n_copies;
};

/* Writes the view of a config; it lives as long as values, and borrows of the config. Fails with the tool's refusal.
 * is_old: as versions before tool->before read it. */
enum pe_status pe_config_view(const struct pe_tool *tool, bool is_old, const struct pe_value *config,
                              const struct pe_hf_language *language, struct pe_values *values,
                              struct pe_config_view *view, struct pe_failure *err);

/* The rope object of a language model's config that the tool looks into; NULL: none. */
const struct pe_field *pe_config_rope(const struct pe_tool *tool, const struct pe_value *config);

#endif
