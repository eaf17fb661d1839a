/* The suggestion for an unknown word: the same as from the full table of edit distances, and fast among thousands of
 * names; lists of names that no word cuts off. */
#include "core/inside.h"
#include "tests/support/cmocka.h"
#include "tests/support/random.h"
#include "tests/support/request.h"

#include <stdio.h>
#include <string.h>
#include <time.h>

enum { LONGEST = 70 };

/* Levenshtein's table, cell by cell. */
static size_t distance_of(const char *a, const char *b)
{
    size_t n = strlen(a), m = strlen(b), table[LONGEST + 1][LONGEST + 1];
    for (size_t i = 0; i <= n; i++)
        for (size_t j = 0; j <= m; j++) {
            size_t best = i + j;
            if (i && j) {
                best = table[i - 1][j - 1] + (a[i - 1] != b[j - 1]);
                best = table[i - 1][j] + 1 < best ? table[i - 1][j] + 1 : best;
                best = table[i][j - 1] + 1 < best ? table[i][j - 1] + 1 : best;
            }
            table[i][j] = best;
        }
    return table[n][m];
}

/* The first of the nearest names, if its distance is less than a third of the word plus two. */
static const char *nearest_of(const char *word, const char *const *names)
{
    size_t least = strlen(word) / 3 + 2;
    const char *best = NULL;
    for (; strlen(word) <= 64 && *names; names++)
        if (strlen(*names) <= 64 && distance_of(word, *names) < least) {
            least = distance_of(word, *names);
            best = *names;
        }
    return best;
}

static size_t below(size_t n) { return (size_t)(random_bits() % n); }

/* Few letters, so that many words match. */
static void draw(char *word, size_t n)
{
    for (size_t i = 0; i < n; i++)
        word[i] = (char)('a' + below(3));
    word[n] = '\0';
}

TEST(as_by_the_whole_table)
{
    size_t n_found = 0;
    for (int round = 0; round < 3000; round++) {
        char word[LONGEST + 1], texts[20][LONGEST + 1];
        const char *names[21] = {NULL};
        size_t n = below(LONGEST + 1);
        draw(word, n);
        for (size_t i = 0; i < 20; i++) {
            size_t n_more = n + below(9), n_name = n_more < 4 ? 0 : n_more - 4;
            draw(texts[i], n_name <= LONGEST ? n_name : LONGEST);
            if (i % 4 == 0) { /* the word itself with some other letters */
                strcpy(texts[i], word);
                for (size_t k = below(n / 3 + 1); k-- > 0;)
                    texts[i][below(n)] = 'd';
            }
            names[i] = texts[i];
        }
        const char *guess = pe_nearest(word, names);
        assert_ptr_equal(guess, nearest_of(word, names));
        n_found += guess != NULL;
    }
    assert_true(n_found > 1000 && n_found < 3000); /* and not always */
}

enum { N_NAMES = 4096 };
static char stored[N_NAMES][LONGEST + 1];

static double seconds_of(const char *(*guess)(const char *, const char *const *), const char *word,
                         const char *const *names)
{
    double best = 1e9;
    for (int i = 0; i < 5; i++) {
        struct timespec begin, end;
        clock_gettime(CLOCK_THREAD_CPUTIME_ID, &begin);
        guess(word, names);
        clock_gettime(CLOCK_THREAD_CPUTIME_ID, &end);
        double seconds = (double)(end.tv_sec - begin.tv_sec) + (double)(end.tv_nsec - begin.tv_nsec) * 1e-9;
        best = seconds < best ? seconds : best;
    }
    return best;
}

/* Names that differ little from each other and from the word, as an attacker would choose them to cost time. */
TEST(thousands_of_names_cost_little)
{
    const char *names[N_NAMES + 1] = {NULL}, *word = "n99999abcdefghikabcdefghikabcdefghikabcdefghikabcdefghikzz";
    for (int i = 0; i < N_NAMES; i++) {
        snprintf(stored[i], sizeof stored[i], "n%05dabcdefghijabcdefghijabcdefghijabcdefghijabcdefghij", i);
        names[i] = stored[i];
    }
    assert_ptr_equal(pe_nearest(word, names), nearest_of(word, names));
    assert_string_equal(pe_nearest("n0123abcdefghijabcdefghijabcdefghijabcdefghijabcdefghij", names), stored[123]);
    assert_true(seconds_of(pe_nearest, word, names) * 10 < seconds_of(nearest_of, word, names));
}

TEST(ends_of_length)
{
    char longest[65], longer[66];
    memset(longest, 'a', 64);
    memset(longer, 'a', 65);
    longest[64] = longer[65] = '\0';
    const char *const long_names[] = {longer, longest, NULL}, *const short_names[] = {"", "a", NULL};
    assert_ptr_equal(pe_nearest(longest, long_names), longest);
    longest[0] = longest[63] = 'b';
    assert_ptr_equal(pe_nearest(longest, long_names), longest);
    assert_null(pe_nearest(longer, long_names));
    assert_ptr_equal(pe_nearest("", short_names), short_names[0]);
    assert_ptr_equal(pe_nearest("", short_names + 1), short_names[1]);
    assert_ptr_equal(pe_nearest("b", short_names), short_names[0]);
}

TEST(advice_is_kept_apart)
{
    struct pe_failure err;
    pe_fail(&err, "/scheme", "no %s", "fill");
    assert_int_equal(err.advice, PE_NO_ADVICE);
    assert_int_equal(pe_advise(&err, PE_ASK_OTHER, "rotate"), PE_INVALID);
    assert_int_equal(err.advice, PE_ASK_OTHER);
    assert_int_equal(err.advice_at, strlen("no fill"));
    assert_string_equal(err.about, "rotate");
    pe_no_memory(&err);
    assert_int_equal(err.advice, PE_NO_ADVICE);
}

/* ---- Lists of names ---- */

/* Whether name stands alone in a list whose names are followed by a comma or nothing. */
static bool lists(const char *detail, const char *name)
{
    size_t n = strlen(name);
    for (const char *at = strstr(detail, "one of: "); at && (at = strchr(at, ' ')); at++)
        if (strncmp(at + 1, name, n) == 0 && (at[1 + n] == ',' || !at[1 + n]))
            return true;
    return false;
}

/* Even for the longest word that is quoted, the list after it must not be cut. */
TEST(a_scheme_that_is_not_there_is_answered_with_all_names)
{
    static const char *const requests[] = {
        "{'len':2}",
        "{'scheme':'rop','len':2}",
        "{'scheme':'zzzzzzzzzz','len':2}",
        "{'scheme':'wwwwwwwwwwwwwwwwwwwwwwwwwwwwwwwwwwwwwwwwwwwwwwwwwwwwwwwwwwwwwwwwwwww','len':2}",
    };
    for (size_t i = 0; i < sizeof requests / sizeof *requests; i++) {
        struct test_request r;
        struct pe_plan *plan = NULL;
        struct pe_failure err;
        test_request_parse(&r, requests[i]);
        assert_int_equal(pe_plan_new(&r.request, &plan, &err), PE_INVALID);
        for (size_t k = 0; k < pe_n_schemes(); k++)
            if (!lists(err.detail, pe_scheme_at(k)->name))
                fail_msg("%s: %s is not listed in: %s", requests[i], pe_scheme_at(k)->name, err.detail);
        test_request_drop(&r);
    }
}
