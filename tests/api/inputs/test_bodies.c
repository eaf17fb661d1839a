/* Bodies of several parts and of bytes: none is read beyond its end, tensors are aligned, a part gives way or replaces.
 * What is refused, and what each reader makes of a file, is in tests/cases/refused_api.jsonl. */
#include "api/inputs/inputs.h"
#include "tests/api/ask.h"

#include <stdio.h>

static struct api_request request;
static struct api_problem problem;

#define FORM "multipart/form-data; boundary=XX"
#define SAFETENSORS "application/vnd.safetensors"
#define NPY "application/x-npy"
#define PART(name) "--XX\r\nContent-Disposition: form-data; name=\"" name "\"\r\n"
#define ARRAY(shape) "\x93NUMPY\x01\x00\x3e\x00{'descr': '|u1', 'fortran_order': True, 'shape': " shape ", }"

static bool read_bytes(const char *content_type, const char *bytes, size_t n)
{
    api_request_init(&request, PE_ROTATE);
    return api_input_read(&request, content_type, bytes, n, &problem);
}

/* The form's tensor holds line ends, dashes and a near boundary. */
static const char form[] = PART("q") "Content-Type: application/octet-stream\r\n\r\n" ARRAY(
    "(12,)") "    \n"
             "\r\n--XXY\r\n\r\n-\r\n" PART("request") "\r\n{\"scheme\":\"rope\"}\r\n--XX--";
static const char npy[] = ARRAY("(2, 3)") "   \nabcdef";
static const char npy_2[] = "\x93NUMPY\x02\x00\x3e\x00\0\0{'descr': '|u1', 'fortran_order': True, 'shape': (2, 3), }"
                            "   \nabcdef";
static const char safetensors[] =
    "\x60\0\0\0\0\0\0\0{\"__metadata__\":{\"request\":\"{}\"},\"q\":{\"dtype\":\"U8\",\"shape\":[2,4],"
    "\"data_offsets\":[0,8]}}         12345678";

/* In copies as long as they say, so that a sanitizer sees what is read behind them. */
TEST(every_prefix_is_refused)
{
    static const struct {
        const char *type, *bytes;
        size_t n, n_needed; /* of a form, the last dashes are not */
    } bodies[] = {{FORM, form, sizeof form - 1, sizeof form - 5},
                  {NPY, npy, sizeof npy - 1, sizeof npy - 1},
                  {NPY, npy_2, sizeof npy_2 - 1, sizeof npy_2 - 1},
                  {SAFETENSORS, safetensors, sizeof safetensors - 1, sizeof safetensors - 1}};
    for (size_t i = 0; i < sizeof bodies / sizeof *bodies; i++)
        for (size_t n = 1; n <= bodies[i].n; n++) {
            char *copy = malloc(n);
            memcpy(copy, bodies[i].bytes, n);
            problem.status = 0;
            bool is_read = read_bytes(bodies[i].type, copy, n);
            if (n == bodies[i].n ? !is_read : n < bodies[i].n_needed && (is_read || problem.status != 400))
                fail_msg("%s, %zu of %zu: %d %s", bodies[i].type, n, bodies[i].n, problem.status, problem.error.detail);
            api_request_drop(&request);
            free(copy);
        }
}

TEST(a_part_is_cut_at_its_boundary)
{
    assert_true(read_bytes(FORM, form, sizeof form - 1));
    assert_int_equal(request.n_fields, 2);
    assert_memory_equal(api_request_find(&request, "q")->array.data, "\r\n--XXY\r\n\r\n-", 12);
    api_request_drop(&request);
}

/* Lengths that lie. */
TEST(a_length_beyond_the_end)
{
    char file[sizeof npy_2];
    memcpy(file, npy_2, sizeof npy_2);
    memset(file + 8, 0xff, 4);
    assert_false(read_bytes(NPY, file, sizeof npy_2 - 1));
    api_request_drop(&request);
    char all[sizeof safetensors];
    memcpy(all, safetensors, sizeof safetensors);
    memset(all, 0xff, 8);
    assert_false(read_bytes(SAFETENSORS, all, sizeof safetensors - 1));
    assert_int_equal(problem.status, 400);
    api_request_drop(&request);
}

/* Lengths of padding shift the data over every alignment; misaligned tensors are copied. */
TEST(tensors_are_aligned)
{
    for (int pad = 0; pad < 8; pad++) {
        char file[600];
        int n = snprintf(
            file + 8, sizeof file - 8,
            "{\"k\":{\"dtype\":\"U8\",\"shape\":[3],\"data_offsets\":[16,19]},\"e\":{\"dtype\":\"F64\",\"shape\":[0],"
            "\"data_offsets\":[16,16]},\"q\":{\"dtype\":\"F64\",\"shape\":[1,2],\"data_offsets\":[0,16]},"
            "\"__metadata__\":{\"request\":\"{\\\"scheme\\\":\\\"rope\\\"}\",\"format\":\"pt\"}}%*s",
            pad, "");
        uint64_t n_header = (uint64_t)n;
        memcpy(file, &n_header, 8);
        for (int i = 0; i < 19; i++)
            file[8 + n + i] = (char)i;
        assert_true(read_bytes(SAFETENSORS, file, 8 + (size_t)n + 19));
        assert_int_equal(request.n_fields, 4);
        const struct pe_tensor *q = &api_request_find(&request, "q")->array;
        assert_int_equal((uintptr_t)q->data % 8, 0);
        assert_memory_equal(q->data, file + 8 + n, 16);
        assert_int_equal(q->shape[1], 2);
        assert_int_equal(api_request_find(&request, "e")->array.shape[0], 0);
        assert_string_equal(api_request_find(&request, "scheme")->string, "rope");
        api_request_drop(&request);
    }
}

/* Of a request that only completes a call, a field gives way to a part of its name, whichever of them it is; the others
 * stay as they are. */
TEST(a_part_replaces_what_completes)
{
    static const char *const names[] = {"scheme", "layout", "base", "q"};
    const struct api_call call = {.is_completed = true};
    for (size_t i = 0; i < 4; i++) {
        char body[400];
        int n = snprintf(body, sizeof body,
                         PART("request") "\r\n{\"scheme\":\"rope\",\"layout\":\"half\",\"base\":7}\r\n"
                                         "--XX\r\nContent-Disposition: form-data; name=\"%s\"\r\n\r\n",
                         names[i]);
        memcpy(body + n, npy, sizeof npy - 1);
        memcpy(body + n + sizeof npy - 1, "\r\n--XX--", 8);
        api_request_init(&request, PE_ROTATE);
        request.call = &call;
        if (!api_input_read(&request, FORM, body, (size_t)n + sizeof npy - 1 + 8, &problem))
            fail_msg("%s: %s", names[i], problem.error.detail);
        assert_int_equal(request.n_fields, i < 3 ? 3 : 4);
        const struct pe_value *scheme = api_request_find(&request, "scheme"),
                              *layout = api_request_find(&request, "layout"),
                              *base = api_request_find(&request, "base");
        assert_true(i == 0 ? scheme->kind == PE_ARRAY : strcmp(scheme->string, "rope") == 0);
        assert_true(i == 1 ? layout->kind == PE_ARRAY : strcmp(layout->string, "half") == 0);
        assert_true(i == 2 ? base->kind == PE_ARRAY : base->kind == PE_INTEGER && base->integer == 7);
        api_request_drop(&request);
    }
}
