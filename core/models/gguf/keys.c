/* The architecture of a file, and its keys by name: where they are, and their values with their types checked. JSON
 * tells numbers, booleans, words and lists apart, and integers from numbers with a fraction. */
#include "core/models/gguf/gguf.h"
#include "core/params.h"

#include <math.h>
#include <stdio.h>
#include <string.h>

static const char architecture_key[] = "general.architecture";

/* ---- The architecture ---- */

static const char *names_at(size_t i) { return i < pe_n_gguf_architectures ? pe_gguf_architectures[i].names : NULL; }

enum pe_status pe_gguf_unknown(const char *name, const char *pointer, struct pe_failure *err)
{
    char nearest[192];
    pe_hf_nearest_of(name, names_at, nearest, sizeof nearest);
    return pe_fail(err, pointer, "architecture \"%.64s\" is not known here%s%s", name,
                   *nearest ? pe_text("; nearest: ") : "", nearest);
}

static enum pe_status find_architecture(struct pe_gguf_reader *r)
{
    const struct pe_value *named = pe_field_find(r->object->object.fields, r->object->object.n, architecture_key);
    if (!named || named->kind != PE_STRING)
        return pe_fail(r->err, "/gguf/general.architecture",
                       named ? "general.architecture is not a string; write a name, as \"llama\""
                             : "general.architecture is missing, which defines what the other keys mean");
    r->architecture = named->string;
    r->row = pe_gguf_architecture_find(named->string);
    return r->row ? PE_OK : pe_gguf_unknown(named->string, "/gguf/general.architecture", r->err);
}

/* ---- Their places ---- */

static void find_keys(struct pe_gguf_reader *r)
{
    size_t n = strlen(r->architecture);
    for (size_t i = 0; i < r->object->object.n; i++) {
        const struct pe_field *field = &r->object->object.fields[i];
        if (strncmp(field->name, r->architecture, n) != 0 || field->name[n] != '.' || field->value.kind == PE_NULL)
            continue;
        for (enum pe_gguf_key_id k = 0; k < PE_GGUF_N_KEYS; k++)
            if (pe_same(pe_gguf_key_at(k)->name, field->name + n + 1))
                r->keys[k] = field;
    }
}

/* Of the three, by their names, also those of block 0. */
static enum pe_status find_tensors(struct pe_gguf_reader *r)
{
    static const char block[] = "blk.0.";
    const struct pe_value *tensors = pe_field_find(r->object->object.fields, r->object->object.n, "tensors");
    if (!tensors || tensors->kind == PE_NULL)
        return PE_OK;
    if (tensors->kind != PE_OBJECT)
        return pe_fail(r->err, "/gguf/tensors", "tensors is not an object; allowed: lists of numbers by name");
    for (size_t i = 0; i < tensors->object.n; i++) {
        const struct pe_field *field = &tensors->object.fields[i];
        const char *name = field->name + (strncmp(field->name, block, strlen(block)) == 0 ? strlen(block) : 0);
        for (size_t t = 0; t < PE_GGUF_TENSORS; t++)
            if (pe_same(name, pe_gguf_tensor_names[t]))
                r->tensors[t] = &field->value;
    }
    return PE_OK;
}

enum pe_status pe_gguf_open(struct pe_gguf_reader *r, const struct pe_value *object)
{
    if (object->kind != PE_OBJECT)
        return pe_fail(r->err, "/gguf", "gguf is not an object; allowed: the keys of a GGUF file by name");
    r->object = object;
    if (find_architecture(r))
        return r->err->status;
    find_keys(r);
    return find_tensors(r);
}

/* ---- Values ---- */

void pe_gguf_pointer(const struct pe_gguf_reader *r, enum pe_gguf_key_id id, char pointer[PE_POINTER_MAX])
{
    char name[PE_GGUF_IGNORED_BYTES];
    snprintf(name, sizeof name, "%.40s.%s", r->architecture, pe_gguf_key_at(id)->name);
    pe_pointer_join(pointer, PE_POINTER_MAX, "/gguf", name);
}

enum pe_status pe_gguf_needs(const struct pe_gguf_reader *r, enum pe_gguf_key_id id, const char *what)
{
    char pointer[PE_POINTER_MAX];
    pe_gguf_pointer(r, id, pointer);
    return pe_fail(r->err, pointer, "%.40s.%s is missing; %s", r->architecture, pe_gguf_key_at(id)->name,
                   pe_text(what));
}

