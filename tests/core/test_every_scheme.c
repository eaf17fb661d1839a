/* The laws for every scheme of the registry: its example plans, any chunking gives the whole, each failed allocation is
 * survived, its resolved config gives the same bytes, and no text is missing. */
#include "tests/support/alloc.h"
#include "core/numeric/numeric.h"
#include "tests/support/cmocka.h"
#include "tests/support/request.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static const enum pe_dtype dtypes[] = {PE_F32, PE_F64, PE_F16, PE_BF16};
enum { N_DTYPES = sizeof dtypes / sizeof *dtypes };

static unsigned long long state = 0x9e3779b97f4a7c15ULL;

static size_t next_random(size_t below)
{
    state = state * 6364136223846793005ULL + 1442695040888963407ULL;
    return (size_t)((state >> 33) % below);
}

static size_t bytes_of(const struct pe_output *output)
{
    return (size_t)(output->n_rows * output->row_len) * pe_dtype_size(output->dtype);
}

/* All outputs of a plan, one after the other. */
static char *whole(const struct pe_plan *plan, size_t *size)
{
    *size = 0;
    for (size_t i = 0; i < pe_plan_n_outputs(plan); i++)
        *size += (bytes_of(pe_plan_output(plan, i)) + 63) & ~(size_t)63;
    char *all = aligned_alloc(64, *size ? *size : 64), *at = all;
    assert_non_null(all);
    memset(all, 0xee, *size);
    for (size_t i = 0; i < pe_plan_n_outputs(plan); i++) {
        const struct pe_output *output = pe_plan_output(plan, i);
        pe_fill(plan, i, 0, (size_t)(output->n_rows * output->row_len), at);
        at += (bytes_of(output) + 63) & ~(size_t)63;
    }
    return all;
}

static void assert_rows(const struct pe_param *rows)
{
    for (; rows->name; rows++) {
        if (rows->type == PE_T_WORD)
            assert_non_null(rows->words);
        if (rows->type == PE_T_OBJECT)
            assert_rows(rows->fields);
    }
}

static bool can_encode(size_t s) { return pe_scheme_can(pe_scheme_at(s), PE_ENCODE); }

/* The example, for the operation it is meant for. */
static void parse_example(struct test_request *r, size_t s)
{
    test_request_parse(r, pe_scheme_at(s)->example);
    r->request.operation = can_encode(s) ? PE_ENCODE : PE_ATTEND;
}

TEST(descriptors_are_complete)
{
    for (size_t s = 0; s < pe_n_schemes(); s++) {
        const struct pe_scheme_info *info = pe_scheme_at(s);
        assert_true(info->name && info->family && info->paper && info->example);
        assert_ptr_equal(pe_scheme_find(info->name), info);
        assert_rows(info->params);
        for (const struct pe_output_row *row = info->outputs; row->name; row++)
            assert_true(row->shape && row->row_axes);
        for (const struct pe_input_row *row = info->inputs; row && row->name; row++)
            assert_non_null(row->shape);
    }
    assert_rows(pe_sequence_params());
}

/* If the scheme has no output without weights, its defaults are answered with a seed. */
static bool needs_weights(const struct pe_scheme_info *info)
{
    static const char *const all[] = {"learned", "recursive", "floater", "fire"};
    for (size_t i = 0; i < sizeof all / sizeof *all; i++)
        if (strcmp(info->name, all[i]) == 0)
            return true;
    return false;
}

TEST(defaults_answer)
{
    for (size_t s = 0; s < pe_n_schemes(); s++) {
        if (!can_encode(s))
            continue;
        char json[128];
        struct test_request r;
        struct pe_plan *plan = NULL;
        struct pe_failure err;
        bool seed = needs_weights(pe_scheme_at(s));
        snprintf(json, sizeof json, "{'scheme':'%s','len':3,'seed':1}", pe_scheme_at(s)->name);
        test_request_parse(&r, json);
        r.request.n_fields -= !seed;
        if (pe_plan_new(&r.request, &plan, &err))
            fail_msg("%s: refused at \"%s\": %s", json, err.pointer, err.detail);
        assert_true(pe_plan_n_outputs(plan) > 0);
        pe_plan_free(plan);
        r.request.n_fields -= seed;
        if (seed) { /* the refusal names all ways to supply weights */
            assert_int_equal(pe_plan_new(&r.request, &plan, &err), PE_INVALID);
            assert_non_null(strstr(err.detail, "seed"));
            assert_non_null(strstr(err.detail, "weights"));
        }
        test_request_drop(&r);
    }
}

