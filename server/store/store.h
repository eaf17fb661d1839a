/* Stores of files by name outside of the process: a folder (folder.c), or a bucket of an S3-compatible store (s3.c and
 * all below it). Lowest file first; other rooms use the section store.c. */
#ifndef SERVER_STORE_H
#define SERVER_STORE_H

#include <stdatomic.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <sys/stat.h>

/* ---- store.c ----------------------------------------------------------------------------------------------------- */

/* A store: a place outside of the process that keeps files by name and that several servers may use at the same time, a
 * folder (folder.c) or a bucket of an S3-compatible store (s3.c). What a file contains is not known here.
 *
 * Every operation may wait for a disk or a network, and may be called from any thread, several at a time, but never
 * from an I/O thread. Names are valid names of weights (api_weight_name_is_valid), so never a path. */

enum {
    STORE_VERSION_BYTES = 128,
    STORE_DIGEST_BYTES = 65, /* SHA-256 in lower-case hexadecimal digits, and a NUL */
    STORE_NAME_BYTES = 129,
    STORE_WHY_BYTES = 512
};

enum store_result {
    STORE_DONE,
    STORE_SAME,     /* read: the file is the one that the caller knows */
    STORE_ABSENT,   /* there is no file of that name */
    STORE_GUARDED,  /* the guard does not allow the change; here and below, nothing has changed */
    STORE_NO_FILE,  /* under that name is a folder, or what can have no contents, such as a pipe */
    STORE_UNWANTED, /* read: the caller does not want the bytes */
    STORE_SPOILED,  /* read: the store has other bytes than it states; why[] has the reason */
    STORE_NO_MEMORY,
    STORE_UNGUARDED, /* the store cannot make a change depend on what is there */
    STORE_REFUSED,   /* it answers, but not with what was asked for; why[] has the reason */
    STORE_FAILED     /* it does not answer, why[] has the reason; here and above it is unknown whether a file exists */
};

/* The condition of a change. allows(self, sha256) states whether a file of this digest (NULL: none) may be replaced or
 * removed; it is called while no other server can change the file, or the change is undone by the store otherwise. */
struct store_guard {
    bool is_guarded; /* false: every change is allowed, and allows is not called */
    bool (*allows)(const void *self, const char *sha256);
    const void *self;
};

/* A version names the contents of a file under its name: while it stays the same, so does the file. Another version may
 * have the same contents. */
struct store_entry {
    char name[STORE_NAME_BYTES], version[STORE_VERSION_BYTES];
};

struct store_list {
    struct store_entry *entries; /* sorted by name */
    size_t n;
};
void store_list_drop(struct store_list *list);
/* Borrowed; NULL: not in the list. */
const struct store_entry *store_list_find(const struct store_list *list, const char *name);
/* Adds an entry at the end, without a version. NULL: no memory. */
struct store_entry *store_list_add(struct store_list *list, const char *name);
void store_list_sort(struct store_list *list);

/* A reading: what the caller knows, then what was read. */
struct store_reading {
    const char *version, *sha256; /* of the caller's file; "": none. If they are still right: STORE_SAME */
    /* Asked before a byte is read, when found is known: does the caller want n bytes, and has it room for them? NULL:
     * it does. */
    bool (*wants)(void *self, const struct store_reading *reading, uint64_t n);
    void *self;
    char *bytes; /* aligned to 64; the caller frees it with free; NULL unless STORE_DONE */
    size_t n;
    char digest[STORE_DIGEST_BYTES]; /* of bytes */
    char found[STORE_VERSION_BYTES]; /* the version that was read, also for STORE_SAME */
};

/* A file to be written. */
struct store_writing {
    const char *bytes;
    size_t n;
    const char *sha256;
    struct store_guard guard;
    bool was_there;                 /* out: a file was replaced */
    char made[STORE_VERSION_BYTES]; /* out: its version */
};

