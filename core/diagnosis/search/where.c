/* Where the belief fits, in the answer: rows that are not finite or zero, the part that is as believed, and what the
 * rest is.
 *
 * Rows are said as the reader counts them: positions of the sequence, rows of the batch, heads, pairs. A rest that was
 * described (measure/parts.c), or explained by a diagnosis of its own (../diagnosis.c), explains the tensor together
 * with the part that fits: the candidate is then the belief, with `pieces` of which each is verified against its
 * numbers. */
#include "core/diagnosis/diagnosis.h"
#include "core/diagnosis/measure/profile.h"

#include <ctype.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { STRETCHES_MAX = 16, TEXT = 400, SENTENCE = PE_PART_SENTENCE };

/* ---- The rows ---- */

static const char *const of_not_finite[] = {
    "Numbers that are NaN or infinite: {found.count}, in {found.n_rows} of {found.of_rows} rows, the first in row "
    "{found.first}; the other rows were compared.",
    "Every row has numbers that are NaN or infinite, {found.count} in all, so nothing could be compared."};
const struct pe_fault pe_fault_not_finite = {FAULT_TEXTS("not_finite", "finding", FINDING, 0, "NaN or infinite numbers",
                                                         "The tensor has NaN or infinities.", of_not_finite)};

/* Their sentences state what is measured. */
#define PART(name, label, summary)                                                                                     \
    const struct pe_fault pe_fault_##name = {FAULT_TEXT(#name, "finding", FINDING, 0, label, summary, summary)}
PART(rows_zero, "rows of zeros", "Rows are zero.");
PART(rows_other, "rows differ", "Some rows are as believed, others are not.");
PART(batch_rows_other, "batch rows differ", "Some rows of the batch are as believed, others are not.");
PART(heads_other, "heads differ", "Some heads are as believed, others are not.");
PART(pairs_other, "pairs differ", "Some pairs are as believed in every row, others are not.");

static const char *const names[PE_N_PART_AXES] = {"batch_rows", "heads", "rows", "pairs"};

/* ---- Numbers ---- */

void pe_answer_put_index(const struct pe_diagnosis *d, struct pe_node *node, size_t t, uint64_t row, uint64_t col)
{
    int64_t index[PE_RANK_MAX];
    uint64_t element = pe_moved_element(&d->evidence, pe_evidence_element(&d->evidence, t, row, col));
    const struct pe_tensor *tensor = pe_evidence_sent(&d->evidence);
    for (unsigned axis = tensor->rank; axis-- > 0; element /= tensor->shape[axis])
        index[axis] = (int64_t)(element % tensor->shape[axis]);
    pe_put_integers(node, "index", index, tensor->rank);
}

void pe_answer_put_number(struct pe_node *node, const char *name, double x)
{
    if (isfinite(x))
        pe_put_real(node, name, x);
    else
        pe_put_string(node, name, isnan(x) ? "NaN" : x > 0 ? "Infinity" : "-Infinity");
}

double pe_answer_shortest(enum pe_dtype dtype, double x)
{
    enum { DIGITS_MAX = 9 };
    char text[32];
    for (int digits = 1; digits <= DIGITS_MAX && dtype != PE_F64 && isfinite(x); digits++) {
        snprintf(text, sizeof text, "%.*g", digits, x);
        double y = strtod(text, NULL);
        if (pe_round_to(dtype, y) == x)
            return y;
    }
    return x;
}

/* ---- Stretches ---- */

/* Indices whose mark is one of two. */
struct indices {
    const unsigned char *marks;
    uint64_t n;
    unsigned char is, or ;
};

static bool is_one(const struct indices *x, uint64_t i) { return x->marks[i] == x->is || x->marks[i] == x->or ; }

static struct indices that_fit(const struct pe_marks *marks, enum pe_part_axis axis)
{
    return (struct indices){marks->of[axis], marks->n[axis], PE_FITS_HERE, PE_FITS_HERE};
}

