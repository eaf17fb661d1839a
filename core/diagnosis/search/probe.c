/* The few numbers that tell readings apart.
 *
 * Somebody sees a tensor in a debugger and can type ten numbers of it. Which ten? The belief and every single mistake
 * predict all numbers where the reader can look; an entry separates two of them if their numbers there differ by more
 * than what typing and float32 leave open, so much that a number typed of one cannot fit the other. Each step takes the
 * entry that separates the most pairs that are still together; a pair with the belief counts a thousand times, because
 * "is it right?" is the first question. To separate all pairs by the fewest entries is set cover; the greedy choice is
 * within 1 + ln(pairs) of it (Johnson 1974, Approximation algorithms for combinatorial problems).
 *
 * Hypotheses with one signature have the same numbers everywhere and are one; those that no entry separates from the
 * belief are left out, because no number typed could show them. The same choice serves a diagnosis of typed numbers:
 * if several readings fit, its `next` is the entry that separates most of them (pe_answer_next). Work and memory follow
 * from the number of hypotheses and are refused before these are planned. */
#include "core/diagnosis/diagnosis.h"
#include "core/numeric/numeric.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

enum { HYPOTHESES_MAX = 512, COUNT_MAX = 32, OF_BELIEF = 1000, TOGETHER_MAX = 16 };
#define APART 4 /* times what may be lost: twice for each of two */

struct pair {
    uint16_t a, b;
};

struct probe {
    struct pe_diagnosis *d;
    struct pe_failure *err;
    struct pe_sample places; /* whose numbers are the entries */
    size_t n_entries;
    double *least;        /* [n_entries]: difference that separates two numbers */
    double *numbers;      /* [n, n_entries]; NaN: not finite */
    double *count;        /* [n_entries]: pairs that an entry separates, weighted */
    uint32_t *piece;      /* [n_entries]: of the sample */
    const char **codes;   /* [n]; NULL: the belief */
    int *surprises;       /* [n] */
    uint64_t *signatures; /* [n] */
    size_t n, room;
    struct pair *pairs; /* still together */
    size_t n_pairs;
    double of_first; /* how much a pair with the first counts */
};

static enum pe_status cancelled(const struct probe *p) { return pe_is_cancelled() ? pe_cancelled(p->err) : PE_OK; }

/* ---- Entries ---- */

static double position_of(const struct probe *p, const struct pe_piece *piece)
{
    const struct pe_sequence *seq = &p->d->belief.plan->seq;
    enum pe_evidence_id id = p->d->evidence.kind->id;
    if (id == PE_OF_LADDER)
        return 0;
    return id == PE_OF_BIAS ? pe_position_at(seq->q, piece->row % seq->q->n) : pe_position_at(seq->k, piece->row);
}

static uint64_t column_of(const struct probe *p, size_t entry)
{
    const struct pe_piece *piece = &p->places.pieces[p->piece[entry]];
    return piece->col0 + (entry - piece->at);
}

/* The smaller position, then channel, then tensor; of a map query, key, head. */
static bool is_before(const struct probe *p, size_t a, size_t b)
{
    const struct pe_piece *x = &p->places.pieces[p->piece[a]], *y = &p->places.pieces[p->piece[b]];
    double of_a = position_of(p, x), of_b = position_of(p, y);
    uint64_t col_a = column_of(p, a), col_b = column_of(p, b);
    if (of_a != of_b)
        return of_a < of_b;
    if (col_a != col_b)
        return col_a < col_b;
    return x->t != y->t ? x->t < y->t : x->row < y->row;
}

/* Four times what typing, float32's numbers and its angles leave open. */
static void set_least(struct probe *p)
{
    const struct pe_evidence *e = &p->d->evidence;
    struct pe_judge j = pe_judge_of(e, false);
    j.half = e->half;
    for (size_t i = 0; i < p->places.n_pieces && !pe_is_cancelled(); i++) {
        const struct pe_piece *piece = &p->places.pieces[i];
        pe_model_phases(p->d->belief.model, piece->t, piece->row, piece->col0, piece->n, p->places.phase + piece->at);
        for (size_t k = piece->at; k < piece->at + piece->n; k++) {
            p->piece[k] = (uint32_t)i;
            p->least[k] = APART * pe_rounding_tolerance(&j, 0, p->places.phase[k]);
        }
    }
}

/* ---- Rows of numbers ---- */

