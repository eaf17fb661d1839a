/* One pass over JSON text: lists of numbers go to our own reader, everything else is copied for jansson. The pass
 * tracks strings, brackets and names only as far as this and the pointers of error messages require.
 *
 * jansson needs 40 bytes of heap and 200 ns for each number, so a tensor of ten million would take half a gigabyte and
 * two seconds. A list that contains numbers only is read into an array of doubles, and a stand-in of one integer, its
 * number, takes its place in the text. What is left, the skeleton, is small or refused. jansson remains the judge of
 * everything else: the pass does not check what it copies. */
#include "api/json/json.h"
#include "api/limits.h"
#include "core/outside.h"

#include <setjmp.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/random.h>

enum { ASK_BYTES = 1 << 20 };

/* One open bracket. */
struct level {
    bool is_object;
    bool in_tokens;          /* under a member of this name, at whatever depth */
    bool may_be_ragged;      /* likewise; its lists mix indices and ranges */
    const char *key;         /* of the member being read, raw text between its quotes; NULL before the first */
    size_t key_bytes, index; /* index: of the item being read */
};

struct scanner {
    struct api_scan *scan;
    const char *text, *end, *p;
    const char *ask_at;
    const char *kept; /* start of the text not yet copied to the skeleton */
    size_t n;         /* bytes of the skeleton, including that text */
    bool is_full;
    const char *where; /* the beginning of every message */
    unsigned depth;
    struct level levels[API_DEPTH_MAX + 1]; /* [0] is the top level, outside of all brackets */
    const char *string;                     /* the last string read: a key, if ':' follows */
    size_t string_bytes;
    bool in_string;                        /* the text ends inside a string */
    char overflow_pointer[PE_POINTER_MAX]; /* where the skeleton became too large */
};

void api_scan_init(struct api_scan *scan)
{
    *scan = (struct api_scan){0};
    api_text_init(&scan->replaced, API_SKELETON_MAX);
}

void api_scan_drop(struct api_scan *scan)
{
    api_text_drop(&scan->replaced);
    free(scan->numbers.values);
    free(scan->lifted);
    *scan = (struct api_scan){0};
}

size_t api_scan_origin(const struct api_scan *scan, size_t skeleton_at)
{
    size_t low = 0, high = scan->n_lifted; /* lifted[low-1] is the last list that begins before the place */
    while (low < high) {
        size_t middle = low + (high - low) / 2;
        if (scan->lifted[middle].skeleton_at < skeleton_at)
            low = middle + 1;
        else
            high = middle;
    }
    if (low == 0)
        return skeleton_at;
    const struct api_lifted *before = &scan->lifted[low - 1];
    if (skeleton_at < before->skeleton_at + before->skeleton_bytes)
        return before->text_at;
    return skeleton_at - (before->skeleton_at + before->skeleton_bytes) + before->text_at + before->text_bytes;
}

size_t api_json_mark(const char *text, size_t n) { return n >= 3 && memcmp(text, "\xef\xbb\xbf", 3) == 0 ? 3 : 0; }

struct api_place api_place_of(const char *text, size_t n, size_t at)
{
    struct api_place place = {.line = 1, .column = 1};
    for (size_t i = 0; i < at && i < n && !pe_is_cancelled_at(i); i++) {
        if (text[i] == '\n')
            place = (struct api_place){.line = place.line + 1, .column = 1};
        else
            place.column +=
                ((unsigned char)text[i] & 0xc0) != 0x80; /* a continuation byte does not start a character */
    }
    return place;
}

/* ---- Where we are ---- */

static void pointer_print(const struct scanner *s, char *pointer)
{
    pointer[0] = '\0';
    for (unsigned i = 1; i <= s->depth; i++) {
        const struct level *level = &s->levels[i];
        char number[24];
        if (!level->is_object)
            api_pointer_push(pointer, number, (size_t)snprintf(number, sizeof number, "%zu", level->index));
        else if (level->key)
            api_pointer_push(pointer, level->key, level->key_bytes);
    }
}

static bool fail_here(const struct scanner *s, int status, const char *what, struct api_problem *problem)
{
    char pointer[PE_POINTER_MAX];
    pointer_print(s, pointer);
    struct api_place place = api_place_of(s->text, (size_t)(s->end - s->text), (size_t)(s->p - s->text));
    return api_fail(problem, status, pointer, "%s%s (line %zu, column %zu)", s->where, pe_text(what), place.line,
                    place.column);
}