static struct indices that_differ(const struct pe_marks *marks, enum pe_part_axis axis)
{
    return (struct indices){marks->of[axis], marks->n[axis], PE_DIFFERS_HERE, PE_DIFFERS_HERE | PE_FITS_HERE};
}

/* The next stretch [*first, *end) from *end on; false: there is none. */
static bool next_stretch(const struct indices *x, uint64_t *first, uint64_t *end)
{
    for (*first = *end; *first < x->n && !is_one(x, *first);)
        ++*first;
    for (*end = *first; *end < x->n && is_one(x, *end);)
        ++*end;
    return *end > *first;
}

static uint64_t count(const struct indices *x)
{
    uint64_t n = 0;
    for (uint64_t i = 0; i < x->n; i++)
        n += is_one(x, i);
    return n;
}

/* As [first, last], at most 16; null where there is one index at all. */
static void put_stretches(struct pe_node *node, const char *name, const struct indices *x)
{
    uint64_t first, end = 0;
    struct pe_node *list = x->n > 1 ? pe_put_list(node, name) : NULL;
    if (!list)
        pe_put_null(node, name);
    for (size_t n = 0; list && n < STRETCHES_MAX && next_stretch(x, &first, &end); n++)
        pe_put_integers(list, NULL, (const int64_t[]){(int64_t)first, (int64_t)end - 1}, 2);
}

/* "0 to 3, 8, …" */
static void write_stretches(enum pe_lang lang, const struct indices *x, char *text)
{
    enum { SHOWN = 4 };
    uint64_t first, end = 0;
    size_t n = 0;
    for (size_t i = 0; next_stretch(x, &first, &end) && n + 2 < TEXT; i++) {
        if (i)
            n += (size_t)snprintf(text + n, TEXT - n, "%s", pe_text_in(lang, ", "));
        if (i == SHOWN) {
            snprintf(text + n, TEXT - n, "…");
            return;
        }
        n += end - first > 1 ? (size_t)snprintf(text + n, TEXT - n, pe_text_in(lang, "%llu to %llu"),
                                                (unsigned long long)first, (unsigned long long)end - 1)
                             : (size_t)snprintf(text + n, TEXT - n, "%llu", (unsigned long long)first);
    }
}

/* ---- Words ---- */

/* A pattern with each %s in it replaced by the next part. */
void pe_part_write(char *text, const char *pattern, const char *const *parts)
{
    size_t n = 0;
    for (const char *at = pattern, *hole; n < SENTENCE; at = hole + 2) {
        hole = strstr(at, "%s");
        size_t length = hole ? (size_t)(hole - at) : strlen(at);
        n += (size_t)snprintf(text + n, SENTENCE - n, "%.*s", (int)length, at);
        if (!hole)
            return;
        if (n < SENTENCE)
            n += (size_t)snprintf(text + n, SENTENCE - n, "%s", *parts++);
    }
}

/* Of one, and of several. */
struct words {
    const char *one, *many;
};
static const struct words nouns[PE_N_PART_AXES] = {
    {"batch row %s", "batch rows %s"}, {"head %s", "heads %s"}, {"row %s", "rows %s"}, {"pair %s", "pairs %s"}};
static const struct words as_believed = {"%s is as believed", "%s are as believed"};
static const struct words are_zero = {"%s is zero", "%s are zero"}, are_not = {"%s is not", "%s are not"},
                          themselves = {"%s", "%s"};

/* "rows 16 to 23 are zero" */
static void write_clause(enum pe_lang lang, enum pe_part_axis axis, const struct indices *x, bool is_whole,
                         const struct words *what, char *text)
{
    char indices[TEXT], subject[SENTENCE];
    const char *parts[] = {indices};
    bool are_many = count(x) > 1;
    write_stretches(lang, x, indices);
    pe_part_write(subject, pe_text_in(lang, are_many ? nouns[axis].many : nouns[axis].one), parts);
    size_t n = strlen(subject);
    if (!is_whole && n < sizeof subject)
        snprintf(subject + n, sizeof subject - n, "%s", pe_text_in(lang, " (not in every head and batch row)"));
    parts[0] = subject;
    pe_part_write(text, pe_text_in(lang, are_many ? what->many : what->one), parts);
}

