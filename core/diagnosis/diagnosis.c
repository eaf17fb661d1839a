/* The steps of a diagnosis: from a tensor and the expected configuration to the mistake that turns one into the other.
 *
 * 1. check: the tensors of the request (evidence/find.c), the belief with the sizes that they fix, the belief's plan,
 *    the sample. Everything that is wrong with a request is refused here, before the work begins.
 * 2. pe_search: hypotheses, level by level, against the sample (search/search.c).
 * 3. pe_diagnosis_compare: the best of them against every number, which of them have the same numbers
 *    (search/compare.c). Where nothing explains them all and a part is as believed (measure/parts.c), the rest is
 *    diagnosed alone.
 * 4. pe_diagnosis_state: what they mean (search/answer.c), as a tree of values.
 *
 * Three requests differ from that. Numbers that were typed replace the tensor in step 1. A probe, which asks what to
 * type, has no search: its answer are the numbers that separate the most hypotheses (search/probe.c). Queries and keys
 * that were sent together are two diagnoses with half of the work each and one answer, below.
 *
 * Work is counted in multiply-adds, against the request's limit, and never timed: the same request has the same answer
 * on every machine. Memory is admitted by the caller before it is allocated. */
#include "core/diagnosis/diagnosis.h"
#include "core/diagnosis/measure/profile.h"
#include "core/diagnosis/naming/relations.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

/* ---- The steps ---- */

/* Everything that is wrong with the request is found here, before the search. */
static enum pe_status check(struct pe_diagnosis *d, struct pe_failure *err)
{
    bool is_typed = pe_typed_is_sent(d);
    enum pe_status status = is_typed ? pe_typed_find(d, err) : pe_evidence_find(d, err);
    if (!status)
        status = pe_belief_open(d, err);
    if (!status)
        status = is_typed ? pe_typed_read(d, err) : d->evidence.kind->read(d, err);
    if (!status)
        status = pe_belief_plan(d, err);
    if (!status)
        status = is_typed ? pe_typed_sample(d, err) : pe_evidence_sample(d, err);
    return status;
}

static void step(const struct pe_diagnosis *d, const char *name)
{
    if (d->request->step)
        d->request->step(d->request->caller, name);
}

static enum pe_status diagnose_rest(struct pe_diagnosis *d, struct pe_failure *err);

/* Every step, for d->request. */
static enum pe_status take_steps(struct pe_diagnosis *d, struct pe_failure *err)
{
    enum pe_status status = check(d, err);
    step(d, "diagnose");
    if (!status && (d->sample.n || !d->evidence.aside)) /* else there is nothing to compare */
        status = pe_search(d, err);
    if (!status)
        status = pe_diagnosis_compare(d, err);
    if (!status && !d->as_believed && !pe_answer_fits(d) && pe_parts_tell(d))
        status = diagnose_rest(d, err);
    if (!status)
        status = pe_diagnosis_state(d, err);
    step(d, NULL);
    if (status)
        pe_belief_blame(d, err);
    return status;
}

/* What the rows are that differ, where others are as believed: what measure/parts.c states of them, or single mistakes
 * and positions of their own. A rest that cannot be diagnosed is only described. */
static enum pe_status diagnose_rest(struct pe_diagnosis *d, struct pe_failure *err)
{
    pe_parts_describe(d);
    if (pe_answer_is_in_parts(d) || d->no_memory)
        return d->no_memory ? pe_no_memory(err) : PE_OK;
    d->rest = calloc(1, sizeof *d->rest);
    if (!d->rest)
        return pe_no_memory(err);
    d->of_rest = *d->request;
    d->of_rest.max_work = fmax(0, d->request->max_work - d->work);
    d->of_rest.step = NULL;
    d->rest->request = &d->of_rest;
    d->rest->bytes = d->bytes;
    d->rest->as_believed = d->parts->rows;
    enum pe_status status = take_steps(d->rest, err);
    d->searched += d->rest->searched;
    d->work += d->rest->work;
    if (status) {
        pe_diagnosis_free(d->rest);
        d->rest = NULL;
    }
    return status == PE_CANCELLED || status == PE_NO_MEMORY ? status : PE_OK;
}

/* ---- Without the belief ---- */

/* Where nothing mends the belief, the tensor is identified without it as well, with the work that is left: what is
 * found then is compared with the belief field by field, however many differ. So an answer is never worse than without
 * a belief. Numbers that came in a text, or few, identify nothing. */

