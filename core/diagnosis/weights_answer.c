/* The answer about two checkpoints: what the best reading means. */
#include "core/diagnosis/weights.h"
#include "core/numeric/numeric.h"

#include <math.h>
#include <string.h>

enum { ORDER_MAX = 64 };

static const char *heads_field(const struct pe_matrices *w)
{
    return pe_matrices_has(w->fields.num_kv_heads) ? "/num_kv_heads"
           : pe_matrices_has(w->fields.num_heads)  ? "/num_heads"
                                                   : "/head_dim";
}

static struct pe_node *begin_finding(struct pe_node *list, const struct pe_fault *fault, const char *pointer)
{
    struct pe_node *node = pe_put_object(list, NULL);
    pe_put_string(node, "code", fault->info.code);
    pe_put_string(node, "pointer", pointer);
    return node;
}

static void end_finding(const struct pe_matrices *w, struct pe_node *node, const char *meaning, const char *sentence)
{
    if (!pe_node_find(node, "found") && !pe_node_child(node, "found"))
        pe_put_null(node, "found");
    if (!pe_node_find(node, "believed"))
        pe_put_null(node, "believed");
    pe_put_string_or_null(node, "meaning", meaning);
    pe_put_detail(node, w->d->request->lang, sentence);
}

/* Which expected row each found one is, the same place first, then the first that is free: at most n of them. */
static size_t put_order(const struct pe_matrices *w, int64_t *order, size_t most)
{
    uint64_t n = w->believed.n_rows;
    size_t listed = n < most ? (size_t)n : most;
    uint32_t *next = w->place, *chain = w->table; /* of each class the first expected row, of each row the next */
    memset(next, 0xff, n * sizeof *next);
    for (uint64_t i = n; i-- > 0;)
        if (w->of_found[i] != w->expected[i]) {
            chain[i] = next[w->expected[i]];
            next[w->expected[i]] = (uint32_t)i;
        }
    for (uint64_t i = 0; i < listed; i++) {
        uint32_t class = w->of_found[i];
        order[i] = class == w->expected[i] ? (int64_t)i : (int64_t)next[class];
        if (class != w->expected[i])
            next[class] = chain[next[class]];
    }
    return listed;
}

static void put_conversion(struct pe_node *node, const struct pe_row_moves *m)
{
    pe_put_string(node, "conversion", pe_matrices_conversions[m->conversion]);
    pe_put_integer(node, "heads", (int64_t)m->heads.n);
    pe_put_integer(node, "times", m->times);
}

static const uint32_t *from_of(const struct pe_matrices *w, const struct pe_row_reading *r)
{
    return r->replaces ? w->of_believed : w->expected;
}

static void put_rows_finding(const struct pe_matrices *w, const struct pe_row_reading *r, struct pe_node *list)
{
    const struct pe_fault *fault = r->of_rows;
    bool are_heads = fault == &pe_fault_rows_heads_other;
    if (!fault)
        return;
    struct pe_node *node = begin_finding(list, fault,
                                         are_heads                       ? heads_field(w)
                                         : fault == &pe_fault_rows_other ? "/w_found"
                                                                         : "/conversion");
    struct pe_node *found = pe_put_object(node, "found");
    if (are_heads) {
        pe_put_integer(found, "heads", (int64_t)r->moves.heads.n);
        pe_put_integer(node, "believed", (int64_t)w->heads.n);
    } else if (fault == &pe_fault_rows_other) {
        int64_t order[ORDER_MAX];
        pe_put_integers(found, "rows", order, put_order(w, order, ORDER_MAX));
    } else {
        put_conversion(found, &r->moves);
        pe_put_string(node, "believed", pe_matrices_conversions[w->fields.conversion]);
    }
    end_finding(w, node, NULL, fault->info.details[0]);
}

