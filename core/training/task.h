/* The two tasks: sequences of tokens 0 … 7 drawn from a seed, and the loss of a predictor that knows the rule.
 *
 *     U(name, i) = (k + 1/2) / 2^53, k the upper 53 bits of the seed's generator (core/request/request.h)
 *
 * Each token is ⌊8·U("train.token", place)⌋; where U("train.coin", place) < 0.8, the rule replaces it:
 *     local: t[two before][one before], t[a][b] = ⌊8·U("table", 8a + b)⌋;   lag: the token eight before. */
#ifndef PE_TRAINING_TASK_H
#define PE_TRAINING_TASK_H

#include "core/training/parameters.h"

enum pe_task_kind { PE_TASK_LOCAL, PE_TASK_LAG };
enum pe_task_part { PE_TASK_TRAIN, PE_TASK_EVAL };

struct pe_task {
    enum pe_task_kind kind;
    int64_t seed;
    uint8_t table[PE_TRAIN_VOCABULARY][PE_TRAIN_VOCABULARY]; /* of local */
};

void pe_task_init(struct pe_task *task, enum pe_task_kind kind, int64_t seed);

/* Writes sequences first … first+n_seq-1, each of n + 1 tokens. */
void pe_task_sequences(const struct pe_task *task, enum pe_task_part part, uint64_t first, size_t n_seq, size_t n,
                       uint8_t *tokens);

/* The loss in nats of the best predictor for the token that follows place i of a sequence: -ln 0.825 if the rule gave
 * what it states, -ln 0.025 if not, ln 8 where the rule states nothing yet. */
double pe_task_bayes(const struct pe_task *task, const uint8_t *sequence, size_t i);

#endif
