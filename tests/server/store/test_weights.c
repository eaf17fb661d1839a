/* The store of weights without HTTP: holders, guards, ceilings, the folder, allocations that fail, changes at once. */
#include "server/store/weights/weights.h"
#include "server/process/process.h"
#include "server/memory/memory.h"
#include "server/store/store.h"
#include "tests/support/alloc.h"
#include "tests/support/cmocka.h"

#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

enum { FILE_BYTES = 4096, BIG = 1 << 20 };

static const struct api_guard no_guard;

/* A file of one tensor of FILE_BYTES / 2 bytes, all c. */
static size_t file_of(char c, char bytes[FILE_BYTES])
{
    enum { N = FILE_BYTES / 2 };
    int n =
        snprintf(bytes + 8, FILE_BYTES / 2, "{\"t\":{\"dtype\":\"U8\",\"shape\":[%d],\"data_offsets\":[0,%d]}}", N, N);
    memset(bytes, 0, 8);
    bytes[0] = (char)n;
    memset(bytes + 8 + n, c, N);
    return 8 + (size_t)n + N;
}

/* folder "": in memory only. It is compared with memory by weights_reread only. */
static struct weights *store_new(const char *folder, uint64_t bytes_max)
{
    char error[WEIGHTS_ERROR_BYTES] = "";
    struct weights_settings settings = {.contents = &api_contents_weights,
                                        .store = *folder ? folder_store_new(folder, ".safetensors") : NULL,
                                        .bytes_max = bytes_max,
                                        .limit = "--max-weights",
                                        .files_max = WEIGHTS_FILES_MAX};
    assert_int_equal(*folder != 0, settings.store != NULL);
    struct weights *w = weights_new(&settings, error);
    if (!w)
        fail_msg("%s", error);
    return w;
}

/* Puts the file of c, and lets it go. */
static enum api_stored put(const struct api_store *store, const char *name, char c, const struct api_guard *guard)
{
    char bytes[FILE_BYTES], why[256] = "";
    const struct api_weights *made = NULL;
    size_t n = file_of(c, bytes);
    struct api_tensors *tensors = api_tensors_read(bytes, n, why, sizeof why);
    assert_non_null(tensors);
    enum api_stored stored = store->put(store->self, name, bytes, n, tensors, guard, &made);
    assert_true((made != NULL) == (stored <= API_STORED_REPLACED));
    if (made)
        store->release(store->self, made);
    return stored;
}

static const struct api_weights *look(const struct api_store *store, const char *name)
{
    struct api_wanted wanted = {.name = name};
    const struct api_weights *found = NULL;
    enum api_found result = store->find(store->self, &wanted, &found);
    assert_int_equal(result == API_FOUND, found != NULL);
    return found;
}

static enum api_found find_at_once(const struct api_store *store, const char *name, const char *sha256)
{
    struct api_wanted wanted = {.name = name, .sha256 = sha256, .must_not_block = true};
    const struct api_weights *weights = NULL;
    enum api_found found = store->find(store->self, &wanted, &weights);
    if (found == API_FOUND)
        store->release(store->self, weights);
    return found;
}

/* What is stored under name, as one letter; '-' if nothing is. */
static char stored(const struct api_store *store, const char *name)
{
    const struct api_weights *found = look(store, name);
    char c = found ? found->bytes[found->n_bytes - 1] : '-';
    if (found)
        store->release(store->self, found);
    return c;
}

/* ---- In memory ---- */

TEST(finds_what_was_put)
{
    struct weights *w = store_new("", BIG);
    const struct api_store *store = weights_store(w);
    assert_int_equal(put(store, "b", 'x', &no_guard), API_STORED_NEW);
    assert_int_equal(put(store, "a", 'y', &no_guard), API_STORED_NEW);
    assert_int_equal(put(store, "b", 'z', &no_guard), API_STORED_REPLACED);
    assert_int_equal(stored(store, "a"), 'y');
    assert_int_equal(stored(store, "b"), 'z');
    assert_int_equal(stored(store, "c"), '-');
    const struct api_weights *found = look(store, "a");
    assert_int_equal((uintptr_t)found->bytes % 64, 0);
    store->release(store->self, found);
    assert_int_equal(store->remove(store->self, "a", &no_guard), API_STORED_REPLACED);
    assert_int_equal(store->remove(store->self, "a", &no_guard), API_STORED_ABSENT);
    weights_free(w);
}

