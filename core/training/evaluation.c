/* Evaluating weights, a few sequences at a time. */
#include "core/training/evaluation.h"

#include <stdlib.h>

/* Rows at a time: some milliseconds, so that a client that disconnects is noticed. */
enum { ROWS = 2048 };

static size_t sequences_at_a_time(size_t eval_len)
{
    size_t n = ROWS / eval_len;
    while (n > 1 && PE_EVAL_SEQUENCES % n)
        n--;
    return n < 1 ? 1 : n < PE_EVAL_SEQUENCES ? n : PE_EVAL_SEQUENCES;
}

double pe_evaluator_bytes(size_t eval_len)
{
    size_t rows = sequences_at_a_time(eval_len) * eval_len;
    return pe_decoder_bytes(rows, eval_len, false) + (double)rows * 8;
}

enum pe_status pe_evaluator_init(struct pe_evaluator *evaluator, size_t eval_len, struct pe_error *err)
{
    size_t n_seq = sequences_at_a_time(eval_len);
    *evaluator = (struct pe_evaluator){.decoder = pe_decoder_new_f32(n_seq * eval_len, eval_len, false),
                                       .n_seq = n_seq,
                                       .n = eval_len,
                                       .tokens = malloc(n_seq * (eval_len + 1)),
                                       .losses = malloc(n_seq * eval_len * sizeof(float))};
    return evaluator->decoder && evaluator->tokens && evaluator->losses ? PE_OK : pe_no_memory(err);
}

void pe_evaluator_drop(struct pe_evaluator *evaluator)
{
    pe_decoder_free_f32(evaluator->decoder);
    free(evaluator->tokens);
    free(evaluator->losses);
    *evaluator = (struct pe_evaluator){0};
}

static void add_losses(struct pe_evaluation *evaluation, const struct pe_evaluator *evaluator,
                       const struct pe_task *task)
{
    size_t n = evaluator->n;
    for (size_t s = 0; s < evaluator->n_seq; s++)
        for (size_t i = 0; i < n; i++) {
            double bayes = pe_task_bayes(task, evaluator->tokens + s * (n + 1), i);
            evaluation->floor += bayes / (PE_EVAL_SEQUENCES * (double)n);
            evaluation->excess[i] += ((double)evaluator->losses[s * n + i] - bayes) / PE_EVAL_SEQUENCES;
        }
}

bool pe_evaluation_advance(struct pe_evaluation *evaluation, struct pe_evaluator *evaluator,
                           const struct pe_parameters *parameters, const struct pe_task *task)
{
    pe_task_sequences(task, PE_TASK_EVAL, evaluation->n_done, evaluator->n_seq, evaluator->n, evaluator->tokens);
    struct pe_batch batch = {evaluator->n_seq, evaluator->n, evaluator->tokens};
    pe_decoder_forward_f32(evaluator->decoder, &parameters->at, parameters->values, &evaluation->places, &batch,
                           evaluator->losses);
    add_losses(evaluation, evaluator, task);
    evaluation->n_done += evaluator->n_seq;
    return evaluation->n_done >= PE_EVAL_SEQUENCES;
}

double pe_evaluation_mean(const struct pe_evaluation *evaluation, size_t first, size_t end)
{
    double sum = 0;
    for (size_t i = first; i < end; i++)
        sum += evaluation->excess[i];
    return sum / (double)(end - first);
}