static void fill(struct probe *p, const struct pe_model *m, double *out)
{
    pe_sample_fill(&p->places, m, out);
    for (size_t k = 0; k < p->n_entries; k++)
        out[k] = isfinite(out[k]) ? out[k] : (double)NAN; /* infinities cannot be typed */
}

static double *row_of(const struct probe *p, size_t i) { return p->numbers + i * p->n_entries; }

static bool is_apart(const struct probe *p, const double *a, const double *b, size_t k)
{
    return fabs(a[k] - b[k]) > p->least[k];
}

static bool are_apart(const struct probe *p, const double *a, const double *b)
{
    for (size_t k = 0; k < p->n_entries; k++)
        if (is_apart(p, a, b, k))
            return true;
    return false;
}

static void add_hypothesis(struct probe *p, const char *code, int surprise, uint64_t signature)
{
    p->codes[p->n] = code;
    p->surprises[p->n] = surprise;
    p->signatures[p->n++] = signature;
}

/* Two names of the same numbers are one hypothesis; its name is the less surprising one, which a diagnosis gives. */
static bool is_known(struct probe *p, const char *code, int surprise, uint64_t signature)
{
    for (size_t i = 0; i < p->n; i++)
        if (p->signatures[i] == signature) {
            if (surprise < p->surprises[i]) {
                p->codes[i] = code;
                p->surprises[i] = surprise;
            }
            return true;
        }
    return false;
}

/* A mistake with numbers of its own, that can be seen at all. */
static enum pe_status try_one(struct probe *p, size_t fault, size_t choice)
{
    struct pe_explanation k = {.h = {.n = 1, .fault = {(uint16_t)fault}, .choice = {(uint16_t)choice}}};
    struct pe_edit edit;
    struct pe_model *m = NULL;
    enum pe_status status = PE_INVALID;
    bool applies = pe_hypothesis_apply(p->d, &k.h, &edit);
    struct pe_failure error = {.status = PE_OK};
    if (edit.failed || p->d->no_memory)
        error.status = PE_NO_MEMORY;
    else if (applies)
        status = pe_model_new(p->d, &edit, &m, &error);
    if (!status && m->has_shape) {
        const char *code = pe_fault_at(fault)->code;
        pe_hypothesis_wonder(p->d, &edit, &k);
        uint64_t signature = pe_model_signature(m);
        if (!is_known(p, code, k.surprise, signature)) {
            fill(p, m, row_of(p, p->n));
            if (are_apart(p, row_of(p, 0), row_of(p, p->n)))
                add_hypothesis(p, code, k.surprise, signature);
        }
    }
    pe_model_free(m);
    pe_edit_drop(&edit);
    bool is_grave = error.status == PE_NO_MEMORY || error.status == PE_CANCELLED;
    return is_grave ? (*p->err = error, p->err->status = error.status) : cancelled(p);
}

static enum pe_status gather(struct probe *p)
{
    enum pe_status status = PE_OK;
    for (size_t i = 0; !status && i < pe_n_faults(); i++) {
        bool is_tried = pe_fault_applies(p->d, i) && pe_fault_row(i)->role != PE_ROLE_NARROW_ANGLES;
        size_t n = is_tried ? pe_search_count(p->d, i) : 0;
        for (size_t j = 0; !status && j < n && p->n < p->room; j++)
            if (pe_search_tries(p->d, i, j))
                status = try_one(p, i, j);
    }
    return status;
}

/* ---- Choosing ---- */

static void pair_up(struct probe *p)
{
    for (size_t a = 0; a < p->n; a++)
        for (size_t b = a + 1; b < p->n; b++)
            p->pairs[p->n_pairs++] = (struct pair){(uint16_t)a, (uint16_t)b};
}

static void count_pairs(struct probe *p)
{
    enum { BETWEEN = 64 };
    memset(p->count, 0, p->n_entries * sizeof *p->count);
    for (size_t i = 0; i < p->n_pairs && !(i % BETWEEN == 0 && pe_is_cancelled()); i++) {
        const double *a = row_of(p, p->pairs[i].a), *b = row_of(p, p->pairs[i].b);
        double weight = p->pairs[i].a == 0 ? p->of_first : 1;
        for (size_t k = 0; k < p->n_entries; k++)
            p->count[k] += fabs(a[k] - b[k]) > p->least[k] ? weight : 0;
    }
}

