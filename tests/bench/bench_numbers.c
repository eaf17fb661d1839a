/* How fast numbers become text and text numbers, beside libc and jansson, in one process and in
 * turn. Prints the median over the rounds of millions of numbers per second of thread CPU time.
 */
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

/* How numbers are printed: by us with so many digits, by libc in the form g or f; or read. */
struct contestant {
    const char *name;
    void (*run)(const struct contestant *self);
    enum pe_dtype dtype;
    const void *numbers;
    int digits;
    const char *form, *json;
};

static void print_ours(const struct contestant *c) { api_numbers_print(text, c->dtype, c->numbers, N, c->digits); }

static void print_map(const struct contestant *c)
{
    struct api_elements elements;
    api_elements_init(&elements, PE_F32, (uint64_t[]){SIDE, SIDE}, 2, c->digits);
    sink = (double)api_elements_print(&elements, map, 0, N, text);
}

static void print_libc(const struct contestant *c)
{
    char *p = text;
    for (size_t i = 0; i < N; i++)
        p += sprintf(p, *c->form == 'f' ? "%.*f," : "%.*g,", c->digits,
                     c->dtype == PE_F64 ? doubles[i] : (double)table[i]);
}

static void print_jansson(const struct contestant *c)
{
    (void)c;
    json_t *array = json_array();
    for (size_t i = 0; i < N; i++)
        json_array_append_new(array, json_real((double)table[i]));
    sink = (double)json_dumpb(array, text, sizeof text, JSON_REAL_PRECISION(9) | JSON_COMPACT);
    json_decref(array);
}

/* Into memory that is there already, like strtod; what the first touch of fresh pages costs is the
 * kernel's. */
static void read_ours(const struct contestant *c)
{
    static struct api_doubles out;
    uint64_t shape[PE_RANK_MAX];
    unsigned rank;
    const char *p = c->json;
    out.n = 0;
    if (api_numbers_read(&p, c->json + strlen(c->json), &out, shape, &rank) != API_READ_OK || out.n != N)
        abort();
    sink = out.values[N - 1];
}

static void read_libc(const struct contestant *c)
{
    char *p = (char *)(uintptr_t)(c->json + 1);
    for (size_t i = 0; i < N; i++, p++)
        sink = strtod(p, &p);
}

static void read_jansson(const struct contestant *c)
{
    json_t *array = json_loads(c->json, 0, NULL);
    sink = json_real_value(json_array_get(array, N - 1));
    json_decref(array);
}

static const struct contestant contestants[] = {
    {"print f32 shortest", print_ours, PE_F32, table, API_DIGITS_SHORTEST, NULL, NULL},
    {"  snprintf %.9g", print_libc, PE_F32, NULL, 9, "g", NULL},
    {"  jansson build and dump, 9 digits", print_jansson, PE_F32, NULL, 9, NULL, NULL},
    {"print a bias map", print_map, PE_F32, map, API_DIGITS_SHORTEST, NULL, NULL},
    {"  number by number", print_ours, PE_F32, map, API_DIGITS_SHORTEST, NULL, NULL},
    {"print f64 shortest", print_ours, PE_F64, doubles, API_DIGITS_SHORTEST, NULL, NULL},
    {"  snprintf %.17g", print_libc, PE_F64, NULL, 17, "g", NULL},
    {"print f32, 4 digits", print_ours, PE_F32, table, 4, NULL, NULL},
    {"  snprintf %.4f", print_libc, PE_F32, NULL, 4, "f", NULL},
    {"print f64, 17 digits", print_ours, PE_F64, doubles, 17, NULL, NULL},
    {"read shortest f32", read_ours, PE_F32, NULL, 0, NULL, json_f32},
    {"  strtod", read_libc, PE_F32, NULL, 0, NULL, json_f32},
    {"  jansson", read_jansson, PE_F32, NULL, 0, NULL, json_f32},
    {"read shortest f64", read_ours, PE_F64, NULL, 0, NULL, json_f64},
    {"  strtod", read_libc, PE_F64, NULL, 0, NULL, json_f64},
    {"  jansson", read_jansson, PE_F64, NULL, 0, NULL, json_f64},
    {"read 4 digits", read_ours, PE_F32, NULL, 4, NULL, json_fixed},
    {"  strtod", read_libc, PE_F32, NULL, 4, NULL, json_fixed},
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
            contestants[i].run(&contestants[i]);
            times[i][round] = seconds() - start;
        }
    for (int i = 0; i < N_CONTESTANTS; i++) {
        printf("%-36s %7.1f M/s\n", contestants[i].name, 1e-6 * N / median(times[i], N_ROUNDS));
    }
    return 0;
}
