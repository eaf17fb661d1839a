/* difference: how far an entry's numbers are from those of the first entry, once both are rounded to the dtype of the
 * request, and whether both mean the same (verdict.c). Compared are the outputs that both have with the same shape and,
 * of rotary schemes, the rotated vector
 *
 *     rotated = R_p v,   v_j = 1 + j/head_dim
 *
 * which also distinguishes layouts.
 *
 * Two configurations may have outputs of gigabytes; what is wanted is the largest difference, where it is, and a
 * profile by position. Both plans fill the same range into two buffers, which are compared and forgotten. A rotary side
 * is compared by what it does to a vector with components 1 … 2, since two tables of different layouts cannot be
 * compared number by number, though they may rotate alike. */
#include "core/analysis/analysis.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* ---- What is compared ---- */

enum { TABLES_MAX = 16 };
#define ROTATED SIZE_MAX /* no output: the rotated vector */

/* ---- difference.c: what is compared ---- */

/* A tensor that both sides have. Element e belongs to row e / inner % rows. */
struct table {
    const char *name;
    size_t output[2]; /* of each side's plan, or ROTATED */
    bool is_integer;
    bool heads_first; /* a bias [H, Q, K]: rows are queries */
    unsigned rank;
    uint64_t shape[PE_RANK_MAX];
    uint64_t n, inner, rows;
};

struct side {
    const struct pe_plan *plan;
    struct pe_row_rotation turn; /* of rotary schemes */
    double *at;                  /* a block of numbers */
    bool is_permuted;            /* it turns rows in the converter's order, which is undone: verdict.c */
};

struct difference {
    struct side sides[2];
    struct table tables[TABLES_MAX + 1];
    size_t n_tables;
    enum pe_dtype dtype;
    double *curves[TABLES_MAX + 1]; /* [rows] of each table: the largest difference */
    double *spare;                  /* as long as a block */
    double largest;                 /* the largest finite magnitude compared */
    double most[TABLES_MAX + 1];    /* the largest difference of each table */
    uint64_t steps, n_equal, n;
    struct pe_layers_apart layers; /* n = 0: the same, or not known */
};

static bool is_alike(const struct pe_output *a, const struct pe_output *b)
{
    bool is_same = pe_same(a->name, b->name) && a->rank == b->rank;
    for (unsigned axis = 0; is_same && axis < a->rank; axis++)
        is_same = a->shape[axis] == b->shape[axis];
    return is_same;
}

static void add_output(const struct pe_plan *const plans[2], size_t i, size_t j, struct table *tables, size_t *n)
{
    const struct pe_output *a = pe_plan_output(plans[0], i), *b = pe_plan_output(plans[1], j);
    if (*n == TABLES_MAX || !is_alike(a, b))
        return;
    struct table *t = &tables[(*n)++];
    *t = (struct table){.name = b->name,
                        .output = {i, j},
                        .rank = b->rank,
                        .is_integer = !pe_dtype_is_real(a->dtype) && !pe_dtype_is_real(b->dtype)};
    for (unsigned axis = 0; axis < t->rank; axis++)
        t->shape[axis] = b->shape[axis];
    t->n = b->n_rows * b->row_len;
    /* Positions are rows: of a bias its queries, of channels first the last axes. */
    t->heads_first = t->rank == 3 && pe_same(t->name, "bias");
    t->rows = t->rank ? t->shape[t->heads_first] : 1;
    t->inner = t->heads_first ? t->shape[2] : t->n / t->rows;
    if (pe_absolute_channels_first(plans[1]) && t->rank > 1) {
        t->rows = t->n / t->shape[0];
        t->inner = 1;
    }
}