struct store {
    void *self;
    const char *flag;   /* the flag that names it, "--weights-dir" */
    const char *place;  /* for the log: the folder, or s3://bucket/prefix */
    bool may_be_away;   /* the server starts and serves also while it does not answer */
    uint64_t absent_ns; /* for so long after a name was not there it need not be looked for again */
    /* why has room for STORE_WHY_BYTES, and is set if the result is STORE_SPOILED, STORE_REFUSED or STORE_FAILED. *list
     * is dropped by the caller if the result is STORE_DONE. */
    enum store_result (*list)(void *self, struct store_list *list, char *why);
    enum store_result (*read)(void *self, const char *name, struct store_reading *reading, char *why);
    enum store_result (*write)(void *self, const char *name, struct store_writing *writing, char *why);
    enum store_result (*remove)(void *self, const char *name, const struct store_guard *guard, char *why);
    /* Reads what is kept on this machine, without waiting for a network: as at the end of the last process. NULL:
     * nothing is kept. */
    enum store_result (*recall)(void *self, struct store_list *list, char *why);
    enum store_result (*read_kept)(void *self, const char *name, struct store_reading *reading, char *why);
    void (*stop)(void *self); /* operations in progress and later ones fail at once; NULL: they are short */
    void (*free)(void *self); /* call it when no operation is in progress */
};
void store_free(struct store *store); /* and what it points to; NULL is accepted */

/* The index in a table sorted by name of the row of that name, or at which to insert it: name_at gives the names of n
 * rows. */
size_t store_place(const void *table, size_t n, const char *(*name_at)(const void *table, size_t i), const char *name,
                   bool *is_there);

bool store_allows(const struct store_guard *guard, const char *sha256);
bool store_wants(const struct store_reading *reading, uint64_t n);
/* Memory for the bytes of a file and one more, aligned to 64 (freed with free). NULL: no memory. */
char *store_bytes_new(size_t n);
void store_digest(const char *bytes, size_t n, char *text); /* [STORE_DIGEST_BYTES] */
bool store_is_digest(const char *text);

/* ---- store.c: files ---------------------------------------------------------------------------------------------- */

/* Files that are whole or not there: written under a temporary name (a draft) and renamed by the caller. */

enum { FILES_DRAFT_BYTES = 32 };

/* Writes the bytes and waits until they are on disk; draft is the file's name in dir, until it is renamed its writer's
 * alone. Returns the descriptor that locks the draft: close it after renaming, since files_clean of a server that
 * starts removes unlocked drafts. -1: errno; then no draft is left, unless it cannot be removed. status: of the file;
 * NULL: not wanted. */
int files_write_draft(int dir, char draft[FILES_DRAFT_BYTES], const char *bytes, size_t n, struct stat *status);
/* Removes the drafts of writers that crashed, and logs how many. False: the folder cannot be read, see errno. */
bool files_clean(const char *folder);

/* Reads at most room bytes; *n: how many there were. False: errno. */
bool files_read(int fd, char *bytes, size_t room, size_t *n);
void files_close(int fd);       /* keeps errno; -1 is accepted */
bool files_have_no_locks(void); /* errno of a lock: the file system has none */

/* ---- folder.c ---------------------------------------------------------------------------------------------------- */

/* A folder as a store: NAME.safetensors, or NAME with another suffix, each replaced in one step. Several servers may
 * use the folder at the same time, also over a network file system: a change holds a lock (.posenc-lock) while it
 * compares and renames. */

/* The store of the files in a folder whose names end with suffix (both are copied). Removes unfinished files of writers
 * that crashed. NULL: errno gives the reason. */
enum { FOLDER_SUFFIX_BYTES = 16 };
struct store *folder_store_new(const char *path, const char *suffix); /* ".safetensors" */

/* ---- credentials.c ----------------------------------------------------------------------------------------------- */

/* The keys with which requests to a store are signed: from the environment (AWS_ACCESS_KEY_ID, AWS_SECRET_ACCESS_KEY,
 * AWS_SESSION_TOKEN, AWS_REGION or AWS_DEFAULT_REGION), or from a file with the same names in lower case, as in
 * ~/.aws/credentials, which is read again when it changes. */

enum { CREDENTIALS_ERROR_BYTES = 512 };

struct credentials {
    char access_key[256]; /* "": requests are not signed */
    char secret_key[256];
    char session_token[4096]; /* "": none */
    char region[64];
};

