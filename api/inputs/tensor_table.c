/* The contents of a stored safetensors file without its JSON: tensors by name, with their places in the file. */
#define _GNU_SOURCE /* qsort_r */
#include "api/limits.h"
#include "api/inputs/inputs.h"
#include "api/text.h"

#include <assert.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { ENDING_MAX = 100 }; /* of posenc's names (core/request_weights.c) */

struct place {
    const char *name;
    size_t n_name;
    struct pe_tensor tensor; /* without data: the file may be copied */
    size_t begin;            /* within the file */
    size_t text_end;         /* offset in the text of all */
};

struct api_tensors {
    size_t n;
    uint32_t *by_ending;   /* [n], sorted by their names read backwards; the places follow them */
    struct place places[]; /* by name; the names are stored after all of them */
};

/* ---- Orders ---- */

static int compare(const void *left, const void *right)
{
    return strcmp(((const struct place *)left)->name, ((const struct place *)right)->name);
}

/* Compares from the end; a suffix comes before the names that end with it. */
static int compare_endings(const char *a, size_t n_a, const char *b, size_t n_b)
{
    for (size_t k = 1; k <= n_a && k <= n_b; k++)
        if (a[n_a - k] != b[n_b - k])
            return (unsigned char)a[n_a - k] < (unsigned char)b[n_b - k] ? -1 : 1;
    return (n_a > n_b) - (n_a < n_b);
}

static int compare_places(const void *left, const void *right, void *places)
{
    const struct place *a = (const struct place *)places + *(const uint32_t *)left;
    const struct place *b = (const struct place *)places + *(const uint32_t *)right;
    return compare_endings(a->name, a->n_name, b->name, b->n_name);
}

/* ---- Keeping ---- */

static void print_place(struct api_window *window, const struct place *place, bool is_first)
{
    char room[64 + PE_RANK_MAX * 24];
    struct api_text text = {.bytes = room, .room = sizeof room, .max = sizeof room};
    api_text_format(&text, ":{\"dtype\":\"%s\",\"shape\":", pe_dtype_name(place->tensor.dtype));
    api_text_shape(&text, place->tensor.shape, place->tensor.rank);
    api_text_put(&text, "}");
    assert(text.state == API_TEXT_FINE);
    api_window_put(window, is_first ? "" : ",");
    api_window_string(window, place->name);
    api_window_add(window, text.bytes, text.n);
}

/* One block of memory, because the JSON tree of a header is many times as large. */
static struct api_tensors *keep(const struct api_safetensors *found, const char *bytes)
{
    size_t n_names = 0, n = found->n_entries;
    for (size_t i = 0; i < n; i++)
        n_names += strlen(found->entries[i].name) + 1;
    struct api_tensors *kept = malloc(sizeof *kept + n * (sizeof *kept->places + sizeof *kept->by_ending) + n_names);
    if (!kept)
        return NULL;
    kept->n = n;
    kept->by_ending = (uint32_t *)(void *)&kept->places[n];
    char *name = (char *)&kept->by_ending[n];
    for (size_t i = 0; i < n; i++) {
        const struct api_safetensor *entry = &found->entries[i];
        kept->places[i] = (struct place){.name = name,
                                         .n_name = strlen(entry->name),
                                         .tensor = entry->tensor,
                                         .begin = (size_t)((const char *)entry->tensor.data - bytes)};
        kept->places[i].tensor.data = NULL;
        name = stpcpy(name, entry->name) + 1;
    }
    /* Runs once, when the file is stored, so that requests find tensors in it without a full scan. */
    struct api_window window = api_window_of_length();
    qsort(kept->places, kept->n, sizeof *kept->places, compare);
    for (size_t i = 0; i < kept->n; i++) {
        print_place(&window, &kept->places[i], i == 0);
        kept->places[i].text_end = (size_t)window.at;
        kept->by_ending[i] = (uint32_t)i;
    }
    qsort_r(kept->by_ending, kept->n, sizeof *kept->by_ending, compare_places, kept->places);
    return kept;
}

struct api_tensors *api_tensors_parse(const char *bytes, size_t n, struct api_problem *problem)
{
    struct api_arena arena = {0};
    struct api_safetensors found;
    struct api_tensors *kept = NULL;
    if (api_safetensors_parse(&arena, bytes, n, API_STORED_TENSORS_MAX, &found, problem)) {
        kept = keep(&found, bytes);
        if (!kept)
            api_fail_memory(problem);
    }
    api_arena_drop(&arena);
    return kept;
}

