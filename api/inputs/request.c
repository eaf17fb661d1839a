/* A request without its wire form. */
#include "api/inputs/inputs.h"
#include "api/api.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

void api_request_init(struct api_request *request, enum pe_operation_id operation)
{
    request->n_owners = 1;
    request->host = NULL;
    request->call = NULL;
    request->route = NULL;
    request->problem.status = 0;
    request->is_late = request->is_long = request->is_refused = request->is_checked = request->draws_first = false;
    request->n_read_steps = 0;
    request->own = NULL;
    request->operation = operation;
    request->taking = NULL;
    request->body_is_ours = request->must_not_block = request->fills_later = false;
    request->waiting = NULL;
    request->max_json = 0;
    request->drawing = (struct api_drawing){.max = API_DRAWN_MAX, .max_at_once = UINT64_MAX};
    request->arena = (struct api_arena){0};
    request->n_fields = request->n_completing = 0;
    request->stored = NULL;
    request->presets = NULL;
    request->has_stored_preset = false;
    request->lang = PE_EN;
    request->stored_bytes = 0;
    request->pasted = NULL;
    request->unread = NULL;
    request->is_pasted = false;
    request->form = (struct api_form){.n_outputs = 0};
    request->format = NULL;
    request->about = NULL;
    request->opening = (struct api_opening){.config = NULL};
    request->plan = NULL;
    request->is_cacheable = request->is_unchanged = request->is_of_machine = request->is_of_kernels = false;
    request->key = request->tagged_as = NULL;
    request->parts = NULL;
    request->n_parts = 0;
    *request->etag = '\0';
    request->n_taken = request->n_read = request->body_bytes = 0;
    request->refusal.status = 0;
}

/* The plan borrows from the fields, so it goes first. */
void api_request_drop(struct api_request *request)
{
    pe_plan_free(request->plan);
    request->plan = NULL;
    api_arena_drop(&request->arena);
    request->n_fields = 0;
    if (request->n_taken)
        request->host->give_memory(request->host, request->n_taken);
    request->n_taken = 0;
}

struct api_request *api_request_new(enum pe_operation_id operation, size_t own_bytes)
{
    enum { ALIGNMENT = 16 };
    size_t n = (sizeof(struct api_request) + ALIGNMENT - 1) / ALIGNMENT * ALIGNMENT;
    struct api_request *request = malloc(n + own_bytes);
    if (!request)
        return NULL;
    api_request_init(request, operation);
    request->own = (char *)request + n;
    return request;
}

void api_request_free(struct api_request *request)
{
    if (!request || --request->n_owners)
        return;
    api_request_drop(request);
    free(request);
}

/* Removes the field of that name from those that only complete the request. */
static void give_way(struct api_request *request, const char *name)
{
    size_t i = 0;
    while (i < request->n_completing && !api_is(request->fields[i].name, name))
        i++;
    if (i == request->n_completing)
        return;
    request->n_completing--;
    request->n_fields--;
    memmove(&request->fields[i], &request->fields[i + 1], (request->n_fields - i) * sizeof *request->fields);
}

bool api_request_add(struct api_request *request, const char *name, const struct pe_value *value,
                     struct api_problem *problem)
{
    give_way(request, name);
    bool is_known = api_request_find(request, name);
    if (!is_known && request->n_fields < API_FIELDS_MAX) {
        struct pe_field *field = &request->fields[request->n_fields++];
        field->name = name;
        field->value = *value;
        return true;
    }
    if (!is_known)
        return api_fail_at(problem, 422, "", name, "the request has more than %d names", API_FIELDS_MAX);
    return api_fail_at(problem, 400, "", name, "\"%.64s\" is given twice; give it once, in the body or in the query",
                       name);
}

void api_request_remove(struct api_request *request, const bool *taken)
{
    size_t n = 0;
    for (size_t i = 0; i < request->n_fields; i++)
        if (!taken[i])
            request->fields[n++] = request->fields[i];
    request->n_fields = n;
}

const char *api_request_first(const struct api_request *request, const char *const *names, char pointer[PE_POINTER_MAX])
{
    while (*names && !api_request_find(request, *names))
        names++;
    snprintf(pointer, PE_POINTER_MAX, "/%s", *names ? *names : "");
    return *names;
}

struct hold {
    const struct api_store *store;
    const struct api_stored_file *file;
};

static void let_go(void *self)
{
    const struct hold *hold = self;
    hold->store->release(hold->store->self, hold->file);
}

