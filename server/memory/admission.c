/* Owns the account of the memory and streams that current requests have reserved.
 *
 * The problem: if memory runs out, Linux does not refuse malloc, it kills the process. So every large allocation is
 * announced first, as a number of bytes, and refused by name of the limit, before anything is allocated. Estimates are
 * beside the code that allocates (core/request/request.h).
 *
 * The account is one atomic number. A reservation adds and then checks, and takes back what does not fit: two callers
 * at the same time may both be refused where one would have fitted, but can never both succeed where only one fits. No
 * lock, and nothing to wait for.
 *
 * Who may have how much of what is left is in shares.c. Bodies may have seven eighths of all, because they arrive as
 * slowly as their senders choose; without that part kept free, slow uploads could keep every other request out. */
#include "server/memory/memory.h"

#include "core/inside.h"
#include "server/process/process.h"

#include <inttypes.h>
#include <stdatomic.h>
#include <stdio.h>

static struct {
    uint64_t max_memory, max_streams;
    atomic_uint_fast64_t memory, bodies, n_streams; /* bodies: the part of memory reserved for bodies */
} account = {.max_memory = UINT64_MAX, .max_streams = UINT64_MAX};

void admission_setup(uint64_t max_memory, uint64_t max_streams)
{
    account.max_memory = max_memory;
    account.max_streams = max_streams;
}

static uint64_t four_fifths(uint64_t n) { return n - n / 5 - (n % 5 > 0); }

static uint64_t most_for_bodies(void) { return account.max_memory - account.max_memory / 8; }

static uint64_t taken_of(const atomic_uint_fast64_t *taken)
{
    return atomic_load_explicit(taken, memory_order_relaxed);
}

/* The part of max that is not reserved; both values may change at any time. */
static uint64_t free_of(const atomic_uint_fast64_t *taken, uint64_t max)
{
    uint64_t now = taken_of(taken);
    return now < max ? max - now : 0;
}

static void give(atomic_uint_fast64_t *taken, uint64_t n)
{
    if (n)
        atomic_fetch_sub_explicit(taken, n, memory_order_relaxed);
}

/* Adds first, then checks. Two concurrent callers may both be refused where one would have fitted, but they can never
 * both succeed where only one fits. */
static bool take_bytes(atomic_uint_fast64_t *taken, uint64_t n, uint64_t max)
{
    if (n > max)
        return false;
    uint64_t before = atomic_fetch_add_explicit(taken, n, memory_order_relaxed);
    if (before <= max - n)
        return true;
    give(taken, n);
    return false;
}

/* The same for a client, which also must stay within its share of max. */
static bool take_share(atomic_uint_fast64_t *taken, enum share share, uint64_t client, uint64_t n, uint64_t max)
{
    if (!take_bytes(taken, n, max))
        return false;
    if (shares_take(share, client, n, free_of(taken, max)))
        return true;
    give(taken, n);
    return false;
}

/* ---- Memory ---------------------------------------------------------------------------------------------------- */

bool admission_take(uint64_t n_bytes) { return take_bytes(&account.memory, n_bytes, account.max_memory); }

bool admission_take_counted(uint64_t n_bytes)
{
    bool is_taken = take_bytes(&account.memory, n_bytes, account.max_memory);
    metrics_add(METRICS_REJECTED_MEMORY, !is_taken && n_bytes <= account.max_memory);
    return is_taken;
}

bool admission_may_fit(uint64_t n_bytes) { return n_bytes <= account.max_memory; }

void admission_give(uint64_t n_bytes) { give(&account.memory, n_bytes); }

uint64_t admission_memory(void) { return taken_of(&account.memory); }

bool admission_take_for(uint64_t client, uint64_t n_bytes)
{
    return take_share(&account.memory, SHARE_MEMORY, client, n_bytes, account.max_memory);
}

void admission_give_for(uint64_t client, uint64_t n_bytes)
{
    shares_give(SHARE_MEMORY, client, n_bytes);
    give(&account.memory, n_bytes);
}