enum pe_status pe_gguf_wrong(const struct pe_gguf_reader *r, enum pe_gguf_key_id id, const char *allowed)
{
    char pointer[PE_POINTER_MAX], found[80];
    const struct pe_value *v = &r->keys[id]->value;
    pe_gguf_pointer(r, id, pointer);
    pe_value_show(v, found, sizeof found);
    return pe_fail(r->err, pointer, "%.40s.%s is %s; allowed: %s", r->architecture, pe_gguf_key_at(id)->name, found,
                   pe_text(allowed));
}

bool pe_gguf_has(const struct pe_gguf_reader *r, enum pe_gguf_key_id id) { return r->keys[id] != NULL; }

/* Marks the key as read. */
static const struct pe_value *value_of(struct pe_gguf_reader *r, enum pe_gguf_key_id id)
{
    r->was_read[id] = true;
    return r->keys[id] ? &r->keys[id]->value : NULL;
}

static bool is_count(double x) { return x >= 0 && x <= 4294967295.0 && x == floor(x); }

enum pe_status pe_gguf_count(struct pe_gguf_reader *r, enum pe_gguf_key_id id, int64_t *x)
{
    const struct pe_value *v = value_of(r, id);
    double number = pe_value_number(v);
    if (!v)
        return PE_OK;
    if (v->kind == PE_ARRAY && v->array.rank == 1 && pe_gguf_key_at(id)->stored & PE_GGUF_ARRAYS) {
        struct pe_reals list = {v->array, v->array.shape[0]};
        number = list.n ? 0 : -1;
        for (uint64_t i = 0; number == 0 && i < list.n; i++)
            number = pe_real_at(&list, i);
    }
    if (!is_count(number))
        return pe_gguf_wrong(r, id, "an integer from 0 to 4294967295");
    *x = (int64_t)number;
    return PE_OK;
}

enum pe_status pe_gguf_size(struct pe_gguf_reader *r, enum pe_gguf_key_id id, const char *needed, int64_t *x)
{
    int64_t found = 0;
    if (pe_gguf_count(r, id, &found))
        return r->err->status;
    if (!found && pe_gguf_has(r, id))
        return pe_gguf_wrong(r, id, "an integer above 0");
    if (!found && needed)
        return pe_gguf_needs(r, id, needed);
    *x = found ? found : *x;
    return PE_OK;
}

enum pe_status pe_gguf_real(struct pe_gguf_reader *r, enum pe_gguf_key_id id, double *x)
{
    const struct pe_value *v = value_of(r, id);
    double number = pe_value_number(v);
    if (!v)
        return PE_OK;
    if (!isfinite(number))
        return pe_gguf_wrong(r, id, "a finite number");
    *x = number;
    return PE_OK;
}

enum pe_status pe_gguf_flag(struct pe_gguf_reader *r, enum pe_gguf_key_id id, bool *x)
{
    const struct pe_value *v = value_of(r, id);
    if (v && v->kind != PE_BOOLEAN)
        return pe_gguf_wrong(r, id, "true or false");
    *x = v ? v->boolean : *x;
    return PE_OK;
}

enum pe_status pe_gguf_word(struct pe_gguf_reader *r, enum pe_gguf_key_id id, const char **word)
{
    const struct pe_value *v = value_of(r, id);
    if (v && v->kind != PE_STRING)
        return pe_gguf_wrong(r, id, "a string");
    *word = v ? v->string : *word;
    return PE_OK;
}

enum pe_status pe_gguf_numbers(struct pe_gguf_reader *r, enum pe_gguf_key_id id, struct pe_reals *list)
{
    const struct pe_value *v = value_of(r, id);
    list->n = 0;
    if (!v)
        return PE_OK;
    if (v->kind != PE_ARRAY || v->array.rank != 1)
        return pe_gguf_wrong(r, id, "a list of numbers");
    *list = (struct pe_reals){v->array, v->array.shape[0]};
    return PE_OK;
}

void pe_gguf_default(struct pe_gguf_reader *r, enum pe_gguf_key_id id, struct pe_value value)
{
    size_t n = r->n_defaults;
    if (n == PE_GGUF_DEFAULTS_MAX)
        return;
    snprintf(r->default_names[n], sizeof r->default_names[n], "%.40s.%s", r->architecture, pe_gguf_key_at(id)->name);
    for (size_t i = 0; i < n; i++)
        if (pe_same(r->default_names[i], r->default_names[n]))
            return;
    r->defaults[r->n_defaults++] = (struct pe_field){r->default_names[n], value};
}
