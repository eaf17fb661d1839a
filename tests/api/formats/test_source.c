/* Answers whose tensors are in memory, beside members of JSON text: every format writes them, without any plan.
 * Pictures of them, and what a format refuses, are tested over a socket, tests/http/analyze/test_analyze.py. */
#define _GNU_SOURCE /* memmem */
#include "api/formats/format.h"
#include "api/requests/requests.h"
#include "tests/api/ask.h"

#include <math.h>

static const double curve[] = {0, 0.5, (double)NAN, 1, -2.25}, matrix[] = {1, 2, 3, 4, 5, 6};

static const struct pe_tensor tensors[] = {{.dtype = PE_F64, .rank = 1, .shape = {5}, .data = curve},
                                           {.dtype = PE_F64, .rank = 2, .shape = {2, 3}, .data = matrix},
                                           {.dtype = PE_F64, .rank = 1, .shape = {0}, .data = curve}};
static const char *const names[] = {"step.0", "gram.1", "none.2"};
static const struct api_member members[] = {{"configs", "[{\"a\":1}]", 9}, {"results", "[\"\\n\"]", 6}};

/* An opened answer of the first n tensors. */
struct opened {
    struct api_request request;
    struct api_held held[3];
    bool is_open;
};

static const struct api_format *format_of(const char *name)
{
    for (size_t i = 0; i < api_n_formats(); i++)
        if (strcmp(api_format_at(i)->name, name) == 0)
            return api_format_at(i);
    fail_msg("no format %s", name);
    return NULL;
}

static void open_format(struct opened *o, const char *format, size_t n)
{
    memset(o, 0, sizeof *o);
    api_request_init(&o->request, PE_ENCODE);
    assert_true(api_form_read(&o->request, &o->request.form, &o->request.problem));
    for (size_t i = 0; i < n; i++)
        o->held[i] = (struct api_held){api_held_output(names[i], &tensors[i]), tensors[i].data};
    o->request.opening =
        (struct api_opening){.source = {.held = o->held, .n_held = n}, .members = members, .n_members = 2};
    o->request.format = format_of(format);
    o->is_open = api_body_open(&o->request);
}

static char *body_of(struct opened *o, size_t *n)
{
    char *piece = aligned_alloc(64, (o->request.opening.stream->body.piece_max + 64) / 64 * 64), *all = NULL;
    if (!o->is_open)
        fail_msg("%s", o->request.problem.error.detail);
    *n = 0;
    for (uint64_t i = 0; i < o->request.opening.stream->body.n_pieces; i++) {
        size_t length = api_body_piece(o->request.opening.stream, i, piece);
        all = realloc(all, *n + length + 1);
        memcpy(all + *n, piece, length);
        all[ *n += length] = '\0';
    }
    free(piece);
    return all;
}

/* Of the first n tensors: the beginning of the body behind `skip` bytes, and the tensors at the end. */
static const struct {
    const char *format;
    size_t n, skip;
    const char *begin;
    bool has_numbers;
} bodies[] = {
    {"json", 3, 0,
     "{\"configs\":[{\"a\":1}],\"results\":[\"\\n\"],\"tensors\":{"
     "\"step.0\":{\"dtype\":\"f64\",\"shape\":[5],\"data\":[0.0,0.5,\"NaN\",1.0,-2.25]},"
     "\"gram.1\":{\"dtype\":\"f64\",\"shape\":[2,3],\"data\":[[1.0,2.0,3.0],[4.0,5.0,6.0]]},"
     "\"none.2\":{\"dtype\":\"f64\",\"shape\":[0],\"data\":[]}}}",
     false},
    {"json", 0, 0, "{\"configs\":[{\"a\":1}],\"results\":[\"\\n\"],\"tensors\":{}}", false},
    {"raw", 3, 0, "", true},
    {"npy", 1, 10, "{'descr': '<f8', 'fortran_order': False, 'shape': (5,), }", true},
    {"safetensors", 3, 8,
     "{\"__metadata__\":{\"format\":\"pt\",\"configs\":\"[{\\\"a\\\":1}]\",\"results\":\"[\\\"\\\\n\\\"]\"},"
     "\"gram.1\":{\"dtype\":\"F64\",\"shape\":[2,3],\"data_offsets\":[0,48]},"
     "\"none.2\":{\"dtype\":\"F64\",\"shape\":[0],\"data_offsets\":[48,48]},"
     "\"step.0\":{\"dtype\":\"F64\",\"shape\":[5],\"data_offsets\":[48,88]}}",
     true},
    {"npz", 3, 0, "PK\3\4", true},
};

TEST(each_format_has_members_and_tensors)
{
    for (size_t i = 0; i < sizeof bodies / sizeof *bodies; i++) {
        struct opened o;
        size_t n, n_begin = strlen(bodies[i].begin);
        open_format(&o, bodies[i].format, bodies[i].n);
        char *body = body_of(&o, &n);
        if (memcmp(body + bodies[i].skip, bodies[i].begin, n_begin) != 0)
            fail_msg("%s: %.400s", bodies[i].format, body + bodies[i].skip);
        if (bodies[i].has_numbers) {
            assert_int_equal(o.request.opening.stream->body.length, n);
            assert_non_null(memmem(body, n, curve, sizeof curve));
            assert_true(bodies[i].n < 2 || memmem(body, n, matrix, sizeof matrix));
        } else {
            assert_int_equal(n, n_begin);
        }
        free(body);
        api_request_drop(&o.request);
    }
}
