/* Rows of attention: maxima, exponentials and their sums, caps, gates and biases, on rows of any length and
 * alignment.
 *
 * A template: attend_f32.c and attend_f64.c define the type and its constants and include it. Unlike the other
 * kernels' results, those of exp, cap and sigmoid differ in last bits between instruction sets: products are fused
 * where the machine can. An element's result depends on the element alone: the remainder of a row after whole groups
 * of registers goes through the same operations in a padded group.
 *
 * Softmax subtracts a row's maximum, so exponents are at most 0 and the sum is at least 1; it cannot overflow, and what
 * underflows is below the last bit of the sum. e^x is 2^n·e^r as in any libm (Cody and Waite 1980): ln 2 in two parts,
 * the first times n exact, and a minimax polynomial for |r| ≤ ln2/2. Sums are in
 * double whatever the type, so that a row of a million logits keeps its digits.
 *
 * Four registers are processed in parallel because the polynomial is one chain of dependent products. Masked entries
 * are exact zeros without passing through subnormals, which cost a hundred cycles each on some machines. */
#include <math.h>

typedef whole vm __attribute__((vector_size(WIDTH * sizeof(real)))); /* masks: a comparison's 0 and -1 */
typedef word vw __attribute__((vector_size(WIDTH * sizeof(real))));  /* bits, which may overflow */

/* A group: this many registers are processed in parallel, to hide the latency of a step. */
enum { SIDE = 4, GROUP = SIDE * WIDTH };
#define EACH for (size_t k = 0; k < SIDE; k++)

#define SIGN ((word)1 << (8 * sizeof(real) - 1))

static inline vr everywhere(real x) { return x - (vr){0}; } /* x - 0 is x, also for -0 */

static inline vr where(vm mask, vr yes, vr no) { return (vr)(((vm)yes & mask) | ((vm)no & ~mask)); }

static inline vr absolute(vr x) { return (vr)((vw)x & ~SIGN); }

/* By value: GCC keeps an array whose elements are copied to by memcpy in memory. */
static inline vr load_wide(const real *from)
{
    vr v;
    memcpy(&v, from, sizeof v);
    return v;
}

static inline void store_wide(real *to, vr v) { memcpy(to, &v, sizeof v); }

static inline void load_group(vr x[SIDE], const real *from) { EACH x[k] = load_wide(from + k * WIDTH); }

static inline void store_group(real *to, const vr x[SIDE]) { EACH store_wide(to + k * WIDTH, x[k]); }

/* n < GROUP values and the padding. */
static inline void load_some(vr x[SIDE], const real *from, size_t n, real padding)
{
    real some[GROUP];
    for (size_t j = 0; j < GROUP; j++)
        some[j] = padding;
    memcpy(some, from, n * sizeof *from);
    load_group(x, some);
}

static inline void store_some(real *to, const vr x[SIDE], size_t n)
{
    real some[GROUP];
    store_group(some, x);
    memcpy(to, some, n * sizeof *to);
}

/* Makes all but the first n values 0, whatever they are. */
static inline void forget_after(size_t n, vr x[SIDE])
{
    vm lane;
    for (int i = 0; i < WIDTH; i++)
        lane[i] = i;
    EACH x[k] = (vr)((vm)x[k] & (lane < (whole)n - (whole)(k * WIDTH)));
}

/* The larger of two; x if it is NaN, like the machine's own instruction. */
static inline vr at_least(vr x, vr low)
{
#ifdef NATIVE
    return (vr)NATIVE(max)((native)low, (native)x);
#else
    return where(x < low, low, x);
#endif
}

/* a·b + c, and c - a·b: rounded once where the machine can. */
static inline vr plus(vr a, vr b, vr c)
{
#if defined(__AVX512F__) || (defined(__AVX2__) && defined(__FMA__))
    return (vr)NATIVE(fmadd)((native)a, (native)b, (native)c);
#else
    return a * b + c;
#endif
}

static inline vr minus(vr a, vr b, vr c)
{
#if defined(__AVX512F__) || (defined(__AVX2__) && defined(__FMA__))
    return (vr)NATIVE(fnmadd)((native)a, (native)b, (native)c);
#else
    return c - a * b;
#endif
}

/* e^x = 2^n·(1 + r + tail) for n the nearest integer to x/ln2 and |r| ≤ ln2/2. The low bits of code are n plus the
 * exponent's bias plus LIFT: the least results are reached from 2^LIFT times themselves, which are not subnormal. */
