/* The tests of test_attend.c for one type, selected by BITS. */
#define JOIN_(name, bits) name##_##bits
#define JOIN(name, bits) JOIN_(name, bits)
#define OF(name) JOIN(name, BITS)
#define KERNEL_JOIN_(name, bits) name##_f##bits
#define KERNEL_JOIN(name, bits) KERNEL_JOIN_(name, bits)
#define KERNEL(name) KERNEL_JOIN(name, BITS)
#define REAL JOIN_2(real, BITS)
#define JOIN_2_(name, bits) name##bits
#define JOIN_2(name, bits) JOIN_2_(name, bits)
#define NEXT (BITS == 32 ? 0x1p-23L : 0x1p-52L)     /* from 1 to the next number */
#define LEAST (BITS == 32 ? 0x1p-149L : 0x1p-1074L) /* above 0 */
#define NORMAL (BITS == 32 ? -126 : -1022)          /* exponent of the least number that is not subnormal */
#define LOWEST (BITS == 32 ? -103.9 : -745.1)       /* where exp is still above 0 */

/* The error of a value, in units of the spacing of numbers there. */
static long double OF(ulps)(REAL value, long double truth)
{
    int exponent;
    frexpl(truth, &exponent);
    long double step = exponent - 1 < NORMAL ? LEAST : ldexpl(NEXT, exponent - 1);
    return fabsl((long double)value - truth) / step;
}

static void OF(check_near)(const struct pe_kernels *kernels)
{
    static REAL x[BLOCK], e[BLOCK];
    long double worst = 0;
    for (uint64_t round = 0; round < 64; round++) {
        for (uint64_t i = 0; i < BLOCK; i++) {
            double u = chance(round * BLOCK + i);
            /* Evenly, near 0, and between neighbouring powers of two, where the remainder is largest. */
            x[i] = (REAL)(i % 4 == 0   ? -exp2(-u * 60 + 6)
                          : i % 4 == 1 ? -0.6931471805599453 * (floor(u * -LOWEST) + 0.5 + (u - 0.5) * 1e-3)
                                       : u * LOWEST);
            x[i] = (double)x[i] < LOWEST ? 0 : x[i];
        }
        memcpy(e, x, sizeof e);
        kernels->KERNEL(exp)(e, BLOCK, 0, NULL);
        for (int i = 0; i < BLOCK; i++) {
            long double off = OF(ulps)(e[i], expl((long double)x[i]));
            worst = fmaxl(worst, off);
            assert_true(off <= (BITS == 32 ? 1.01L : 0.8L));
        }
    }
    assert_true(worst > 0.5L); /* otherwise the measure is wrong: rounding alone reaches this error */
}

TEST(OF(exponentials_are_near)) { for_all(OF(check_near)); }

static void OF(check_specials)(const struct pe_kernels *kernels)
{
    REAL infinite = (REAL)INFINITY,
         s[] = {0, (REAL)-0.0, -infinite, (REAL)NAN, (REAL)LOWEST, -2000, (REAL)-1e30, 1, 60};
    kernels->KERNEL(exp)(s, sizeof s / sizeof *s, 0, NULL);
    assert_true(s[0] == 1 && s[1] == 1);
    assert_true(s[2] == 0 && !signbit(s[2]) && isnan(s[3]));
    assert_true((long double)s[4] == LEAST);
    assert_true(s[5] == 0 && s[6] == 0 && !signbit(s[5]) && !signbit(s[6]));
    assert_true(OF(ulps)(s[7], expl(1)) <= 1.01L && OF(ulps)(s[8], expl(60)) <= 1.01L);
    REAL with_infinite[] = {infinite, 3, -infinite};
    assert_true(isnan(kernels->KERNEL(exp)(with_infinite, 3, infinite, NULL)));
    assert_true(isnan(with_infinite[0]) && with_infinite[1] == 0 && with_infinite[2] == 0);
    REAL all_masked[] = {-infinite, -infinite};
    assert_true(isnan(kernels->KERNEL(exp)(all_masked, 2, -infinite, NULL)) && isnan(all_masked[1]));
    double weighted = 1;
    REAL below_infinite[] = {3, -infinite};
    assert_true(kernels->KERNEL(exp)(below_infinite, 2, infinite, &weighted) == 0 && weighted == 0);
    weighted = 1;
    assert_true(kernels->KERNEL(exp)(s, 0, 0, &weighted) == 0 && weighted == 0);
}

TEST(OF(exponentials_of_specials)) { for_all(OF(check_specials)); }

