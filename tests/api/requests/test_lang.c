/* The language that a request's `lang` and Accept-Language choose, and the headers of an answer in it. */
#include "api/replies/replies.h"
#include "api/requests/requests.h"
#include "tests/api/ask.h"

static const struct {
    const char *header, *lang;
} headers[] = {
    {NULL, "en"},
    {"", "en"},
    {"en", "en"},
    {"zh", "zh"},
    {"zh-CN,zh;q=0.9,en;q=0.8,en-US;q=0.7", "zh"}, /* browsers */
    {"en-GB,en-US;q=0.9,en;q=0.8", "en"},
    {"en-US,en;q=0.5", "en"},
    {"zh-Hans", "zh"},
    {"ZH-hans-cn", "zh"},
    {"zh-TW", "zh"},
    {"fr, zh;q=0.2, en;q=0.1", "zh"},
    {"da, en-gb;q=0.8, en;q=0.7", "en"}, /* the example of RFC 9110 */
    {"fr", "en"},
    {"zho", "en"}, /* a subtag, not a prefix of it */
    {"z", "en"},
    {"zh_CN", "en"},
    {"*", "en"},
    {"fr, *;q=0.5", "en"},
    {"*, zh;q=0.5", "en"},
    {"*;q=0.4, zh;q=0.5", "zh"},
    {"en;q=0.4, *;q=0.5", "zh"}, /* "*" is about the languages not named */
    {"zh, en", "zh"},
    {"en, zh", "en"}, /* the earlier of equals */
    {"en;q=0.5, zh;q=0.5", "en"},
    {"zh;q=0.5, en;q=0.5", "zh"},
    {"zh;q=0, en;q=0.001", "en"},
    {"en;q=0, *", "zh"}, /* q=0 excludes */
    {"en;q=0", "zh"},
    {"zh;q=0", "en"},
    {"*;q=0", "en"},
    {"*;q=0, zh", "zh"},
    {"en;q=0, zh;q=0", "en"},
    {"en-GB;q=0, en;q=0.5, zh;q=0.1", "en"}, /* another region's weight does not exclude English */
    {"en;q=0.5, zh-TW;q=0, zh-CN;q=0.6", "zh"},
    {"en;q=2, zh;q=0.1", "zh"}, /* no such weight: the range is void */
    {"en;q=0.1234, zh;q=0.1", "zh"},
    {"en;q=, zh;q=0.1", "zh"},
    {" , ,zh ; q=0.2 ,", "zh"},
    {"zh;q=1.000,en;Q=1", "zh"},
    {";;;", "en"},
    {"\"", "en"},
    {"zh-", "zh"},
};

TEST(the_header_chooses)
{
    for (size_t i = 0; i < sizeof headers / sizeof *headers; i++) {
        const struct api_call call = {.accept_language = headers[i].header};
        enum pe_lang lang = PE_N_LANGS;
        assert_true(api_lang_choose(NULL, &call, &lang, NULL));
        if (strcmp(api_lang_words[lang], headers[i].lang) != 0)
            fail_msg("%s: %s, not %s", headers[i].header, api_lang_words[lang], headers[i].lang);
    }
}

TEST(the_field_comes_first)
{
    const struct api_call call = {.accept_language = "zh"};
    enum pe_lang lang = PE_N_LANGS;
    assert_true(api_lang_choose("en", &call, &lang, NULL) && lang == PE_EN);
    assert_true(api_lang_choose("zh", &(struct api_call){.accept_language = "en"}, &lang, NULL) && lang == PE_ZH);
}

TEST(another_word_is_refused)
{
    const char *const words[] = {"", "EN", "zh-CN", "fr", "e", "english"};
    const struct api_call call = {.accept_language = "zh"};
    for (size_t i = 0; i < sizeof words / sizeof *words; i++) {
        struct api_problem problem = {.status = 0};
        enum pe_lang lang;
        assert_false(api_lang_choose(words[i], &call, &lang, &problem));
        assert_int_equal(problem.status, 422);
        assert_string_equal(problem.error.pointer, "/lang");
        assert_non_null(strstr(problem.error.detail, "\"en\", \"zh\""));
        assert_non_null(strstr(problem.error.detail, words[i]));
    }
}

static const struct {
    const char *query;
    int status; /* 0: accepted */
    enum pe_lang lang;
} queries[] = {
    {NULL, 0, PE_EN},
    {"", 0, PE_EN},
    {"lang=zh", 0, PE_ZH},
    {"lang=en", 0, PE_EN},
    {"a=1&lang=zh&b", 0, PE_ZH},
    {"&&lang=zh&&", 0, PE_ZH},
    {"l%61ng=%7A%68", 0, PE_ZH},
    {"language=zh&LANG=zh", 0, PE_EN}, /* other names */
    {"x=%zz&lang=zh", 0, PE_ZH},
    {"%zz=1", 0, PE_EN},
    {"lang=zh&lang=fr", 0, PE_ZH}, /* the first counts */
    {"lang", 422, 0},
    {"lang=", 422, 0},
    {"lang=fr", 422, 0},
    {"lang=z%zz", 400, 0},
    {"lang=%", 400, 0},
    {"lang=zh%00", 400, 0},
};

TEST(the_query_names_it)
{
    for (size_t i = 0; i < sizeof queries / sizeof *queries; i++) {
        const struct api_call call = {.query = queries[i].query};
        struct api_problem problem = {.status = 0};
        enum pe_lang lang = PE_N_LANGS;
        bool fine = api_lang_of_query(&call, &lang, &problem);
        if (fine ? queries[i].status || lang != queries[i].lang : problem.status != queries[i].status)
            fail_msg("%s: %d, status %d", queries[i].query, (int)lang, fine ? 0 : problem.status);
    }
}

TEST(a_long_header_is_linear)
{
    enum { N = 1 << 20 };
    char *header = malloc(N + 1);
    for (const char *c = ",;z\"-*"; *c; c++) {
        enum pe_lang lang = PE_N_LANGS;
        memset(header, *c, N);
        header[N] = '\0';
        assert_true(api_lang_choose(NULL, &(struct api_call){.accept_language = header}, &lang, NULL));
        assert_int_equal(lang, PE_EN);
    }
    free(header);
}

TEST(vary_is_joined)
{
    struct answer a = {.reply = api_reply_empty(204)};
    assert_ptr_equal(api_reply_set_language(a.reply, PE_ZH), a.reply);
    assert_string_equal(header_of(&a, "Content-Language"), "zh");
    assert_string_equal(header_of(&a, "Vary"), "Accept-Language");
    answer_drop(&a);
    a = (struct answer){.reply = api_reply_empty(204)};
    assert_true(api_reply_header(a.reply, "Vary", "Accept"));
    assert_ptr_equal(api_reply_set_language(a.reply, PE_EN), a.reply);
    assert_string_equal(header_of(&a, "Content-Language"), "en");
    assert_string_equal(header_of(&a, "Vary"), "Accept, Accept-Language");
    assert_int_equal(a.reply->n_headers, 2);
    answer_drop(&a);
}
