/* Models: an edit as a real plan, and the numbers that it predicts. */
#ifndef PE_MODEL_H
#define PE_MODEL_H

#include "core/diagnosis/model/edit.h"

struct pe_diagnosis;

/* Multiply-adds that take a nanosecond, as pe_plan_work counts them. */
enum { PE_WORK_OF_A_NS = 4 };

enum { PE_DIAGNOSED_POSITIONS_MAX = 16384 };

struct pe_model {
    const struct pe_diagnosis *d;
    struct pe_plan *plan; /* PE_ENCODE, f64, the outputs of the kind of evidence */
    struct pe_transforms transforms;
    void *state;             /* of the kind of evidence, freed with free() */
    struct pe_wave *columns; /* the waves of output 0, if it has waves; else NULL. Owned. */
    size_t n_columns;
    double *kept;    /* pe_model_keep: [n, n_columns] */
    bool *no_memory; /* of the diagnosis: where to say that an allocation failed */
    double *work;    /* of the diagnosis: where predicted numbers count theirs */
    double number_work;
    bool has_shape; /* of the evidence; a model of other positions has another number of rows, and is no hypothesis */
    bool is_misfit; /* the belief, where it has not the shape: its numbers are infinities */
};

/* Makes the model of an edit, whose memory the plan borrows until pe_model_free. PE_INVALID: such a request cannot be
 * planned, so it is no hypothesis. */
enum pe_status pe_model_new(struct pe_diagnosis *d, const struct pe_edit *edit, struct pe_model **model,
                            struct pe_error *err);
void pe_model_free(struct pe_model *model);
/* The same for a fault that measures under the edit so far: false: there is no such model. Without memory the edit has
 * failed. */
bool pe_edit_model(struct pe_diagnosis *d, struct pe_edit *edit, struct pe_model **model);
/* n predicted numbers of a row of tensor t, all transforms applied; and |position|·frequency of each. */
void pe_model_fill(const struct pe_model *model, size_t t, uint64_t row, uint64_t col0, size_t n, double *out);
void pe_model_phases(const struct pe_model *model, size_t t, uint64_t row, uint64_t col0, size_t n, double *out);
/* Before many rows: keeps the cosines and sines of every position (PE_OF_ROTATED), so that heads share them. Their
 * memory, so many bytes, is admitted by the caller; pe_model_forget frees it. */
double pe_model_kept_bytes(const struct pe_model *model);
enum pe_status pe_model_keep(struct pe_model *model, struct pe_error *err);
void pe_model_forget(struct pe_model *model);
/* Two hypotheses with the same signature are equal at every position. */
uint64_t pe_model_signature(const struct pe_model *model);

#endif