static void add_rotated(const struct pe_plan *const plans[2], struct table *tables, size_t *n)
{
    struct pe_rotation a, b;
    if (!plans[0]->scheme->rotate || !plans[1]->scheme->rotate)
        return;
    plans[0]->scheme->rotate(plans[0], &a, NULL);
    plans[1]->scheme->rotate(plans[1], &b, NULL);
    uint64_t rows = plans[1]->seq.k[0].n;
    if (a.head_dim == b.head_dim && plans[0]->seq.k[0].n == rows)
        tables[(*n)++] = (struct table){.name = "rotated",
                                        .output = {ROTATED, ROTATED},
                                        .rank = 2,
                                        .shape = {rows, b.head_dim},
                                        .n = rows * b.head_dim,
                                        .inner = b.head_dim,
                                        .rows = rows};
}

static size_t find_tables(const struct pe_analysis *study, const struct pe_subject *subject, struct table *tables)
{
    const struct pe_plan *const plans[2] = {study->subjects[0].plan, subject->plan};
    size_t n = 0;
    for (size_t j = 0; j < pe_plan_n_outputs(plans[1]); j++)
        for (size_t i = 0; i < pe_plan_n_outputs(plans[0]); i++)
            add_output(plans, i, j, tables, &n);
    add_rotated(plans, tables, &n);
    return n;
}

/* Numbers of one side that are held at a time; a rotated row, and a row of keys, are shorter. */
enum { BLOCK = 1 << 15, SLOW_BLOCK = 1 << 11 /* of a plan that takes long for each */ };
_Static_assert(3 * (int)PE_HEAD_DIM_MAX <= (int)BLOCK && (int)PE_ANALYSED_POSITIONS_MAX <= (int)BLOCK,
               "rows fit a block");

/* ---- Both sides ---- */

/* Channel of a model's head that a converter to GGUF has stored in row j of d: 2i has i, 2i+1 has i + d/2. */
static size_t channel_of(const struct side *side, size_t j, size_t d)
{
    return side->is_permuted ? j / 2 + j % 2 * (d / 2) : j;
}

/* Rows of R_p v; spare: v, the table of one row, and that row as it is turned. */
static void fill_rotated(const struct side *side, uint64_t first, size_t n, double *spare)
{
    size_t width = side->turn.rotation.head_dim, id = pe_turn_input(side->plan, "q");
    double *table = spare + width, *turned = table + width;
    for (size_t j = 0; j < width; j++)
        spare[j] = 1 + (double)channel_of(side, j, width) / (double)width;
    for (size_t i = 0; i < n; i += width) {
        pe_rotate_table(&side->turn, side->plan, side->plan->seq.k, id, (first + i) / width, 1, table);
        pe_rotate_row(&side->turn, table, PE_F64, spare, PE_F64, turned);
        for (size_t j = 0; j < width; j++)
            side->at[i + channel_of(side, j, width)] = turned[j];
    }
}

static void fill_integers(const struct side *side, size_t output, uint64_t first, size_t n, void *spare)
{
    pe_fill(side->plan, output, first, n, spare);
    pe_convert(PE_F64, side->at, pe_plan_output(side->plan, output)->dtype, spare, n);
}

static void round_all(enum pe_dtype dtype, double *x, size_t n, void *spare)
{
    for (size_t i = 0; dtype == PE_F32 && i < n; i++)
        x[i] = (double)(float)x[i];
    if (dtype == PE_F64 || dtype == PE_F32)
        return;
    pe_convert(dtype, spare, PE_F64, x, n);
    pe_convert(PE_F64, x, dtype, spare, n);
}

/* Elements first … first+n-1 of the table on one side. */
static void fill_side(struct difference *w, const struct table *t, size_t s, uint64_t first, size_t n)
{
    const struct side *side = &w->sides[s];
    if (t->output[s] == ROTATED)
        fill_rotated(side, first, n, w->spare);
    else if (pe_plan_output(side->plan, t->output[s])->dtype == PE_F64)
        pe_fill(side->plan, t->output[s], first, n, side->at);
    else
        fill_integers(side, t->output[s], first, n, w->spare);
    if (!t->is_integer)
        round_all(w->dtype, side->at, n, w->spare);
}

