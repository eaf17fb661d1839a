/* Waves at consecutive integers in bf16.
 *
 * bf16 keeps eight bits, so a float's 24 are enough to decide nearly every rounding, and a register holds twice as many
 * floats as doubles. A recurrence in floats would lose too much; so each row is computed from the block's anchor
 * directly, x(±φ) = X·cos φ ± Y·sin φ, with the cosines and sines of the sixteen distances prepared once for each
 * column. kernels/run_bf16.c has the loop and the proof of its error.
 *
 * Two rows at the same distance share both products' factors, so anchors are between two rows: distances are 1/2, 3/2,
 * … 31/2 steps.
 *
 * Values that the kernel doubts, one in 2000, are computed again here in double from the same anchor and the same
 * steps: a step is a float and its rounding error, together 48 bits. What is open even then goes on to wave_table.c.
 *
 * The table of steps has 64 floats for each column, so runs in bf16 pay only from PE_AROUND_ROWS_MIN rows on; shorter
 * tables use wave_run.c. Even and odd columns have separate arrays because the kernel joins two 16-bit results from
 * neighbouring columns into one word. */
#include "core/waves/waves.h"
#include "core/kernels/kernels.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

/* Anchors lie between two rows, so that every row has a partner at the same distance on the other side. */
#define TO_ANCHOR (PE_RUN_HALF - 0.5)

/* Even columns, then odd ones; cosines, then sines. */
enum { EVEN_AND_ODD = 2, N_PARTS = 4 };

/* Column j is number j / 2 of the array for j % 2. A range of columns that begins with an odd one has its even and odd
 * columns the other way round. */
struct pe_run_bf16 {
    size_t half;                  /* numbers in an array, with room for whole groups */
    float *steps, *rests;         /* [PE_RUN_HALF, N_PARTS, half]: floats, and their rounding errors */
    float *sizes, *reach, *turns; /* [EVEN_AND_ODD, half]; of turns only the zeros matter */
    _Alignas(64) float all[];
};

/* ---- Making ---- */

/* Every second column of a group: cosines and sines at k + 1/2 steps and at one less, and twice the cosine of one. */
enum { STEP_COLS = PE_WAVE_GROUP / 2 };
struct ladder {
    double now[2][STEP_COLS], before[2][STEP_COLS], twice[STEP_COLS];
};

static void put_steps(const double *now, size_t n, float *steps, float *rests, float *largest)
{
    for (size_t j = 0; j < n; j++) {
        float x = (float)now[j], size = fabsf(x);
        steps[j] = x;
        rests[j] = (float)(now[j] - (double)x);
        largest[j] = size > largest[j] ? size : largest[j];
    }
}

static void climb(double *now, double *before, const double *twice, size_t n)
{
    for (size_t j = 0; j < n; j++) {
        double next = twice[j] * now[j] - before[j];
        before[j] = now[j];
        now[j] = next;
    }
}

/* By the recurrence of a run, whose bound covers it (settle_rows): sixteen exact rows would take five times as long. */
static void put_ladder(struct pe_run_bf16 *a, struct ladder *l, size_t parity, size_t at, size_t n)
{
    float cosines[STEP_COLS] = {0}, *reach = a->reach + parity * a->half + at;
    for (size_t k = 0; k < PE_RUN_HALF; k++) {
        size_t cosine = (k * N_PARTS + parity) * a->half + at, sine = cosine + EVEN_AND_ODD * a->half;
        put_steps(l->now[0], n, a->steps + cosine, a->rests + cosine, cosines);
        put_steps(l->now[1], n, a->steps + sine, a->rests + sine, reach);
        climb(l->now[0], l->before[0], l->twice, n);
        climb(l->now[1], l->before[1], l->twice, n);
    }
}

/* With zeros. */
static struct pe_run_bf16 *allocate(size_t n)
{
    enum { LINE = 64, FLOATS = LINE / sizeof(float) };
    size_t half = (n + PE_WAVES_LANES + 2 * FLOATS) / 2 / FLOATS * FLOATS, n_steps = PE_RUN_HALF * N_PARTS * half;
    size_t n_bytes = sizeof(struct pe_run_bf16) + (2 * n_steps + 3 * EVEN_AND_ODD * half) * sizeof(float);
    struct pe_run_bf16 *a = aligned_alloc(LINE, (n_bytes + LINE - 1) / LINE * LINE);
    if (!a)
        return NULL;
    memset(a, 0, n_bytes);
    a->half = half;
    a->steps = a->all;
    a->rests = a->steps + n_steps;
    a->sizes = a->rests + n_steps;
    a->reach = a->sizes + EVEN_AND_ODD * half;
    a->turns = a->reach + EVEN_AND_ODD * half;
    return a;
}

