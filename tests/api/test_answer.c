/* Whole answers: routes and refusals, every format, pieces, headers. */
#include "api/formats/format.h"
#include "api/numbers/numbers.h"
#include "api/replies/replies.h"
#include "tests/api/ask.h"

#include <jansson.h>
#include <stdio.h>

/* ---- Routes ---- */

static struct answer send_call(const char *method, const char *path)
{
    struct api_call call = {.method = method, .path = path};
    return gather(api_answer(&host, &call));
}

static void assert_header(struct answer a, int status, const char *name, const char *value)
{
    const char *found = header_of(&a, name);
    assert_non_null(found);
    assert_string_equal(found, value);
    assert_answer(a, status, NULL);
}

TEST(test_routes)
{
    assert_answer(get("/version"), 200, WORDS("\"name\":\"posenc\"", "\"commit\":\"abc\"", "\"isa\":"));
    assert_answer(get("/healthz"), 200, WORDS("{\"status\":\"ok\"}"));
    assert_answer(get("/readyz"), 200, WORDS("{\"status\":\"ready\"}"));
    assert_answer(get("/metrics"), 200, WORDS("m_sum 1\n"));
    assert_answer(send_call("HEAD", "/healthz"), 200, NULL);
    assert_answer(get("/schemes"), 200, WORDS("{\"schemes\":[{", "\"rope\"", "\"alibi\""));
    assert_answer(get("/schemes/rope"), 200, WORDS("\"parameters\":[", "\"example\":{", "\"/rotate\""));
    assert_answer(get("/schemes/rop"), 404, WORDS("nearest: \\\"rope\\\""));
    assert_answer(get("/schemes/"), 404, NULL);
    assert_answer(get("/schemes/rope/x"), 404, NULL);
    assert_answer(get("/encod"), 404, WORDS("nearest: /encode"));
    assert_answer(get("/nowhere-at-all"), 404, WORDS("/encode, /rotate"));
    assert_answer(get(""), 404, NULL);
    assert_header(send_call("PUT", "/encode"), 405, "Allow", "GET, HEAD, POST, QUERY");
    assert_answer(get("/encode"), 400, WORDS("the request is empty"));
    assert_header(send_call("HEAD", "/rotate"), 405, "Allow", "POST");
    assert_header(send_call("POST", "/healthz"), 405, "Allow", "GET, HEAD");
    assert_header(send_call("BREW", "/healthz"), 405, "Allow", "GET, HEAD");
    assert_header(get("/healthz"), 200, "Cache-Control", "no-store");
}

TEST(test_not_ready)
{
    struct api_host busy = host;
    const atomic_bool is_ending = true;
    busy.is_ending = &is_ending;
    struct api_call call = {.method = "GET", .path = "/readyz"};
    assert_header(gather(api_answer(&busy, &call)), 503, "Retry-After", "1");
}

static struct api_reply *early(const char *method, const char *path, const char *coding, uint64_t bytes)
{
    struct api_call call = {.method = method, .path = path, .content_encoding = coding};
    return api_head(&host, &call, bytes);
}

TEST(test_early_refusals)
{
    assert_null(early("POST", "/encode", NULL, API_LENGTH_UNKNOWN));
    assert_null(early("POST", "/encode", "Identity", 1 << 20));
    assert_answer(gather(early("POST", "/encode", NULL, (1 << 20) + 1)), 413,
                  WORDS("1048577", "1048576", "--max-body"));
    assert_answer(gather(early("POST", "/nothing", NULL, 1)), 404, NULL);
    assert_answer(gather(early("PUT", "/encode", NULL, 1)), 405, NULL);
    assert_header(gather(early("POST", "/encode", "gzip", 1)), 415, "Accept-Encoding", "identity");
    assert_header(gather(api_refusal(503, "full")), 503, "Retry-After", "1");
    assert_answer(gather(api_refusal(431, "a \"b\"")), 431,
                  WORDS("\"detail\":\"a \\\"b\\\"\"", "Request Header Fields Too Large"));
    struct api_reply *reply = early("PUT", "/schemes/x", NULL, 1);
    assert_string_equal(reply->route, "/schemes/{name}");
    api_reply_free(reply);
}

