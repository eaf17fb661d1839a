/* A subject: one configuration of the request with its plan, and further plans with other fields. */
#include "core/analysis/study/study.h"
#include "core/request/request.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* ---- Plans with other fields ---- */

/* The fields of a variant: those of the entry that no override replaces, then the overrides. */
struct fields {
    struct pe_field at[PE_FIELDS_MAX];
    size_t n;
};

/* Do two names mean the same row of the scheme's parameters? */
static bool is_same(const struct pe_param *rows, const char *a, const char *b)
{
    const struct pe_param *row = rows ? pe_param_find(rows, a) : NULL;
    return strcmp(a, b) == 0 || (row && pe_param_find(rows, b) == row);
}

/* The fields that give positions, of which a `len` takes the place. */
static bool gives_positions(const char *name)
{
    return pe_is_among("len|offset|positions|grid|lens|segments|tokens|q_len|k_len|q_offset|q_positions|k_positions",
                       name);
}

static bool is_replaced(const struct pe_variant *variant, const struct pe_param *rows, const char *name)
{
    for (size_t i = 0; i < variant->n_overrides; i++) {
        const char *other = variant->overrides[i].name;
        if (is_same(rows, other, name) || (strcmp(other, "len") == 0 && gives_positions(name)))
            return true;
    }
    return false;
}

/* Errors about an entry's own field point into the entry; those about a common field point to the top. */
static void set_pointer(const struct pe_entry *entry, struct pe_failure *err)
{
    char inner[PE_POINTER_MAX];
    size_t n = 1 + strcspn(err->pointer + (*err->pointer == '/'), "/");
    bool is_common = false;
    for (size_t i = entry->n_own; i < entry->n_fields && *err->pointer; i++)
        is_common = is_common || (strncmp(entry->fields[i].name, err->pointer + 1, n - 1) == 0 &&
                                  strlen(entry->fields[i].name) == n - 1);
    if (is_common || !*entry->pointer)
        return;
    memcpy(inner, err->pointer, sizeof inner);
    snprintf(err->pointer, sizeof err->pointer, "%s%.*s", entry->pointer,
             (int)(sizeof inner - 1 - strlen(entry->pointer)), inner);
}

/* Memory for planning comes on top of what the study has reserved. */
static enum pe_status admit(void *caller, double bytes, struct pe_failure *err)
{
    return pe_study_admit(caller, bytes, err);
}

enum pe_status pe_study_admit(struct pe_analysis *study, double bytes, struct pe_failure *err)
{
    const struct pe_analysis_request *request = study->request;
    return request->admit ? request->admit(request->caller, study->bytes + bytes, err) : PE_OK;
}

enum pe_status pe_subject_plan(struct pe_analysis *study, const struct pe_subject *subject,
                               const struct pe_variant *variant, struct pe_plan **plan, struct pe_failure *err)
{
    struct fields *fields = malloc(sizeof *fields);
    if (!fields)
        return pe_no_memory(err);
    const struct pe_param *rows = subject->plan ? pe_plan_scheme(subject->plan)->params : NULL;
    const struct pe_entry *entry = subject->entry;
    fields->n = 0;
    for (size_t i = 0; i < entry->n_fields && fields->n < PE_FIELDS_MAX; i++)
        if (!is_replaced(variant, rows, entry->fields[i].name))
            fields->at[fields->n++] = entry->fields[i];
    for (size_t i = 0; i < variant->n_overrides && fields->n < PE_FIELDS_MAX; i++)
        if (variant->overrides[i].value.kind != PE_NULL)
            fields->at[fields->n++] = variant->overrides[i];
    struct pe_request request = {.operation = variant->operation,
                                 .fields = fields->at,
                                 .n_fields = fields->n,
                                 .dtype = variant->dtype,
                                 .outputs = variant->outputs,
                                 .n_outputs = variant->n_outputs,
                                 .caller_fields = study->request->caller_fields,
                                 .admit = admit,
                                 .caller = study,
                                 .positions_max = variant->positions_max};
    enum pe_status status = pe_plan_new(&request, plan, err);
    free(fields);
    if (status == PE_INVALID || status == PE_TOO_LARGE)
        set_pointer(subject->entry, err);
    return status;
}

/* ---- The subject ---- */

bool pe_has_rows(const struct pe_analysis *study, const struct pe_subject *subject)
{
    (void)study;
    return subject->n_rows > 0;
}

bool pe_has_ladder(const struct pe_analysis *study, const struct pe_subject *subject)
{
    (void)study;
    return subject->ladder.n > 0;
}

static enum pe_family family_of(const struct pe_scheme_info *scheme)
{
    static const char *const names[] = {
        [PE_ABSOLUTE] = "absolute", [PE_ROTARY] = "rotary", [PE_BIAS] = "bias", [PE_RELATIVE] = "relative"};
    for (enum pe_family f = PE_ABSOLUTE; f < PE_RELATIVE; f++)
        if (strcmp(scheme->family, names[f]) == 0)
            return f;
    return PE_RELATIVE;
}

