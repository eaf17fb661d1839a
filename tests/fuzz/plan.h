/* Shared by the targets that plan: a request as JSON text, its plan, and the law that the plan's configuration, printed
 * and read again beside the sequence and the tensors, gives the same configuration and the same numbers. */
#ifndef TESTS_FUZZ_PLAN_H
#define TESTS_FUZZ_PLAN_H

#include "tests/fuzz/laws.h"
#include "api/inputs/inputs.h"
#include "api/json/json.h"
#include "api/limits.h"

enum { ELEMENTS_MAX = 512 };

static inline bool has_field(const struct api_request *request, const char *name)
{
    return api_request_find(request, name) != NULL;
}

static inline void check_error(const struct pe_failure *err)
{
    REQUIRE(*err->detail && (!*err->pointer || *err->pointer == '/'));
    REQUIRE(err->status == PE_INVALID || err->status == PE_TOO_LARGE);
}

static inline struct pe_request core_of(const struct api_request *request)
{
    return (struct pe_request){.operation = request->operation,
                               .fields = request->fields,
                               .n_fields = request->n_fields,
                               .dtype = PE_DTYPE_NONE};
}

/* False: the request was refused, or would take long, which a fuzzer has no time for. */
static inline bool plan(const struct api_request *request, struct pe_plan **made)
{
    struct pe_failure err = {.detail = ""};
    struct pe_request core = core_of(request);
    enum pe_status status = pe_plan_check(&core, made, &err);
    bool is_long = !status && pe_plan_builder(*made) == PE_WORKER;
    if (!status && !is_long)
        status = pe_plan_build(*made, &err);
    if (status)
        check_error(&err);
    if (!status && !is_long)
        return true;
    pe_plan_free(*made);
    *made = NULL;
    return false;
}

static inline void print_config(struct api_text *text, const struct pe_plan *made)
{
    api_text_init(text, API_TEXT_MAX);
    api_text_value(text, pe_plan_config(made));
    REQUIRE(text->state == API_TEXT_FINE);
}

static inline void check_outputs(const struct pe_plan *a, const struct pe_plan *b)
{
    static _Alignas(64) char left[8 * ELEMENTS_MAX], right[8 * ELEMENTS_MAX];
    REQUIRE(pe_plan_n_outputs(a) == pe_plan_n_outputs(b));
    for (size_t i = 0; i < pe_plan_n_outputs(a); i++) {
        const struct pe_output *o = pe_plan_output(a, i), *p = pe_plan_output(b, i);
        REQUIRE(o->rank == p->rank && memcmp(o->shape, p->shape, o->rank * sizeof *o->shape) == 0);
        REQUIRE(o->dtype == p->dtype && strcmp(o->name, p->name) == 0);
        if (pe_plan_pace(a) != PE_QUICK || o->n_rows == 0 || o->row_len == 0)
            continue;
        bool is_short = o->n_rows < ELEMENTS_MAX && o->row_len < ELEMENTS_MAX && o->n_rows * o->row_len < ELEMENTS_MAX;
        size_t n = is_short ? (size_t)(o->n_rows * o->row_len) : 1;
        pe_fill(a, i, 0, n, left);
        pe_fill(b, i, 0, n, right);
        REQUIRE(memcmp(left, right, n * pe_dtype_size(o->dtype)) == 0);
    }
}

/* The fields of the sequence that the configuration does not repeat; if there are none, the fields that name the model,
 * which may define the sequence. Then the tensors. */
static inline void add_rest(struct api_request *to, const struct api_request *from, const struct pe_plan *made)
{
    static const char *const model[] = {"preset", "hf_config", "gguf", "said", "layer_type"};
    struct api_problem problem;
    size_t n = to->n_fields;
    for (size_t i = 0; i < from->n_fields; i++)
        if (pe_param_find(pe_sequence_params(), from->fields[i].name) && !has_field(to, from->fields[i].name))
            REQUIRE(api_request_add(to, from->fields[i].name, &from->fields[i].value, &problem));
    for (size_t i = 0; i < sizeof model / sizeof *model && to->n_fields == n; i++)
        if (api_request_find(from, model[i]))
            REQUIRE(api_request_add(to, model[i], api_request_find(from, model[i]), &problem));
    for (const struct pe_input_row *row = pe_plan_scheme(made)->inputs; row && row->name; row++)
        if (api_request_find(from, row->name) && !has_field(to, row->name))
            REQUIRE(api_request_add(to, row->name, api_request_find(from, row->name), &problem));
}

static inline void check_config(const struct api_request *request, const struct pe_plan *made)
{
    static struct api_request again;
    struct api_problem problem;
    struct api_text text, text_again;
    struct pe_plan *made_again = NULL;
    print_config(&text, made);
    api_request_init(&again, request->operation);
    REQUIRE(api_json_read(&again, text.bytes, text.n, "", &problem));
    add_rest(&again, request, made);
    REQUIRE(plan(&again, &made_again));
    print_config(&text_again, made_again);
    REQUIRE(text.n == text_again.n && memcmp(text.bytes, text_again.bytes, text.n) == 0);
    check_outputs(made, made_again);
    pe_plan_free(made_again);
    api_text_drop(&text);
    api_text_drop(&text_again);
    api_request_drop(&again);
}

static inline void check_request(const char *json, size_t n)
{
    static struct api_request request;
    struct api_problem problem;
    struct pe_plan *made = NULL;
    api_request_init(&request, PE_ENCODE);
    if (!api_json_read(&request, json, n, "", &problem) || !api_pasted_take(&request, &problem))
        REQUIRE(problem.status >= 400 && problem.status < 500 && *problem.error.detail);
    else if (plan(&request, &made))
        check_config(&request, made);
    pe_plan_free(made);
    api_request_drop(&request);
}

#endif