struct powers {
    vr n[SIDE], r[SIDE], tail[SIDE];
    vw code[SIDE];
};
enum { LIFT = FRACTION_BITS + 2 };

static inline void powers(const vr x[SIDE], struct powers *e)
{
    const real magic = MAGIC + EXPONENT_BIAS + LIFT;
    enum { TERMS = sizeof EXP_SERIES / sizeof *EXP_SERIES };
    vr high[SIDE], q[SIDE];
    EACH e->n[k] = plus(x[k], everywhere(LOG2_E), everywhere(magic));
    EACH e->code[k] = (vw)e->n[k];
    EACH e->n[k] -= magic;
    EACH high[k] = minus(e->n[k], everywhere(LN2_HIGH), x[k]);
    EACH e->r[k] = minus(e->n[k], everywhere(LN2_LOW), high[k]);
    EACH q[k] = everywhere(EXP_SERIES[TERMS - 1]);
    for (int i = TERMS - 2; i >= 0; i--)
        EACH q[k] = plus(q[k], e->r[k], everywhere(EXP_SERIES[i]));
    EACH e->tail[k] = e->r[k] * e->r[k] * q[k];
    if (sizeof(real) == sizeof(double)) /* what r's rounding lost; a float can do without */
        EACH e->tail[k] += minus(e->n[k], everywhere(LN2_LOW), high[k] - e->r[k]);
}

/* p·2^n. */
static inline void scale_by_powers(const struct powers *e, vr p[SIDE])
{
#if defined(__AVX512F__)
    EACH p[k] = (vr)NATIVE(scalef)((native)p[k], (native)e->n[k]);
#else
    const real lower = (real)1 / (real)((word)1 << LIFT);
    EACH p[k] = p[k] * (vr)(e->code[k] << FRACTION_BITS) * lower;
#endif
}

/* p = e^x for x that is not much above 0; makes x 0 where p is. Masked entries are so common in attention that they
 * must not reach 0 through an underflow, which takes a hundred cycles on some machines. 1 + r is summed exactly. */
static inline void exponential(vr x[SIDE], vr p[SIDE])
{
    struct powers e;
    vm none[SIDE];
    vr one[SIDE];
    EACH none[k] = x[k] < EXP_LOWEST;
    EACH x[k] = (vr)((vm)x[k] & ~none[k]);
    powers(x, &e);
    EACH one[k] = e.r[k] + 1;
    EACH p[k] = one[k] + (e.r[k] - (one[k] - 1) + e.tail[k]);
    scale_by_powers(&e, p);
    EACH p[k] = (vr)((vm)p[k] & ~none[k]);
}

/* m = e^x - 1 for x in [EXP_LOST, 0], small where x is: 2^n - 1 + 2^n·(r + tail). */
static inline void exponential_minus_one(const vr x[SIDE], vr m[SIDE])
{
    struct powers e;
    vr power[SIDE];
    powers(x, &e);
    EACH power[k] = (vr)((e.code[k] - LIFT) << FRACTION_BITS);
    EACH m[k] = plus(power[k], e.r[k] + e.tail[k], power[k] - 1);
}

/* Sums in double, separate for each lane of a register until the end of the row. */
struct sums {
    vd of_exp[WIDTH / LANES], of_product[WIDTH / LANES];
};

static inline void add_up(struct sums *sums, const vr e[SIDE], const vr x[SIDE], bool weighted)
{
    EACH
    {
        vd wide_e[WIDTH / LANES], wide_x[WIDTH / LANES];
        widen(e[k], wide_e);
        widen(x[k], wide_x);
        for (int i = 0; i < WIDTH / LANES; i++) {
            sums->of_exp[i] += wide_e[i];
            if (weighted)
                sums->of_product[i] += wide_e[i] * wide_x[i];
        }
    }
}

static inline double total(const vd sums[WIDTH / LANES])
{
    double lane[WIDTH];
    memcpy(lane, sums, sizeof lane);
    for (int n = WIDTH / 2; n > 0; n /= 2)
        for (int k = 0; k < n; k++)
            lane[k] += lane[k + n];
    return lane[0];
}

