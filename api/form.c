/* The form of an answer, read by parameter rows as a scheme's parameters are. */
#include "api/form.h"
#include "api/formats/format.h"
#include "api/numbers.h"
#include "api/slices.h"

#include <math.h>
#include <stddef.h>
#include <string.h>

struct fields {
    int dtype, format; /* -1: not given */
    int64_t digits;
    bool data;
    int reduce;
};

static const char *const dtypes[] = {"f32", "f64", "f16", "bf16", NULL}; /* in the order of enum pe_dtype */

static const char *const reduces[] = {"sample", "mean", "min", "max", "absmax", NULL}; /* in the order of pe_reduce */

enum { NOT_GIVEN = -1 };

#define ROW(field, TYPE, ...)                                                                                          \
    {                                                                                                                  \
        .name = #field, .type = PE_T_##TYPE, .offset = offsetof(struct fields, field), __VA_ARGS__                     \
    }

static const struct pe_param rows[] = {
    ROW(dtype, WORD, .fallback = NOT_GIVEN, .words = dtypes,
        .text = "element type of real outputs; default that of the tensor sent, else f32"),
    ROW(format, WORD, .fallback = NOT_GIVEN, .words = api_format_names,
        .text = "how the answer is written; default from the Accept header, else json"),
    ROW(digits, INT, .fallback = (double)NAN, .min = 0, .max = API_DIGITS_MAX,
        .text = "digits after the point in JSON; default the shortest text that reads back the same"),
    ROW(reduce, WORD, .fallback = 0, .words = reduces,
        .text = "what the step of slice does with its block: its first number, or one of its finite numbers"),
    ROW(data, BOOL, .fallback = true, .text = "false leaves the numbers out of JSON: configuration and shapes at once"),
    {.name = NULL},
};

static const char *const names[] = {"dtype", "format", "digits", "reduce", "data", "outputs", "slice", NULL};

const struct pe_param *api_form_params(void) { return rows; }

const char *const *api_form_names(void) { return names; }

/* ---- outputs ---- */

static bool fail_outputs(struct api_problem *problem)
{
    return api_fail(problem, 422, "/outputs",
                    "outputs must be a list of 1 to %d names of outputs, as [\"cos\",\"sin\"]", API_OUTPUTS_MAX);
}

static bool add_output(struct api_form *form, const struct pe_value *item, struct api_problem *problem)
{
    if (item->kind != PE_STRING)
        return fail_outputs(problem);
    for (size_t i = 0; i < form->n_outputs; i++)
        if (strcmp(form->outputs[i], item->string) == 0)
            return api_fail(problem, 422, "/outputs", "outputs names \"%.64s\" twice", item->string);
    form->outputs[form->n_outputs++] = item->string;
    return true;
}

static bool read_outputs(const struct pe_value *value, struct api_form *form, struct api_problem *problem)
{
    if (value->kind != PE_LIST || value->list.n == 0 || value->list.n > API_OUTPUTS_MAX)
        return fail_outputs(problem);
    for (size_t i = 0; i < value->list.n; i++)
        if (!add_output(form, &value->list.items[i], problem))
            return false;
    return true;
}

/* ---- The whole ---- */

static void remove_taken(struct api_request *request, const bool *taken)
{
    size_t kept = 0;
    for (size_t i = 0; i < request->n_fields; i++)
        if (!taken[i])
            request->fields[kept++] = request->fields[i];
    request->n_fields = kept;
}

static void set(struct api_form *form, const struct fields *fields)
{
    form->dtype = fields->dtype == NOT_GIVEN ? PE_DTYPE_NONE : (enum pe_dtype)fields->dtype;
    form->format = fields->format == NOT_GIVEN ? NULL : api_format_at((size_t)fields->format);
    form->digits = fields->digits == PE_UNSET_INT ? API_DIGITS_SHORTEST : (int)fields->digits;
    form->data = fields->data;
    form->reduce = (enum pe_reduce)fields->reduce;
}

bool api_form_read(struct api_request *request, struct api_form *form, struct api_problem *problem)
{
    struct fields fields;
    struct pe_error err;
    bool taken[API_FIELDS_MAX] = {false};
    *form = (struct api_form){0};
    if (pe_params_read(rows, &fields, request->fields, request->n_fields, taken, "", &err))
        return api_fail_core(problem, &err);
    set(form, &fields);
    for (size_t i = 0; i < request->n_fields; i++) {
        const struct pe_field *field = &request->fields[i];
        bool is_outputs = strcmp(field->name, "outputs") == 0, is_slice = strcmp(field->name, "slice") == 0;
        taken[i] = taken[i] || is_outputs || is_slice;
        if (is_outputs && !read_outputs(&field->value, form, problem))
            return false;
        if (is_slice && !api_slices_read(request, &field->value, &form->slices, &form->n_slices, problem))
            return false;
    }
    remove_taken(request, taken);
    return true;
}

/* A field without effect is refused like an unknown one: its sender expects something. */
bool api_form_check(const struct api_form *form, const struct api_format *format, struct api_problem *problem)
{
    if (format->is_text)
        return true;
    if (form->digits != API_DIGITS_SHORTEST)
        return api_fail(problem, 422, "/digits", "digits has no meaning in the format %s; it belongs to json",
                        format->name);
    if (!form->data)
        return api_fail(problem, 422, "/data", "data has no meaning in the format %s; it belongs to json",
                        format->name);
    return true;
}