/* What a list holds is what was stored when it began; a hold of a file is a hold of its card too. */
TEST(cards_outlive_their_files)
{
    struct weights *w = store_new("", BIG);
    const struct api_store *store = weights_store(w);
    const struct api_weights **cards = malloc(store->files_max * sizeof *cards);
    assert_int_equal(store->list(store->self, cards), 0);
    put(store, "b", 'x', &no_guard);
    put(store, "a", 'y', &no_guard);
    const struct api_weights *held = look(store, "b");
    assert_int_equal(store->list(store->self, cards), 2);
    store->hold_card(store->self, cards[1]);
    put(store, "b", 'z', &no_guard);
    store->remove(store->self, "a", &no_guard);
    assert_string_equal(cards[0]->name, "a");
    assert_ptr_equal(cards[1], held);
    assert_int_equal(held->bytes[held->n_bytes - 1], 'x');
    store->release(store->self, held);
    for (int i = 0; i < 2; i++) {
        assert_string_equal(cards[1]->name, "b");
        assert_int_equal(strlen(cards[1]->sha256), API_SHA256_CHARS);
        store->drop_card(store->self, cards[1]);
    }
    store->drop_card(store->self, cards[0]);
    assert_int_equal(store->list(store->self, cards), 1);
    assert_string_equal(cards[0]->name, "b");
    store->drop_card(store->self, cards[0]);
    weights_free(w);
    free(cards);
}

TEST(digests_are_sha256)
{
    struct weights *w = store_new("", BIG);
    const struct api_store *store = weights_store(w);
    static const char bytes[] = "\2\0\0\0\0\0\0\0{}";
    const struct api_weights *made = NULL;
    struct api_tensors *tensors = api_tensors_read(bytes, 10, (char[64]){0}, 64);
    assert_non_null(tensors);
    assert_int_equal(store->put(store->self, "e", bytes, 10, tensors, &no_guard, &made), API_STORED_NEW);
    /* printf '\2\0\0\0\0\0\0\0{}' | sha256sum */
    assert_string_equal(made->sha256, "411a485216e432ece6b9af94fa32154cf79a2a56d4f81266baa50063f45092bd");
    store->release(store->self, made);
    weights_free(w);
}

/* A file that is replaced or removed stays whole for whoever holds it; ASan watches. */
TEST(held_files_outlive_the_name)
{
    struct weights *w = store_new("", BIG);
    const struct api_store *store = weights_store(w);
    put(store, "a", 'x', &no_guard);
    const struct api_weights *old = look(store, "a");
    put(store, "a", 'y', &no_guard);
    assert_int_equal(old->bytes[old->n_bytes - 1], 'x');
    const struct api_weights *now = look(store, "a");
    assert_ptr_not_equal(old, now);
    assert_string_not_equal(old->sha256, now->sha256);
    store->remove(store->self, "a", &no_guard);
    assert_int_equal(stored(store, "a"), '-');
    assert_int_equal(now->bytes[now->n_bytes - 1], 'y');
    store->release(store->self, now);
    store->release(store->self, old);
    weights_free(w);
}

TEST(guards_hold)
{
    struct weights *w = store_new("", BIG);
    const struct api_store *store = weights_store(w);
    const struct api_guard none = {.if_none_match = "*"}, any = {.if_match = "*"}, wrong = {.if_match = "\"0\""};
    assert_int_equal(put(store, "a", 'x', &any), API_STORED_GUARDED);
    assert_int_equal(put(store, "a", 'x', &none), API_STORED_NEW);
    assert_int_equal(put(store, "a", 'y', &none), API_STORED_GUARDED);
    assert_int_equal(put(store, "a", 'y', &wrong), API_STORED_GUARDED);
    assert_int_equal(store->remove(store->self, "a", &wrong), API_STORED_GUARDED);
    assert_int_equal(stored(store, "a"), 'x');
    assert_int_equal(put(store, "a", 'y', &any), API_STORED_REPLACED);
    weights_free(w);
}

