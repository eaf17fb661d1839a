/* What a stored safetensors file holds, kept without its JSON: tensors by name, with their places in the file. */
#include "api/limits.h"
#include "api/inputs/safetensors_head.h"
#include "api/inputs/tensor_table.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

struct place {
    const char *name;
    struct pe_tensor tensor; /* without data: the file may be copied */
    size_t begin;            /* within the file */
};

struct api_tensors {
    size_t n;
    struct place places[]; /* by name; the names stand behind them */
};

static int compare(const void *left, const void *right)
{
    return strcmp(((const struct place *)left)->name, ((const struct place *)right)->name);
}

/* One block of memory: the tree of a header is many times as large. */
static struct api_tensors *keep(const struct api_safetensors *found, const char *bytes)
{
    size_t n_names = 0;
    for (size_t i = 0; i < found->n_entries; i++)
        n_names += strlen(found->entries[i].name) + 1;
    struct api_tensors *kept = malloc(sizeof *kept + found->n_entries * sizeof *kept->places + n_names);
    if (!kept)
        return NULL;
    char *name = (char *)&kept->places[found->n_entries];
    for (size_t i = 0; i < found->n_entries; i++) {
        const struct api_safetensor *entry = &found->entries[i];
        kept->places[i] = (struct place){
            .name = name, .tensor = entry->tensor, .begin = (size_t)((const char *)entry->tensor.data - bytes)};
        kept->places[i].tensor.data = NULL;
        name = stpcpy(name, entry->name) + 1;
    }
    kept->n = found->n_entries;
    qsort(kept->places, kept->n, sizeof *kept->places, compare);
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
        snprintf(why, n_why, "%s", problem.error.detail);
    return tensors;
}

void api_tensors_free(struct api_tensors *tensors) { free(tensors); }

size_t api_tensors_count(const struct api_tensors *tensors) { return tensors->n; }

const char *api_tensors_name(const struct api_tensors *tensors, size_t i) { return tensors->places[i].name; }

struct pe_tensor api_weights_tensor(const struct api_weights *weights, size_t i)
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
