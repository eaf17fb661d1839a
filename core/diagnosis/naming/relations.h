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

/* What a relation has found. */
struct pe_related {
    double found, believed; /* the two values of its sentence */
    size_t row;             /* of a list: the first row that differs */
    unsigned numbers;       /* that were taken from the tensor */
};

struct pe_relation {
    const struct pe_fault *fault; /* its code */
    unsigned cost;
    /* Writes the list that it predicts, [n]. false: it does not hold, within the errors. */
    bool (*test)(const struct pe_lists *l, double *predicted, struct pe_related *out);
    const char *text; /* what the positions are, with {found}, {believed} and {row} */
};

/* coordinates.c: the relations of coordinates, the plainest first; the last one always holds. */
extern const struct pe_relation pe_coordinate_relations[];
/* The list that follows no rule, which always holds. */
const struct pe_relation *pe_listed(void);
/* The first that holds; NULL: the lists are equal. */
const struct pe_relation *pe_relate(const struct pe_lists *l, double *predicted, struct pe_related *out);

/* A relation that was found, as a part of a hypothesis: its choice is PE_NAMED + its number. */
enum { PE_NAMED = 0xff00, PE_NAMED_MAX = 64 };
struct pe_named;
typedef bool (*pe_apply)(struct pe_diagnosis *d, const struct pe_named *named, struct pe_edit *edit);
struct pe_named {
    const struct pe_relation *relation;
    struct pe_related related;
    unsigned axes; /* bits of the axes it is of */
    unsigned n_axes;
    double *predicted; /* [n_axes, n]; owned */
    const char *word;  /* the believed value, where it is one; borrowed */
    const char *field; /* of the request, that becomes the number found; or … */
    pe_apply apply;    /* … writes it into an edit; both NULL: its predicted list is of coordinates */
};
struct pe_naming {
    struct pe_named list[PE_NAMED_MAX];
    size_t n;
};

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
bool pe_named_apply(struct pe_diagnosis *d, const struct pe_named *named, struct pe_edit *edit);
void pe_naming_drop(struct pe_diagnosis *d);
/* Adds a relation of one number to the parts, [*n]; NULL: there is no room. Its field, or apply, is then set. */
struct pe_named *pe_part_add(struct pe_diagnosis *d, const struct pe_relation *relation, double found, double believed,
                             struct pe_part *parts, size_t *n);

/* What a kind of evidence that is no rotation shows under an edit, beside what its plan gives: writes the parts of one
 * hypothesis, [PE_PARTS_MAX], and returns their number; 0: as believed, or nothing that has a name. is_first: nothing
 * else is wrong yet, so that what takes long is measured too. */
bool pe_has_no_waves(const struct pe_diagnosis *d); /* no_waves.c: it has such relations */
size_t pe_relate_without_waves(struct pe_diagnosis *d, struct pe_edit *edit, bool is_first, struct pe_part *parts);
size_t pe_relate_scores(struct pe_diagnosis *d, struct pe_edit *edit, bool is_first, struct pe_part *parts);
size_t pe_relate_bias(struct pe_diagnosis *d, struct pe_edit *edit, bool is_first, struct pe_part *parts);
size_t pe_relate_table(struct pe_diagnosis *d, struct pe_edit *edit, bool is_first, struct pe_part *parts);
size_t pe_relate_window(struct pe_diagnosis *d, struct pe_edit *edit, struct pe_part *parts); /* windows.c */
/* buckets.c: the same of T5's buckets, of lines that are measured and not as believed. */
struct pe_lines;
size_t pe_relate_buckets(struct pe_diagnosis *d, const struct pe_edit *edit, const struct pe_lines *lines,
                         struct pe_part *parts);

/* words.c: its sentence and its values as members of a finding. */
void pe_named_put(struct pe_diagnosis *d, const struct pe_named *named, struct pe_node *node);

#endif
