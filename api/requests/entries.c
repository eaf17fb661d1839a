/* Entries: own fields first, with the stored preset that they name, then the request's, then tensors of stored weights.
 */
#include "api/requests/requests.h"
#include "api/inputs/inputs.h"

#include <stdio.h>
#include <string.h>

struct reading {
    struct api_request *whole;
    const struct pe_field *common; /* all fields of the request */
    size_t n_common;
    const struct pe_value *list; /* `configs`; NULL: the request is one configuration */
    const struct api_store *store;
    struct api_entries *entries;
    struct api_problem *problem;
};

static bool is_of_endpoint(const struct reading *r, const char *name)
{
    return pe_param_find(r->whole->taking->params(), name);
}

/* ---- The list ---- */

static size_t most(const struct reading *r)
{
    return r->whole->taking->entries_max ? r->whole->taking->entries_max : PE_ENTRIES_MAX;
}

static bool fail_list(const struct reading *r, const char *pointer)
{
    return api_fail(r->problem, 422, pointer,
                    "configs must be a list of 1 to %zu configurations, objects as {\"scheme\":\"rope\",\"len\":64}",
                    most(r));
}

static bool check_list(const struct reading *r)
{
    char pointer[32];
    const struct pe_value *list = r->list;
    if (list && list->kind == PE_LIST && list->list.n > most(r))
        return api_fail(r->problem, 422, "/configs", "configs has %zu configurations; allowed: 1 to %zu", list->list.n,
                        most(r));
    if (list && (list->kind != PE_LIST || list->list.n == 0))
        return fail_list(r, "/configs");
    for (size_t i = 0; list && i < list->list.n; i++) {
        snprintf(pointer, sizeof pointer, "/configs/%zu", i);
        if (list->list.items[i].kind != PE_OBJECT)
            return fail_list(r, pointer);
    }
    return true;
}

/* ---- The request of an entry ---- */

static void drop(void *request) { api_request_drop(request); }

/* What an entry allocates counts as its request's. */
static bool may_grow(void *lender, size_t n)
{
    struct api_request *whole = lender;
    if (!api_arena_reserve(&whole->arena, n))
        return false;
    whole->arena.n_bytes += n;
    return true;
}

static struct api_request *request_new(struct api_request *whole)
{
    struct api_request *request = api_arena_alloc(&whole->arena, sizeof *request);
    if (!request)
        return NULL;
    api_request_init(request, whole->operation);
    request->arena.may_grow = may_grow;
    request->arena.lender = whole;
    request->presets = whole->presets;
    return api_arena_own(&whole->arena, request, drop) ? request : NULL;
}

/* ---- Names that two read ---- */

static const struct pe_scheme_info *scheme_of(const struct api_request *request)
{
    struct pe_request core = {.fields = request->fields, .n_fields = request->n_fields};
    struct pe_weight_name names[PE_WEIGHT_NAMES_MAX];
    const struct pe_scheme_info *scheme = NULL;
    struct pe_failure err;
    size_t n;
    return pe_request_weights(&core, &scheme, names, &n, &err) ? NULL : scheme;
}

static bool scheme_takes(const struct api_request *request, const char *name)
{
    const struct pe_scheme_info *scheme = scheme_of(request);
    return scheme && pe_param_find(scheme->params, name);
}

/* A field of the endpoint is about all configurations, unless the scheme of this one has a field of that name too. */
static bool check_own(const struct reading *r, const struct api_request *request, const char *pointer, const char *name)
{
    /* `weights` is among the names of the form, and belongs to configurations. */
    bool is_field = api_is_among(api_form_names, name) && strcmp(name, "weights") != 0;
    if (!(is_field || strcmp(name, "lang") == 0 || strcmp(name, "configs") == 0) && !is_of_endpoint(r, name))
        return true;
    if (scheme_takes(request, name))
        return true;
    return api_fail_at(r->problem, 422, pointer, name,
                       "%s is about the whole request; give it beside configs, not within", name);
}

static bool add_own(const struct reading *r, struct api_request *request, const struct pe_value *object)
{
    for (size_t i = 0; i < object->object.n; i++)
        if (!api_request_add(request, object->object.fields[i].name, &object->object.fields[i].value, r->problem))
            return false;
    return true;
}

/* Without those of the endpoint, or only those, as far as the scheme takes them too. */
static bool add_common(const struct reading *r, struct api_request *request, bool of_endpoint)
{
    for (size_t i = 0; i < r->n_common; i++) {
        const struct pe_field *field = &r->common[i];
        if (&field->value == r->list || is_of_endpoint(r, field->name) != of_endpoint ||
            api_request_find(request, field->name))
            continue;
        if ((!of_endpoint || scheme_takes(request, field->name)) &&
            !api_request_add(request, field->name, &field->value, r->problem))
            return false;
    }
    return true;
}

/* ---- Stored presets and weights ---- */

