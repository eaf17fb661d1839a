/* A request put together by calls. It is a list of paths with values, in the order of the calls. pe_ask_plan lays it
 * out as the tree of fields that struct pe_request has, in one block of memory with all its texts. The plan owns the
 * block, so that the caller may change or free the request while plans made from it are in use. */
#include "core/operation.h"

#include <stdlib.h>

enum { PATH_MAX_BYTES = 120, ITEMS_MAX = 256 };

struct item {
    struct item *next;
    struct pe_value value;
    const char *text; /* of a string: behind the path; else NULL */
    char path[];
};

struct pe_ask {
    enum pe_operation_id operation;
    struct item *items; /* in order */
    size_t n_items;
    double max_bytes, max_work; /* 0: no limit */
    struct pe_failure first;    /* mistake */
};

/* ---- The calls ---- */

static void pointer_of(char pointer[PE_POINTER_MAX], const char *path)
{
    char name[PATH_MAX_BYTES + 1];
    pointer[0] = '\0';
    while (*path) {
        size_t n = strcspn(path, ".");
        memcpy(name, path, n);
        name[n] = '\0';
        char before[PE_POINTER_MAX];
        memcpy(before, pointer, PE_POINTER_MAX);
        pe_pointer_join(pointer, PE_POINTER_MAX, before, name);
        path += n + (path[n] == '.');
    }
}

/* Names with dots between them, none of them empty. */
static bool is_path(const char *path)
{
    size_t n = path ? strlen(path) : 0;
    return n > 0 && n <= PATH_MAX_BYTES && path[0] != '.' && path[n - 1] != '.' && !strstr(path, "..");
}

/* Is a the path of an object that has b? */
static bool is_above(const char *a, const char *b)
{
    size_t n = strlen(a);
    return strncmp(a, b, n) == 0 && b[n] == '.';
}

static enum pe_status check_path(const struct pe_ask *ask, const char *path, struct pe_failure *err)
{
    char pointer[PE_POINTER_MAX];
    if (!is_path(path))
        return pe_fail(err, "", "a path is the name of a field, or names with dots between them; found: \"%.64s\"",
                       path ? path : "NULL");
    pointer_of(pointer, path);
    for (const struct item *item = ask->items; item; item = item->next)
        if (is_above(item->path, path) || is_above(path, item->path))
            return pe_fail(err, pointer, "%s and %s exclude each other; give one", item->path, path);
    if (ask->n_items == ITEMS_MAX)
        return pe_fail(err, pointer, "the request has more than %d fields", ITEMS_MAX);
    return PE_OK;
}

/* The place of the pointer to the item of that path, or of the NULL at the end. */
static struct item **place_of(struct pe_ask *ask, const char *path)
{
    struct item **at = &ask->items;
    while (*at && strcmp((*at)->path, path) != 0)
        at = &(*at)->next;
    return at;
}

static void put_value(struct pe_ask *ask, const char *path, const struct pe_value *value)
{
    if (!ask || ask->first.status || check_path(ask, path, &ask->first))
        return;
    size_t n = strlen(path) + 1, n_text = value->kind == PE_STRING ? strlen(value->string) + 1 : 0;
    struct item *item = malloc(sizeof *item + n + n_text);
    if (!item) {
        pe_no_memory(&ask->first);
        return;
    }
    *item = (struct item){.value = *value, .text = n_text ? item->path + n : NULL};
    memcpy(item->path, path, n);
    if (n_text)
        item->value.string = memcpy(item->path + n, value->string, n_text);
    struct item **at = place_of(ask, path), *old = *at;
    item->next = old ? old->next : NULL;
    *at = item;
    ask->n_items += !old;
    free(old);
}

/* Keeps a mistake in a value, if it is the first. */
static void blame(struct pe_ask *ask, const char *path, const char *what)
{
    char pointer[PE_POINTER_MAX] = "";
    if (!ask || ask->first.status || check_path(ask, path, &ask->first))
        return;
    pointer_of(pointer, path);
    pe_fail(&ask->first, pointer, "%.64s: %s", path, what);
}