TEST(ceilings_hold)
{
    char bytes[FILE_BYTES];
    struct weights *w = store_new("", 2 * file_of('x', bytes));
    const struct api_store *store = weights_store(w);
    assert_int_equal(put(store, "a", 'x', &no_guard), API_STORED_NEW);
    assert_int_equal(put(store, "b", 'x', &no_guard), API_STORED_NEW);
    assert_int_equal(put(store, "c", 'x', &no_guard), API_STORED_FULL);
    assert_int_equal(put(store, "b", 'y', &no_guard), API_STORED_REPLACED);
    store->remove(store->self, "a", &no_guard);
    assert_int_equal(put(store, "c", 'x', &no_guard), API_STORED_NEW);
    weights_free(w);

    w = store_new("", UINT64_MAX);
    store = weights_store(w);
    for (size_t i = 0; i <= store->files_max; i++) {
        char name[32];
        snprintf(name, sizeof name, "w%zu", i * 7919 % (store->files_max + 1));
        assert_int_equal(put(store, name, 'x', &no_guard), i < store->files_max ? API_STORED_NEW : API_STORED_TOO_MANY);
    }
    char near[API_WEIGHT_NAME_MAX + 1];
    assert_true(store->nearest(store->self, "w0x", near));
    weights_free(w);
}

/* Bytes count until the last holder has released them. What does not fit beside a file that is being replaced is taken
 * from the memory of requests, until that file's bytes are freed. */
TEST(held_bytes_count)
{
    char bytes[FILE_BYTES];
    size_t n = file_of('x', bytes);
    struct weights *w = store_new("", 2 * n);
    const struct api_store *store = weights_store(w);
    admission_setup(2 * n, 1); /* of which four fifths may be used so: one file */
    put(store, "a", 'x', &no_guard);
    put(store, "b", 'x', &no_guard);
    assert_int_equal(admission_memory(), 0);
    const struct api_weights *held = look(store, "a");
    assert_int_equal(put(store, "a", 'y', &no_guard), API_STORED_REPLACED);
    assert_int_equal(admission_memory(), n); /* x is still there */
    assert_int_equal(put(store, "a", 'z', &no_guard), API_STORED_NO_ROOM);
    assert_int_equal(put(store, "b", 'z', &no_guard), API_STORED_NO_ROOM);
    assert_int_equal(put(store, "c", 'z', &no_guard), API_STORED_FULL);
    assert_int_equal(store->remove(store->self, "b", &no_guard), API_STORED_REPLACED);
    assert_int_equal(put(store, "b", 'z', &no_guard), API_STORED_NEW); /* the bytes of b were freed */
    store->release(store->self, held);
    assert_int_equal(admission_memory(), 0);
    assert_int_equal(put(store, "a", 'z', &no_guard), API_STORED_REPLACED);
    held = look(store, "a");
    assert_int_equal(store->remove(store->self, "a", &no_guard), API_STORED_REPLACED);
    assert_int_equal(put(store, "c", 'z', &no_guard), API_STORED_NO_ROOM);
    store->release(store->self, held);
    assert_int_equal(put(store, "c", 'z', &no_guard), API_STORED_NEW);
    assert_int_equal(admission_memory(), 0);
    admission_setup(UINT64_MAX, UINT64_MAX);
    weights_free(w);
}

TEST(every_allocation_may_fail)
{
    struct weights *w = store_new("", BIG);
    const struct api_store *store = weights_store(w);
    char bytes[FILE_BYTES];
    size_t n = file_of('x', bytes);
    for (long at = 0; at < 20; at++) {
        const struct api_weights *made = NULL;
        char why[256];
        alloc_fail_at(at);
        struct api_tensors *tensors = api_tensors_read(bytes, n, why, sizeof why);
        enum api_stored result =
            tensors ? store->put(store->self, "a", bytes, n, tensors, &no_guard, &made) : API_STORED_NO_MEMORY;
        alloc_fail_at(-1);
        assert_true(result <= API_STORED_REPLACED || result == API_STORED_NO_MEMORY);
        assert_int_equal(stored(store, "a") == 'x', result <= API_STORED_REPLACED);
        if (made)
            store->release(store->self, made);
        store->remove(store->self, "a", &no_guard);
    }
    weights_free(w);
}

