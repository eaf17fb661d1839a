/* A reader of JSON for tests: numbers, words, lists of numbers, objects, lists of objects. */
#include "tests/support/cmocka.h"
#include "tests/support/request.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

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

/* A list of numbers, or of equally long rows of equally long rows …: p is past the first bracket. */
static char *read_axis(struct test_request *r, char *p, struct pe_tensor *array, unsigned depth)
{
    uint64_t n = 0;
    array->rank = depth + 1 > array->rank ? depth + 1 : array->rank;
    for (p = past_blanks(p); *p != ']'; p = past_blanks(p), n++) {
        if (*p == '[') {
            p = read_axis(r, p + 1, array, depth + 1);
            continue;
        }
        char *end;
        r->numbers[r->n_numbers++] = strtod(p, &end);
        assert_true(end > p);
        p = end;
    }
    array->shape[depth] = n;
    return p + 1;
}

static char *read_value(struct test_request *r, char *p, struct pe_value *v);

static char *read_object(struct test_request *r, char *p, struct pe_value *v)
{
    struct pe_field *fields = r->nested[r->n_nested++];
    size_t n = 0;
    for (p = past_blanks(p + 1); *p != '}'; p = past_blanks(p)) {
        assert_true(n < TEST_FIELDS_MAX);
        struct pe_field *field = &fields[n++];
        p = past_blanks(read_string(p, &field->name));
        p = read_value(r, p, &field->value);
    }
    *v = (struct pe_value){.kind = PE_OBJECT, .object = {fields, n}};
    return p + 1;
}

static char *read_list(struct test_request *r, char *p, struct pe_value *v)
{
    char *inside = past_blanks(p + 1);
    if (*inside != '{' && *inside != '"') {
        *v = (struct pe_value){
            .kind = PE_ARRAY, .from_text = true, .array = {.dtype = PE_F64, .data = r->numbers + r->n_numbers}};
        return read_axis(r, inside, &v->array, 0);
    }
    struct pe_value *items = r->items[r->n_items++];
    size_t n = 0;
    for (p = inside; *p != ']'; p = past_blanks(p)) {
        assert_true(n < TEST_FIELDS_MAX);
        p = read_value(r, p, &items[n++]);
    }
    *v = (struct pe_value){.kind = PE_LIST, .list = {items, n}};
    return p + 1;
}

static char *read_value(struct test_request *r, char *p, struct pe_value *v)
{
    assert_true(r->n_nested < TEST_NESTED_MAX && r->n_items < TEST_NESTED_MAX);
    if (*p == '"') {
        v->kind = PE_STRING;
        return read_string(p, &v->string);
    }
    if (*p == '[')
        return read_list(r, p, v);
    if (*p == '{')
        return read_object(r, p, v);
    if (strncmp(p, "true", 4) == 0 || strncmp(p, "false", 5) == 0) {
        *v = (struct pe_value){.kind = PE_BOOLEAN, .boolean = *p == 't'};
        return p + (*p == 't' ? 4 : 5);
    }
    if (strncmp(p, "null", 4) == 0) {
        *v = (struct pe_value){.kind = PE_NULL};
        return p + 4;
    }
    return read_number(p, v);
}

void test_request_parse(struct test_request *r, const char *json)
{
    memset(r, 0, sizeof *r);
    r->json = json;
    r->text = strdup(json);
    r->numbers = malloc((strlen(json) + 1) * sizeof *r->numbers);
    assert_non_null(r->text);
    assert_non_null(r->numbers);
    for (char *quote = r->text; (quote = strchr(quote, '\''));)
        *quote = '"';
    struct pe_value whole;
    read_object(r, past_blanks(r->text), &whole);
    r->n = whole.object.n;
    memcpy(r->fields, whole.object.fields, r->n * sizeof *r->fields);
    r->request = (struct pe_request){.fields = r->fields, .n_fields = r->n, .dtype = PE_DTYPE_NONE};
}

void test_request_drop(struct test_request *r)
{
    free(r->text);
    free(r->numbers);
}

size_t test_rows(const char *path, void (*each)(const char *row, const char *request))
{
    static const char before[] = "\"request\": ";
    char row[4096], wanted[64];
    size_t n = 0;
    FILE *rows = fopen("tests/cases/plans.jsonl", "r");
    assert_non_null(rows);
    snprintf(wanted, sizeof wanted, "\"path\": \"%s\"", path);
    while (fgets(row, sizeof row, rows)) {
        char *request = strstr(row, before);
        assert_non_null(request);
        *strrchr(request, '}') = '\0';
        *request = '\0'; /* path and output stand before it */
        if (strstr(row, wanted))
            each(row, request + strlen(before)), n++;
    }
    fclose(rows);
    return n;
}

struct pe_plan *test_plan_as(struct test_request *r, enum pe_operation_id operation, enum pe_dtype dtype)
{
    struct pe_plan *plan = NULL;
    struct pe_failure err = {.detail = ""};
    r->request.operation = operation;
    r->request.dtype = dtype;
    if (pe_plan_new(&r->request, &plan, &err))
        fail_msg("%s: refused at \"%s\": %s", r->json, err.pointer, err.detail);
    return plan;
}

struct pe_plan *test_plan(struct test_request *r, const char *json)
{
    test_request_parse(r, json);
    return test_plan_as(r, PE_ENCODE, PE_DTYPE_NONE);
}

void test_refused(const char *json, const char *pointer, const char *word)
{
    struct test_request r;
    struct pe_plan *plan = NULL;
    struct pe_failure err = {.detail = ""};
    test_request_parse(&r, json);
    for (size_t i = 0; i < r.n; i++)
        if (strcmp(r.fields[i].name, "q") == 0 || strcmp(r.fields[i].name, "k") == 0)
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
