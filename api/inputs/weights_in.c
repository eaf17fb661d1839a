/* Stored weights in a request: the names of stored files; chooses the file, its tensors, and their names in the
 * request. */
#include "api/inputs/inputs.h"

#include <inttypes.h>
#include <stdio.h>
#include <string.h>
#include <strings.h>

struct adding {
    const struct api_store *store;
    struct api_request *request;
    const char *name, *sha256;  /* sha256: NULL if absent */
    const struct pe_value *map; /* likewise */
    const char *pointer;        /* of the name */
    const struct api_stored_file *weights;
    struct pe_weight_name takes[PE_WEIGHT_NAMES_MAX];
    size_t n_takes;
    const char *scheme;
    size_t n_added, n_bytes;
    struct api_problem *problem;
};

/* ---- What the field states ---- */

static bool fail_form(struct api_problem *problem, const char *pointer)
{
    return api_fail(problem, 422, pointer,
                    "weights must be the name of stored weights, or an object: {\"name\":\"t5-small\",\"sha256\":\"…\","
                    "\"map\":{\"table\":\"name in the file\"}}, sha256 and map as needed");
}

static bool is_digest(const char *text)
{
    return strlen(text) == API_SHA256_CHARS && strspn(text, "0123456789abcdefABCDEF") == API_SHA256_CHARS;
}

static bool read_member(struct adding *a, const struct pe_field *field)
{
    static const char *const names[] = {"name", "sha256", "map", NULL};
    char pointer[PE_POINTER_MAX] = "/weights";
    api_pointer_push(pointer, field->name, strlen(field->name));
    bool is_word = field->value.kind == PE_STRING;
    if (strcmp(field->name, "name") == 0 && is_word)
        a->name = field->value.string;
    else if (strcmp(field->name, "sha256") == 0 && is_word && is_digest(field->value.string))
        a->sha256 = field->value.string;
    else if (strcmp(field->name, "sha256") == 0)
        return api_fail(a->problem, 422, pointer, "sha256 is not a string of 64 hexadecimal digits");
    else if (strcmp(field->name, "map") == 0 && field->value.kind == PE_OBJECT)
        a->map = &field->value;
    else if (strcmp(field->name, "name") == 0 || strcmp(field->name, "map") == 0)
        return fail_form(a->problem, pointer);
    else {
        const char *nearest = pe_nearest(field->name, names);
        return api_fail(a->problem, 422, pointer,
                        nearest ? "unknown member \"%.64s\" of weights; nearest: %s"
                                : "unknown member \"%.64s\" of weights; there are: name, sha256, map",
                        field->name, nearest);
    }
    return true;
}

static bool read_field(struct adding *a, const struct pe_value *value)
{
    a->pointer = value->kind == PE_STRING ? "/weights" : "/weights/name";
    if (value->kind == PE_STRING)
        a->name = value->string;
    for (size_t i = 0; value->kind == PE_OBJECT && i < value->object.n; i++)
        if (!read_member(a, &value->object.fields[i]))
            return false;
    if (!a->name)
        return fail_form(a->problem, "/weights");
    return api_weight_name_is_valid(a->name) ||
           api_fail_stored_name(a->problem, a->pointer, &api_contents_weights, a->name);
}

/* ---- The file ---- */

static bool fail_absent(const struct adding *a)
{
    char nearest[API_WEIGHT_NAME_MAX + 1];
    if (a->store && a->store->nearest(a->store->self, a->name, nearest))
        return api_fail(a->problem, 422, a->pointer, "no weights \"%s\" are stored; nearest: \"%s\"", a->name, nearest);
    return api_fail(a->problem, 422, a->pointer,
                    "no weights \"%s\" are stored; GET /weights lists them, PUT /weights/%s stores them", a->name,
                    a->name);
}

