/* Owns the files in memory and the table of their names. A thread that modifies it holds the lock only for that moment.
 */
#include "server/weights/table.h"

#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

struct table {
    pthread_mutex_t lock; /* protects all fields below, and the last two of the files */
    struct file **files;  /* sorted by name */
    size_t n_files, files_max;
    uint64_t n_bytes, n_reserved, bytes_max;
    size_t n_files_reserved;
    uint64_t n_changes;
};

/* ---- One file -------------------------------------------------------------------------------------------------- */

void file_drop_card(struct file *file)
{
    if (atomic_fetch_sub(&file->n_cards, 1) > 1)
        return;
    file->kind->free(file->contents);
    free(file);
}

void file_drop(struct file *file)
{
    if (!file || atomic_fetch_sub(&file->n_holders, 1) > 1)
        return;
    free(file->bytes);
    file_drop_card(file);
}

void file_hold(struct file *file) { atomic_fetch_add(&file->n_holders, 1); }

void file_hold_card(struct file *file) { atomic_fetch_add(&file->n_cards, 1); }

struct file *file_new(const char *name, char *bytes, size_t n, const struct api_contents *kind, void *contents)
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
    file->face = (struct api_weights){.name = file->name, .bytes = bytes, .n_bytes = n, .contents = contents};
    store_digest(bytes, n, file->face.sha256);
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
    table->n_bytes -= file->face.n_bytes;
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
    snprintf(sha256, STORE_DIGEST_BYTES, "%s", file ? file->face.sha256 : "");
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

size_t table_cards(struct table *table, const struct api_weights **cards)
{
    pthread_mutex_lock(&table->lock);
    size_t n = table->n_files;
    for (size_t i = 0; i < n; i++) {
        cards[i] = &table->files[i]->face;
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

/* With the lock. */
static uint64_t room_for(const struct table *table, const struct file *old)
{
    uint64_t others = table->n_bytes + table->n_reserved - (old ? old->face.n_bytes : 0);
    return others < table->bytes_max ? table->bytes_max - others : 0;
}

uint64_t table_room(struct table *table, const char *name)
{
    pthread_mutex_lock(&table->lock);
    uint64_t room = room_for(table, look_up(table, name));
    pthread_mutex_unlock(&table->lock);
    return room;
}

enum api_stored table_reserve(struct table *table, const char *name, uint64_t n)
{
    pthread_mutex_lock(&table->lock);
    const struct file *old = look_up(table, name);
    enum api_stored stored = old ? API_STORED_REPLACED : API_STORED_NEW;
    if (n > room_for(table, old))
        stored = API_STORED_FULL;
    else if (!old && table->n_files + table->n_files_reserved >= table->files_max)
        stored = API_STORED_TOO_MANY;
    if (stored <= API_STORED_REPLACED) {
        table->n_reserved += n;
        table->n_files_reserved++;
    }
    pthread_mutex_unlock(&table->lock);
    return stored;
}

/* With the lock. */
static void give_back(struct table *table, uint64_t n)
{
    table->n_reserved -= n;
    table->n_files_reserved--;
}

void table_give_back(struct table *table, uint64_t n)
{
    pthread_mutex_lock(&table->lock);
    give_back(table, n);
    pthread_mutex_unlock(&table->lock);
}

void table_put(struct table *table, struct file *file, const char *version)
{
    pthread_mutex_lock(&table->lock);
    give_back(table, file->face.n_bytes);
    bool is_there;
    size_t i = place_of(table, file->name, &is_there);
    struct file *old = is_there ? table->files[i] : NULL;
    if (!old) {
        memmove(&table->files[i + 1], &table->files[i], (table->n_files - i) * sizeof *table->files);
        table->n_files++;
    }
    table->files[i] = file;
    table->n_bytes += file->face.n_bytes - (old ? old->face.n_bytes : 0);
    snprintf(file->version, sizeof file->version, "%s", version);
    file->changed_at = ++table->n_changes;
    pthread_mutex_unlock(&table->lock);
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
