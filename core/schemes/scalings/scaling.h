/* The rules that stretch a rotary scheme's context: field `scaling`, written as posenc's own or as the rope_scaling or
 * rope_parameters object of a Hugging Face config (names as in transformers' modeling_rope_utils.py).
 *
 * A rule is one file, core/schemes/scalings/NAME.c, with a struct of its own fields, their rows, and one
 * struct pe_scaling_rule; core/schemes/scalings/list.h names it. Catalogue, checks, diagnosis and the reading of
 * pasted configs all read that. Fields that several rules share are in struct pe_scaling and scaling_rows.c. */
#ifndef PE_SCALING_H
#define PE_SCALING_H

#include "core/waves/waves.h"
#include "core/params.h"

/* The place of each rule's own fields; also its word in `type`. */
enum pe_scaling_place {
#define SCALING(name) PE_SCALING_##name,
#include "core/schemes/scalings/list.h"
#undef SCALING
    PE_N_SCALINGS
};

/* Where public libraries disagree on the same configuration. */
enum pe_scaling_convention {
    PE_CONVENTION_TRANSFORMERS,
    PE_CONVENTION_VLLM,
    PE_CONVENTION_TGI,
    PE_CONVENTION_MLX,
    PE_CONVENTION_GGML
};

/* The struct of one rule's own fields, e.g. struct yarn. */
union pe_scaling_own {
    double real;
    void *pointer;
    char bytes[256];
};

/* The object's fields as read, and as the answer shows them. Unset reals are NaN, unset words -1, unset lists and
 * values empty. */
struct pe_scaling {
    int type, rope_type; /* rope_type: Hugging Face's later word for type */
    int convention;
    double factor;
    double max_position_embeddings, original_max_position_embeddings;
    double seq_len, partial_rotary_factor, attention_factor, softmax_scale_factor;
    struct pe_reals divisors; /* [pairs] of convention ggml; n = 0: none */
    /* Accepted from a pasted object. The scheme moves the first three; finetuned has no effect. */
    double rope_theta;
    struct pe_reals mrope_section;
    const struct pe_value *mrope_interleaved, *finetuned;
    union pe_scaling_own own[PE_N_SCALINGS];
};

/* What the object resolves to: the rule, and the values that it computes with. */
struct pe_scaling_resolved {
    const struct pe_scaling_rule *rule;
    int convention;
    double factor; /* given, else a ratio if the rule has one */
    double max_position_embeddings, original_max_position_embeddings;
    double seq_len;               /* if the rule takes it: given, else derived from the largest position */
    double partial_rotary_factor; /* of rules of the whole head; for others the scheme moves it */
    double attention_factor;      /* 1 if the rule has none */
    struct pe_reals divisors;     /* the rule acts on w_c/divisors_c (ggml's frequency factors); n = 0: on w_c */
    double softmax_scale_factor;  /* DeepSeek-style models multiply the softmax scale by this: m(s, mscale_all_dim)^2 */
    union pe_scaling_own own;
};

/* The rule's own struct within its resolved values: struct yarn *y = PE_S_OWN(s, yarn). */
#define PE_S_OWN(s, rule) ((void *)((s)->own.bytes + 0 * sizeof(char[sizeof(struct rule) <= sizeof(s)->own ? 1 : -1])))

/* The values of the scheme that the rules need. */
struct pe_scaling_use {
    double base;
    double dim;      /* rotated channels, the denominator of the frequencies: w_c = base^(-2c/dim) */
    double seq_len;  /* floor(largest position) + 1 of the request */
    double head_dim; /* rules of the whole head */
    bool has_factor; /* the request has its own attention_factor, which takes precedence over the rule's */
    bool float32;    /* arith: float32 - each step as torch does it in f32 */
};

/* ---- Numbers of a formula: double-double, or f32 after each step ---- */

/* One pair of a ladder. In float32 the order of the steps is that of transformers' modeling_rope_utils.py; a Python
 * scalar (a double) is rounded to f32 where it is combined with a tensor. Sums, products and quotients of two f32 that
 * are rounded to double and then to f32 are those of f32 arithmetic. */
struct pe_scaling_pair {
    const struct pe_scaling_resolved *s;
    const struct pe_scaling_use *use;
    struct pe_dd ends[2]; /* the rule's own, set by prepare for all pairs */
    size_t c;
    struct pe_dd w;     /* its frequency without the rule */
    struct pe_dd power; /* float32 only: w is 1/power */
};

