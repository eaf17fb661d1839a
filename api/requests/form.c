/* The form of an answer, read with parameter rows like a scheme's parameters. */
#include "api/requests/requests.h"
#include "api/formats/format.h"
#include "api/numbers/numbers.h"

#include <float.h>
#include <math.h>
#include <stddef.h>
#include <stdio.h>
#include <string.h>

enum { NOT_GIVEN = -1 };

static const struct pe_param rows[] = {
#define FORM(TYPE, name_, ...)                                                                                         \
    {.name = #name_, .type = PE_T_##TYPE, .offset = offsetof(struct api_form, name_), __VA_ARGS__},
#include "api/requests/form_list.h"
#undef FORM
    {.name = NULL},
};

/* `weights` is not part of the form, but the core does not know it either. */
static const char *const names[] = {
#define FORM(TYPE, name, ...) #name,
#include "api/requests/form_list.h"
#undef FORM
    "outputs",
    "slice",
    "weights",
    NULL,
};

const struct pe_param *api_form_params(void) { return rows; }

static const struct pe_param lists[] = {
    {.name = "outputs",
     .type = PE_T_VALUE,
     .about = {"outputs", "names of outputs, answered in that order; default the scheme's"},
     .group = PE_G_ANSWER},
    {.name = "slice",
     .type = PE_T_VALUE,
     .about = {"slice",
               "a list per axis of null, an index, [start,stop] or [start,stop,step]; or an object of such lists by "
               "output"},
     .group = PE_G_ANSWER},
    {.name = NULL},
};

const struct pe_param *api_form_lists(void) { return lists; }

const char *const *api_form_names(void) { return names; }

size_t api_form_size(const struct pe_param *row)
{
    static const size_t sizes[] = {[PE_T_INT] = sizeof(API_FORM_INT),
                                   [PE_T_REAL] = sizeof(API_FORM_REAL),
                                   [PE_T_BOOL] = sizeof(API_FORM_BOOL),
                                   [PE_T_WORD] = sizeof(API_FORM_WORD)};
    return sizes[row->type];
}

const struct api_format *api_form_format(const struct api_form *form)
{
    return form->format == NOT_GIVEN ? NULL : api_format_at((size_t)form->format);
}

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

static bool read_outputs(const struct api_request *request, const struct pe_value *value, struct api_form *form,
                         struct api_problem *problem)
{
    bool may_be_empty = request->taking && request->taking->may_answer_nothing;
    if (value->kind != PE_LIST || (value->list.n == 0 && !may_be_empty) || value->list.n > API_OUTPUTS_MAX)
        return fail_outputs(problem);
    form->has_no_outputs = value->list.n == 0;
    for (size_t i = 0; i < value->list.n; i++)
        if (!add_output(form, &value->list.items[i], problem))
            return false;
    return true;
}

/* ---- The whole ---- */

bool api_form_read(struct api_request *request, struct api_form *form, struct api_problem *problem)
{
    struct pe_failure err;
    bool taken[API_FIELDS_MAX] = {false};
    *form = (struct api_form){0};
    if (pe_params_read(rows, form, request->fields, request->n_fields, taken, "", &err))
        return api_fail_core(problem, &err);
    for (size_t i = 0; i < request->n_fields; i++) {
        const struct pe_field *field = &request->fields[i];
        bool is_outputs = api_is(field->name, "outputs"), is_slice = api_is(field->name, "slice");
        taken[i] = taken[i] || is_outputs || is_slice;
        if (is_outputs && !read_outputs(request, &field->value, form, problem))
            return false;
        if (is_slice && !api_slices_read(request, &field->value, &form->slices, &form->n_slices, problem))
            return false;
    }
    api_request_remove(request, taken);
    return true;
}

/* ---- Form and format ---- */

static bool is_used(const struct api_format *format, const char *name)
{
    for (const char *const *field = format->fields; field && *field; field++)
        if (strcmp(*field, name) == 0)
            return true;
    return false;
}

static bool fail_unused(const char *name, const struct api_format *format, struct api_problem *problem)
{
    char pointer[PE_POINTER_MAX], list[128] = "";
    size_t used = 0;
    for (size_t i = 0; i < api_n_formats() && used < sizeof list; i++)
        if (is_used(api_format_at(i), name))
            used += (size_t)snprintf(list + used, sizeof list - used, "%s%s", used ? ", " : "", api_format_at(i)->name);
    snprintf(pointer, sizeof pointer, "/%s", name);
    return api_fail(problem, 422, pointer, "%s has no meaning in the format %s; it belongs to %s", name, format->name,
                    list);
}

static bool is_of_some_formats(const char *name)
{
    for (size_t i = 0; i < api_n_formats(); i++)
        if (is_used(api_format_at(i), name))
            return true;
    return false; /* no names: all outputs, then */
}

static bool is_given(const struct api_form *form, const struct api_form *usual, const struct pe_param *row)
{
    return memcmp((const char *)form + row->offset, (const char *)usual + row->offset, api_form_size(row)) != 0;
}

/* A field without effect is refused like an unknown one, because its sender expects an effect. */
bool api_form_check(const struct api_form *form, const struct api_format *format, struct api_problem *problem)
{
    struct api_form usual;
    struct pe_failure err;
    pe_params_read(rows, &usual, NULL, 0, NULL, "", &err);
    for (const struct pe_param *row = rows; row->name; row++)
        if (is_given(form, &usual, row) && !is_used(format, row->name) && is_of_some_formats(row->name))
            return fail_unused(row->name, format, problem);
    if (form->vmin > form->vmax)
        return api_fail(problem, 422, "/vmin", "vmin is %.17g and vmax is %.17g; allowed: vmin at most vmax",
                        form->vmin, form->vmax);
    return true;
}
