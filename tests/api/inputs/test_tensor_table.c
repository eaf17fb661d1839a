/* The table of a stored file: endings of names give the same result as a search of every name; the text of all entries,
 * whole and in parts. */
#include "api/inputs/inputs.h"
#include "api/endpoints/endpoints.h"
#include "tests/support/cmocka.h"
#include "tests/support/random.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { N_MAX = 3000, FILE_MAX = 1 << 20 };

static size_t below(size_t n) { return (size_t)(random_bits() % n); }

/* Steps that are endings of each other without a dot, and with one. */
static const char *const steps[] = {"a", "b", "ab", "ba", "weight", "xweight", "a.weight", "b.a.weight", "é"};

static void draw(char *name)
{
    *name = '\0';
    for (size_t k = 1 + below(4); k > 0; k--)
        strcat(strcat(name, steps[below(sizeof steps / sizeof *steps)]), k > 1 ? "." : "");
}

/* Of empty tensors. Names that come again are left out by the reader's rules: each has its number somewhere. */
static struct api_tensors *tensors_of(size_t n)
{
    char *bytes = malloc(FILE_MAX), name[100], why[256];
    size_t end = 8 + (size_t)sprintf(bytes + 8, "{");
    for (size_t i = 0; i < n; i++) {
        draw(name);
        end +=
            (size_t)sprintf(bytes + end, "%s\"%zu%s%s\":{\"dtype\":\"F32\",\"shape\":[0,%zu],\"data_offsets\":[0,0]}",
                            i ? "," : "", i, i % 3 ? "." : "", name, i);
    }
    end += (size_t)sprintf(bytes + end, "}");
    uint64_t n_header = end - 8;
    memcpy(bytes, &n_header, 8);
    struct api_tensors *tensors = api_tensors_read(bytes, end, why, sizeof why);
    if (!tensors)
        fail_msg("%s", why);
    free(bytes);
    return tensors;
}

static bool ends_with(const char *name, const char *ending)
{
    size_t n_name = strlen(name), n = strlen(ending);
    bool has = n_name >= n && memcmp(name + n_name - n, ending, n) == 0;
    return has && (n_name == n || name[n_name - n - 1] == '.');
}

static void check_ending(const struct api_tensors *tensors, const char *ending, size_t n_max)
{
    size_t found[N_MAX], n_found = 0, n_all = 0, k = 0;
    size_t n = api_tensors_ending(tensors, ending, strlen(ending), found, &n_found, n_max);
    for (size_t i = 0; i < api_tensors_count(tensors); i++)
        if (ends_with(api_tensors_name(tensors, i), ending)) {
            n_all++;
            if (k < n_max)
                assert_int_equal(found[k++], i);
        }
    assert_int_equal(n, n_all);
    assert_int_equal(n_found, k);
}

TEST(endings_as_by_looking_at_all)
{
    char name[100];
    for (int round = 0; round < 40; round++) {
        struct api_tensors *tensors = tensors_of(below(round % 4 ? 60 : N_MAX));
        for (int i = 0; i < 60; i++) {
            draw(name);
            check_ending(tensors, name, 1 + below(i % 2 ? 8 : N_MAX - 1));
        }
        for (size_t i = 0; i < api_tensors_count(tensors); i += 7) /* the whole of a name */
            check_ending(tensors, api_tensors_name(tensors, i), 3);
        api_tensors_free(tensors);
    }
}

TEST(endings_are_put_together)
{
    struct api_tensors *tensors = tensors_of(500);
    size_t found[20], n_found = 0;
    size_t n = api_tensors_ending(tensors, "ab", 2, found, &n_found, 20) +
               api_tensors_ending(tensors, "ba", 2, found, &n_found, 20);
    assert_true(n > 20 && n_found == 20);
    for (size_t i = 0, k = 0; k < 20; i++)
        if (ends_with(api_tensors_name(tensors, i), "ab") || ends_with(api_tensors_name(tensors, i), "ba"))
            assert_int_equal(found[k++], i);
    api_tensors_free(tensors);
}

/* ---- Lists ---- */

enum { N_FILES = 12 };
static struct api_stored_file files[N_FILES];
static int n_cards;

static void hold_card(void *self, const struct api_stored_file *card)
{
    (void)self, (void)card;
    n_cards++;
}

static void drop_card(void *self, const struct api_stored_file *card)
{
    (void)self, (void)card;
    n_cards--;
}

static size_t list(void *self, const struct api_stored_file **cards)
{
    for (size_t i = 0; i < N_FILES; i++) {
        hold_card(self, &files[i]);
        cards[i] = &files[i];
    }
    return N_FILES;
}

static const struct api_store store = {
    .files_max = N_FILES, .list = list, .hold_card = hold_card, .drop_card = drop_card};

/* Some without tensors, some with many. */
static void make_files(void)
{
    static char names[N_FILES][16];
    for (size_t i = 0; i < N_FILES; i++) {
        snprintf(names[i], sizeof names[i], "file%zu", i);
        files[i] = (struct api_stored_file){.name = names[i], .n_bytes = i, .tensors = tensors_of(i % 3 * i * i)};
        memset(files[i].sha256, 'a' + (int)i, API_SHA256_CHARS);
    }
}

static void check_parts(const struct api_body *listing)
{
    size_t n = (size_t)listing->length;
    char *whole = malloc(n), *part = malloc(n + 1);
    api_list_print(listing, 0, n, whole);
    for (size_t size = 1; size <= n; size += 1 + size * 3 / 2)
        for (size_t first = 0, step; first < n; first += step) {
            step = n - first < size ? n - first : size;
            part[step] = '~';
            api_list_print(listing, first, step, part);
            assert_memory_equal(part, whole + first, step);
            assert_int_equal(part[step], '~');
            first += size < 40 ? below(200) : 0; /* small ones: only some */
        }
    free(whole);
    free(part);
}

TEST(every_part_of_a_list)
{
    api_tensors_free(NULL);
    make_files();
    struct api_body *all = api_list_body_all(&store), *one = api_list_body_one(&store, &files[11]);
    assert_int_equal(n_cards, N_FILES + 1);
    check_parts(all);
    check_parts(one);
    char begin[100], expected[200];
    snprintf(expected, sizeof expected, "{\"name\":\"file11\",\"bytes\":11,\"sha256\":\"%s\",\"tensors\":{",
             files[11].sha256);
    api_list_print(one, 0, sizeof begin, begin);
    assert_memory_equal(begin, expected, sizeof begin);
    one->drop(one);
    all->drop(all);
    assert_int_equal(n_cards, 0);
    for (size_t i = 0; i < N_FILES; i++)
        api_tensors_free((struct api_tensors *)(uintptr_t)files[i].tensors);
}

TEST(nothing_is_a_list_too)
{
    char text[14];
    struct api_body *none = api_list_body_all(NULL);
    assert_int_equal(none->length, sizeof text);
    api_list_print(none, 0, sizeof text, text);
    assert_memory_equal(text, "{\"weights\":[]}", sizeof text);
    none->drop(none);
}