void pe_part_sentence(struct pe_diagnosis *d, struct pe_node *node, char text[PE_N_LANGS][PE_PART_SENTENCE])
{
    const char *texts[PE_N_LANGS];
    for (int lang = 0; lang < PE_N_LANGS; lang++) {
        text[lang][0] = (char)toupper((unsigned char)text[lang][0]);
        texts[lang] = text[lang];
    }
    pe_put_details(node, d->request->lang, texts);
}

struct pe_node *pe_part_finding(struct pe_diagnosis *d, struct pe_node *list, const struct pe_fault *fault, size_t t)
{
    char pointer[32];
    struct pe_node *node = pe_put_object(list, NULL);
    snprintf(pointer, sizeof pointer, "/%s", pe_evidence_name(&d->evidence, t));
    pe_put_string(node, "code", fault->info.code);
    pe_put_string(node, "pointer", pointer);
    return node;
}

/* Where a part is: the indices of each axis that it has a number of. */
static void put_indices(struct pe_node *node, const struct pe_marks *marks)
{
    for (enum pe_part_axis a = PE_PART_BATCH; a <= PE_PART_ROWS; a++) {
        struct indices x = that_differ(marks, a);
        put_stretches(node, names[a], &x);
    }
}

/* ---- Numbers that are not finite ---- */

void pe_answer_not_finite(struct pe_diagnosis *d, struct pe_node *list)
{
    enum { SOME_ROWS, EVERY_ROW };
    const struct pe_evidence *e = &d->evidence;
    const struct pe_not_finite *bad = &e->not_finite;
    struct pe_place sizes = pe_evidence_places(e), first = pe_evidence_place(e, &sizes, bad->row);
    struct pe_marks marks;
    if (!bad->n)
        return;
    d->no_memory |= !pe_marks_new(&marks, e, 0);
    if (d->no_memory)
        return;
    for (uint64_t i = 0; i < e->n_rows; i++)
        if (e->aside[i] & PE_ASIDE_NOT_FINITE)
            pe_marks_row(&marks, e, i, false);
    struct indices rows = that_differ(&marks, PE_PART_ROWS);
    struct pe_node *node = pe_part_finding(d, list, &pe_fault_not_finite, bad->t);
    struct pe_node *found = pe_put_object(node, "found");
    pe_put_integer(found, "count", (int64_t)bad->n);
    pe_answer_put_number(found, "value", e->view.is_negative[bad->t] ? -bad->value : bad->value);
    pe_answer_put_index(d, found, bad->t, bad->row, bad->col);
    pe_put_integer(found, "first", (int64_t)first.row);
    pe_put_integer(found, "n_rows", (int64_t)count(&rows));
    pe_put_integer(found, "of_rows", (int64_t)sizes.row);
    put_indices(found, &marks);
    pe_marks_drop(&marks);
    pe_put_null(node, "believed");
    pe_put_null(node, "meaning");
    pe_put_detail(node, d->request->lang, pe_fault_not_finite.info.details[d->sample.n ? SOME_ROWS : EVERY_ROW]);
}

/* ---- Rows of zeros ---- */

static bool predicts_zero(const struct pe_model *m, uint64_t row)
{
    double x[64];
    const struct pe_evidence *e = &m->d->evidence;
    enum { SOME = sizeof x / sizeof *x };
    for (size_t t = 0; t < e->n_tensors; t++)
        for (uint64_t c0 = 0, n; c0 < e->row_len; c0 += n) {
            n = e->row_len - c0 < SOME ? e->row_len - c0 : SOME;
            pe_model_fill(m, t, row, c0, (size_t)n, x);
            for (uint64_t c = 0; c < n; c++)
                if (fabs(x[c]) > pe_roundoff(e->dtype) * e->largest)
                    return false;
        }
    return true;
}