/* ---- Requests ---- */

static struct answer post_as(const char *content_type, const char *query, const char *body)
{
    struct api_call call = {.method = "POST",
                            .path = "/encode",
                            .query = query,
                            .content_type = content_type,
                            .body = *body ? body : NULL,
                            .body_bytes = strlen(body)};
    return gather(api_answer(&host, &call));
}

TEST(test_bodies_and_queries)
{
    const char *json = "{\"scheme\":\"none\",\"len\":2,\"dim\":2}";
    assert_answer(post_as(NULL, NULL, json), 200, WORDS("[[0.0,0.0],[0.0,0.0]]"));
    assert_answer(post_as("application/x-www-form-urlencoded", "", json), 200, NULL);
    assert_answer(post_as("text/plain", "dtype=f64", json), 200, WORDS("f64"));
    assert_answer(post_as(NULL, "scheme=none&len=2&dim=2", ""), 200, WORDS("[[0.0,0.0],[0.0,0.0]]"));
    assert_answer(post_as(NULL, "len=2", json), 400, WORDS("twice", "/len"));
    assert_answer(post_as(NULL, NULL, ""), 400, WORDS("curl"));
    assert_answer(post_as("application/octet-stream", NULL, json), 415, WORDS("application/x-npy"));
    assert_answer(post_as("application/json", NULL, "\x93NUMPY\x01"), 415, WORDS("application/x-npy"));
    assert_answer(post_as("application/x-npy", NULL, json), 400, WORDS("\"pointer\":\"/x\""));
    assert_header(post_as("application/octet-stream", NULL, "x"), 415, "Accept-Post",
                  "application/json, multipart/form-data, application/vnd.safetensors, application/x-npy, "
                  "application/zip, application/x-gguf, application/octet-stream");
}

TEST(test_refused_forms)
{
#define NONE "{\"scheme\":\"none\",\"dim\":2,\"len\":2,"
    assert_answer(post("/encode", NONE "\"dtype\":\"f31\"}"), 422, WORDS("/dtype", "\\\"f32\\\""));
    assert_answer(post("/encode", NONE "\"dtype\":\"i32\"}"), 422, WORDS("/dtype"));
    assert_answer(post("/encode", NONE "\"format\":\"npyz\"}"), 422, WORDS("/format", "npy"));
    assert_answer(post("/encode", NONE "\"digits\":18}"), 422, WORDS("/digits", "17"));
    assert_answer(post("/encode", NONE "\"digits\":3,\"format\":\"raw\"}"), 422, WORDS("/digits", "json"));
    assert_answer(post("/encode", NONE "\"data\":false,\"format\":\"npy\"}"), 422, WORDS("/data", "json"));
    assert_answer(post("/encode", NONE "\"outputs\":[]}"), 422, WORDS("/outputs"));
    assert_answer(post("/encode", NONE "\"outputs\":\"encoding\"}"), 422, WORDS("/outputs"));
    assert_answer(post("/encode", NONE "\"outputs\":[1]}"), 422, WORDS("/outputs"));
    assert_answer(post("/encode", NONE "\"outputs\":[\"encoding\",\"encoding\"]}"), 422, WORDS("twice"));
    assert_answer(post("/encode", NONE "\"outputs\":[\"encodin\"]}"), 422, WORDS("/outputs"));
    assert_answer(post("/encode", NONE "\"digts\":1}"), 422, WORDS("/digts", "digits"));
    assert_answer(post("/encode", NONE "\"dtype\":\"bf16\",\"format\":\"npy\"}"), 406, WORDS("safetensors"));
    assert_answer(
        post("/encode", "{\"scheme\":\"alibi\",\"len\":2,\"format\":\"npy\",\"outputs\":[\"bias\",\"slopes\"]}"), 406,
        WORDS("bias, slopes"));
    assert_answer(post("/encode", "{\"scheme\":\"alibi\",\"len\":65536}"), 413, WORDS("--max-answer", "67108864"));
    assert_answer(post("/encode", "{\"scheme\":\"alibi\",\"len\":65536,\"data\":false}"), 200,
                  WORDS("[8,65536,65536]"));
    struct api_call call = {.method = "POST", .path = "/encode", .accept = "image/x", .body = "{}", .body_bytes = 2};
    assert_answer(gather(api_answer(&host, &call)), 406, WORDS("application/json (json)", "application/x-npy (npy)"));
}