struct pe_ask *pe_ask_new(const char *operation)
{
    struct pe_ask *ask = calloc(1, sizeof *ask);
    if (!ask)
        return NULL;
    const char *names[PE_N_OPERATIONS + 1] = {NULL};
    for (enum pe_operation_id id = 0; id < PE_N_OPERATIONS; id++) {
        names[id] = pe_operation_at(id)->name;
        if (operation && strcmp(names[id], operation) == 0) {
            ask->operation = id;
            return ask;
        }
    }
    const char *nearest = operation ? pe_nearest(operation, names) : NULL;
    if (nearest)
        pe_fail(&ask->first, "", "unknown operation \"%.64s\"; nearest: \"%s\"", operation, nearest);
    else
        pe_fail(&ask->first, "", "unknown operation \"%.64s\"", operation ? operation : "NULL");
    return ask;
}

void pe_ask_text(struct pe_ask *ask, const char *path, const char *value)
{
    if (value)
        put_value(ask, path, &(struct pe_value){.kind = PE_STRING, .string = value});
    else
        blame(ask, path, pe_text("the text is NULL"));
}

void pe_ask_integer(struct pe_ask *ask, const char *path, int64_t value)
{
    put_value(ask, path, &(struct pe_value){.kind = PE_INTEGER, .integer = value});
}

void pe_ask_real(struct pe_ask *ask, const char *path, double value)
{
    if (isfinite(value))
        put_value(ask, path, &(struct pe_value){.kind = PE_REAL, .real = value});
    else
        blame(ask, path, pe_text("the number is not finite"));
}

void pe_ask_bool(struct pe_ask *ask, const char *path, bool value)
{
    put_value(ask, path, &(struct pe_value){.kind = PE_BOOLEAN, .boolean = value});
}

void pe_ask_tensor(struct pe_ask *ask, const char *path, enum pe_dtype dtype, unsigned rank, const uint64_t *shape,
                   const void *data)
{
    struct pe_value value = {.kind = PE_ARRAY, .array = {.dtype = dtype, .rank = rank, .data = data}};
    uint64_t count = 0;
    if (dtype < 0 || dtype >= PE_N_DTYPES)
        blame(ask, path, pe_text("unknown dtype of the tensor"));
    else if (rank > PE_RANK_MAX || (rank > 0 && !shape) || !pe_shape_count(shape, rank, &count))
        blame(ask, path, pe_text("the tensor has no such shape"));
    else if (count > 0 && !data)
        blame(ask, path, pe_text("the tensor has no data"));
    else {
        for (unsigned i = 0; i < rank; i++)
            value.array.shape[i] = shape[i];
        put_value(ask, path, &value);
    }
}

void pe_ask_limit(struct pe_ask *ask, double max_bytes, double max_work)
{
    if (ask)
        ask->max_bytes = max_bytes, ask->max_work = max_work;
}

void pe_ask_free(struct pe_ask *ask)
{
    for (struct item *item = ask ? ask->items : NULL, *next; item; item = next) {
        next = item->next;
        free(item);
    }
    free(ask);
}

/* ---- The tree ---- */

/* What is left of the block: places of fields, then of bytes. */
struct block {
    struct pe_field *fields;
    char *bytes;
};

static char *keep(struct block *b, const char *text, size_t n)
{
    char *at = memcpy(b->bytes, text, n);
    at[n] = '\0';
    b->bytes += n + 1;
    return at;
}

/* The path's rest, if the path begins with these names; else NULL. */
static const char *rest_of(const char *path, const char *above)
{
    return *above == '\0' ? path : is_above(above, path) ? path + strlen(above) + 1 : NULL;
}

/* dtype and outputs are members of struct pe_request, not fields. */
static bool is_aside(const char *path) { return strcmp(path, "dtype") == 0 || strcmp(path, "outputs") == 0; }