/* Marks rows that are zero, where the first candidate, or else the belief, has something else. false: there is none. */
static bool mark_zeros(struct pe_diagnosis *d, const struct pe_answer *a, struct pe_marks *marks)
{
    const struct pe_evidence *e = &d->evidence;
    const struct pe_model *m = a->n ? a->candidates[0].model : d->belief.model;
    uint64_t n = 0;
    bool has_any = e->n_zero && !d->as_believed && m && m->has_shape;
    d->no_memory |= has_any && !pe_marks_new(marks, e, 0);
    for (uint64_t i = 0; has_any && !d->no_memory && i < e->n_rows && !pe_is_cancelled(); i++) {
        if (pe_evidence_is_padding(e, i) && !(e->aside && e->aside[i] & PE_ASIDE_ZERO))
            continue;
        bool differs = e->aside && e->aside[i] & PE_ASIDE_ZERO && !predicts_zero(m, i);
        pe_marks_row(marks, e, i, !differs);
        n += differs;
    }
    if (has_any && !d->no_memory && !n)
        pe_marks_drop(marks);
    return n;
}

/* The axis by which zeros are said: whole batch rows, heads or rows; else rows. */
static enum pe_part_axis axis_of(const struct pe_marks *marks, bool *is_clean)
{
    enum pe_part_axis axis = pe_marks_choose(marks, is_clean);
    return axis < PE_N_PART_AXES && *is_clean ? axis : PE_PART_ROWS;
}

static const struct pe_fault *fault_of(enum pe_part_axis axis, bool are_zero_rows)
{
    switch (axis) {
    case PE_PART_BATCH: return &pe_fault_batch_rows_other;
    case PE_PART_HEADS: return &pe_fault_heads_other;
    case PE_PART_ROWS: return are_zero_rows ? &pe_fault_rows_zero : &pe_fault_rows_other;
    default: return &pe_fault_pairs_other;
    }
}

static void put_count(struct pe_node *found, const struct indices *x, const char *are)
{
    pe_put_integer(found, "n", (int64_t)count(x));
    pe_put_integer(found, "of", (int64_t)x->n);
    pe_put_string(found, "are", are);
}

bool pe_answer_zeros(struct pe_diagnosis *d, const struct pe_answer *a, struct pe_node *list)
{
    struct pe_marks marks;
    char text[PE_N_LANGS][SENTENCE], clause[2][SENTENCE];
    bool is_clean, is_believed = a->n && pe_fits(a->candidates[0].all.verdict) && a->candidates[0].explanation.h.n == 0;
    if (!mark_zeros(d, a, &marks))
        return false;
    enum pe_part_axis axis = axis_of(&marks, &is_clean);
    struct indices zeros = that_differ(&marks, axis), others = that_fit(&marks, axis);
    struct pe_node *node = pe_part_finding(d, list, fault_of(axis, true), 0), *found = pe_put_object(node, "found");
    put_count(found, &zeros, "zero");
    put_indices(found, &marks);
    for (enum pe_lang lang = 0; lang < PE_N_LANGS; lang++) {
        write_clause(lang, axis, &zeros, is_clean, &are_zero, clause[0]);
        write_clause(lang, axis, &others, true, &as_believed, clause[1]);
        if (is_believed && d->belief.is_given && count(&others))
            snprintf(text[lang], SENTENCE, pe_text_in(lang, "%s; %s."), clause[0], clause[1]);
        else
            snprintf(text[lang], SENTENCE, pe_text_in(lang, "%s."), clause[0]);
    }
    pe_put_null(node, "believed");
    pe_put_null(node, "meaning");
    pe_part_sentence(d, node, text);
    pe_marks_drop(&marks);
    return true;
}