struct credential_source;

/* file "": the environment. NULL: error[] of CREDENTIALS_ERROR_BYTES gives the reason. */
struct credential_source *credential_source_new(const char *file, char *error);
void credential_source_free(struct credential_source *source); /* NULL is accepted */

/* Copies the keys of now; the caller wipes them with credentials_wipe. If the file cannot be read, those that it had.
 * Any thread. */
void credentials_get(struct credential_source *source, struct credentials *credentials);
void credentials_wipe(struct credentials *credentials);

/* ---- web.c ------------------------------------------------------------------------------------------------------- */

/* Signed requests to an S3-compatible store, through libcurl. One thread does all transfers; the threads that ask wait
 * for it. Only web.c includes curl/curl.h. */

enum { WEB_HEADERS_MAX = 4, WEB_TEXT_BYTES = 256, WEB_TAG_BYTES = 128 };

/* One request, and its answer. All pointers are borrowed until web_ask returns, except bytes. */
struct web_request {
    const char *method; /* "GET", "HEAD", "PUT" or "DELETE" */
    const char *url; /* its path and query escaped as S3 wants them: upper-case digits, the names of a query sorted */
    const char *headers[WEB_HEADERS_MAX]; /* "If-Match: x"; NULL after the last; no name begins another one */
    const char *body;                     /* of a PUT; NULL: none */
    size_t n_body;
    const char *sha256; /* of the body, hexadecimal digits */
    bool is_sent_once;  /* libcurl repeats what got no answer on a connection that it had kept; not with this */
    const struct credentials *credentials;
    uint64_t n_max;      /* bytes of the answer's body; more is a failure */
    uint64_t timeout_ms; /* for all of it; 0: a minute, and a second for each MiB of its body and of n_max */
    /* The answer: */
    int status;   /* 0: none that is whole */
    bool is_cut;  /* status is 0, but it began as an answer to be read: the store is there */
    bool is_left; /* status is 0 because the caller's work was cancelled (pe_is_cancelled) */
    char *bytes; /* its body, followed by a NUL, aligned to 64 (freed with free, also if it is not whole); NULL: none */
    size_t n;    /* bytes of the body; of a HEAD, what a GET would have */
    char etag[WEB_TAG_BYTES]; /* without its quotes; "": none */
    int64_t ahead_s;          /* how far the store's clock is ahead of ours; 0 if it does not say */
    int64_t age_s;            /* how old what it has is, by its own clock; 0 if it does not say */
    char why[WEB_TEXT_BYTES]; /* if status is 0 */
};

struct web;

struct web *web_new(void); /* NULL: no memory or no thread. Call before any other thread runs. */
/* Requests in progress and later ones fail at once. Any thread. */
void web_stop(struct web *web);
void web_free(struct web *web); /* call it when no thread asks any more; NULL is accepted */

/* Any thread but one that must not wait; a worker is away meanwhile (job_leave). Ends early if the caller's work is
 * cancelled, but for a change with a time limit: whether one that is cut was done would not be known. */
void web_ask(struct web *web, struct web_request *request);

/* ---- s3.c -------------------------------------------------------------------------------------------------------- */

/* A bucket of an S3-compatible store, below a prefix: blobs/<sha256> are files, which never change; names/<name> states
 * which of them a name denotes, {"sha256":"…","bytes":N}; and likewise presets/<name>. Several servers may use it at
 * the same time. */

enum { S3_ERROR_BYTES = 512 };

/* The kinds of names that a bucket has: names/<name> of weights, presets/<name>. A blob is used if any of them denotes
 * it. */
enum s3_kind { S3_NAMES, S3_PRESETS, S3_N_KINDS };

struct s3_settings {
    const char *place;       /* "s3://bucket/prefix" */
    const char *endpoint;    /* "http://host:port"; "": AWS_ENDPOINT_URL_S3, else Amazon's of the region */
    const char *cache;       /* folder; "": none */
    const char *credentials; /* file; "": the environment */
    uint64_t cache_bytes;
    size_t files_max;
};

/* The texts of the settings are copied. Asks the store nothing. NULL: error[] of S3_ERROR_BYTES gives the reason. Call
 * it before any other thread runs. */