static const struct pe_value *member(const struct pe_value *v, const char *name);

static bool is_worth_it(const struct pe_diagnosis *d)
{
    enum { FEW = 64 };
    const struct pe_evidence *e = &d->evidence;
    bool are_many = e->n_tensors * e->n_rows * e->row_len >= FEW && pe_evidence_informative(e) >= PE_INFORMATIVE_MIN;
    return d->belief.is_given && !e->is_typed && e->kind->id != PE_OF_MAPS && !e->not_finite.n && are_many &&
           !d->rest && !pe_answer_is_in_parts(d) && !member(d->stated, "explained")->boolean;
}

/* Its tensors and where they are. */
static size_t leave_belief(const struct pe_diagnosis *d, struct pe_field *fields)
{
    size_t n = 0;
    for (size_t i = 0; i < d->request->n_fields; i++)
        if (pe_belief_is_no_part(d, d->request->fields[i].name))
            fields[n++] = d->request->fields[i];
    return n;
}

/* The answer of the other diagnosis, with the differences as findings. */
static enum pe_status state_freely(struct pe_diagnosis *d, const struct pe_diagnosis *free_one, struct pe_failure *err)
{
    const struct pe_value *own = d->stated, *other = free_one->stated;
    struct pe_values *values = pe_values_new(), *before = d->values;
    if (!values)
        return pe_no_memory(err);
    d->values = values;
    struct pe_node *root = pe_values_root(values);
    for (size_t i = 0; i < other->object.n; i++) {
        const char *name = other->object.fields[i].name;
        if (pe_same(name, "findings"))
            pe_answer_differences(d, &member(other, "candidates")->list.items[0], root);
        else if (pe_same(name, "searched"))
            pe_put_integer(root, name, (int64_t)d->searched);
        else
            pe_put_value(root, name, member(pe_same(name, "belief") ? own : other, name));
    }
    d->before = before;
    d->stated = pe_values_done(values);
    return d->stated ? PE_OK : pe_no_memory(err);
}

static enum pe_status identify_freely(struct pe_diagnosis *d, struct pe_failure *err)
{
    struct pe_diagnosed_side *side = &d->sides[0];
    struct pe_failure refused;
    side->fields = calloc(d->request->n_fields + 1, sizeof *side->fields);
    side->diagnosis = calloc(1, sizeof *side->diagnosis);
    if (!side->fields || !side->diagnosis)
        return pe_no_memory(err);
    side->request = *d->request;
    side->request.fields = side->fields;
    side->request.n_fields = leave_belief(d, side->fields);
    side->request.max_work = d->request->max_work - d->work;
    side->diagnosis->request = &side->request;
    side->diagnosis->bytes = d->bytes;
    enum pe_status status = take_steps(side->diagnosis, &refused);
    d->searched += side->diagnosis->searched;
    d->bytes = side->diagnosis->bytes;
    if (status == PE_INVALID || status == PE_TOO_LARGE) /* it cannot be read without the belief */
        return PE_OK;
    if (status) {
        *err = refused;
        return status;
    }
    bool is_found = member(side->diagnosis->stated, "explained")->boolean;
    return is_found ? state_freely(d, side->diagnosis, err) : PE_OK;
}

static enum pe_status diagnose(struct pe_diagnosis *d, struct pe_failure *err)
{
    enum pe_status status = take_steps(d, err);
    return !status && is_worth_it(d) ? identify_freely(d, err) : status;
}

/* Beliefs, and single mistakes, that a few numbers tell apart. */
static enum pe_status probe(struct pe_diagnosis *d, struct pe_failure *err)
{
    d->is_probe = true;
    enum pe_status status = check(d, err);
    step(d, "diagnose");
    if (!status)
        status = pe_probe_state(d, err);
    step(d, NULL);
    if (status)
        pe_belief_blame(d, err);
    return status;
}

/* ---- Queries and keys together ---- */

/* Queries and keys with what became of each: q, q_out, k, k_out.
 *
 * A model rotates both by one configuration, so there is one belief. Each side is a diagnosis of its own; then the
 * answers become one. If one candidate explains both sides, that is the answer. Else the answer is that of the side
 * which is wrong, its findings say which side they are of, and the last one states that the sides differ. */

static const char *const inputs[] = {"q", "k"}, *const results[] = {"q_out", "k_out"};

static const struct pe_value *sent(const struct pe_diagnosis_request *request, const char *name)
{
    return pe_field_find(request->fields, request->n_fields, name);
}