void pe_answer_zero_rows(struct pe_diagnosis *d, const struct pe_answer *a, struct pe_node *list)
{
    struct pe_marks marks;
    if (!mark_zeros(d, a, &marks))
        return;
    struct pe_node *node = pe_put_object(list, NULL);
    pe_put_string(node, "name", "zero_rows");
    put_indices(node, &marks);
    pe_marks_drop(&marks);
}

/* ---- The part that is as believed, and the rest ---- */

static const struct pe_value *member(const struct pe_value *v, const char *name)
{
    return pe_field_find(v->object.fields, v->object.n, name);
}

const struct pe_value *pe_answer_of_rest(const struct pe_diagnosis *d)
{
    const struct pe_value *answer = d->rest ? d->rest->stated : NULL;
    return answer && member(answer, "explained")->boolean ? &member(answer, "candidates")->list.items[0] : NULL;
}

static bool has_part(const struct pe_diagnosis *d) { return pe_parts_tell(d) && d->parts->axis < PE_N_PART_AXES; }

/* Has every row a factor of its own? */
static bool is_whole(const struct pe_diagnosis *d) { return pe_parts_tell(d) && !has_part(d); }

bool pe_answer_is_in_parts(const struct pe_diagnosis *d)
{
    const struct pe_parts *p = d->parts;
    return pe_parts_tell(d) && (p->rest == PE_REST_NUMBER || p->rest == PE_REST_MOVED || p->rest == PE_REST_SCALED ||
                                pe_answer_of_rest(d) != NULL);
}

/* Believed rows of the rest from i on that follow each other, up or down: the end of the run. */
static size_t end_of_run(const struct pe_parts *p, size_t i)
{
    size_t end = i + 1;
    bool is_down = end < p->n_moved && p->moved[end] + 1 == p->moved[i];
    while (end < p->n_moved && p->moved[end] + is_down == p->moved[end - 1] + !is_down)
        end++;
    return end;
}

static void put_moved(const struct pe_parts *p, struct pe_node *node)
{
    struct pe_node *list = pe_put_list(node, "believed_rows");
    for (size_t i = 0, end, n = 0; i < p->n_moved && n < STRETCHES_MAX; i = end, n++) {
        end = end_of_run(p, i);
        pe_put_integers(list, NULL, (const int64_t[]){(int64_t)p->moved[i], (int64_t)p->moved[end - 1]}, 2);
    }
}

static void put_factors(const struct pe_parts *p, struct pe_node *node)
{
    pe_put_real(node, "least", p->least);
    pe_put_real(node, "most", p->most);
    pe_put_boolean(node, "are_normal", p->are_normal);
}

static void put_rest(struct pe_diagnosis *d, struct pe_node *node)
{
    const struct pe_parts *p = d->parts;
    const struct pe_value *candidate = pe_answer_of_rest(d);
    if (p->rest == PE_REST_NUMBER)
        pe_answer_put_number(node, "number", pe_answer_shortest(d->evidence.dtype, p->number));
    else if (p->rest == PE_REST_MOVED)
        put_moved(p, node);
    else if (p->rest == PE_REST_SCALED)
        put_factors(p, node);
    else if (candidate)
        pe_put_value(node, "codes", member(candidate, "codes"));
    else {
        pe_put_real(node, "mean", p->mean);
        pe_put_real(node, "deviation", p->deviation);
    }
}

static const char *word_of_rest(const struct pe_diagnosis *d)
{
    static const char *const words[] = {"other", "zero", "number", "repeated", "moved", "scaled"};
    return pe_answer_of_rest(d) ? "explained" : words[d->parts->rest];
}

/* The sentences of the diagnosis of the rest. */
static void write_explained(const struct pe_diagnosis *d, enum pe_lang lang, char *text)
{
    const struct pe_value *findings = member(d->rest->stated, "findings");
    size_t n = 0;
    for (size_t i = 0; i < findings->list.n && n < SENTENCE; i++) {
        const struct pe_value *detail = member(&findings->list.items[i], lang == PE_ZH ? "detail_zh" : "detail");
        bool is_apart = i && lang != PE_ZH;
        n += (size_t)snprintf(text + n, SENTENCE - n, "%s%s", is_apart ? " " : "", detail ? detail->string : "");
    }
}