struct store *s3_store_new(const struct s3_settings *settings, char *error);

/* The same bucket again, with names of another kind. It shares connections and
 * figures with store, which must be freed later. NULL: no memory. Call it before any other thread runs. */
struct s3_beside {
    enum s3_kind kind;
    const char *cache; /* the folder of store; its own is in there. "": none */
    uint64_t cache_bytes;
    size_t files_max;
};
struct store *s3_store_beside(struct store *store, const struct s3_beside *beside);

/* Its figures as Prometheus text. */
void s3_print_metrics(void *store, FILE *out);

/* ---- bucket.c ---------------------------------------------------------------------------------------------------- */

/* A bucket of an S3-compatible store: where it is, its keys, one request after another with what is repeated and what
 * fails at once, and the reasons in words. Shared by the stores that have names in it. */

enum { BUCKET_URL_BYTES = 4096, BUCKET_PREFIX_BYTES = 600, BUCKET_ERROR_BYTES = 64 << 10 };
enum { BUCKET_SMALL_MS = 2000 }; /* for a request of a few hundred bytes, with its repetitions */

#define BUCKET_EMPTY_SHA256                                                                                            \
    "e3b0c44298fc1c149afbf4c8996fb92427ae41e4649b934ca495991b7852b855" /* of a request without a body */

enum bucket_operation { BUCKET_LIST, BUCKET_GET, BUCKET_HEAD, BUCKET_PUT, BUCKET_REMOVE, BUCKET_N_OPERATIONS };
enum { BUCKET_N_OUTCOMES = 6 };

struct bucket {
    struct web *web;
    struct credential_source *credentials;
    char place[1024]; /* "s3://bucket/prefix" */
    char base[1024];  /* endpoint/bucket/, "http://127.0.0.1:9000/weights/" */
    char name[128];
    char prefix[BUCKET_PREFIX_BYTES]; /* "" or "team/a/" */
    atomic_bool is_stopping;
    atomic_uint_fast64_t away_until; /* ns; 0: it answered */
    atomic_uint_fast64_t n_requests[BUCKET_N_OPERATIONS][BUCKET_N_OUTCOMES], took_ns[BUCKET_N_OPERATIONS];
    atomic_int if_none_match, if_match; /* what is known of its conditional writes: s3_names.c */
    atomic_uint_fast64_t n_spoiled;     /* blobs that had another digest than their name */
};

/* Asks the store nothing. NULL: error[] of S3_ERROR_BYTES gives the reason. Call it before any other thread runs. */
struct bucket *bucket_new(const struct s3_settings *settings, char *error);
void bucket_free(struct bucket *bucket);
void bucket_stop(struct bucket *bucket); /* ends what waits; from any thread */

/* url[BUCKET_URL_BYTES] = that of kind/name below the prefix. Keys have no letter that needs escaping. */
void bucket_print_url(const struct bucket *bucket, char *url, const char *kind, const char *name);

/* Repeats what may succeed the next time, within the request's time. request->bytes is freed by the caller. False: one
 * of the tries had no proper answer, so what it asked for may have been done. */
bool bucket_ask(struct bucket *bucket, enum bucket_operation operation, struct web_request *request);

/* Writes a short text to url, once and under the condition if there is one, else with repetitions. The caller reads the
 * answer in *request and frees its bytes. */
void bucket_put_text(struct bucket *bucket, const char *url, const char *text, const char *condition,
                     struct web_request *request);

/* Removes what is at url, once or with repetitions; that it is not there is fine. False: why[STORE_WHY_BYTES]. */
bool bucket_remove(struct bucket *bucket, const char *url, bool once, char *why);

/* Waits; other jobs have their turn meanwhile. False: the server is ending. */
bool bucket_pause(const struct bucket *bucket, uint64_t ns);

/* Asks for the head of what is at url: STORE_DONE, with head->n and head->age_s; STORE_ABSENT; otherwise
 * why[STORE_WHY_BYTES] gives the reason. */
enum store_result bucket_head(struct bucket *bucket, const char *url, struct web_request *head, char *why);