/* Are queries and keys both sent? Then two diagnoses are run, and one answer is stated. */
static bool has_sides(const struct pe_diagnosis_request *request)
{
    bool has = true;
    for (int i = 0; i < PE_N_SIDES; i++)
        has = has && sent(request, inputs[i]) && sent(request, results[i]);
    return has;
}

/* ---- Two requests ---- */

/* Positions of a tensor in the usual layout. */
static int64_t length_of(const struct pe_value *v)
{
    return v->kind == PE_ARRAY && v->array.rank > 1 ? (int64_t)v->array.shape[v->array.rank - 2] : 1;
}

/* By how much the first query is behind the first key, where nothing else decides it: the last ones are together. */
static int64_t offset_of_q(const struct pe_diagnosis_request *request)
{
    int64_t offset = length_of(sent(request, "k")) - length_of(sent(request, "q"));
    for (size_t i = 0; i < request->n_fields; i++)
        if (pe_belief_is_sequence(request->fields[i].name) ||
            pe_is_among("tensor_layout|position_ids", request->fields[i].name))
            return 0;
    return offset > 0 ? offset : 0;
}

/* Its own tensors, every field of the belief, and half of the work. */
static enum pe_status open_side(struct pe_diagnosis *d, int i, struct pe_failure *err)
{
    const struct pe_diagnosis_request *whole = d->request;
    struct pe_diagnosed_side *side = &d->sides[i];
    int64_t offset = i == PE_SIDE_OF_Q ? offset_of_q(whole) : 0;
    side->fields = calloc(whole->n_fields + 1, sizeof *side->fields);
    side->diagnosis = calloc(1, sizeof *side->diagnosis);
    if (!side->fields || !side->diagnosis)
        return pe_no_memory(err);
    size_t n = 0;
    for (size_t j = 0; j < whole->n_fields; j++)
        if (!pe_same(whole->fields[j].name, inputs[1 - i]) && !pe_same(whole->fields[j].name, results[1 - i]))
            side->fields[n++] = whole->fields[j];
    if (offset)
        side->fields[n++] = (struct pe_field){"offset", {.kind = PE_INTEGER, .integer = offset}};
    side->request = *whole;
    side->request.fields = side->fields;
    side->request.n_fields = n;
    side->request.max_work = whole->max_work / PE_N_SIDES;
    side->diagnosis->request = &side->request;
    side->diagnosis->bytes = i ? d->sides[0].diagnosis->bytes : 0;
    side->offset = offset;
    return PE_OK;
}

/* ---- One candidate for both ---- */

static const struct pe_value *member(const struct pe_value *v, const char *name)
{
    return pe_field_find(v->object.fields, v->object.n, name);
}

static double real_of(const struct pe_value *v) { return v->kind == PE_INTEGER ? (double)v->integer : v->real; }

static bool is_number(const struct pe_value *v) { return v->kind == PE_INTEGER || v->kind == PE_REAL; }

static bool is_equal(const struct pe_value *a, const struct pe_value *b);

static bool are_equal(const struct pe_value *a, const struct pe_value *b)
{
    if (a->object.n != b->object.n)
        return false;
    for (size_t i = 0; i < a->object.n; i++) {
        const struct pe_value *other = member(b, a->object.fields[i].name);
        if (!other || !is_equal(&a->object.fields[i].value, other))
            return false;
    }
    return true;
}

/* Lists of codes, fields and lists of numbers; a value that is fitted has its last digits from each side. */
static bool is_equal(const struct pe_value *a, const struct pe_value *b)
{
    if (is_number(a) && is_number(b))
        return fabs(real_of(a) - real_of(b)) <= 1e-5 * fmax(fabs(real_of(a)), fabs(real_of(b)));
    if (a->kind != b->kind)
        return false;
    if (a->kind == PE_STRING)
        return pe_same(a->string, b->string);
    if (a->kind == PE_BOOLEAN)
        return a->boolean == b->boolean;
    if (a->kind == PE_OBJECT)
        return are_equal(a, b);
    if (a->kind == PE_ARRAY) {
        struct pe_reals x = {a->array, a->array.shape[0]}, y = {b->array, b->array.shape[0]};
        bool equal = x.n == y.n;
        for (size_t i = 0; equal && i < x.n; i++)
            equal = fabs(pe_real_at(&x, i) - pe_real_at(&y, i)) <= 1e-5 * fabs(pe_real_at(&x, i)) + 1e-12;
        return equal;
    }
    bool equal = a->kind != PE_LIST || a->list.n == b->list.n;
    for (size_t i = 0; equal && a->kind == PE_LIST && i < a->list.n; i++)
        equal = is_equal(&a->list.items[i], &b->list.items[i]);
    return equal;
}

