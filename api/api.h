/* The interface of api/ for server/: bytes of a request in, bytes of an answer out.
 *
 * api_answer() turns one received HTTP request into a reply whose body is cut into pieces. If the request is refused,
 * that is known when it returns. A piece depends only on the reply and its number: pieces may be computed in any order,
 * on any thread, several at once, and cannot fail. api/ opens no socket, starts no thread, reads no clock. */
#ifndef API_API_H
#define API_API_H

#include "core/inside.h"

#include <stdatomic.h>

/* ---- The web page: files that the server supplies ---------------------------------------------------------------- */

/* A file of the page that is part of the program. */
struct api_page_file {
    const char *name; /* "views/bias/view.js" */
    const char *gzip; /* its bytes, compressed */
    size_t n_gzip;
    size_t n_bytes;       /* before compression */
    const char *digest;   /* of the compressed bytes: hexadecimal digits, for entity tags */
    char *_Atomic *plain; /* the bytes before compression, NULL until a client asks for them; api/ fills it */
};

/* The page: GET / and /docs are its index.html, GET /ui/{build}/{file} are all its files. */
struct api_page {
    const char *build; /* names all files and their bytes */
    const struct api_page_file *files;
    size_t n_files;
    /* If not NULL, files are read each time they are asked for, instead of those above; this may wait for a disk.
     * False: there is no such file. *bytes is freed with free(); NULL: no memory. */
    bool (*read)(void *self, const char *name, char **bytes, size_t *n);
    void *self;
};

/* ---- Stored files that requests name: weights and presets. api/ reads them, server/ stores them. ----------------- */

enum { API_WEIGHT_NAME_MAX = 128, API_SHA256_CHARS = 64 };

/* [A-Za-z0-9][A-Za-z0-9._-]{0,127}: never a path. */
bool api_weight_name_is_valid(const char *name);

/* The contents of a safetensors file, read once: names, shapes and places of tensors. Borrows nothing from the file. */
struct api_tensors;
/* Reads them (freed with api_tensors_free). NULL if the file is wrong; then why (room for n_why bytes) states the
 * reason. NULL with why "": no memory. Any thread. */
struct api_tensors *api_tensors_read(const char *bytes, size_t n, char *why, size_t n_why);
void api_tensors_free(struct api_tensors *tensors); /* NULL is accepted */

/* A kind of stored files. read parses the bytes of a file into what api/ needs of it (freed with free), and borrows
 * nothing from them. NULL if the file is wrong; then why (room for n_why bytes) states the reason. NULL with why "": no
 * memory. Any thread. */
struct api_contents {
    const char *what; /* "weights", in messages */
    void *(*read)(const char *bytes, size_t n, char *why, size_t n_why);
    void (*free)(void *contents); /* NULL is accepted */
};
extern const struct api_contents api_contents_weights, api_contents_presets;

/* Stored presets, and the bytes of all together. In memory, each is some ten times as large. */
enum { API_PRESETS_MAX = 1024, API_PRESETS_BYTES_MAX = 2 << 20 };

struct api_stored_preset; /* a stored preset; api/inputs/inputs.h */

/* One stored file. It does not change, and lives until its last holder releases it. */
struct api_stored_file {
    const char *name;
    const char *bytes; /* aligned to 64 */
    size_t n_bytes;
    char sha256[API_SHA256_CHARS + 1]; /* of bytes, in lower case */
    union {                            /* what its kind has read of it */
        const void *contents;
        const struct api_tensors *tensors;
        const struct api_stored_preset *preset;
    };
};

/* The conditions under which a request may change a stored file: its headers, NULL where absent. */
struct api_guard {
    const char *if_match, *if_none_match;
};
/* Whether a file with this digest (NULL: there is no file) meets the conditions. The store calls it while nothing else
 * can change the file. */
bool api_guard_allows(const struct api_guard *guard, const char *sha256);

enum api_stored {
    API_STORED_NEW,
    API_STORED_REPLACED,
    API_STORED_GUARDED,  /* the conditions are not met; here and in the cases below nothing has changed */
    API_STORED_FULL,     /* over bytes_max */
    API_STORED_TOO_MANY, /* over files_max */
    API_STORED_NO_ROOM,  /* it would fit, but files that were replaced or removed are still being read */
    API_STORED_BUSY,     /* as many requests as may do so wait for this name, or for the place, or it took too long */
    API_STORED_NO_MEMORY,
    API_STORED_NO_FILE,   /* put: the place has a folder under that name */
    API_STORED_FAILED,    /* the place refused it or does not answer; the log gives the reason */
    API_STORED_UNGUARDED, /* the place cannot hold conditions, so a change that has some is not made */
    API_STORED_ABSENT     /* remove: there is no file of that name */
};