static void fill_both(struct difference *w, const struct table *t, uint64_t first, size_t n)
{
    fill_side(w, t, 0, first, n);
    fill_side(w, t, 1, first, n);
}

/* ---- One pair of numbers ---- */

/* A number beside something that is none is infinitely far from it. */
static double gap_of(double a, double b)
{
    if (a == b || (isnan(a) && isnan(b)))
        return 0;
    double gap = fabs(a - b);
    return isnan(gap) ? (double)INFINITY : gap;
}

static uint64_t steps_between(const struct difference *w, const struct table *t, double a, double b)
{
    if (t->is_integer)
        return (uint64_t)fabs(a - b);
    int64_t x = pe_place(w->dtype, a), y = pe_place(w->dtype, b);
    return x < y ? (uint64_t)y - (uint64_t)x : (uint64_t)x - (uint64_t)y;
}

/* The largest magnitude that is finite, and `largest` if that is larger. */
static double largest_of(double largest, const double *x, size_t n)
{
    for (size_t i = 0; i < n; i++) {
        double size = fabs(x[i]) < (double)INFINITY ? fabs(x[i]) : 0;
        largest = size > largest ? size : largest;
    }
    return largest;
}

static uint64_t most_steps(const struct difference *w, const struct table *t, const double *a, const double *b,
                           size_t n)
{
    uint64_t most = w->steps;
    for (size_t i = 0; i < n; i++) {
        uint64_t steps = gap_of(a[i], b[i]) == 0 ? 0 : steps_between(w, t, a[i], b[i]);
        most = steps > most ? steps : most;
    }
    return most;
}

/* Elements of one row; returns the largest difference. */
static double compare_row(struct difference *w, const struct table *t, const double *a, const double *b, size_t n)
{
    double most = 0;
    size_t n_equal = 0;
    w->largest = largest_of(largest_of(w->largest, a, n), b, n);
    for (size_t i = 0; i < n; i++) {
        double gap = gap_of(a[i], b[i]);
        n_equal += gap == 0;
        most = gap > most ? gap : most;
    }
    w->n_equal += n_equal;
    if (n_equal < n)
        w->steps = most_steps(w, t, a, b, n);
    return most;
}

/* ---- Whole tables ---- */

static size_t block_of(const struct table *t, const struct difference *w, uint64_t first)
{
    uint64_t n = t->n - first, room = BLOCK;
    for (size_t s = 0; s < 2; s++) {
        uint64_t most = t->output[s] == ROTATED ? 0 : pe_plan_output(w->sides[s].plan, t->output[s])->most;
        room = most && most < room ? most : room;
        if (t->output[s] != ROTATED && pe_plan_pace(w->sides[s].plan) != PE_QUICK)
            room = room < SLOW_BLOCK ? room : SLOW_BLOCK;
    }
    if (t->output[0] == ROTATED)
        room = room / t->inner / 8 * t->inner + t->inner; /* whole rows, each of them a table and a rotation */
    return (size_t)(n < room ? n : room);
}

static void compare_block(struct difference *w, size_t i, uint64_t first, size_t n)
{
    const struct table *t = &w->tables[i];
    for (size_t done = 0, some; done < n; done += some) {
        uint64_t left = t->inner - (first + done) % t->inner, row = (first + done) / t->inner % t->rows;
        some = left < n - done ? (size_t)left : n - done;
        double most = compare_row(w, t, w->sides[0].at + done, w->sides[1].at + done, some);
        w->curves[i][row] = fmax(w->curves[i][row], most);
        w->most[i] = fmax(w->most[i], most);
    }
}

static void compare_table(struct difference *w, size_t i)
{
    const struct table *t = &w->tables[i];
    size_t n;
    for (uint64_t first = 0; first < t->n && !pe_is_cancelled(); first += n) {
        n = block_of(t, w, first);
        fill_both(w, t, first, n);
        if (!pe_was_cancelled())
            compare_block(w, i, first, n);
    }
    w->n += t->n;
}

