/* How long metrics take, beside the bare product that forms the Gram matrix of the same rows: thread CPU time of one
 * thread, in one process and in turn. Arguments: METRIC SCHEME DIM LEN. Prints seconds of the metric and of the
 * product. */
#include "core/numeric/numeric.h"
#include "core/inside.h"
#include "tests/bench/bench.h"

#include <stdio.h>

enum { BLOCK = 1024 };

static void fail(const char *why)
{
    fprintf(stderr, "%s\n", why);
    exit(1);
}

static double analyse(const struct pe_field *config, size_t n_config, const struct pe_value *metrics)
{
    struct pe_field fields[] = {{"metrics", *metrics}};
    struct pe_entry entry = {config, n_config, n_config, ""};
    struct pe_analysis_request request = {
        .fields = fields, .n_fields = 1, .entries = &entry, .n_entries = 1, .max_work = 1e13};
    struct pe_analysis *analysis;
    struct pe_failure err;
    double start = seconds();
    if (pe_analysis_new(&request, &analysis, &err))
        fail(err.detail);
    double taken = seconds() - start;
    pe_analysis_free(analysis);
    return taken;
}

static struct pe_value integer(const char *text)
{
    return (struct pe_value){.kind = PE_INTEGER, .integer = strtoll(text, NULL, 10)};
}

/* Blocks of rows, whose products go to the same memory: that of the whole matrix would cost its first touch too. */
static double multiply(const double *rows, double *block, size_t n, size_t dim)
{
    double start = seconds();
    for (size_t i = 0; i < n; i += BLOCK)
        pe_gemm_abt_f64(n - i < BLOCK ? n - i : BLOCK, n, dim, 1, rows + i * dim, dim, rows, dim, 0, block, n);
    return seconds() - start;
}

static double time_of_product(size_t n, size_t dim)
{
    double *rows = malloc(n * dim * sizeof *rows), *block = calloc(BLOCK * n, sizeof *block);
    if (!rows || !block)
        fail("no memory");
    for (size_t i = 0; i < n * dim; i++)
        rows[i] = (double)(i % 1009) / 1009;
    multiply(rows, block, BLOCK, dim);
    double taken = multiply(rows, block, n, dim);
    free(rows);
    free(block);
    return taken;
}

int main(int n_args, char **args)
{
    if (n_args != 5)
        fail("usage: bench_analysis METRIC SCHEME DIM LEN");
    struct pe_value name = {.kind = PE_STRING, .string = args[1]}, metrics = {.kind = PE_LIST, .list = {&name, 1}};
    struct pe_field config[] = {
        {"scheme", {.kind = PE_STRING, .string = args[2]}}, {"dim", integer(args[3])}, {"len", integer(args[4])}};
    pe_gemm_setup();
    double ours = analyse(config, 3, &metrics);
    printf("%.9g %.9g\n", ours, time_of_product((size_t)config[2].value.integer, (size_t)config[1].value.integer));
    return 0;
}
