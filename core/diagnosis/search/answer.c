/* The answer of a diagnosis: the best hypotheses in order, what they change, and what was ruled out.
 *
 * The search has compared a sample. For the answer the few best are compared with every number that was sent
 * (pe_answer_compare in compare.c), so the verdict is about the tensor and not about the sample; a hypothesis that the
 * rest contradicts falls behind. If too few fit, those that did not fit the sample are compared too, because the
 * nearest of them is the answer's `unexplained`. Then those with the same numbers are joined (equivalent.c), and what
 * is left is stated as a tree of values: findings (findings.c), candidates, what was ruled out and by how much,
 * mistakes that would not show (unseen.c), the arithmetic (arithmetic.c).
 *
 * Each candidate is stated as a resolved configuration, the request that gives these numbers, so the reader can check
 * it with /encode; nothing in the answer needs to be believed. Rows behind a switch of scaling have a configuration of
 * their own. */
#include "core/diagnosis/diagnosis.h"
#include "core/diagnosis/measure/profile.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* ---- Their members ---- */

void pe_answer_misfit(const struct pe_diagnosis *d, const struct pe_misfit *bad, struct pe_node *node, const char *name)
{
    if (!bad->is_any) {
        pe_put_null(node, name);
        return;
    }
    struct pe_node *first = pe_put_object(node, name);
    const struct pe_evidence *e = &d->evidence;
    if (e->is_typed) { /* as it was typed, and by its number */
        pe_put_string(first, "output", e->kind->tensors[bad->t]);
        pe_put_integers(first, "index", (const int64_t[]){(int64_t)bad->row}, 1);
        pe_answer_put_number(first, "found", bad->found);
        pe_answer_put_number(first, "expected", pe_answer_shortest(e->dtype, bad->expected));
        return;
    }
    double sign = pe_evidence_sign(e, bad->t, bad->col), found = bad->found;
    if (pe_is_printed(e)) /* as it was printed */
        pe_evidence_read(e, bad->t, bad->row, bad->col, 1, &found);
    pe_put_string(first, "output", pe_evidence_name(e, bad->t));
    pe_answer_put_index(d, first, bad->t, bad->row, bad->col);
    pe_answer_put_number(first, "found", pe_answer_shortest(e->dtype, sign * found));
    pe_answer_put_number(first, "expected", pe_answer_shortest(e->dtype, sign * bad->expected));
}

/* Where infinities differ, or the belief has another shape, no number shows how much. */
static void put_figure(struct pe_node *node, const char *name, double x)
{
    if (isfinite(x))
        pe_put_real(node, name, x);
    else
        pe_put_null(node, name);
}

static const struct pe_member comparison[] = {
    {.name = "max_error", .summary = "the largest difference"},
    {.name = "max_ulp", .summary = "the same in steps of the dtype"},
    {.name = "equal", .summary = "share of equal numbers"},
    {.name = "first_bad", .summary = "the first number that differs: output, index, found, expected; null: none"},
    {.name = NULL},
};

static void put_comparison(const struct pe_diagnosis *d, const struct pe_comparison *all, struct pe_node *node)
{
    put_figure(node, "max_error", all->max_error);
    put_figure(node, "max_ulp", all->max_ulp);
    pe_put_real(node, "equal", all->n ? (double)all->n_equal / (double)all->n : 1);
    pe_answer_misfit(d, &all->first_bad, node, "first_bad");
}

/* The fields that give positions, as the candidate has them. */
static void put_sequence(struct pe_diagnosis *d, const struct pe_candidate *c, struct pe_node *node)
{
    struct pe_node *sequence = pe_put_object(node, "sequence");
    const struct pe_param *rules = pe_sequence_rules();
    for (const struct pe_param *row = pe_sequence_params(); row->name && row != rules; row++) {
        const struct pe_value *value = pe_edit_value(d, &c->edit, row->name);
        if (value && value->kind != PE_NULL)
            pe_put_value(sequence, row->name, value);
    }
}

static void put_codes(const struct pe_hypothesis *h, struct pe_node *node)
{
    struct pe_node *codes = pe_put_list(node, "codes");
    for (unsigned i = 0; i < h->n; i++)
        pe_put_string(codes, NULL, pe_fault_at(h->fault[i])->code);
}

