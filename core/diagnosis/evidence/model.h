/* Models: an edit as a real plan, and the numbers that it predicts. */
#ifndef PE_MODEL_H
#define PE_MODEL_H

#include "core/diagnosis/evidence/edit.h"

struct pe_diagnosis;

/* Multiply-adds that take a nanosecond, as pe_plan_work counts them. */
enum { PE_WORK_OF_A_NS = 4 };

enum { PE_DIAGNOSED_POSITIONS_MAX = 16384 };

struct pe_model {
    const struct pe_diagnosis *d;
    struct pe_plan *plan; /* PE_ENCODE, f64, the outputs of the kind of evidence */
    struct pe_transforms transforms;
    void *state;             /* of the kind of evidence, freed with free() */
    struct pe_wave *columns; /* the waves of output 0, if it has waves, in quarter turns whatever the arithmetic; else
                                NULL. Owned. */
    double *losses;          /* behind the columns: what right f32 code loses of an angle, by each unit of position */
    size_t n_columns;
    uint64_t scale;  /* of a scheme that scales rows: what decides by how much, as one number; 0: unknown */
    double *kept;    /* pe_model_keep: [n, n_columns] */
    bool *no_memory; /* of the diagnosis: where to say that an allocation failed */
    double *work;    /* of the diagnosis: where predicted numbers count theirs */
    double number_work;
    struct pe_operand
        axes;         /* PE_OF_ROTATED: of the evidence, under the edit's tensor_layout; n = 0: it cannot have it */
    bool is_by_batch; /* PE_OF_ROTATED: each row of the batch has its own positions */
    bool has_shape;   /* of the evidence; a model of other positions has another number of rows, and is no hypothesis */
    bool is_misfit;   /* the belief, where it has not the shape: its numbers are infinities */
};

/* Makes the model of an edit, whose memory the plan borrows until pe_model_free. PE_INVALID: such a request cannot be
 * planned, so it is no hypothesis. */
enum pe_status pe_model_new(struct pe_diagnosis *d, const struct pe_edit *edit, struct pe_model **model,
                            struct pe_error *err);
void pe_model_free(struct pe_model *model);
/* Are its frequencies rounded to 16 bits, and is that what the evidence shows? Then they are judged in these. */
bool pe_model_is_cast(const struct pe_model *model);
/* The same for a fault that measures under the edit so far: false: there is no such model. Without memory the edit has
 * failed. */
bool pe_edit_model(struct pe_diagnosis *d, struct pe_edit *edit, struct pe_model **model);
/* n predicted numbers of a row of tensor t, all transforms applied; and what right f32 code may lose of each, as
 * pe_rounding_tolerance takes it. */
void pe_model_fill(const struct pe_model *model, size_t t, uint64_t row, uint64_t col0, size_t n, double *out);
void pe_model_phases(const struct pe_model *model, size_t t, uint64_t row, uint64_t col0, size_t n, double *out);
/* PE_OF_ROTATED, of a model that has the shape: the number of a row's position among those of the plan; and the row of
 * a head, which counts through the batch where its rows share their positions. Of other evidence: row modulo positions.
 */
uint64_t pe_model_place(const struct pe_model *model, uint64_t row);
uint64_t pe_model_row(const struct pe_model *model, uint64_t head, uint64_t place);
/* Before many rows: keeps the cosines and sines of every position (PE_OF_ROTATED), so that heads share them. Their
 * memory, so many bytes, is admitted by the caller; pe_model_forget frees it. */
double pe_model_kept_bytes(const struct pe_model *model);
enum pe_status pe_model_keep(struct pe_model *model, struct pe_error *err);
void pe_model_forget(struct pe_model *model);
/* Two hypotheses with the same signature are equal at every position. */
uint64_t pe_model_signature(const struct pe_model *model);

#endif