static double first_of(const struct pe_value *sequence)
{
    const struct pe_value *offset = member(sequence, "offset"), *list = member(sequence, "positions");
    if (list && list->kind == PE_ARRAY)
        return pe_real_at(&(struct pe_reals){list->array, list->array.shape[0]}, 0);
    return offset && is_number(offset) ? real_of(offset) : 0;
}

/* Do two candidates say the same? Sides of one length have the same positions; of others, the same first one. */
static bool say_the_same(const struct pe_diagnosed_side *q, const struct pe_value *a, const struct pe_diagnosed_side *k,
                         const struct pe_value *b)
{
    bool is_one_length = q->diagnosis->belief.n == k->diagnosis->belief.n;
    const struct pe_value *x = member(a, "sequence"), *y = member(b, "sequence");
    return is_equal(member(a, "codes"), member(b, "codes")) && is_equal(member(a, "config"), member(b, "config")) &&
           is_equal(member(a, "transforms"), member(b, "transforms")) &&
           (is_one_length ? is_equal(x, y) : first_of(x) - (double)q->offset == first_of(y));
}

static bool fits(const struct pe_value *candidate)
{
    return pe_is_among("exact|rounding", member(candidate, "verdict")->string);
}

/* The candidates that each side is read by: of both the same, if some two are; else the first of each. */
static bool read_both(struct pe_diagnosis *d)
{
    const struct pe_value *lists[PE_N_SIDES];
    for (int i = 0; i < PE_N_SIDES; i++) {
        lists[i] = member(d->sides[i].diagnosis->stated, "candidates");
        d->sides[i].candidate = lists[i]->list.n ? &lists[i]->list.items[0] : NULL;
    }
    for (size_t sum = 0; sum < lists[0]->list.n + lists[1]->list.n; sum++)
        for (size_t i = 0; i <= sum && i < lists[0]->list.n; i++) {
            if (sum - i >= lists[1]->list.n)
                continue;
            const struct pe_value *a = &lists[0]->list.items[i], *b = &lists[1]->list.items[sum - i];
            bool is_first = i == 0 || sum == i; /* the answer is that of a side which it is the first of */
            if (!is_first || !fits(a) || !fits(b) || !say_the_same(&d->sides[0], a, &d->sides[1], b))
                continue;
            d->sides[0].candidate = a;
            d->sides[1].candidate = b;
            return true;
        }
    return false;
}

/* ---- One answer ---- */

static bool is_explained(const struct pe_diagnosed_side *side)
{
    return member(side->diagnosis->stated, "explained")->boolean;
}

static bool is_as_believed(const struct pe_diagnosed_side *side)
{
    return side->candidate && fits(side->candidate) && member(side->candidate, "codes")->list.n == 0;
}

/* Codes that change more than a factor, which scores keep their distances with. */
static size_t count_turning(const struct pe_diagnosed_side *side)
{
    const struct pe_value *codes = side->candidate ? member(side->candidate, "codes") : NULL;
    size_t n = !codes || !fits(side->candidate);
    for (size_t i = 0; codes && i < codes->list.n; i++)
        n +=
            !pe_is_among("scaled|attention_factor_other|attention_factor_missing|negated", codes->list.items[i].string);
    return n;
}

static void copy_with_side(struct pe_node *list, const struct pe_value *object, const char *side)
{
    struct pe_node *node = pe_put_object(list, NULL);
    for (size_t i = 0; i < object->object.n; i++)
        pe_put_value(node, object->object.fields[i].name, &object->object.fields[i].value);
    if (side)
        pe_put_string(node, "side", side);
    else
        pe_put_null(node, "side");
}

static void put_findings_of(const struct pe_diagnosed_side *side, const char *name, struct pe_node *list)
{
    const struct pe_value *findings = member(side->diagnosis->stated, "findings");
    for (size_t i = 0; i < findings->list.n; i++)
        copy_with_side(list, &findings->list.items[i], name);
}

static bool has_code(const struct pe_diagnosed_side *side, const char *code)
{
    const struct pe_value *codes = side->candidate ? member(side->candidate, "codes") : NULL;
    for (size_t i = 0; codes && i < codes->list.n; i++)
        if (pe_same(codes->list.items[i].string, code))
            return true;
    return false;
}

