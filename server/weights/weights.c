/* Owns stored weights: a sorted table of reference-counted files, and the order of changes to it.
 *
 * There are two locks. A thread that changes the store holds `change`, also during disk operations. `table` is held
 * only for the moments in which the table is read or modified, so that a look-up never waits for a disk. */
#include "server/weights/weights.h"

#include "server/auth/digest.h"
#include "server/log.h"
#include "server/weights/weights_folder.h"

#include <assert.h>
#include <errno.h>
#include <pthread.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* The nearest name is found by comparing with every name: half a millisecond for this many. */
enum { FILES_MAX = 4096, ALIGNMENT = 64 };

struct file {
    struct api_weights face; /* must be first: api/ holds its address */
    atomic_size_t n_holders; /* references to the bytes; all references to the bytes together count as one reference to
                                the card */
    atomic_size_t n_cards;
    char name[API_WEIGHT_NAME_MAX + 1];
    char *bytes;
    struct api_tensors *tensors;
};

struct weights {
    struct api_store store;
    char *folder; /* NULL: memory only */
    pthread_mutex_t change, table;
    struct file **files; /* sorted by name; modified only with both locks held */
    size_t n_files;
    uint64_t n_bytes;
};

/* ---- One file -------------------------------------------------------------------------------------------------- */

static void card_drop(struct file *file)
{
    if (atomic_fetch_sub(&file->n_cards, 1) > 1)
        return;
    api_tensors_free(file->tensors);
    free(file);
}

static void file_drop(struct file *file)
{
    if (!file || atomic_fetch_sub(&file->n_holders, 1) > 1)
        return;
    free(file->bytes);
    card_drop(file);
}

static void digest(const char *bytes, size_t n, char *text)
{
    uint8_t sum[DIGEST_BYTES];
    digest_make(bytes, n, sum);
    digest_print(sum, text);
}

/* Allocates n bytes and one more: reading a file requests one byte too many, to detect its end. */
static char *bytes_new(size_t n)
{
    return n < SIZE_MAX / 2 ? aligned_alloc(ALIGNMENT, (n + ALIGNMENT) / ALIGNMENT * ALIGNMENT) : NULL;
}

/* Takes bytes and tensors, also on failure. The file has one reference. */
static struct file *file_new(const char *name, char *bytes, size_t n, struct api_tensors *tensors)
{
    struct file *file = bytes && tensors ? calloc(1, sizeof *file) : NULL;
    if (!file) {
        free(bytes);
        api_tensors_free(tensors);
        return NULL;
    }
    snprintf(file->name, sizeof file->name, "%s", name);
    file->bytes = bytes;
    file->tensors = tensors;
    file->face = (struct api_weights){.name = file->name, .bytes = bytes, .n_bytes = n, .tensors = tensors};
    digest(bytes, n, file->face.sha256);
    atomic_init(&file->n_holders, 1);
    atomic_init(&file->n_cards, 1);
    return file;
}

/* ---- The table ------------------------------------------------------------------------------------------------- */

/* The index of name, or the index at which to insert it. */
static size_t place_of(const struct weights *w, const char *name)
{
    size_t low = 0, high = w->n_files;
    while (low < high) {
        size_t middle = low + (high - low) / 2;
        if (strcmp(w->files[middle]->name, name) < 0)
            low = middle + 1;
        else
            high = middle;
    }
    return low;
}

/* Borrowed; NULL: not found. Call it with one of the locks held. */
static struct file *look_up(const struct weights *w, const char *name)
{
    size_t i = place_of(w, name);
    return i < w->n_files && strcmp(w->files[i]->name, name) == 0 ? w->files[i] : NULL;
}

/* Takes the caller's reference to file. A file of the same name loses the table's reference. Call it with `change` held
 * and room for one more file. */
static void table_put(struct weights *w, struct file *file)
{
    pthread_mutex_lock(&w->table);
    size_t i = place_of(w, file->name);
    struct file *old = look_up(w, file->name);
    if (!old) {
        memmove(&w->files[i + 1], &w->files[i], (w->n_files - i) * sizeof *w->files);
        w->n_files++;
    }
    w->files[i] = file;
    w->n_bytes += file->face.n_bytes - (old ? old->face.n_bytes : 0);
    pthread_mutex_unlock(&w->table);
    file_drop(old);
}

static void table_remove(struct weights *w, struct file *file)
{
    pthread_mutex_lock(&w->table);
    size_t i = place_of(w, file->name);
    assert(w->files[i] == file);
    w->n_files--;
    memmove(&w->files[i], &w->files[i + 1], (w->n_files - i) * sizeof *w->files);
    w->n_bytes -= file->face.n_bytes;
    pthread_mutex_unlock(&w->table);
    file_drop(file);
}

