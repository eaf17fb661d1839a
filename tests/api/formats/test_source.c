/* Answers whose tensors are in memory, beside members of JSON text: every format writes them, without any plan. */
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
    struct api_form form;
    struct api_held held[3];
    struct api_opening opening;
    struct api_problem problem;
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
    assert_true(api_form_read(&o->request, &o->form, &o->problem));
    for (size_t i = 0; i < n; i++)
        o->held[i] = (struct api_held){api_held_output(names[i], &tensors[i]), tensors[i].data};
    o->opening = (struct api_opening){.source = {.held = o->held, .n_held = n},
                                      .form = &o->form,
                                      .request = &o->request,
                                      .arena = &o->request.arena,
                                      .max_kept = 1 << 20,
                                      .members = members,
                                      .n_members = 2};
    o->is_open = api_body_open(format_of(format), &o->opening, &o->problem);
}

static char *body_of(struct opened *o, size_t *n)
{
    char *piece = aligned_alloc(64, (o->opening.stream->body.piece_max + 64) / 64 * 64), *all = NULL;
    if (!o->is_open)
        fail_msg("%s", o->problem.error.detail);
    *n = 0;
    for (uint64_t i = 0; i < o->opening.stream->body.n_pieces; i++) {
        size_t length = api_body_piece(o->opening.stream, i, piece);
        all = realloc(all, *n + length + 1);
        memcpy(all + *n, piece, length);
        all[ *n += length] = '\0';
    }
    free(piece);
    return all;
}

TEST(json_has_members_first)
{
    struct opened o;
    size_t n;
    open_format(&o, "json", 3);
    char *body = body_of(&o, &n);
    assert_string_equal(body, "{\"configs\":[{\"a\":1}],\"results\":[\"\\n\"],\"tensors\":{"
                              "\"step.0\":{\"dtype\":\"f64\",\"shape\":[5],\"data\":[0.0,0.5,\"NaN\",1.0,-2.25]},"
                              "\"gram.1\":{\"dtype\":\"f64\",\"shape\":[2,3],\"data\":[[1.0,2.0,3.0],[4.0,5.0,6.0]]},"
                              "\"none.2\":{\"dtype\":\"f64\",\"shape\":[0],\"data\":[]}}}");
    free(body);
    api_request_drop(&o.request);
    open_format(&o, "json", 0);
    body = body_of(&o, &n);
    assert_string_equal(body, "{\"configs\":[{\"a\":1}],\"results\":[\"\\n\"],\"tensors\":{}}");
    free(body);
    api_request_drop(&o.request);
}

TEST(raw_is_the_numbers)
{
    struct opened o;
    size_t n;
    open_format(&o, "raw", 3);
    assert_string_equal(o.opening.header, "Posenc-Tensors");
    assert_string_equal(o.opening.header_value, "step.0;dtype=\"f64\";shape=\"5\";offset=0, "
                                                "gram.1;dtype=\"f64\";shape=\"2,3\";offset=40, "
                                                "none.2;dtype=\"f64\";shape=\"0\";offset=88");
    char *body = body_of(&o, &n);
    assert_int_equal(n, 88);
    assert_int_equal(o.opening.stream->body.length, 88);
    assert_memory_equal(body, curve, sizeof curve);
    assert_memory_equal(body + sizeof curve, matrix, sizeof matrix);
    free(body);
    api_request_drop(&o.request);
}

TEST(npy_holds_one)
{
    struct opened o;
    size_t n;
    open_format(&o, "npy", 1);
    char *body = body_of(&o, &n);
    assert_int_equal(n, 128 + sizeof curve);
    assert_non_null(strstr(body + 10, "{'descr': '<f8', 'fortran_order': False, 'shape': (5,), }"));
    assert_memory_equal(body + 128, curve, sizeof curve);
    free(body);
    api_request_drop(&o.request);
    open_format(&o, "npy", 2);
    assert_false(o.is_open);
    assert_int_equal(o.problem.status, 406);
    assert_non_null(strstr(o.problem.error.detail, "step.0, gram.1"));
    api_request_drop(&o.request);
}

TEST(safetensors_has_members_as_text)
{
    struct opened o;
    size_t n;
    open_format(&o, "safetensors", 3);
    char *body = body_of(&o, &n);
    uint64_t head;
    memcpy(&head, body, 8);
    assert_int_equal(n, 8 + head + 88);
    static const char expected[] =
        "{\"__metadata__\":{\"format\":\"pt\",\"configs\":\"[{\\\"a\\\":1}]\",\"results\":\"[\\\"\\\\n\\\"]\"},"
        "\"gram.1\":{\"dtype\":\"F64\",\"shape\":[2,3],\"data_offsets\":[0,48]},"
        "\"none.2\":{\"dtype\":\"F64\",\"shape\":[0],\"data_offsets\":[48,48]},"
        "\"step.0\":{\"dtype\":\"F64\",\"shape\":[5],\"data_offsets\":[48,88]}}";
    assert_memory_equal(body + 8, expected, sizeof expected - 1);
    assert_memory_equal(body + 8 + head, matrix, sizeof matrix);
    assert_memory_equal(body + 8 + head + sizeof matrix, curve, sizeof curve);
    free(body);
    api_request_drop(&o.request);
}

static uint32_t big_endian(const char *p)
{
    const unsigned char *b = (const unsigned char *)p;
    return (uint32_t)b[0] << 24 | (uint32_t)b[1] << 16 | (uint32_t)b[2] << 8 | b[3];
}

TEST(a_curve_is_a_picture_of_one_row)
{
    struct opened o;
    size_t n;
    open_format(&o, "png", 2);
    char *body = body_of(&o, &n);
    assert_memory_equal(body, "\x89PNG\r\n\x1a\n", 8);
    assert_int_equal(big_endian(body + 16), 5 * 102); /* the zoom that makes the longer side about 512 */
    assert_int_equal(big_endian(body + 20), 102);
    assert_null(memmem(body, n, "tEXt", 4)); /* there is no single request to repeat */
    free(body);
    api_request_drop(&o.request);
    open_format(&o, "text", 1);
    o.form.ascii = true;
    o.is_open = api_body_open(format_of("text"), &o.opening, &o.problem);
    body = body_of(&o, &n);
    assert_string_equal(body, "*%/@ \nstep.0 [5], f64, from -2.25 to 1\n");
    free(body);
    api_request_drop(&o.request);
    open_format(&o, "png", 0);
    assert_int_equal(o.problem.status, 406);
    api_request_drop(&o.request);
}

/* The directory of the archive, as tests of npz read it, over a socket; here the sizes. */
TEST(npz_has_all)
{
    struct opened o;
    size_t n, n_heads = 0;
    open_format(&o, "npz", 3);
    char *body = body_of(&o, &n);
    assert_int_equal(n, o.opening.stream->body.length);
    for (size_t i = 0; i + 4 < n; i++)
        n_heads += memcmp(body + i, "PK\3\4", 4) == 0;
    assert_int_equal(n_heads, 3);
    assert_non_null(memmem(body, n, matrix, sizeof matrix));
    assert_non_null(memmem(body, n, "gram.1.npy", 10));
    free(body);
    api_request_drop(&o.request);
}