static void write_factors(enum pe_lang lang, const struct pe_parts *p, char *text, size_t room)
{
    size_t n = (size_t)snprintf(text, room, pe_text_in(lang, ", %.5g to %.5g"), p->least, p->most);
    if (p->are_normal && n < room)
        snprintf(text + n, room - n, "%s",
                 pe_text_in(lang, ": every row has the root mean square 1, as a norm behind the rotation gives it"));
}

/* Every row has a factor of its own. */
static void put_whole(struct pe_diagnosis *d, struct pe_node *list)
{
    char text[PE_N_LANGS][SENTENCE], factors[SENTENCE];
    struct pe_node *node = pe_part_finding(d, list, &pe_fault_rows_other, 0), *found = pe_put_object(node, "found");
    pe_put_string(found, "are", word_of_rest(d));
    put_factors(d->parts, found);
    for (enum pe_lang lang = 0; lang < PE_N_LANGS; lang++) {
        write_factors(lang, d->parts, factors, sizeof factors);
        snprintf(text[lang], SENTENCE, pe_text_in(lang, "Every row is as believed times a factor of its own%s."),
                 factors);
    }
    pe_put_null(node, "believed");
    pe_put_null(node, "meaning");
    pe_part_sentence(d, node, text);
}

/* What the rest is, as a clause about it. */
static void write_rest(struct pe_diagnosis *d, enum pe_lang lang, const struct indices *x, char *text)
{
    static const struct words texts[] = {
        [PE_REST_OTHER] = {"%s is not, and is no multiple, copy or constant",
                           "%s are not, and are no multiple, copy or constant"},
        [PE_REST_NUMBER] = {"%s is one number everywhere", "%s are one number everywhere"},
        [PE_REST_REPEATED] = {"%s is one row again and again", "%s are one row again and again"},
        [PE_REST_SCALED] = {"%s is as believed times a factor", "%s are as believed times a factor of each"},
        [PE_REST_MOVED] = {"%s is another believed row:", "%s are other believed rows:"},
    };
    const struct pe_parts *p = d->parts;
    write_clause(lang, p->axis, x, p->is_clean, &texts[p->rest], text);
    size_t n = strlen(text);
    if (p->rest == PE_REST_NUMBER)
        snprintf(text + n, SENTENCE - n, pe_text_in(lang, ": %.7g"), p->number);
    else if (p->rest == PE_REST_SCALED)
        write_factors(lang, p, text + n, SENTENCE - n);
    else if (p->rest == PE_REST_MOVED)
        snprintf(text + n, SENTENCE - n,
                 end_of_run(p, 0) < p->n_moved ? pe_text_in(lang, " %llu to %llu, …")
                                               : pe_text_in(lang, " %llu to %llu"),
                 (unsigned long long)p->moved[0], (unsigned long long)p->moved[end_of_run(p, 0) - 1]);
    else
        snprintf(text + n, SENTENCE - n, pe_text_in(lang, " (mean %.3g, standard deviation %.3g)"), p->mean,
                 p->deviation);
}

static void put_part(struct pe_diagnosis *d, struct pe_node *list)
{
    const struct pe_parts *p = d->parts;
    struct indices good = that_fit(&p->marks, p->axis), bad = that_differ(&p->marks, p->axis);
    struct pe_node *node = pe_part_finding(d, list, fault_of(p->axis, false), 0), *found = pe_put_object(node, "found");
    char text[PE_N_LANGS][SENTENCE], clause[2][SENTENCE];
    put_count(found, &bad, word_of_rest(d));
    put_indices(found, &p->marks);
    put_rest(d, found);
    for (enum pe_lang lang = 0; lang < PE_N_LANGS; lang++) {
        write_clause(lang, p->axis, &good, true, &as_believed, clause[0]);
        if (pe_answer_of_rest(d)) {
            char own[SENTENCE];
            write_explained(d, lang, own);
            write_clause(lang, p->axis, &bad, p->is_clean, &themselves, clause[1]);
            snprintf(text[lang], SENTENCE, pe_text_in(lang, "%s; %s: %s"), clause[0], clause[1], own);
            continue;
        }
        write_rest(d, lang, &bad, clause[1]);
        snprintf(text[lang], SENTENCE, pe_text_in(lang, "%s; %s."), clause[0], clause[1]);
    }
    pe_put_null(node, "believed");
    pe_put_null(node, "meaning");
    pe_part_sentence(d, node, text);
}

