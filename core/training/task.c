/* Tokens of the two tasks. */
#include "core/request/request.h"
#include "core/training/training.h"

#include <math.h>
#include <stdlib.h>

enum { V = PE_TRAIN_VOCABULARY, LAG = 8 };
#define SHARE_OF_RULE 0.8

static uint8_t token(uint64_t hash, uint64_t i) { return (uint8_t)(V * pe_seed_uniform(hash, i)); }

void pe_task_init(struct pe_task *task, enum pe_task_kind kind, int64_t seed)
{
    uint64_t hash = pe_seed_hash(seed, "table");
    *task = (struct pe_task){.kind = kind, .seed = seed};
    for (uint64_t i = 0; i < (uint64_t)V * V; i++)
        task->table[i / V][i % V] = token(hash, i);
}

/* What the rule states of the token at this place; false: nothing, so near the beginning. */
static bool says(const struct pe_task *task, const uint8_t *sequence, size_t at, uint8_t *what)
{
    size_t reach = task->kind == PE_TASK_LOCAL ? 2 : LAG;
    if (at < reach)
        return false;
    *what = task->kind == PE_TASK_LOCAL ? task->table[sequence[at - 2]][sequence[at - 1]] : sequence[at - LAG];
    return true;
}

void pe_task_sequences(const struct pe_task *task, enum pe_task_part part, uint64_t first, size_t n_seq, size_t n,
                       uint8_t *tokens)
{
    uint64_t drawn = pe_seed_hash(task->seed, part == PE_TASK_TRAIN ? "train.token" : "eval.token");
    uint64_t coin = pe_seed_hash(task->seed, part == PE_TASK_TRAIN ? "train.coin" : "eval.coin");
    for (size_t s = 0; s < n_seq; s++, tokens += n + 1)
        for (size_t at = 0; at <= n; at++) {
            uint64_t place = (first + s) * (n + 1) + at;
            tokens[at] = token(drawn, place);
            if (pe_seed_uniform(coin, place) < SHARE_OF_RULE)
                says(task, tokens, at, &tokens[at]);
        }
}

double pe_task_bayes(const struct pe_task *task, const uint8_t *sequence, size_t i)
{
    const double others = (1 - SHARE_OF_RULE) / V;
    uint8_t what;
    if (!says(task, sequence, i + 1, &what))
        return log(V);
    return -log(sequence[i + 1] == what ? SHARE_OF_RULE + others : others);
}

/* ---- Evaluation ---- */

/* Evaluating weights, a few sequences at a time. */

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

enum pe_status pe_evaluator_init(struct pe_evaluator *evaluator, size_t eval_len, struct pe_failure *err)
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

bool pe_evaluation_advance(struct pe_evaluation *evaluation, struct pe_evaluator *evaluator,
                           const struct pe_parameters *parameters, const struct pe_task *task)
{
    pe_task_sequences(task, PE_TASK_EVAL, evaluation->n_done, evaluator->n_seq, evaluator->n, evaluator->tokens);
    struct pe_batch batch = {evaluator->n_seq, evaluator->n, evaluator->tokens};
    pe_decoder_forward_f32(evaluator->decoder, &parameters->at, parameters->values, &evaluation->places, &batch,
                           evaluator->losses);
    size_t n = evaluator->n;
    for (size_t s = 0; s < evaluator->n_seq; s++)
        for (size_t i = 0; i < n; i++) {
            double bayes = pe_task_bayes(task, evaluator->tokens + s * (n + 1), i);
            evaluation->floor += bayes / (PE_EVAL_SEQUENCES * (double)n);
            evaluation->excess[i] += ((double)evaluator->losses[s * n + i] - bayes) / PE_EVAL_SEQUENCES;
        }
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
