/* The numbers of both sides and how far they are apart, block by block.
 *
 * Two configurations may have outputs of gigabytes; what is wanted is the largest difference, where it is, and a
 * profile by position. Both plans fill the same range into two buffers, which are compared and forgotten. A rotary side
 * is compared by what it does to a vector with components 1 … 2, since two tables of different layouts cannot be
 * compared number by number, though they may rotate alike. */
#include "core/analysis/analysis.h"

#include <stdlib.h>
#include <string.h>

/* Numbers of one side that are held at a time; a rotated row, and a row of keys, are shorter. */
enum { BLOCK = 1 << 15, SLOW_BLOCK = 1 << 11 /* of a plan that takes long for each */ };
_Static_assert(3 * (int)PE_HEAD_DIM_MAX <= (int)BLOCK && (int)PE_ANALYSED_POSITIONS_MAX <= (int)BLOCK,
               "rows fit a block");

/* ---- Both sides ---- */

/* Channel of a model's head that a converter to GGUF has stored in row j of d: 2i has i, 2i+1 has i + d/2. */
static size_t channel_of(const struct pe_difference_side *side, size_t j, size_t d)
{
    return side->is_permuted ? j / 2 + j % 2 * (d / 2) : j;
}

/* Rows of R_p v; spare: v, the table of one row, and that row as it is turned. */
static void fill_rotated(const struct pe_difference_side *side, uint64_t first, size_t n, double *spare)
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

static void fill_integers(const struct pe_difference_side *side, size_t output, uint64_t first, size_t n, void *spare)
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
static void fill_side(struct pe_difference *w, const struct pe_difference_table *t, size_t s, uint64_t first, size_t n)
{
    const struct pe_difference_side *side = &w->sides[s];
    if (t->output[s] == PE_DIFFERENCE_ROTATED)
        fill_rotated(side, first, n, w->spare);
    else if (pe_plan_output(side->plan, t->output[s])->dtype == PE_F64)
        pe_fill(side->plan, t->output[s], first, n, side->at);
    else
        fill_integers(side, t->output[s], first, n, w->spare);
    if (!t->is_integer)
        round_all(w->dtype, side->at, n, w->spare);
}

static void fill_both(struct pe_difference *w, const struct pe_difference_table *t, uint64_t first, size_t n)
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

static uint64_t steps_between(const struct pe_difference *w, const struct pe_difference_table *t, double a, double b)
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

static uint64_t most_steps(const struct pe_difference *w, const struct pe_difference_table *t, const double *a,
                           const double *b, size_t n)
{
    uint64_t most = w->steps;
    for (size_t i = 0; i < n; i++) {
        uint64_t steps = gap_of(a[i], b[i]) == 0 ? 0 : steps_between(w, t, a[i], b[i]);
        most = steps > most ? steps : most;
    }
    return most;
}

/* Elements of one row; returns the largest difference. */
static double compare(struct pe_difference *w, const struct pe_difference_table *t, const double *a, const double *b,
                      size_t n)
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

static size_t block_of(const struct pe_difference_table *t, const struct pe_difference *w, uint64_t first)
{
    uint64_t n = t->n - first, room = BLOCK;
    for (size_t s = 0; s < 2; s++) {
        uint64_t most =
            t->output[s] == PE_DIFFERENCE_ROTATED ? 0 : pe_plan_output(w->sides[s].plan, t->output[s])->most;
        room = most && most < room ? most : room;
        if (t->output[s] != PE_DIFFERENCE_ROTATED && pe_plan_pace(w->sides[s].plan) != PE_QUICK)
            room = room < SLOW_BLOCK ? room : SLOW_BLOCK;
    }
    if (t->output[0] == PE_DIFFERENCE_ROTATED)
        room = room / t->inner / 8 * t->inner + t->inner; /* whole rows, each of them a table and a rotation */
    return (size_t)(n < room ? n : room);
}

static void compare_block(struct pe_difference *w, size_t i, uint64_t first, size_t n)
{
    const struct pe_difference_table *t = &w->tables[i];
    for (size_t done = 0, some; done < n; done += some) {
        uint64_t left = t->inner - (first + done) % t->inner, row = (first + done) / t->inner % t->rows;
        some = left < n - done ? (size_t)left : n - done;
        double most = compare(w, t, w->sides[0].at + done, w->sides[1].at + done, some);
        w->curves[i][row] = fmax(w->curves[i][row], most);
        w->most[i] = fmax(w->most[i], most);
    }
}

void pe_difference_compare(struct pe_difference *w, size_t i)
{
    const struct pe_difference_table *t = &w->tables[i];
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
static uint64_t scan(struct pe_difference *w, const struct pe_difference_table *t, uint64_t first, uint64_t n,
                     double gap)
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

uint64_t pe_difference_find(struct pe_difference *w, size_t i, double gap)
{
    const struct pe_difference_table *t = &w->tables[i];
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

static uint64_t count_rows(const struct pe_difference_table *tables, size_t n)
{
    uint64_t rows = 0;
    for (size_t i = 0; i < n; i++)
        rows += tables[i].rows;
    return rows;
}

double pe_difference_bytes(const struct pe_difference_table *tables, size_t n)
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

enum pe_status pe_difference_init(struct pe_difference *w, const struct pe_analysis *study,
                                  const struct pe_subject *subject, struct pe_failure *err)
{
    enum pe_dtype asked = study->request->dtype;
    *w = (struct pe_difference){.sides = {{.plan = study->subjects[0].plan}, {.plan = subject->plan}},
                                .dtype = asked == PE_DTYPE_NONE ? PE_F32 : asked};
    w->n_tables = pe_difference_tables(study, subject, w->tables);
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

void pe_difference_drop(struct pe_difference *w)
{
    free(w->sides[0].at);
    pe_rotate_drop(&w->sides[0].turn);
    pe_rotate_drop(&w->sides[1].turn);
}