/* ---- The skeleton ---- */

/* Counts n more bytes of the skeleton. If the skeleton is full, the scan goes on, because a truncated text must be
 * reported as such whatever its size. */
static void count(struct scanner *s, size_t n)
{
    s->n += n;
    if (s->is_full || s->n <= API_SKELETON_MAX)
        return;
    s->is_full = true;
    pointer_print(s, s->overflow_pointer);
}

static void finish(struct scanner *s)
{
    struct api_scan *scan = s->scan;
    scan->skeleton = s->text ? s->text : "";
    scan->skeleton_bytes = s->n;
    if (scan->n_lifted == 0 || s->is_full)
        return;
    api_text_add(&scan->replaced, s->kept, (size_t)(s->end - s->kept));
    scan->skeleton = scan->replaced.bytes;
}

static bool lifted_grow(struct api_scan *scan)
{
    size_t room = scan->lifted_room ? 2 * scan->lifted_room : 8;
    struct api_lifted *lifted = realloc(scan->lifted, room * sizeof *lifted);
    if (!lifted)
        return false;
    scan->lifted = lifted;
    scan->lifted_room = room;
    return true;
}

/* ---- The pass ---- */

static bool open_bracket(struct scanner *s, struct api_problem *problem)
{
    if (s->depth == API_DEPTH_MAX)
        return fail_here(s, 400, "JSON is nested deeper than 64 levels", problem);
    const struct level *above = &s->levels[s->depth];
    bool in_tokens = above->in_tokens, may_be_ragged = above->may_be_ragged;
    s->levels[++s->depth] =
        (struct level){.is_object = *s->p == '{', .in_tokens = in_tokens, .may_be_ragged = may_be_ragged};
    s->p++;
    count(s, 1);
    return true;
}

/* A list is extracted if it contains only numbers, and entered otherwise. A list under "tokens" that contains a string
 * was read as numbers only because "NaN", "Infinity" and "-Infinity" count as such; it is put back. */
static bool take_list(struct scanner *s, struct api_problem *problem)
{
    struct api_lifted lifted = {.text_at = (size_t)(s->p - s->text), .first = s->scan->numbers.n};
    const char *start = s->p, *p = s->p;
    switch (api_numbers_read(&p, s->end, &s->scan->numbers, lifted.shape, &lifted.rank)) {
    case API_READ_NO_MEMORY: return api_fail_memory(problem);
    case API_READ_RAGGED:
        s->scan->numbers.n = lifted.first;
        if (s->levels[s->depth].may_be_ragged)
            return open_bracket(s, problem);
        return fail_here(s, 422, "this list is ragged: its rows have different lengths, or numbers are beside rows",
                         problem);
    case API_READ_DEEP:
        if (!s->scan->too_deep.status)
            fail_here(s, 422, "this list has more than 8 levels; allowed: at most 8", &s->scan->too_deep);
        return open_bracket(s, problem);
    case API_READ_OTHER: return open_bracket(s, problem);
    case API_READ_OK: break;
    }
    lifted.text_bytes = (size_t)(p - start);
    if (s->levels[s->depth].in_tokens && memchr(start, '"', lifted.text_bytes)) {
        s->scan->numbers.n = lifted.first;
        return open_bracket(s, problem);
    }
    struct api_scan *scan = s->scan;
    if (scan->n_lifted == API_ARRAYS_MAX)
        return fail_here(s, 413, "too many lists of numbers in one request", problem);
    if (scan->n_lifted == scan->lifted_room && !lifted_grow(scan))
        return api_fail_memory(problem);
    char stand_in[24];
    lifted.skeleton_at = s->n;
    lifted.skeleton_bytes = (size_t)snprintf(stand_in, sizeof stand_in, "[%zu]", scan->n_lifted);
    scan->lifted[scan->n_lifted++] = lifted;
    count(s, lifted.skeleton_bytes);
    /* Copies the text before an extracted list, and writes the stand-in. */
    struct api_text *replaced = &s->scan->replaced;
    api_text_add(replaced, s->kept, (size_t)(s->p - s->kept));
    api_text_put(replaced, stand_in);
    s->kept = p;
    s->p = p;
    return true;
}