static void put_order_finding(const struct pe_matrices *w, const struct pe_row_reading *r, struct pe_node *list)
{
    int64_t *order = pe_values_room(w->d->values, w->heads.n * sizeof *order);
    if (!r->are_heads_moved || !order)
        return;
    struct pe_node *node = begin_finding(list, &pe_fault_heads_order, "/w_found");
    pe_matrices_are_heads_moved(w, from_of(w, r), &r->moves, order);
    pe_put_integers(pe_put_object(node, "found"), "order", order, (size_t)w->heads.n);
    end_finding(w, node, NULL, pe_fault_heads_order.info.details[0]);
}

static void put_blocks(struct pe_node *node, const struct pe_row_reading *r)
{
    pe_put_integer(node, "first", (int64_t)r->first);
    pe_put_integer(node, "block", (int64_t)r->block);
    pe_put_integer(node, "every", (int64_t)r->every);
}

static void put_fused_finding(const struct pe_matrices *w, const struct pe_row_reading *r, struct pe_node *list)
{
    if (!r->block)
        return;
    struct pe_node *node = begin_finding(list, &pe_fault_rows_fused, "/w_found");
    put_blocks(pe_put_object(node, "found"), r);
    end_finding(w, node, NULL, pe_fault_rows_fused.info.details[0]);
}

static const char *meaning_of(const struct pe_matrices *w, double factor)
{
    bool is_narrow = w->dtype == PE_BF16 || w->dtype == PE_F16;
    return pe_factor_name(fabs(factor), (double)w->heads.rows, (double)NAN, is_narrow ? 1e-3 : 1e-5);
}

static void put_number_findings(const struct pe_matrices *w, const struct pe_row_reading *r, struct pe_node *list)
{
    if (r->factor < 0)
        end_finding(w, begin_finding(list, &pe_fault_negated, "/w_found"), NULL, pe_fault_negated.info.details[0]);
    if (r->is_turned)
        end_finding(w, begin_finding(list, &pe_fault_transposed, "/w_found"), NULL,
                    pe_fault_transposed.info.details[0]);
    if (fabs(r->factor) == 1)
        return;
    const char *meaning = meaning_of(w, r->factor);
    struct pe_node *node = begin_finding(list, &pe_fault_scaled, "/w_found");
    pe_put_real(node, "found", fabs(r->factor));
    end_finding(w, node, meaning, pe_fault_scaled.info.details[meaning != NULL]);
}

/* In the order of the table of faults. */
static void put_findings(const struct pe_matrices *w, const struct pe_row_readings *r, uint64_t missing,
                         struct pe_node *root)
{
    struct pe_node *list = pe_put_list(root, "findings");
    const struct pe_row_reading *one = r->best;
    if (r->n == 0) {
        enum { OF_ROWS = 3 };
        struct pe_node *node = begin_finding(list, &pe_fault_unexplained, "/w_found");
        pe_put_integer(pe_put_object(node, "found"), "missing", (int64_t)missing);
        end_finding(w, node, NULL, pe_fault_unexplained.info.details[OF_ROWS]);
        return;
    }
    put_rows_finding(w, one, list);
    put_order_finding(w, one, list);
    put_fused_finding(w, one, list);
    put_number_findings(w, one, list);
    if (pe_matrices_is_narrowed(w)) {
        struct pe_node *node = begin_finding(list, &pe_fault_table_dtype, "/w_found");
        pe_put_string(node, "found", pe_dtype_name(w->found.least));
        end_finding(w, node, NULL, pe_fault_table_dtype.info.details[0]);
    } else if (one->cost == 0) {
        end_finding(w, begin_finding(list, &pe_fault_as_believed, ""), NULL, pe_fault_as_believed.info.details[0]);
    }
}

static struct pe_node *put_transform(struct pe_node *list, const char *name)
{
    struct pe_node *node = pe_put_object(list, NULL);
    pe_put_string(node, "name", name);
    return node;
}

