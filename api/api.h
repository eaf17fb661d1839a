/* The language: bytes of a request in, bytes of an answer out. What server/ sees of api/.
 *
 * api_answer() turns one received HTTP request into a reply whose body is cut into pieces; every refusal has happened
 * when it returns. The pieces are pure functions of the reply and their number: they may be made in any order, on any
 * thread, several at once, and cannot fail. api/ opens no socket, starts no thread, reads no clock. */
#ifndef API_API_H
#define API_API_H

#include "core/posenc.h"

/* A page for people, GET / or /docs: constant bytes that the server brings, since a page is no part of the language. */
struct api_page {
    const char *bytes;
    size_t n_bytes;
    const char *etag;   /* quoted */
    const char *policy; /* Content-Security-Policy */
};

/* ---- Stored weights: files that requests name. The language reads them, the machine keeps them. ----------------- */

enum { API_WEIGHT_NAME_MAX = 128, API_SHA256_CHARS = 64 };

/* [A-Za-z0-9][A-Za-z0-9._-]{0,127}: never a path. */
bool api_weight_name_is_valid(const char *name);

/* What a safetensors file holds, read once: names, shapes and places. Borrows nothing from the file. */
struct api_tensors;
/* Makes it (free with api_tensors_free); NULL: why[] of n_why bytes says what is wrong with the file. Any thread. */
struct api_tensors *api_tensors_read(const char *bytes, size_t n, char *why, size_t n_why);
void api_tensors_free(struct api_tensors *tensors); /* NULL is accepted */

/* One stored file. It does not change, and lives until its last holder lets go. */
struct api_weights {
    const char *name;
    const char *bytes; /* aligned to 64 */
    size_t n_bytes;
    char sha256[API_SHA256_CHARS + 1]; /* of bytes, in lower case */
    const struct api_tensors *tensors;
};

/* The conditions under which a request may change a stored file: its headers, NULL where absent. */
struct api_guard {
    const char *if_match, *if_none_match;
};
/* Do they hold for a file with this digest (NULL: there is no file)? The store asks while nothing else can change it.
 */
bool api_guard_allows(const struct api_guard *guard, const char *sha256);

enum api_stored {
    API_STORED_NEW,
    API_STORED_REPLACED,
    API_STORED_GUARDED,  /* the guard does not allow it; the others below changed nothing either */
    API_STORED_FULL,     /* over bytes_max */
    API_STORED_TOO_MANY, /* over files_max */
    API_STORED_NO_MEMORY,
    API_STORED_FAILED, /* the disk refused it; the log says why */
    API_STORED_ABSENT  /* remove: there is none of that name */
};

/* Whoever gets a file holds it until it calls release. Every callback may be called from any thread; put and remove
 * may wait for a disk. */
struct api_store {
    void *self;
    uint64_t bytes_max; /* of all files together; --max-weights */
    size_t files_max;
    const struct api_weights *(*find)(void *self, const char *name); /* NULL if there is none */
    void (*release)(void *self, const struct api_weights *weights);
    /* A card is all of a file but its bytes. A reply that lists files holds their cards, for as long as a slow reader
     * likes, and the bytes of a file that is replaced meanwhile are freed. list writes the cards of all files at this
     * moment, by name, held, files_max at most, and returns how many; hold_card adds a holder to the card of a file
     * that is held. */
    size_t (*list)(void *self, const struct api_weights **cards);
    void (*hold_card)(void *self, const struct api_weights *card);
    void (*drop_card)(void *self, const struct api_weights *card);
    bool (*nearest)(void *self, const char *name, char *nearest); /* writes a name; false: none is near */
    /* Keeps a copy of bytes; takes tensors. Where it is kept, *weights is the new file, held. */
    enum api_stored (*put)(void *self, const char *name, const char *bytes, size_t n, struct api_tensors *tensors,
                           const struct api_guard *guard, const struct api_weights **weights);
    enum api_stored (*remove)(void *self, const char *name, const struct api_guard *guard); /* NEW never */
};

/* ---- The host ---------------------------------------------------------------------------------------------------- */

