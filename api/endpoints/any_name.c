/* Tensors of any name in a request to /diagnose: parts of a form, members of a file and of the object `tensors` whose
 * names are no fields get the name of a kind of evidence, by `kind` or by what pe_kinds_of() takes them for. Where
 * several kinds are plausible, each attempt takes the next one. */
#include "api/endpoints/endpoints.h"
#include "api/inputs/inputs.h"
#include "api/requests/requests.h"

#include <string.h>

enum { TENSORS_MAX = 16 };

/* One tensor, and what it may be. */
struct tensor {
    const char *name;
    struct pe_value value;
    struct pe_kind_guess guesses[PE_KIND_GUESSES_MAX];
    size_t n_guesses;
    const struct pe_kind_guess *taken; /* in this attempt; NULL: as nothing */
};

struct api_any_names {
    struct tensor tensors[TENSORS_MAX];
    size_t n, n_attempts;
    struct pe_value kind, members; /* the fields `kind` and `tensors`; PE_NULL: not given */
    struct pe_field *fields;       /* of an attempt: those of the request, and the tensors taken */
};

/* `kind` is a word in some schemes, so it is read here where it is an object, and by the scheme else. */
static const struct pe_param own_rows[] = {
    {.name = "tensors",
     .type = PE_T_VALUE,
     .about = {"tensors", "an object of tensors by any name; what each one is follows from its name and numbers"},
     .group = PE_G_ANSWER},
    {.name = "kind",
     .type = PE_T_VALUE,
     .about = {"kinds", "an object that states what tensors of other names are, as {\"hidden\":\"q_out\"}"},
     .group = PE_G_ANSWER},
    {.name = NULL},
};

const struct pe_param *api_any_names_params(void) { return own_rows; }

/* ---- Names that are no fields ---- */

static bool is_field(const char *name)
{
    struct api_name_uses uses = api_name_uses(name);
    return uses.as_input || uses.as_param || pe_kind_has_name(name) || pe_param_find(pe_padding_params(), name) ||
           pe_param_find(pe_typed_params(), name) || api_is(name, "w_believed") || api_is(name, "w_found");
}

/* ---- The tensors ---- */

/* What the field `kind` states; false: it states what is no kind. */
static bool state_kind(struct api_request *request, struct api_any_names *any, struct tensor *t)
{
    const struct pe_value *as = any->kind.kind == PE_OBJECT ? api_member_find(&any->kind, t->name) : NULL;
    if (!as)
        return true;
    if (as->kind != PE_STRING || !pe_kind_has_name(as->string))
        return api_fail_at(
            &request->problem, 422, "/kind", t->name,
            "this is no kind of tensor; allowed: cos, sin, q, q_out, inv_freq, encoding and the others that "
            "/diagnose lists");
    t->guesses[0] = (struct pe_kind_guess){as->string, pe_text("as the request states"), true};
    t->n_guesses = 1;
    return true;
}

static bool add_tensor(struct api_request *request, struct api_any_names *any, const struct pe_field *field)
{
    if (field->value.kind != PE_ARRAY)
        return api_fail_at(
            &request->problem, 422, "/tensors", field->name,
            "this is no tensor; allowed: nested lists of numbers, or an object of dtype, shape and data");
    if (any->n == TENSORS_MAX)
        return api_fail_at(&request->problem, 422, "/tensors", field->name, "the request has more than %d tensors",
                           TENSORS_MAX);
    struct tensor *t = &any->tensors[any->n++];
    *t = (struct tensor){.name = field->name, .value = field->value};
    if (pe_kind_has_name(t->name)) {
        t->guesses[0] = (struct pe_kind_guess){t->name, pe_text("its name"), true};
        t->n_guesses = 1;
    } else {
        t->n_guesses = pe_kinds_of(t->name, &t->value.array, t->guesses);
    }
    if (!state_kind(request, any, t))
        return false;
    any->n_attempts = t->n_guesses > any->n_attempts ? t->n_guesses : any->n_attempts;
    return true;
}

