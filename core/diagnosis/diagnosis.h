/* Diagnosis: the configuration that gives a tensor.
 *
 * The evidence is the tensor sent, the belief is the configuration that the client expects. A hypothesis is the belief
 * with one to three faults. A fault writes into an edit: fields of the request that replace the belief's, and
 * transforms that are applied to the numbers afterwards. A hypothesis is evaluated with a real plan of the edited
 * request (struct pe_model), so no formula is written twice: its numbers are compared with a sample of the evidence.
 * Each wing has its own header; all of them share one struct pe_diagnosis. */
#ifndef PE_DIAGNOSIS_H
#define PE_DIAGNOSIS_H

#include "core/diagnosis/evidence/model.h"
#include "core/diagnosis/faults/faults.h"
#include "core/diagnosis/search/search.h"
#include "core/scheme.h"
#include "core/values.h"

struct pe_measure;
struct pe_parts;
struct pe_naming;
struct pe_answer;

/* One side of q, q_out, k and k_out (diagnosis.c). */
struct pe_diagnosed_side {
    struct pe_diagnosis_request request;
    struct pe_field *fields; /* its tensors and the belief; owned */
    struct pe_diagnosis *diagnosis;
    int64_t offset;                   /* of the first query behind the first key */
    const struct pe_value *candidate; /* that the answer takes for it; NULL: there is none */
};
enum { PE_SIDE_OF_Q, PE_SIDE_OF_K, PE_N_SIDES };

struct pe_diagnosis {
    const struct pe_diagnosis_request *request;
    bool is_probe;                       /* it asks for numbers, and has none to explain */
    struct pe_typed_fields typed_fields; /* of a probe, or beside `values` */
    struct pe_evidence evidence;
    struct pe_belief belief;
    struct pe_sample sample;
    struct pe_measure *measure; /* faults/measure.c: what the numbers show, computed when it is asked for */
    struct pe_naming *naming;   /* search/named.c: the relations that were found */
    struct pe_parts *parts;     /* measure/parts.c: where the belief fits; NULL: not measured */
    struct pe_explanation of_belief;
    struct pe_explanation best[PE_BEST_MAX]; /* sorted, each signature once; the belief (n = 0) may
                                         be among them */
    size_t n_best;
    struct pe_explanation nearest; /* the smallest max_error of all */
    struct pe_explanation
        of_kind[PE_N_FAULT_KINDS]; /* the best single fault of each kind; PE_NOT_JUDGED: none was tried */
    bool used_all;                 /* the search ended because its work was used up */
    bool no_memory;                /* a measurement had none: the search ends */
    uint64_t searched;
    double work; /* multiply-adds so far, as pe_plan_work counts them: of plans, predicted numbers and measurements */
    double bytes;
    struct pe_answer *answer; /* search/search.h: the candidates, which the tree borrows from */
    struct pe_values *values; /* the tree of the answer */
    struct pe_values *before; /* that of the belief, where the tensor was identified without it; NULL: it was not */
    const struct pe_value *stated;        /* that tree when it is finished */
    double *factors;                      /* evidence/waves.c: of rows that were scaled before (xPos); NULL: none is */
    char layer_types[PE_LAYER_TYPES_MAX]; /* faults/layers.c: of the model, "a|b" */
    void *cached;                         /* faults/scalings.c: the alternatives of scalings; freed with free() */
    struct pe_diagnosed_side sides[PE_N_SIDES]; /* of a request with both; nothing else but the tree is used then */
    struct pe_diagnosis *rest;                  /* of the rows that differ, where others are as believed; owned */
    struct pe_diagnosis_request of_rest;
    const unsigned char *as_believed; /* of such a diagnosis: [n_rows], 1: the row is not looked at; borrowed */
};

/* Asks request->admit for more bytes, before they are allocated. */
enum pe_status pe_diagnosis_admit(struct pe_diagnosis *d, double bytes, struct pe_failure *err);

/* search/answer.c: compares d->best with all numbers; states the answer in d->values. */
enum pe_status pe_diagnosis_compare(struct pe_diagnosis *d, struct pe_failure *err);
enum pe_status pe_diagnosis_state(struct pe_diagnosis *d, struct pe_failure *err);
void pe_answer_drop(struct pe_diagnosis *d); /* before pe_values_free */
void pe_measure_drop(struct pe_diagnosis *d);

#endif