bool admission_hold(uint64_t client, const void *object, uint64_t n_bytes)
{
    return shares_take_object(SHARE_MEMORY, client, object, n_bytes, free_of(&account.memory, account.max_memory));
}

void admission_let_go(uint64_t client, const void *object) { shares_give_object(SHARE_MEMORY, client, object); }

bool admission_take_spare(uint64_t client, uint64_t n_bytes)
{
    return take_share(&account.memory, SHARE_MEMORY, client, n_bytes, account.max_memory / 2);
}

bool admission_take_body(uint64_t client, uint64_t n_bytes)
{
    if (!take_bytes(&account.bodies, n_bytes, most_for_bodies()))
        return false;
    if (admission_take_for(client, n_bytes))
        return true;
    give(&account.bodies, n_bytes);
    return false;
}

void admission_give_body(uint64_t client, uint64_t n_bytes)
{
    give(&account.bodies, n_bytes);
    admission_give_for(client, n_bytes);
}

static uint64_t left_for(uint64_t client)
{
    return shares_left(SHARE_MEMORY, client, free_of(&account.memory, account.max_memory));
}

bool admission_fits_body(uint64_t client, uint64_t n_bytes)
{
    return n_bytes <= free_of(&account.bodies, most_for_bodies()) && n_bytes <= left_for(client);
}

/* ---- Streams --------------------------------------------------------------------------------------------------- */

bool admission_begin_stream(uint64_t client)
{
    return take_share(&account.n_streams, SHARE_STREAMS, client, 1, account.max_streams);
}

void admission_end_stream(uint64_t client)
{
    shares_give(SHARE_STREAMS, client, 1);
    give(&account.n_streams, 1);
}

/* ---- Refusals -------------------------------------------------------------------------------------------------- */

struct admission_refusal admission_refuse_memory(uint64_t client, const char *what, uint64_t n_bytes)
{
    uint64_t most = four_fifths(account.max_memory);
    struct admission_refusal refusal = {.status = n_bytes > most ? 413 : 503};
    if (refusal.status == 413)
        snprintf(refusal.detail, sizeof refusal.detail,
                 pe_text("%s takes %" PRIu64 " bytes of memory; allowed for one client at a time: %" PRIu64
                         ", four fifths of that for all (the limit --max-memory of this server)"),
                 pe_text(what), n_bytes, most);
    else
        snprintf(refusal.detail, sizeof refusal.detail,
                 pe_text("%s takes %" PRIu64 " bytes of memory; of the %" PRIu64
                         " for all (the limit --max-memory of this server) %" PRIu64
                         " are taken, and one client gets at most four times what it leaves free, now %" PRIu64
                         " more; try again later"),
                 pe_text(what), n_bytes, account.max_memory, admission_memory(), left_for(client));
    return refusal;
}

/* A client's first stream is never over its share. So if there is room for the stream, what was missing is memory for
 * its entry in the table of clients. */
struct admission_refusal admission_refuse_stream(uint64_t client)
{
    uint64_t n_own = shares_held(SHARE_STREAMS, client), n_all = taken_of(&account.n_streams);
    bool is_full = n_all >= account.max_streams;
    struct admission_refusal refusal = {.status = is_full || n_own ? 429 : 503};
    if (refusal.status == 503)
        snprintf(refusal.detail, sizeof refusal.detail, "%s",
                 pe_text("no memory for another stream now; try again later"));
    else if (is_full)
        snprintf(refusal.detail, sizeof refusal.detail,
                 pe_text("%" PRIu64 " answers are being streamed, as many as this server streams at a time (the "
                         "limit --max-streams); try again later"),
                 account.max_streams);
    else
        snprintf(refusal.detail, sizeof refusal.detail,
                 pe_text("%" PRIu64 " answers are being streamed to this client, its share: of the %" PRIu64
                         " that this server streams at a time (the limit --max-streams) one client gets at most "
                         "four times as many as it leaves free; try again later"),
                 n_own, account.max_streams);
    return refusal;
}
