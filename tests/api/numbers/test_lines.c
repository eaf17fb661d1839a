/* Toeplitz maps as JSON: the text copied from lines equals the text of each number by itself, for any shape, mask,
 * dtype and digits; maps without lines are answered as well. */
#include "api/numbers/numbers.h"
#include "tests/api/ask.h"

#include <stdio.h>

struct sample {
    const char *fields; /* of the request, without braces */
    enum pe_dtype dtype;
    int digits;
    size_t heads, rows, cols;
};

static const struct sample samples[] = {
    {"\"scheme\":\"alibi\",\"num_heads\":3,\"q_len\":150,\"k_len\":170,\"q_offset\":20,\"causal\":true", PE_F32, -1, 3,
     150, 170},
    {"\"scheme\":\"alibi\",\"num_heads\":2,\"len\":140,\"window\":7,\"dtype\":\"f16\"", PE_F16, -1, 2, 140, 140},
    {"\"scheme\":\"kerple\",\"num_heads\":2,\"q_len\":1,\"k_len\":30000,\"dtype\":\"f64\"", PE_F64, -1, 2, 1, 30000},
    {"\"scheme\":\"kerple\",\"num_heads\":2,\"q_len\":15000,\"k_len\":3,\"digits\":4", PE_F32, 4, 2, 15000, 3},
    {"\"scheme\":\"t5\",\"num_heads\":2,\"len\":200,\"seed\":1,\"outputs\":[\"bias\"],\"dtype\":\"bf16\"", PE_BF16, -1,
     2, 200, 200},
    {"\"scheme\":\"sandwich\",\"num_heads\":2,\"len\":160", PE_F32, -1, 2, 160, 160},
    {"\"scheme\":\"alibi\",\"num_heads\":1,\"len\":2,\"outputs\":[\"bias\"]", PE_F32, -1, 1, 2, 2},
    {"\"scheme\":\"alibi\",\"num_heads\":3,\"len\":200,\"slice\":[[1,null],null,[null,null,2]],\"outputs\":[\"bias\"]",
     PE_F32, -1, 2, 200, 100},
};

enum { N_SAMPLES = sizeof samples / sizeof *samples };

static struct api_reply *ask_for(const struct sample *s, const char *format, char *json, size_t room)
{
    snprintf(json, room, "{%s,\"format\":\"%s\"}", s->fields, format);
    return post_to(&host, "/encode", json);
}

/* The map's text, one number at a time. Owned. */
static char *number_by_number(const struct sample *s)
{
    char json[512];
    struct sample raw = *s;
    char *fields = strdup(s->fields), *digits = strstr(fields, ",\"digits\":4"); /* which raw bytes have not */
    if (digits)
        *digits = '\0';
    raw.fields = fields;
    struct answer a = gather(ask_for(&raw, "raw", json, sizeof json));
    assert_int_equal(a.status, 200);
    size_t n = s->heads * s->rows * s->cols, size = pe_dtype_size(s->dtype);
    assert_true(a.n >= n * size);
    char *text = malloc(n * (API_NUMBER_MAX + 8)), *to = text;
    for (size_t i = 0; i < n; i++) {
        to += sprintf(to, "%s%s", i == 0 ? "[" : "", i % (s->rows * s->cols) == 0 ? "[" : "");
        to += sprintf(to, "%s", i % s->cols == 0 ? "[" : "");
        to = api_numbers_print(to, s->dtype, a.body + i * size, 1, s->digits);
        to += sprintf(to, "%s%s", (i + 1) % s->cols == 0 ? "]" : "", (i + 1) % (s->rows * s->cols) == 0 ? "]" : "");
        to += sprintf(to, "%s", i + 1 == n ? "]" : ",");
    }
    *to = '\0';
    answer_drop(&a);
    free(fields);
    return text;
}

static void assert_map(const struct sample *s, const char *body)
{
    char *expected = number_by_number(s);
    const char *data = strstr(body, "\"data\":");
    assert_non_null(data);
    data += strlen("\"data\":");
    assert_int_equal(strncmp(data, expected, strlen(expected)), 0);
    free(expected);
}

TEST(each_number_as_by_itself)
{
    char json[512];
    for (size_t i = 0; i < N_SAMPLES; i++) {
        struct answer a = gather(ask_for(&samples[i], "json", json, sizeof json));
        if (a.status != 200)
            fail_msg("%s: %s", json, a.body);
        assert_map(&samples[i], a.body);
        answer_drop(&a);
    }
}
