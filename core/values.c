/* Trees of values under construction. Items are linked while the tree grows, and become arrays when it is done.
 *
 * Metrics and diagnoses put hundreds of members in an order that depends on what they find. A failed allocation is
 * remembered in the tree and reported once by pe_values_done(), so a caller writes its answer as a list of lines,
 * without a check after each. Memory is a list of blocks that live and end with the tree.
 *
 * Sentences are patterns with names ({value}, {witness.row}) that are filled from members of the same node, so a text
 * can state only what the answer has, in both languages alike. */
#include "core/values.h"
#include "core/params.h"

#include <inttypes.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

struct item {
    const char *name;
    struct pe_value value; /* unused if there is a child */
    struct pe_node *child; /* NULL: a plain value */
    struct item *next;
};

struct pe_node {
    struct pe_values *owner;
    bool is_list;
    struct item *first, *last;
    size_t n;
};

struct block {
    struct block *next;
};

struct pe_values {
    struct block *blocks;
    char *at; /* the free part of the newest block */
    size_t left;
    bool failed;
    struct pe_node root;
    struct pe_value done;
};

/* ---- Values of a configuration, resolved ---- */

const struct pe_value *pe_stated(const struct pe_value *object, const char *name)
{
    const struct pe_value *v =
        object && object->kind == PE_OBJECT ? pe_field_find(object->object.fields, object->object.n, name) : NULL;
    return v && v->kind != PE_NULL ? v : NULL;
}

bool pe_value_has_objects(const struct pe_value *v)
{
    for (size_t i = 0; v && v->kind == PE_OBJECT && i < v->object.n; i++)
        if (v->object.fields[i].value.kind == PE_OBJECT)
            return true;
    return false;
}

struct pe_value pe_config_at(const struct pe_value *config, const char *path)
{
    static const struct pe_value none = {.kind = PE_NULL};
    char name[64];
    size_t n = strcspn(path, ".");
    if (!config || config->kind != PE_OBJECT)
        return none;
    if (pe_same(path, "share")) {
        double whole = pe_config_number(config, "head_dim", 0), turned = pe_config_number(config, "rotary_dim", 0);
        return whole > 0 ? (struct pe_value){.kind = PE_REAL, .real = turned / whole} : none;
    }
    snprintf(name, sizeof name, "%.*s", (int)n, path);
    const struct pe_value *v = pe_field_find(config->object.fields, config->object.n, name);
    if (!v)
        return none;
    return path[n] ? pe_config_at(v, path + n + 1) : *v;
}

double pe_config_number(const struct pe_value *config, const char *path, double otherwise)
{
    struct pe_value v = pe_config_at(config, path);
    return v.kind == PE_INTEGER ? (double)v.integer : v.kind == PE_REAL ? v.real : otherwise;
}

const char *pe_config_word(const struct pe_value *config, const char *path)
{
    struct pe_value v = pe_config_at(config, path);
    return v.kind == PE_STRING ? v.string : "";
}

/* ---- Are two values the same? ---- */

static bool same_lists(const struct pe_value *a, const struct pe_value *b)
{
    if (a->kind != b->kind)
        return false;
    if (a->kind == PE_LIST) {
        for (size_t i = 0; i < a->list.n && a->list.n == b->list.n; i++)
            if (!pe_value_same(&a->list.items[i], &b->list.items[i]))
                return false;
        return a->list.n == b->list.n;
    }
    struct pe_reals x = {a->array, a->array.shape[0]}, y = {b->array, b->array.shape[0]};
    bool same = a->array.rank == 1 && b->array.rank == 1 && x.n == y.n;
    for (uint64_t i = 0; same && i < x.n; i++)
        same = pe_real_at(&x, i) == pe_real_at(&y, i);
    return same;
}

double pe_value_number(const struct pe_value *v)
{
    return !v ? (double)NAN : v->kind == PE_INTEGER ? (double)v->integer : v->kind == PE_REAL ? v->real : (double)NAN;
}