/* The entry that separates most; n_entries: nothing separates more. */
static size_t choose(struct probe *p)
{
    size_t best = p->n_entries;
    count_pairs(p);
    for (size_t k = 0; k < p->n_entries; k++) {
        double most = best < p->n_entries ? p->count[best] : 0;
        if (p->count[k] > most || (p->count[k] == most && most > 0 && is_before(p, k, best)))
            best = k;
    }
    return best;
}

static void separate(struct probe *p, size_t entry)
{
    size_t n = 0;
    for (size_t i = 0; i < p->n_pairs; i++)
        if (!is_apart(p, row_of(p, p->pairs[i].a), row_of(p, p->pairs[i].b), entry))
            p->pairs[n++] = p->pairs[i];
    p->n_pairs = n;
}

/* ---- The answer ---- */

static void put_number(struct pe_node *node, const char *name, double x)
{
    if (x == floor(x) && fabs(x) < 0x1p53)
        pe_put_integer(node, name, (int64_t)x);
    else
        pe_put_real(node, name, x);
}

static void put_place(const struct probe *p, size_t entry, struct pe_node *node)
{
    const struct pe_evidence *e = &p->d->evidence;
    const struct pe_piece *piece = &p->places.pieces[p->piece[entry]];
    pe_put_string(node, "tensor", e->kind->tensors[piece->t]);
    if (e->kind->id == PE_OF_BIAS) {
        const struct pe_sequence *seq = &p->d->belief.plan->seq;
        pe_put_integer(node, "head", (int64_t)(piece->row / seq->q->n));
        put_number(node, "query", position_of(p, piece));
        put_number(node, "key", pe_position_at(seq->k, column_of(p, entry)));
        return;
    }
    if (e->kind->id != PE_OF_LADDER)
        put_number(node, "position", position_of(p, piece));
    pe_put_integer(node, "channel", (int64_t)column_of(p, entry));
}

static double as_printed(double x) { return pe_answer_shortest(PE_F32, pe_round_to(PE_F32, x)); }

static enum pe_status put_entries(struct probe *p, struct pe_node *list)
{
    for (int64_t i = 0; i < p->d->typed_fields.count; i++) {
        size_t entry = choose(p);
        if (cancelled(p))
            return p->err->status;
        if (entry == p->n_entries)
            break;
        struct pe_node *node = pe_put_object(list, NULL);
        put_place(p, entry, node);
        pe_put_real(node, "expected", as_printed(row_of(p, 0)[entry]));
        separate(p, entry);
    }
    return PE_OK;
}

/* Pairs of codes, each once. */
static void put_together(const struct probe *p, struct pe_node *list)
{
    const char *listed[TOGETHER_MAX][2];
    size_t n = 0;
    for (size_t i = 0; i < p->n_pairs && n < TOGETHER_MAX; i++) {
        const char *a = p->codes[p->pairs[i].a], *b = p->codes[p->pairs[i].b];
        bool is_new = true;
        for (size_t k = 0; k < n; k++)
            is_new = is_new && !(pe_same(listed[k][0], a) && pe_same(listed[k][1], b));
        if (!is_new)
            continue;
        struct pe_node *both = pe_put_list(list, NULL);
        pe_put_string(both, NULL, a);
        pe_put_string(both, NULL, b);
        listed[n][0] = a;
        listed[n++][1] = b;
    }
}

static const char *const of_kind[PE_N_EVIDENCES] = {
    [PE_OF_TABLES] = "tables", [PE_OF_ROTATED] = "rotated",   [PE_OF_LADDER] = "inv_freq",
    [PE_OF_ANGLES] = "angles", [PE_OF_ENCODING] = "encoding", [PE_OF_BIAS] = "bias"};

const struct pe_member pe_probe_members[] = {
    {.name = "of", .types = "string", .summary = "which numbers: tables, rotated, inv_freq, angles, encoding, bias"},
    {.name = "config", .types = "object", .summary = "the belief with every parameter"},
    {.name = "decimals", .types = "integer", .summary = "digits after the point that will be typed"},
    {.name = "probe",
     .types = "array",
     .summary =
         "the numbers to look at, the most informative first: tensor, position, channel (of a bias head, query, key), "
         "and what the belief has there, expected; with what is there as value they are values of /diagnose",
     .items = "object",
     .n_max = COUNT_MAX},
    {.name = "hypotheses", .types = "integer", .summary = "the belief and every single mistake that would show"},
    {.name = "pairs", .types = "integer", .summary = "pairs of them"},
    {.name = "separated", .types = "integer", .summary = "pairs that the numbers distinguish"},
    {.name = "unseen",
     .types = "array",
     .summary = "codes of the mistakes that would not show in any number of this kind",
     .n_max = PE_UNSEEN_MAX},
    {.name = "together",
     .types = "array",
     .summary = "pairs of codes that the numbers do not distinguish",
     .n_max = TOGETHER_MAX},
    {.name = NULL},
};