/* The resolved configuration. Of a rotated tensor, and of cos and sin in one, tables were asked for in a form of our
 * own. */
void pe_answer_config(const struct pe_diagnosis *d, const struct pe_candidate *c, const struct pe_plan *plan,
                      struct pe_node *node)
{
    const struct pe_value *config = pe_plan_config(plan);
    struct pe_node *copy = pe_put_object(node, "config");
    const char *form = d->evidence.kind->id == PE_OF_ROTATED ? "pairs" : d->evidence.view.form;
    for (size_t i = 0; i < config->object.n; i++) {
        const struct pe_field *field = &config->object.fields[i];
        if (form && strcmp(field->name, "form") == 0)
            pe_put_string(copy, "form", form);
        else if (d->evidence.is_channels_first && strcmp(field->name, "channels_first") == 0)
            pe_put_boolean(copy, "channels_first", true);
        else
            pe_put_value(copy, field->name, &field->value);
    }
    const struct pe_value *layout = pe_edit_value(d, &c->edit, "tensor_layout");
    if (layout && !pe_field_find(config->object.fields, config->object.n, "tensor_layout"))
        pe_put_value(copy, "tensor_layout", layout);
    const struct pe_value *scale = pe_edit_value(d, &c->edit, "query_scale");
    if (scale && !pe_field_find(config->object.fields, config->object.n, "query_scale"))
        pe_put_value(copy, "query_scale", scale);
}

static void put_request(struct pe_diagnosis *d, const struct pe_candidate *c, struct pe_node *node)
{
    pe_answer_config(d, c, c->model->plan, node);
    put_sequence(d, c, node);
}

/* Of rows first … end-1. */
static void put_rows(struct pe_diagnosis *d, const struct pe_candidate *c, uint64_t first, uint64_t end,
                     struct pe_node *node)
{
    const struct pe_positions *k = c->model->plan->seq.k;
    uint64_t n = end - first;
    double start = pe_position_at(k, first), *positions = pe_values_room(d->values, n * sizeof *positions);
    bool is_run = start == floor(start);
    if (!positions)
        return;
    for (uint64_t i = 0; i < n; i++) {
        positions[i] = pe_position_at(k, first + i);
        is_run = is_run && positions[i] == start + (double)i;
    }
    pe_put_integers(node, "rows", (const int64_t[]){(int64_t)first, (int64_t)end}, 2);
    struct pe_node *sequence = pe_put_object(node, "sequence");
    if (is_run && start != 0)
        pe_put_integer(sequence, "offset", (int64_t)start);
    if (is_run)
        pe_put_integer(sequence, "len", (int64_t)n);
    else
        pe_put_value(sequence, "positions",
                     &(struct pe_value){.kind = PE_ARRAY,
                                        .array = {.dtype = PE_F64, .rank = 1, .shape = {n}, .data = positions}});
}

/* A request for each part of the rows; where the ladder grows, the second is of the last row. */
static void put_pieces(struct pe_diagnosis *d, const struct pe_candidate *c, struct pe_node *node)
{
    const struct pe_transforms *t = &c->edit.transforms;
    if (!t->scaling_behind)
        return;
    struct pe_node *list = pe_put_list(node, "pieces"), *first = pe_put_object(list, NULL),
                   *second = pe_put_object(list, NULL);
    uint64_t n = c->model->plan->seq.k->n, at, x = (uint64_t)t->switched_at;
    const struct pe_plan *behind = pe_model_plan_at(c->model, n - 1, &at);
    put_rows(d, c, 0, x, first);
    pe_answer_config(d, c, c->model->plan, first);
    put_rows(d, c, x, n, second);
    if (behind)
        pe_answer_config(d, c, behind, second);
    if (t->is_growing)
        pe_put_boolean(second, "growing", true);
}

static int compare_listed(const void *a, const void *b)
{
    return pe_candidate_order(*(const struct pe_candidate *const *)a, *(const struct pe_candidate *const *)b);
}