static bool find_file(struct adding *a)
{
    struct api_wanted wanted = {.name = a->name, .sha256 = a->sha256, .must_not_block = a->request->must_not_block};
    enum api_found found = a->store ? a->store->find(a->store->self, &wanted, &a->weights) : API_FOUND_NOTHING;
    if (found != API_FOUND) {
        switch (found) {
        case API_FOUND_LATER: return !(a->request->is_late = true);
        case API_FOUND_UNKNOWN:
        case API_FOUND_TOO_LARGE:
        case API_FOUND_NO_ROOM:
        case API_FOUND_BUSY: return api_fail_stored_unknown(a->problem, a->pointer, a->store, found, a->name);
        default: return fail_absent(a);
        }
    }
    if (!api_request_hold_file(a->request, a->store, a->weights))
        return api_fail_memory(a->problem);
    a->request->stored = a->weights;
    if (a->sha256 && strcasecmp(a->sha256, a->weights->sha256) != 0)
        return api_fail(a->problem, 412, "/weights/sha256", "the stored weights \"%s\" have the sha256 %s", a->name,
                        a->weights->sha256);
    return true;
}

/* ---- What the request takes ---- */

static bool find_takes(struct adding *a)
{
    struct pe_request core = {
        .operation = a->request->operation, .fields = a->request->fields, .n_fields = a->request->n_fields};
    const struct pe_scheme_info *scheme;
    struct pe_failure err;
    if (pe_request_weights(&core, &scheme, a->takes, &a->n_takes, &err))
        return api_fail_core(a->problem, &err);
    a->scheme = scheme->name;
    return a->n_takes > 0 ||
           api_fail(a->problem, 422, "/weights", "%s uses no weights here; leave weights out", a->scheme);
}

static const char more[] = "…";

static bool list_is_cut(const char *list)
{
    size_t used = strlen(list), n_more = sizeof more - 1;
    return used >= n_more && strcmp(list + used - n_more, more) == 0;
}

/* Appends name to a list; the names that do not fit are replaced by one "…". */
static void list_add(char *list, size_t room, const char *name)
{
    size_t used = strlen(list);
    bool fits = used + strlen(name) + 2 * sizeof ", …" < room;
    if (!list_is_cut(list))
        snprintf(list + used, room - used, "%s%s", used ? ", " : "", fits ? name : more);
}

static void list_tensors(const struct api_tensors *tensors, char *list, size_t room)
{
    *list = '\0';
    for (size_t i = 0; i < api_tensors_count(tensors) && !list_is_cut(list) && strlen(list) + 8 < room; i++)
        list_add(list, room, api_tensors_name(tensors, i));
}

static void list_takes(const struct adding *a, char *list, size_t room)
{
    *list = '\0';
    for (size_t i = 0; i < a->n_takes; i++)
        list_add(list, room, a->takes[i].name);
}

static bool add_tensor(struct adding *a, const char *field, size_t i)
{
    struct pe_tensor tensor = api_weights_tensor(a->weights, i);
    uint64_t count;
    pe_shape_count(tensor.shape, tensor.rank, &count); /* the product fits: the bytes exist */
    a->n_bytes += (size_t)count * pe_dtype_size(tensor.dtype);
    a->n_added++;
    return api_request_add_tensor(a->request, field, &tensor, 0, a->problem);
}

/* ---- By map ---- */

static bool fail_map_name(const struct adding *a, const char *pointer, const char *field)
{
    const char *names[PE_WEIGHT_NAMES_MAX + 1];
    char list[256];
    for (size_t i = 0; i < a->n_takes; i++)
        names[i] = a->takes[i].name;
    names[a->n_takes] = NULL;
    const char *nearest = pe_nearest(field, names);
    list_takes(a, list, sizeof list);
    return api_fail(a->problem, 422, pointer,
                    nearest ? "%s uses no weights \"%.64s\" here; nearest: %s"
                            : "%s uses no weights \"%.64s\" here; it takes: %s",
                    a->scheme, field, nearest ? nearest : list);
}

