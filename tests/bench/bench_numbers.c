/* How fast numbers become text and text numbers, beside libc and jansson, in one process and in
 * turn. Prints the median over the rounds of millions of numbers per second of thread CPU time.
 * Link with api/numbers_*.c, core/numeric/dtype.c, jansson, m. */
#include "api/numbers/numbers.h"
#include "tests/bench/bench.h"

#include <jansson.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { POSITIONS = 512, DIM = 128, N = POSITIONS * DIM, SIDE = 256, N_ROUNDS = 15, TEXT_BYTES = N * 32 };

static float table[N];    /* a sinusoidal table: what the service prints most */
static float map[N];      /* a bias of distances, [256, 256]: each row is the one before moved by one */
static double doubles[N]; /* 17 digits each */
static char text[TEXT_BYTES], json_f32[TEXT_BYTES], json_f64[TEXT_BYTES], json_fixed[TEXT_BYTES];
static volatile double sink;

/* ---- Contestants: each handles the N numbers once ---- */

static void print_f32(void) { api_numbers_print(text, PE_F32, table, N, API_DIGITS_SHORTEST); }
static void print_f64(void) { api_numbers_print(text, PE_F64, doubles, N, API_DIGITS_SHORTEST); }
static void print_fixed_f32(void) { api_numbers_print(text, PE_F32, table, N, 4); }
static void print_fixed_f64(void) { api_numbers_print(text, PE_F64, doubles, N, 17); }

static void print_map(void)
{
    struct api_elements elements;
    api_elements_init(&elements, PE_F32, (uint64_t[]){SIDE, SIDE}, 2, API_DIGITS_SHORTEST);
    sink = (double)api_elements_print(&elements, map, 0, N, text);
}

static void print_map_plain(void) { api_numbers_print(text, PE_F32, map, N, API_DIGITS_SHORTEST); }

static void print_libc_9(void)
{
    char *p = text;
    for (size_t i = 0; i < N; i++)
        p += sprintf(p, "%.9g,", (double)table[i]);
}

static void print_libc_17(void)
{
    char *p = text;
    for (size_t i = 0; i < N; i++)
        p += sprintf(p, "%.17g,", doubles[i]);
}

static void print_libc_fixed(void)
{
    char *p = text;
    for (size_t i = 0; i < N; i++)
        p += sprintf(p, "%.4f,", (double)table[i]);
}

static void print_jansson(void)
{
    json_t *array = json_array();
    for (size_t i = 0; i < N; i++)
        json_array_append_new(array, json_real((double)table[i]));
    sink = (double)json_dumpb(array, text, sizeof text, JSON_REAL_PRECISION(9) | JSON_COMPACT);
    json_decref(array);
}

/* Into memory that is there already, like strtod; what the first touch of fresh pages costs is the
 * kernel's. */
static void read_ours(const char *json)
{
    static struct api_doubles out;
    uint64_t shape[PE_RANK_MAX];
    unsigned rank;
    const char *p = json;
    out.n = 0;
    if (api_numbers_read(&p, json + strlen(json), &out, shape, &rank) != API_READ_OK || out.n != N)
        abort();
    sink = out.values[N - 1];
}

static void read_libc(const char *json)
{
    char *p = (char *)(uintptr_t)(json + 1);
    for (size_t i = 0; i < N; i++, p++)
        sink = strtod(p, &p);
}

static void read_jansson(const char *json)
{
    json_t *array = json_loads(json, 0, NULL);
    sink = json_real_value(json_array_get(array, N - 1));
    json_decref(array);
}

static void read_f32_ours(void) { read_ours(json_f32); }
static void read_f32_libc(void) { read_libc(json_f32); }
static void read_f32_jansson(void) { read_jansson(json_f32); }
static void read_f64_ours(void) { read_ours(json_f64); }
static void read_f64_libc(void) { read_libc(json_f64); }
static void read_f64_jansson(void) { read_jansson(json_f64); }
static void read_fixed_ours(void) { read_ours(json_fixed); }
static void read_fixed_libc(void) { read_libc(json_fixed); }

static const struct {
    const char *name;
    void (*run)(void);
} contestants[] = {
    {"print f32 shortest", print_f32},
    {"  snprintf %.9g", print_libc_9},
    {"  jansson build and dump, 9 digits", print_jansson},
    {"print a bias map", print_map},
    {"  number by number", print_map_plain},
    {"print f64 shortest", print_f64},
    {"  snprintf %.17g", print_libc_17},
    {"print f32, 4 digits", print_fixed_f32},
    {"  snprintf %.4f", print_libc_fixed},
    {"print f64, 17 digits", print_fixed_f64},
    {"read shortest f32", read_f32_ours},
    {"  strtod", read_f32_libc},
    {"  jansson", read_f32_jansson},
    {"read shortest f64", read_f64_ours},
    {"  strtod", read_f64_libc},
    {"  jansson", read_f64_jansson},
    {"read 4 digits", read_fixed_ours},
    {"  strtod", read_fixed_libc},
};
enum { N_CONTESTANTS = sizeof contestants / sizeof *contestants };

static void print_array(char *dst, enum pe_dtype dtype, const void *src, int digits)
{
    *dst++ = '[';
    dst = api_numbers_print(dst, dtype, src, N, digits);
    strcpy(dst, "]");
}

static void prepare(void)
{
    for (int i = 0; i < N; i++) {
        double angle = i / DIM * pow(10000, -(double)(i % DIM / 2 * 2) / DIM);
        doubles[i] = i % 2 ? cos(angle) : sin(angle);
        table[i] = (float)doubles[i];
        map[i] = -0.1234567f * (float)abs(i % SIDE - i / SIDE);
    }
    print_array(json_f32, PE_F32, table, API_DIGITS_SHORTEST);
    print_array(json_f64, PE_F64, doubles, API_DIGITS_SHORTEST);
    print_array(json_fixed, PE_F32, table, 4);
}

int main(void)
{
    static double times[N_CONTESTANTS][N_ROUNDS];
    prepare();
    for (int round = 0; round < N_ROUNDS; round++)
        for (int i = 0; i < N_CONTESTANTS; i++) {
            double start = seconds();
            contestants[i].run();
            times[i][round] = seconds() - start;
        }
    for (int i = 0; i < N_CONTESTANTS; i++) {
        printf("%-36s %7.1f M/s\n", contestants[i].name, 1e-6 * N / median(times[i], N_ROUNDS));
    }
    return 0;
}