/* What would show in no number: by the rule of a diagnosis whose belief fits. */
static enum pe_status put_unseen(struct probe *p, struct pe_node *list)
{
    struct pe_answer *a = calloc(1, sizeof *a);
    if (!a)
        return pe_no_memory(p->err);
    pe_edit_init(&a->belief.edit);
    a->belief.model = p->d->belief.model;
    a->belief.all.verdict = PE_ROUNDING;
    enum pe_status status = pe_answer_unseen(p->d, a, list, p->err);
    free(a);
    return status;
}

static enum pe_status state(struct probe *p)
{
    struct pe_diagnosis *d = p->d;
    d->values = pe_values_new();
    if (!d->values)
        return pe_no_memory(p->err);
    struct pe_node *root = pe_values_root(d->values);
    size_t all = p->n_pairs;
    pe_put_string(root, "of", of_kind[d->evidence.kind->id]);
    pe_put_value(root, "config", pe_plan_config(d->belief.plan));
    pe_put_integer(root, "decimals", d->typed_fields.decimals);
    enum pe_status status = put_entries(p, pe_put_list(root, "probe"));
    pe_put_integer(root, "hypotheses", (int64_t)p->n);
    pe_put_integer(root, "pairs", (int64_t)all);
    pe_put_integer(root, "separated", (int64_t)(all - p->n_pairs));
    if (!status)
        status = put_unseen(p, pe_put_list(root, "unseen"));
    put_together(p, pe_put_list(root, "together"));
    if (status)
        return status;
    d->searched = p->n;
    d->stated = d->no_memory ? NULL : pe_values_done(d->values);
    return d->stated ? PE_OK : pe_no_memory(p->err);
}

/* ---- The whole ---- */

static size_t count_hypotheses(const struct pe_diagnosis *d)
{
    size_t n = 1;
    for (size_t i = 0; i < pe_n_faults(); i++)
        n += pe_fault_applies(d, i) ? pe_search_count(d, i) : 0;
    return n < HYPOTHESES_MAX ? n : HYPOTHESES_MAX;
}

/* Every hypothesis is planned and its numbers computed; then pairs are compared at every entry, a few times. */
static enum pe_status check_work(const struct probe *p)
{
    const struct pe_diagnosis *d = p->d;
    double n = (double)p->room, entries = (double)p->n_entries, count = fmin((double)d->typed_fields.count, 8);
    double one = pe_model_plan_work(d->belief.model) + entries * d->belief.model->number_work;
    double work = 2 * n * one + n * n / 2 * entries * count / 8;
    if (work <= d->request->max_work)
        return PE_OK;
    pe_fail(p->err, "", "the probe needs about %.0f multiply-adds; allowed: %.0f", work, d->request->max_work);
    p->err->status = PE_TOO_LARGE;
    return pe_advise(p->err, PE_RAISE_DIAGNOSIS, NULL);
}

static enum pe_status open_probe(struct probe *p, size_t n_rows)
{
    size_t n = p->n_entries;
    p->room = n_rows;
    size_t n_pairs = n_rows * (n_rows - 1) / 2 + 1;
    double bytes = (double)n * (double)((n_rows + 3) * sizeof(double)) + (double)(n_pairs * sizeof *p->pairs);
    if (pe_diagnosis_admit(p->d, bytes, p->err))
        return p->err->status;
    p->numbers = malloc((n_rows + 1) * n * sizeof *p->numbers); /* one more for a hypothesis that is left out */
    p->least = malloc(2 * n * sizeof *p->least);
    p->piece = malloc(n * sizeof *p->piece);
    p->codes = malloc(n_rows * (sizeof *p->codes + sizeof *p->signatures + sizeof *p->surprises));
    p->pairs = malloc(n_pairs * sizeof *p->pairs);
    if (!p->numbers || !p->least || !p->piece || !p->codes || !p->pairs)
        return pe_no_memory(p->err);
    p->count = p->least + n;
    p->signatures = (uint64_t *)(void *)(p->codes + n_rows);
    p->surprises = (int *)(void *)(p->signatures + n_rows);
    set_least(p);
    return PE_OK;
}