/* May n bytes take the place of old (NULL: be added)? */
static enum api_stored room_for(const struct weights *w, const struct file *old, uint64_t n)
{
    uint64_t others = w->n_bytes - (old ? old->face.n_bytes : 0);
    if (n > w->store.bytes_max || others > w->store.bytes_max - n)
        return API_STORED_FULL;
    if (!old && w->n_files == FILES_MAX)
        return API_STORED_TOO_MANY;
    return old ? API_STORED_REPLACED : API_STORED_NEW;
}

/* ---- What the language asks ------------------------------------------------------------------------------------ */

static const struct api_weights *hold(struct file *file)
{
    if (!file)
        return NULL;
    atomic_fetch_add(&file->n_holders, 1);
    return &file->face;
}

static const struct api_weights *find(void *self, const char *name)
{
    struct weights *w = self;
    pthread_mutex_lock(&w->table);
    const struct api_weights *found = hold(look_up(w, name));
    pthread_mutex_unlock(&w->table);
    return found;
}

static void release(void *self, const struct api_weights *face)
{
    (void)self;
    file_drop((struct file *)(uintptr_t)face);
}

static void hold_card(void *self, const struct api_weights *face)
{
    (void)self;
    atomic_fetch_add(&((struct file *)(uintptr_t)face)->n_cards, 1);
}

static void drop_card(void *self, const struct api_weights *face)
{
    (void)self;
    card_drop((struct file *)(uintptr_t)face);
}

static size_t list(void *self, const struct api_weights **cards)
{
    struct weights *w = self;
    pthread_mutex_lock(&w->table);
    size_t n = w->n_files;
    for (size_t i = 0; i < n; i++) {
        cards[i] = &w->files[i]->face;
        hold_card(w, cards[i]);
    }
    pthread_mutex_unlock(&w->table);
    return n;
}

static bool nearest(void *self, const char *name, char *near)
{
    struct weights *w = self;
    const char *names[FILES_MAX + 1];
    pthread_mutex_lock(&w->table);
    for (size_t i = 0; i < w->n_files; i++)
        names[i] = w->files[i]->name;
    names[w->n_files] = NULL;
    const char *found = pe_nearest(name, names);
    if (found)
        strcpy(near, found); /* after unlocking, the table may free the name */
    pthread_mutex_unlock(&w->table);
    return found;
}

/* Call it with `change` held. Nothing can fail once the file is on disk. */
static enum api_stored keep(struct weights *w, struct file *file, const struct api_guard *guard)
{
    struct file *old = look_up(w, file->name);
    enum api_stored stored = room_for(w, old, file->face.n_bytes);
    if (!api_guard_allows(guard, old ? old->face.sha256 : NULL))
        return API_STORED_GUARDED;
    if (stored > API_STORED_REPLACED)
        return stored;
    if (w->folder && !weights_folder_write(w->folder, file->name, file->bytes, file->face.n_bytes)) {
        log_error("weights %s: could not be written to %s: %s", file->name, w->folder, strerror(errno));
        return API_STORED_FAILED;
    }
    hold(file); /* the table's reference */
    table_put(w, file);
    return stored;
}

static enum api_stored put(void *self, const char *name, const char *bytes, size_t n, struct api_tensors *tensors,
                           const struct api_guard *guard, const struct api_weights **face)
{
    struct weights *w = self;
    if (n > w->store.bytes_max) {
        api_tensors_free(tensors);
        return API_STORED_FULL;
    }
    char *copy = bytes_new(n);
    if (copy)
        memcpy(copy, bytes, n);
    struct file *file = file_new(name, copy, n, tensors);
    if (!file)
        return API_STORED_NO_MEMORY;
    pthread_mutex_lock(&w->change);
    enum api_stored stored = keep(w, file, guard);
    pthread_mutex_unlock(&w->change);
    if (stored <= API_STORED_REPLACED)
        *face = &file->face;
    else
        file_drop(file);
    return stored;
}

static enum api_stored take_away(struct weights *w, struct file *file, const struct api_guard *guard)
{
    if (!file)
        return API_STORED_ABSENT;
    if (!api_guard_allows(guard, file->face.sha256))
        return API_STORED_GUARDED;
    if (w->folder && !weights_folder_remove(w->folder, file->name)) {
        log_error("weights %s: could not be removed from %s: %s", file->name, w->folder, strerror(errno));
        return API_STORED_FAILED;
    }
    table_remove(w, file);
    return API_STORED_REPLACED;
}

static enum api_stored remove_file(void *self, const char *name, const struct api_guard *guard)
{
    struct weights *w = self;
    pthread_mutex_lock(&w->change);
    enum api_stored stored = take_away(w, look_up(w, name), guard);
    pthread_mutex_unlock(&w->change);
    return stored;
}

