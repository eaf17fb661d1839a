/* Answers that equal calls share: one entry {key, followers, answer} for each.
 *
 * While a worker computes an answer, equal calls that arrive follow the first, so a picture is drawn once even if a
 * thousand clients ask for it at the same time. A small answer computed on a loop is cached, so that later calls need
 * no computing; the least recently used is evicted first.
 *
 * All loops share the entries behind a lock that is held briefly. With one cache for each of n loops, each answer would
 * be computed and stored n times. */
#ifndef SERVER_EXCHANGE_ANSWERS_H
#define SERVER_EXCHANGE_ANSWERS_H

#include "api/api.h"
#include "server/exchange/call.h"
#include "server/loop/loop.h"

struct answers;
struct answers_entry;

/* bytes_max limits keys, cached answers and bookkeeping together; 0: nothing is cached. NULL: no memory. */
struct answers *answers_new(size_t bytes_max);
void answers_free(struct answers *answers); /* NULL is accepted */

/* ---- Cached answers. Any thread. --------------------------------------------------------------------------------- */

/* The answer of an equal call, with one more reference (api_reply_free), or NULL. All parts of the call that api/ reads
 * are compared, byte for byte. */
struct api_reply *answers_find(struct answers *answers, const struct api_call *call);

/* Caches a reply that is repeatable and has its body, with a reference of its own. Does nothing for any other reply, or
 * if memory runs out. */
void answers_keep(struct answers *answers, const struct api_call *call, struct api_reply *reply);

/* ---- Answers that are being computed. Any thread. ---------------------------------------------------------------- */

/* One request's part in an answer that is being computed; embedded in the object that owns the request. */
struct answers_part {
    struct loop_call completed; /* posted to loop; set its fire and loop before answers_join */
    struct loop *loop;
    struct api_reply *reply; /* the answer with one more reference, or NULL: answer the request yourself */
    struct call *call;       /* the leader's, which the reply borrows from: held; drop it after the reply */
    bool may_join;           /* if there is no reply: others may still share one (the leader has given up) */
    uint64_t waits_since;    /* when the leader's wait began, as of struct job, or this one's part in it; 0: none.
                              * Set it before answers_complete; it is given to followers that get no reply */
    uint64_t joined_at;      /* private, as are the fields below: ns */
    struct answers_entry *entry;
    struct answers_part *next;
};

enum answers_role {
    ANSWERS_ALONE,  /* the key is too long, or no memory */
    ANSWERS_LEADS,  /* compute it, then call answers_complete */
    ANSWERS_FOLLOWS /* completed will be called, once */
};

enum answers_role answers_join(struct answers *answers, const struct api_call *call, struct answers_part *part);

/* Does nothing unless the part leads. reply: NULL if the leader has given up. It is shared only if it is repeatable, or
 * a 503, for which each follower would wait in vain in its turn; other replies (e.g. of stored weights, which may have
 * changed between the requests) are for the leader alone. A ready reply must have its body by now. call: the one that
 * it was made from. */
void answers_complete(struct answers *answers, struct answers_part *leader, struct api_reply *reply, struct call *call);

/* For shutdown, when no loop runs: calls completed of every follower, without a reply. */
void answers_abandon(struct answers *answers);

#endif