/* What is no part of the reading that the sides may share: rows that are not finite, zero, too many. */
static void put_own_of(const struct pe_diagnosed_side *side, const char *name, struct pe_node *list)
{
    static const char shared[] =
        "as_believed|identified|undecided|unexplained|angles_f32|coordinates_f32|table_dtype|axes_moved";
    const struct pe_value *findings = member(side->diagnosis->stated, "findings");
    for (size_t i = 0; i < findings->list.n; i++) {
        const char *code = member(&findings->list.items[i], "code")->string;
        if (!pe_is_among(shared, code) && !has_code(side, code))
            copy_with_side(list, &findings->list.items[i], name);
    }
}

static void put_sides_differ(const struct pe_diagnosis *d, struct pe_node *list)
{
    const struct pe_fault_info *info = &pe_fault_of(PE_ROLE_SIDES_DIFFER)->info;
    struct pe_node *node = pe_put_object(list, NULL);
    pe_put_string(node, "code", info->code);
    pe_put_null(node, "pointer");
    pe_put_detail(node, d->request->lang, info->details[0]);
    pe_put_null(node, "found");
    pe_put_null(node, "believed");
    pe_put_null(node, "meaning");
    pe_put_null(node, "cure");
    pe_put_null(node, "side");
}

static void put_sides(const struct pe_diagnosis *d, struct pe_node *root)
{
    struct pe_node *sides = pe_put_object(root, "sides");
    for (int i = 0; i < PE_N_SIDES; i++) {
        const struct pe_value *candidate = d->sides[i].candidate;
        struct pe_node *node = pe_put_object(sides, inputs[i]);
        pe_put_string(node, "verdict", candidate ? member(candidate, "verdict")->string : "none");
        if (candidate)
            pe_put_value(node, "codes", member(candidate, "codes"));
        else
            pe_put_list(node, "codes");
    }
}

static void put_findings(const struct pe_diagnosis *d, bool is_one, int main_side, struct pe_node *root)
{
    struct pe_node *list = pe_put_list(root, "findings");
    const struct pe_diagnosed_side *other = &d->sides[1 - main_side];
    put_findings_of(&d->sides[main_side], is_one ? NULL : inputs[main_side], list);
    if (is_one || is_as_believed(other))
        put_own_of(other, inputs[1 - main_side], list);
    else
        put_findings_of(other, inputs[1 - main_side], list);
    if (is_one)
        return;
    if (count_turning(&d->sides[0]) + count_turning(&d->sides[1]))
        put_sides_differ(d, list);
}

static void put_candidates(const struct pe_diagnosis *d, const char *side, const struct pe_value *of,
                           struct pe_node *root)
{
    struct pe_node *list = pe_put_list(root, "candidates");
    (void)d;
    for (size_t i = 0; i < of->list.n; i++)
        copy_with_side(list, &of->list.items[i], side);
}

/* The members of one side's answer, but for those that are of both. */
static enum pe_status state(struct pe_diagnosis *d, struct pe_failure *err)
{
    bool is_one = read_both(d);
    int side = is_one ? d->sides[0].candidate != &member(d->sides[0].diagnosis->stated, "candidates")->list.items[0]
               : is_as_believed(&d->sides[1]) ? PE_SIDE_OF_Q
                                              : PE_SIDE_OF_Q + 1;
    const struct pe_value *main_answer = d->sides[side].diagnosis->stated;
    d->values = pe_values_new();
    if (!d->values)
        return pe_no_memory(err);
    struct pe_node *root = pe_values_root(d->values);
    for (size_t i = 0; i < main_answer->object.n; i++) {
        const struct pe_field *f = &main_answer->object.fields[i];
        if (pe_same(f->name, "explained"))
            pe_put_boolean(root, f->name, is_explained(&d->sides[0]) && is_explained(&d->sides[1]));
        else if (pe_same(f->name, "candidates"))
            put_candidates(d, is_one ? NULL : inputs[side], &f->value, root);
        else if (pe_same(f->name, "findings"))
            put_findings(d, is_one, side, root);
        else if (pe_same(f->name, "searched"))
            pe_put_integer(root, f->name, (int64_t)d->searched);
        else if (pe_same(f->name, "sides"))
            put_sides(d, root);
        else
            pe_put_value(root, f->name, &f->value);
    }
    d->stated = pe_values_done(d->values);
    return d->stated ? PE_OK : pe_no_memory(err);
}

