/* --ui-dir: which names are looked up, and that nothing outside of the folder is read. */
#include "server/page/page.h"
#include "tests/support/alloc.h"
#include "tests/support/cmocka.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

TEST(test_names)
{
    static const char *const good[] = {"index.html", "views/table.js", "stories/designing.zh.md", "a/b/c/d-e_F.0",
                                       "a..b"};
    static const char *const bad[] = {"",         "/",        "/index.html", "views/", "views//table.js",
                                      ".",        "..",       "./x",         "../x",   "views/../x",
                                      "views/..", "views/.x", ".git/config", "a b",    "a\\b",
                                      "a%2e",     "a\n",      "\xc3\xa9"};
    char step[300];
    for (size_t i = 0; i < sizeof good / sizeof *good; i++)
        assert_true(page_folder_name_is_valid(good[i]));
    for (size_t i = 0; i < sizeof bad / sizeof *bad; i++)
        if (page_folder_name_is_valid(bad[i]))
            fail_msg("%s", bad[i]);
    memset(step, 'a', sizeof step - 1);
    step[sizeof step - 1] = '\0';
    assert_false(page_folder_name_is_valid(step));
}

/* ---- A folder on disk ---- */

static char folder[64], outside[96];

static void print_path(char *path, size_t room, const char *name) { snprintf(path, room, "%s/page/%s", folder, name); }

static void write_file(const char *name, const char *text)
{
    char path[128];
    print_path(path, sizeof path, name);
    FILE *file = fopen(path, "w");
    assert_non_null(file);
    assert_int_equal(fputs(text, file) >= 0, 1);
    fclose(file);
}

void tests_begin(void)
{
    char path[128];
    snprintf(folder, sizeof folder, "/tmp/posenc-page-XXXXXX");
    assert_non_null(mkdtemp(folder));
    print_path(path, sizeof path, "views");
    snprintf(outside, sizeof outside, "%s/page", folder);
    assert_true(mkdir(outside, 0700) == 0 && mkdir(path, 0700) == 0);
    snprintf(outside, sizeof outside, "%s/secret.js", folder);
    FILE *file = fopen(outside, "w");
    assert_true(file && fputs("secret", file) >= 0 && fclose(file) == 0);
}

void tests_end(void)
{
    char command[96];
    snprintf(command, sizeof command, "rm -rf %s", folder);
    assert_int_equal(system(command), 0);
}

/* What is read under a name, NUL-terminated; "-" if nothing is there. Freed by the next call. */
static const char *text_of(const char *name)
{
    static char *last;
    char page[96], *bytes;
    size_t n;
    snprintf(page, sizeof page, "%s/page", folder);
    free(last);
    last = NULL;
    if (!page_folder_read(page, name, &bytes, &n))
        return "-";
    last = realloc(bytes, n + 1);
    last[n] = '\0';
    return last;
}

TEST(test_files)
{
    write_file("views/table.js", "one");
    assert_string_equal(text_of("views/table.js"), "one");
    write_file("views/table.js", "longer");
    assert_string_equal(text_of("views/table.js"), "longer");
    write_file("empty.css", "");
    assert_string_equal(text_of("empty.css"), "");
    assert_string_equal(text_of("absent.js"), "-");
    assert_string_equal(text_of("views"), "-");
    assert_string_equal(text_of("views/table.js/x"), "-");
    assert_string_equal(text_of("../secret.js"), "-");
}

TEST(test_the_build_is_named)
{
    write_file("index.html", "/ui/BUILD /ui/BUILD/a.js/ui/BUILD/ui/BUIL");
    assert_string_equal(text_of("index.html"), "/ui/dev /ui/dev/a.js/ui/dev/ui/BUIL");
    write_file("index.html", "");
    assert_string_equal(text_of("index.html"), "");
    write_file("main.js", "/ui/BUILD");
    assert_string_equal(text_of("main.js"), "/ui/BUILD"); /* only the first file is changed */
}

TEST(test_no_link_and_no_pipe)
{
    char path[128];
    print_path(path, sizeof path, "link.js");
    assert_int_equal(symlink(outside, path), 0);
    assert_string_equal(text_of("link.js"), "-");
    print_path(path, sizeof path, "up");
    assert_int_equal(symlink(folder, path), 0);
    assert_string_equal(text_of("up/secret.js"), "-");
    print_path(path, sizeof path, "pipe.js");
    assert_int_equal(mkfifo(path, 0600), 0);
    assert_string_equal(text_of("pipe.js"), "-"); /* and does not wait for a writer */
}

TEST(test_large_files)
{
    char path[128];
    write_file("large.js", "x");
    print_path(path, sizeof path, "large.js");
    assert_int_equal(truncate(path, 4 << 20), 0);
    assert_int_equal(strlen(text_of("large.js")), 1);
    assert_int_equal(truncate(path, (4 << 20) + 1), 0);
    assert_string_equal(text_of("large.js"), "-");
}

TEST(test_no_memory)
{
    char page[96], *bytes;
    size_t n;
    snprintf(page, sizeof page, "%s/page", folder);
    write_file("main.js", "x");
    alloc_fail_at(0);
    bool is_there = page_folder_read(page, "main.js", &bytes, &n);
    alloc_fail_at(-1);
    assert_true(is_there); /* so it is no 404 */
    assert_null(bytes);
}

TEST(test_opening)
{
    char good[96], error[PAGE_FOLDER_ERROR_BYTES];
    struct api_page page;
    snprintf(good, sizeof good, "%s/page", folder);
    write_file("index.html", "x");
    assert_true(page_folder_open(&page, good, error));
    assert_string_equal(page.build, "dev");
    assert_false(page_folder_open(&page, folder, error));
    assert_non_null(strstr(error, "--ui-dir"));
    assert_non_null(strstr(error, "index.html cannot be read there: No such file"));
    assert_false(page_folder_open(&page, "/nowhere", error));
    assert_false(page_folder_open(&page, outside, error)); /* a file */
}