static void close_probe(struct probe *p)
{
    free(p->numbers);
    free(p->least);
    free(p->piece);
    free(p->codes);
    free(p->pairs);
    pe_sample_drop(&p->places);
}

enum pe_status pe_probe_state(struct pe_diagnosis *d, struct pe_failure *err)
{
    struct probe p = {.d = d, .err = err, .of_first = OF_BELIEF};
    enum pe_status status = pe_scalings_open(d, err);
    pe_layers_open(d);
    if (!status)
        status = pe_probed_open(d, &p.places, err);
    p.n_entries = p.places.n;
    p.room = status ? 0 : count_hypotheses(d);
    if (!status)
        status = check_work(&p);
    if (!status)
        status = open_probe(&p, p.room);
    if (!status) {
        fill(&p, d->belief.model, row_of(&p, 0));
        add_hypothesis(&p, "as_believed", INT32_MIN, pe_model_signature(d->belief.model));
        status = gather(&p);
    }
    if (!status) {
        pair_up(&p);
        status = state(&p);
    }
    close_probe(&p);
    return status;
}

/* ---- The next number ---- */

/* Readings that fit, each with numbers of its own. */
static enum pe_status compare_readings(struct probe *p, const struct pe_answer *a, struct pe_node *node)
{
    enum pe_status status = open_probe(p, a->n_own);
    if (status)
        return status;
    for (size_t i = 0; i < a->n_own; i++) {
        if (!pe_fits(a->candidates[i].all.verdict) || !a->candidates[i].model->has_shape)
            continue;
        fill(p, a->candidates[i].model, row_of(p, p->n));
        p->signatures[p->n++] = i;
    }
    pair_up(p);
    size_t entry = choose(p);
    if (cancelled(p))
        return p->err->status;
    if (entry == p->n_entries) {
        pe_put_null(node, "next");
        return PE_OK;
    }
    struct pe_node *next = pe_put_object(node, "next");
    put_place(p, entry, next);
    struct pe_node *list = pe_put_list(next, "values");
    for (size_t i = 0; i < p->n; i++) {
        struct pe_node *one = pe_put_object(list, NULL);
        struct pe_node *codes = pe_put_list(one, "codes");
        const struct pe_hypothesis *h = &a->candidates[p->signatures[i]].explanation.h;
        for (unsigned k = 0; k < h->n; k++)
            pe_put_string(codes, NULL, pe_fault_at(h->fault[k])->code);
        pe_put_real_or_null(one, "value", as_printed(row_of(p, i)[entry]));
    }
    return PE_OK;
}

/* Of a tensor that was printed: the number of which more digits would be worth most. */
static void put_next_printed(const struct pe_diagnosis *d, const struct pe_answer *a, struct pe_node *root)
{
    const struct pe_next *n = &a->next;
    struct pe_node *next = pe_put_object(root, "next"), *list;
    const struct pe_plan *plan = a->belief.model->plan;
    pe_put_string(next, "tensor", d->evidence.kind->tensors[n->t]);
    pe_put_real(next, "position", pe_position_at(plan->seq.k, pe_model_position(a->belief.model, n->row)));
    pe_put_integer(next, "channel", (int64_t)n->col);
    list = pe_put_list(next, "values");
    for (int is_other = 0; is_other < 2; is_other++) {
        struct pe_node *one = pe_put_object(list, NULL), *codes = pe_put_list(one, "codes");
        if (is_other)
            pe_put_string(codes, NULL, n->code);
        pe_put_real(one, "value", as_printed(is_other ? n->other : n->believed));
    }
}

enum pe_status pe_answer_next(struct pe_diagnosis *d, const struct pe_answer *a, struct pe_node *root,
                              struct pe_failure *err)
{
    struct probe p = {.d = d, .err = err, .of_first = 1};
    size_t n = 0;
    while (n < a->n_own && pe_fits(a->candidates[n].all.verdict))
        n++;
    if (!d->evidence.is_typed && a->next.code && d->evidence.kind->id != PE_OF_BIAS) {
        put_next_printed(d, a, root);
        return PE_OK;
    }
    if (!d->evidence.is_typed || n < 2) {
        pe_put_null(root, "next");
        return PE_OK;
    }
    enum pe_status status = pe_probed_open(d, &p.places, err);
    p.n_entries = p.places.n;
    if (!status)
        status = compare_readings(&p, a, root);
    close_probe(&p);
    return status;
}
