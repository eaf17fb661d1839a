/* jansson's parser, with our own allocator: a small request has some forty nodes and names, which cost less in the
 * request's arena, where none is freed individually.
 *
 * When memory runs out, the parser (2.14) does not always stop: if the buffer of its current token cannot grow, it
 * drops the byte, and it reads a string without its closing quote past its end. So the allocator leaves the parser at
 * once, by longjmp. Everything that the parser has allocated belongs to the arena, and it holds no lock and no file. */
#include "api/json/json.h"

#include "api/limits.h"

#include <setjmp.h>
#include <stdlib.h>

enum outcome { READ, NO_MEMORY, TOO_LARGE };

struct load {
    struct api_arena *arena;
    size_t n_max; /* bytes of the arena, this tree included */
    enum outcome outcome;
    json_t *root;
    jmp_buf out;
};
static _Thread_local struct load *current; /* NULL: nothing is being parsed */

static void *allocate_for(struct load *load, size_t n)
{
    bool is_full = n > load->n_max || load->arena->n_bytes > load->n_max - n;
    void *place = is_full ? NULL : api_arena_alloc(load->arena, n);
    load->outcome = is_full ? TOO_LARGE : NO_MEMORY;
    if (!place)
        longjmp(load->out, 1);
    return place;
}

static void *allocate(size_t n) { return current ? allocate_for(current, n) : malloc(n); }

static void release(void *place)
{
    if (!current)
        free(place);
}

/* Runs at the start of every program that reads JSON, tests included: trees from another allocator would never be
 * freed. */
__attribute__((constructor)) static void set_allocator(void) { json_set_alloc_funcs(allocate, release); }

void api_json_setup(void)
{
    json_object_seed(
        0); /* random, so that a client cannot prepare names that collide; members keep the order of the text anyway */
}

/* The caller owns load: variables that the function of setjmp keeps in registers would be lost. */
static void parse(struct load *load, const char *text, size_t n, size_t flags, json_error_t *error)
{
    current = load;
    if (setjmp(load->out) == 0) {
        load->root = json_loadb(text, n, flags | JSON_REJECT_DUPLICATES, error);
        load->outcome = READ;
    }
    current = NULL;
}

static int status_of(enum json_error_code code)
{
    bool cannot_hold =
        code == json_error_numeric_overflow || code == json_error_null_character || code == json_error_null_byte_in_key;
    return cannot_hold ? 422 : 400;
}

json_t *api_json_load(struct api_arena *arena, const char *text, size_t n, size_t flags, struct api_json_error *error)
{
    struct load load = {.arena = arena, .n_max = arena->n_bytes + API_TREE_FACTOR * n + API_TREE_MIN};
    json_error_t *library = &error->library;
    parse(&load, text, n, flags, library);
    error->no_memory = load.outcome == NO_MEMORY;
    if (load.root || error->no_memory)
        return load.root;
    if (load.outcome == TOO_LARGE) {
        error->status = 413;
        error->at = 0;
        error->text = "it has so many empty or tiny parts that its tree takes more than 48 times its length";
        return NULL;
    }
    error->status = status_of(json_error_code(library));
    error->at = library->position > 0 ? (size_t)library->position - 1 : 0; /* jansson's position is behind the token */
    error->text = library->text;
    return NULL;
}