/* A look-up. */
struct api_wanted {
    const char *name;
    const char *sha256;  /* the digest that the file should have: a file in memory that has another is compared with the
                            place first; NULL: any */
    bool must_not_block; /* look in memory only */
};

enum api_found {
    API_FOUND,           /* with another digest than the wanted one, if no file has that now */
    API_FOUND_NOTHING,   /* there is no file of that name */
    API_FOUND_LATER,     /* must_not_block, and the place has to be asked: call again from a worker */
    API_FOUND_UNKNOWN,   /* the place does not answer, so whether there is one is not known; the log gives the reason */
    API_FOUND_TOO_LARGE, /* there is one, but with it all files would be over bytes_max, or more than files_max */
    API_FOUND_NO_ROOM,   /* it would fit, but not now: as API_STORED_NO_ROOM, or others are being read from the place */
    API_FOUND_BUSY       /* as API_STORED_BUSY */
};

/* A caller that gets a file holds it until it calls release. Every callback may be called from any thread; find (unless
 * it must not block), put and remove may wait for a disk or a network. */
struct api_store {
    void *self;
    const struct api_contents *contents;
    uint64_t bytes_max; /* of all files together */
    const char *limit;  /* the flag that sets it, "--max-weights"; NULL: none does */
    size_t files_max;
    const char *place; /* the flag that states where files are kept, "--weights-dir"; NULL: in memory only */
    /* Writes the file, held, to *weights if it returns API_FOUND. */
    enum api_found (*find)(void *self, const struct api_wanted *wanted, const struct api_stored_file **weights);
    void (*release)(void *self, const struct api_stored_file *weights);
    /* A card is a file without its bytes. A reply that lists files holds only their cards, so that a slow reader does
     * not keep the bytes of a replaced file in memory. list writes the cards of all files, sorted by name, each held,
     * files_max at most, and returns their number; hold_card adds a holder to the card of a file that is held. */
    size_t (*list)(void *self, const struct api_stored_file **cards);
    void (*hold_card)(void *self, const struct api_stored_file *card);
    void (*drop_card)(void *self, const struct api_stored_file *card);
    bool (*nearest)(void *self, const char *name, char *nearest); /* writes a name; false: none is near */
    /* Stores a copy of bytes; takes contents. On success *weights is the new file, held. */
    enum api_stored (*put)(void *self, const char *name, const char *bytes, size_t n, void *contents,
                           const struct api_guard *guard, const struct api_stored_file **weights);
    enum api_stored (*remove)(void *self, const char *name, const struct api_guard *guard); /* never API_STORED_NEW */
};

/* ---- The host ---------------------------------------------------------------------------------------------------- */

enum { API_TIME_BYTES = 32 }; /* "2026-03-01T12:00:00Z" */

/* Limits, settings and callbacks that the server gives to api/. One per process, owned by the server; its fields never
 * change. Callbacks may be called from any thread. */
