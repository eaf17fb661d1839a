/* The form of an answer, read by parameter rows as a scheme's parameters are. */
#include "api/requests/form.h"
#include "api/formats/colours.h"
#include "api/formats/format.h"
#include "api/numbers/numbers.h"
#include "api/requests/slices.h"

#include <float.h>
#include <math.h>
#include <stddef.h>
#include <stdio.h>
#include <string.h>

struct fields {
    int dtype, format, cmap; /* -1: not given */
    int64_t digits, zoom, columns;
    double vmin, vmax;
    bool data, ascii, legend;
    int reduce;
};

static const char *const dtypes[] = {"f32", "f64", "f16", "bf16", NULL}; /* in the order of enum pe_dtype */

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
    ROW(reduce, WORD, .fallback = 0, .words = api_reduce_names,
        .text = "what the step of slice does with its block: its first number, or one of its finite numbers"),
    ROW(data, BOOL, .fallback = true, .text = "false leaves the numbers out of JSON: configuration and shapes at once"),
    ROW(cmap, WORD, .fallback = NOT_GIVEN, .words = api_cmap_names, .text = "colours of a picture; default viridis"),
    ROW(vmin, REAL, .fallback = (double)NAN, .min = -DBL_MAX, .max = DBL_MAX,
        .text = "value of a picture's first colour; default the least finite one"),
    ROW(vmax, REAL, .fallback = (double)NAN, .min = -DBL_MAX, .max = DBL_MAX,
        .text = "value of a picture's last colour; default the greatest finite one"),
    ROW(zoom, INT, .fallback = (double)NAN, .min = 1, .max = API_PICTURE_SIDE_MAX,
        .text = "pixels of an element along each side of it in png; default a longer side of about 512"),
    ROW(legend, BOOL, .fallback = false, .text = "true adds the colours below a png, with the values at their ends"),
    ROW(ascii, BOOL, .fallback = false, .text = "true draws text with plain characters instead of colours"),
    ROW(columns, INT, .fallback = (double)NAN, .min = 1, .max = API_COLUMNS_MAX,
        .text = "most columns of a picture as text; default 80"),
    {.name = NULL},
};

/* `weights` is no form, but like it nothing the core knows. */
static const char *const names[] = {"dtype", "format", "digits", "reduce", "data",  "outputs", "slice",   "cmap",
                                    "vmin",  "vmax",   "zoom",   "legend", "ascii", "columns", "weights", NULL};

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
    form->has_cmap = fields->cmap != NOT_GIVEN;
    form->cmap = form->has_cmap ? fields->cmap : 0;
    form->vmin = fields->vmin;
    form->vmax = fields->vmax;
    form->zoom = fields->zoom == PE_UNSET_INT ? 0 : fields->zoom;
    form->columns = fields->columns == PE_UNSET_INT ? 0 : fields->columns;
    form->ascii = fields->ascii;
    form->legend = fields->legend;
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
        bool is_outputs = api_is(field->name, "outputs"), is_slice = api_is(field->name, "slice");
        taken[i] = taken[i] || is_outputs || is_slice;
        if (is_outputs && !read_outputs(&field->value, form, problem))
            return false;
        if (is_slice && !api_slices_read(request, &field->value, &form->slices, &form->n_slices, problem))
            return false;
    }
    remove_taken(request, taken);
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

/* A field without effect is refused like an unknown one: its sender expects something. */
bool api_form_check(const struct api_form *form, const struct api_format *format, struct api_problem *problem)
{
    const struct {
        const char *name;
        bool is_given;
    } said[] = {
        {"digits", form->digits != API_DIGITS_SHORTEST},
        {"data", !form->data},
        {"cmap", form->has_cmap},
        {"vmin", !isnan(form->vmin)},
        {"vmax", !isnan(form->vmax)},
        {"zoom", form->zoom},
        {"legend", form->legend},
        {"ascii", form->ascii},
        {"columns", form->columns},
    };
    for (size_t i = 0; i < sizeof said / sizeof said[0]; i++)
        if (said[i].is_given && !is_used(format, said[i].name))
            return fail_unused(said[i].name, format, problem);
    if (form->vmin > form->vmax)
        return api_fail(problem, 422, "/vmin", "vmin is %.17g and vmax is %.17g; allowed: vmin at most vmax",
                        form->vmin, form->vmax);
    return true;
}