/* Errors about a field of its own name the entry too. */
static void prefix_pointer(struct api_problem *problem, const char *prefix)
{
    char inner[PE_POINTER_MAX];
    snprintf(inner, sizeof inner, "%s", problem->error.pointer);
    snprintf(problem->error.pointer, PE_POINTER_MAX, "%s%.*s", prefix, (int)(PE_POINTER_MAX - 1 - strlen(prefix)),
             inner);
}

static bool take_preset(const struct reading *r, struct api_request *request, const char *pointer)
{
    if (api_pasted_take(request, r->problem) && api_preset_take(request, r->problem))
        return true;
    prefix_pointer(r->problem, pointer);
    return false;
}

/* An inherited list is one object for all entries, so its presets are looked up for the first of them. */
static bool take_variants(const struct reading *r, struct api_request *request, const struct pe_entry *entry)
{
    const char *name = r->whole->taking->variants;
    const struct pe_value *list = name ? api_request_find(request, name) : NULL;
    if (!list || api_preset_take_within(request, name, list, r->problem))
        return true;
    if (list < &request->fields[entry->n_own].value)
        prefix_pointer(r->problem, entry->pointer);
    return false;
}

/* ---- The whole ---- */

static bool add_entry(const struct reading *r, size_t i)
{
    struct pe_entry *entry = &r->entries->at[i];
    struct api_request *request = request_new(r->whole);
    char *pointer = api_arena_string(&r->whole->arena, "/configs/0", strlen("/configs/0"));
    if (!request || !pointer)
        return api_fail_memory(r->problem);
    pointer[strlen("/configs/")] = (char)('0' + i);
    *entry = (struct pe_entry){.pointer = r->list ? pointer : ""};
    if (r->list && (!add_own(r, request, &r->list->list.items[i]) || !take_preset(r, request, entry->pointer)))
        return false;
    entry->n_own = request->n_fields;
    if (!add_common(r, request, false) || !add_common(r, request, true))
        return false;
    for (size_t f = 0; f < entry->n_own; f++)
        if (!check_own(r, request, entry->pointer, request->fields[f].name))
            return false;
    if (!r->list)
        entry->n_own = request->n_fields;
    if (!take_variants(r, request, entry))
        return false;
    r->whole->has_stored_preset |= request->has_stored_preset;
    size_t n_bytes;
    const struct pe_value *weights = api_request_find(request, "weights");
    bool is_own = weights && weights < &request->fields[entry->n_own].value;
    if (!api_weights_add(r->store, request, &n_bytes, r->problem)) {
        if (is_own)
            prefix_pointer(r->problem, entry->pointer);
        return false;
    }
    entry->n_own -= is_own; /* tensors have taken its place, at the end */
    if (request->stored)
        r->whole->stored = request->stored;
    entry->fields = request->fields;
    entry->n_fields = request->n_fields;
    r->entries->requests[i] = request;
    return true;
}

/* Leaves the endpoint's own fields. */
static bool take_common(struct reading *r)
{
    struct api_request *whole = r->whole;
    struct pe_field *all = api_arena_array(&whole->arena, whole->n_fields, sizeof *all);
    if (!all)
        return api_fail_memory(r->problem);
    r->common = memcpy(all, whole->fields, whole->n_fields * sizeof *all);
    r->n_common = whole->n_fields;
    whole->n_fields = 0;
    for (size_t i = 0; i < r->n_common; i++)
        if (strcmp(all[i].name, "configs") == 0)
            r->list = &all[i].value;
        else if (is_of_endpoint(r, all[i].name))
            whole->fields[whole->n_fields++] = all[i];
    return true;
}

_Static_assert(PE_ENTRIES_MAX <= 10, "the number of an entry is one digit");

bool api_entries_read(struct api_request *request, const struct api_store *store, struct api_entries *entries,
                      struct api_problem *problem)
{
    struct reading r = {.whole = request, .store = store, .entries = entries, .problem = problem};
    if (!take_common(&r) || !check_list(&r))
        return false;
    entries->n = r.list ? r.list->list.n : 1;
    for (size_t i = 0; i < entries->n; i++)
        if (!add_entry(&r, i))
            return false;
    return true;
}

static size_t count(const char *const *names)
{
    size_t n = 0;
    while (names[n])
        n++;
    return n;
}

const char *const *api_entries_names(struct api_request *request)
{
    const char *const *form = api_form_names;
    const struct pe_param *rows = request->taking->params();
    size_t n = count(form), n_rows = 0;
    while (rows[n_rows].name)
        n_rows++;
    const char **names = api_arena_array(&request->arena, n + n_rows + 3, sizeof *names);
    if (!names)
        return NULL;
    memcpy(names, form, n * sizeof *names);
    for (size_t i = 0; i < n_rows; i++)
        names[n++] = rows[i].name;
    names[n++] = "configs";
    names[n++] = "lang";
    names[n] = NULL;
    return names;
}
