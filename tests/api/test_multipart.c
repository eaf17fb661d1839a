/* multipart/form-data: boundaries, part names, and truncated or deceptive bodies. */
#include "api/inputs/inputs.h"
#include "tests/api/ask.h"

#include <stdio.h>

static struct api_request request;
static struct api_problem problem;

static bool read_bytes(const char *content_type, const char *bytes, size_t n)
{
    api_request_init(&request, PE_ROTATE);
    return api_input_read(&request, content_type, bytes, n, &problem);
}

static bool read_text(const char *content_type, const char *text)
{
    return read_bytes(content_type, text, strlen(text));
}

#define TYPE "multipart/form-data; boundary=XX"
#define NAME(name) "Content-Disposition: form-data; name=\"" name "\"\r\n"
#define JSON_PART "--XX\r\n" NAME("request") "\r\n{\"scheme\":\"rope\"}\r\n"

TEST(test_boundaries)
{
    static const struct {
        const char *type, *body;
    } cases[] = {
        {TYPE, JSON_PART "--XX--"},
        {TYPE, JSON_PART "--XX--\r\nepilogue --XX\r\n"},
        {TYPE, "preamble\r\n" JSON_PART "--XX--\r\n"},
        {TYPE, "\r\n" JSON_PART "--XX--\r\n"},
        {TYPE, "--XX \t\r\n" NAME("request") "\r\n{\"scheme\":\"rope\"}\r\n--XX--\r\n"},
        {"multipart/form-data; boundary=\"XX\"", JSON_PART "--XX--"},
        {"multipart/form-data; charset=\"a;boundary=b\"; Boundary=XX", JSON_PART "--XX--"},
        {"Multipart/Form-Data;boundary=XX", JSON_PART "--XX--"},
        {"multipart/form-data; boundary=\"X\\X\"", JSON_PART "--XX--"},
        /* what only begins like the boundary is none */
        {TYPE, "--XX\r\n" NAME("request") "\r\n{\"scheme\":\"rope\"\r\n\r\n}\r\n--XX--\r\n"},
        {TYPE, "--XX\r\nA: "
               "b\r\ncontent-DISPOSITION:form-data;filename=\"x;name=y\";name=request\r\n\r\n{\"scheme\":\"rope\"}\r\n-"
               "-XX--"},
    };
    for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
        if (!read_text(cases[i].type, cases[i].body))
            fail_msg("%s: %s", cases[i].body, problem.error.detail);
        assert_int_equal(request.n_fields, 1);
        assert_string_equal(api_request_find(&request, "scheme")->string, "rope");
        api_request_drop(&request);
    }
}

/* The tensor's bytes hold line ends, dashes and a near boundary. */
TEST(test_tensor_part)
{
    static const char head[] =
        "--XX\r\n" NAME("q") "Content-Type: application/octet-stream\r\n\r\n\x93NUMPY\x01\x00\x3e\x00"
                             "{'descr': '|u1', 'fortran_order': False, 'shape': (12,), }   \n";
    static const char data[] = "\r\n--XXY\r\n\r\n-", tail[] = "\r\n" JSON_PART "--XX--\r\n";
    char body[400];
    size_t n = 0;
    memcpy(body, head, sizeof head - 1);
    n += sizeof head - 1;
    memcpy(body + n, data, 12);
    n += 12;
    memcpy(body + n, tail, sizeof tail - 1);
    n += sizeof tail - 1;
    if (!read_bytes(TYPE, body, n))
        fail_msg("%s", problem.error.detail);
    assert_int_equal(request.n_fields, 2);
    assert_memory_equal(api_request_find(&request, "q")->array.data, data, 12);
    api_request_drop(&request);
    for (size_t cut = 0; cut + 5 < n; cut++) { /* up to within "--XX--" */
        char *copy = malloc(cut + !cut);
        memcpy(copy, body, cut);
        assert_false(read_bytes(TYPE, copy, cut));
        assert_int_equal(problem.status, 400);
        api_request_drop(&request);
        free(copy);
    }
}

/* Of a request that only completes a call, a field gives way to a part of its name, whichever of them it is; the others
 * stay as they are. */