/* Each side is checked alone; together they are no larger. */
static enum pe_status check_bytes(const struct pe_diagnosis *d, struct pe_failure *err)
{
    double bytes = 0;
    uint64_t n;
    for (int i = 0; i < 2 * PE_N_SIDES; i++) {
        const struct pe_value *v = sent(d->request, (i % 2 ? results : inputs)[i / 2]);
        if (v->kind == PE_ARRAY && pe_shape_count(v->array.shape, v->array.rank, &n))
            bytes += (double)n * (double)pe_dtype_size(v->from_text ? PE_F32 : v->array.dtype);
    }
    if (bytes <= (double)PE_EVIDENCE_BYTES_MAX)
        return PE_OK;
    pe_fail(err, "", "the tensors have %.0f bytes; allowed: at most %llu (64 MiB). Send fewer rows, or one side", bytes,
            PE_EVIDENCE_BYTES_MAX);
    return err->status = PE_TOO_LARGE;
}

static enum pe_status diagnose_sides(struct pe_diagnosis *d, struct pe_failure *err)
{
    if (check_bytes(d, err))
        return err->status;
    for (int i = 0; i < PE_N_SIDES; i++) {
        enum pe_status status = open_side(d, i, err);
        if (!status)
            status = diagnose(d->sides[i].diagnosis, err);
        if (status)
            return status;
        d->searched += d->sides[i].diagnosis->searched;
        d->bytes = d->sides[i].diagnosis->bytes;
    }
    return state(d, err);
}

/* After pe_values_free. */
static void drop_sides(struct pe_diagnosis *d)
{
    for (int i = 0; i < PE_N_SIDES; i++) {
        pe_diagnosis_free(d->sides[i].diagnosis);
        free(d->sides[i].fields);
    }
}

/* ---- From outside ---- */

typedef enum pe_status steps(struct pe_diagnosis *d, struct pe_failure *err);

static enum pe_status open(const struct pe_diagnosis_request *request, steps *all, struct pe_diagnosis **diagnosis,
                           struct pe_failure *err)
{
    struct pe_diagnosis *d = calloc(1, sizeof *d);
    if (!d)
        return pe_no_memory(err);
    d->request = request;
    enum pe_status status = all(d, err);
    if (status)
        pe_diagnosis_free(d);
    else
        *diagnosis = d;
    return status;
}

enum pe_status pe_diagnosis_new(const struct pe_diagnosis_request *request, struct pe_diagnosis **diagnosis,
                                struct pe_failure *err)
{
    return open(request, has_sides(request) ? diagnose_sides : diagnose, diagnosis, err);
}

enum pe_status pe_probe_new(const struct pe_diagnosis_request *request, struct pe_diagnosis **probed,
                            struct pe_failure *err)
{
    return open(request, probe, probed, err);
}

void pe_diagnosis_free(struct pe_diagnosis *d)
{
    if (!d)
        return;
    pe_answer_drop(d);
    pe_values_free(d->values);
    pe_values_free(d->before);
    drop_sides(d);
    pe_diagnosis_free(d->rest);
    pe_parts_drop(d);
    pe_measure_drop(d);
    pe_naming_drop(d);
    pe_evidence_drop(d);
    pe_belief_drop(d);
    free(d->factors);
    free(d->cached);
    free(d);
}

const struct pe_value *pe_diagnosis_answer(const struct pe_diagnosis *d) { return d->stated; }

uint64_t pe_diagnosis_searched(const struct pe_diagnosis *d) { return d->searched; }

/* A mask so far below 0 hides the same keys as -inf. -65504 is the lowest number of f16. */
static bool hides_alike(const struct pe_value *finding)
{
    const struct pe_value *found = member(finding, "found");
    return pe_same(member(finding, "code")->string, "mask_value") && found && found->kind == PE_REAL &&
           found->real <= -65504;
}

/* `undecided` states that this tensor cannot tell another reading from the belief, not that the belief is wrong. */
bool pe_diagnosis_fits(const struct pe_diagnosis *d, bool strict)
{
    const char *passing =
        strict ? "as_believed|undecided" : "as_believed|undecided|angles_f32|coordinates_f32|table_dtype";
    const struct pe_value *findings = member(d->stated, "findings");
    for (size_t i = 0; i < findings->list.n; i++)
        if (!pe_is_among(passing, member(&findings->list.items[i], "code")->string) &&
            (strict || !hides_alike(&findings->list.items[i])))
            return false;
    return member(d->stated, "explained")->boolean;
}