/* ---- The folder ---- */

static char folder[] = "/tmp/posenc-weights-XXXXXX";

static int folder_make(void **state)
{
    memcpy(folder + sizeof folder - 7, "XXXXXX", 6);
    return mkdtemp(folder) ? 0 : -1;
}

/* What another program does in the folder. */
static void write_there(const char *name, const char *bytes, size_t n)
{
    char path[256];
    snprintf(path, sizeof path, "%s/%s.safetensors", folder, name);
    FILE *file = fopen(path, "wb");
    assert_non_null(file);
    assert_int_equal(fwrite(bytes, 1, n, file), n);
    assert_int_equal(fclose(file), 0);
}

static void remove_there(const char *name)
{
    char path[256];
    snprintf(path, sizeof path, "%s/%s.safetensors", folder, name);
    assert_int_equal(unlink(path), 0);
}

static int folder_remove(void **state)
{
    char path[256];
    struct store *store = folder_store_new(folder, ".safetensors");
    struct store_list list;
    assert_int_equal(store->list(store->self, &list, path), STORE_DONE);
    for (size_t i = 0; i < list.n; i++)
        remove_there(list.entries[i].name);
    store_list_drop(&list);
    store_free(store);
    snprintf(path, sizeof path, "%s/.posenc-lock", folder);
    unlink(path);
    return rmdir(folder); /* fails if a draft was left */
}

TEST_BETWEEN(the_folder_has_what_is_stored, folder_make, folder_remove)
{
    struct weights *w = store_new(folder, BIG);
    put(weights_store(w), "a", 'x', &no_guard);
    put(weights_store(w), "b", 'y', &no_guard);
    put(weights_store(w), "a", 'z', &no_guard);
    weights_store(w)->remove(weights_store(w)->self, "b", &no_guard);
    weights_free(w);
    w = store_new(folder, BIG);
    assert_int_equal(stored(weights_store(w), "a"), 'z');
    assert_int_equal(stored(weights_store(w), "b"), '-');
    weights_free(w);
}

TEST_BETWEEN(rereading_finds_the_changes_of_others, folder_make, folder_remove)
{
    char bytes[FILE_BYTES];
    struct weights *w = store_new(folder, BIG);
    const struct api_store *store = weights_store(w);
    put(store, "stays", 'x', &no_guard);
    put(store, "goes", 'x', &no_guard);
    put(store, "breaks", 'x', &no_guard);
    const struct api_weights *same = look(store, "stays");
    size_t n = file_of('y', bytes);
    write_there("comes", bytes, n);
    write_there("breaks", bytes, n - 1);
    remove_there("goes");
    assert_int_equal(stored(store, "goes"), 'x'); /* in memory, until they are compared */
    weights_reread(w);
    assert_int_equal(stored(store, "comes"), 'y');
    assert_int_equal(stored(store, "goes"), '-');
    assert_int_equal(stored(store, "breaks"), 'x');
    const struct api_weights *still = look(store, "stays");
    assert_ptr_equal(same, still); /* what did not change keeps its place */
    store->release(store->self, same);
    store->release(store->self, still);
    weights_free(w);
}

/* Short of memory, the store may keep less new, but forgets nothing that is there. */
TEST_BETWEEN(rereading_without_memory_forgets_nothing, folder_make, folder_remove)
{
    struct weights *w = store_new(folder, BIG);
    const struct api_store *store = weights_store(w);
    for (char c = 'a'; c < 'i'; c++)
        put(store, (char[]){c, '\0'}, c, &no_guard);
    for (long at = 0; at < 40; at++) {
        alloc_fail_at(at);
        weights_reread(w);
        alloc_fail_at(-1);
        for (char c = 'a'; c < 'i'; c++)
            assert_int_equal(stored(store, (char[]){c, '\0'}), c);
    }
    weights_free(w);
}

/* Without memory to read a file, it is not known what it is; it is neither missing nor wrong, and is read the next
 * time. */
