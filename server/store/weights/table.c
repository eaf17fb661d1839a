/* Owns the files in memory and the table of their names. A thread that modifies it holds the lock only for that moment.
 *
 * A file is counted by references and never changes: a request that looks a name up holds the bytes that it found, and
 * a PUT beside it puts another file under the name. So answers need no lock, and memory of a replaced file is free when
 * its last reader ends (read-copy-update, with counts instead of grace periods). A list of thousands of names needs no
 * bytes: it holds cards, which outlive them.
 *
 * Room is the hard part. Bytes count for the limit (--max-weights) until they are freed, also those of a replaced file
 * that is still being read, and they are counted before they are read or copied, so that several uploads together
 * cannot pass the limit. A file may be as large as half of the limit and more, and then the new one does not fit beside
 * the old one of its name. What is lacking is taken from --max-memory, and given back when the old bytes are freed.
 *
 * Invariant: n_held + n_reserved - n_beside <= bytes_max, where n_beside, of --max-memory, is at most the bytes of
 * files that are being replaced.
 *
 * Changes are counted, so that a list of the store, which is old when it arrives, does not undo what came later.
 *
 * Sorted by name, because lists are, and a few thousand pointers move in microseconds. */
#include "server/store/weights/weights.h"

#include "server/memory/memory.h"

#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

struct table {
    pthread_mutex_t lock; /* protects all fields below, and the last two of the files */
    struct file **files;  /* sorted by name */
    size_t n_files, files_max;
    uint64_t n_bytes, n_reserved, bytes_max; /* n_bytes: of the files that have a name */
    size_t n_files_reserved;
    uint64_t n_changes;
    /* Without the lock: of all files that were put and are not freed; and what of it --max-memory counts. */
    atomic_uint_fast64_t n_held, n_beside;
};

/* ---- One file -------------------------------------------------------------------------------------------------- */

void file_drop_card(struct file *file)
{
    if (atomic_fetch_sub(&file->n_cards, 1) > 1)
        return;
    file->kind->free(file->contents);
    free(file);
}

static void give_beside(struct table *table, uint64_t n)
{
    if (n == 0)
        return;
    atomic_fetch_sub(&table->n_beside, n);
    admission_give_body(0, n);
}

void file_drop(struct file *file)
{
    if (!file || atomic_fetch_sub(&file->n_holders, 1) > 1)
        return;
    free(file->bytes);
    if (file->table) {
        atomic_fetch_sub(&file->table->n_held, file->base.n_bytes);
        give_beside(file->table, file->n_beside);
    }
    file_drop_card(file);
}

void file_hold(struct file *file) { atomic_fetch_add(&file->n_holders, 1); }

void file_hold_card(struct file *file) { atomic_fetch_add(&file->n_cards, 1); }

struct file *file_new(const char *name, char *bytes, size_t n, const char *sha256, const struct api_contents *kind,
                      void *contents)
{
    struct file *file = bytes && contents ? calloc(1, sizeof *file) : NULL;
    if (!file) {
        free(bytes);
        kind->free(contents);
        return NULL;
    }
    snprintf(file->name, sizeof file->name, "%s", name);
    file->bytes = bytes;
    file->kind = kind;
    file->contents = contents;
    file->base = (struct api_stored_file){.name = file->name, .bytes = bytes, .n_bytes = n, .contents = contents};
    snprintf(file->base.sha256, sizeof file->base.sha256, "%s", sha256);
    atomic_init(&file->n_holders, 1);
    atomic_init(&file->n_cards, 1);
    return file;
}

/* ---- Places; all with the lock --------------------------------------------------------------------------------- */

static const char *name_at(const void *files, size_t i) { return ((struct file *const *)files)[i]->name; }

static size_t place_of(const struct table *table, const char *name, bool *is_there)
{
    return store_place(table->files, table->n_files, name_at, name, is_there);
}