/* ---- Where a difference is ---- */

/* The first of these elements that is so far apart; first + n: none is. */
static uint64_t scan(struct difference *w, const struct table *t, uint64_t first, uint64_t n, double gap)
{
    size_t some;
    for (uint64_t done = 0; done < n && !pe_is_cancelled(); done += some) {
        some = block_of(t, w, first + done);
        some = some < n - done ? some : (size_t)(n - done);
        fill_both(w, t, first + done, some);
        if (pe_was_cancelled())
            break;
        for (size_t i = 0; i < some; i++)
            if (gap_of(w->sides[0].at[i], w->sides[1].at[i]) >= gap)
                return first + done + i;
    }
    return first + n;
}

static uint64_t find_gap(struct difference *w, size_t i, double gap)
{
    const struct table *t = &w->tables[i];
    uint64_t row = 0, found = t->n;
    if (t->inner == 1 && t->rows < t->n)
        return scan(w, t, 0, t->n, gap); /* channels first: rows are spread over the whole table */
    while (row + 1 < t->rows && !(w->curves[i][row] >= gap))
        row++;
    for (uint64_t e = row * t->inner; e < t->n; e += t->rows * t->inner) {
        found = scan(w, t, e, t->inner, gap);
        if (found < e + t->inner)
            break;
    }
    return found < t->n ? found : t->n - 1;
}

/* ---- Memory ---- */

static uint64_t count_rows(const struct table *tables, size_t n)
{
    uint64_t rows = 0;
    for (size_t i = 0; i < n; i++)
        rows += tables[i].rows;
    return rows;
}

static double numbers_bytes(const struct table *tables, size_t n)
{
    return (3.0 * BLOCK + (double)count_rows(tables, n)) * sizeof(double);
}

/* Which layers have the kind of each side; false: no memory. */
static bool compare_layers(const struct pe_subject *const sides[2], struct pe_layers_apart *apart)
{
    struct pe_layer_marks marks[2];
    for (size_t s = 0; s < 2; s++)
        if (!pe_model_layers(sides[s]->entry->fields, sides[s]->entry->n_fields, &marks[s]))
            return false;
    pe_layers_compare(&marks[0], &marks[1], apart);
    return true;
}

static enum pe_status difference_init(struct difference *w, const struct pe_analysis *study,
                                      const struct pe_subject *subject, struct pe_failure *err)
{
    enum pe_dtype asked = study->request->dtype;
    *w = (struct difference){.sides = {{.plan = study->subjects[0].plan}, {.plan = subject->plan}},
                             .dtype = asked == PE_DTYPE_NONE ? PE_F32 : asked};
    w->n_tables = find_tables(study, subject, w->tables);
    uint64_t rows = count_rows(w->tables, w->n_tables);
    double *memory = calloc(3 * BLOCK + rows, sizeof *memory);
    if (!memory)
        return pe_no_memory(err);
    bool is_compared = compare_layers((const struct pe_subject *const[]){&study->subjects[0], subject}, &w->layers);
    enum pe_status status = is_compared ? PE_OK : pe_no_memory(err);
    for (size_t s = 0; !status && s < 2; s++) {
        w->sides[s].at = memory + s * BLOCK;
        w->sides[s].is_permuted = pe_difference_is_permuted(study, subject, s);
        if (w->sides[s].plan->scheme->rotate)
            status = pe_turn_init(&w->sides[s].turn, w->sides[s].plan, err);
    }
    w->spare = memory + 2 * BLOCK;
    for (size_t i = 0; i < w->n_tables; i++)
        w->curves[i] = i ? w->curves[i - 1] + w->tables[i - 1].rows : w->spare + BLOCK;
    return status;
}

/* ---- The witness ---- */