TEST_BETWEEN(without_memory_nothing_is_called_missing, folder_make, folder_remove)
{
    char bytes[FILE_BYTES];
    struct weights *w = store_new(folder, BIG);
    const struct api_store *store = weights_store(w);
    size_t n = file_of('y', bytes);
    for (long at = 0; at < 40; at++) {
        struct api_wanted wanted = {.name = "t"};
        const struct api_weights *found = NULL;
        write_there("t", bytes, n);
        alloc_fail_at(at);
        enum api_found result = store->find(store->self, &wanted, &found);
        alloc_fail_at(-1);
        assert_true(result == API_FOUND || result == API_FOUND_UNKNOWN);
        if (found)
            store->release(store->self, found);
        assert_int_equal(stored(store, "t"), 'y');
        remove_there("t");
        weights_reread(w);
        assert_int_equal(stored(store, "t"), '-');
    }
    weights_free(w);
}

TEST(a_folder_that_is_none) { assert_null(folder_store_new("/nonexistent/folder", ".safetensors")); }

/* ---- Two servers on one folder ---- */

/* What one stores, replaces and removes, the other finds: a new name at once, the rest when it compares. */
TEST_BETWEEN(two_servers_share_a_folder, folder_make, folder_remove)
{
    struct weights *w[2] = {store_new(folder, BIG), store_new(folder, BIG)};
    const struct api_store *a = weights_store(w[0]), *b = weights_store(w[1]);
    assert_int_equal(put(a, "t", 'x', &no_guard), API_STORED_NEW);
    assert_int_equal(find_at_once(b, "t", NULL), API_FOUND_LATER);
    assert_int_equal(stored(b, "t"), 'x');
    assert_int_equal(put(b, "t", 'y', &no_guard), API_STORED_REPLACED);
    assert_int_equal(stored(a, "t"), 'x');
    weights_reread(w[0]);
    assert_int_equal(stored(a, "t"), 'y');
    assert_int_equal(b->remove(b->self, "t", &no_guard), API_STORED_REPLACED);
    assert_int_equal(a->remove(a->self, "t", &no_guard), API_STORED_ABSENT);
    assert_int_equal(stored(a, "t"), '-');
    weights_free(w[0]);
    weights_free(w[1]);
}

/* Guards are compared with the folder, not with what this server remembers of it. */
TEST_BETWEEN(guards_hold_between_servers, folder_make, folder_remove)
{
    struct weights *w[2] = {store_new(folder, BIG), store_new(folder, BIG)};
    const struct api_store *a = weights_store(w[0]), *b = weights_store(w[1]);
    const struct api_guard none = {.if_none_match = "*"};
    char tag[API_SHA256_CHARS + 3];
    assert_int_equal(put(a, "t", 'x', &none), API_STORED_NEW);
    assert_int_equal(put(b, "t", 'y', &none), API_STORED_GUARDED);
    assert_int_equal(stored(b, "t"), 'x'); /* the refusal has read it */
    const struct api_weights *first = look(a, "t");
    snprintf(tag, sizeof tag, "\"%s\"", first->sha256);
    const struct api_guard same = {.if_match = tag};
    assert_int_equal(put(b, "t", 'y', &same), API_STORED_REPLACED);
    assert_int_equal(put(a, "t", 'z', &same), API_STORED_GUARDED);
    assert_int_equal(stored(a, "t"), 'y');
    assert_int_equal(a->remove(a->self, "t", &same), API_STORED_GUARDED);
    a->release(a->self, first);
    weights_free(w[0]);
    weights_free(w[1]);
}

/* A request that names a digest never gets another file than the folder has. */
TEST_BETWEEN(a_wanted_digest_looks_again, folder_make, folder_remove)
{
    struct weights *w[2] = {store_new(folder, BIG), store_new(folder, BIG)};
    const struct api_store *a = weights_store(w[0]), *b = weights_store(w[1]);
    put(a, "t", 'x', &no_guard);
    assert_int_equal(stored(b, "t"), 'x');
    put(a, "t", 'y', &no_guard);
    const struct api_weights *now = look(a, "t"), *found = NULL;
    struct api_wanted wanted = {.name = "t", .sha256 = now->sha256, .must_not_block = true};
    assert_int_equal(b->find(b->self, &wanted, &found), API_FOUND_LATER);
    wanted.must_not_block = false;
    assert_int_equal(b->find(b->self, &wanted, &found), API_FOUND);
    assert_string_equal(found->sha256, now->sha256);
    a->release(a->self, now);
    b->release(b->self, found);
    weights_free(w[0]);
    weights_free(w[1]);
}