/* Others with the same numbers. */
static void put_also(struct pe_diagnosis *d, const struct pe_answer *a, size_t head, struct pe_node *node)
{
    enum { ALSO_MAX = 8 };
    struct pe_node *list = pe_put_list(node, "also");
    const struct pe_candidate *listed[PE_BEST_MAX];
    size_t n = 0;
    for (size_t i = head + 1; i < a->n; i++)
        if (pe_answer_lists(d, a, head, i))
            listed[n++] = &a->candidates[i];
    qsort(listed, n, sizeof *listed, compare_listed);
    for (size_t i = 0; i < n && i < ALSO_MAX; i++) {
        const struct pe_candidate *c = listed[i];
        struct pe_node *other = pe_put_object(list, NULL);
        put_codes(&c->explanation.h, other);
        pe_put_boolean(other, "everywhere", c->likeness == PE_ALIKE);
        pe_answer_detail(d, c, other);
        put_request(d, c, other);
        pe_answer_transforms(d, &c->edit.transforms, other);
    }
}

static const char *const verdicts[] = {"exact", "rounding", "near", "none", NULL};

static const struct pe_member candidate[] = {
    {.name = "config", .types = "object|null"},
    {.name = "sequence", .types = "object|null"},
    {.name = "transforms", .types = "array"},
    {.name = "codes", .types = "array"},
    {.name = "presets", .types = "array"},
    {.name = "verdict", .words = verdicts},
    {.name = "", .members = comparison},
    {.name = "also",
     .types = "array",
     .summary =
         "other mistakes with the same numbers, at most 8: codes, everywhere, detail, config, sequence, transforms"},
    {.name = "pieces",
     .types = "array",
     .summary = "where some rows have another scaling than the others: rows (from, to), config and sequence of each "
                "part; where "
                "a part is as believed: its rows, batch_rows or heads, as [first, last], and what the rest is",
     .is_optional = true},
    {.name = NULL},
};

static enum pe_status put_candidate(struct pe_diagnosis *d, struct pe_answer *a, size_t i, struct pe_node *list,
                                    struct pe_failure *err)
{
    struct pe_candidate *c = &a->candidates[i];
    struct pe_node *node = pe_put_object(list, NULL), *presets;
    enum pe_status status = pe_answer_presets(d, c, err);
    put_request(d, c, node);
    struct pe_node *transforms = pe_answer_transforms(d, &c->edit.transforms, node);
    if (i == 0)
        pe_answer_zero_rows(d, a, transforms);
    put_codes(&c->explanation.h, node);
    presets = pe_put_list(node, "presets");
    for (size_t k = 0; k < c->n_presets; k++)
        pe_put_string(presets, NULL, c->presets[k]);
    pe_put_string(node, "verdict", verdicts[c->all.verdict < PE_NO_FIT ? c->all.verdict : PE_NO_FIT]);
    put_comparison(d, &c->all, node);
    put_also(d, a, i, node);
    put_pieces(d, c, node);
    return status;
}

/* ---- A candidate of two parts ---- */

static const struct pe_value *member(const struct pe_value *v, const char *name)
{
    return pe_field_find(v->object.fields, v->object.n, name);
}

/* The part that fits has the belief's request; the rest its own, or what it is. */
static void put_parts(struct pe_diagnosis *d, const struct pe_candidate *belief, struct pe_node *node)
{
    static const char *const names[] = {"config", "sequence", "transforms"};
    const struct pe_value *rest = pe_answer_of_rest(d);
    struct pe_node *list = pe_put_list(node, "pieces"), *first = pe_put_object(list, NULL),
                   *second = pe_put_object(list, NULL);
    pe_answer_piece(d, false, first);
    put_request(d, belief, first);
    pe_answer_piece(d, true, second);
    for (size_t i = 0; rest && i < sizeof names / sizeof *names; i++)
        if (member(rest, names[i]))
            pe_put_value(second, names[i], member(rest, names[i]));
}

