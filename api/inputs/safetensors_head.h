/* A safetensors file as its tensors: for bodies of requests and for stored weights. */
#ifndef API_SAFETENSORS_H
#define API_SAFETENSORS_H

#include "api/arena.h"
#include "api/problem.h"

struct api_safetensor {
    const char *name;
    struct pe_tensor tensor; /* its data is a slice of the file */
    uint64_t begin, end;     /* of its bytes within the data */
};

struct api_safetensors {
    struct api_safetensor *entries; /* in the order of their data */
    size_t n_entries;
    const char *request; /* the text in __metadata__.request, NULL if there is none */
};

/* Reads the n bytes of a file with at most n_max tensors. The result is borrowed from the arena and from bytes. */
bool api_safetensors_parse(struct api_arena *arena, const char *bytes, size_t n, size_t n_max,
                           struct api_safetensors *found, struct api_problem *problem);

bool api_safetensors_looks_like(const char *bytes, size_t n);

#endif