/* Whether the client has disconnected; checked once per this many bytes of text, which is some milliseconds. */
static bool is_left(struct scanner *s)
{
    if (s->p < s->ask_at)
        return false;
    s->ask_at = s->end - s->p > ASK_BYTES ? s->p + ASK_BYTES : s->end;
    return pe_is_cancelled();
}

static void pass_string(struct scanner *s)
{
    const char *start = s->p++;
    while (s->p < s->end && *s->p != '"' && !is_left(s))
        s->p += *s->p == '\\' && s->end - s->p > 1 ? 2 : 1;
    s->in_string = s->p == s->end;
    s->string = start + 1;
    s->string_bytes = (size_t)(s->p - s->string);
    s->p += !s->in_string;
    count(s, (size_t)(s->p - start));
}

static bool is_key(const struct scanner *s, const char *name)
{
    return s->string_bytes == strlen(name) && memcmp(s->string, name, s->string_bytes) == 0;
}

static void take_key(struct scanner *s)
{
    struct level *level = &s->levels[s->depth];
    if (!s->depth || !level->is_object || !s->string)
        return;
    level->key = s->string;
    level->key_bytes = s->string_bytes;
    const struct level *above = &s->levels[s->depth - 1];
    level->in_tokens = above->in_tokens || is_key(s, "tokens");
    level->may_be_ragged = above->may_be_ragged || is_key(s, "slice") || is_key(s, "grid_coords");
}

static void pass_mark(struct scanner *s, char c)
{
    if (c == ':')
        take_key(s);
    else if (c == ',')
        s->levels[s->depth].index++;
    else if (s->depth)
        s->depth--; /* ']' or '}'; the JSON library checks that it matches its opening bracket */
    s->p++;
    count(s, 1);
}

static bool is_mark(char c) { return c == '"' || c == '[' || c == ']' || c == '{' || c == '}' || c == ':' || c == ','; }

static void pass_plain(struct scanner *s)
{
    const char *start = s->p;
    while (s->p < s->end && !is_mark(*s->p) && !is_left(s))
        s->p++;
    count(s, (size_t)(s->p - start));
}

static bool pass_next(struct scanner *s, struct api_problem *problem)
{
    switch (*s->p) {
    case '[': return take_list(s, problem);
    case '{': return open_bracket(s, problem);
    case '"': pass_string(s); return true;
    case ':':
    case ',':
    case ']':
    case '}': pass_mark(s, *s->p); return true;
    default: pass_plain(s); return true;
    }
}

bool api_scan_text(struct api_scan *scan, const char *text, size_t n, const char *where, struct api_problem *problem)
{
    struct scanner s = {
        .scan = scan, .text = text, .end = text + n, .p = text, .ask_at = text, .kept = text, .where = where};
    while (s.p < s.end && !pe_was_cancelled())
        if (!pass_next(&s, problem))
            return false;
    if (pe_was_cancelled())
        return api_fail_memory(problem); /* any refusal will do, because it is not read */
    finish(&s);
    if (!s.is_full)
        return s.scan->replaced.state == API_TEXT_FINE || api_fail_memory(problem);
    if (s.depth || s.in_string)
        return fail_here(&s, 400, "not JSON: the text ends before it is complete", problem);
    return api_fail(
        problem, 413, s.overflow_pointer,
        "%sthe JSON beside its lists of numbers is over %d bytes; a list with anything but numbers in it, or with a "
        "number no double can hold, counts here",
        s.where, API_SKELETON_MAX);
}

/* ---- jansson ---- */

/* jansson's parser, with our own allocator: a small request has some forty nodes and names, which cost less in the
 * request's arena, where none is freed individually.
 *
 * When memory runs out, the parser (2.14) does not always stop: if the buffer of its current token cannot grow, it
 * drops the byte, and it reads a string without its closing quote past its end. So the allocator leaves the parser at
 * once, by longjmp. Everything that the parser has allocated belongs to the arena, and it holds no lock and no file. */

enum outcome { READ, NO_MEMORY, TOO_LARGE };