bool api_any_names_take(struct api_request *request, struct api_any_names **out)
{
    const struct pe_value *members = api_request_find(request, "tensors"), *kind = api_request_find(request, "kind");
    kind = kind && kind->kind == PE_OBJECT ? kind : NULL;
    struct api_any_names *any = api_arena_array(&request->arena, 1, sizeof *any);
    bool taken[API_FIELDS_MAX] = {false};
    if (!any)
        return api_fail_memory(&request->problem);
    *any = (struct api_any_names){.n = 0, .n_attempts = 1};
    any->kind = kind ? *kind : (struct pe_value){.kind = PE_NULL};
    any->members = members ? *members : (struct pe_value){.kind = PE_NULL};
    *out = any;
    if (members && members->kind != PE_OBJECT)
        return api_fail(&request->problem, 422, "/tensors",
                        "tensors must be an object of tensors, as {\"rope_cos\":[[1.0]]}");
    for (size_t i = 0; i < request->n_fields; i++) {
        const struct pe_field *field = &request->fields[i];
        taken[i] = &field->value == members || &field->value == kind;
        /* JSON's own names are not guessed: a misspelt field is an error. */
        bool is_stated = kind && api_member_find(&any->kind, field->name);
        if (field->value.kind != PE_ARRAY || field->value.from_text || (is_field(field->name) && !is_stated))
            continue;
        taken[i] = true;
        if (!add_tensor(request, any, field))
            return false;
    }
    for (size_t i = 0; members && i < any->members.object.n; i++)
        if (!add_tensor(request, any, &any->members.object.fields[i]))
            return false;
    api_request_remove(request, taken);
    any->fields = api_arena_array(&request->arena, request->n_fields + any->n + 1, sizeof *any->fields);
    return any->fields || api_fail_memory(&request->problem);
}

/* ---- Attempts ---- */

size_t api_any_names_attempts(const struct api_any_names *any) { return any->n_attempts; }

/* Has the request evidence by its own name? Then numbers alone make no tensor a second one. */
static bool has_evidence(const struct api_request *request)
{
    for (size_t i = 0; i < request->n_fields; i++)
        if (request->fields[i].value.kind == PE_ARRAY && pe_kind_has_name(request->fields[i].name))
            return true;
    return false;
}

/* The guess of this attempt, or the next that is free; what has a name that tells is nothing else if that is taken. */
static const struct pe_kind_guess *choose(const struct tensor *t, size_t attempt, bool only_by_name,
                                          const struct pe_value *fields)
{
    if (t->n_guesses == 0 ||
        (t->guesses[0].is_by_name ? api_member_find(fields, t->guesses[0].as) != NULL : only_by_name))
        return NULL;
    for (size_t i = attempt < t->n_guesses ? attempt : 0; i < t->n_guesses; i++)
        if (!api_member_find(fields, t->guesses[i].as))
            return &t->guesses[i];
    return NULL;
}

const struct pe_field *api_any_names_fill(struct api_any_names *any, size_t attempt, const struct api_request *request,
                                          size_t *n_fields)
{
    struct pe_field *fields = any->fields;
    size_t n = request->n_fields;
    bool only_by_name = has_evidence(request);
    memcpy(fields, request->fields, n * sizeof *fields);
    for (size_t i = 0; i < any->n; i++) {
        struct tensor *t = &any->tensors[i];
        const struct pe_value so_far = {.kind = PE_OBJECT, .object = {fields, n}};
        t->taken = choose(t, attempt, only_by_name, &so_far);
        if (t->taken)
            fields[n++] = (struct pe_field){t->taken->as, t->value};
    }
    *n_fields = n;
    return fields;
}

/* ---- The answer ---- */

void api_any_names_put(struct api_text *text, const struct api_any_names *any)
{
    if (!any->n)
        return;
    api_text_open(text, "taken", '[');
    for (size_t i = 0; i < any->n; i++) {
        const struct tensor *t = &any->tensors[i];
        api_text_open(text, NULL, '{');
        api_text_member(text, "name", t->name);
        api_text_name(text, "as");
        if (t->taken)
            api_text_string(text, t->taken->as);
        else
            api_text_put(text, "null");
        api_text_member(text, "why",
                        t->taken       ? t->taken->why
                        : t->n_guesses ? pe_text("another tensor is taken as what it may be")
                                       : pe_text("its name is that of something else"));
        api_text_close(text, '}');
    }
    api_text_close(text, ']');
}

void api_any_names_print(struct api_text *text, const struct api_any_names *any)
{
    for (size_t i = 0; i < any->n; i++) {
        const struct tensor *t = &any->tensors[i];
        api_text_format(text, pe_text("%s is taken as %s"), t->name, t->taken ? t->taken->as : pe_text("nothing"));
        api_text_put(text, "\n");
    }
}