struct api_host {
    uint64_t max_body;     /* bytes of a request body; named in the 413 together with its flag --max-body */
    uint64_t max_json;     /* bytes of a request's JSON; --max-json; 0: the same as max_body */
    uint64_t max_answer;   /* bytes of the tensors of one answer; --max-answer */
    uint64_t max_pictures; /* bytes of all complete pictures that are not read yet; --buffer-memory */
    uint64_t max_work;     /* multiply-adds of one answer, or other work of the same time; --max-work */
    uint64_t max_analysis; /* multiply-adds of one analysis or diagnosis; --max-analysis */
    uint64_t max_memory;   /* bytes that all running requests may use together; --max-memory */
    bool (*take_memory)(const struct api_host *host, uint64_t n); /* reserves n of them; NULL: no limit */
    void (*give_memory)(const struct api_host *host, uint64_t n);
    const char *cors_origins;                      /* separated by spaces or commas, or "*"; NULL or "": none */
    const char *frame_origins;                     /* that may frame /?embed; as cors_origins */
    const char *commit;                            /* for /version */
    bool has_mcp;                                  /* /mcp is answered; --mcp */
    bool is_in_process;                            /* no server runs: what needs one is refused */
    bool is_tls;                                   /* clients reach it by HTTPS, without a proxy */
    const char *public_url;                        /* where clients reach it; --public-url; NULL: Host names it */
    const struct api_store *store;                 /* stored weights; NULL: none are stored */
    const struct api_store *presets;               /* stored presets; NULL: none are stored */
    void (*print_time)(char text[API_TIME_BYTES]); /* the time of day (RFC 3339); needed if presets are stored */
    const struct api_page *page;                   /* NULL: none */
    const struct api_page *clients;                /* client libraries; NULL: none. Its build is not used. */
    const atomic_bool *is_ending;                  /* true from the first signal on, for /readyz; NULL: never */
    char *(*metrics_print)(size_t *n_bytes);       /* text of /metrics (freed with free); NULL: no memory */
    /* The calling thread begins to compute this metric of an analysis, a constant string; NULL: it has ended. And the
     * number of hypotheses that a diagnosis has tried. NULL: not wanted. */
    void (*metric_step)(const char *metric);
    void (*hypotheses_searched)(uint64_t n);
    uint64_t experiments;     /* that may run at a time, --experiments; 0: the endpoint is switched off */
    uint64_t experiment_ms;   /* that one may take; --experiment-seconds */
    uint64_t (*now_ms)(void); /* a steady clock; needed if there are experiments, as are the two below */
    /* turn: of the call. False: as many run as may, or it is another client's turn. */
    bool (*experiment_begin)(uint64_t turn);
    void (*experiment_end)(bool is_done, uint64_t n_steps);
};

static inline bool api_host_is_ending(const struct api_host *host)
{
    return host->is_ending && atomic_load_explicit(host->is_ending, memory_order_relaxed);
}

/* The rights of the client, as the server has found them. */
enum api_access {
    API_ACCESS_OPEN,  /* no token is needed */
    API_ACCESS_NONE,  /* a token is needed, and the request has none */
    API_ACCESS_WRONG, /* the request has an unknown token */
    API_ACCESS_READ,
    API_ACCESS_WRITE /* may also change stored weights and presets */
};

/* The texts of a request that an answer may depend on: a text added here automatically becomes part of the cache keys
 * (server/exchange/), and server/transport/request.c does not compile until a header fills it. */
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
    TEXT(API_INFERENCE_HEADER, inference_header) /* Inference-Header-Content-Length; only /v2 reads it */              \
    TEXT(API_ACCEPT_LANGUAGE, accept_language)                                                                         \
    TEXT(API_ACCEPT_ENCODING, accept_encoding) /* only the page reads it */                                            \
    TEXT(API_LAST_EVENT_ID, last_event_id)                                                                             \
    TEXT(API_HOST, host)               /* only links to this server read it, and the one below */                      \
    TEXT(API_PROXY_PROTOCOL, protocol) /* X-Forwarded-Proto of a trusted proxy */                                      \
    TEXT(API_MCP_VERSION, mcp_version) /* MCP-Protocol-Version; only /mcp reads this and the two below */              \
    TEXT(API_MCP_METHOD, mcp_method)                                                                                   \
    TEXT(API_MCP_NAME, mcp_name)

#define API_TEXT_ID(id, field) id,
#define API_TEXT_FIELD(id, field) const char *field;

enum api_text_id { API_TEXTS(API_TEXT_ID) API_N_TEXTS };

/* One request as received. All pointers are borrowed until the reply is freed; NULL means the header is absent. */
struct api_call {
    enum api_access access;
    const char *client; /* the name of its token; it lasts as long as the host; NULL: none */
    uint64_t turn;      /* the number of the client whose turn it uses; 0: none */
    bool is_foreign;    /* its Origin is not that of the host that it names */
    bool is_elsewhere;  /* the host that it names is neither this machine nor an --allowed-host */
    bool is_unasked;    /* a browser sent it for a page of another site, or in advance (prefetch) */
    union {             /* the same pointers, by name and by number */
        struct {
            API_TEXTS(API_TEXT_FIELD)
        };
        const char *texts[API_N_TEXTS]; /* by enum api_text_id */
    };
    const char *body; /* NULL when empty */
    size_t body_bytes;
    const struct api_route *route; /* set by api_head, which has found and checked it; NULL: not yet */
    enum pe_lang lang;             /* of its errors, unless its body names another; set by api_speak */
    bool has_lang;
    bool body_is_ours;   /* the body's memory is writable, and after this call only the reply reads it: tensors may be
                            moved by a few bytes to align their elements */
    bool is_completed;   /* the part `request` of a multipart body gives only what nothing else of the call gives */
    bool must_not_block; /* the caller's thread must not block: see api_read */
};