/* ---- Formats ---- */

#define TABLE "{\"scheme\":\"alibi\",\"num_heads\":3,\"q_len\":300,\"k_len\":129,\"outputs\":[\"bias\"],"
enum { COUNT = 3 * 300 * 129 };

/* The bytes that a plan of the same request fills in one call. */
static float *table(void)
{
    const struct pe_field fields[] = {{"scheme", {.kind = PE_STRING, .string = "alibi"}},
                                      {"num_heads", {.kind = PE_INTEGER, .integer = 3}},
                                      {"q_len", {.kind = PE_INTEGER, .integer = 300}},
                                      {"k_len", {.kind = PE_INTEGER, .integer = 129}}};
    static const char *const outputs[] = {"bias"};
    struct pe_request request = {.operation = PE_ENCODE,
                                 .fields = fields,
                                 .n_fields = 4,
                                 .dtype = PE_DTYPE_NONE,
                                 .outputs = outputs,
                                 .n_outputs = 1};
    struct pe_plan *plan;
    struct pe_failure err;
    assert_int_equal(pe_plan_new(&request, &plan, &err), PE_OK);
    float *values = malloc(COUNT * sizeof *values);
    pe_fill(plan, 0, 0, COUNT, values);
    pe_plan_free(plan);
    return values;
}

static void assert_tail(struct answer a, size_t head, const char *format, const char *media_type)
{
    float *expected = table();
    assert_int_equal(a.status, 200);
    assert_string_equal(a.reply->format, format);
    assert_string_equal(a.reply->scheme, "alibi");
    assert_string_equal(a.reply->content_type, media_type);
    assert_int_equal(a.reply->body->length, head + COUNT * sizeof(float));
    assert_memory_equal(a.body + head, expected, COUNT * sizeof(float));
    free(expected);
}

TEST(test_raw)
{
    struct answer a = post("/encode", TABLE "\"format\":\"raw\"}");
    assert_tail(a, 0, "raw", "application/octet-stream");
    assert_string_equal(header_of(&a, "Posenc-Tensors"), "bias;dtype=\"f32\";shape=\"3,300,129\";offset=0");
    answer_drop(&a);
    a = post("/encode", "{\"scheme\":\"rope\",\"len\":3,\"head_dim\":6,\"dtype\":\"f16\",\"format\":\"raw\"}");
    assert_string_equal(header_of(&a, "Posenc-Tensors"),
                        "cos;dtype=\"f16\";shape=\"3,3\";offset=0, sin;dtype=\"f16\";shape=\"3,3\";offset=18");
    assert_int_equal(a.n, 36);
    answer_drop(&a);
}

TEST(test_npy)
{
    struct answer a = post("/encode", TABLE "\"format\":\"npy\"}");
    assert_tail(a, 128, "npy", "application/x-npy");
    assert_memory_equal(
        a.body, "\x93NUMPY\x01\x00\x76\x00{'descr': '<f4', 'fortran_order': False, 'shape': (3, 300, 129), }  ", 76);
    assert_int_equal(a.body[127], '\n');
    answer_drop(&a);
    a = post("/encode", "{\"scheme\":\"alibi\",\"len\":2,\"outputs\":[\"slopes\"],\"format\":\"npy\"}");
    assert_non_null(strstr(a.body + 10, "'shape': (8,), }"));
    answer_drop(&a);
}