/* A bias has the query's axis first, like its rows. */
static void put_index(struct pe_node *out, const struct table *t, uint64_t element)
{
    int64_t index[PE_RANK_MAX] = {0};
    for (unsigned axis = t->rank; axis-- > 0;) {
        index[axis] = (int64_t)(element % t->shape[axis]);
        element /= t->shape[axis];
    }
    if (t->heads_first) {
        int64_t head = index[0];
        index[0] = index[1];
        index[1] = head;
    }
    pe_put_integers(out, "index", index, t->rank);
}

static void put_witness(struct difference *w, struct pe_node *out, double value)
{
    double gap = isinf(value) ? value : value - pe_tie(value, w->largest);
    size_t i = 0;
    if (!(value > PE_NOISE * w->largest)) {
        pe_put_null(out, "witness");
        return;
    }
    while (w->most[i] < gap)
        i++;
    struct pe_node *witness = pe_put_object(out, "witness");
    pe_put_string(witness, "output", w->tables[i].name);
    put_index(witness, &w->tables[i], find_gap(w, i, gap));
}

/* ---- The answer ---- */

static void put_first(const struct difference *w, struct pe_node *out, double tolerance)
{
    size_t table = 0;
    uint64_t first = UINT64_MAX;
    for (size_t i = 0; i < w->n_tables; i++)
        for (uint64_t row = 0; row < w->tables[i].rows && row < first; row++)
            if (w->curves[i][row] > tolerance) {
                first = row;
                table = i;
            }
    if (first == UINT64_MAX) {
        pe_put_null(out, "first");
        return;
    }
    struct pe_node *node = pe_put_object(out, "first");
    pe_put_string(node, "output", w->tables[table].name);
    pe_put_integer(node, "row", (int64_t)first);
}

static const char *const details[] = {
    "Compared in {dtype}, numbers are at most {value} apart, first in {witness.output}; a share of {equal} is equal.",
    "Compared in {dtype}, all numbers are equal but for rounding: they are at most {value} apart.",
    "No output has the same name and shape in both, so nothing is compared.",
};

static bool have_positions(const struct pe_analysis *study, const struct pe_subject *subject)
{
    return !pe_same(study->subjects[0].plan->scheme->info.name, "none") ||
           !pe_same(subject->plan->scheme->info.name, "none");
}

/* The verdict and, of two dialects, its sentence; that of the numbers, if they add something, comes after it. */
static void put_verdict(const struct pe_analysis *study, const struct pe_subject *subject, const struct difference *w,
                        struct pe_node *out, const char *detail)
{
    char patterns[PE_N_LANGS][PE_DETAIL_MAX];
    pe_difference_put_verdict(study, subject, &w->layers, w->n_equal == w->n && w->n_tables, w->n_equal == w->n, out,
                              patterns);
    for (enum pe_lang lang = 0; lang < PE_N_LANGS; lang++) {
        size_t n = strlen(patterns[lang]);
        if (n && (w->n_tables ? w->n_equal == w->n : !have_positions(study, subject)))
            continue;
        snprintf(patterns[lang] + n, sizeof patterns[lang] - n, "%s%s", n && lang == PE_EN ? " " : "",
                 pe_text_in(lang, detail));
    }
    pe_put_details(out, study->request->lang, (const char *const[]){patterns[PE_EN], patterns[PE_ZH]});
}

static void shape(const struct pe_analysis *study, const struct pe_subject *subject, size_t i, unsigned *rank,
                  uint64_t *shape)
{
    struct table tables[TABLES_MAX + 1];
    (void)i;
    *rank = 1;
    shape[0] = find_tables(study, subject, tables) ? tables[0].rows : 0;
}