static void OF(check_sums)(const struct pe_kernels *kernels)
{
    static REAL x[BLOCK], e[BLOCK];
    for (size_t n = 1; n <= BLOCK; n += n < 2 * LONGEST ? 1 : 317) {
        REAL max = (REAL)1.7;
        for (size_t i = 0; i < n; i++)
            e[i] = x[i] = chance(i * 7 + n) < 0.2 ? -(REAL)INFINITY : (REAL)(chance(i + n * BLOCK) * -30) + max;
        double weighted, sum = kernels->KERNEL(exp)(e, n, max, &weighted);
        long double expected = 0, expected_weighted = 0;
        for (size_t i = 0; i < n; i++) {
            expected += (long double)e[i];
            expected_weighted += x[i] == -(REAL)INFINITY ? 0 : (long double)e[i] * (long double)(REAL)(x[i] - max);
        }
        assert_true(fabsl((long double)sum - expected) <= 0x1p-49L * expected);
        assert_true(fabsl((long double)weighted - expected_weighted) <= 0x1p-49L * -expected_weighted);
        assert_true(kernels->KERNEL(exp)(memcpy(e, x, sizeof e), n, max, NULL) == sum);
    }
}

TEST(OF(sums)) { for_all(OF(check_sums)); }

/* Runs one kernel on a row and returns its sum, if it computes one. */
typedef double OF(runner)(const struct pe_kernels *kernels, REAL *s, size_t n);

static double OF(run_exp)(const struct pe_kernels *kernels, REAL *s, size_t n)
{
    double weighted, sum = kernels->KERNEL(exp)(s, n, 3, &weighted);
    return sum + weighted;
}
static double OF(run_cap)(const struct pe_kernels *kernels, REAL *s, size_t n)
{
    kernels->KERNEL(cap)(s, n, 5);
    return 0;
}
static double OF(run_sigmoid)(const struct pe_kernels *kernels, REAL *s, size_t n)
{
    kernels->KERNEL(sigmoid)(s, n, s);
    return 0;
}

/* Every element is the same as in a row of its own, every sum the same at any other place in memory; nothing beside the
 * row changes. */
static void OF(check_places)(const struct pe_kernels *kernels, OF(runner) * run)
{
    static REAL memory[LONGEST + 16], input[LONGEST];
    for (size_t n = 0; n <= LONGEST; n++) {
        double sums[8];
        for (size_t i = 0; i < n; i++)
            input[i] = i % 11 == 5 ? -(REAL)INFINITY : (REAL)(chance(i * 1000 + n) * 40 - 37);
        for (size_t place = 0; place < 8; place++) {
            REAL *s = memory + GUARD + place;
            for (size_t i = 0; i < LONGEST + 16; i++)
                memory[i] = 77;
            memcpy(s, input, n * sizeof *s);
            sums[place] = run(kernels, s, n);
            assert_memory_equal(&sums[place], &sums[0], sizeof *sums);
            for (size_t i = 0; i < GUARD; i++)
                assert_true(s[-1 - (int)i] == 77 && s[n + i] == 77);
            for (size_t i = 0; i < n; i++) {
                REAL alone = input[i];
                run(kernels, &alone, 1);
                assert_memory_equal(&alone, &s[i], sizeof alone);
            }
        }
    }
}

static void OF(check_all_places)(const struct pe_kernels *kernels)
{
    OF(check_places)(kernels, OF(run_exp));
    OF(check_places)(kernels, OF(run_cap));
    OF(check_places)(kernels, OF(run_sigmoid));
}

TEST(OF(any_length_and_place)) { for_all(OF(check_all_places)); }

static void OF(check_max)(const struct pe_kernels *kernels)
{
    static REAL memory[LONGEST + 1];
    REAL *s = memory + 1;
    assert_true(kernels->KERNEL(max)(s, 0) == -(REAL)INFINITY);
    for (size_t n = 1; n <= LONGEST; n++)
        for (size_t i = 0; i < n; i++) {
            for (size_t k = 0; k < n; k++)
                s[k] = k % 5 == 1 ? -(REAL)INFINITY : (REAL)(chance(k + n) * -9 - 1);
            s[i] = (REAL)-0.5;
            assert_true(kernels->KERNEL(max)(s, n) == (REAL)-0.5);
            s[(i + 1) % n] = (REAL)INFINITY;
            assert_true(kernels->KERNEL(max)(s, n) == (REAL)INFINITY);
            s[i] = (REAL)NAN;
            assert_true(isnan(kernels->KERNEL(max)(s, n)));
            for (size_t k = 0; k < n; k++)
                s[k] = -(REAL)INFINITY;
            assert_true(kernels->KERNEL(max)(s, n) == -(REAL)INFINITY);
        }
}

TEST(OF(largest_of_row)) { for_all(OF(check_max)); }

