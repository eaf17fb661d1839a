/* The store of weights without HTTP: holders, ceilings, allocations that fail, changes at once. What a server shows of
 * it is tested over sockets: tests/http/store/test_weights*.py, tests/http/models/test_presets_team.py. */
#include "server/store/weights/weights.h"
#include "server/process/process.h"
#include "server/memory/memory.h"
#include "server/store/store.h"
#include "tests/support/alloc.h"
#include "tests/support/folder.h"

#include <pthread.h>
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

/* where "": in memory only. It is compared with memory by weights_reread only. */
static struct weights *store_new(const char *where, uint64_t bytes_max)
{
    char error[WEIGHTS_ERROR_BYTES] = "";
    struct weights_settings settings = {.contents = &api_contents_weights,
                                        .store = *where ? folder_store_new(where, ".safetensors") : NULL,
                                        .bytes_max = bytes_max,
                                        .limit = "--max-weights",
                                        .files_max = WEIGHTS_FILES_MAX};
    assert_int_equal(*where != 0, settings.store != NULL);
    struct weights *w = weights_new(&settings, error);
    if (!w)
        fail_msg("%s", error);
    return w;
}

/* Puts the file of c, and lets it go. */
static enum api_stored put(const struct api_store *store, const char *name, char c, const struct api_guard *guard)
{
    char bytes[FILE_BYTES], why[256] = "";
    const struct api_stored_file *made = NULL;
    size_t n = file_of(c, bytes);
    struct api_tensors *tensors = api_tensors_read(bytes, n, why, sizeof why);
    assert_non_null(tensors);
    enum api_stored stored = store->put(store->self, name, bytes, n, tensors, guard, &made);
    assert_true((made != NULL) == (stored <= API_STORED_REPLACED));
    if (made)
        store->release(store->self, made);
    return stored;
}

static const struct api_stored_file *look(const struct api_store *store, const char *name)
{
    struct api_wanted wanted = {.name = name};
    const struct api_stored_file *found = NULL;
    enum api_found result = store->find(store->self, &wanted, &found);
    assert_int_equal(result == API_FOUND, found != NULL);
    return found;
}

/* What is stored under name, as one letter; '-' if nothing is. */
static char stored(const struct api_store *store, const char *name)
{
    const struct api_stored_file *found = look(store, name);
    char c = found ? found->bytes[found->n_bytes - 1] : '-';
    if (found)
        store->release(store->self, found);
    return c;
}

/* ---- In memory ---- */

/* What a list holds is what was stored when it began; a hold of a file is a hold of its card too. */
TEST(cards_outlive_their_files)
{
    struct weights *w = store_new("", BIG);
    const struct api_store *store = weights_store(w);
    const struct api_stored_file **cards = malloc(store->files_max * sizeof *cards);
    assert_int_equal(store->list(store->self, cards), 0);
    put(store, "b", 'x', &no_guard);
    put(store, "a", 'y', &no_guard);
    const struct api_stored_file *held = look(store, "b");
    assert_int_equal((uintptr_t)held->bytes % 64, 0);
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

TEST(files_have_a_most)
{
    struct weights *w = store_new("", UINT64_MAX);
    const struct api_store *store = weights_store(w);
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
    const struct api_stored_file *held = look(store, "a");
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
        const struct api_stored_file *made = NULL;
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

/* Short of memory, the store may keep less new, but forgets nothing that is there, and reads nothing again. */
TEST_BETWEEN(rereading_without_memory_forgets_nothing, folder_make, folder_remove)
{
    struct weights *w = store_new(folder, BIG);
    const struct api_store *store = weights_store(w);
    for (char c = 'a'; c < 'i'; c++)
        put(store, (char[]){c, '\0'}, c, &no_guard);
    const struct api_stored_file *before = look(store, "a");
    for (long at = 0; at < 40; at++) {
        alloc_fail_at(at);
        weights_reread(w);
        alloc_fail_at(-1);
        for (char c = 'a'; c < 'i'; c++)
            assert_int_equal(stored(store, (char[]){c, '\0'}), c);
    }
    const struct api_stored_file *after = look(store, "a");
    assert_ptr_equal(after, before);
    store->release(store->self, before);
    store->release(store->self, after);
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
        const struct api_stored_file *found = NULL;
        write_file("t.safetensors", bytes, n);
        alloc_fail_at(at);
        enum api_found result = store->find(store->self, &wanted, &found);
        alloc_fail_at(-1);
        assert_true(result == API_FOUND || result == API_FOUND_UNKNOWN);
        if (found)
            store->release(store->self, found);
        assert_int_equal(stored(store, "t"), 'y');
        assert_int_equal(unlink(path_of("t.safetensors")), 0);
        weights_reread(w);
        assert_int_equal(stored(store, "t"), '-');
    }
    weights_free(w);
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
        const struct api_stored_file *w = look(store, "a");
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

void tests_begin(void)
{
    log_setup(LOG_FORMAT_TEXT, LOG_ERROR, STDERR_FILENO); /* what is passed over is told by warnings */
}
