/* Texts of flags: the first line names the tool, the rest is its command line. The text is refused with a sentence, or
 * its flags are the members of a value, each once, and what is not read is listed within bounds; a plan obeys the law
 * of plan.h. */
#include "tests/fuzz/plan.h"

static void check_ignored(const struct pe_value *ignored)
{
    enum { NAMES_MAX = 64, BYTES_MAX = 128 };
    REQUIRE(ignored->kind == PE_LIST && ignored->list.n >= 1 && ignored->list.n <= NAMES_MAX);
    for (size_t i = 0; i < ignored->list.n; i++) {
        REQUIRE(ignored->list.items[i].kind == PE_STRING && strlen(ignored->list.items[i].string) <= BYTES_MAX);
        for (size_t k = 0; k < i; k++)
            REQUIRE(strcmp(ignored->list.items[i].string, ignored->list.items[k].string) != 0);
    }
}

/* What became of the text. */
static void check_said(const char *body, size_t n)
{
    static struct api_request request;
    struct api_problem problem;
    api_request_init(&request, PE_ENCODE);
    if (!api_input_read(&request, "application/json", body, n, &problem) || !api_pasted_take(&request, &problem)) {
        REQUIRE(problem.status >= 400 && problem.status < 500 && *problem.error.detail);
    } else {
        const struct pe_value *said = api_request_find(&request, "said");
        const struct pe_value *value = api_member_find(said, "value"), *ignored = api_member_find(said, "ignored");
        REQUIRE(!api_member_find(said, "text") && (!value || value->kind == PE_OBJECT));
        if (ignored)
            check_ignored(ignored);
    }
    api_request_drop(&request);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    const uint8_t *newline = size ? memchr(data, '\n', size) : NULL;
    size_t n = newline ? (size_t)(newline - data) : size, begin = newline ? n + 1 : size;
    struct api_text text;
    api_text_init(&text, 1 << 20);
    api_text_put(&text, "{\"len\":3,\"head_dim\":8,\"layout\":\"half\",\"said\":{\"to\":");
    api_text_string_n(&text, (const char *)data, n);
    api_text_put(&text, ",\"text\":");
    api_text_string_n(&text, (const char *)data + begin, size - begin);
    api_text_put(&text, "}}");
    check_said(text.bytes, text.n);
    check_request(text.bytes, text.n);
    api_text_drop(&text);
    return 0;
}