TEST(test_safetensors)
{
    struct answer a = post("/encode", TABLE "\"format\":\"safetensors\"}");
    size_t header = (unsigned char)a.body[0] + 256u * (unsigned char)a.body[1];
    assert_int_equal(header % 8, 0);
    assert_tail(a, 8 + header, "safetensors", "application/vnd.safetensors");
    json_t *root = json_loadb(a.body + 8, header, JSON_REJECT_DUPLICATES, NULL);
    assert_non_null(root);
    json_t *metadata = json_object_get(root, "__metadata__"), *bias = json_object_get(root, "bias");
    assert_string_equal(json_string_value(json_object_get(metadata, "scheme")), "alibi");
    assert_string_equal(json_string_value(json_object_get(metadata, "format")), "pt");
    json_t *config = json_loads(json_string_value(json_object_get(metadata, "config")), 0, NULL);
    assert_int_equal(json_integer_value(json_object_get(config, "num_heads")), 3);
    assert_string_equal(json_string_value(json_object_get(bias, "dtype")), "F32");
    assert_int_equal(json_integer_value(json_array_get(json_object_get(bias, "data_offsets"), 1)), COUNT * 4);
    json_decref(config);
    json_decref(root);
    answer_drop(&a);
}

/* Data is ordered by element size, so that each tensor is aligned: slopes and bias alike here, then by name. */
TEST(test_safetensors_order)
{
    struct answer a = post(
        "/encode",
        "{\"scheme\":\"rope\",\"len\":3,\"head_dim\":4,\"dtype\":\"f16\",\"outputs\":[\"sin\",\"cos\",\"inv_freq\"],"
        "\"format\":\"safetensors\"}");
    const char *inv_freq = strstr(a.body + 8, "\"inv_freq\":{\"dtype\":\"F64\",\"shape\":[2],\"data_offsets\":[0,16]}");
    const char *cosines = strstr(a.body + 8, "\"cos\":{\"dtype\":\"F16\",\"shape\":[3,2],\"data_offsets\":[16,28]}");
    const char *sines = strstr(a.body + 8, "\"sin\":{\"dtype\":\"F16\",\"shape\":[3,2],\"data_offsets\":[28,40]}");
    assert_true(inv_freq && inv_freq < cosines && cosines < sines);
    answer_drop(&a);
}

TEST(test_json)
{
    struct answer a = post("/encode", TABLE "\"digits\":9}");
    float *expected = table();
    assert_true(a.reply->body->n_pieces > 1);
    assert_int_equal(a.reply->body->length, API_LENGTH_UNKNOWN);
    assert_int_not_equal(a.reply->pace, API_PACE_READY);
    json_t *root = json_loadb(a.body, a.n, JSON_REJECT_DUPLICATES, NULL);
    assert_non_null(root);
    json_t *data = json_object_get(json_object_get(json_object_get(root, "tensors"), "bias"), "data");
    assert_int_equal(json_array_size(data), 3);
    for (size_t i = 0; i < COUNT; i += 97) {
        json_t *row = json_array_get(json_array_get(data, i / (300 * 129)), i / 129 % 300);
        assert_int_equal(json_array_size(row), 129);
        assert_true((float)json_real_value(json_array_get(row, i % 129)) - expected[i] < 1e-6f);
    }
    json_decref(root);
    free(expected);
    answer_drop(&a);
}

TEST(test_small_json_is_one_piece)
{
    struct answer a = post("/rotate", "{\"scheme\":\"rope\",\"offset\":1,\"q\":[[1,0]]}");
    assert_int_equal(a.reply->body->n_pieces, 1);
    assert_int_equal(a.reply->pace, API_PACE_READY);
    assert_answer(a, 200,
                  WORDS("\"tensors\":{\"q\":{\"dtype\":\"f32\",\"shape\":[1,2],\"data\":[[0.5403023,0.84147096]]}}}"));
    a = post("/encode", "{\"scheme\":\"rope\",\"len\":2,\"head_dim\":4,\"data\":false}");
    assert_int_equal(a.reply->body->length, a.n); /* no numbers: the length is known before the text is printed */
    assert_answer(a, 200, WORDS("\"cos\":{\"dtype\":\"f32\",\"shape\":[2,2]}"));
}