enum { API_HEADERS_MAX = 12 };
#define API_LENGTH_UNKNOWN UINT64_MAX

struct api_header {
    const char *name;
    char *value;
};

/* The bytes of an answer, in pieces: one after the other they are the body. A piece depends only on the body and its
 * number. The kinds are in api/formats/body.c, replies/reply.c and
 * endpoints/. */
struct api_body {
    uint64_t length;   /* of all; API_LENGTH_UNKNOWN: send chunked */
    uint64_t n_pieces; /* 0: empty; UINT64_MAX: until an empty piece, and each depends on the one before */
    size_t piece_max;  /* no piece is longer than this */
    const char *bytes; /* all of it, if it is finished; else NULL */
    /* Writes piece i to dst (room for piece_max bytes, aligned to 8) and returns its length. Any thread. */
    size_t (*piece)(struct api_body *body, uint64_t i, char *dst);
    /* True if piece i would repeat the work of earlier pieces that are not finished when it begins (the checksums of a
     * zip file). If possible, begin it after they are finished; its bytes are right in any order. NULL: never. */
    bool (*waits)(const struct api_body *body, uint64_t i);
    void (*drop)(struct api_body *body);
};

/* How the pieces of a body are computed. */
enum api_pace {
    API_PACE_READY,  /* all of them at once by the loop: with freeing the reply, well under a millisecond */
    API_PACE_QUICK,  /* by the loop: each takes about as long as copying it */
    API_PACE_WORKER, /* by workers */
    API_PACE_LIVE /* one after the other on a thread of their own, each from the state that the one before has left */
};

struct api_reply {
    int status;
    const char *content_type;
    struct api_header headers[API_HEADERS_MAX]; /* besides Content-Type and Content-Length; owned by the reply */
    size_t n_headers;
    struct api_body *body; /* owned; never NULL */
    bool computes;         /* a piece spends its time computing numbers, not formatting them: for Server-Timing */
    enum api_pace pace;
    bool is_repeatable;  /* the same call gets the same answer as long as this process runs */
    uint64_t memory;     /* bytes that it has reserved from the host; a large number takes long to free */
    uint64_t n_finished; /* complete bytes that the client has not read yet: those of a picture */
    uint64_t timeout_us; /* the answer should begin within this time after the request; 0: no limit */
    const char *route;  /* the route's pattern, "/encode", for log and metrics; a constant string, "" if unknown path */
    const char *scheme; /* a constant string, "" if none */
    const char *format; /* "json", "raw", …; a constant string */
    const char *method, *tool; /* of /mcp, for the log: constant strings, NULL: none */
    enum pe_lang lang;         /* of texts in its pieces: their thread speaks it */
};

/* Decides from the head alone whether to refuse a request before its body is received: a token that is missing, wrong
 * or without the right, an unknown path, a wrong method, a body that is too large, a content coding. declared_bytes is
 * Content-Length, or API_LENGTH_UNKNOWN if the body is chunked or absent; body and body_bytes are not read. Returns the
 * refusal, or NULL: then receive the body. */
struct api_reply *api_head(const struct api_host *host, struct api_call *call, uint64_t declared_bytes);

/* Two things belong to the thread while it works for a call, and are entered once and left once by whoever calls the
 * functions below: the language of refusals (api_speak; NULL: English again), and whether the client still wants the
 * answer (pe_watch), which long work asks from time to time: if not, the reply becomes a refusal that is not
 * repeatable. pe_text finds the texts of api/ and server/ too, which are in api/zh.po. */
void api_speak(struct api_call *call);

/* A whole request is answered in two steps, which may run on different threads. Each takes a few microseconds plus
 * reading the body; for a body of many megabytes take both on a worker. A reply for which memory runs out is a constant
 * 503, which api_reply_free ignores. */
struct api_request;