/* A file beyond the limit is not taken for one that is missing. */
TEST_BETWEEN(a_file_too_many_is_said_to_be_there, folder_make, folder_remove)
{
    char bytes[FILE_BYTES];
    struct weights *w[2] = {store_new(folder, BIG), store_new(folder, file_of('x', bytes))};
    const struct api_store *a = weights_store(w[0]), *b = weights_store(w[1]);
    put(a, "one", 'x', &no_guard);
    put(a, "two", 'x', &no_guard);
    assert_int_equal(stored(b, "one"), 'x');
    struct api_wanted wanted = {.name = "two"};
    const struct api_weights *found = NULL;
    assert_int_equal(b->find(b->self, &wanted, &found), API_FOUND_TOO_LARGE);
    wanted.name = "three";
    assert_int_equal(b->find(b->self, &wanted, &found), API_FOUND_NOTHING);
    wanted.name = "../one";
    assert_int_equal(b->find(b->self, &wanted, &found), API_FOUND_NOTHING);
    weights_free(w[0]);
    weights_free(w[1]);
}

enum { RACERS = 8 };

struct racer {
    const struct api_store *store;
    char c;
    enum api_stored stored;
};

static void *race(void *self)
{
    static const struct api_guard none = {.if_none_match = "*"};
    struct racer *racer = self;
    racer->stored = put(racer->store, "race", racer->c, &none);
    return NULL;
}

/* Of many writers at two servers, one makes the file, and both serve it. */
TEST_BETWEEN(only_one_of_two_servers_is_first, folder_make, folder_remove)
{
    struct weights *w[2] = {store_new(folder, BIG), store_new(folder, BIG)};
    pthread_t threads[RACERS];
    struct racer racers[RACERS];
    char winner = '-';
    for (size_t i = 0; i < RACERS; i++) {
        racers[i] = (struct racer){.store = weights_store(w[i % 2]), .c = (char)('a' + i)};
        assert_int_equal(pthread_create(&threads[i], NULL, race, &racers[i]), 0);
    }
    for (size_t i = 0; i < RACERS; i++) {
        pthread_join(threads[i], NULL);
        assert_true(racers[i].stored == API_STORED_GUARDED || (racers[i].stored == API_STORED_NEW && winner == '-'));
        winner = racers[i].stored == API_STORED_NEW ? racers[i].c : winner;
    }
    assert_int_equal(stored(weights_store(w[0]), "race"), winner);
    assert_int_equal(stored(weights_store(w[1]), "race"), winner);
    weights_free(w[0]);
    weights_free(w[1]);
}

/* The thread that compares finds what others have stored; it ends at once when it is to. */
TEST_BETWEEN(it_refreshes_by_itself, folder_make, folder_remove)
{
    char error[WEIGHTS_ERROR_BYTES];
    struct weights_settings settings = {.contents = &api_contents_weights,
                                        .store = folder_store_new(folder, ".safetensors"),
                                        .bytes_max = BIG,
                                        .files_max = WEIGHTS_FILES_MAX,
                                        .refresh_ms = 5};
    struct weights *w = weights_new(&settings, error), *other = store_new(folder, BIG);
    assert_true(weights_start(w));
    put(weights_store(other), "t", 'x', &no_guard);
    for (int i = 0; i < 2000 && find_at_once(weights_store(w), "t", NULL) != API_FOUND; i++)
        usleep(5000);
    assert_int_equal(find_at_once(weights_store(w), "t", NULL), API_FOUND);
    weights_free(w);
    weights_free(other);
}

/* ---- At once ---- */

static void *change(void *self)
{
    const struct api_store *store = self;
    for (int i = 0; i < 300; i++) {
        put(store, "a", (char)('x' + i % 2), &no_guard);
        if (i % 7 == 0)
            store->remove(store->self, "a", &no_guard);
    }
    return NULL;
}