/* Borrowed; NULL: not found. */
static struct file *look_up(const struct table *table, const char *name)
{
    bool is_there;
    size_t i = place_of(table, name, &is_there);
    return is_there ? table->files[i] : NULL;
}

/* Returns the table's reference. */
static struct file *take_out(struct table *table, size_t i)
{
    struct file *file = table->files[i];
    table->n_files--;
    memmove(&table->files[i], &table->files[i + 1], (table->n_files - i) * sizeof *table->files);
    table->n_bytes -= file->base.n_bytes;
    table->n_changes++;
    return file;
}

/* ---- Looking --------------------------------------------------------------------------------------------------- */

struct file *table_find(struct table *table, const char *name)
{
    pthread_mutex_lock(&table->lock);
    struct file *file = look_up(table, name);
    if (file)
        file_hold(file);
    pthread_mutex_unlock(&table->lock);
    return file;
}

void table_describe(struct table *table, const char *name, char *version, char *sha256)
{
    pthread_mutex_lock(&table->lock);
    const struct file *file = look_up(table, name);
    snprintf(version, STORE_VERSION_BYTES, "%s", file ? file->version : "");
    snprintf(sha256, STORE_DIGEST_BYTES, "%s", file ? file->base.sha256 : "");
    pthread_mutex_unlock(&table->lock);
}

bool table_nearest(struct table *table, const char *name, char *nearest)
{
    const char *names[TABLE_FILES_MAX + 1];
    pthread_mutex_lock(&table->lock);
    for (size_t i = 0; i < table->n_files; i++)
        names[i] = table->files[i]->name;
    names[table->n_files] = NULL;
    const char *found = pe_nearest(name, names);
    if (found)
        strcpy(nearest, found); /* after unlocking, the table may free the name */
    pthread_mutex_unlock(&table->lock);
    return found;
}

size_t table_cards(struct table *table, const struct api_stored_file **cards)
{
    pthread_mutex_lock(&table->lock);
    size_t n = table->n_files;
    for (size_t i = 0; i < n; i++) {
        cards[i] = &table->files[i]->base;
        file_hold_card(table->files[i]);
    }
    pthread_mutex_unlock(&table->lock);
    return n;
}

void table_figures(struct table *table, size_t *n_files, uint64_t *n_bytes)
{
    pthread_mutex_lock(&table->lock);
    *n_files = table->n_files;
    *n_bytes = table->n_bytes;
    pthread_mutex_unlock(&table->lock);
}

/* ---- Changing -------------------------------------------------------------------------------------------------- */

static uint64_t left_of(uint64_t all, uint64_t taken) { return taken < all ? all - taken : 0; }

/* With the lock. What does not fit beside the old file is taken from --max-memory, if only the old one is in the way.
 */
static bool find_room(struct table *table, const struct file *old, struct room *room)
{
    uint64_t taken = atomic_load(&table->n_held) + table->n_reserved - atomic_load(&table->n_beside);
    uint64_t left = left_of(table->bytes_max, taken), lacks = left_of(room->n, left);
    if (lacks > 0 && (!old || lacks > old->base.n_bytes || !admission_take_body(0, lacks)))
        return false;
    room->n_beside = lacks;
    atomic_fetch_add(&table->n_beside, lacks);
    table->n_reserved += room->n;
    table->n_files_reserved++;
    return true;
}

enum api_stored table_reserve(struct table *table, const char *name, uint64_t n, struct room *room)
{
    *room = (struct room){.n = n};
    pthread_mutex_lock(&table->lock);
    const struct file *old = look_up(table, name);
    enum api_stored stored = old ? API_STORED_REPLACED : API_STORED_NEW;
    if (n > left_of(table->bytes_max, table->n_bytes - (old ? old->base.n_bytes : 0)))
        stored = API_STORED_FULL;
    else if (!old && table->n_files + table->n_files_reserved >= table->files_max)
        stored = API_STORED_TOO_MANY;
    else if (!find_room(table, old, room))
        stored = API_STORED_NO_ROOM;
    pthread_mutex_unlock(&table->lock);
    return stored;
}