/* Pairs that fit in every row, where no row does. */
static void put_pairs(struct pe_diagnosis *d, struct pe_node *list)
{
    const struct pe_marks *marks = &d->parts->marks;
    char text[PE_N_LANGS][SENTENCE], clause[2][SENTENCE];
    struct indices good = that_fit(marks, PE_PART_PAIRS), bad = that_differ(marks, PE_PART_PAIRS);
    uint64_t n_good = count(&good);
    if (d->evidence.n_rows < 2 || n_good == 0 || 5 * n_good < good.n || n_good == good.n)
        return;
    struct pe_node *node = pe_part_finding(d, list, &pe_fault_pairs_other, 0), *found = pe_put_object(node, "found");
    put_count(found, &bad, "other");
    put_stretches(found, names[PE_PART_PAIRS], &bad);
    for (enum pe_lang lang = 0; lang < PE_N_LANGS; lang++) {
        write_clause(lang, PE_PART_PAIRS, &good, true, &as_believed, clause[0]);
        write_clause(lang, PE_PART_PAIRS, &bad, true, &are_not, clause[1]);
        snprintf(text[lang], SENTENCE, pe_text_in(lang, "%s; %s."), clause[0], clause[1]);
    }
    pe_put_null(node, "believed");
    pe_put_null(node, "meaning");
    pe_part_sentence(d, node, text);
}

void pe_answer_part(struct pe_diagnosis *d, struct pe_node *list)
{
    if (pe_parts_are_single(d))
        return;
    if (is_whole(d))
        put_whole(d, list);
    else if (has_part(d))
        put_part(d, list);
    else if (d->parts && d->parts->marks.n[PE_PART_PAIRS] > 1)
        put_pairs(d, list);
}

const char *pe_answer_part_code(const struct pe_diagnosis *d)
{
    return fault_of(has_part(d) ? d->parts->axis : PE_PART_ROWS, false)->info.code;
}

void pe_answer_piece(struct pe_diagnosis *d, bool is_rest, struct pe_node *node)
{
    const struct pe_parts *p = d->parts;
    enum pe_part_axis axis = has_part(d) ? p->axis : PE_PART_ROWS;
    struct indices x = is_rest ? that_differ(&p->marks, axis) : that_fit(&p->marks, axis);
    put_stretches(node, names[axis], &x);
    if (is_rest && !pe_answer_of_rest(d))
        put_rest(d, node);
}

void pe_answer_where(struct pe_diagnosis *d, struct pe_node *root)
{
    const struct pe_marks *marks = d->parts ? &d->parts->marks : NULL;
    if (!marks) {
        pe_put_null(root, "where");
        return;
    }
    struct indices fit[PE_N_PART_AXES];
    for (enum pe_part_axis a = 0; a < PE_N_PART_AXES; a++)
        fit[a] = that_fit(marks, a);
    struct pe_node *node = pe_put_object(root, "where");
    put_stretches(node, names[PE_PART_ROWS], &fit[PE_PART_ROWS]);
    put_stretches(node, names[PE_PART_PAIRS], &fit[PE_PART_PAIRS]);
    struct pe_node *groups = pe_put_object(node, "groups");
    put_stretches(groups, names[PE_PART_BATCH], &fit[PE_PART_BATCH]);
    put_stretches(groups, names[PE_PART_HEADS], &fit[PE_PART_HEADS]);
}