/* What is done to w_believed after the believed conversion, or, of rows_heads_other, in its place. */
static void put_transforms(const struct pe_matrices *w, const struct pe_row_reading *r, struct pe_node *node)
{
    struct pe_node *list = pe_put_list(node, "transforms");
    if (r->moves.conversion)
        put_conversion(put_transform(list, "rows"), &r->moves);
    if (r->of_rows == &pe_fault_rows_other) {
        int64_t *order = pe_values_room(w->d->values, w->believed.n_rows * sizeof *order);
        if (order)
            pe_put_integers(put_transform(list, "rows"), "order", order,
                            put_order(w, order, (size_t)w->believed.n_rows));
    }
    if (r->are_heads_moved) {
        int64_t *order = pe_values_room(w->d->values, w->heads.n * sizeof *order);
        if (order && pe_matrices_are_heads_moved(w, from_of(w, r), &r->moves, order))
            pe_put_integers(put_transform(list, "heads"), "order", order, (size_t)w->heads.n);
    }
    if (r->block)
        put_blocks(put_transform(list, "fused"), r);
    if (r->factor < 0)
        put_transform(list, "negated");
    if (fabs(r->factor) != 1)
        pe_put_real(put_transform(list, "scaled"), "factor", fabs(r->factor));
    if (r->is_turned)
        put_transform(list, "transposed");
}

static void put_codes(const struct pe_row_reading *r, struct pe_node *node)
{
    struct pe_node *codes = pe_put_list(node, "codes");
    const struct pe_fault *faults[PE_READING_FAULTS_MAX];
    size_t n = pe_matrices_faults(r, faults);
    for (size_t i = 0; i < n; i++)
        pe_put_string(codes, NULL, faults[i]->info.code);
}

/* How far rows are from those that a list of classes has in their place. */
struct distance {
    double error, steps;
    uint64_t n_equal, n; /* rows */
    bool is_any;
    uint64_t row, col; /* of the first number that differs */
    double found, expected;
};

static bool add_row(struct pe_matrices *w, const struct pe_matrix *found, uint64_t row, uint64_t from, double factor,
                    struct distance *out)
{
    double x[PE_WEIGHTS_PIECE], y[PE_WEIGHTS_PIECE];
    bool is_equal = true;
    for (uint64_t at = 0; at < found->n_cols; at += PE_WEIGHTS_PIECE) {
        size_t n = pe_matrices_piece(found->n_cols, at);
        pe_matrices_read(w, found, row, at, n, x);
        pe_matrices_read(w, &w->believed, from, at, n, y);
        for (size_t i = 0; i < n; i++) {
            y[i] = factor == 1 ? y[i] : pe_round_to(w->dtype, factor * y[i]);
            if (x[i] == y[i])
                continue;
            if (!out->is_any)
                *out = (struct distance){out->error, out->steps, out->n_equal, out->n, true, row, at + i, x[i], y[i]};
            is_equal = false;
            out->error = fmax(out->error, fabs(x[i] - y[i]));
            out->steps = fmax(out->steps, pe_steps_between(w->dtype, x[i], y[i]));
        }
    }
    out->n++;
    out->n_equal += is_equal;
    return !(row % 16 == 0 && pe_matrices_gives_up(w));
}

static void put_figures(const struct pe_matrices *w, const struct distance *all, struct pe_node *node)
{
    bool is_known = all->n > 0;
    pe_put_real_or_null(node, "max_error", is_known ? all->error : (double)NAN);
    pe_put_real_or_null(node, "max_ulp", is_known ? all->steps : (double)NAN);
    pe_put_real(node, "equal", is_known ? (double)all->n_equal / (double)all->n : 0);
    if (!all->is_any) {
        pe_put_null(node, "first_bad");
        return;
    }
    struct pe_node *bad = pe_put_object(node, "first_bad");
    pe_put_string(bad, "output", pe_matrices_names[PE_FOUND]);
    pe_put_integers(bad, "index", (const int64_t[]){(int64_t)all->row, (int64_t)all->col}, 2);
    pe_put_real(bad, "found", pe_answer_shortest(w->dtype, all->found));
    pe_put_real(bad, "expected", pe_answer_shortest(w->dtype, all->expected));
}