/* With the lock. */
static void end_reservation(struct table *table, const struct room *room)
{
    table->n_reserved -= room->n;
    table->n_files_reserved--;
}

void table_give_back(struct table *table, const struct room *room)
{
    pthread_mutex_lock(&table->lock);
    end_reservation(table, room);
    pthread_mutex_unlock(&table->lock);
    give_beside(table, room->n_beside);
}

void table_put(struct table *table, struct file *file, const char *version, const struct room *room)
{
    pthread_mutex_lock(&table->lock);
    end_reservation(table, room);
    file->table = table;
    atomic_fetch_add(&table->n_held, file->base.n_bytes);
    bool is_there;
    size_t i = place_of(table, file->name, &is_there);
    struct file *old = is_there ? table->files[i] : NULL;
    if (!old) {
        memmove(&table->files[i + 1], &table->files[i], (table->n_files - i) * sizeof *table->files);
        table->n_files++;
    } else {
        old->n_beside = room->n_beside;
    }
    table->files[i] = file;
    table->n_bytes += file->base.n_bytes - (old ? old->base.n_bytes : 0);
    snprintf(file->version, sizeof file->version, "%s", version);
    file->changed_at = ++table->n_changes;
    pthread_mutex_unlock(&table->lock);
    if (!old) /* it was removed meanwhile */
        give_beside(table, room->n_beside);
    file_drop(old);
}

void table_remove(struct table *table, const char *name)
{
    pthread_mutex_lock(&table->lock);
    bool is_there;
    size_t i = place_of(table, name, &is_there);
    struct file *old = is_there ? take_out(table, i) : NULL;
    pthread_mutex_unlock(&table->lock);
    file_drop(old);
}

void table_revise(struct table *table, const char *name, const char *version)
{
    pthread_mutex_lock(&table->lock);
    struct file *file = look_up(table, name);
    if (file) {
        snprintf(file->version, sizeof file->version, "%s", version);
        file->changed_at = ++table->n_changes;
    }
    pthread_mutex_unlock(&table->lock);
}

/* ---- Comparing with a list ------------------------------------------------------------------------------------- */

uint64_t table_now(struct table *table)
{
    pthread_mutex_lock(&table->lock);
    uint64_t now = table->n_changes;
    pthread_mutex_unlock(&table->lock);
    return now;
}

void table_keep_listed(struct table *table, const struct store_list *list, uint64_t since)
{
    pthread_mutex_lock(&table->lock);
    for (size_t i = table->n_files; i-- > 0;)
        if (table->files[i]->changed_at <= since && !store_list_find(list, table->files[i]->name))
            file_drop(take_out(table, i));
    pthread_mutex_unlock(&table->lock);
}

bool table_is_old(struct table *table, const struct store_entry *entry, uint64_t since)
{
    pthread_mutex_lock(&table->lock);
    const struct file *file = look_up(table, entry->name);
    bool is_old = !file || (file->changed_at <= since && strcmp(file->version, entry->version) != 0);
    pthread_mutex_unlock(&table->lock);
    return is_old;
}

/* ---- The whole ------------------------------------------------------------------------------------------------- */

struct table *table_new(uint64_t bytes_max, size_t files_max)
{
    struct table *table = calloc(1, sizeof *table);
    struct file **files = calloc(files_max, sizeof(struct file *));
    if (!table || !files) {
        free(table);
        free(files);
        return NULL;
    }
    table->files = files;
    table->bytes_max = bytes_max;
    table->files_max = files_max;
    pthread_mutex_init(&table->lock, NULL);
    return table;
}

void table_free(struct table *table)
{
    if (!table)
        return;
    for (size_t i = 0; i < table->n_files; i++)
        file_drop(table->files[i]);
    free(table->files);
    pthread_mutex_destroy(&table->lock);
    free(table);
}
