/* How long metrics take, beside the bare product that forms the Gram matrix of the same rows: thread CPU time of one
 * thread, in one process and in turn. Arguments: "table" METRIC SCHEME DIM LEN, which prints seconds of the metric and
 * of the product; or "metrics" LEN HEAD_DIM, which prints those of the usual metrics of rope. */
#include "core/numeric/gemm.h"
#include "core/posenc.h"
#include "tests/bench/bench.h"

#include <stdio.h>
#include <string.h>

enum { BLOCK = 1024, NAMES_MAX = 32 };

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
    struct pe_error err;
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

static void bench_table(char **args)
{
    struct pe_value name = {.kind = PE_STRING, .string = args[0]}, metrics = {.kind = PE_LIST, .list = {&name, 1}};
    struct pe_field config[] = {
        {"scheme", {.kind = PE_STRING, .string = args[1]}}, {"dim", integer(args[2])}, {"len", integer(args[3])}};
    double ours = analyse(config, 3, &metrics);
    printf("%.9g %.9g\n", ours, time_of_product((size_t)config[2].value.integer, (size_t)config[1].value.integer));
}

/* Not: those that plan other lengths, and those of other families. */
static bool is_usual(const char *name)
{
    static const char *const others[] = {"extrapolation", "properties", "difference", "receptive"};
    for (size_t i = 0; i < sizeof others / sizeof others[0]; i++)
        if (strcmp(name, others[i]) == 0)
            return false;
    return true;
}

static void bench_metrics(char **args)
{
    struct pe_value names[NAMES_MAX], metrics = {.kind = PE_LIST, .list = {names, 0}};
    struct pe_field config[] = {
        {"scheme", {.kind = PE_STRING, .string = "rope"}}, {"len", integer(args[0])}, {"head_dim", integer(args[1])}};
    for (size_t m = 0; m < pe_n_metrics(); m++)
        if (is_usual(pe_metric_at(m)->name))
            names[metrics.list.n++] = (struct pe_value){.kind = PE_STRING, .string = pe_metric_at(m)->name};
    analyse(config, 3, &metrics);
    printf("%.9g\n", analyse(config, 3, &metrics));
}

int main(int n_args, char **args)
{
    pe_gemm_setup();
    if (n_args == 6 && strcmp(args[1], "table") == 0)
        bench_table(args + 2);
    else if (n_args == 4 && strcmp(args[1], "metrics") == 0)
        bench_metrics(args + 2);
    else if (n_args == 1)
        bench_metrics((char *[]){"2048", "128"});
    else
        fail("usage: bench_analysis table METRIC SCHEME DIM LEN | metrics LEN HEAD_DIM");
    return 0;
}