/* Products and sums are rounded one after the other: volatile prevents the compiler from fusing them here. */
static void OF(check_arithmetic)(const struct pe_kernels *kernels)
{
    static REAL s[LONGEST + 1], b[LONGEST + 1], from[LONGEST], table[7] = {1, 2, (REAL)0.1, -4, (REAL)1e-3, 9, 0};
    static int32_t index[LONGEST];
    for (size_t n = 0; n < LONGEST; n++)
        for (int f = 0; f < 2; f++) {
            REAL factor = f ? 1 : (REAL)0.7;
            table[6] = f ? -(REAL)INFINITY : 0;
            for (size_t i = 0; i < n; i++) {
                from[i] = (REAL)(chance(i + n) - 0.5);
                b[i + 1] = f && i % 3 == 0 ? -(REAL)INFINITY : (REAL)chance(i * 31 + n);
                index[i] = (int32_t)(chance(i * 17 + n) * 7);
            }
            s[n + 1] = 77;
            memcpy(s + 1, from, n * sizeof *s);
            kernels->KERNEL(scale)(s + 1, n, factor);
            for (size_t i = 0; i < n; i++)
                assert_true(s[i + 1] == from[i] * factor);
            memcpy(s + 1, from, n * sizeof *s);
            kernels->KERNEL(add)(s + 1, b + 1, n, factor);
            for (size_t i = 0; i < n; i++) {
                volatile REAL product = factor * b[i + 1];
                assert_true(s[i + 1] == from[i] + product);
            }
            memcpy(s + 1, from, n * sizeof *s);
            kernels->KERNEL(gather_add)(s + 1, table, index, n, factor);
            for (size_t i = 0; i < n; i++) {
                volatile REAL product = factor * table[index[i]];
                assert_true(s[i + 1] == from[i] + product);
            }
            assert_true(s[n + 1] == 77);
        }
}

TEST(OF(plain_arithmetic)) { for_all(OF(check_arithmetic)); }

static void OF(check_cap)(const struct pe_kernels *kernels)
{
    /* Quotient and product are exact where cap is a power of two: the remaining error is that of tanh. */
    static const REAL caps[] = {1, 32, 30, 50, (REAL)0.3, (REAL)1e4};
    static REAL x[BLOCK], y[BLOCK];
    for (size_t c = 0; c < sizeof caps / sizeof *caps; c++)
        for (uint64_t round = 0; round < 16; round++) {
            REAL cap = caps[c];
            for (uint64_t i = 0; i < BLOCK; i++) {
                double u = chance(round * BLOCK + i), sign = i % 2 ? -1 : 1;
                x[i] = (REAL)(sign * (double)cap * (i % 3 ? u * 12 : exp2(NORMAL * u * 1.02)));
            }
            memcpy(y, x, sizeof y);
            kernels->KERNEL(cap)(y, BLOCK, cap);
            for (int i = 0; i < BLOCK; i++) {
                long double wide = (long double)cap;
                assert_true(OF(ulps)(y[i], wide * tanhl((long double)x[i] / wide)) <= (c < 2 ? 2.6L : 4.5L));
                assert_true((y[i] < 0) == (x[i] < 0) && (y[i] < 0 ? -y[i] : y[i]) <= cap);
            }
        }
    REAL s[] = {(REAL)INFINITY, -(REAL)INFINITY, (REAL)NAN, 0, (REAL)-0.0};
    kernels->KERNEL(cap)(s, 5, 30);
    assert_true(s[0] == 30 && s[1] == -30 && isnan(s[2]) && s[3] == 0 && s[4] == 0);
    assert_true(!signbit(s[3]) && signbit(s[4]));
}

TEST(OF(capped)) { for_all(OF(check_cap)); }

static void OF(check_sigmoid)(const struct pe_kernels *kernels)
{
    static REAL x[BLOCK], y[BLOCK];
    for (uint64_t round = 0; round < 32; round++) {
        for (uint64_t i = 0; i < BLOCK; i++) {
            double u = chance(round * BLOCK + i);
            x[i] = (REAL)(i % 3 ? u * 40 - 20 : u * 1.5 * LOWEST - LOWEST / 2);
            x[i] = (double)x[i] < LOWEST ? 0 : x[i];
        }
        kernels->KERNEL(sigmoid)(x, BLOCK, y);
        for (int i = 0; i < BLOCK; i++)
            assert_true(OF(ulps)(y[i], 1 / (1 + expl(-(long double)x[i]))) <= 2.5L);
    }
    REAL s[] = {(REAL)INFINITY, -(REAL)INFINITY, (REAL)NAN, 0, (REAL)-0.0, -3000};
    kernels->KERNEL(sigmoid)(s, 6, s);
    assert_true(s[0] == 1 && s[1] == 0 && isnan(s[2]) && s[3] == (REAL)0.5 && s[4] == (REAL)0.5 && s[5] == 0);
}

