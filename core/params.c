/* Reading, checking and printing the parameters that rows describe.
 *
 * A row has name, type, range, default and condition, and the place of a field in the scheme's struct. Two passes read
 * a request: conditions ("only where form is pairs") can be checked only after all words have been read, whatever the
 * order of fields. A refusal states what was found, what is allowed and the nearest name; it is made from the row too,
 * so no scheme writes one for a single field.
 *
 * Aliases (`rope_theta`) are rows' names as well; a field that is given twice under two names is refused. */
#include "core/params.h"
#include "core/numeric/numeric.h"
#include "core/models/models.h"

#include <stdio.h>
#include <string.h>

enum { SHOWN_MAX = 96 };

/* ---- What was found, for messages ---- */

static void show_value(const struct pe_value *v, char *out, size_t room)
{
    switch (v->kind) {
    case PE_NULL: snprintf(out, room, "null"); break;
    case PE_BOOLEAN: snprintf(out, room, "%s", v->boolean ? "true" : "false"); break;
    case PE_INTEGER: snprintf(out, room, "%lld", (long long)v->integer); break;
    case PE_REAL: snprintf(out, room, "%s", pe_shown(v->real).text); break;
    case PE_STRING: snprintf(out, room, strlen(v->string) > 40 ? "\"%.40s…\"" : "\"%s\"", v->string); break;
    case PE_LIST: snprintf(out, room, pe_text("a list of %zu"), v->list.n); break;
    case PE_OBJECT: snprintf(out, room, "%s", pe_text("an object")); break;
    case PE_ARRAY: snprintf(out, room, pe_text("an array of rank %u"), v->array.rank); break;
    case PE_PRESET: snprintf(out, room, pe_text("the preset \"%.40s\""), v->preset->name); break;
    }
}

static void show_number(double x, char *out, size_t room)
{
    if (x == floor(x) && fabs(x) < 1e16)
        snprintf(out, room, "%.0f", x);
    else
        snprintf(out, room, "%.10g", x);
}

static void show_range(const struct pe_param *row, char *out, size_t room)
{
    char low[32], high[32];
    show_number(row->min, low, sizeof low);
    show_number(row->max, high, sizeof high);
    const char *what = row->type == PE_T_INT     ? "an integer"
                       : row->type == PE_T_REALS ? "a list of numbers"
                                                 : "a number";
    if (row->max >= 1e300)
        snprintf(out, room, row->min <= -1e300 ? "%s" : pe_text("%s of at least %s"), pe_text(what), low);
    else
        snprintf(out, room, pe_text("%s from %s to %s"), pe_text(what), low, high);
}

static void show_words(const char *const *words, char *out, size_t room)
{
    size_t used = 0;
    out[0] = '\0';
    for (; *words && used + 1 < room; words++) {
        int n = snprintf(out + used, room - used, "%s\"%s\"", used ? ", " : "", *words);
        used += n > 0 ? (size_t)n : 0;
    }
}

static enum pe_status refuse(const struct pe_param *row, const struct pe_value *v, const char *pointer,
                             struct pe_failure *err)
{
    char found[SHOWN_MAX], allowed[256];
    show_value(v, found, sizeof found);
    size_t room = sizeof allowed;
    switch (row->type) {
    case PE_T_INT:
    case PE_T_REAL:
    case PE_T_REALS: show_range(row, allowed, room); break;
    case PE_T_BOOL: snprintf(allowed, room, "%s", pe_text("true or false")); break;
    case PE_T_WORD: show_words(row->words, allowed, room); break;
    case PE_T_OBJECT:
    case PE_T_VALUE: snprintf(allowed, room, "%s", pe_text("an object")); break;
    }
    const char *nearest = row->type == PE_T_WORD && v->kind == PE_STRING ? pe_nearest(v->string, row->words) : NULL;
    if (nearest)
        return pe_fail(err, pointer, "%s is %s; allowed: %s; nearest: \"%s\"", row->name, found, allowed, nearest);
    if (!row->about.summary) /* another tool's member */
        return pe_fail(err, pointer, "%s is %s; allowed: %s", row->name, found, allowed);
    return pe_fail(err, pointer, "%s is %s; allowed: %s (%s)", row->name, found, allowed,
                   pe_summary_in(pe_spoken(), &row->about));
}

/* ---- One value into its field ---- */

