/* A reader of flat JSON objects for tests. */
#include "tests/support/request.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

static char *past_blanks(char *p) { return p + strspn(p, " \n\t,:"); }

static char *read_string(char *p, const char **out)
{
    assert_int_equal(*p, '"');
    *out = p + 1;
    p = strchr(p + 1, '"');
    assert_non_null(p);
    *p = '\0';
    return p + 1;
}

static char *read_number(char *p, struct pe_value *v)
{
    char *end;
    double x = strtod(p, &end);
    assert_true(end > p);
    bool integer = strcspn(p, ".eE") >= (size_t)(end - p);
    if (integer)
        *v = (struct pe_value){.kind = PE_INTEGER, .integer = strtoll(p, NULL, 10)};
    else
        *v = (struct pe_value){.kind = PE_REAL, .real = x};
    return end;
}

/* A list of numbers, flat or of equally long rows. */
static char *read_array(char *p, struct pe_value *v, double **next)
{
    double *first = *next;
    uint64_t rows = 0;
    bool nested = *past_blanks(p + 1) == '[';
    unsigned depth = 0;
    do {
        p = past_blanks(p);
        if (*p == '[') {
            depth++;
            rows += depth == 2;
            p++;
        } else if (*p == ']') {
            depth--;
            p++;
        } else {
            char *end;
            *(*next)++ = strtod(p, &end);
            assert_true(end > p);
            p = end;
        }
    } while (depth);
    uint64_t n = (uint64_t)(*next - first);
    *v = (struct pe_value){
        .kind = PE_ARRAY, .from_text = true, .array = {.dtype = PE_F64, .rank = 1, .shape = {n}, .data = first}};
    if (nested) {
        v->array.rank = 2;
        v->array.shape[0] = rows;
        v->array.shape[1] = n / rows;
    }
    return p;
}

static char *read_value(char *p, struct pe_value *v, double **next)
{
    if (*p == '"') {
        v->kind = PE_STRING;
        return read_string(p, &v->string);
    }
    if (*p == '[')
        return read_array(p, v, next);
    if (strncmp(p, "true", 4) == 0 || strncmp(p, "false", 5) == 0) {
        *v = (struct pe_value){.kind = PE_BOOLEAN, .boolean = *p == 't'};
        return p + (*p == 't' ? 4 : 5);
    }
    return read_number(p, v);
}

void test_request_parse(struct test_request *r, const char *json)
{
    memset(r, 0, sizeof *r);
    r->text = strdup(json);
    r->numbers = malloc((strlen(json) + 1) * sizeof *r->numbers);
    assert_non_null(r->text);
    assert_non_null(r->numbers);
    double *next = r->numbers;
    for (char *p = past_blanks(r->text + 1); *p != '}'; p = past_blanks(p)) {
        assert_true(r->n < TEST_FIELDS_MAX);
        struct pe_field *field = &r->fields[r->n++];
        p = past_blanks(read_string(p, &field->name));
        p = read_value(p, &field->value, &next);
    }
    r->request = (struct pe_request){.fields = r->fields, .n_fields = r->n, .dtype = PE_DTYPE_NONE};
}

void test_request_drop(struct test_request *r)
{
    free(r->text);
    free(r->numbers);
}

struct pe_plan *test_plan(struct test_request *r, const char *json)
{
    struct pe_plan *plan = NULL;
    struct pe_error err = {.detail = ""};
    test_request_parse(r, json);
    if (pe_plan_new(&r->request, &plan, &err))
        fail_msg("%s: refused at \"%s\": %s", json, err.pointer, err.detail);
    return plan;
}

void test_refused(const char *json, const char *pointer, const char *word)
{
    struct test_request r;
    struct pe_plan *plan = NULL;
    struct pe_error err = {.detail = ""};
    test_request_parse(&r, json);
    if (strstr(json, "\"q\":") || strstr(json, "\"k\":"))
        r.request.operation = PE_ROTATE;
    if (!pe_plan_new(&r.request, &plan, &err))
        fail_msg("%s: was accepted", json);
    assert_null(plan);
    if (strcmp(err.pointer, pointer) != 0 || !strstr(err.detail, word))
        fail_msg("%s: expected \"%s\" at %s, got \"%s\" at %s", json, word, pointer, err.detail, err.pointer);
    test_request_drop(&r);
}

double *test_values(const struct pe_plan *plan, size_t i, size_t *n)
{
    const struct pe_output *output = pe_plan_output(plan, i);
    *n = (size_t)(output->n_rows * output->row_len);
    void *raw = malloc(*n * 8);
    double *values = malloc(*n * 8);
    assert_non_null(raw);
    assert_non_null(values);
    pe_fill(plan, i, 0, *n, raw);
    pe_convert(PE_F64, values, output->dtype, raw, *n);
    free(raw);
    return values;
}
