/* Tokens of the two tasks. */
#include "core/training/task.h"

#include "core/request/request.h"

#include <math.h>

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
