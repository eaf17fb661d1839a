/* Owns how one name follows the store: what is read, whether there is room for it, and what memory has afterwards. */
#include "server/store/weights/weights.h"

#include "core/inside.h"
#include "server/memory/memory.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

struct one {
    struct weights *w;
    const char *name;
    bool is_light;
    enum api_found refused; /* why the bytes are not wanted */
    bool has_room;
    struct room room;
};

/* ---- Before the bytes are read --------------------------------------------------------------------------------- */

static enum api_stored reserve(struct one *one, uint64_t n)
{
    struct table *table = one->w->table;
    enum api_stored stored = table_reserve(table, one->name, n, &one->room);
    if (stored != API_STORED_NO_ROOM || admission_may_fit(n + n / 4))
        return stored;
    table_remove(table, one->name); /* the two can never be in memory together, so requests wait for the new one */
    return table_reserve(table, one->name, n, &one->room);
}

/* A wrong file is not read again while it stays the same. Bytes are counted before they are there. */
static bool wants(void *self, const struct store_reading *reading, uint64_t n)
{
    struct one *one = self;
    struct weights *w = one->w;
    struct store_entry entry;
    snprintf(entry.name, sizeof entry.name, "%s", one->name);
    snprintf(entry.version, sizeof entry.version, "%s", reading->found);
    enum passed_as as = weights_was_passed(w, &entry);
    one->refused = as == PASSED_WRONG ? API_FOUND_NOTHING : as == PASSED_SPOILED ? API_FOUND_UNKNOWN : API_FOUND_LATER;
    if (as || one->is_light)
        return false;
    enum api_stored stored = reserve(one, n);
    one->has_room = stored <= API_STORED_REPLACED;
    one->refused = stored == API_STORED_NO_ROOM ? API_FOUND_NO_ROOM : API_FOUND_TOO_LARGE;
    if (one->refused == API_FOUND_TOO_LARGE && !one->has_room)
        weights_pass_over(w, one->name, reading->found, PASSED_ONCE,
                          stored == API_STORED_FULL ? w->too_large : "too many files");
    return one->has_room;
}

/* ---- Afterwards ------------------------------------------------------------------------------------------------ */

/* Takes the bytes that were read. */
static enum api_found keep(struct one *one, const struct store_reading *reading)
{
    struct weights *w = one->w;
    char why[WEIGHTS_ERROR_BYTES] = "";
    enum pe_lang lang = pe_spoken();
    pe_speak_in(PE_EN); /* why is for the log */
    void *contents = w->face.contents->read(reading->bytes, reading->n, why, sizeof why);
    pe_speak_in(lang);
    struct file *file = file_new(one->name, reading->bytes, reading->n, reading->digest, w->face.contents, contents);
    if (!file) {
        bool is_wrong = *why;
        weights_pass_over(w, one->name, reading->found, is_wrong ? PASSED_WRONG : PASSED_ONCE,
                          is_wrong ? why : "no memory");
        return is_wrong ? API_FOUND_NOTHING : API_FOUND_UNKNOWN;
    }
    table_put(w->table, file, reading->found, &one->room);
    one->has_room = false;
    return API_FOUND;
}

static enum api_found end_reading(struct one *one, enum store_result result, const struct store_reading *reading,
                                  const char *why)
{
    struct weights *w = one->w;
    switch (result) {
    case STORE_DONE:
        if (strcmp(reading->digest, reading->sha256) != 0)
            return keep(one, reading);
        free(reading->bytes);
        table_revise(w->table, one->name, reading->found);
        return API_FOUND;
    case STORE_SAME: table_revise(w->table, one->name, reading->found); return API_FOUND;
    case STORE_ABSENT:
        table_remove(w->table, one->name);
        weights_note_absent(w, one->name);
        return API_FOUND_NOTHING;
    case STORE_NO_FILE: weights_pass_over(w, one->name, reading->found, PASSED_WRONG, why); return API_FOUND_NOTHING;
    case STORE_SPOILED: weights_pass_over(w, one->name, reading->found, PASSED_SPOILED, why); return API_FOUND_UNKNOWN;
    case STORE_UNWANTED: return one->refused;
    case STORE_NO_MEMORY: weights_pass_over(w, one->name, "", PASSED_ONCE, "no memory"); return API_FOUND_UNKNOWN;
    case STORE_REFUSED: weights_note_refused(w, why); return API_FOUND_UNKNOWN;
    default:
        if (!atomic_load(&w->is_stopping) && !pe_is_cancelled() &&
            (!w->store->may_be_away || *reading->found)) /* refresh logs the rest once */
            weights_pass_over(w, one->name, why, PASSED_ONCE, why);
        return API_FOUND_UNKNOWN;
    }
}

enum api_found weights_read(struct weights *w, const char *name, weights_reader *read, bool is_light)
{
    char version[STORE_VERSION_BYTES], sha256[STORE_DIGEST_BYTES], why[STORE_WHY_BYTES] = "";
    struct one one = {.w = w, .name = name, .is_light = is_light};
    table_describe(w->table, name, version, sha256);
    struct store_reading reading = {.version = version, .sha256 = sha256, .wants = wants, .self = &one};
    enum store_result result = read(w->store->self, name, &reading, why);
    enum api_found found = end_reading(&one, result, &reading, why);
    if (one.has_room)
        table_give_back(w->table, &one.room);
    return found;
}