void pe_value_show(const struct pe_value *v, char *out, size_t room)
{
    switch (v->kind) {
    case PE_NULL: snprintf(out, room, "null"); break;
    case PE_BOOLEAN: snprintf(out, room, v->boolean ? "true" : "false"); break;
    case PE_INTEGER: snprintf(out, room, "%lld", (long long)v->integer); break;
    case PE_REAL: snprintf(out, room, "%.10g", v->real); break;
    case PE_STRING: snprintf(out, room, "\"%.40s\"", v->string); break;
    case PE_LIST:
    case PE_ARRAY: snprintf(out, room, "%s", pe_text("a list")); break;
    case PE_OBJECT: snprintf(out, room, "%s", pe_text("an object")); break;
    case PE_PRESET: snprintf(out, room, "%s", pe_text("a preset")); break;
    }
}

bool pe_value_same(const struct pe_value *a, const struct pe_value *b)
{
    bool numbers = (a->kind == PE_INTEGER || a->kind == PE_REAL) && (b->kind == PE_INTEGER || b->kind == PE_REAL);
    if (numbers)
        return pe_value_number(a) == pe_value_number(b);
    switch (a->kind) {
    case PE_NULL: return b->kind == PE_NULL;
    case PE_BOOLEAN: return b->kind == PE_BOOLEAN && a->boolean == b->boolean;
    case PE_STRING: return b->kind == PE_STRING && strcmp(a->string, b->string) == 0;
    case PE_OBJECT:
        if (b->kind != PE_OBJECT)
            return false;
        for (size_t i = 0; i < a->object.n; i++) {
            const struct pe_value *value = pe_field_find(b->object.fields, b->object.n, a->object.fields[i].name);
            if (!value || !pe_value_same(&a->object.fields[i].value, value))
                return false;
        }
        return a->object.n == b->object.n;
    case PE_LIST:
    case PE_ARRAY: return same_lists(a, b);
    case PE_INTEGER:
    case PE_REAL:
    case PE_PRESET: return false;
    }
    return false;
}

/* ---- Memory ---- */

enum { BLOCK_BYTES = 8192, ALIGNMENT = 16 };

static bool add_block(struct pe_values *values, size_t n)
{
    size_t room = n > BLOCK_BYTES ? n : BLOCK_BYTES;
    struct block *block = calloc(1, ALIGNMENT + room);
    if (!block) {
        values->failed = true;
        return false;
    }
    block->next = values->blocks;
    values->blocks = block;
    values->at = (char *)block + ALIGNMENT;
    values->left = room;
    return true;
}

void *pe_values_room(struct pe_values *values, size_t n)
{
    n = (n + ALIGNMENT - 1) / ALIGNMENT * ALIGNMENT;
    if (n > values->left && !add_block(values, n))
        return NULL;
    void *room = values->at;
    values->at += n;
    values->left -= n;
    return room;
}

const struct pe_value *pe_values_keep(struct pe_values *values, struct pe_value value)
{
    struct pe_value *room = pe_values_room(values, sizeof *room);
    if (room)
        *room = value;
    return room;
}

struct pe_values *pe_values_new(void)
{
    struct pe_values *values = calloc(1, sizeof *values);
    if (values)
        values->root.owner = values;
    return values;
}

void pe_values_free(struct pe_values *values)
{
    if (!values)
        return;
    while (values->blocks) {
        struct block *block = values->blocks;
        values->blocks = block->next;
        free(block);
    }
    free(values);
}

struct pe_node *pe_values_root(struct pe_values *values) { return &values->root; }

/* ---- Putting ---- */

static struct item *add_item(struct pe_node *node, const char *name)
{
    struct item *item = pe_values_room(node->owner, sizeof *item);
    if (!item)
        return NULL;
    item->name = name;
    if (node->last)
        node->last->next = item;
    else
        node->first = item;
    node->last = item;
    node->n++;
    return item;
}

void pe_put_value(struct pe_node *node, const char *name, const struct pe_value *value)
{
    struct item *item = add_item(node, name);
    if (item)
        item->value = value ? *value : pe_null();
}

void pe_put_null(struct pe_node *node, const char *name) { pe_put_value(node, name, NULL); }