/* Consecutive positions, the same on all axes, queries and keys alike. */
static bool is_run(const struct pe_sequence *seq)
{
    const struct pe_positions *first = &seq->k[0];
    if (seq->n_grid || seq->piece)
        return false;
    for (unsigned axis = 0; axis < seq->n_axes; axis++)
        if (!pe_positions_same(first, &seq->k[axis]) || !pe_positions_same(first, &seq->q[axis]))
            return false;
    for (uint64_t i = 1; i < first->n; i++)
        if (pe_position_at(first, i) != pe_position_at(first, i - 1) + 1)
            return false;
    return true;
}

enum pe_status pe_subject_init(struct pe_analysis *study, size_t i, struct pe_failure *err)
{
    struct pe_subject *subject = &study->subjects[i];
    *subject = (struct pe_subject){.index = i, .entry = &study->request->entries[i]};
    struct pe_variant variant = {.operation = PE_ENCODE, .dtype = PE_F64, .positions_max = study->positions_max};
    enum pe_status status = pe_subject_plan(study, subject, &variant, &subject->plan, err);
    if (status)
        return status;
    if (pe_sequence_n_batches(&subject->plan->seq))
        return pe_fail(err, subject->plan->sequence.positions.n ? "/positions_layout" : "/attention_mask",
                       "an analysis is of one sequence, not of a batch; give the positions of one of its rows");
    subject->family = family_of(pe_plan_scheme(subject->plan));
    subject->n = subject->plan->seq.k[0].n;
    subject->is_run = is_run(&subject->plan->seq);
    pe_rows_size(subject->plan, &subject->n_rows, &subject->dim);
    return pe_ladder_init(study, subject, err);
}

void pe_subject_drop(struct pe_subject *subject)
{
    pe_rows_drop(&subject->rows);
    free(subject->ladder.w);
    pe_plan_free(subject->plan);
}

/* ---- The rotation of its plan ---- */

/* The rotation of a rotary plan, after planning: pe_rotate_init asks for memory as a part of planning. */

enum pe_status pe_turn_init(struct pe_row_rotation *turn, const struct pe_plan *plan, struct pe_failure *err)
{
    *turn = (struct pe_row_rotation){.columns = NULL};
    plan->scheme->rotate(plan, &turn->rotation, NULL);
    size_t width = 2 * turn->rotation.n_pairs;
    turn->columns = calloc(width, sizeof *turn->columns);
    if (!turn->columns)
        return pe_no_memory(err);
    plan->scheme->rotate(plan, &turn->rotation, turn->columns);
    if (plan->arith == PE_ARITH_EXACT && pe_waves_new(turn->columns, width, &turn->waves))
        return pe_no_memory(err);
    return PE_OK;
}

double pe_turn_bytes(const struct pe_plan *plan)
{
    enum { COLUMN_BYTES = 512 }; /* a prepared column, generously */
    struct pe_rotation rotation;
    plan->scheme->rotate(plan, &rotation, NULL);
    return 2 * (double)rotation.n_pairs * COLUMN_BYTES;
}

size_t pe_turn_input(const struct pe_plan *plan, const char *name)
{
    size_t id = 0;
    while (!pe_same(plan->scheme->info.inputs[id].name, name))
        id++;
    return id;
}

/* ---- Lengths of training and evaluation ---- */

/* Lengths of training and evaluation, and plans of other lengths. */

double pe_train_len(const struct pe_analysis *study, const struct pe_subject *subject)
{
    if (study->fields.train_len != PE_UNSET_INT)
        return (double)study->fields.train_len;
    bool is_scaled = subject->ladder.n > 0 && !isnan(subject->ladder.orig_len);
    return is_scaled ? subject->ladder.orig_len : (double)subject->n;
}

double pe_eval_len(const struct pe_analysis *study, const struct pe_subject *subject)
{
    if (study->fields.eval_len != PE_UNSET_INT)
        return (double)study->fields.eval_len;
    return 2 * floor(pe_train_len(study, subject));
}

void pe_put_length(struct pe_node *node, const char *name, double length)
{
    if (length == floor(length) && fabs(length) < 0x1p53)
        pe_put_integer(node, name, (int64_t)length);
    else
        pe_put_real(node, name, length);
}

/* The number of rows that the subject's own table was resolved to; NULL: it has no such field. */
static const struct pe_value *find_rows(const struct pe_subject *subject)
{
    const struct pe_value *config = pe_plan_config(subject->plan);
    if (strcmp(pe_plan_scheme(subject->plan)->name, "learned") != 0)
        return NULL;
    for (size_t i = 0; i < config->object.n; i++)
        if (strcmp(config->object.fields[i].name, "rows") == 0)
            return &config->object.fields[i].value;
    return NULL;
}