bool api_request_hold_file(struct api_request *request, const struct api_store *store,
                           const struct api_stored_file *file)
{
    struct hold *hold = api_arena_alloc(&request->arena, sizeof *hold);
    if (!hold) {
        store->release(store->self, file);
        return false;
    }
    *hold = (struct hold){store, file};
    return api_arena_own(&request->arena, hold, let_go);
}

/* ---- Tensors that wait ---- */

static bool has_input(const struct pe_input_row *rows, const char *name)
{
    while (rows && rows->name && strcmp(rows->name, name) != 0)
        rows++;
    return rows && rows->name;
}

static bool has_param(const struct pe_param *rows, const char *name) { return rows && pe_param_find(rows, name); }

struct api_name_uses api_name_uses(const char *name)
{
    struct api_name_uses uses = {false, has_param(pe_sequence_params(), name) || has_param(pe_absolute_params(), name)};
    for (enum pe_operation_id i = 0; i < PE_N_OPERATIONS; i++) {
        uses.as_input |= has_input(pe_operation_at(i)->inputs, name);
        uses.as_param |= has_param(pe_operation_at(i)->params, name);
    }
    for (size_t i = 0; i < pe_n_schemes(); i++) {
        uses.as_input |= has_input(pe_scheme_at(i)->inputs, name);
        uses.as_param |= has_param(pe_scheme_at(i)->params, name);
    }
    return uses;
}

bool api_field_may_wait(const char *name)
{
    struct api_name_uses uses = api_name_uses(name);
    return uses.as_input && !uses.as_param;
}

bool api_request_wait(struct api_request *request, const struct api_waiting *waiting)
{
    struct api_waiting *copy = api_arena_alloc(&request->arena, sizeof *copy);
    if (!copy)
        return false;
    *copy = *waiting;
    copy->next = request->waiting;
    request->waiting = copy;
    return true;
}

void api_request_fill(struct api_request *request)
{
    for (const struct api_waiting *w = request->waiting; w; w = w->next)
        if (w->from)
            memcpy(w->to, w->from, w->n);
        else
            pe_seed_fill(w->seed, w->name, w->std, 0, w->n, w->to);
    request->waiting = NULL;
    request->drawing.n_waiting = 0;
    request->draws_first = false;
}

/* ---- Tensors of the received bytes ---- */

/* Bytes of a stored file stay where they are as long as the request; those of a body may be moved by the next tensor.
 */
static const void *copy_of(struct api_request *request, const char *name, const void *data, size_t count, size_t size)
{
    struct api_waiting waiting = {.to = api_arena_array(&request->arena, count, size), .from = data, .n = count * size};
    if (!waiting.to)
        return NULL;
    if (request->fills_later && request->stored && api_field_may_wait(name))
        return api_request_wait(request, &waiting) ? waiting.to : NULL;
    return memcpy(waiting.to, data, waiting.n);
}

/* Moving within the body avoids a second copy of a large upload. */
static const void *align(struct api_request *request, const char *name, const struct pe_tensor *tensor, size_t n_spare)
{
    uint64_t count;
    size_t size = pe_dtype_size(tensor->dtype), excess = (uintptr_t)tensor->data % size;
    if (!excess)
        return tensor->data;
    pe_shape_count(tensor->shape, tensor->rank, &count); /* the product fits: the bytes exist */
    if (request->body_is_ours && n_spare >= excess)
        return memmove((char *)(uintptr_t)tensor->data - excess, tensor->data, (size_t)count * size);
    return copy_of(request, name, tensor->data, (size_t)count, size);
}

bool api_complex_shape(const char *pointer, uint64_t *shape, unsigned *rank, struct api_problem *problem)
{
    if (strcmp(pointer, "/freqs_cis") != 0)
        return api_fail(problem, 422, pointer, "complex numbers are only for freqs_cis; send [...,2]");
    if (*rank == PE_RANK_MAX)
        return api_fail(problem, 422, pointer, "complex numbers have at most %d axes", PE_RANK_MAX - 1);
    shape[(*rank)++] = 2;
    return true;
}

bool api_request_add_tensor(struct api_request *request, const char *name, const struct pe_tensor *tensor,
                            size_t n_spare, struct api_problem *problem)
{
    struct pe_value value = {.kind = PE_ARRAY, .array = *tensor};
    value.array.data = align(request, name, tensor, n_spare);
    if (!value.array.data)
        return api_fail_memory(problem);
    return api_request_add(request, name, &value, problem);
}
