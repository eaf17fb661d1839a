/* The evaluation of one set of weights at positions 0 … eval_len - 1: excess[i] is the mean over all sequences of the
 * loss of token i + 1 beyond that of the best predictor. */
#ifndef PE_TRAINING_EVALUATION_H
#define PE_TRAINING_EVALUATION_H

#include "core/training/decoder.h"
#include "core/training/task.h"

enum { PE_EVAL_SEQUENCES = 64 };

struct pe_evaluation {
    size_t run;       /* whose weights */
    int64_t override; /* number in the configuration's `eval`; -1: the configuration itself */
    struct pe_places places;
    size_t n_done;  /* sequences */
    double *excess; /* [eval_len] */
    double floor;   /* mean loss of the best predictor over all tokens */
};

/* What all evaluations share, one after the other. */
struct pe_evaluator {
    struct pe_decoder_f32 *decoder;
    size_t n_seq, n; /* sequences at a time; eval_len */
    uint8_t *tokens;
    float *losses;
};

enum pe_status pe_evaluator_init(struct pe_evaluator *evaluator, size_t eval_len, struct pe_error *err);
void pe_evaluator_drop(struct pe_evaluator *evaluator);
double pe_evaluator_bytes(size_t eval_len);

/* Evaluates the next few sequences. True: the last ones are done. */
bool pe_evaluation_advance(struct pe_evaluation *evaluation, struct pe_evaluator *evaluator,
                           const struct pe_parameters *parameters, const struct pe_task *task);

/* The mean excess of places first … end-1. */
double pe_evaluation_mean(const struct pe_evaluation *evaluation, size_t first, size_t end);

#endif
