/* The relative positions of queries and keys in a block of logits. */
#include "core/attend.h"

bool pe_rows_are_runs(const struct pe_plan *plan)
{
    return plan->seq.piece || (!plan->seq.q->list && !plan->seq.k->list);
}

int64_t pe_rows_rel(const struct pe_rows *rows, size_t row, size_t key)
{
    const struct pe_sequence *seq = &rows->plan->seq;
    if (seq->piece)
        return (int64_t)(rows->j0 + key) - (int64_t)(rows->i0 + row);
    return (int64_t)pe_position_at(seq->k, rows->j0 + key) - (int64_t)pe_position_at(seq->q, rows->i0 + row);
}

bool pe_rows_is_after(const struct pe_rows *rows, size_t row, size_t key)
{
    const struct pe_sequence *seq = &rows->plan->seq;
    if (seq->piece)
        return rows->j0 + key > rows->i0 + row;
    return pe_position_at(seq->k, rows->j0 + key) > pe_position_at(seq->q, rows->i0 + row);
}
