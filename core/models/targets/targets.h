/* The same positions in the words of other tools: fields of a config.json, flags, arguments of trainers, calls.
 *
 * A tool has one row: the members of its value, what they carry of a configuration, and two functions. `say`
 * puts a configuration into the members as well as the tool can; `read` takes the members as the tool does. Neither
 * knows what the other loses: a value that was said is read back and planned, and the numbers of both are compared
 * (core/dialects/translate.c). */
#ifndef PE_MODELS_TARGETS_H
#define PE_MODELS_TARGETS_H

#include "core/models/gguf/gguf.h"
#include "core/models/models.h"
#include "core/params.h"
#include "core/values.h"

/* ---- A target ---- */

struct pe_saying;
struct pe_hearing;

struct pe_target {
    struct pe_target_info info;
    const char *label; /* as people write it */
    size_t bytes;      /* of the struct of info.members */
    /* Of head_dim, rotary_dim, rotary_offset, layout and axes those that its value states, "a|b"; share: rotary_dim as
     * a share of the whole head. */
    const char *carries;
    const char *layout;     /* the only one that it has; NULL: any */
    bool is_beside_a_model; /* the words are added to a model's own files, which have its axes */
    bool has_kinds;         /* one value states every kind of layers */
    bool says_none;         /* … and that there are no positions */
    void (*say)(struct pe_saying *s);
    enum pe_status (*read)(const struct pe_hearing *h, const void *members); /* of the struct of info.members */
};

extern const struct pe_target *const pe_targets[];        /* NULL-terminated, in the order of answers */
const struct pe_target *pe_target_find(const char *name); /* NULL: there is none */
enum pe_status pe_target_unknown(const char *name, const char *pointer,
                                 struct pe_failure *err); /* fails, with the nearest */

/* ---- A configuration, as it is said: words.c ---- */

/* An object under construction. */
struct pe_words {
    struct pe_saying *s;
    struct pe_field *fields; /* [PE_WORDS_MAX] */
    size_t n;
};
enum { PE_WORDS_MAX = 40 };

struct pe_saying {
    const struct pe_target *target;
    struct pe_stated_kind kind; /* the one that is said */
    int64_t length;             /* of the model; 0: not known */
    bool is_local;              /* a sliding kind of a model that has others, too */
    int64_t still_period;       /* every so many layers one has no positions; 0: none */

    /* Of a target that states every kind, and of a file. */
    const struct pe_stated_kind *kinds;
    size_t n_kinds;
    double window;
    const char *architecture;

    /* Of the kind's configuration. */
    const struct pe_value *config;
    const char *scheme, *rule; /* "default": none */
    double head_dim, rotary_dim, rotary_offset, base, factor, original, attention;
    bool is_half, is_latent;

    struct pe_values *values; /* has what is said */
    struct pe_words value;
    const char *layout; /* as the tool pairs what is said; say() may change it */
    bool failed;        /* no memory */
};

void pe_saying_open(struct pe_saying *s); /* of target, kind and values */
double pe_saying_number(const struct pe_saying *s, const char *path, double otherwise);
/* base · factor^(r/(r - 2)) for the rule ntk, rounded once; else the base. */
double pe_saying_base(const struct pe_saying *s);
/* rotary_dim/head_dim, up to the next number if head_dim times it would be below rotary_dim. */
double pe_saying_share(const struct pe_saying *s);
/* max_position_embeddings: the rule's, else the model's length; 0: not known. */
double pe_saying_max(const struct pe_saying *s);

struct pe_words pe_words_new(struct pe_saying *s);
void pe_say(struct pe_words *words, const char *name, struct pe_value value);
void pe_say_null(struct pe_words *words, const char *name);
void pe_say_real(struct pe_words *words, const char *name, double x);
void pe_say_integer(struct pe_words *words, const char *name, double x);
void pe_say_number(struct pe_words *words, const char *name, double x); /* an integer if it is one */
void pe_say_word(struct pe_words *words, const char *name, const char *word);
void pe_say_flag(struct pe_words *words, const char *name, bool flag);
void pe_say_object(struct pe_words *words, const char *name, const struct pe_words *object);
void pe_say_reals(struct pe_words *words, const char *name, const double *numbers, size_t n);
/* A field of the configuration, if it has it. */
void pe_say_field(struct pe_words *words, const char *name, const char *path);

/* m(s, k) = 1 + 0.1·k·ln s, and 1 for s ≤ 1. */
double pe_magnitude(double s, double k);
double pe_magnitude_ratio(double s, double k, double l); /* m(s, k)/m(s, l) */
/* k and l with m(s, k)/m(s, l) = the factor on cos and sin: the configuration's own, else one of them is 0. */
void pe_saying_magnitudes(const struct pe_saying *s, double *k, double *l);