/* For a second after a request without an answer: then why[STORE_WHY_BYTES] states it. */
bool bucket_is_away(const struct bucket *bucket, char *why);

/* STORE_REFUSED or STORE_FAILED, with the reason, for a request that was neither done nor answered as its caller
 * expects. */
enum store_result bucket_fail(const struct bucket *bucket, const struct web_request *request, char *why);

/* Is what is missing the bucket itself? */
bool bucket_is_missing(const struct web_request *request);

void bucket_print_requests(const struct bucket *bucket, FILE *out); /* Prometheus text */

/* ---- answers.c --------------------------------------------------------------------------------------------------- */

/* What an S3-compatible store answers, read: lists and errors in XML, and our own names/NAME. Every text ends with a
 * NUL. */

enum { ANSWERS_TOKEN_BYTES = 1024, ANSWERS_CODE_BYTES = 64 };

/* Adds the names below `prefix` ("a/names/") of one ListObjectsV2 answer, with their ETags as versions; keys that are
 * no names of weights are passed over. next: the token of the next part, "" if this was the last. False: it is no such
 * answer, is not whole (to its closing tag, and it states whether it goes on), has more than n_max names, or memory
 * runs out. */
bool answers_list(const char *xml, const char *prefix, size_t n_max, struct store_list *list,
                  char next[ANSWERS_TOKEN_BYTES]);

/* The Code of an error, "NoSuchBucket"; "" if there is none. text may be NULL. */
void answers_code(const char *text, char code[ANSWERS_CODE_BYTES]);

/* {"sha256":"…","bytes":N}, as answers_print_name makes it; what follows the number is left alone. */
bool answers_name(const char *text, char sha256[STORE_DIGEST_BYTES], uint64_t *n_bytes);
enum { ANSWERS_NAME_BYTES = 160 };
size_t answers_print_name(char text[ANSWERS_NAME_BYTES], const char *sha256, uint64_t n_bytes);

/* ---- s3_names.c -------------------------------------------------------------------------------------------------- */

/* What names/<name> of a bucket states: which blob the name denotes. Changed under the condition that it still states
 * what was read. */

/* Names below kind/, of a bucket. */
struct s3_names {
    struct bucket *bucket;
    const char *kind; /* one of s3_kinds, a constant string */
};
extern const char *const s3_kinds[S3_N_KINDS];

struct s3_said {
    char etag[STORE_VERSION_BYTES], sha256[STORE_DIGEST_BYTES];
    uint64_t n_bytes;
};

/* All of them, sorted, with their tags as versions; more than n_max: STORE_REFUSED. *list is dropped by the caller if
 * the result is STORE_DONE; otherwise why[STORE_WHY_BYTES] gives the reason. */
enum store_result s3_names_list(const struct s3_names *names, size_t n_max, struct store_list *list, char *why);

/* STORE_ABSENT: there is none; STORE_FAILED: why[STORE_WHY_BYTES] gives the reason. */
enum store_result s3_names_get(const struct s3_names *names, const char *name, struct s3_said *said, char *why);

/* Whether the store obeys the condition of a guarded change, If-Match if there is a name (said) and else If-None-Match;
 * asked for once in a process, before its first such change. STORE_UNGUARDED: it does not, and the log states it;
 * another result than STORE_DONE: it cannot be known now, and why[STORE_WHY_BYTES] gives the reason. */
enum store_result s3_names_probe(const struct s3_names *names, const struct s3_said *said, char *why);

/* Writes or removes. said: what was read before, NULL if there was none; a guarded change holds only if it states that
 * still. STORE_SAME: another server came in between; *is_sure as of bucket_ask. */
enum store_result s3_names_put(const struct s3_names *names, const char *name, const struct s3_said *said,
                               struct store_writing *writing, bool *is_sure, char *why);
enum store_result s3_names_remove(const struct s3_names *names, const char *name, const struct s3_said *said,
                                  bool is_guarded, char *why);

/* ---- s3_index.c -------------------------------------------------------------------------------------------------- */

/* What a bucket's names were when they were last seen: name, tag, digest, bytes. As a text it is kept beside the blobs,
 * so that a server that starts without the store knows what its cache holds. Any thread. */