/* Does an earlier item have the same name in the object `above`? rest is that of item. */
static bool is_repeated(const struct pe_ask *ask, const struct item *item, const char *above, const char *rest)
{
    size_t n = strcspn(rest, ".");
    for (const struct item *other = ask->items; other != item; other = other->next) {
        const char *rest_there = rest_of(other->path, above);
        if (rest_there && strcspn(rest_there, ".") == n && strncmp(rest_there, rest, n) == 0)
            return true;
    }
    return false;
}

/* Lays out the fields of the object `above`, "" at the top: they are contiguous, and those of its objects follow. */
static struct pe_value lay_out(const struct pe_ask *ask, const char *above, struct block *b)
{
    struct pe_field *fields = b->fields;
    size_t n = 0;
    for (const struct item *item = ask->items; item; item = item->next) {
        const char *rest = rest_of(item->path, above);
        if (!rest || is_aside(item->path) || is_repeated(ask, item, above, rest))
            continue;
        size_t n_name = strcspn(rest, ".");
        struct pe_field *field = &fields[n++];
        field->name = keep(b, rest, n_name);
        field->value = item->value;
        if (rest[n_name] == '.') { /* laid out below, by the path that is kept here until then */
            field->value.kind = PE_OBJECT;
            field->value.string = keep(b, item->path, (size_t)(rest - item->path) + n_name);
        } else if (item->text)
            field->value.string = keep(b, item->text, strlen(item->text));
    }
    b->fields += n;
    for (size_t i = 0; i < n; i++)
        if (fields[i].value.kind == PE_OBJECT)
            fields[i].value = lay_out(ask, fields[i].value.string, b);
    return (struct pe_value){.kind = PE_OBJECT, .object = {fields, n}};
}

/* Reads dtype by the row that services of this library have for it, so that its error is theirs. */
static enum pe_status read_dtype(const struct item *item, enum pe_dtype *dtype, struct pe_failure *err)
{
    struct choice {
        int dtype;
    } choice;
    static const struct pe_param row[] = {PE_P_WORD(choice, dtype, pe_answer_dtypes, "dtype", ""), PE_P_END};
    const struct pe_field field = {"dtype", item->value};
    bool taken = false;
    enum pe_status status = pe_params_read(row, &choice, &field, 1, &taken, "", err);
    if (!status)
        *dtype = pe_dtype_find(pe_answer_dtypes[choice.dtype]);
    return status;
}

/* Writes the names to the block, and pointers to them to names. */
static enum pe_status read_outputs(const struct item *item, struct block *b, const char **names, size_t *n,
                                   struct pe_failure *err)
{
    if (!item->text)
        return pe_fail(err, "/outputs", "outputs are names with commas between them, such as \"cos,sin\"");
    const char *text = item->text;
    for (*n = 0; *text; text += *text == ',') {
        size_t length = strcspn(text, ",");
        names[(*n)++] = keep(b, text, length);
        text += length;
    }
    return PE_OK;
}

/* ---- Planning ---- */

/* Called by the planning of this library, which gives it the request by calls. */
static enum pe_status admit(void *caller, double bytes, struct pe_failure *err)
{
    const struct pe_ask *ask = caller;
    if (ask->max_bytes <= 0 || bytes <= ask->max_bytes)
        return PE_OK;
    pe_fail(err, "", "the plan needs %.0f bytes; allowed here: at most %.0f", bytes, ask->max_bytes);
    return err->status = PE_TOO_LARGE;
}

static enum pe_status check_work(const struct pe_ask *ask, const struct pe_plan *plan, struct pe_failure *err)
{
    double work = pe_plan_work(plan);
    if (ask->max_work <= 0 || work <= ask->max_work)
        return PE_OK;
    pe_fail(err, "", "the outputs need %.3g multiply-adds; allowed here: at most %.3g", work, ask->max_work);
    return err->status = PE_TOO_LARGE;
}

