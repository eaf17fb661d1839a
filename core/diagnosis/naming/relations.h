/* The grammar: what a measured list is to the believed one. One row for each relation. */
#ifndef PE_RELATIONS_H
#define PE_RELATIONS_H

#include "core/diagnosis/measure/profile.h"

/* The coordinates of one axis, measured and believed. */
struct pe_lists {
    const double *found, *error, *believed; /* [n] */
    size_t n;
    unsigned axis, n_axes;
    const double *all; /* [n_axes, n]: the believed coordinates of every axis */
    double loss;       /* the error of a usual row */
    double rung;       /* by how much a pair is faster than the next one of its axis; NaN: that is not one number */
};

/* The frequencies of pairs, measured and believed, in radians by unit of position. */
struct pe_ladder {
    const struct pe_diagnosis *d;
    const struct pe_edit *edit; /* what is believed of the fields */
    size_t n;
    double *found, *error, *believed; /* [n]; an error is infinite where nothing shows */
    double *plain, *exponent;         /* [n]: without the believed scaling they are top·base^(-exponent) */
    double base, top, width;          /* width: channels of one ladder */
    double fitted, fit_error;         /* the base that is nearest under the believed scaling; relatively; NaN: none */
    double plain_fitted, plain_error; /* … without it */
    double length;                    /* of the waves; NaN: not known */
};

/* What a relation has found. */
struct pe_related {
    double found, believed; /* the two values of its sentence; NaN: those of the field that it sets */
    size_t row;             /* of a list: the first row that differs */
    unsigned numbers;       /* that were taken from the tensor */
};

/* Fields that give a ladder. */
enum { PE_SPELLED_MAX = 6, PE_SPELLINGS_MAX = 24, PE_STEPS_MAX = 2 };
struct pe_spelling {
    double base;                             /* NaN: as believed */
    struct pe_field field;                   /* another one; its name may be NULL */
    const char *type;                        /* of the scaling; "": none; NULL: as believed */
    struct pe_field members[PE_SPELLED_MAX]; /* of the scaling, where they are not as believed */
    unsigned n_members;
    struct pe_related related;
};

struct pe_spellings {
    struct pe_spelling list[PE_SPELLINGS_MAX];
    size_t n;
};

struct pe_relation {
    const struct pe_fault *fault; /* its code; see PE_OF_ROLE */
    unsigned cost;
    /* Writes the list that it predicts, [n]. false: it does not hold, within the errors. NULL: of frequencies. */
    bool (*test)(const struct pe_lists *l, double *predicted, struct pe_related *out);
    const char *text; /* what the positions are, with {found}, {believed} and {row}; NULL: the fault's own */
};

/* A fault whose row is in another file: by its role, or (without a code) by its transform. */
#define PE_OF_ROLE(role_) (&(const struct pe_fault){.role = PE_ROLE_##role_})

/* A relation of frequencies: fields that may give them, or a list. */
struct pe_frequency_relation {
    struct pe_relation said;
    void (*spell)(const struct pe_ladder *l, struct pe_spellings *out); /* adds them, the plainest first; or NULL: */
    bool (*list)(const struct pe_ladder *l, double *predicted, struct pe_related *out); /* writes `inv_freq`, [n] */
    void (*first)(const struct pe_ladder *l, struct pe_spellings *out); /* a step before another one; NULL: none */
};

/* coordinates.c: the relations of coordinates, the plainest first; the last one always holds. */
extern const struct pe_relation pe_coordinate_relations[];
/* The list that follows no rule, which always holds. */
const struct pe_relation *pe_listed(void);
/* The first that holds; NULL: the lists are equal. Of one axis of several none that is of all. */
const struct pe_relation *pe_relate(const struct pe_lists *l, double *predicted, struct pe_related *out);
/* Is it of all axes, and of some only another relation? */
bool pe_relation_is_of_all(const struct pe_relation *relation);
/* Is it one factor, which may be a last step of coordinates? */
bool pe_relation_is_factor(const struct pe_relation *relation);
/* Are the lists equal, within the errors? */
bool pe_lists_agree(const struct pe_lists *l);
/* The plainest number within a tolerance of x: an integer, a small fraction, the shortest decimal. */
double pe_plain_number(double x, double tolerance);

/* frequencies.c: the relations of frequencies, the plainest first. */
extern const struct pe_frequency_relation pe_frequency_relations[];
extern const size_t pe_n_frequency_relations;
/* How well pair c is known, relatively. */
double pe_ladder_error(const struct pe_ladder *l, size_t c);
bool pe_is_base(double x);
/* One step of least squares in the logarithm of the base, from frequencies w that it gives, by the pairs whose
 * exponents are at most so large. Returns its relative error; infinite: nothing shows it. */