void pe_put_boolean(struct pe_node *node, const char *name, bool x)
{
    pe_put_value(node, name, &(struct pe_value){.kind = PE_BOOLEAN, .boolean = x});
}

void pe_put_integer(struct pe_node *node, const char *name, int64_t x)
{
    pe_put_value(node, name, &(struct pe_value){.kind = PE_INTEGER, .integer = x});
}

void pe_put_count_or_null(struct pe_node *node, const char *name, int64_t x)
{
    pe_put_value(node, name, x < 0 ? NULL : &(struct pe_value){.kind = PE_INTEGER, .integer = x});
}

void pe_put_real(struct pe_node *node, const char *name, double x)
{
    pe_put_value(node, name, &(struct pe_value){.kind = PE_REAL, .real = x});
}

void pe_put_real_or_null(struct pe_node *node, const char *name, double x)
{
    if (isnan(x))
        pe_put_null(node, name);
    else
        pe_put_real(node, name, x);
}

void pe_put_string(struct pe_node *node, const char *name, const char *text)
{
    size_t n = strlen(text) + 1;
    char *copy = pe_values_room(node->owner, n);
    if (copy)
        pe_put_value(node, name, &(struct pe_value){.kind = PE_STRING, .string = memcpy(copy, text, n)});
}

void pe_put_string_or_null(struct pe_node *node, const char *name, const char *text)
{
    if (text && *text)
        pe_put_string(node, name, text);
    else
        pe_put_null(node, name);
}

void pe_put_integers(struct pe_node *node, const char *name, const int64_t *x, size_t n)
{
    struct pe_node *list = pe_put_list(node, name);
    for (size_t i = 0; i < n; i++)
        pe_put_integer(list, NULL, x[i]);
}

/* Without memory, members of the child are put into its parent: the tree is lost anyway. */
static struct pe_node *put_node(struct pe_node *node, const char *name, bool is_list)
{
    struct item *item = add_item(node, name);
    struct pe_node *child = item ? pe_values_room(node->owner, sizeof *child) : NULL;
    if (!child)
        return node;
    *child = (struct pe_node){.owner = node->owner, .is_list = is_list};
    item->child = child;
    return child;
}

struct pe_node *pe_put_object(struct pe_node *node, const char *name) { return put_node(node, name, false); }

struct pe_node *pe_put_list(struct pe_node *node, const char *name) { return put_node(node, name, true); }

/* ---- Finding ---- */

static const struct item *find_item(const struct pe_node *node, const char *name, size_t n)
{
    for (const struct item *item = node->first; item; item = item->next)
        if (item->name && strncmp(item->name, name, n) == 0 && !item->name[n])
            return item;
    return NULL;
}

const struct pe_value *pe_node_find(const struct pe_node *node, const char *name)
{
    const struct item *item = find_item(node, name, strlen(name));
    return item && !item->child ? &item->value : NULL;
}

struct pe_node *pe_node_child(const struct pe_node *node, const char *name)
{
    const struct item *item = find_item(node, name, strlen(name));
    return item ? item->child : NULL;
}

/* ---- Sentences ---- */

struct sentence {
    char bytes[PE_DETAIL_MAX];
    size_t n;
};

static void append(struct sentence *s, const char *text, size_t n)
{
    size_t left = sizeof s->bytes - 1 - s->n;
    n = n < left ? n : left;
    memcpy(s->bytes + s->n, text, n);
    s->n += n;
}

static void append_value(struct sentence *s, const struct pe_value *value);