bool pe_value_find_odd(const struct pe_value *v, char *index, size_t n_index, const struct pe_value **odd)
{
    for (size_t i = 0; v->kind == PE_LIST && i < v->list.n; i++) {
        const struct pe_value *item = &v->list.items[i];
        char inner[64];
        if (item->kind == PE_LIST && pe_value_find_odd(item, inner, sizeof inner, odd)) {
            snprintf(index, n_index, "%zu, %s", i, inner);
            return true;
        }
        if (item->kind == PE_NULL || item->kind == PE_BOOLEAN || item->kind == PE_STRING || item->kind == PE_OBJECT) {
            snprintf(index, n_index, "%zu", i);
            *odd = item;
            return true;
        }
    }
    return false;
}

/* What is no list of numbers, or has an element that is none. */
static enum pe_status refuse_list(const struct pe_param *row, const struct pe_value *v, const char *pointer,
                                  struct pe_failure *err)
{
    char index[64], found[SHOWN_MAX], allowed[128];
    const struct pe_value *odd;
    if (!pe_value_find_odd(v, index, sizeof index, &odd))
        return refuse(row, v, pointer, err);
    show_value(odd, found, sizeof found);
    show_range(row, allowed, sizeof allowed);
    return pe_fail(err, pointer, "%s has %s at index %s; allowed: %s", row->name, found, index, allowed);
}

static bool value_number(const struct pe_value *v, double *out)
{
    if (v->kind == PE_INTEGER)
        *out = (double)v->integer;
    else if (v->kind == PE_REAL)
        *out = v->real;
    else
        return false;
    return true;
}

/* NaN compares false, so it is never in range. */
static bool in_range(const struct pe_param *row, double x) { return x >= row->min && x <= row->max; }

static bool read_integer(const struct pe_param *row, const struct pe_value *v, int64_t *field)
{
    double x;
    if (!value_number(v, &x) || !in_range(row, x) || x != floor(x))
        return false;
    *field = v->kind == PE_INTEGER ? v->integer : (int64_t)x;
    return true;
}

const struct pe_value *pe_field_find(const struct pe_field *fields, size_t n, const char *name)
{
    for (size_t i = 0; i < n; i++)
        if (pe_same(fields[i].name, name))
            return &fields[i].value;
    return NULL;
}

double pe_real_at(const struct pe_reals *list, uint64_t i)
{
    return pe_element(list->array.dtype, list->array.data, i);
}

static enum pe_status read_reals(const struct pe_param *row, const struct pe_value *v, struct pe_reals *field,
                                 const char *pointer, struct pe_failure *err)
{
    uint64_t n = 0;
    bool is_array = v->kind == PE_ARRAY && v->array.rank && pe_shape_count(v->array.shape, v->array.rank, &n);
    bool is_empty = (is_array && n == 0) || (v->kind == PE_LIST && v->list.n == 0); /* sent as bytes, it is an array */
    if (is_empty && !row->about.summary)
        return pe_fail(err, pointer, "%s is empty; allowed: at least one number", row->name);
    if (is_empty)
        return pe_fail(err, pointer, "%s is empty; allowed: at least one number (%s)", row->name,
                       pe_summary_in(pe_spoken(), &row->about));
    if (!is_array)
        return refuse_list(row, v, pointer, err);
    struct pe_reals list = {.array = v->array, .n = n};
    for (uint64_t i = 0; i < n; i++) {
        double x = pe_real_at(&list, i);
        if (pe_is_cancelled_at(i))
            return pe_cancelled(err);
        if (in_range(row, x))
            continue;
        char allowed[128];
        show_range(row, allowed, sizeof allowed);
        return pe_fail(err, pointer, "%s has %s at index %llu; allowed: %s", row->name, pe_shown(x).text,
                       (unsigned long long)i, allowed);
    }
    *field = list;
    return PE_OK;
}

static bool read_real(const struct pe_param *row, const struct pe_value *v, double *field)
{
    double x;
    bool fits = value_number(v, &x) && in_range(row, x);
    if (fits)
        *field = x;
    return fits;
}