/* Row by row, each in the place where the believed conversion puts it. */
static enum pe_status put_belief(struct pe_matrices *w, struct pe_node *root)
{
    const struct pe_row_moves moves = {w->fields.conversion, 1, w->heads};
    struct distance all = {0, 0, 0, 0, false, 0, 0, 0, 0};
    bool is_one_shape = w->found.n_rows == w->believed.n_rows && w->found.n_cols == w->believed.n_cols;
    for (uint64_t row = 0; is_one_shape && row < w->found.n_rows; row++)
        if (!add_row(w, &w->found, row, pe_matrices_row_before(&moves, row), 1, &all))
            return w->err->status;
    put_figures(w, &all, pe_put_object(root, "belief"));
    return PE_OK;
}

static void put_also(const struct pe_matrices *w, const struct pe_row_readings *r, struct pe_node *node)
{
    enum { ALSO_MAX = 8 };
    struct pe_node *list = pe_put_list(node, "also");
    for (size_t i = 1; i < r->n && i <= ALSO_MAX && r->best->cost > 0; i++) {
        struct pe_node *other = pe_put_object(list, NULL);
        const struct pe_fault *faults[PE_READING_FAULTS_MAX];
        pe_matrices_faults(&r->best[i], faults);
        put_codes(&r->best[i], other);
        pe_put_boolean(other, "everywhere", true);
        pe_put_detail(other, w->d->request->lang, faults[0]->info.about.summary);
        pe_put_null(other, "config");
        pe_put_null(other, "sequence");
        put_transforms(w, &r->best[i], other);
    }
}

/* The class of a found row is a believed row with its numbers. */
static enum pe_status put_candidate(struct pe_matrices *w, const struct pe_row_readings *r, struct pe_node *root)
{
    struct pe_node *list = pe_put_list(root, "candidates");
    const struct pe_row_reading *first = r->best;
    const struct pe_matrix found = first->is_turned ? pe_matrices_turned(&w->found) : w->found;
    struct distance all = {0, 0, 0, 0, false, 0, 0, 0, 0};
    if (r->n == 0)
        return PE_OK;
    for (uint64_t row = 0; row < found.n_rows; row++)
        if (w->of_found[row] != PE_NOWHERE && !add_row(w, &found, row, w->of_found[row], first->factor, &all))
            return w->err->status;
    struct pe_node *node = pe_put_object(list, NULL);
    pe_put_null(node, "config");
    pe_put_null(node, "sequence");
    put_transforms(w, first, node);
    put_codes(first, node);
    pe_put_list(node, "presets");
    pe_put_string(node, "verdict", all.steps <= 1 ? "exact" : "rounding");
    all.is_any &= all.steps > 1;
    put_figures(w, &all, node);
    put_also(w, r, node);
    return PE_OK;
}

enum pe_status pe_matrices_state(struct pe_matrices *w, const struct pe_row_readings *r, uint64_t missing)
{
    struct pe_diagnosis *d = w->d;
    d->values = pe_values_new();
    if (!d->values)
        return pe_no_memory(w->err);
    struct pe_node *root = pe_values_root(d->values);
    pe_put_boolean(root, "explained", r->n > 0);
    if (put_belief(w, root))
        return w->err->status;
    if (put_candidate(w, r, root))
        return w->err->status;
    put_findings(w, r, missing, root);
    pe_put_null(root, "undecided");
    pe_put_list(root, "ruled_out");
    pe_put_integer(root, "searched", (int64_t)r->searched);
    pe_put_list(root, "unseen");
    pe_put_null(root, "sides");
    pe_put_null(root, "arithmetic");
    pe_put_null(root, "next");
    d->searched = r->searched;
    d->stated = pe_values_done(d->values);
    return d->stated ? PE_OK : pe_no_memory(w->err);
}