struct s3_index;

struct s3_index *s3_index_new(void);        /* NULL: no memory */
void s3_index_free(struct s3_index *index); /* NULL is accepted */
size_t s3_index_n(struct s3_index *index);

/* These return whether something has changed; without memory, a name is not remembered. */
bool s3_index_put(struct s3_index *index, const char *name, const char *etag, const char *sha256, uint64_t n_bytes);
bool s3_index_remove(struct s3_index *index, const char *name);
bool s3_index_keep_listed(struct s3_index *index, const struct store_list *list); /* removes all others */

/* etag has room for STORE_VERSION_BYTES. False: not found. */
bool s3_index_get(struct s3_index *index, const char *name, char *etag, char *sha256, uint64_t *n_bytes);
bool s3_index_has_blob(struct s3_index *index, const char *sha256);
bool s3_index_list(struct s3_index *index, struct store_list *list); /* False: no memory */

/* As text: a line that states whose names these are, then one line for each name. NULL: no memory (freed with free). */
char *s3_index_print(struct s3_index *index, const char *head, size_t *n);
/* False: the first line is not head, and nothing is taken. Other lines that are wrong are passed over. text is cut up.
 */
bool s3_index_parse(struct s3_index *index, const char *head, char *text);

/* ---- cache.c ----------------------------------------------------------------------------------------------------- */

/* Blobs of a store that are kept on this machine, as <sha256>.safetensors, and the list of names that belongs to them,
 * as `index`. What was used longest ago is removed when they would have more bytes than allowed. A disk that is full or
 * broken costs only the cache. Any thread. */

struct cache;

/* Returns whether a blob belongs to a name; such blobs are removed last. */
typedef bool cache_is_used(void *self, const char *sha256);

/* folder is copied. NULL: errno. */
struct cache *cache_new(const char *folder, uint64_t bytes_max, cache_is_used *is_used, void *self);
void cache_free(struct cache *cache); /* NULL is accepted */

/* The n bytes of this digest (freed with free). NULL: it has no such blob, or it was spoiled, and is removed. */
char *cache_read(struct cache *cache, const char *sha256, size_t n);
void cache_write(struct cache *cache, const char *sha256, const char *bytes, size_t n);

/* The text of the index, which ends with a NUL (freed with free); NULL: there is none. */
char *cache_read_index(struct cache *cache);
void cache_write_index(struct cache *cache, const char *text, size_t n);

struct cache_figures {
    uint64_t n_hits, n_misses, n_spoiled, n_failed, n_bytes;
};
struct cache_figures cache_figures(struct cache *cache);
void cache_print_metrics(struct cache *cache, FILE *out); /* the same for /metrics */

/* ---- s3_sweep.c -------------------------------------------------------------------------------------------------- */

/* A bucket swept: a name that is replaced or deleted leaves its blob, because another name, or a server that reads just
 * now, may need it. */

enum { S3_SWEEP_AGE_S = 86400 }; /* a blob younger than this may belong to a name that is being written */

struct s3_swept {
    size_t n_blobs, n_removed, n_young; /* all; removed; without a name, but too young */
    uint64_t n_bytes;                   /* removed */
};

/* Removes the blobs that no name refers to and that are a day old by the store's clock, but none if they would be more
 * than max_percent of all that are a day old, and more than a few. Servers may use the bucket meanwhile: a server that
 * stores a blob again which is half a day old writes it anew (s3.c) and then calls s3_sweep_wait. What is not certain
 * (a name that cannot be read, a list that is not whole) ends the sweep before it removes anything. False: error[] of
 * S3_ERROR_BYTES gives the reason, *swept what was done until then. */
bool s3_sweep(const struct s3_settings *settings, unsigned max_percent, struct s3_swept *swept, char *error);

/* Waits while a sweep is removing this blob; afterwards it has been removed or stays. Called after a name was written
 * that denotes it. False: it takes too long, or cannot be known; why[STORE_WHY_BYTES] gives the reason. */
bool s3_sweep_wait(struct bucket *bucket, const char *sha256, char *why);

#endif