/* ---- The folder ------------------------------------------------------------------------------------------------ */

/* Creates the entry of a file on disk; NULL: the log gives the reason. */
static struct file *file_load(const struct weights *w, const char *name, uint64_t n_bytes)
{
    size_t n = (size_t)n_bytes;
    char why[WEIGHTS_ERROR_BYTES] = "", *bytes = bytes_new(n);
    if (!bytes)
        snprintf(why, sizeof why, "no memory");
    else if (!weights_folder_read(w->folder, name, bytes, &n))
        snprintf(why, sizeof why, "%s", strerror(errno));
    else if (n != n_bytes)
        snprintf(why, sizeof why, "its size changes while it is read");
    struct api_tensors *tensors = *why ? NULL : api_tensors_read(bytes, n, why, sizeof why);
    struct file *file = file_new(name, bytes, n, tensors);
    if (!file)
        log_warn("weights %s of %s are passed over: %s", name, w->folder, *why ? why : "no memory");
    return file;
}

static void load(struct weights *w, const char *name)
{
    uint64_t n = 0;
    struct file *old = look_up(w, name);
    if (!weights_folder_size(w->folder, name, &n)) {
        log_warn("weights %s of %s are passed over: %s", name, w->folder, strerror(errno));
        return;
    }
    enum api_stored stored = room_for(w, old, n);
    if (stored > API_STORED_REPLACED) {
        log_warn("weights %s of %s are passed over: %s", name, w->folder,
                 stored == API_STORED_FULL ? "with them all together would pass --max-weights" : "too many files");
        return;
    }
    struct file *file = file_load(w, name, n);
    if (file && old && strcmp(old->face.sha256, file->face.sha256) == 0)
        file_drop(file);
    else if (file)
        table_put(w, file);
}

static int compare_names(const void *name, const void *listed) { return strcmp(name, *(char *const *)listed); }

static bool is_listed(char *const *names, size_t n, const char *name)
{
    return n > 0 && bsearch(name, names, n, sizeof *names, compare_names); /* the folder's names are sorted */
}

/* Call it with `change` held. Files that have disappeared are removed first, to free their memory. */
static bool read_folder(struct weights *w)
{
    char **names;
    size_t n, n_drafts = weights_folder_clean(w->folder);
    if (n_drafts > 0)
        log_info("weights: %zu half-written files of a crash are removed from %s", n_drafts, w->folder);
    if (!weights_folder_list(w->folder, &names, &n))
        return false;
    for (size_t i = w->n_files; i-- > 0;)
        if (!is_listed(names, n, w->files[i]->name))
            table_remove(w, w->files[i]);
    for (size_t i = 0; i < n; i++)
        load(w, names[i]);
    weights_folder_list_free(names, n);
    log_info("weights: %zu files, %llu bytes, from %s", w->n_files, (unsigned long long)w->n_bytes, w->folder);
    return true;
}

void weights_reread(struct weights *w)
{
    if (!w->folder)
        return;
    pthread_mutex_lock(&w->change);
    if (!read_folder(w))
        log_error("weights: %s cannot be read: %s; what was stored stays", w->folder, strerror(errno));
    pthread_mutex_unlock(&w->change);
}

/* ---- The whole ------------------------------------------------------------------------------------------------- */

struct weights *weights_new(const char *folder, uint64_t bytes_max, char *error)
{
    struct weights *w = calloc(1, sizeof *w);
    if (w) {
        w->store = (struct api_store){.self = w,
                                      .bytes_max = bytes_max,
                                      .files_max = FILES_MAX,
                                      .find = find,
                                      .release = release,
                                      .list = list,
                                      .hold_card = hold_card,
                                      .drop_card = drop_card,
                                      .nearest = nearest,
                                      .put = put,
                                      .remove = remove_file};
        pthread_mutex_init(&w->change, NULL);
        pthread_mutex_init(&w->table, NULL);
        w->files = calloc(FILES_MAX, sizeof(struct file *));
        w->folder = *folder ? strdup(folder) : NULL;
    }
    errno = ENOMEM;
    if (w && w->files && (!*folder || (w->folder && read_folder(w))))
        return w;
    snprintf(error, WEIGHTS_ERROR_BYTES, "--weights-dir %s: %s", folder, strerror(errno));
    weights_free(w);
    return NULL;
}

void weights_free(struct weights *w)
{
    if (!w)
        return;
    for (size_t i = 0; i < w->n_files; i++)
        file_drop(w->files[i]);
    free(w->files);
    free(w->folder);
    pthread_mutex_destroy(&w->change);
    pthread_mutex_destroy(&w->table);
    free(w);
}

const struct api_store *weights_store(const struct weights *w) { return &w->store; }