/* ---- What was said, as it is read: words.c ---- */

struct pe_hearing {
    const struct pe_target *target;
    const struct pe_value *value;
    const char *layer_type;        /* NULL: not given */
    const struct pe_field *beside; /* the request's fields */
    size_t n_beside;
    struct pe_model_fields *out;
    struct pe_failure *err;
};

/* A number of the fields beside; otherwise if there is none. */
double pe_beside(const struct pe_hearing *h, const char *name, double otherwise);
/* Fails at the member of that name. */
enum pe_status pe_hear_wrong(const struct pe_hearing *h, const char *member, const char *format, ...)
    __attribute__((format(printf, 3, 4)));

/* The scaling object that is read: each adds a field. */
struct pe_heard {
    const struct pe_hearing *h;
    size_t n;
};
void pe_hear_field(struct pe_heard *heard, const char *name, struct pe_value value);
void pe_hear_word(struct pe_heard *heard, const char *name, const char *word);
void pe_hear_number(struct pe_heard *heard, const char *name, double x); /* NaN: not given */
void pe_hear_flag(struct pe_heard *heard, const char *name, bool flag);
void pe_hear_done(const struct pe_heard *heard); /* puts scaling */

/* ---- Rope objects, as rope_scaling and rope_parameters: object.c ---- */

enum pe_target_magnitude {
    PE_MAGNITUDE_GIVEN,      /* attention_factor, else by mscale and mscale_all_dim, else m(s, 1) */
    PE_MAGNITUDE_MULTIPLIED, /* m(s, 1) times attn_factor; of latent attention by the pair */
    PE_MAGNITUDE_PAIR        /* m(s, mscale)/m(s, mscale_all_dim), 1 and 0 where they are not given */
};

/* How a tool takes such an object. */
struct pe_target_object {
    const char *rules;      /* that it has, besides default */
    const char *convention; /* of scaling; NULL: the usual one */
    const char *unread;     /* members that it does not take */
    bool has_base, has_share, has_sections;
    bool has_length;    /* original_max_position_embeddings of longrope is inside */
    bool rounds_always; /* truncate is not read */
    enum pe_target_magnitude magnitude;
};

void pe_say_rope(struct pe_words *words, const struct pe_target_object *how);
/* Reads an object; NULL: there is none. base, and the lengths beside it, count where the object has none (0: none). */
enum pe_status pe_hear_rope(const struct pe_hearing *h, const char *member, const struct pe_value *object,
                            const struct pe_target_object *how, double base, double length, double original);

/* The same of an object of overrides: rope_parameters, and max_position_embeddings. */
enum pe_status pe_hear_overrides(const struct pe_hearing *h, const char *member, const struct pe_value *overrides,
                                 const struct pe_target_object *how);

/* A base, a factor on positions, and one of ntk, whose exponent is that of dim channels. */
enum pe_status pe_hear_two_factors(const struct pe_hearing *h, double base, double dim, double linear, double ntk);

/* ---- Members: rows without texts, which only the catalogue and errors show ---- */

#define PE_T_ROW(S, field, name_, TYPE, CTYPE, ...)                                                                    \
    {                                                                                                                  \
        .name = name_, .type = PE_T_##TYPE, .offset = PE_OFFSET(S, field, CTYPE), __VA_ARGS__                          \
    }
#define PE_T_COUNT(S, field, name_, fallback_, max_)                                                                   \
    PE_T_ROW(S, field, name_, INT, int64_t, .fallback = (fallback_), .min = 0, .max = (max_))
#define PE_T_NUMBER(S, field, name_, fallback_, min_, max_)                                                            \
    PE_T_ROW(S, field, name_, REAL, double, .fallback = (fallback_), .min = (min_), .max = (max_))
#define PE_T_FLAG(S, field, name_, fallback_) PE_T_ROW(S, field, name_, BOOL, bool, .fallback = (fallback_), .max = 1)
#define PE_T_CHOICE(S, field, name_, words_) PE_T_ROW(S, field, name_, WORD, int, .words = (words_))
#define PE_T_ANY(S, field, name_) PE_T_ROW(S, field, name_, VALUE, const struct pe_value *, .fallback = 0)

#define PE_T_BASE_MIN 1e-3
#define PE_T_BASE_MAX 1e12
#define PE_T_FACTOR_MIN 1e-6
#define PE_T_FACTOR_MAX 1e6
#define PE_T_LENGTH_MAX 0x1p40

#endif
