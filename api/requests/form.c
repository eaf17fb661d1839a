/* The form of an answer: fields, read with parameter rows like a scheme's parameters, and headers that list what a
 * client accepts, which are ranges with weights (RFC 9110 §12.4.2). Accept chooses the format of the answer,
 * Accept-Encoding its coding; lang.c reads Accept-Language. */
#include "api/requests/requests.h"
#include "api/formats/format.h"
#include "api/numbers/numbers.h"

#include <float.h>
#include <math.h>
#include <stddef.h>
#include <stdio.h>
#include <string.h>
#include <strings.h>

enum { NOT_GIVEN = -1 };

static const struct pe_param rows[] = {
#define FORM(TYPE, name_, ...)                                                                                         \
    {.name = #name_, .type = PE_T_##TYPE, .offset = offsetof(struct api_form, name_), __VA_ARGS__},
#include "api/requests/form_list.h"
#undef FORM
    {.name = NULL},
};

/* `weights` is not part of the form, but the core does not know it either. */
const char *const api_form_names[] = {
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
    return format->fields && api_is_among(format->fields, name);
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
        return api_fail(problem, 422, "/vmin", "vmin is %s and vmax is %s; allowed: vmin at most vmax",
                        pe_shown(form->vmin).text, pe_shown(form->vmax).text);
    return true;
}

bool api_form_choose(struct api_request *request)
{
    request->format = api_form_format(&request->form);
    if (!request->format)
        request->format = api_negotiate(request->call->accept);
    if (request->format)
        return api_form_check(&request->form, request->format, &request->problem);
    char offered[256];
    api_formats_print(offered, sizeof offered);
    return api_fail(&request->problem, 406, "", "no type that Accept names is available; offered: %s", offered);
}

/* ---- Lists: in any order, with any number of blanks and empty elements ---- */

enum { WEIGHT_ONE = 1000 };

static bool is_space(char c) { return c == ' ' || c == '\t'; }

/* The end of an element: a separator outside of quotes, or the end of the text. */
static const char *element_end(const char *p, const char *end, char separator)
{
    bool quoted = false;
    for (; p < end && (quoted || *p != separator); p++) {
        if (quoted && *p == '\\' && end - p > 1)
            p++;
        else if (*p == '"')
            quoted = !quoted;
    }
    return p;
}

static void trim(const char **start, const char **end)
{
    while (*start < *end && is_space(**start))
        ++*start;
    while (*start < *end && is_space((*end)[-1]))
        --*end;
}

/* "0", "0.25", "1.000": at most three decimals. ".2", which Java's own client sends, is 0.2. -1 if it is no such
 * number. */
static int read_weight(const char *p, const char *end)
{
    bool is_bare = end - p > 1 && *p == '.';
    if (p == end || (!is_bare && *p != '0' && *p != '1'))
        return -1;
    int weight = is_bare ? 0 : (*p++ - '0') * WEIGHT_ONE;
    if (p < end && *p++ != '.')
        return -1;
    for (int unit = WEIGHT_ONE / 10; p < end; p++, unit /= 10) {
        if (*p < '0' || *p > '9' || unit == 0)
            return -1;
        weight += (*p - '0') * unit;
    }
    return weight <= WEIGHT_ONE ? weight : -1;
}

/* Other parameters are ignored: no format or language of ours has any. A weight that is not a number makes the range
 * invalid. */
static int weight_of(const char *p, const char *end)
{
    while (p < end) {
        const char *start = p + 1, *stop = element_end(start, end, ';');
        p = stop;
        trim(&start, &stop);
        if (stop - start >= 2 && (*start == 'q' || *start == 'Q') && start[1] == '=')
            return read_weight(start + 2, stop);
    }
    return WEIGHT_ONE;
}

bool api_weighted_next(const char **list, const char *end, struct api_weighted *range)
{
    if (*list == end)
        return false;
    const char *start = *list, *next = element_end(start, end, ','), *stop = element_end(start, next, ';');
    range->weight = weight_of(stop, next);
    *list = next < end ? next + 1 : end;
    trim(&start, &stop);
    range->name = start;
    range->n = (size_t)(stop - start);
    return true;
}

/* ---- Accept ---- */

/* Accept: a list of media ranges with weights. For each of our formats the most specific range that covers it decides
 * its weight; the greatest weight wins, and of equals the more specific, then the one named earlier, then the one
 * listed first. */

/* How well a format matches; compared field by field from the top. */
struct score {
    int weight;
    unsigned specificity; /* 0: not covered */
    unsigned place;       /* in the header, from 0 */
};

/* 3: the type itself, 2: type/ *, 1: anything, 0: not covered. */
static unsigned specificity(const struct api_weighted *range, const char *media_type)
{
    size_t slash = (size_t)(strchr(media_type, '/') - media_type);
    if (range->n == strlen(media_type) && strncasecmp(range->name, media_type, range->n) == 0)
        return 3;
    if (range->n == slash + 2 && strncasecmp(range->name, media_type, slash + 1) == 0 && range->name[slash + 1] == '*')
        return 2;
    bool is_bare = range->n == 1 && *range->name == '*'; /* not a media range, but Java's client sends it as one */
    return is_bare || (range->n == 3 && memcmp(range->name, "*/*", 3) == 0);
}

static struct score score_of(const char *accept, const char *media_type)
{
    struct score score = {0};
    struct api_weighted range;
    const char *end = accept + strlen(accept);
    for (unsigned place = 0; api_weighted_next(&accept, end, &range); place++) {
        unsigned s = specificity(&range, media_type);
        if (range.weight >= 0 && s > score.specificity)
            score = (struct score){.weight = range.weight, .specificity = s, .place = place};
    }
    return score;
}

static bool is_better(const struct score *a, const struct score *b)
{
    if (a->weight != b->weight)
        return a->weight > b->weight;
    if (a->specificity != b->specificity)
        return a->specificity > b->specificity;
    return a->place < b->place;
}

const struct api_format *api_negotiate(const char *accept)
{
    if (!accept || accept[strspn(accept, " \t,")] == '\0') /* an empty list accepts anything */
        return api_format_at(0);
    const struct api_format *best = NULL;
    struct score best_score = {0};
    for (size_t i = 0; i < api_n_formats(); i++) {
        struct score score = score_of(accept, api_format_at(i)->media_type);
        if (score.weight == 0 || (best && !is_better(&score, &best_score)))
            continue;
        best = api_format_at(i);
        best_score = score;
    }
    return best;
}

bool api_accepts(const char *accept, const char *media_type)
{
    return !accept || accept[strspn(accept, " \t,")] == '\0' || score_of(accept, media_type).weight > 0;
}

bool api_prefers(const char *accept, const char *media_type, const char *other)
{
    if (!accept)
        return false;
    struct score score = score_of(accept, media_type), score_of_other = score_of(accept, other);
    return score.weight > 0 && is_better(&score, &score_of_other);
}

/* ---- Accept-Encoding ---- */

/* Accept-Encoding: a list of content codings with weights. "*" is about the codings that no other element names; the
 * identity is acceptable unless the list excludes it, and then the least wanted. */

static bool is(const struct api_weighted *range, const char *word)
{
    return range->n == strlen(word) && strncasecmp(range->name, word, range->n) == 0;
}

/* x-gzip is gzip (RFC 9110 §8.4.1.3). */
static bool is_about(const struct api_weighted *range, const char *coding)
{
    return is(range, coding) || (strcmp(coding, "gzip") == 0 && is(range, "x-gzip"));
}

/* The greatest weight that the list gives a coding, in thousandths; unnamed if it gives none. */
static int coding_weight(const char *list, const char *coding, int unnamed)
{
    int named = -1, any = -1;
    struct api_weighted range;
    const char *end = list + strlen(list);
    while (api_weighted_next(&list, end, &range)) {
        if (is_about(&range, coding) && range.weight > named)
            named = range.weight;
        if (is(&range, "*") && range.weight > any)
            any = range.weight;
    }
    return named >= 0 ? named : any >= 0 ? any : unnamed;
}

enum api_coding api_coding_choose(const char *accept_encoding)
{
    const char *list = accept_encoding ? accept_encoding : "";
    int gzip = coding_weight(list, "gzip", 0);
    int identity = coding_weight(list, "identity", -1); /* -1: acceptable, after everything that is named */
    if (gzip > 0 && gzip >= identity)
        return API_GZIP;
    return identity != 0 ? API_IDENTITY : API_NO_CODING;
}
