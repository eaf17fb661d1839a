/* Trees of values under construction: objects and lists that grow, with their own memory. Analysis and diagnosis state
 * their results as such trees; a caller prints the finished tree like a configuration.
 *
 * A failed allocation is remembered: put everything, then pe_values_done() reports it once. */
#ifndef PE_VALUES_H
#define PE_VALUES_H

#include "core/inside.h"

struct pe_values; /* owns the tree */
struct pe_node;   /* an object or a list of it; lives as long as the tree */

struct pe_values *pe_values_new(void); /* NULL: no memory */
void pe_values_free(struct pe_values *values);
struct pe_node *pe_values_root(struct pe_values *values); /* the outermost object */

/* Each adds one member to an object, or one item to a list (name NULL). Names are borrowed for the tree's life, other
 * texts are copied. */
void pe_put_null(struct pe_node *node, const char *name);
void pe_put_boolean(struct pe_node *node, const char *name, bool x);
void pe_put_integer(struct pe_node *node, const char *name, int64_t x);
void pe_put_count_or_null(struct pe_node *node, const char *name, int64_t x); /* below 0: null */
void pe_put_real(struct pe_node *node, const char *name, double x);
void pe_put_real_or_null(struct pe_node *node, const char *name, double x); /* NaN: null */
void pe_put_string(struct pe_node *node, const char *name, const char *text);
void pe_put_string_or_null(struct pe_node *node, const char *name, const char *text);     /* NULL or "": null */
void pe_put_integers(struct pe_node *node, const char *name, const int64_t *x, size_t n); /* a list */
void pe_put_value(struct pe_node *node, const char *name,
                  const struct pe_value *value); /* borrowed, with all in it; NULL: null */
struct pe_node *pe_put_object(struct pe_node *node, const char *name);
struct pe_node *pe_put_list(struct pe_node *node, const char *name);

/* Adds `detail` in the language lang, and `detail_zh`. A {name} in the pattern denotes the node's member of that
 * name, put earlier; {witness.row} for a member of a member. */
void pe_put_detail(struct pe_node *node, enum pe_lang lang, const char *pattern);
/* The same with the pattern of each language. */
void pe_put_details(struct pe_node *node, enum pe_lang lang, const char *const patterns[PE_N_LANGS]);
/* The same as one text of this name. */
void pe_put_filled(struct pe_node *node, const char *name, const char *pattern);
extern const struct pe_member pe_detail_members[]; /* detail and detail_zh */

/* The member of that name; NULL if there is none. */
const struct pe_value *pe_node_find(const struct pe_node *node, const char *name);
struct pe_node *pe_node_child(const struct pe_node *node, const char *name); /* an object or list; NULL */

/* Values of their own. */
static inline struct pe_value pe_null(void) { return (struct pe_value){.kind = PE_NULL}; }
static inline struct pe_value pe_real(double x) { return (struct pe_value){.kind = PE_REAL, .real = x}; }
static inline struct pe_value pe_integer(int64_t x) { return (struct pe_value){.kind = PE_INTEGER, .integer = x}; }
static inline struct pe_value pe_flag(bool flag) { return (struct pe_value){.kind = PE_BOOLEAN, .boolean = flag}; }
static inline struct pe_value pe_word(const char *word) { return (struct pe_value){.kind = PE_STRING, .string = word}; }
static inline struct pe_value pe_object(const struct pe_field *fields, size_t n) /* borrowed, like the list below */
{
    return (struct pe_value){.kind = PE_OBJECT, .object = {fields, n}};
}
static inline struct pe_value pe_list_of(const double *numbers, size_t n)
{
    struct pe_tensor array = {.dtype = PE_F64, .rank = 1, .shape = {n}, .data = numbers};
    return (struct pe_value){.kind = PE_ARRAY, .from_text = true, .array = array};
}

/* An integer or a real as a double; NaN: it is none, or NULL. */
double pe_value_number(const struct pe_value *v);
/* As an error names it: 10000, "word", a list. */
void pe_value_show(const struct pe_value *v, char *out, size_t room);
/* Are two values equal, objects in any order of their fields? 10000 and 10000.0 are. */
bool pe_value_same(const struct pe_value *a, const struct pe_value *b);

/* A member of an object; NULL: it has none, or null, or is no object. object may be NULL. */
const struct pe_value *pe_stated(const struct pe_value *object, const char *name);
/* Is it an object that has objects, as a rope object with one for each kind of layers? v may be NULL. */
bool pe_value_has_objects(const struct pe_value *v);

/* Of a configuration, resolved: "base", "scaling.factor"; "share" is rotary_dim/head_dim. kind PE_NULL: it has none. */
struct pe_value pe_config_at(const struct pe_value *config, const char *path);
double pe_config_number(const struct pe_value *config, const char *path, double otherwise);
const char *pe_config_word(const struct pe_value *config, const char *path); /* "": none */

/* The finished tree, borrowed until pe_values_free. NULL: memory ran out meanwhile. */
const struct pe_value *pe_values_done(struct pe_values *values);

/* n bytes that live as long as the tree, set to zero; NULL: no memory. */
void *pe_values_room(struct pe_values *values, size_t n);
/* A copy of the value itself that lives as long; NULL: no memory. */
const struct pe_value *pe_values_keep(struct pe_values *values, struct pe_value value);

#endif