#define AMPLITUDE_MAX 0x1p50 /* the square of a bound of it is a float */

struct pe_run_bf16 *pe_run_bf16_new(const double *fh, const double *fl, const double *ah, const double *cosines,
                                    size_t n)
{
    for (size_t j = 0; j < n; j++)
        if (!(fabs(ah[j]) < AMPLITUDE_MAX))
            return NULL;
    struct pe_run_bf16 *a = allocate(n);
    if (!a)
        return NULL;
    for (size_t j = 0; j < n; j++) {
        a->sizes[j % 2 * a->half + j / 2] = (float)fabs(ah[j]);
        a->turns[j % 2 * a->half + j / 2] = fh[j] != 0 && ah[j] != 0;
    }
    /* A column with amplitude 0 is not rotated, because half of its zeros would be negative. */
    static const int64_t quarters[PE_WAVE_GROUP];
    _Alignas(64) double s[PE_WAVE_GROUP], c[PE_WAVE_GROUP], bounds[PE_WAVE_GROUP];
    struct ladder l;
    for (size_t at = 0, m; at < n; at += m) {
        m = n - at < PE_WAVE_GROUP ? n - at : PE_WAVE_GROUP;
        pe_kernels()->waves(0.5, fh + at, fl + at, NULL, NULL, quarters, false, m, s, c, bounds);
        for (size_t i = 0; i < EVEN_AND_ODD; i++) {
            for (size_t j = i; j < m; j += 2) {
                bool turns = ah[at + j] != 0;
                l.now[0][j / 2] = l.before[0][j / 2] = turns ? c[j] : 1;
                l.now[1][j / 2] = turns ? s[j] : 0;
                l.before[1][j / 2] = -l.now[1][j / 2];
                l.twice[j / 2] = turns ? 2 * cosines[at + j] : 2;
            }
            put_ladder(a, &l, i, at / 2, (m + 1 - i) / 2);
        }
    }
    return a;
}

bool pe_wave_has_around(enum pe_dtype dtype) { return dtype == PE_BF16; }

void pe_run_bf16_free(struct pe_run_bf16 *around) { free(around); }

/* ---- Blocks ---- */

/* Columns at a time: few enough that their steps and rows stay in the first-level cache. */
enum { COLS = 128, GROUPS = COLS / PE_WAVES_LANES };
_Static_assert((int)COLS % (int)PE_WAVES_LANES == 0, "a block is whole groups");

/* n_rows ≤ PE_RUN_ROWS rows of n_cols ≤ COLS columns from col on. */
struct block {
    const struct pe_wave_table *w;
    double anchor;
    struct pe_anchors at;
    const double *bounds;
    size_t col, n_rows, n_cols;
    uint16_t *dst;
    size_t stride;
};

/* Stores row n of column j from a double with a known error. */
static void settle_value(const struct block *b, size_t n, size_t j, double x, double error)
{
    double p = b->anchor - TO_ANCHOR + (double)n;
    if (n < b->n_rows)
        pe_store(PE_BF16, b->dst, n * b->stride + j, pe_wave_settle_narrow(b->w, PE_BF16, b->col + j, p, x, error));
}

/* Column j, k rows above the anchor and k below. In units of u·M (kernels/run.c): X is right to 2971 and, of Y's error,
 * the block sees 1374, where reach is at least |sin 16w|. Here it may be half of that, for |sin 16w| is at most
 * |sin 15½w| + |sin ½w|, and what is proportional to it doubles: below 5950 and 2750. The steps, from 1/2 up, are right
 * to 900 as a run's rows are, and their rests to 2^-49. Twice a run's bound, 10490, covers that. */
static void settle_rows(const struct block *b, size_t k, size_t j)
{
    const struct pe_run_bf16 *a = b->w->around;
    size_t col = b->col + j, at = (k * N_PARTS + col % 2) * a->half + col / 2, next = at + EVEN_AND_ODD * a->half;
    double x = b->at.x[j], y = b->at.y[j], reach = (double)a->reach[col % 2 * a->half + col / 2];
    double near = x * ((double)a->steps[at] + (double)a->rests[at]);
    double far = y * ((double)a->steps[next] + (double)a->rests[next]);
    double error = 2 * PE_RUN_ERROR * (fabs(x) + fabs(y) * reach) + b->bounds[j];
    settle_value(b, PE_RUN_HALF + k, j, near + far, error);
    settle_value(b, PE_RUN_HALF - 1 - k, j, near - far, error);
}

/* Row i % PE_RUN_HALF of group i / PE_RUN_HALF. */
static void settle_places(const struct block *b, size_t i, unsigned bits)
{
    for (; bits; bits &= bits - 1) {
        size_t j = i / PE_RUN_HALF * PE_WAVES_LANES + 2 * (size_t)__builtin_ctz(bits);
        for (size_t k = j; k < j + 2 && k < b->n_cols; k++)
            settle_rows(b, i % PE_RUN_HALF, k);
    }
}