/* Each of its parts has been compared with all of its numbers. */
static void put_in_parts(struct pe_diagnosis *d, const struct pe_candidate *belief, struct pe_node *list)
{
    const struct pe_parts *p = d->parts;
    const struct pe_value *rest = pe_answer_of_rest(d), *error = rest ? member(rest, "max_error") : NULL;
    struct pe_node *node = pe_put_object(list, NULL);
    bool is_exact = p->is_exact && (!rest || pe_same(member(rest, "verdict")->string, "exact"));
    double n_rest =
        (double)(d->evidence.n_rows - p->n_fit) * (double)d->evidence.n_tensors * (double)d->evidence.row_len;
    double equal = (double)p->n_equal + (rest ? member(rest, "equal")->real : 1) * n_rest;
    put_request(d, belief, node);
    pe_put_list(node, "transforms");
    pe_put_string(pe_put_list(node, "codes"), NULL, pe_answer_part_code(d));
    pe_put_list(node, "presets");
    pe_put_string(node, "verdict", verdicts[is_exact ? PE_EXACT : PE_ROUNDING]);
    pe_put_real(node, "max_error", error ? fmax(p->max_error, pe_value_number(error)) : p->max_error);
    pe_put_null(node, "max_ulp");
    pe_put_real(node, "equal", equal / ((double)p->n + n_rest));
    pe_put_null(node, "first_bad");
    pe_put_list(node, "also");
    put_parts(d, belief, node);
}

/* The best single fault of each kind, when nothing fits. */
static void put_ruled_out(const struct pe_diagnosis *d, const struct pe_answer *a, struct pe_node *root)
{
    struct pe_node *list = pe_put_list(root, "ruled_out");
    bool fits = (a->n > 0 && pe_fits(a->candidates[0].all.verdict)) || pe_answer_is_in_parts(d);
    for (int kind = 0; !fits && kind < PE_KIND_FINDING; kind++) {
        const struct pe_explanation *best = &d->of_kind[kind];
        if (best->h.n == 0)
            continue;
        struct pe_node *node = pe_put_object(list, NULL);
        pe_put_string(node, "kind", pe_fault_kind_names[kind]);
        pe_put_string(node, "code", pe_fault_at(best->h.fault[0])->code);
        put_figure(node, "max_error", best->score.max_error);
    }
}

static void put_undecided(const struct pe_undecided *u, struct pe_node *root)
{
    if (!u->rival) {
        pe_put_null(root, "undecided");
        return;
    }
    struct pe_node *node = pe_put_object(root, "undecided");
    pe_put_integers(node, "candidates", (const int64_t[]){0, (int64_t)u->rival}, 2);
    pe_put_integer(pe_put_object(node, "decide"), "position", (int64_t)u->position);
}

static const struct pe_member groups[] = {
    {.name = "batch_rows", .types = "array|null"}, {.name = "heads", .types = "array|null"}, {.name = NULL}};
static const struct pe_member where_members[] = {{.name = "rows", .types = "array|null"},
                                                 {.name = "pairs", .types = "array|null"},
                                                 {.name = "groups", .types = "object", .members = groups},
                                                 {.name = NULL}};

const struct pe_member pe_diagnosis_members[] = {
    {.name = "explained", .types = "boolean"},
    {.name = "belief", .types = "object|null", .members = comparison},
    {.name = "candidates",
     .types = "array",
     .summary = "the best first; config with sequence, sent to /encode, /rotate or /attention, and then transforms "
                "give the tensor",
     .items = "object",
     .members = candidate},
    {.name = "findings", .types = "array", .items = "object", .members = pe_finding_members},
    {.name = "where",
     .types = "object|null",
     .summary = "of a belief that does not fit: where it does, as stretches [first, last] of rows, pairs and groups "
                "(batch_rows, heads); null where there is one",
     .members = where_members},
    {.name = "undecided", .types = "object|null"},
    {.name = "ruled_out", .types = "array"},
    {.name = "searched", .types = "integer", .summary = "hypotheses tried"},
    {.name = "used_all",
     .types = "boolean",
     .summary = "true: the search ended because it had used all the work that is allowed; else left out",
     .is_optional = true},
    {.name = "unseen",
     .types = "array",
     .summary = "codes of the mistakes that would not show in a tensor that is as believed; empty where the belief "
                "does not fit",
     .n_max = PE_UNSEEN_MAX},
    {.name = "sides",
     .types = "object|null",
     .summary =
         "where q, q_out, k and k_out were sent: verdict and codes of q and of k. Findings and candidates then have a "
         "side, q, k or, if one reading is of both, null"},
    {.name = "arithmetic",
     .types = "object|null",
     .summary = "of tables, angles and frequencies that are explained: by which steps they were computed",
     .members = pe_arithmetic_members},
    {.name = "next",
     .types = "object|null",
     .summary =
         "where `values` were typed and several readings fit, or a tensor was printed with too few digits for one "
         "of `unseen`: the number to look at next (tensor, position, channel), and which reading has which "
         "value there"},
    PE_SCORE_MEMBERS,
    {.name = "taken",
     .types = "array",
     .summary = "of tensors whose names are no fields: name, the kind that each is taken as (null: as none), and why",
     .is_optional = true},
    {.name = NULL},
};