/* Returns false if the value does not fit the row, or is a list or an object. */
static bool read_scalar(const struct pe_param *row, void *config, const struct pe_value *v)
{
    void *field = (char *)config + row->offset;
    switch (row->type) {
    case PE_T_INT: return read_integer(row, v, field);
    case PE_T_REAL: return read_real(row, v, field);
    case PE_T_BOOL:
        if (v->kind == PE_BOOLEAN)
            *(bool *)field = v->boolean;
        return v->kind == PE_BOOLEAN;
    case PE_T_WORD:
        if (v->kind != PE_STRING)
            return false;
        for (int i = 0; row->words[i]; i++)
            if (pe_same(row->words[i], v->string)) {
                *(int *)field = i;
                return true;
            }
        return false;
    case PE_T_VALUE: *(const struct pe_value **)field = v; return true;
    case PE_T_REALS:
    case PE_T_OBJECT: break;
    }
    return false;
}

/* ---- All rows ---- */

const struct pe_param *pe_param_find(const struct pe_param *rows, const char *name)
{
    for (; rows->name; rows++)
        if (pe_same(rows->name, name) || (rows->alias && pe_is_among(rows->alias, name)))
            return rows;
    return NULL;
}

void pe_pointer_join(char *out, size_t room, const char *prefix, const char *name)
{
    size_t used = strlen(prefix);
    used = used + 2 < room ? used : room - 2;
    memcpy(out, prefix, used);
    out[used++] = '/';
    for (; *name && used + 3 < room; name++) {
        if (*name == '~' || *name == '/') {
            out[used++] = '~';
            out[used++] = *name == '~' ? '0' : '1';
        } else {
            out[used++] = *name;
        }
    }
    out[used < room ? used : room - 1] = '\0';
}

static enum pe_status read_object(const struct pe_param *row, void *config, const struct pe_value *v,
                                  const char *pointer, struct pe_failure *err);

/* Reads fields[i] into the config as its row states; found has the rows of the fields before it. */
static enum pe_status read_field(const struct pe_param *const *found, void *config, const struct pe_field *fields,
                                 size_t i, const char *prefix, struct pe_failure *err)
{
    const struct pe_param *row = found[i];
    const struct pe_value *v = &fields[i].value;
    size_t j = 0;
    while (found[j] != row)
        j++;
    if (j == i && read_scalar(row, config, v))
        return PE_OK;
    char pointer[PE_POINTER_MAX]; /* printed only where it is needed */
    pe_pointer_join(pointer, sizeof pointer, prefix, fields[i].name);
    if (j < i)
        return pe_fail(err, pointer, "%s and %s are two words for the same; give one", fields[j].name, fields[i].name);
    if (row->type == PE_T_REALS)
        return read_reals(row, v, (struct pe_reals *)(void *)((char *)config + row->offset), pointer, err);
    if (row->type == PE_T_OBJECT && v->kind == PE_OBJECT)
        return read_object(row, config, v, pointer, err);
    return refuse(row, v, pointer, err);
}

static enum pe_status unknown_field(const struct pe_param *row, const char *name, const char *pointer,
                                    struct pe_failure *err)
{
    const char *names[65];
    size_t n = 0;
    for (const struct pe_param *f = row->fields; f->name && n < 64; f++)
        names[n++] = f->name;
    names[n] = NULL;
    const char *nearest = pe_nearest(name, names);
    char allowed[256];
    show_words(names, allowed, sizeof allowed);
    if (nearest)
        return pe_fail(err, pointer, "unknown field \"%.64s\" in %s; nearest: \"%s\"", name, row->name, nearest);
    return pe_fail(err, pointer, "unknown field \"%.64s\" in %s; allowed: %s", name, row->name, allowed);
}

static enum pe_status read_object(const struct pe_param *row, void *config, const struct pe_value *v,
                                  const char *pointer, struct pe_failure *err)
{
    bool taken[PE_FIELDS_MAX] = {false};
    size_t n = v->object.n;
    if (n > PE_FIELDS_MAX)
        return pe_fail(err, pointer, "%s has %zu fields; allowed: at most %d", row->name, n, PE_FIELDS_MAX);
    enum pe_status status =
        pe_params_read(row->fields, (char *)config + row->offset, v->object.fields, n, taken, pointer, err);
    for (size_t i = 0; !status && i < n; i++)
        if (!taken[i]) {
            char at[PE_POINTER_MAX];
            pe_pointer_join(at, sizeof at, pointer, v->object.fields[i].name);
            status = unknown_field(row, v->object.fields[i].name, at, err);
        }
    return status;
}