struct load {
    struct api_arena *arena;
    size_t n_max; /* bytes of the arena, this tree included */
    const char *p, *end;
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

/* The functions that the program had set for itself before ours. */
static _Atomic(json_malloc_t) malloc_of_program = malloc;
static _Atomic(json_free_t) free_of_program = free;

static void *allocate(size_t n)
{
    void *place = current ? allocate_for(current, n) : malloc_of_program(n);
    if (place)
        pe_outside_wrote(place, n);
    return place;
}

static void release(void *place)
{
    if (!current)
        free_of_program(place);
}

/* The program that has called us may use jansson too, so this waits until there is something to read, and passes on
 * what is not ours. Threads may do it at the same time: each writes the same pointers, ours never among them.
 *
 * Hash seeds are random, so that a client cannot prepare names that collide; members keep the order of the text anyway.
 * jansson would read its seed from a file. Where the system gives none, the place of the stack is one. */
static void prepare(void)
{
    json_malloc_t of_malloc;
    json_free_t of_free;
    json_get_alloc_funcs(&of_malloc, &of_free);
    if (of_malloc == allocate && of_free == release)
        return;
    if (of_malloc != allocate)
        malloc_of_program = of_malloc;
    if (of_free != release)
        free_of_program = of_free;
    size_t seed;
    json_object_seed(getentropy(&seed, sizeof seed) == 0 && seed ? seed : (uintptr_t)&seed);
    json_set_alloc_funcs(allocate, release);
}

char *api_json_text(const json_t *value, size_t flags)
{
    size_t n = json_dumpb(value, NULL, 0, flags);
    char *text = n ? malloc(n + 1) : NULL;
    if (text)
        text[json_dumpb(value, text, n, flags)] = '\0';
    return text;
}

/* jansson asks for a kibibyte at a time: there a long text gives up its turn, and ends if the client has disconnected.
 */
static size_t feed(void *place, size_t room, void *caller)
{
    struct load *load = caller;
    size_t left = (size_t)(load->end - load->p), n = left < room ? left : room;
    if (!n || pe_is_cancelled())
        return 0;
    memcpy(place, load->p, n);
    load->p += n;
    return n;
}

static int status_of(enum json_error_code code)
{
    bool cannot_hold =
        code == json_error_numeric_overflow || code == json_error_null_character || code == json_error_null_byte_in_key;
    return cannot_hold ? 422 : 400;
}

json_t *api_json_load(struct api_arena *arena, const char *text, size_t n, size_t flags, struct api_json_error *error)
{
    struct load load = {
        .arena = arena, .n_max = arena->n_bytes + API_TREE_FACTOR * n + API_TREE_MIN, .p = text, .end = text + n};
    json_error_t *library = &error->library;
    /* The caller owns load: variables that the function of setjmp keeps in registers would be lost. */
    prepare();
    current = &load;
    pe_outside_reads(load.p, (size_t)(load.end - load.p));
    pe_outside_begins();
    if (setjmp(load.out) == 0) {
        load.root = json_load_callback(feed, &load, flags | JSON_REJECT_DUPLICATES, library);
        load.outcome = READ;
    }
    pe_outside_ends();
    pe_outside_wrote(library, sizeof *library);
    current = NULL;
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
    error->text = json_error_code(library) == json_error_null_character ? "a NUL (\\u0000) in a text" : library->text;
    return NULL;
}

/* ---- Numbers ---- */

static const char *pass_digits(const char *p, const char *end)
{
    while (p < end && *p >= '0' && *p <= '9')
        p++;
    return p;
}

/* Passes an optional sign and digits; NULL if there are no digits. */
static const char *pass_signed(const char *p, const char *end, const char *signs)
{
    const char *first = p < end && strchr(signs, *p) ? p + 1 : p, *last = pass_digits(first, end);
    return last > first ? last : NULL;
}

/* (Not "+1", "01", ".5", "1.".) */
bool api_is_json_number(const char *p, size_t n)
{
    const char *end = p + n;
    const char *digits = p < end && *p == '-' ? p + 1 : p;
    if (end - digits > 1 && *digits == '0' && digits[1] >= '0' && digits[1] <= '9')
        return false;
    p = pass_signed(p, end, "-");
    if (p && p < end && *p == '.')
        p = pass_signed(p + 1, end, "");
    if (p && p < end && (*p | 0x20) == 'e')
        p = pass_signed(p + 1, end, "+-");
    return p == end;
}