static enum pe_status put_answer(struct pe_diagnosis *d, struct pe_answer *a, struct pe_failure *err)
{
    struct pe_node *root = pe_values_root(d->values);
    enum pe_status status = pe_answer_decide(d, a, &a->undecided, err);
    bool fits = pe_answer_fits(d), is_in_parts = !fits && pe_answer_is_in_parts(d);
    pe_put_boolean(root, "explained", fits || is_in_parts);
    if (a->belief.model)
        put_comparison(d, &a->belief.all, pe_put_object(root, "belief"));
    else
        pe_put_null(root, "belief");
    struct pe_node *list = pe_put_list(root, "candidates");
    if (is_in_parts)
        put_in_parts(d, &a->belief, list);
    for (size_t i = 0; !status && !is_in_parts && i < a->n_shown; i++)
        status = put_candidate(d, a, i, list, err);
    pe_answer_findings(d, a, root);
    pe_answer_where(d, root);
    put_undecided(&a->undecided, root);
    put_ruled_out(d, a, root);
    pe_put_integer(root, "searched", (int64_t)d->searched);
    if (!status)
        status = pe_answer_unseen(d, a, pe_put_list(root, "unseen"), err);
    pe_put_null(root, "sides"); /* diagnosis.c */
    if (!status)
        status = pe_answer_arithmetic(d, a, root, err);
    if (!status)
        status = pe_answer_next(d, a, root, err);
    if (d->used_all)
        pe_put_boolean(root, "used_all", true);
    if (d->evidence.kind->id == PE_OF_MAPS)
        pe_model_put_scores(&d->belief.inheritance->model.scores, root);
    return status;
}

/* ---- The whole ---- */

static size_t count_shown(const struct pe_answer *a)
{
    size_t n = 0;
    bool fits = a->n > 0 && pe_fits(a->candidates[0].all.verdict);
    while (n < a->n_own && n < PE_CANDIDATES_MAX && (!fits || a->candidates[n].all.verdict <= PE_NEAR))
        n++;
    return n;
}

void pe_answer_drop(struct pe_diagnosis *d)
{
    struct pe_answer *a = d->answer;
    if (!a)
        return;
    for (size_t i = 0; i < a->n; i++)
        pe_candidate_drop(&a->candidates[i]);
    pe_candidate_drop(&a->belief);
    free(a);
}

bool pe_answer_fits(const struct pe_diagnosis *d)
{
    return d->answer->n > 0 && pe_fits(d->answer->candidates[0].all.verdict);
}

enum pe_status pe_diagnosis_compare(struct pe_diagnosis *d, struct pe_failure *err)
{
    d->answer = calloc(1, sizeof *d->answer);
    if (!d->answer)
        return pe_no_memory(err);
    enum pe_status status = pe_answer_compare(d, d->answer, err);
    if (!status)
        status = pe_answer_join(d, d->answer, err);
    d->answer->n_shown = count_shown(d->answer);
    if (!status && !d->as_believed && d->answer->belief.model && !pe_fits(d->answer->belief.all.verdict))
        pe_parts_measure(d);
    return status;
}

enum pe_status pe_diagnosis_state(struct pe_diagnosis *d, struct pe_failure *err)
{
    d->values = pe_values_new();
    if (!d->values)
        return pe_no_memory(err);
    enum pe_status status = put_answer(d, d->answer, err);
    if (status)
        return status;
    d->stated = d->no_memory ? NULL : pe_values_done(d->values);
    return d->stated ? PE_OK : pe_no_memory(err);
}