double pe_ladder_base(const struct pe_ladder *l, const double *w, double most, double *base);
/* Are the frequencies w [n] those that were measured, within the errors? */
bool pe_ladder_holds(const struct pe_ladder *l, const double *w);
/* Adds fields that may give the ladder: those believed, to be changed. NULL: there is no room. */
struct pe_spelling *pe_spell(struct pe_spellings *out, unsigned numbers);
void pe_spell_member(struct pe_spelling *s, const char *name, double value);
/* scalings.c: the believed scaling with other parameters; one of another type; the first pairs of a shorter ladder. */
void pe_spell_parameters(const struct pe_ladder *l, struct pe_spellings *out);
void pe_spell_other_types(const struct pe_ladder *l, struct pe_spellings *out);

/* A relation that was found, as a part of a hypothesis: its choice is PE_NAMED + its number. */
enum { PE_NAMED = 0xff00, PE_NAMED_MAX = 64 };
struct pe_named;
typedef bool (*pe_apply)(struct pe_diagnosis *d, const struct pe_named *named, struct pe_edit *edit);
struct pe_named {
    const struct pe_relation *relation;
    struct pe_related related;
    unsigned axes; /* bits of the axes it is of */
    unsigned n_axes;
    double *predicted;       /* [n_axes, n]; owned */
    const char *word;        /* the believed value, where it is one; borrowed */
    const char *field;       /* of the request, that becomes the number found; or … */
    pe_apply apply;          /* … writes it into an edit; both NULL: its predicted list is of coordinates */
    bool is_ladder, is_list; /* of frequencies; … a list of them */
    size_t n_pairs;
    struct pe_spelling spelling; /* of frequencies */
    double attention_factor;     /* beside a list, which has no scaling that would give it */
};
enum { PE_UNEVEN_MAX = 32 };
struct pe_naming {
    struct pe_named list[PE_NAMED_MAX];
    size_t n;
    uint64_t uneven[PE_UNEVEN_MAX]; /* readings at positions with which no frequencies turn evenly, the oldest go */
    size_t n_uneven;
};
/* d's own, made at the first call; NULL: no memory. */
struct pe_naming *pe_naming_of(struct pe_diagnosis *d);

struct pe_hypothesis;

/* A part of a hypothesis that was measured: an alternative of a fault, or a relation. */
struct pe_part {
    const struct pe_fault *fault;
    uint16_t choice;
};
enum { PE_PARTS_MAX = 8 };

/* named.c. The relation that part i of a hypothesis is; NULL: it is a fault that was tried. */
const struct pe_named *pe_named_of(const struct pe_diagnosis *d, const struct pe_hypothesis *h, unsigned i);
/* Writes it into an edit. */
bool pe_spelling_apply(const struct pe_diagnosis *d, const struct pe_spelling *s, struct pe_edit *edit);
bool pe_named_apply(struct pe_diagnosis *d, const struct pe_named *named, struct pe_edit *edit);
void pe_naming_drop(struct pe_diagnosis *d);
/* Adds a relation of one number to the parts, [*n]; NULL: there is no room. Its field, or apply, is then set. */
struct pe_named *pe_part_add(struct pe_diagnosis *d, const struct pe_relation *relation, double found, double believed,
                             struct pe_part *parts, size_t *n);

/* What a kind of evidence that is no rotation shows under an edit, beside what its plan gives: writes the parts of one
 * hypothesis, [PE_PARTS_MAX], and returns their number; 0: as believed, or nothing that has a name. is_first: nothing
 * else is wrong yet, so that what takes long is measured too. */
bool pe_has_no_waves(const struct pe_diagnosis *d);   /* no_waves.c: it has such relations */
bool pe_is_by_distance(const struct pe_diagnosis *d); /* … and is a bias, or buckets */
size_t pe_relate_without_waves(struct pe_diagnosis *d, struct pe_edit *edit, bool is_first, struct pe_part *parts);
size_t pe_relate_scores(struct pe_diagnosis *d, struct pe_edit *edit, bool is_first, struct pe_part *parts);
size_t pe_relate_bias(struct pe_diagnosis *d, struct pe_edit *edit, bool is_first, struct pe_part *parts);
size_t pe_relate_table(struct pe_diagnosis *d, struct pe_edit *edit, bool is_first, struct pe_part *parts);
/* slopes.c: the same of ALiBi's slopes. */
size_t pe_relate_slopes(struct pe_diagnosis *d, const struct pe_edit *edit, struct pe_part *parts);
size_t pe_relate_window(struct pe_diagnosis *d, struct pe_edit *edit, struct pe_part *parts); /* windows.c */
/* buckets.c: the same of T5's buckets, of lines that are measured and not as believed. */
struct pe_lines;
size_t pe_relate_buckets(struct pe_diagnosis *d, const struct pe_edit *edit, const struct pe_lines *lines,
                         struct pe_part *parts);

/* words.c: its sentence and its values as members of a finding. */
void pe_named_put(struct pe_diagnosis *d, const struct pe_named *named, struct pe_node *node);
/* Two scalings in a sentence; false: what was found is no object of a scaling. */
bool pe_scalings_put(const struct pe_diagnosis *d, struct pe_node *node, const struct pe_value *found,
                     const struct pe_value *believed);

#endif
