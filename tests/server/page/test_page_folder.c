/* --ui-dir: the largest file, and a file for which there is no memory. Which files are given and which are not is asked
 * of a server, tests/http/catalogue/test_page_delivery.py. */
#include "server/page/page.h"
#include "tests/support/alloc.h"
#include "tests/support/folder.h"

#include <unistd.h>

enum { LARGEST = 4 << 20 };

TEST_BETWEEN(a_file_has_a_largest_size, folder_make, folder_remove)
{
    char *bytes;
    size_t n;
    write_file("large.js", "x", 1);
    assert_int_equal(truncate(path_of("large.js"), LARGEST), 0);
    assert_true(page_folder_read(folder, "large.js", &bytes, &n));
    assert_true(n == LARGEST && bytes[0] == 'x' && bytes[LARGEST - 1] == '\0');
    free(bytes);
    assert_int_equal(truncate(path_of("large.js"), LARGEST + 1), 0);
    assert_false(page_folder_read(folder, "large.js", &bytes, &n));
}

TEST_BETWEEN(without_memory_it_is_there, folder_make, folder_remove)
{
    char *bytes;
    size_t n;
    write_file("main.js", "x", 1);
    alloc_fail_at(0);
    bool is_there = page_folder_read(folder, "main.js", &bytes, &n);
    alloc_fail_at(-1);
    assert_true(is_there); /* so it is no 404 */
    assert_null(bytes);
}

TEST(a_name_has_a_longest)
{
    char name[300];
    memset(name, 'a', sizeof name - 1);
    name[sizeof name - 1] = '\0';
    assert_false(page_folder_name_is_valid(name));
}
