/* Stored presets in a request. */
#include "api/inputs/inputs.h"

#include <stdio.h>

/* What the request holds. */
struct taken {
    const struct api_store *store;
    const struct api_weights *file;
    struct pe_preset preset; /* that of the file, with its name */
};

static void let_go(void *self)
{
    const struct taken *taken = self;
    taken->store->release(taken->store->self, taken->file);
}

static bool put(struct api_request *request, struct pe_value *value, const struct api_weights *file,
                struct api_problem *problem)
{
    const struct api_store *store = request->presets;
    struct taken *taken = api_arena_alloc(&request->arena, sizeof *taken);
    if (!taken) {
        store->release(store->self, file);
        return api_fail_memory(problem);
    }
    *taken = (struct taken){.store = store, .file = file, .preset = file->preset->preset};
    taken->preset.name = taken->preset.label = file->name;
    *value = (struct pe_value){.kind = PE_PRESET, .preset = &taken->preset};
    request->has_kept_preset = true;
    return api_arena_own(&request->arena, taken, let_go) || api_fail_memory(problem);
}

static bool fail_unknown(const struct api_request *request, const char *name, struct api_problem *problem)
{
    char buffer[API_WEIGHT_NAME_MAX + 1];
    const char *nearest = api_preset_nearest(request->presets, name, buffer);
    return api_fail(problem, 422, "/preset",
                    nearest ? "unknown preset \"%.64s\"; nearest: \"%s\"; GET /presets lists them"
                            : "unknown preset \"%.64s\"; GET /presets lists them",
                    name, nearest);
}

static bool look_up(struct api_request *request, struct pe_value *value, struct api_problem *problem)
{
    const struct api_store *store = request->presets;
    const struct api_weights *file = NULL;
    struct api_wanted wanted = {.name = value->string, .must_not_block = request->must_not_block};
    enum api_found found = store->find(store->self, &wanted, &file);
    switch (found) {
    case API_FOUND: return put(request, value, file, problem);
    case API_FOUND_LATER:
        request->is_late = true;
        return api_fail(problem, 503, "/preset", "looking for \"%.64s\" takes longer than this thread has",
                        value->string);
    case API_FOUND_UNKNOWN:
    case API_FOUND_TOO_LARGE:
    case API_FOUND_NO_ROOM:
    case API_FOUND_BUSY: return api_fail_kept_unknown(problem, "/preset", store, found, value->string);
    default: return fail_unknown(request, value->string, problem);
    }
}

static bool take(struct api_request *request, struct pe_field *fields, size_t n_fields, struct api_problem *problem)
{
    for (size_t i = 0; request->presets && i < n_fields; i++) {
        struct pe_value *value = &fields[i].value;
        if (!api_is(fields[i].name, "preset"))
            continue;
        return value->kind != PE_STRING || pe_preset_find(value->string) || look_up(request, value, problem);
    }
    return true;
}

bool api_preset_find(struct api_request *request, struct api_problem *problem)
{
    return take(request, request->fields, request->n_fields, problem);
}

/* The objects are in the request's arena, or in that of the request whose entry it is. */
bool api_preset_take_within(struct api_request *request, const char *name, const struct pe_value *list,
                            struct api_problem *problem)
{
    for (size_t i = 0; list->kind == PE_LIST && i < list->list.n; i++) {
        const struct pe_value *item = &list->list.items[i];
        if (item->kind != PE_OBJECT ||
            take(request, (struct pe_field *)(uintptr_t)item->object.fields, item->object.n, problem))
            continue;
        snprintf(problem->error.pointer, PE_POINTER_MAX, "/%s/%zu/preset", name, i);
        return false;
    }
    return true;
}