struct api_tensors *api_tensors_read(const char *bytes, size_t n, char *why, size_t n_why)
{
    struct api_problem problem;
    struct api_tensors *tensors = api_tensors_parse(bytes, n, &problem);
    if (!tensors)
        snprintf(why, n_why, "%s", problem.status == 503 ? "" : problem.error.detail);
    return tensors;
}

void api_tensors_free(struct api_tensors *tensors) { free(tensors); }

static void *read_contents(const char *bytes, size_t n, char *why, size_t n_why)
{
    return api_tensors_read(bytes, n, why, n_why);
}

static void free_contents(void *contents) { api_tensors_free(contents); }

const struct api_contents api_contents_weights = {.what = "weights", .read = read_contents, .free = free_contents};

size_t api_tensors_count(const struct api_tensors *tensors) { return tensors->n; }

const char *api_tensors_name(const struct api_tensors *tensors, size_t i) { return tensors->places[i].name; }

struct pe_tensor api_weights_tensor(const struct api_stored_file *weights, size_t i)
{
    const struct place *place = &weights->tensors->places[i];
    struct pe_tensor tensor = place->tensor;
    tensor.data = weights->bytes + place->begin;
    return tensor;
}

bool api_tensors_find(const struct api_tensors *tensors, const char *name, size_t *i)
{
    const struct place key = {.name = name};
    const struct place *found = bsearch(&key, tensors->places, tensors->n, sizeof key, compare);
    if (found)
        *i = (size_t)(found - tensors->places);
    return found;
}

/* ---- Endings ---- */

/* The first name, in the order of endings, that does not come before ".ending"; or, if behind, the first after all
 * names with that ending. */
static size_t bound_of(const struct api_tensors *tensors, const char *ending, size_t n, bool behind)
{
    size_t low = 0, high = tensors->n;
    while (low < high) {
        size_t middle = low + (high - low) / 2;
        const struct place *place = &tensors->places[tensors->by_ending[middle]];
        size_t n_last = place->n_name < n ? place->n_name : n; /* only as much of it as the ending has */
        int order = compare_endings(place->name + place->n_name - n_last, n_last, ending, n);
        if (order < 0 || (order == 0 && behind))
            low = middle + 1;
        else
            high = middle;
    }
    return low;
}

/* Inserts into the list of the first n_max names, in order. */
static void insert(size_t *found, size_t *n_found, size_t n_max, size_t i)
{
    size_t at = *n_found;
    while (at > 0 && found[at - 1] > i)
        at--;
    if (at == n_max)
        return;
    *n_found += *n_found < n_max;
    memmove(&found[at + 1], &found[at], (*n_found - 1 - at) * sizeof *found);
    found[at] = i;
}

size_t api_tensors_ending(const struct api_tensors *tensors, const char *ending, size_t n, size_t *found,
                          size_t *n_found, size_t n_max)
{
    char dotted[ENDING_MAX + 2] = ".";
    size_t whole;
    assert(n <= ENDING_MAX);
    memcpy(dotted + 1, ending, n);
    dotted[n + 1] = '\0';
    size_t begin = bound_of(tensors, dotted, n + 1, false), end = bound_of(tensors, dotted, n + 1, true);
    bool is_name = api_tensors_find(tensors, dotted + 1, &whole);
    if (is_name)
        insert(found, n_found, n_max, whole);
    for (size_t i = begin; i < end; i++)
        insert(found, n_found, n_max, tensors->by_ending[i]);
    return end - begin + is_name;
}

/* ---- Printing ---- */

void api_tensors_print(const struct api_tensors *tensors, struct api_window *window)
{
    uint64_t begin = window->at;
    size_t low = 0, high = tensors->n;
    if (tensors->n == 0 || api_window_skip(window, tensors->places[tensors->n - 1].text_end))
        return;
    while (low < high) {
        size_t middle = low + (high - low) / 2;
        if (begin + tensors->places[middle].text_end <= window->first)
            low = middle + 1;
        else
            high = middle;
    }
    window->at = begin + (low > 0 ? tensors->places[low - 1].text_end : 0);
    for (; low < tensors->n && !api_window_is_full(window); low++)
        print_place(window, &tensors->places[low], low == 0);
}