static enum pe_status compute(struct pe_analysis *study, struct pe_subject *subject, struct pe_node *out,
                              struct pe_failure *err)
{
    struct difference w;
    unsigned rank;
    uint64_t n;
    enum pe_status status = difference_init(&w, study, subject, err);
    for (size_t i = 0; !status && i < w.n_tables; i++)
        compare_table(&w, i);
    if (!status && w.n_tables) {
        double value = 0;
        for (size_t i = 0; i < w.n_tables; i++)
            value = fmax(value, w.most[i]);
        pe_put_real(out, "value", value);
        put_witness(&w, out, value);
        /* Steps of f64 may be more than an integer of JSON holds exactly. */
        if (w.steps < UINT64_C(1) << 53)
            pe_put_integer(out, "max_ulp", (int64_t)w.steps);
        else
            pe_put_real(out, "max_ulp", (double)w.steps);
        pe_put_real(out, "equal", (double)w.n_equal / (double)w.n);
        put_first(&w, out, study->fields.tolerance);
        struct pe_node *compared = pe_put_list(out, "compared");
        for (size_t i = 0; i < w.n_tables; i++)
            pe_put_string(compared, NULL, w.tables[i].name);
        pe_put_string(out, "dtype", pe_dtype_name(w.dtype));
        put_verdict(study, subject, &w, out, details[pe_node_child(out, "witness") == NULL]);
    } else if (!status) {
        static const char *const names[] = {"value", "witness", "max_ulp", "equal", "first"};
        for (size_t i = 0; i < sizeof names / sizeof names[0]; i++)
            pe_put_null(out, names[i]);
        pe_put_list(out, "compared");
        put_verdict(study, subject, &w, out, details[2]);
    }
    shape(study, subject, 0, &rank, &n);
    if (!status) {
        /* The tensor is as long as the first table has rows. */
        double *tensor = pe_study_tensor(study, subject, "difference");
        for (uint64_t row = 0; tensor && row < n; row++) {
            tensor[row] = 0;
            for (size_t i = 0; i < w.n_tables; i++)
                if (row < w.tables[i].rows)
                    tensor[row] = fmax(tensor[row], w.curves[i][row]);
        }
    }
    free(w.sides[0].at);
    pe_rotate_drop(&w.sides[0].turn);
    pe_rotate_drop(&w.sides[1].turn);
    return status;
}

static bool applies(const struct pe_analysis *study, const struct pe_subject *subject)
{
    (void)study;
    return subject->index > 0;
}

/* The numbers of one side. A rotated row needs a row of cosines and sines. */
static double side_work(const struct pe_subject *subject, const struct table *t, size_t side)
{
    double n = (double)t->n;
    if (t->output[side] != ROTATED)
        return pe_output_work(subject->plan, t->output[side]);
    return pe_numbers_work(subject, n) + pe_scale_work(subject, n / 2);
}

static void cost(const struct pe_analysis *study, const struct pe_subject *subject, struct pe_metric_cost *cost)
{
    struct table tables[TABLES_MAX + 1];
    size_t n = find_tables(study, subject, tables);
    for (size_t i = 0; i < n; i++)
        cost->work +=
            8 * (double)tables[i].n + side_work(&study->subjects[0], &tables[i], 0) + side_work(subject, &tables[i], 1);
    cost->bytes = numbers_bytes(tables, n);
    if (subject->plan->scheme->rotate)
        cost->bytes += 2 * pe_turn_bytes(subject->plan);
}

static const struct pe_output_row tensors[] = {
    PE_OUTPUT("difference", "n", 1, PE_F64, false, NULL, "difference by row",
              "the largest difference of each row (of a bias: of each query) from the first configuration"),
    {.name = NULL},
};

const struct pe_metric pe_metric_difference = {
    .info =
        {
            .name = "difference",
            .about = {"difference", "how far the numbers are from those of the first configuration"},
            .applies_to = "every configuration after the first",
            .params = "tolerance",
            .work = "8 for each number compared",
            .tensors = tensors,
            .details = details,
            .n_details = sizeof details / sizeof details[0],
        },
    .applies = applies,
    .cost = cost,
    .shape = shape,
    .compute = compute,
};