/* What the language needs to know of the machine that runs it. One per process, owned by the server, never changes but
 * through the callbacks. Callbacks may be called from any thread. */
struct api_host {
    uint64_t max_body;               /* bytes of a request body; named in the 413 together with its flag --max-body */
    uint64_t max_json;               /* bytes of a request's JSON; --max-json; 0: as many as max_body */
    uint64_t max_answer;             /* bytes of the tensors of one answer; --max-answer */
    uint64_t max_pictures;           /* bytes of all finished pictures that are not read yet; --buffer-memory */
    uint64_t max_work;               /* multiply-adds of one answer, or what takes as long; --max-work */
    uint64_t max_memory;             /* bytes that all requests at hand may take; --max-memory */
    bool (*take_memory)(uint64_t n); /* some of them; NULL: there is no end of them */
    void (*give_memory)(uint64_t n);
    const char *cors_origins;            /* separated by spaces or commas, or "*"; NULL or "": none */
    const char *commit;                  /* for /version */
    const struct api_store *store;       /* stored weights; NULL: none are kept */
    const struct api_page *front, *docs; /* NULL: there is none */
    void *self;                          /* handed to the callbacks */
    bool (*is_ready)(void *self);        /* for /readyz */
    char *(*metrics_print)(void *self,
                           size_t *n_bytes); /* makes the text of /metrics (freed with free), NULL: no memory */
};

/* What the one who asks may do, as the machine has found it. */
enum api_access {
    API_ACCESS_OPEN,  /* nobody is asked who he is */
    API_ACCESS_NONE,  /* he has not said, */
    API_ACCESS_WRONG, /* or said something that is not known */
    API_ACCESS_READ,
    API_ACCESS_WRITE /* stored weights too */
};

/* The texts of a request that an answer may depend on: a text added here is by itself in the keys and the copies of
 * calls (server/cache/), and server/http/call.c does not compile until a header fills it. */
#define API_TEXTS(TEXT)                                                                                                \
    TEXT(API_METHOD, method)             /* "GET", … */                                                              \
    TEXT(API_PATH, path)                 /* decoded path without query, starts with / */                               \
    TEXT(API_QUERY, query)               /* what follows the ?, still encoded; NULL or "" if nothing does */           \
    TEXT(API_CONTENT_TYPE, content_type) /* from here on: headers */                                                   \
    TEXT(API_CONTENT_ENCODING, content_encoding)                                                                       \
    TEXT(API_ACCEPT, accept)                                                                                           \
    TEXT(API_IF_MATCH, if_match)                                                                                       \
    TEXT(API_IF_NONE_MATCH, if_none_match)                                                                             \
    TEXT(API_IF_RANGE, if_range)                                                                                       \
    TEXT(API_RANGE, range)                                                                                             \
    TEXT(API_ORIGIN, origin)                                                                                           \
    TEXT(API_ACCESS_METHOD, access_method)       /* Access-Control-Request-Method */                                   \
    TEXT(API_ACCESS_HEADERS, access_headers)     /* Access-Control-Request-Headers */                                  \
    TEXT(API_INFERENCE_HEADER, inference_header) /* Inference-Header-Content-Length; only /v2 reads it */

#define API_TEXT_ID(id, field) id,
#define API_TEXT_FIELD(id, field) const char *field;

enum api_text_id { API_TEXTS(API_TEXT_ID) API_N_TEXTS };

/* One request as received. All pointers are borrowed until the reply is freed; NULL means the header is absent. */
struct api_call {
    enum api_access access;
    union { /* the same pointers, by name and by number */
        struct {
            API_TEXTS(API_TEXT_FIELD)
        };
        const char *texts[API_N_TEXTS]; /* by enum api_text_id */
    };
    const char *body; /* NULL when empty */
    size_t body_bytes;
    bool body_is_ours; /* the body's memory is writable, and nobody reads it after this call but the reply: tensors may
                          be moved a few bytes to where their elements are aligned */
    bool is_hurried;   /* others wait for the caller: see api_answer */
    bool (*is_gone)(void *caller); /* asked now and then while something takes long: does nobody want the answer any
                                      more? After a yes the reply is a refusal, never repeatable. NULL: somebody does */
    void *caller;
};