enum api_outcome {
    API_READ,     /* *request has been read and checked: build its answer */
    API_ANSWERED, /* *reply is known by now: a refusal, or the answer of an endpoint that reads nothing */
    /* Only if call->must_not_block: what follows may wait, or take more than about a millisecond. Call api_read again
     * from a worker, without must_not_block, and with the same *request: no step of it is taken twice. */
    API_ELSEWHERE
};
/* *request: NULL at first. */
enum api_outcome api_read(const struct api_host *host, const struct api_call *call, struct api_request **request,
                          struct api_reply **reply);
struct api_reply *api_build(struct api_request *request); /* takes the request; never NULL */
void api_request_free(struct api_request *request);       /* of one that is given up; NULL is accepted */

/* Splits the target of a request ("/encode?len=4", "http://host/encode") in place: *host becomes the host and port, or
 * NULL, *path the decoded path, and *query the text after the ?, still encoded, or NULL. Returns NULL, or what is wrong
 * with the target: a 400. */
const char *api_target_split(char *target, const char **host, const char **path, const char **query);

/* Both steps, in the language of the call. NULL: a worker should take them (only if call->must_not_block). */
struct api_reply *api_answer(const struct api_host *host, const struct api_call *call);

/* The same with the check of the head before it: all that a call in process takes. Never NULL. */
struct api_reply *api_ask(const struct api_host *host, struct api_call *call);

/* Returns the 429 for a client that has used up its quota; retry_s: seconds until the client may try again. detail is
 * copied. */
struct api_reply *api_refuse_quota(const struct api_host *host, const struct api_call *call, const char *detail,
                                   uint64_t retry_s);

/* Bytes of all complete pictures that are not read yet; api_host.max_pictures is their limit. */
uint64_t api_pictures_bytes(void);

/* Calls of tools of /mcp, for the metrics: tool i of the list (NULL: the end), by outcome. */
const char *api_mcp_tool_name(size_t i);
extern const char *const api_mcp_outcomes[]; /* "ok", …; NULL-terminated */
uint64_t api_mcp_calls(size_t tool, size_t outcome);

/* Is this path free of quotas (the first page, health, metrics)? */
bool api_is_open(const char *path);

/* Returns a refusal that the server itself decides on (408, 429, 431, 503 …), in the usual form of an error (RFC 9457).
 * detail is copied. */
struct api_reply *api_refusal(int status, const char *detail);
/* The same as an answer to this call, whose texts may all be NULL: with what a page of another origin and a cache
 * need. */
struct api_reply *api_refuse(const struct api_host *host, const struct api_call *call, int status, const char *detail);

/* The media type of an answer to a request for this path (NULL: unknown). Errors under /v2 are application/json:
 * KServe's clients show their words only then. */
const char *api_reply_media_type(const struct api_reply *reply, const char *path);

static inline size_t api_reply_piece(const struct api_reply *reply, uint64_t i, char *dst)
{
    return reply->body->piece(reply->body, i, dst);
}

static inline bool api_reply_waits(const struct api_reply *reply, uint64_t i)
{
    return reply->body->waits && reply->body->waits(reply->body, i);
}

/* The value of a header; NULL: it has none of this name. */
const char *api_reply_find(const struct api_reply *reply, const char *name);

/* Gives a reply its finished body, all its pieces one after the other (memory from malloc, which the reply takes), and
 * frees the plan and the request it came from. */
void api_reply_finish(struct api_reply *reply, char *body, size_t n);

/* Adds an owner; api_reply_free removes one. Any thread that owns the reply may call it. */
struct api_reply *api_reply_hold(struct api_reply *reply);
void api_reply_free(struct api_reply *reply); /* NULL is accepted */

/* ---- For a program that asks in process, and shows answers to a person ------------------------------------------- */

const struct pe_param *
api_form_params(void); /* the rows of an answer's form: dtype, format, …; end with .name = NULL */

/* Writes the text of a refusal for a person: its sentence, then the pointer to the field at fault, as in `len is 0 …
 * (at /len)`. */
void api_refusal_print(const struct api_reply *reply, char *sentence, size_t n_bytes);

/* The names of the tensors that the answer has, at most n_max of them; borrowed until the reply is freed. Returns how
 * many there are; 0: it is no answer with tensors. */
size_t api_reply_tensors(const struct api_reply *reply, const char **names, size_t n_max);

#endif