/* Every byte of a held file is of one writer. */
static void *look_often(void *self)
{
    const struct api_store *store = self;
    bool fine = true;
    for (int i = 0; i < 3000; i++) {
        const struct api_weights *w = look(store, "a");
        char c = w ? w->bytes[w->n_bytes - 1] : '\0';
        for (size_t j = 1; w && j <= FILE_BYTES / 2; j++)
            fine = fine && w->bytes[w->n_bytes - j] == c;
        if (w)
            store->release(store->self, w);
    }
    return fine ? self : NULL;
}

TEST(changes_and_readers_at_once)
{
    struct weights *w = store_new("", BIG);
    struct api_store *store = (struct api_store *)(uintptr_t)weights_store(w);
    pthread_t threads[4];
    for (size_t i = 0; i < 4; i++)
        assert_int_equal(pthread_create(&threads[i], NULL, i < 2 ? change : look_often, store), 0);
    for (size_t i = 0; i < 4; i++) {
        void *result;
        pthread_join(threads[i], &result);
        if (i >= 2)
            assert_non_null(result);
    }
    weights_free(w);
}

TEST(names)
{
    static const char *const good[] = {"a", "0", "Z", "t5-small", "a.b_c-d", "a..b", "9."};
    static const char *const bad[] = {"",     ".",   "..",  ".a",   "-a",  "_a",      "a/b",
                                      "../a", "a b", "a\n", "a\\b", "a:b", "\xc3\xa9"};
    char longest[API_WEIGHT_NAME_MAX + 2] = {0};
    for (size_t i = 0; i < sizeof good / sizeof *good; i++)
        assert_true(api_weight_name_is_valid(good[i]));
    for (size_t i = 0; i < sizeof bad / sizeof *bad; i++)
        assert_false(api_weight_name_is_valid(bad[i]));
    memset(longest, 'a', API_WEIGHT_NAME_MAX);
    assert_true(api_weight_name_is_valid(longest));
    longest[API_WEIGHT_NAME_MAX] = 'a';
    assert_false(api_weight_name_is_valid(longest));
}

/* Two kinds in one folder: neither sees the other's files, and each has ceilings of its own. */
TEST_BETWEEN(presets_are_kept_apart, folder_make, folder_remove)
{
    static const char text[] = "{\"config\":{\"scheme\":\"rope\"}}";
    char error[WEIGHTS_ERROR_BYTES] = "", why[256];
    struct weights_settings settings = {.contents = &api_contents_presets,
                                        .store = folder_store_new(folder, ".preset.json"),
                                        .bytes_max = 100,
                                        .files_max = 2,
                                        .is_beside = true};
    struct weights *w = store_new(folder, BIG), *p = weights_new(&settings, error);
    assert_non_null(p);
    const struct api_store *weights = weights_store(w), *presets = weights_store(p);
    assert_int_equal(put(weights, "a", 'x', &no_guard), API_STORED_NEW);
    for (int i = 0; i < 3; i++) {
        const struct api_weights *made = NULL;
        void *contents = api_contents_presets.read(text, sizeof text - 1, why, sizeof why);
        assert_int_equal(presets->put(presets->self, (char[]){(char)('a' + i), '\0'}, text, sizeof text - 1, contents,
                                      &no_guard, &made),
                         i < 2 ? API_STORED_NEW : API_STORED_TOO_MANY);
        if (made)
            presets->release(presets->self, made);
    }
    weights_reread(w);
    weights_reread(p);
    assert_int_equal(stored(weights, "a"), 'x');
    assert_null(look(weights, "b"));
    const struct api_weights *kept = look(presets, "b");
    assert_non_null(kept);
    assert_int_equal(kept->n_bytes, sizeof text - 1);
    presets->release(presets->self, kept);
    assert_int_equal(presets->remove(presets->self, "a", &no_guard), API_STORED_REPLACED);
    assert_int_equal(presets->remove(presets->self, "b", &no_guard), API_STORED_REPLACED);
    weights_free(p);
    weights_free(w);
}

void tests_begin(void)
{
    api_setup();
    log_setup(LOG_FORMAT_TEXT, LOG_ERROR, STDERR_FILENO); /* what is passed over is told by warnings */
}