/* The fields of a sequence that a list of positions replaces. */
static const char *const of_sequence[] = {"len",      "offset",      "grid",       "lens",  "cu_seqlens",
                                          "shard",    "segments",    "tokens",     "q_len", "k_len",
                                          "q_offset", "q_positions", "k_positions"};
enum { N_OF_SEQUENCE = sizeof of_sequence / sizeof of_sequence[0] };

/* Returns the number of fields. */
static size_t put_list(const struct pe_run *run, struct pe_field *fields)
{
    struct pe_tensor list = {.dtype = PE_F64, .rank = 1, .shape = {run->n}, .data = run->positions};
    fields[0] = (struct pe_field){"positions", {.kind = PE_ARRAY, .array = list}};
    for (size_t i = 0; i < N_OF_SEQUENCE; i++)
        fields[1 + i] = (struct pe_field){of_sequence[i], {.kind = PE_NULL}};
    return 1 + N_OF_SEQUENCE;
}

static size_t put_run(const struct pe_run *run, struct pe_field *fields)
{
    struct pe_tensor grid = {.dtype = PE_F64, .rank = 1, .shape = {run->n_grid}, .data = run->grid};
    fields[0] = (struct pe_field){"grid", {.kind = PE_ARRAY, .array = grid}};
    if (run->grid)
        return 1;
    fields[0] = (struct pe_field){"len", {.kind = PE_INTEGER, .integer = (int64_t)run->n}};
    fields[1] = (struct pe_field){"offset", {.kind = PE_INTEGER, .integer = run->offset}};
    return run->offset ? 2 : 1;
}

enum pe_status pe_subject_plan_run(struct pe_analysis *study, const struct pe_subject *subject,
                                   const struct pe_run *run, struct pe_plan **plan, struct pe_failure *err)
{
    struct pe_field overrides[PE_RUN_OVERRIDES + N_OF_SEQUENCE + 2];
    const struct pe_value *rows = find_rows(subject);
    size_t n = 0;
    for (; n < run->n_overrides; n++)
        overrides[n] = run->overrides[n];
    n += run->positions ? put_list(run, overrides + n) : put_run(run, overrides + n);
    if (rows)
        overrides[n++] = (struct pe_field){"rows", *rows};
    struct pe_variant variant = {PE_ENCODE, PE_F64, overrides, n, run->outputs, run->n_outputs, 0};
    return pe_subject_plan(study, subject, &variant, plan, err);
}

enum pe_status pe_subject_plan_rows(struct pe_analysis *study, const struct pe_subject *subject,
                                    const struct pe_run *run, struct pe_plan **plan, struct pe_failure *err)
{
    static const char *const outputs[][2] = {
        [PE_ABSOLUTE] = {"encoding"}, [PE_ROTARY] = {"cos", "sin"}, [PE_BIAS] = {"bias"}};
    static const struct pe_field fields[] = {
        {"key_mask", {.kind = PE_NULL}}, {"x", {.kind = PE_NULL}}, {"form", {.kind = PE_STRING, .string = "pairs"}}};
    bool is_rotary = subject->family == PE_ROTARY;
    struct pe_run whole = *run;
    whole.overrides = fields;
    whole.n_overrides = is_rotary ? 3 : 2;
    whole.outputs = outputs[subject->family];
    whole.n_outputs = is_rotary ? 2 : 1;
    return pe_subject_plan_run(study, subject, &whole, plan, err);
}

/* ---- Work ---- */

/* What an analysis spends beside its metrics: plans, and the numbers that they fill.
 *
 * A plan takes its cost of planning. A scheme that computes each row from the row before it takes the steps to its last
 * row, whichever rows are read. Other numbers take a little each, or as much as the scheme states. */

/* A number of a row as a double: waves are evaluated to the last bit. A bias of one head at one distance: a call. */
enum { NUMBER_WORK = 24, CALL_WORK = 256 };

/* Multiply-adds that take a nanosecond, as pe_plan_work counts them. */
enum { WORK_OF_A_NS = 4 };

double pe_planning_work(const struct pe_subject *subject) { return WORK_OF_A_NS * subject->plan->cost.ns; }

/* A plan with more steps than it may have is refused, and takes none. */
double pe_reach_work(const struct pe_subject *subject, double reach)
{
    double steps = pe_positions_last(subject->plan->seq.k) + 1;
    double work = subject->plan->work > 0 && steps > 0 ? subject->plan->work / steps * reach : 0;
    return work <= PE_STEPS_WORK_MAX ? work : 0;
}

static double distance_work(const struct pe_plan *plan)
{
    return fmax(plan->distance_work > 0 ? plan->distance_work : pe_plan_each(plan), CALL_WORK);
}