static inline struct pe_dd num(const struct pe_scaling_pair *p, struct pe_dd x)
{
    return p->use->float32 ? dd((double)(float)x.hi) : x;
}
static inline struct pe_dd num_sub(const struct pe_scaling_pair *p, struct pe_dd a, struct pe_dd b)
{
    return num(p, dd_sub(num(p, a), num(p, b)));
}
static inline struct pe_dd num_add(const struct pe_scaling_pair *p, struct pe_dd a, struct pe_dd b)
{
    return num(p, dd_add(num(p, a), num(p, b)));
}
static inline struct pe_dd num_mul(const struct pe_scaling_pair *p, struct pe_dd a, struct pe_dd b)
{
    return num(p, dd_mul(num(p, a), num(p, b)));
}
static inline struct pe_dd num_div(const struct pe_scaling_pair *p, struct pe_dd a, struct pe_dd b)
{
    return num(p, dd_div(num(p, a), num(p, b)));
}
static inline bool dd_less(struct pe_dd a, struct pe_dd b) { return a.hi < b.hi || (a.hi == b.hi && a.lo < b.lo); }

/* w/x; float32: 1/(x·power), as torch divides where the formula has base^(2c/dim) rather than the frequency. */
static inline struct pe_dd num_below(const struct pe_scaling_pair *p, double x)
{
    return p->use->float32 ? num_div(p, dd(1), num_mul(p, dd(x), p->power)) : dd_div(p->w, dd(x));
}

/* ---- A rule ---- */

/* A field that it cannot do without. */
struct pe_scaling_need {
    const char *name;
    const char *hint; /* of its own fields: the end of the refusal */
    double usual;     /* its value in public models; 0: there is none */
};

/* Values of one field of a believed object that a diagnosis tries. */
struct pe_scaling_trial {
    const char *name;
    size_t n;
    double values[5];
    bool is_flag;
    bool are_multiples; /* of the believed value; only those of at least 1 are tried */
};

enum pe_scaling_tried { PE_TRIED_NEVER, PE_TRIED_IF_BELIEVED, PE_TRIED };

struct pe_scaling_rule {
    const char *name;
    const struct pe_formula_line *formula;
    const char *alias;      /* another word for it, or NULL */
    bool alias_is_of_tools; /* … which only tools have that name it (`words` in core/tools/lens.h) */
    /* Clauses of the texts of type (what it does; the alias), convention (what differs by library) and
     * attention_factor (its default). */
    const char *about, *alias_about, *convention_about, *attention_about;
    const struct pe_param *fields; /* its own, in its own struct; a default is the value that changes nothing */
    const struct pe_param *pasted; /* those of pasted objects, which other rules ignore; NULL: none */
    struct pe_scaling_need needs[4];
    const char *takes;     /* other common fields, "a|b" */
    const char *object[6]; /* members of its rope object in a config.json, in their usual order, but … */
    const char *attention; /* … those that give attention_factor, "a|b" */
    bool factor_is_ratio;  /* without a factor: max_position_embeddings/original_max_position_embeddings */
    bool has_whole_head;   /* rotates every channel of the head; partial_rotary_factor is its own */
    bool has_one_ladder;   /* its fields fit one list of frequencies only */
    bool in_transformers;  /* transformers' own code has it */
    /* Of a rule that depends on the length of the sequence: the common field up to which length it is one rule, and
     * beyond which another. NULL: the length does not matter. */
    const char *border;
    bool grows; /* … beyond it the rule is another one at every length */
    /* Is a given object of another rule's word meant as this one? NULL: never. */
    bool (*claims)(const struct pe_scaling *given, const struct pe_scaling_rule *said);
    /* Checks rules of two or more fields, and sets what was not given, attention_factor and softmax_scale_factor too;
     * the first is 1 if it is left unset. NULL: nothing to do. */
    enum pe_status (*resolve)(struct pe_scaling_resolved *s, const struct pe_scaling_use *use, struct pe_failure *err);
    /* base' = base · stretch^(dim/(dim - 2)). NULL: the base stays. */
    struct pe_dd (*stretch)(const struct pe_scaling_resolved *s);
    void (*prepare)(struct pe_scaling_pair *p);
    struct pe_dd (*frequency)(const struct pe_scaling_pair *p); /* NULL: w */
    /* The rule in ggml's steps, which begin as those of no rule. NULL: ggml does not have the rule. */
    void (*steps)(const struct pe_scaling_pair *p, struct pe_ggml_steps *g);
    /* In a diagnosis: usual factors, and lengths if it needs one; then these of a believed object. */
    enum pe_scaling_tried tried;
    struct pe_scaling_trial trials[4];
};

extern const struct pe_scaling_rule *const pe_scaling_rules[PE_N_SCALINGS];
static inline const struct pe_scaling_rule *pe_scaling_at(int i) { return pe_scaling_rules[i]; }
const struct pe_scaling_rule *pe_scaling_find(const char *word); /* by name or alias; NULL: there is none */
int pe_scaling_place(const struct pe_scaling_rule *rule);        /* its number among them */
bool pe_scaling_needs(const struct pe_scaling_rule *rule, const char *field);
bool pe_scaling_takes(const struct pe_scaling_rule *rule, const char *field); /* a common field, needed or not */
static inline bool pe_scaling_depends_on_length(const struct pe_scaling_rule *rule) { return rule && rule->border; }