static enum pe_status plan_in(struct pe_ask *ask, struct block *b, const char **outputs, struct pe_plan **plan,
                              struct pe_failure *err)
{
    struct pe_request request = {.operation = ask->operation, .dtype = PE_DTYPE_NONE, .admit = admit, .caller = ask};
    const struct item *dtype = *place_of(ask, "dtype"), *named = *place_of(ask, "outputs");
    struct pe_value root = lay_out(ask, "", b);
    enum pe_status status = dtype ? read_dtype(dtype, &request.dtype, err) : PE_OK;
    if (!status && named)
        status = read_outputs(named, b, outputs, &request.n_outputs, err);
    request.fields = root.object.fields;
    request.n_fields = root.object.n;
    request.outputs = outputs;
    return status ? status : pe_plan_new(&request, plan, err);
}

static enum pe_status plan_asked(struct pe_ask *ask, struct pe_plan **out, struct pe_failure *err)
{
    if (!ask)
        return pe_no_memory(err);
    if (ask->first.status) {
        *err = ask->first;
        return err->status;
    }
    /* As many names as there are dots and commas, and as many bytes as there are in paths and texts, are enough. */
    size_t n_names = 0, n_bytes = 0;
    for (const struct item *item = ask->items; item; item = item->next) {
        size_t n_here = 1;
        for (const char *p = item->path; *p; p++)
            n_here += *p == '.';
        for (const char *p = item->text; p && *p; p++)
            n_here += *p == ',';
        n_names += n_here;
        n_bytes += (n_here + 1) * (strlen(item->path) + 1) + (item->text ? strlen(item->text) + 1 : 0);
    }
    struct pe_field *fields = malloc(n_names * (sizeof *fields + sizeof(char *)) + n_bytes + 1);
    if (!fields)
        return pe_no_memory(err);
    const char **outputs = (const char **)(fields + n_names);
    struct pe_plan *plan = NULL;
    enum pe_status status = plan_in(ask, &(struct block){fields, (char *)(outputs + n_names)}, outputs, &plan, err);
    if (!status && (status = check_work(ask, plan, err))) {
        pe_plan_free(plan);
        plan = NULL;
    }
    if (status)
        free(fields);
    else {
        plan->asked_block = fields;
        *out = plan;
    }
    return status;
}

enum pe_status pe_ask_plan(struct pe_ask *ask, struct pe_plan **plan, struct pe_error *err)
{
    struct pe_failure why;
    enum pe_status status = plan_asked(ask, plan, &why);
    if (status) {
        err->status = (int)status;
        memcpy(err->pointer, why.pointer, sizeof err->pointer);
        memcpy(err->detail, why.detail, sizeof err->detail);
    }
    return status;
}

/* ---- Outputs without their layout ---- */

int pe_output_find(const struct pe_plan *plan, const char *name)
{
    for (size_t i = 0; name && i < pe_plan_n_outputs(plan); i++)
        if (strcmp(pe_plan_output(plan, i)->name, name) == 0)
            return (int)i;
    return -1;
}

const char *pe_output_name(const struct pe_plan *plan, size_t i) { return pe_plan_output(plan, i)->name; }

enum pe_dtype pe_output_dtype(const struct pe_plan *plan, size_t i) { return pe_plan_output(plan, i)->dtype; }

unsigned pe_output_rank(const struct pe_plan *plan, size_t i) { return pe_plan_output(plan, i)->rank; }

const uint64_t *pe_output_shape(const struct pe_plan *plan, size_t i) { return pe_plan_output(plan, i)->shape; }

uint64_t pe_output_bytes(const struct pe_plan *plan, size_t i)
{
    const struct pe_output *output = pe_plan_output(plan, i);
    return output->n_rows * output->row_len * pe_dtype_size(output->dtype);
}

const char *pe_version(void) { return PE_VERSION; }
