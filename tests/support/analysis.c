/* Analyses for tests: the request as JSON, the answer by paths. */
#include "tests/support/analysis.h"
#include "core/params.h"
#include "tests/support/alloc.h"
#include "tests/support/cmocka.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

static void add_outputs(struct test_analysis *a, const struct pe_value *list)
{
    a->request.outputs = a->outputs;
    for (size_t i = 0; list->kind == PE_LIST && i < list->list.n; i++)
        a->outputs[a->request.n_outputs++] = list->list.items[i].string;
}

static void add_entry(struct test_analysis *a, const struct pe_field *own, size_t n_own, const char *pointer)
{
    size_t n = 0, e = a->request.n_entries++;
    for (size_t i = 0; i < n_own; i++)
        a->entry_fields[e][n++] = own[i];
    for (size_t i = 0; i < a->parsed.n; i++) {
        const char *name = a->parsed.fields[i].name;
        bool is_mine =
            strcmp(name, "configs") != 0 && strcmp(name, "outputs") != 0 && !pe_param_find(pe_analysis_params(), name);
        for (size_t j = 0; j < n_own; j++)
            is_mine = is_mine && strcmp(own[j].name, name) != 0;
        if (is_mine)
            a->entry_fields[e][n++] = a->parsed.fields[i];
    }
    a->entries[e] = (struct pe_entry){a->entry_fields[e], n, *pointer ? n_own : n, pointer};
}

static void add_entries(struct test_analysis *a)
{
    static const char *const pointers[] = {"/configs/0", "/configs/1", "/configs/2", "/configs/3"};
    for (size_t i = 0; i < a->parsed.n; i++) {
        const struct pe_value *v = &a->parsed.fields[i].value;
        for (size_t j = 0; strcmp(a->parsed.fields[i].name, "configs") == 0 && j < v->list.n; j++)
            add_entry(a, v->list.items[j].object.fields, v->list.items[j].object.n, pointers[j]);
    }
    if (a->request.n_entries == 0)
        add_entry(a, NULL, 0, "");
}

static void prepare(struct test_analysis *a, const char *json)
{
    memset(a, 0, sizeof *a);
    test_request_parse(&a->parsed, json);
    a->request = (struct pe_analysis_request){.fields = a->fields, .entries = a->entries, .max_work = 1e12};
    for (size_t i = 0; i < a->parsed.n; i++) {
        const struct pe_field *field = &a->parsed.fields[i];
        if (strcmp(field->name, "outputs") == 0)
            add_outputs(a, &field->value);
        else if (pe_param_find(pe_analysis_params(), field->name))
            a->fields[a->request.n_fields++] = *field;
    }
    add_entries(a);
}

void test_analyse(struct test_analysis *a, const char *json)
{
    struct pe_failure err = {.detail = ""};
    prepare(a, json);
    if (pe_analysis_new(&a->request, &a->analysis, &err))
        fail_msg("%s: refused at \"%s\": %s", json, err.pointer, err.detail);
}

void test_analysis_drop(struct test_analysis *a)
{
    pe_analysis_free(a->analysis);
    test_request_drop(&a->parsed);
}

void test_analysis_refused(const char *json, const char *pointer, const char *word)
{
    static struct test_analysis a;
    struct pe_failure err = {.detail = ""};
    prepare(&a, json);
    if (!pe_analysis_new(&a.request, &a.analysis, &err))
        fail_msg("%s: was accepted", json);
    if (strcmp(err.pointer, pointer) != 0 || !strstr(err.detail, word))
        fail_msg("%s: expected \"%s\" at %s, got \"%s\" at %s", json, word, pointer, err.detail, err.pointer);
    test_request_drop(&a.parsed);
}

/* ---- The answer ---- */

static const struct pe_value *member(const struct pe_value *v, const char *name, size_t n)
{
    if (v->kind == PE_LIST) {
        size_t i = strtoul(name, NULL, 10);
        return i < v->list.n ? &v->list.items[i] : NULL;
    }
    for (size_t i = 0; v->kind == PE_OBJECT && i < v->object.n; i++)
        if (strncmp(v->object.fields[i].name, name, n) == 0 && strlen(v->object.fields[i].name) == n)
            return &v->object.fields[i].value;
    return NULL;
}

const struct pe_value *test_result(const struct test_analysis *a, const char *path)
{
    const struct pe_value *v = member(pe_analysis_answer(a->analysis), "results", 7);
    while (v && *path) {
        size_t n = strcspn(path, ".");
        v = member(v, path, n);
        path += n + (path[n] == '.');
    }
    return v;
}

double test_number(const struct test_analysis *a, const char *path)
{
    const struct pe_value *v = test_result(a, path);
    if (!v || (v->kind != PE_INTEGER && v->kind != PE_REAL))
        fail_msg("%s is no number", path);
    return v->kind == PE_INTEGER ? (double)v->integer : v->real;
}

void test_near(const struct test_analysis *a, const char *path, double expected, double tolerance)
{
    double x = test_number(a, path);
    if (!(fabs(x - expected) <= tolerance))
        fail_msg("%s is %.17g, expected %.17g", path, x, expected);
}

bool test_is_null(const struct test_analysis *a, const char *path)
{
    const struct pe_value *v = test_result(a, path);
    return v && v->kind == PE_NULL;
}

const char *test_word(const struct test_analysis *a, const char *path)
{
    const struct pe_value *v = test_result(a, path);
    if (!v || v->kind != PE_STRING)
        fail_msg("%s is no text", path);
    return v->string;
}

const double *test_tensor(const struct test_analysis *a, const char *name, const uint64_t **shape)
{
    for (size_t i = 0; i < pe_analysis_n_tensors(a->analysis); i++) {
        const struct pe_named_tensor *t = pe_analysis_tensor(a->analysis, i);
        if (strcmp(t->name, name) == 0) {
            if (shape)
                *shape = t->tensor.shape;
            return t->tensor.data;
        }
    }
    return NULL;
}

/* ---- Failures ---- */

static bool left(void *count) { return ++*(int *)count > 2; }

void test_analysis_fails_cleanly(const char *json)
{
    static struct test_analysis a;
    struct pe_failure err = {.detail = ""};
    enum pe_status status = PE_NO_MEMORY;
    int count = 0;
    prepare(&a, json);
    for (long n = 0; status == PE_NO_MEMORY; n++) {
        alloc_fail_at(n);
        status = pe_analysis_new(&a.request, &a.analysis, &err);
        alloc_fail_at(-1);
    }
    if (status)
        fail_msg("%s: refused at \"%s\": %s", json, err.pointer, err.detail);
    pe_analysis_free(a.analysis);
    pe_watch(left, &count);
    assert_int_equal(pe_analysis_new(&a.request, &a.analysis, &err), PE_CANCELLED);
    pe_watch(NULL, NULL);
    test_request_drop(&a.parsed);
}
