/* DeBERTa in attention: what the terms c2p and p2c add to the scores, from the tables of each head. */
#include "core/schemes/relative/relative.h"

/* Numbers of one head's table. */
static size_t table_numbers(const struct pe_plan *plan)
{
    const struct pe_deberta *c = plan->config;
    return 2 * (size_t)((const struct pe_deberta_tables *)plan->tables)->span * (size_t)c->relative.head_dim;
}

static size_t n_rows_of(const struct pe_plan *plan)
{
    return 2 * (size_t)((const struct pe_deberta_tables *)plan->tables)->span;
}

/* The tables of a head: the table of c2p, the table of p2c, and the products of the keys with the latter. */
static size_t head_numbers(const struct pe_plan *plan)
{
    const struct pe_deberta *c = plan->config;
    return pe_relative_table_size(n_rows_of(plan), (size_t)c->relative.head_dim);
}

static double softmax_scale(const struct pe_plan *plan, size_t head_dim)
{
    const struct pe_deberta_tables *t = plan->tables;
    return 1 / sqrt((double)head_dim * (1 + t->has[PE_C2P] + t->has[PE_P2C]));
}

static double norm_of(const struct pe_plan *plan, enum pe_deberta_term term)
{
    const struct pe_deberta *c = plan->config;
    const struct pe_deberta_tables *t = plan->tables;
    size_t n = (size_t)c->relative.num_heads * n_rows_of(plan);
    return t->has[term] ? pe_relative_norm(t->table[term], n, (size_t)c->relative.head_dim) : 0;
}

static double largest(const struct pe_plan *plan, double q_norm, double k_norm)
{
    return q_norm * norm_of(plan, PE_C2P) + k_norm * norm_of(plan, PE_P2C);
}

static struct pe_attend_room room(const struct pe_plan *plan, size_t n_rows)
{
    size_t meeting = pe_relative_meeting_size(plan, n_rows_of(plan));
    return (struct pe_attend_room){.tables = 2 * head_numbers(plan) + meeting,
                                   .scratch = pe_relative_scratch(plan, n_rows, n_rows_of(plan))};
}

static double work(const struct pe_plan *plan)
{
    const struct pe_deberta *c = plan->config;
    const struct pe_deberta_tables *t = plan->tables;
    double d = (double)c->relative.head_dim;
    return t->has[PE_C2P] * d * (double)n_rows_of(plan) / (double)plan->seq.k->n + t->has[PE_P2C] * 2 * d;
}

static const void *open_head(const struct pe_plan *plan, const struct pe_arithmetic *a, size_t head, void *tables)
{
    const struct pe_deberta_tables *t = plan->tables;
    const struct pe_deberta *c = plan->config;
    for (enum pe_deberta_term term = PE_C2P; term <= PE_P2C; term++)
        if (t->has[term])
            pe_relative_table_set(a, t->table[term] + head * table_numbers(plan), n_rows_of(plan),
                                  (size_t)c->relative.head_dim, pe_numbers_at(a, tables, term * head_numbers(plan)));
    return tables;
}

static enum pe_status open(const struct pe_plan *plan, const struct pe_arithmetic *a, struct pe_failure *err)
{
    (void)a;
    return pe_relative_index_open(plan, pe_deberta_row, &((struct pe_deberta_tables *)plan->tables)->index, err);
}

static void open_keys(const struct pe_rows *keys, void *tables)
{
    const struct pe_plan *plan = keys->plan;
    size_t n = head_numbers(plan);
    if (((const struct pe_deberta_tables *)plan->tables)->has[PE_P2C] &&
        pe_relative_meeting_size(plan, n_rows_of(plan)))
        pe_relative_meet(keys, pe_numbers_at(keys->a, keys->tables, PE_P2C * n), n_rows_of(plan),
                         pe_numbers_at(keys->a, tables, 2 * n));
}

static void add_term(const struct pe_rows *rows, enum pe_deberta_term term, double factor)
{
    const struct pe_deberta_tables *t = rows->plan->tables;
    size_t n = head_numbers(rows->plan), n_table = n_rows_of(rows->plan);
    const void *table = pe_numbers_at(rows->a, rows->tables, term * n);
    if (term == PE_C2P)
        pe_relative_add_by_query(rows, &t->index, pe_relative_panels(rows->a, table, n_table, rows->head_dim), n_table,
                                 factor);
    else
        pe_relative_add_by_key(rows, &t->index, table, pe_numbers_at(rows->a, rows->tables, 2 * n), n_table, factor);
}

static bool has_term(const struct pe_plan *plan, size_t term)
{
    return ((const struct pe_deberta_tables *)plan->tables)->has[term];
}

static void write_term(const struct pe_rows *rows, size_t term)
{
    for (size_t i = 0; i < rows->n_rows; i++)
        pe_numbers_set(rows->a, pe_numbers_at(rows->a, rows->logits, i * rows->stride), 0, rows->n_keys, 0);
    add_term(rows, (enum pe_deberta_term)term, 1);
}

static const char *const parts[] = {"c2c", [1 + PE_C2P] = "c2p", [1 + PE_P2C] = "p2c", NULL};

static bool has_part(const struct pe_plan *plan, size_t part) { return part == 0 || has_term(plan, part - 1); }

static void add_part(const struct pe_rows *rows, size_t part)
{
    add_term(rows, (enum pe_deberta_term)(part - 1), rows->scale);
}

const struct pe_attend pe_deberta_attend = {
    .softmax_scale = softmax_scale,
    .uses_projections = true,
    .largest = largest,
    .room = room,
    .work = work,
    .open = open,
    .open_head = open_head,
    .open_keys = open_keys,
    .add_scores = pe_relative_add_parts,
    .parts = parts,
    .has_part = has_part,
    .add_part = add_part,
    .terms = pe_deberta_term_names,
    .has_term = has_term,
    .write_term = write_term,
};
