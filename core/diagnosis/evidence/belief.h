/* The belief: the configuration that the client expects. */
#ifndef PE_BELIEF_H
#define PE_BELIEF_H

#include "core/scheme.h"

struct pe_model;
struct pe_diagnosis;

/* The belief as fields of a request, flat (a model's name is replaced by its fields). */
struct pe_belief {
    bool is_given;                        /* the request states more than the tensors and where they are */
    struct pe_field asked[PE_FIELDS_MAX]; /* as given, without the tensors; then the sizes that tensors fix */
    size_t n_asked;
    size_t n_stated; /* of the inheritance: fields that the request or its model states; sizes of tensors follow */
    struct pe_inheritance *inheritance;    /* the same merged with the model it names */
    struct pe_field fields[PE_FIELDS_MAX]; /* resolved parameters, the sequence and the weights as given */
    size_t n_fields;
    struct pe_plan *plan;             /* as given: owns what the resolved fields point to */
    struct pe_model *model;           /* of no edit */
    uint64_t n;                       /* positions (of keys) */
    const char *tensor_layout;        /* as given, else NULL */
    bool is_len_fixed;                /* len follows from the axes, so another tensor_layout has another */
    const struct pe_value *positions; /* as given for each row of the batch, [batch, n]; NULL: they are common */
    bool is_misfit;                   /* its plan has not the shape of the evidence: it explains nothing as it is */
};

/* pe_inherit_blame for an error of any step. */
void pe_belief_blame(const struct pe_diagnosis *d, struct pe_error *err);

/* A size that a tensor fixes: sets the field where the belief does not give it; else both must agree (422 naming both).
 * In read() of a kind of evidence, before the belief is planned. */
enum pe_status pe_belief_fix(struct pe_diagnosis *d, const char *name, uint64_t size, const char *tensor,
                             struct pe_error *err);
/* The field as given (under any alias), also by the model that the belief names; NULL if it is not. */
const struct pe_value *pe_belief_given(const struct pe_diagnosis *d, const char *name);
/* The same without the sizes that tensors fix. */
bool pe_belief_states(const struct pe_diagnosis *d, const char *name);
/* In read(): a field that is not given. */
void pe_belief_set(struct pe_diagnosis *d, const char *name, struct pe_value value);
/* The same, also where it is given. */
void pe_belief_replace(struct pe_diagnosis *d, const char *name, struct pe_value value);
bool pe_belief_has_sequence(const struct pe_diagnosis *d);
bool pe_belief_is_sequence(const char *name); /* a field that gives positions, not a rule for counting them */

/* In read(): the plan of the belief with no size but a missing length, which is n; NULL if there is none. */
struct pe_plan *pe_belief_try(struct pe_diagnosis *d, uint64_t n);

enum pe_status pe_belief_open(struct pe_diagnosis *d, struct pe_error *err); /* fields, without a plan */
enum pe_status pe_belief_plan(struct pe_diagnosis *d, struct pe_error *err); /* d->belief.model */
void pe_belief_drop(struct pe_diagnosis *d);

#endif