/* Rows of a rotary scheme are cosines and sines, which no scale multiplies. */
static double number_work(const struct pe_subject *subject)
{
    const struct pe_plan *plan = subject->plan;
    if (subject->family == PE_BIAS)
        return distance_work(plan);
    if (subject->family == PE_ROTARY)
        return plan->arith != PE_ARITH_EXACT ? PE_SLOW_WORK : NUMBER_WORK;
    return fmax(plan->pace == PE_SLOW ? pe_plan_each(plan) : 0, NUMBER_WORK);
}

double pe_numbers_work(const struct pe_subject *subject, double n) { return n * number_work(subject); }

double pe_scale_work(const struct pe_subject *subject, double n)
{
    bool has_scale = subject->family == PE_ROTARY && subject->plan->element_work > 0;
    return has_scale ? n * subject->plan->element_work : 0;
}

/* Distances whose biases the plan stores, so that all rows of its map copy them; 0: each element is computed. */
static double stored_distances(const struct pe_plan *plan, size_t output)
{
    const struct pe_output *o = pe_plan_output(plan, output);
    double n = o->rank == 3 ? (double)o->shape[0] * (double)(o->shape[1] + o->shape[2]) : 0;
    bool is_stored = n * sizeof(double) <= (double)PE_BIAS_KEPT_MAX && pe_fill_line(plan, output, 0, 0, 0, NULL);
    return is_stored ? n : 0;
}

double pe_output_work(const struct pe_plan *plan, size_t output)
{
    const struct pe_output *o = pe_plan_output(plan, output);
    double n = (double)o->n_rows * (double)o->row_len, distances = stored_distances(plan, output);
    if (distances > 0)
        return n * NUMBER_WORK + distances * distance_work(plan);
    return n * fmax(plan->pace == PE_SLOW ? pe_plan_each(plan) : 0, NUMBER_WORK);
}

/* ---- What metrics read of the request: which tensors are answered, lists of words ---- */

double *pe_study_tensor(struct pe_analysis *study, const struct pe_subject *subject, const char *name)
{
    for (size_t i = 0; i < study->n_tensors; i++)
        if (study->tensors[i].entry == subject->index && strcmp(study->tensors[i].row->name, name) == 0)
            return study->tensors[i].data;
    return NULL;
}

const char *pe_word_at(const struct pe_value *given, const char *const *usual, size_t i)
{
    if (!given)
        return usual[i];
    return i < given->list.n ? given->list.items[i].string : NULL;
}

static enum pe_status unknown_word(const char *word, const char *const *allowed, const char *name, const char *pointer,
                                   struct pe_failure *err)
{
    char list[128];
    /* "f32, f16, bf16" */
    size_t room = sizeof list;
    size_t n = 0;
    for (size_t i = 0; allowed[i] && n < room; i++)
        n += (size_t)snprintf(list + n, room - n, "%s%s", i ? ", " : "", allowed[i]);
    const char *nearest = pe_nearest(word, allowed);
    if (nearest)
        return pe_fail(err, pointer, "unknown name \"%.64s\" in %s; nearest: \"%s\"; allowed: %s", word, name, nearest,
                       list);
    return pe_fail(err, pointer, "unknown name \"%.64s\" in %s; allowed: %s", word, name, list);
}

static enum pe_status check_word(const struct pe_value *given, size_t i, const char *const *allowed, const char *name,
                                 struct pe_failure *err)
{
    char pointer[PE_POINTER_MAX];
    const struct pe_value *item = &given->list.items[i];
    snprintf(pointer, sizeof pointer, "/%s/%zu", name, i);
    if (item->kind != PE_STRING)
        return pe_fail(err, pointer, "%s must be a list of names, for instance [\"%s\"]", name, allowed[0]);
    size_t w = 0;
    while (allowed[w] && strcmp(allowed[w], item->string) != 0)
        w++;
    if (!allowed[w])
        return unknown_word(item->string, allowed, name, pointer, err);
    for (size_t j = 0; j < i; j++)
        if (strcmp(given->list.items[j].string, item->string) == 0)
            return pe_fail(err, pointer, "%s names \"%s\" twice", name, item->string);
    return PE_OK;
}

enum pe_status pe_words_check(const struct pe_value *given, const char *const *allowed, const char *name,
                              struct pe_failure *err)
{
    char pointer[PE_POINTER_MAX];
    enum pe_status status = PE_OK;
    snprintf(pointer, sizeof pointer, "/%s", name);
    if (given && (given->kind != PE_LIST || given->list.n == 0))
        return pe_fail(err, pointer, "%s must be a list of names, for instance [\"%s\"]", name, allowed[0]);
    for (size_t i = 0; given && !status && i < given->list.n; i++)
        status = check_word(given, i, allowed, name, err);
    return status;
}