/* Pieces may be made in any order, and the same one again. */
TEST(test_pieces_in_any_order)
{
    static const char *const formats[] = {"json", "raw", "npy", "npz", "safetensors"};
    for (size_t f = 0; f < sizeof formats / sizeof *formats; f++) {
        char request[200];
        snprintf(request, sizeof request, TABLE "\"format\":\"%s\"}", formats[f]);
        struct answer a = post("/encode", request);
        size_t *at = calloc(a.reply->body->n_pieces + 1, sizeof *at);
        char *piece = aligned_alloc(64, (a.reply->body->piece_max + 63) / 64 * 64);
        for (uint64_t i = 0; i < a.reply->body->n_pieces; i++)
            at[i + 1] = at[i] + api_reply_piece(a.reply, i, piece);
        for (uint64_t i = a.reply->body->n_pieces; i-- > 0;) {
            assert_int_equal(api_reply_piece(a.reply, i, piece), at[i + 1] - at[i]);
            assert_memory_equal(piece, a.body + at[i], at[i + 1] - at[i]);
        }
        free(piece);
        free(at);
        answer_drop(&a);
    }
}

/* A configuration sent again with the sequence gives the same bytes. */
TEST(test_config_again)
{
    struct answer a =
        post("/encode", "{\"scheme\":\"rope\",\"len\":5,\"head_dim\":8,\"base\":12345.678,\"layout\":\"half\"}");
    char *start = strstr(a.body, "\"config\":") + 9, *end = strstr(a.body, ",\"tensors\"");
    char again[2000];
    snprintf(again, sizeof again, "%.*s,\"len\":5}", (int)(end - start - 1), start);
    struct answer b = post("/encode", again);
    assert_string_equal(a.body, b.body);
    answer_drop(&a);
    answer_drop(&b);
}

/* A caller that must not block is sent to a worker if planning takes long, and only then. */
TEST(hurried_callers_do_not_wait)
{
    static const char *const slow[] = {
        "{\"scheme\":\"rope\",\"segments\":[{\"type\":\"text\",\"len\":200000}],\"data\":false}",
        "{\"scheme\":\"rope\",\"segments\":[{\"type\":\"video\",\"grid\":[10,100,100]}],\"data\":false}",
        "{\"scheme\":\"sinusoidal\",\"dim\":65536,\"len\":1,\"data\":false}",
        "{\"scheme\":\"rope\",\"lens\":[9000,9000],\"data\":false}",
    };
    const char *quick = "{\"scheme\":\"rope\",\"len\":1000000,\"head_dim\":128,\"data\":false}";
    const struct api_host local = {.max_body = 1 << 20, .max_answer = 1ULL << 40, .commit = "test"};
    struct api_call call = {.method = "POST", .path = "/encode", .must_not_block = true};
    for (size_t i = 0; i < sizeof slow / sizeof *slow; i++) {
        call.body = slow[i];
        call.body_bytes = strlen(slow[i]);
        struct api_request *rest;
        assert_null(api_read(&local, &call, &rest));
        assert_non_null(rest); /* it has been read and checked, and a worker only builds the answer */
        struct answer built = gather(api_build(rest));
        assert_null(api_answer(&local, &call));
        call.must_not_block = false;
        struct answer whole = gather(api_answer(&local, &call));
        assert_int_equal(whole.status, 200);
        assert_int_equal(built.status, 200);
        assert_string_equal(built.body, whole.body);
        answer_drop(&built);
        answer_drop(&whole);
        call.must_not_block = true;
    }
    call.body = quick;
    call.body_bytes = strlen(quick);
    struct api_reply *reply = api_answer(&local, &call);
    assert_non_null(reply);
    assert_int_equal(reply->status, 200);
    api_reply_free(reply);
}

TEST(an_empty_text_is_no_lack_of_memory)
{
    struct api_text text;
    api_text_init(&text, API_TEXT_MAX);
    struct answer empty = gather(api_reply_text(200, "text/plain", &text));
    assert_int_equal(empty.n, 0);
    assert_answer(empty, 200, NULL);
    text.state = API_TEXT_NO_MEMORY;
    assert_answer(gather(api_reply_text(200, "text/plain", &text)), 503, NULL);
}

void tests_begin(void) { api_setup(); }