enum { API_HEADERS_MAX = 12 };
#define API_LENGTH_UNKNOWN UINT64_MAX

struct api_header {
    const char *name;
    char *value;
};

struct api_reply {
    int status;
    const char *content_type;
    struct api_header headers[API_HEADERS_MAX]; /* besides Content-Type and Content-Length; owned by the reply */
    size_t n_headers;
    uint64_t length;     /* bytes of the whole body; API_LENGTH_UNKNOWN: send chunked */
    uint64_t n_pieces;   /* body = piece 0, 1, … n_pieces-1, one after the other; 0: empty body */
    size_t piece_max;    /* no piece is longer than this */
    bool computes;       /* making a piece is computing numbers more than writing them: where its time counts */
    bool is_quick;       /* making a piece costs about what copying it costs: no work for a worker */
    bool is_light;       /* making all pieces and freeing the reply costs well under a millisecond: do it in place */
    bool is_repeatable;  /* the same call would be answered alike as long as this process runs */
    const char *body;    /* all of it, where it is made already; else NULL */
    uint64_t memory;     /* bytes it has taken of the host's: much takes long to free */
    uint64_t n_finished; /* bytes of it that are made and wait for their reader: a picture's */
    uint64_t timeout_us; /* the client wants the answer to begin within this time of its request; 0: any time */
    const char *route;  /* the route's pattern, "/encode", for log and metrics; a constant string, "" if unknown path */
    const char *scheme; /* a constant string, "" if none */
    const char *format; /* "json", "raw", …; a constant string */
};

/* Decides from the head alone (body and body_bytes not looked at; declared_bytes is Content-Length, or
 * API_LENGTH_UNKNOWN if chunked or none) whether to refuse before the body is received: no or a wrong token, a token
 * that may not, unknown path, wrong method, body too large, a content coding. NULL: go on and receive it. Makes the
 * reply otherwise. */
struct api_reply *api_refuse_early(const struct api_host *host, const struct api_call *call, uint64_t declared_bytes);

/* Makes the reply to a whole request (without memory it is a constant 503 that api_reply_free ignores). NULL only if
 * call->is_hurried and deciding would take more than about a millisecond: ask again from a worker, unhurried.
 * Cost: a few microseconds plus reading the body; for a body of many megabytes call it from a worker. */
struct api_reply *api_answer(const struct api_host *host, const struct api_call *call);

/* The 429 of who has used up what he may; retry_s: seconds until there is more. detail is copied. */
struct api_reply *api_refuse_quota(const struct api_host *host, const struct api_call *call, const char *detail,
                                   uint64_t retry_s);

/* Bytes of all finished pictures that are not read yet: of api_host.max_pictures. */
uint64_t api_pictures_bytes(void);

/* Is this path everybody's (the first page, health, figures), whatever quotas there are? */
bool api_is_open(const char *path);

/* Makes a refusal the server itself has decided on (408, 429, 431, 503 …) in the error form of the contract.
 * detail is copied. */
struct api_reply *api_refusal(int status, const char *detail);

/* Writes piece i to dst (room for piece_max bytes, aligned to 8) and returns its length ≥ 1. Any thread. */
size_t api_reply_piece(const struct api_reply *reply, uint64_t i, char *dst);

/* Piece i repeats the work of those before it that are not finished when it is begun (the checksums of a zip file):
 * begin it when they are, if that is possible. It is right in any order. */
bool api_reply_waits(const struct api_reply *reply, uint64_t i);

/* Gives a reply its body, made by its pieces one after the other (malloc's memory, taken), and frees what it was made
 * from. */
void api_reply_finish(struct api_reply *reply, char *body, size_t n);

/* One owner more, whom api_reply_free takes away again. Any thread that has a hold on it. */
struct api_reply *api_reply_hold(struct api_reply *reply);
void api_reply_free(struct api_reply *reply); /* NULL is accepted */

/* Call once before any other thread runs: fixes the seeds of tables that would differ from run to run. */
void api_setup(void);

#endif