static void append_value(struct sentence *s, const struct pe_value *value)
{
    char number[40] = "null";
    if (value->kind == PE_ARRAY) {
        /* A short list: "16, 24, 24". A long one ends in dots. */
        enum { SHOWN_MAX = 8 };
        uint64_t n = 0;
        struct pe_reals list = {.array = value->array};
        pe_shape_count(value->array.shape, value->array.rank, &n);
        for (uint64_t i = 0; i < n && i < SHOWN_MAX; i++) {
            append(s, ", ", i > 0 ? 2 : 0);
            append_value(s, &(struct pe_value){.kind = PE_REAL, .real = pe_real_at(&list, i)});
        }
        append(s, ", …", n > SHOWN_MAX ? strlen(", …") : 0);
        return;
    }
    if (value->kind == PE_STRING) {
        append(s, value->string, strlen(value->string));
        return;
    }
    if (value->kind == PE_REAL)
        snprintf(number, sizeof number, "%.6g", value->real);
    else if (value->kind == PE_INTEGER)
        snprintf(number, sizeof number, "%" PRId64, value->integer);
    else if (value->kind == PE_BOOLEAN)
        snprintf(number, sizeof number, "%s", value->boolean ? "true" : "false");
    append(s, number, strlen(number));
}

/* Lists of plain values, e.g. two rows: "0, 1885". */
static void append_item(struct sentence *s, const struct item *item)
{
    if (!item->child) {
        append_value(s, &item->value);
        return;
    }
    for (const struct item *inner = item->child->first; inner; inner = inner->next) {
        if (!inner->child)
            append_value(s, &inner->value);
        append(s, ", ", inner->next ? 2 : 0);
    }
}

void pe_put_filled(struct pe_node *node, const char *name, const char *pattern)
{
    struct sentence s = {.n = 0};
    while (*pattern) {
        size_t plain = strcspn(pattern, "{");
        append(&s, pattern, plain);
        pattern += plain;
        if (!*pattern)
            break;
        size_t n = strcspn(++pattern, "}");
        size_t first = strcspn(pattern, ".}");
        const struct item *item = find_item(node, pattern, first < n ? first : n);
        if (item && first < n && item->child)
            item = find_item(item->child, pattern + first + 1, n - first - 1);
        if (item)
            append_item(&s, item);
        else
            append(&s, "-", 1);
        pattern += n + (pattern[n] == '}');
    }
    s.bytes[s.n] = '\0';
    pe_put_string(node, name, s.bytes);
}

const struct pe_member pe_detail_members[] = {
    {.name = "detail", .types = "string", .summary = "one sentence, in the language that lang chooses"},
    {.name = "detail_zh", .types = "string", .summary = "the same in Chinese"},
    {.name = NULL},
};

void pe_put_details(struct pe_node *node, enum pe_lang lang, const char *const patterns[PE_N_LANGS])
{
    pe_put_filled(node, "detail", patterns[lang]);
    pe_put_filled(node, "detail_zh", patterns[PE_ZH]);
}

void pe_put_detail(struct pe_node *node, enum pe_lang lang, const char *pattern)
{
    pe_put_details(node, lang, (const char *const[]){[PE_EN] = pattern, [PE_ZH] = pe_text_in(PE_ZH, pattern)});
}

/* ---- The finished tree ---- */

static void finish(struct pe_node *node, struct pe_value *value);

static void finish_object(struct pe_node *node, struct pe_value *value)
{
    struct pe_field *fields = pe_values_room(node->owner, (node->n + 1) * sizeof *fields);
    size_t n = 0;
    for (struct item *item = node->first; fields && item; item = item->next, n++) {
        fields[n] = (struct pe_field){item->name, item->value};
        if (item->child)
            finish(item->child, &fields[n].value);
    }
    *value = (struct pe_value){.kind = PE_OBJECT, .object = {fields, n}};
}

/* Trees are as deep as their authors make them: five levels. */
static void finish(struct pe_node *node, struct pe_value *value)
{
    if (node->is_list) {
        struct pe_value *items = pe_values_room(node->owner, (node->n + 1) * sizeof *items);
        size_t n = 0;
        for (struct item *item = node->first; items && item; item = item->next, n++) {
            items[n] = item->value;
            if (item->child)
                finish(item->child, &items[n]);
        }
        *value = (struct pe_value){.kind = PE_LIST, .list = {items, n}};
    } else {
        finish_object(node, value);
    }
}

const struct pe_value *pe_values_done(struct pe_values *values)
{
    if (!values->failed)
        finish(&values->root, &values->done);
    return values->failed ? NULL : &values->done;
}