/* Fills each output again in pieces of random length. */
static void assert_chunks(const struct pe_plan *plan)
{
    for (size_t i = 0; i < pe_plan_n_outputs(plan); i++) {
        const struct pe_output *output = pe_plan_output(plan, i);
        size_t n = (size_t)(output->n_rows * output->row_len), size = pe_dtype_size(output->dtype);
        char *once = malloc(n * size), *pieces = malloc(n * size), *piece = malloc(n * size + 64);
        assert_true(once && pieces && piece);
        pe_fill(plan, i, 0, n, once);
        for (size_t at = 0, m; at < n; at += m) {
            m = 1 + next_random(n - at);
            memset(piece, 0xaa, n * size + 64);
            pe_fill(plan, i, at, m, piece);
            memcpy(pieces + at * size, piece, m * size);
            for (size_t j = 0; j < 64; j++)
                assert_int_equal((unsigned char)piece[m * size + j], 0xaa);
        }
        assert_memory_equal(once, pieces, n * size);
        free(once);
        free(pieces);
        free(piece);
    }
}

TEST(any_chunking_is_the_whole)
{
    for (size_t s = 0; s < pe_n_schemes(); s++)
        for (int d = 0; d < N_DTYPES; d++)
            for (int round = 0; round < 20; round++) {
                struct test_request r;
                struct pe_plan *plan = NULL;
                struct pe_failure err;
                parse_example(&r, s);
                r.request.dtype = dtypes[d];
                for (size_t i = 0; i < r.n; i++)
                    if (strcmp(r.fields[i].name, "len") == 0)
                        r.fields[i].value.integer = 1 + (int64_t)next_random(150);
                assert_int_equal(pe_plan_new(&r.request, &plan, &err), PE_OK);
                assert_chunks(plan);
                pe_plan_free(plan);
                test_request_drop(&r);
            }
}

TEST(every_instruction_set_gives_the_same_bytes)
{
    enum pe_isa best = pe_isa();
    for (size_t s = 0; s < pe_n_schemes(); s++)
        for (int d = 0; d < N_DTYPES && can_encode(s); d++) {
            char *first = NULL;
            size_t size = 0;
            for (enum pe_isa isa = PE_ISA_BASE; isa < PE_N_ISAS; isa++) {
                struct test_request r;
                struct pe_plan *plan = NULL;
                struct pe_failure err;
                if (!pe_kernels_use(isa))
                    continue;
                parse_example(&r, s);
                r.request.dtype = dtypes[d];
                assert_int_equal(pe_plan_new(&r.request, &plan, &err), PE_OK);
                char *all = whole(plan, &size);
                if (first)
                    assert_memory_equal(all, first, size);
                else
                    first = all;
                if (all != first)
                    free(all);
                pe_plan_free(plan);
                test_request_drop(&r);
            }
            free(first);
        }
    assert_true(pe_kernels_use(best));
}

TEST(failed_allocations_are_survived)
{
    for (size_t s = 0; s < pe_n_schemes(); s++) {
        struct test_request r;
        struct pe_plan *plan = NULL;
        struct pe_failure err;
        parse_example(&r, s);
        enum pe_status status = PE_NO_MEMORY;
        long n = 0;
        for (; status == PE_NO_MEMORY; n++) {
            assert_true(n < 1000);
            alloc_fail_at(n);
            status = pe_plan_new(&r.request, &plan, &err);
            alloc_fail_at(-1);
            assert_true(status ? !plan : plan != NULL);
        }
        assert_int_equal(status, PE_OK);
        assert_true(n > 3);
        pe_plan_free(plan);
        test_request_drop(&r);
    }
}

/* The resolved config with the sequence is a request for the same bytes. */
TEST(config_posted_again_is_the_same)
{
    for (size_t s = 0; s < pe_n_schemes(); s++) {
        struct test_request r;
        struct pe_plan *again = NULL, *plan = NULL;
        struct pe_failure err = {.detail = ""};
        parse_example(&r, s);
        assert_int_equal(pe_plan_new(&r.request, &plan, &err), PE_OK);
        const struct pe_value *config = pe_plan_config(plan);
        struct pe_field fields[64];
        size_t n = config->object.n, size, again_size;
        memcpy(fields, config->object.fields, n * sizeof *fields);
        for (size_t i = 0; i < r.n; i++)
            for (const struct pe_param *row = pe_sequence_params(); row->name; row++)
                if (strcmp(row->name, r.fields[i].name) == 0)
                    fields[n++] = r.fields[i];
        for (size_t i = 0; i < r.n && !can_encode(s); i++) /* queries and keys */
            if (strlen(r.fields[i].name) == 1)
                fields[n++] = r.fields[i];
        struct pe_request request = {.fields = fields, .n_fields = n, .dtype = PE_DTYPE_NONE};
        request.operation = r.request.operation;
        if (pe_plan_new(&request, &again, &err))
            fail_msg("%s: its own config is refused at %s: %s", pe_scheme_at(s)->name, err.pointer, err.detail);
        char *a = whole(plan, &size), *b = whole(again, &again_size);
        assert_int_equal(size, again_size);
        assert_memory_equal(a, b, size);
        free(a);
        free(b);
        pe_plan_free(again);
        pe_plan_free(plan);
        test_request_drop(&r);
    }
}