PE_INLINED double exp_row(real *s, size_t n, real max, bool weighted, double *product)
{
    struct sums sums = {0};
    vr x[SIDE], e[SIDE];
    size_t j = 0;
    for (; j + GROUP <= n; j += GROUP) {
        load_group(x, s + j);
        EACH x[k] -= max;
        exponential(x, e);
        store_group(s + j, e);
        add_up(&sums, e, x, weighted);
    }
    if (j < n) {
        load_some(x, s + j, n - j, max);
        EACH x[k] -= max;
        exponential(x, e);
        store_some(s + j, e, n - j);
        forget_after(n - j, x); /* where max is infinite, the padding is NaN */
        forget_after(n - j, e);
        add_up(&sums, e, x, weighted);
    }
    if (weighted)
        *product = total(sums.of_product);
    return total(sums.of_exp);
}

double KERNEL(exp)(real *s, size_t n, real max, double *weighted)
{
    return weighted ? exp_row(s, n, max, true, weighted) : exp_row(s, n, max, false, NULL);
}

static inline void compare(const vr x[SIDE], vr largest[SIDE], vm nan[SIDE])
{
    EACH nan[k] |= x[k] != x[k];
    EACH largest[k] = at_least(largest[k], x[k]);
}

real KERNEL(max)(const real *s, size_t n)
{
    vr largest[SIDE], x[SIDE];
    vm nan[SIDE] = {0};
    size_t j = 0;
    EACH largest[k] = everywhere(-(real)INFINITY);
    for (; j + GROUP <= n; j += GROUP) {
        load_group(x, s + j);
        compare(x, largest, nan);
    }
    if (j < n) {
        load_some(x, s + j, n - j, -(real)INFINITY);
        compare(x, largest, nan);
    }
    for (size_t k = 1; k < SIDE; k++) {
        largest[0] = at_least(largest[0], largest[k]);
        nan[0] |= nan[k];
    }
    real max = largest[0][0];
    whole any_nan = nan[0][0];
    for (int i = 1; i < WIDTH; i++) {
        max = largest[0][i] > max ? largest[0][i] : max;
        any_nan |= nan[0][i];
    }
    return any_nan ? (real)NAN : max;
}

void KERNEL(scale)(real *s, size_t n, real factor)
{
    for (size_t j = 0; j < n; j++)
        s[j] *= factor;
}

void KERNEL(add)(real *restrict s, const real *restrict b, size_t n, real factor)
{
    for (size_t j = 0; j < n; j++)
        s[j] += factor * b[j];
}

void KERNEL(gather_add)(real *restrict s, const real *restrict table, const int32_t *restrict index, size_t n,
                        real factor)
{
    for (size_t j = 0; j < n; j++)
        s[j] += factor * table[index[j]];
}

/* cap·tanh(s/cap), tanh|x| = -m/(2 + m) for m = e^(-2|x|) - 1. */
static inline void capped(vr s[SIDE], real cap)
{
    vr x[SIDE], size[SIDE], m[SIDE];
    EACH x[k] = s[k] / cap;
    EACH size[k] = absolute(x[k]);
    EACH m[k] = at_least(size[k] * -2, everywhere(EXP_LOST));
    exponential_minus_one(m, m);
    EACH m[k] = (vr)((vw)(-m[k] / (m[k] + 2)) | ((vw)x[k] & SIGN));
    EACH s[k] = where(size[k] < TANH_TINY, s[k], m[k] * cap);
}

/* 1/(1 + e^-s) = e^s/(1 + e^s): uses the form with the exponential of a negative number, which cannot overflow. */
static inline void gated(vr s[SIDE], real unused)
{
    (void)unused;
    vr x[SIDE], e[SIDE];
    EACH x[k] = -absolute(s[k]);
    exponential(x, e);
    EACH s[k] = where(s[k] < 0, e[k], everywhere(1)) / (e[k] + 1);
}

/* out = change(s) for the whole row. */
PE_INLINED void map(void (*change)(vr[SIDE], real), real parameter, const real *s, size_t n, real *out)
{
    vr x[SIDE];
    size_t j = 0;
    for (; j + GROUP <= n; j += GROUP) {
        load_group(x, s + j);
        change(x, parameter);
        store_group(out + j, x);
    }
    if (j < n) {
        load_some(x, s + j, n - j, 0);
        change(x, parameter);
        store_some(out + j, x, n - j);
    }
}

void KERNEL(cap)(real *s, size_t n, real cap) { map(capped, cap, s, n, s); }

void KERNEL(sigmoid)(const real *s, size_t n, real *out) { map(gated, 0, s, n, out); }