/* Most places have no doubt, so four are checked at a time. */
static void settle(const struct block *b, const uint16_t *doubts)
{
    enum { AT_ONCE = sizeof(uint64_t) / sizeof *doubts };
    size_t n_groups = (b->n_cols + PE_WAVES_LANES - 1) / PE_WAVES_LANES;
    for (size_t i = 0; i < n_groups * PE_RUN_HALF; i += AT_ONCE) {
        uint64_t some;
        memcpy(&some, doubts + i, sizeof some);
        for (size_t k = 0; some && k < AT_ONCE; k++)
            settle_places(b, i + k, doubts[i + k]);
    }
}

/* ---- Runs ---- */

static struct pe_anchors anchors_at(const struct pe_run_bf16 *a, size_t col, const double *x, const double *y,
                                    float (*squares)[COLS / 2])
{
    struct pe_anchors at = {.x = x, .y = y, .step_stride = N_PARTS * a->half};
    for (size_t i = 0; i < EVEN_AND_ODD; i++) {
        const float *steps = a->steps + (col + i) % 2 * a->half + (col + i) / 2;
        at.squares[i] = squares[i];
        at.steps[i] = steps;
        at.steps[EVEN_AND_ODD + i] = steps + EVEN_AND_ODD * a->half;
    }
    return at;
}

static void set_squares(const struct pe_run_bf16 *a, size_t col, const double *x, const double *y, const double *bounds,
                        size_t n, float (*squares)[COLS / 2])
{
    const float *sizes[EVEN_AND_ODD], *reach[EVEN_AND_ODD], *turns[EVEN_AND_ODD];
    for (size_t i = 0; i < EVEN_AND_ODD; i++) {
        size_t from = (col + i) % 2 * a->half + (col + i) / 2;
        sizes[i] = a->sizes + from;
        reach[i] = a->reach + from;
        turns[i] = a->turns + from;
    }
    pe_kernels()->around_squares(x, y, bounds, sizes, reach, turns, n, (float *const[]){squares[0], squares[1]});
}

/* A run of n_cols ≤ COLS columns: an exact anchor, then rotated anchors. */
static void fill_columns(const struct pe_wave_table *w, double p, size_t n_rows, size_t col, size_t n_cols,
                         uint16_t *dst, size_t stride)
{
    _Alignas(64) double x[COLS], y[COLS], bounds[COLS];
    _Alignas(64) float squares[EVEN_AND_ODD][COLS / 2];
    size_t padded = (n_cols + PE_WAVES_LANES - 1) / PE_WAVES_LANES * PE_WAVES_LANES, n_turns = PE_RUN_TURNS;
    struct block b = {w, 0, anchors_at(w->around, col, x, y, squares), bounds, col, 0, n_cols, dst, stride};
    for (size_t done = 0; done < n_rows; done += PE_RUN_ROWS) {
        b.anchor = p + (double)done + TO_ANCHOR;
        b.n_rows = n_rows - done < PE_RUN_ROWS ? n_rows - done : PE_RUN_ROWS;
        b.dst = dst + done * stride;
        if (n_turns++ == PE_RUN_TURNS) {
            pe_wave_evaluate(w, b.anchor, col, padded, x, y, bounds);
            set_squares(w->around, col, x, y, bounds, padded, squares);
            n_turns = 0;
        } else {
            pe_kernels()->turn(x, y, w->far_cosine + col, w->far_sine + col, padded);
        }
        /* Uses a scratch buffer if rows or columns are missing. */
        uint16_t scratch[PE_RUN_ROWS * COLS], doubts[GROUPS * PE_RUN_HALF];
        bool whole = b.n_rows == PE_RUN_ROWS && b.n_cols % PE_WAVES_LANES == 0;
        bool doubtful =
            pe_kernels()->around_bf16(&b.at, b.n_cols, whole ? b.dst : scratch, whole ? b.stride : COLS, doubts);
        for (size_t i = 0; !whole && i < b.n_rows; i++)
            memcpy(b.dst + i * b.stride, scratch + i * COLS, b.n_cols * sizeof *scratch);
        if (doubtful)
            settle(&b, doubts);
    }
}

void pe_run_bf16_fill(const struct pe_wave_table *table, double p, size_t n_rows, size_t col0, size_t n_cols,
                      uint16_t *dst, size_t stride)
{
    for (size_t at = 0; at < n_cols; at += COLS)
        fill_columns(table, p, n_rows, col0 + at, n_cols - at < COLS ? n_cols - at : COLS, dst + at, stride);
}