static void set_defaults(const struct pe_param *rows, void *config)
{
    for (; rows->name; rows++) {
        void *field = (char *)config + rows->offset;
        bool unset = isnan(rows->fallback);
        switch (rows->type) {
        case PE_T_INT: *(int64_t *)field = unset ? PE_UNSET_INT : (int64_t)rows->fallback; break;
        case PE_T_REAL: *(double *)field = rows->fallback; break;
        case PE_T_BOOL: *(bool *)field = rows->fallback != 0; break;
        case PE_T_WORD: *(int *)field = (int)rows->fallback; break;
        case PE_T_REALS: *(struct pe_reals *)field = (struct pe_reals){.n = 0}; break;
        case PE_T_OBJECT: break;
        case PE_T_VALUE: *(const struct pe_value **)field = NULL; break;
        }
        if (rows->type == PE_T_OBJECT)
            set_defaults(rows->fields, (char *)config + rows->offset);
    }
}

/* Conditions of a field that has been read. */
static enum pe_status check_field(const struct pe_param *rows, const struct pe_param *row, bool is_shared,
                                  const void *config, const struct pe_field *fields, size_t n_fields,
                                  const char *pointer, struct pe_failure *err)
{
    if (!is_shared && !pe_when_holds(row->when, rows, config)) {
        size_t n = strlen(row->when); /* without the empty alternative, which means "unset" */
        n -= row->when[n - 1] == '|';
        return pe_fail(err, pointer, "%s is not used here: it needs %.*s", row->name, (int)n, row->when);
    }
    for (size_t i = 0; row->excludes && i < n_fields; i++) {
        const struct pe_param *other = pe_param_find(rows, fields[i].name);
        if (other && pe_is_among(row->excludes, other->name))
            return pe_fail(err, pointer, "%s and %s exclude each other; give one", row->name, other->name);
    }
    return PE_OK;
}

/* Two passes: conditions can be checked only after all words have been read. */
enum pe_status pe_params_read(const struct pe_param *rows, void *config, const struct pe_field *fields, size_t n_fields,
                              bool *taken, const char *prefix, struct pe_failure *err)
{
    const struct pe_param *found[PE_FIELDS_MAX]; /* the row of each field, looked up once */
    bool shared[PE_FIELDS_MAX]; /* marked as taken before the call: a row that is not in use leaves the field alone */
    char pointer[PE_POINTER_MAX];
    enum pe_status status = PE_OK;
    set_defaults(rows, config);
    for (size_t i = 0; !status && i < n_fields; i++) {
        found[i] = pe_param_find(rows, fields[i].name);
        shared[i] = taken[i];
        if (!found[i])
            continue;
        taken[i] = true;
        status = read_field(found, config, fields, i, prefix, err);
    }
    for (size_t i = 0; !status && i < n_fields; i++)
        if (found[i] && (found[i]->when || found[i]->excludes)) {
            pe_pointer_join(pointer, sizeof pointer, prefix, fields[i].name);
            status = check_field(rows, found[i], shared[i], config, fields, n_fields, pointer, err);
        }
    return status;
}

enum pe_status pe_reals_expect(const struct pe_reals *list, uint64_t n, const char *name, const char *why,
                               struct pe_failure *err)
{
    if (list->array.rank != 1)
        return pe_fail_at(err, "", name, "%s has %u dimensions; allowed: one list of numbers", name, list->array.rank);
    if (list->n != n)
        return pe_fail_at(err, "", name, "%s has %llu numbers; needed: %llu, %s", name, (unsigned long long)list->n,
                          (unsigned long long)n, pe_text(why));
    return PE_OK;
}

enum pe_status pe_reals_whole(const struct pe_reals *list, uint64_t n, const char *name, const char *why,
                              int64_t *numbers, struct pe_failure *err)
{
    enum pe_status status = pe_reals_expect(list, n, name, why, err);
    for (uint64_t i = 0; !status && i < n; i++) {
        double x = pe_real_at(list, i);
        numbers[i] = (int64_t)x;
        if (x != floor(x))
            status = pe_fail_at(err, "", name, "%s has %s at index %llu; allowed: integers", name, pe_shown(x).text,
                                (unsigned long long)i);
    }
    return status;
}

void pe_reals_set(struct pe_reals *list, const int64_t *numbers, uint64_t n)
{
    list->array = (struct pe_tensor){.dtype = PE_I64, .rank = 1, .shape = {n}, .data = numbers};
    list->n = n;
}