TEST(OF(gated)) { for_all(OF(check_sigmoid)); }

/* ---- Products and picks ---- */

static void OF(fill_with_chance)(REAL *x, size_t n, uint64_t seed)
{
    for (size_t i = 0; i < n; i++)
        x[i] = (REAL)(chance(seed * 1000003 + i) - 0.5);
}

/* Every element within the bound of kernels.h's formula, and the same as in the product of all rows with all. */
static void OF(check_products)(const struct pe_kernels *kernels)
{
    enum { P = PE_PANEL_BYTES / sizeof(REAL), A = DEEP + 3, B = DEEP + 1, C = MANY + 5 };
    static REAL a[FEW * A], b[MANY * B], all[FEW * C], some[FEW * C];
    static _Alignas(64) REAL panels[(MANY + P) * DEEP];
    OF(fill_with_chance)(a, FEW * A, 1);
    OF(fill_with_chance)(b, MANY * B, 2);
    kernels->KERNEL(pack)(b, B, MANY, DEEP, panels);
    kernels->KERNEL(products)(FEW, 0, MANY, DEEP, (REAL)0.7, a, A, panels, all, C);
    for (size_t i = 0; i < FEW; i++)
        for (size_t j = 0; j < MANY; j++) {
            long double sum = 0, size = 0;
            for (size_t x = 0; x < DEEP; x++) {
                long double product = (long double)a[i * A + x] * (long double)b[j * B + x];
                sum += product;
                size += fabsl(product);
            }
            long double scale = (long double)(REAL)0.7, bound = (DEEP + 1) * NEXT / 2 * scale * size;
            assert_true(fabsl((long double)all[i * C + j] - scale * sum) <= bound);
        }
    for (size_t m = 1; m <= FEW; m++)
        for (size_t first = 0; first < 40; first += 13)
            for (size_t n = 1; first + n <= MANY; n += 6) {
                memset(some, 0, sizeof some);
                kernels->KERNEL(products)(m, first, n, DEEP, (REAL)0.7, a, A, panels, some, C);
                for (size_t i = 0; i < FEW; i++)
                    for (size_t j = 0; j < C; j++)
                        assert_true(some[i * C + j] == (i < m && j < n ? all[i * C + first + j] : 0));
            }
}

TEST(OF(products_of_any_size)) { for_all(OF(check_products)); }

/* step: 1 or -1; rows of the table stay for a while and then step. The others are plain loops. */
static void OF(check_picks)(const struct pe_kernels *kernels, int step, double stay)
{
    enum { S = MANY + 2, T = MANY + FEW };
    static REAL table[MANY * T + 16], s[FEW * S], truth[FEW * S];
    int32_t run[T], at = step > 0 ? 0 : T - 1;
    OF(fill_with_chance)(table, MANY * T + 16, 3);
    for (size_t m = 0; m < T; m++) {
        run[m] = at;
        at += chance(m) < stay ? 0 : step;
    }
    for (size_t m = 1; m <= FEW; m++)
        for (size_t n = 1; n <= MANY; n += 5) {
            const int32_t *index = run + m - 1;
            OF(fill_with_chance)(s, FEW * S, 4);
            memcpy(truth, s, sizeof s);
            kernels->KERNEL(pick_across_add)(s, S, table, T, index, m, n, (REAL)0.3);
            kernels->KERNEL(pick_add)(s, table, index, n);
            for (size_t i = 0; i < m; i++)
                for (size_t j = 0; j < n; j++)
                    truth[i * S + j] += (REAL)0.3 * table[j * T + (size_t)run[m - 1 + j - i]];
            for (size_t j = 0; j < n; j++)
                truth[j] += table[index[j]];
            assert_memory_equal(s, truth, sizeof s);
        }
}

static void OF(check_all_picks)(const struct pe_kernels *kernels)
{
    for (int step = -1; step <= 1; step += 2)
        for (double stay = 0; stay <= 1; stay += 0.25)
            OF(check_picks)(kernels, step, stay);
}

TEST(OF(picks_are_plain_loops)) { for_all(OF(check_all_picks)); }

#undef KERNEL
#undef OF
#undef REAL
#undef JOIN
#undef JOIN_
#undef JOIN_2
#undef JOIN_2_
#undef KERNEL_JOIN
#undef KERNEL_JOIN_
#undef NEXT
#undef LEAST
#undef NORMAL
#undef LOWEST