/* Is it another base and nothing else, at every length? Whoever has no word for it can state that base. */
static inline bool pe_scaling_is_base(const struct pe_scaling_rule *rule)
{
    return rule && rule->stretch && !rule->border;
}

/* The rows. Offsets count from a config struct whose first member is the struct pe_scaling. Put together from the
 * rules before main, since C cannot join tables of several files. */
extern struct pe_param pe_scaling_params[];
extern const char *pe_scaling_words[]; /* of type and rope_type: names, then other words; NULL-terminated */

extern unsigned char pe_scaling_of_word[]; /* their places */

/* Of a word of type or rope_type; the first if it is unset. */
static inline const struct pe_scaling_rule *pe_scaling_rule_of_word(int word)
{
    return pe_scaling_at(word == PE_UNSET_WORD ? 0 : pe_scaling_of_word[word]);
}

/* A divisor of so much makes the frequency exactly 0: Gemma 4 has 1e30 for the pairs that do not turn. */
#define PE_SCALING_DIVISOR_STILL 1e20
#define PE_SCALING_FACTOR_MIN 1e-6
#define PE_SCALING_FACTOR_MAX 1e6
#define PE_SCALING_SEQ_LEN_MAX 0x1p53

/* ---- For rules ---- */

/* m(s, k) = 0.1·k·ln s + 1, and 1 for s ≤ 1 (YaRN, equation 22; DeepSeek-V2's yarn_get_mscale). */
static inline struct pe_dd pe_scaling_magnitude(double s, double k)
{
    return s <= 1 ? dd(1) : dd_add(dd(1), dd_div(dd_mul_d(pe_dd_log(dd(s)), k), dd(10)));
}

/* "/scaling/name" */
static inline void pe_scaling_pointer(char pointer[PE_POINTER_MAX], const char *name)
{
    pe_pointer_join(pointer, PE_POINTER_MAX, "/scaling", name);
}

/* base · factor^(dim/(dim - 2)), rounded once: ntk said by the base. */
static inline double pe_scaling_stretched(double base, double factor, double dim)
{
    struct pe_dd power = dd_div(dd(dim), dd(dim - 2));
    return dd_mul_d(pe_dd_exp(dd_mul(power, pe_dd_log(dd(factor)))), base).hi;
}

/* The sequence's length if none was given. Negative positions do not count. */
static inline void pe_scaling_set_seq_len(struct pe_scaling_resolved *s, const struct pe_scaling_use *use)
{
    if (isnan(s->seq_len))
        s->seq_len = fmin(fmax(use->seq_len, 0), PE_SCALING_SEQ_LEN_MAX);
}

/* Refuses fewer than four rotated channels, where a rule has r/(r - 2). */
static inline enum pe_status pe_scaling_check_exponent(const char *name, const struct pe_scaling_use *use,
                                                       struct pe_failure *err)
{
    if (use->dim > 2)
        return PE_OK;
    return pe_fail(err, "/scaling/type",
                   "type is \"%s\", whose exponent r/(r - 2) divides by zero for %.0f rotated channels; needed: at "
                   "least 4",
                   name, use->dim);
}

/* ---- For schemes ---- */

/* The rule that a given object means. */
const struct pe_scaling_rule *pe_scaling_meant(const struct pe_scaling *given);
/* Of an object as it is shown: no rule at all. */
static inline bool pe_scaling_is_default(const struct pe_scaling *shown) { return shown->type == 0; }

/* Checks the rules of two or more fields (pointers "/scaling/…"), and resolves what was not given. */
enum pe_status pe_scaling_resolve(const struct pe_scaling *given, const struct pe_scaling_use *use,
                                  struct pe_scaling_resolved *resolved, struct pe_failure *err);

/* Checks that the fields that the rule needs are given, factor perhaps as a ratio, and that no other would have changed
 * the result. In scaling_rows.c, for pe_scaling_resolve. */
enum pe_status pe_scaling_check_fields(const struct pe_scaling *given, const struct pe_scaling_rule *rule,
                                       double factor, struct pe_failure *err);

/* Writes the values into the given object, which then is the one of the answer: without rope_type, and without fields
 * that have no effect. In scaling_rows.c. */
void pe_scaling_show(const struct pe_scaling_resolved *resolved, struct pe_scaling *object);

/* inv_freq[c] for c < n_pairs under resolved rules, radians per position; error below 2^-96 of the frequency without
 * scaling (arith float32: an f32, each step rounded as torch rounds it). */
void pe_scaling_ladder(const struct pe_scaling_resolved *s, const struct pe_scaling_use *use, size_t n_pairs,
                       struct pe_dd *inv_freq);

/* The steps of each pair under `arith: ggml`, of a rule that has them. power is powf(base, -2/dim), rounded to nearest;
 * the C library's, which ggml calls, may be the float beside it. */
void pe_scaling_steps(const struct pe_scaling_resolved *s, const struct pe_scaling_use *use, size_t n_pairs,
                      struct pe_ggml_steps *steps);

#endif