static bool add_mapped(struct adding *a, const struct pe_field *entry)
{
    char pointer[PE_POINTER_MAX] = "/weights/map";
    size_t i = 0;
    api_pointer_push(pointer, entry->name, strlen(entry->name));
    while (i < a->n_takes && strcmp(a->takes[i].name, entry->name) != 0)
        i++;
    if (i == a->n_takes)
        return fail_map_name(a, pointer, entry->name);
    if (entry->value.kind != PE_STRING)
        return api_fail(a->problem, 422, pointer, "map gives each tensor the name it has in the file, a string");
    if (api_request_find(a->request, entry->name))
        return api_fail(a->problem, 422, pointer, "%s is sent with the request and mapped; give it once", entry->name);
    if (!api_tensors_find(a->weights->tensors, entry->value.string, &i)) {
        char list[320];
        list_tensors(a->weights->tensors, list, sizeof list);
        return api_fail(a->problem, 422, pointer,
                        "the stored weights \"%.64s\" have no tensor \"%.64s\"; they have: %s", a->name,
                        entry->value.string, list);
    }
    return add_tensor(a, entry->name, i);
}

static bool add_by_map(struct adding *a)
{
    if (a->map->object.n == 0)
        return api_fail(a->problem, 422, "/weights/map", "map is empty; leave it out, or name a tensor");
    for (size_t i = 0; i < a->map->object.n; i++)
        if (!add_mapped(a, &a->map->object.fields[i]))
            return false;
    return true;
}

/* ---- By name ---- */

enum { SHOWN_MAX = 64 }; /* more than fit into a message: their names have at least ten letters */

/* The tensors whose name has one of the endings, "a|b": their number, and the first of them by name. */
static size_t find_endings(const struct api_tensors *tensors, const char *endings, size_t *found, size_t *n_found)
{
    size_t n_all = 0;
    for (const char *p = endings; p && *p;) {
        size_t n = strcspn(p, "|");
        n_all += api_tensors_ending(tensors, p, n, found, n_found, SHOWN_MAX);
        p += n + (p[n] == '|');
    }
    return n_all;
}

/* The file's tensor with posenc's name, else its only tensor with a name that checkpoints use. Returns the number of
 * candidates; if there are too many, their names go to list. */
static size_t choose(const struct adding *a, const struct pe_weight_name *take, size_t *chosen, char *list, size_t room)
{
    const struct api_tensors *tensors = a->weights->tensors;
    size_t found[SHOWN_MAX], n_found = 0;
    *list = '\0';
    if (api_tensors_find(tensors, take->name, chosen))
        return 1;
    size_t n = find_endings(tensors, take->elsewhere, found, &n_found);
    for (size_t i = 0; i < n_found; i++)
        list_add(list, room, api_tensors_name(tensors, found[i]));
    *chosen = n > 0 ? found[n_found - 1] : *chosen;
    return n;
}

static bool fail_none(const struct adding *a)
{
    char takes[128], list[256];
    list_takes(a, takes, sizeof takes);
    list_tensors(a->weights->tensors, list, sizeof list);
    return api_fail(a->problem, 422, a->pointer,
                    "the stored weights \"%.64s\" have nothing named as %s's weights (%s); they have: %s; choose one "
                    "with \"map\":{\"%s\":\"name in the file\"}",
                    a->name, a->scheme, takes, list, a->takes[0].name);
}

static bool fail_twice(const struct adding *a, const char *take)
{
    return api_fail(a->problem, 422, a->pointer,
                    "%s is given twice, with the request and by the stored weights \"%.64s\"; give it once", take,
                    a->name);
}

static bool fail_many(const struct adding *a, const char *take, size_t n, const char *list)
{
    return api_fail(a->problem, 422, a->pointer,
                    "the stored weights \"%.64s\" have %zu tensors that may be %s: %s; choose one with "
                    "\"map\":{\"%s\":\"name in the file\"}",
                    a->name, n, take, list, take);
}

/* A tensor in the request takes precedence over the file. If several tensors of the file match, none is guessed or
 * skipped: the weights of the wrong layer would give a wrong answer that looks right. */
