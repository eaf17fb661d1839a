/* Files of stored presets: what is refused, what memory they take, allocations that fail. What is read of them is asked
 * of a server, tests/http/models/test_presets_team.py. */
#include "api/inputs/inputs.h"
#include "api/limits.h"
#include "tests/support/alloc.h"
#include "tests/support/cmocka.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static const char whole[] = "{\"stored_at\":\"2026-03-01T12:00:00Z\",\"note\":\"n \\\"x\\\"\", \"config\":"
                            "{\"scheme\":\"rope\",\"base\":7,\"scaling\":{\"type\":\"linear\",\"factor\":2}},\n"
                            "\"source\":\"s\",\"stored_by\":\"bob\",\"later\":[1]}";

static struct api_stored_preset *read_text(const char *text, char why[256])
{
    return api_contents_presets.read(text, strlen(text), why, 256);
}

TEST(what_is_wrong_is_said)
{
    static const struct {
        const char *text, *word;
    } wrong[] = {
        {"", "JSON"},
        {"{", "JSON"},
        {"[]", "object"},
        {"{}", "config"},
        {"{\"config\":3}", "config"},
        {"{\"config\":{}}", "scheme"},
        {"{\"config\":{\"scheme\":\"rop\"}}", "scheme"},
        {"{\"config\":{\"scheme\":\"rope\",\"preset\":\"llama-3.1\"}}", "preset"},
        {"{\"config\":{\"scheme\":\"rope\",\"hf_config\":{}}}", "hf_config"},
    };
    char why[256];
    for (size_t i = 0; i < sizeof wrong / sizeof *wrong; i++) {
        assert_null(read_text(wrong[i].text, why));
        if (!strstr(why, wrong[i].word))
            fail_msg("%s: %s", wrong[i].text, why);
    }
    char *large = malloc(API_PRESET_BYTES_MAX + 2);
    assert_non_null(large);
    memset(large, ' ', API_PRESET_BYTES_MAX + 1);
    assert_null(api_contents_presets.read(large, API_PRESET_BYTES_MAX + 1, why, sizeof why));
    assert_non_null(strstr(why, "65536"));
    free(large);
}

/* A preset counts by the bytes of its file, so its memory must not be many times as much. */
static char *list_of(const char *member, const char *item, size_t *n)
{
    char *text = malloc(API_PRESET_BYTES_MAX), *at = text;
    assert_non_null(text);
    at += sprintf(at, "{\"config\":{\"scheme\":\"rope\",\"%s\":[%s", member, item);
    while (at - text < API_PRESET_BYTES_MAX - 100)
        at += sprintf(at, ",%s", item);
    at += sprintf(at, "]}}");
    *n = (size_t)(at - text);
    return text;
}

TEST(its_memory_is_in_proportion)
{
    char why[256];
    size_t n;
    for (int i = 0; i < 2; i++) {
        char *text = list_of("short_factor", i ? "1.25" : "1", &n);
        void *kept = api_contents_presets.read(text, n, why, sizeof why);
        if (!kept)
            fail_msg("%s", why);
        api_contents_presets.free(kept);
        free(text);
    }
    char *text = list_of("x", "[[]]", &n);
    assert_null(api_contents_presets.read(text, n, why, sizeof why));
    assert_non_null(strstr(why, "memory"));
    free(text);
}

TEST(every_allocation_may_fail)
{
    struct api_stored_preset *kept = NULL;
    char why[256];
    for (long at = 0; !kept && at < 200; at++) {
        alloc_fail_at(at);
        kept = read_text(whole, why);
        alloc_fail_at(-1);
        assert_string_equal(why, "");
    }
    assert_non_null(kept);
    api_contents_presets.free(kept);
}