TEST(test_a_part_replaces_what_completes)
{
    static const char npy[] =
        "\x93NUMPY\x01\x00\x3e\x00{'descr': '|u1', 'fortran_order': False, 'shape': (1,), }    \n7";
    static const char *const names[] = {"scheme", "layout", "base", "q"};
    const struct api_call call = {.is_completed = true};
    for (size_t i = 0; i < 4; i++) {
        char body[400];
        int n = snprintf(body, sizeof body,
                         "--XX\r\n" NAME("request") "\r\n{\"scheme\":\"rope\",\"layout\":\"half\",\"base\":7}\r\n"
                                                    "--XX\r\nContent-Disposition: form-data; name=\"%s\"\r\n\r\n",
                         names[i]);
        memcpy(body + n, npy, sizeof npy - 1);
        memcpy(body + n + sizeof npy - 1, "\r\n--XX--", 8);
        api_request_init(&request, PE_ROTATE);
        request.call = &call;
        if (!api_input_read(&request, TYPE, body, (size_t)n + sizeof npy - 1 + 8, &problem))
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

TEST(test_refused)
{
    static const struct {
        const char *type, *body;
        int status;
        const char *words;
    } cases[] = {
        {"multipart/form-data", JSON_PART "--XX--", 400, "boundary"},
        {"multipart/form-data; boundary=", JSON_PART "--XX--", 400, "boundary"},
        {"multipart/form-data; boundary=\"XX", JSON_PART "--XX--", 400, "boundary"},
        {"multipart/form-data; boundary=YY", JSON_PART "--XX--", 400, "boundary"},
        {"multipart/form-data; boundary=0123456789012345678901234567890123456789012345678901234567890123456789X",
         JSON_PART, 400, "boundary"},
        {TYPE, "--XX\n" NAME("request") "\n{}\n--XX--", 400, "CRLF"},
        {TYPE, "--XX\r\n" NAME("request") "{}\r\n--XX--", 400, "empty line"},
        {TYPE, "--XX\r\n--XX--", 400, "empty line"},
        {TYPE, "--XX\r\n\r\n{}\r\n--XX--", 400, "Content-Disposition"},
        {TYPE, "--XX\r\nContent-Disposition: form-data\r\n\r\n{}\r\n--XX--", 400, "Content-Disposition"},
        {TYPE, "--XX\r\nContent-Disposition: form-data; name=\"q\r\n\r\n{}\r\n--XX--", 400, "Content-Disposition"},
        {TYPE, JSON_PART JSON_PART "--XX--", 400, "two parts"},
        {TYPE, "--XX\r\n" NAME("q") "\r\n[1,2]\r\n--XX--", 415, "not a .npy file"},
        {TYPE, "--XX\r\n" NAME("q") "\r\n\x93NUMPY\x01\r\n--XX--", 400, "part \"q\""},
        {TYPE, "--XX\r\n" NAME("q") "Content-Transfer-Encoding: base64\r\n\r\nk05VTVBZ\r\n--XX--", 415, "Encoding"},
        {TYPE, "--XX\r\n" NAME("request") "\r\n{\"a\":1,}\r\n--XX--", 400,
         "part \"request\": not JSON at line 1, column 8"},
        {TYPE, "--XX\r\n" NAME("request") "\r\n\r\n--XX--", 400, "not JSON"},
        {TYPE, "", 400, "boundary"},
    };
    for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
        if (read_text(cases[i].type, cases[i].body))
            fail_msg("accepted: %s", cases[i].body);
        if (problem.status != cases[i].status || !strstr(problem.error.detail, cases[i].words))
            fail_msg("%s: %d %s", cases[i].body, problem.status, problem.error.detail);
        api_request_drop(&request);
    }
}

TEST(test_many_parts)
{
    char *body = malloc(100 * 100), *p = body;
    static const char part[] = "--XX\r\n" NAME("request") "\r\n{}\r\n";
    for (int i = 0; i < 100; i++)
        p += sprintf(p, "%s", i ? "--XX\r\nContent-Disposition: form-data; name=\"\"\r\n\r\n\r\n" : part);
    assert_false(read_bytes(TYPE, body, (size_t)(p - body)));
    assert_int_equal(problem.status, 415); /* an empty part is no .npy file */
    api_request_drop(&request);
    free(body);
}

/* The bodies that make naive splitters slow: only line ends, only dashes, or almost a boundary. */
TEST(test_adversarial)
{
    static const char *const patterns[] = {"\r", "\r\n", "\r\n-", "\r\n--", "\r\n--X", "\r\n--XX", "\r\n--XX ", "-"};
    enum { N = 1 << 20 };
    char *body = malloc(N);
    for (size_t i = 0; i < sizeof patterns / sizeof patterns[0]; i++) {
        size_t n = strlen(patterns[i]);
        for (size_t at = 0; at < N; at++)
            body[at] = patterns[i][at % n];
        assert_false(read_bytes(TYPE, body, N));
        assert_int_equal(problem.status, 400);
        api_request_drop(&request);
    }
    free(body);
}