static bool add_by_name(struct adding *a)
{
    char list[280];
    size_t chosen = 0, n_sent = 0;
    const char *twice = NULL;
    for (size_t i = 0; i < a->n_takes; i++) {
        const struct pe_weight_name *take = &a->takes[i];
        size_t n = choose(a, take, &chosen, list, sizeof list);
        if (api_request_find(a->request, take->name)) {
            n_sent++;
            twice = twice || !n ? twice : take->name;
            continue;
        }
        if (n > 1)
            return fail_many(a, take->name, n, list);
        if (n == 1 && !add_tensor(a, take->name, chosen))
            return false;
    }
    if (a->n_added > 0)
        return true;
    if (n_sent == a->n_takes && !twice)
        twice = a->takes[0].name; /* a map would name what is sent already */
    return twice ? fail_twice(a, twice) : fail_none(a);
}

/* ---- The whole ---- */

bool api_weights_find(const struct api_store *store, struct api_request *request, size_t *n_bytes,
                      struct api_problem *problem)
{
    struct adding a = {.store = store, .request = request, .problem = problem};
    size_t i = 0;
    while (!api_is(request->fields[i].name, "weights"))
        i++;
    struct pe_value value = request->fields[i].value;
    if (!read_field(&a, &value) ||
        !find_file(&a)) /* a worker may take this step again: up to here nothing is changed */
        return false;
    request->n_fields--;
    memmove(&request->fields[i], &request->fields[i + 1], (request->n_fields - i) * sizeof *request->fields);
    if (!find_takes(&a) || !(a.map ? add_by_map(&a) : add_by_name(&a)))
        return false;
    *n_bytes = a.n_bytes;
    return true;
}

/* ---- Names of stored files ---- */

#define LETTERS_AND_DIGITS "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789"

bool api_weight_name_is_valid(const char *name)
{
    size_t n = strspn(name, LETTERS_AND_DIGITS "._-");
    return n >= 1 && n <= API_WEIGHT_NAME_MAX && !name[n] && strchr(LETTERS_AND_DIGITS, name[0]);
}

bool api_fail_stored_name(struct api_problem *problem, const char *pointer, const struct api_contents *contents,
                          const char *name)
{
    return api_fail(problem, 422, pointer,
                    "\"%.140s\" cannot be a name of stored %s; allowed: 1 to %d letters, digits, '.', '_', '-', "
                    "the first a letter or digit; never a path or URL",
                    name, contents->what, API_WEIGHT_NAME_MAX);
}

void api_stored_limit(const struct api_store *store, char *text, size_t room)
{
    if (store->limit)
        snprintf(text, room, pe_text("the limit %s of this server"), store->limit);
    else
        snprintf(text, room, "%s", pe_text("a limit of this program"));
}

bool api_fail_stored_unknown(struct api_problem *problem, const char *pointer, const struct api_store *store,
                             enum api_found found, const char *name)
{
    const char *what = store->contents->what;
    char limit[API_LIMIT_BYTES];
    api_stored_limit(store, limit, sizeof limit);
    if (found == API_FOUND_TOO_LARGE)
        return api_fail(problem, 413, pointer,
                        "\"%.140s\" is among the stored %s, but with it this server would have more than %" PRIu64
                        " bytes of %s (%s) or more than %zu files",
                        name, what, store->bytes_max, what, limit, store->files_max);
    if (found == API_FOUND_NO_ROOM)
        return api_fail(
            problem, 503, pointer,
            "\"%.140s\" is among the stored %s, but there is no room for it now (%s): others are being read, "
            "or are still in use after they were replaced or removed; try again later",
            name, what, limit);
    if (found == API_FOUND_BUSY)
        return api_fail(problem, 503, pointer,
                        "\"%.140s\" is being read from the place of stored %s (%s of this server), which takes long or "
                        "has many requests waiting; try again later",
                        name, what, store->place);
    return api_fail(problem, 503, pointer,
                    "the place of stored %s (%s of this server) does not answer, so whether \"%.140s\" is stored "
                    "is not known; try again later",
                    what, store->place, name);
}
