/* Owns the memory that a request takes of --max-memory beside its body: its numbers read from JSON, its plan, its
 * picture. The figures are bounds or estimates, never much less than the memory really allocated
 * (tests/core/test_estimate.c). */
#include "api/requests/requests.h"

#include <inttypes.h>
#include <string.h>
#include <strings.h>

/* own: bytes that the request already holds, so waiting will not free them. */
static bool fail(const struct api_host *host, const char *what, uint64_t n, uint64_t own, struct api_problem *problem)
{
    if (n + own > host->max_memory)
        return api_fail(problem, 413, "",
                        "%s takes about %" PRIu64 " bytes of memory; allowed for all requests at a time: %" PRIu64
                        " (the limit --max-memory of this server)",
                        pe_text(what), n, host->max_memory);
    return api_fail(problem, 503, "",
                    "%s takes about %" PRIu64 " bytes of memory, more than other requests have left of the %" PRIu64
                    " for all (the limit --max-memory of this server); try again later",
                    pe_text(what), n, host->max_memory);
}

static uint64_t whole(double bytes) { return bytes < 0x1p62 ? (uint64_t)bytes : UINT64_C(1) << 62; }

/* Reserves n more bytes, of the `all` that the step takes. */
static bool take_more(struct api_request *request, const char *what, uint64_t n, uint64_t all,
                      struct api_problem *problem)
{
    const struct api_host *host = request->host;
    if (!host->take_memory || n == 0)
        return true;
    if (!host->take_memory(host, n))
        return fail(host, what, all, request->n_taken - (all - n) + request->body_bytes, problem);
    request->n_taken += n;
    return true;
}

static bool take_bytes(struct api_request *request, const char *what, double bytes, struct api_problem *problem)
{
    return take_more(request, what, whole(bytes), whole(bytes), problem);
}

/* Tensors stay where they are in the body; in JSON, each "0," in a list of numbers becomes a double, and all other text
 * becomes a tree of at most API_TREE_FACTOR times its size. */
enum { SMALL_BODY = 64 * 1024 };

static double json_bytes(size_t n_bytes)
{
    double n = (double)n_bytes;
    if (n_bytes <= SMALL_BODY) /* as many of which are read at the same time as there are threads */
        return 0;
    return 4 * n + API_TREE_FACTOR * (n < API_SKELETON_MAX ? n : API_SKELETON_MAX);
}

static double reading_bytes(const struct api_call *call)
{
    static const char *const tensors[] = {"application/x-npy", "application/zip", "application/x-npz",
                                          "application/vnd.safetensors", "application/x-gguf"};
    for (size_t i = 0; call->content_type && i < sizeof tensors / sizeof *tensors; i++)
        if (strncasecmp(call->content_type, tensors[i], strlen(tensors[i])) == 0)
            return 0;
    return json_bytes(call->body_bytes);
}

/* A request needs more memory than was reserved for: copies of tensors that cannot be used in place, trees of file
 * headers, texts that are kept while they are sent. */
static bool may_grow(void *self, size_t n)
{
    struct api_request *request = self;
    uint64_t needed = request->arena.n_bytes + n, least = 256 * 1024;
    if (needed <= SMALL_BODY || needed <= request->n_read)
        return true;
    uint64_t more = needed - request->n_read;
    more = more > least ? more : least;
    if (!take_bytes(request, "the request", (double)more, &request->refusal))
        return false;
    request->n_read += more;
    return true;
}

static bool begin(struct api_request *request, double bytes)
{
    request->body_bytes = request->call->body_bytes;
    /* Tensors drawn from seeds may be as large as those that a body can hold, and take as long as an answer. */
    uint64_t of_body = request->host->max_body / sizeof(float), of_work = request->host->max_work / API_DRAWN_WORK;
    request->drawing = (struct api_drawing){.max = of_body < of_work ? of_body : of_work,
                                            .max_at_once = request->must_not_block ? API_DRAWN_AT_ONCE : UINT64_MAX};
    if (!take_bytes(request, "reading the body", bytes, &request->problem))
        return false;
    request->n_read = request->n_taken;
    request->arena.may_grow = may_grow;
    request->arena.lender = request;
    return true;
}

bool api_memory_for_reading(struct api_request *request) { return begin(request, reading_bytes(request->call)); }

bool api_memory_for_json(struct api_request *request, size_t n) { return begin(request, json_bytes(n)); }

void api_memory_settle(struct api_request *request)
{
    uint64_t left = request->arena.n_bytes;
    if (request->n_taken > left) {
        request->host->give_memory(request->host, request->n_taken - left);
        request->n_taken = left;
    }
    request->n_read = request->n_taken;
}

/* A plan asks at each of its steps, mostly for little; so a small one asks the server once. */
enum { PLAN_STEP = 128 * 1024 };

static uint64_t in_steps(uint64_t n) { return (n + PLAN_STEP - 1) / PLAN_STEP * PLAN_STEP; }

enum pe_status api_memory_admit(void *caller, double bytes, struct pe_failure *err)
{
    struct api_request *request = caller;
    uint64_t all = in_steps(whole(bytes)), before = request->n_taken - request->n_read;
    request->is_refused =
        !take_more(request, "planning the answer", all > before ? all - before : 0, all, &request->problem);
    return request->is_refused ? err->status = PE_CANCELLED : PE_OK;
}

bool api_memory_fail(struct api_request *request, const struct pe_failure *err)
{
    return !request->is_refused && api_fail_core(&request->problem, err);
}

uint64_t api_memory_for_head(const struct api_host *host, const struct api_call *call, struct api_problem *problem)
{
    uint64_t head = api_little_endian(call->body, call->body_bytes < 8 ? (unsigned)call->body_bytes : 8);
    uint64_t n = API_TREE_FACTOR * (head < API_SAFETENSORS_HEADER_MAX ? head : 0) + 1; /* longer ones are refused */
    if (!host->take_memory || host->take_memory(host, n))
        return n;
    fail(host, "reading the file's head", n, call->body_bytes, problem);
    return 0;
}

void api_memory_refusal(const struct api_request *request, struct api_problem *problem)
{
    if (request && request->refusal.status)
        *problem = request->refusal;
}

/* Of the first tensor. Larger tensors are refused as pictures, and shrunk as text. */
static double picture_bytes(const struct api_source *source, const struct api_format *format)
{
    enum {
        BYTES_OF_CHARACTER = 48,
        BYTES_OF_PIXEL = 3
    }; /* with a colour's escape sequence; and once more compressed */
    double side = format->is_text ? API_COLUMNS_MAX : API_PICTURE_SIDE_MAX, most = side * side;
    if (api_source_count(source) == 0)
        return 0;
    double n = (double)api_source_output(source, 0)->n_rows * (double)api_source_output(source, 0)->row_len;
    return (n < most ? n : most) * (format->is_text ? BYTES_OF_CHARACTER : BYTES_OF_PIXEL);
}

bool api_memory_for_answering(struct api_request *request, const struct api_source *source)
{
    const struct api_format *format = request->format;
    double bytes = api_source_bytes(source) + (format->is_picture ? picture_bytes(source, format) : 0);
    return take_bytes(request, "making the answer", bytes, &request->problem);
}
