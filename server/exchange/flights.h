/* Requests that a worker is answering. An equal request that arrives meanwhile joins the flight and gets the same
 * reply, so a picture is drawn once even if a thousand clients ask for it at the same time. All loops share the
 * list. */
#ifndef SERVER_EXCHANGE_FLIGHTS_H
#define SERVER_EXCHANGE_FLIGHTS_H

#include "api/api.h"
#include "server/exchange/call.h"
#include "server/loop/loop.h"

struct flights;
struct flight;

/* One request's part in a flight; embedded in the object that owns the request. */
struct flight_seat {
    struct loop_call landed; /* posted to loop; set its fire and loop before flights_join */
    struct loop *loop;
    struct api_reply *reply; /* the flight's reply with one more reference, or NULL: answer the request yourself */
    struct call *call;       /* the leader's, which the reply borrows from: held; drop it after the reply */
    bool may_join;           /* if there is no reply: others may still share one (this flight was given up) */
    uint64_t waits_since;    /* when the leader's wait began, as of struct job, or this one's part in it; 0: none.
                              * Set it before flights_land; it is given to followers that get no reply */
    uint64_t joined_at;      /* private, as are the fields below: ns */
    struct flight *flight;
    struct flight_seat *next;
};

enum flights_role {
    FLIGHTS_ALONE,  /* the key is too long, or no memory */
    FLIGHTS_LEADS,  /* answer it, then call flights_land */
    FLIGHTS_FOLLOWS /* landed will be called, once */
};

struct flights *flights_new(void);          /* NULL: no memory */
void flights_free(struct flights *flights); /* NULL is accepted */

/* Any thread. */
enum flights_role flights_join(struct flights *flights, const struct api_call *call, struct flight_seat *seat);

/* reply: the leader's reply, NULL if it has given up. It is shared only if it is repeatable, or a
 * 503, for which each follower would wait in vain in its turn; other replies (e.g. of
 * stored weights, which may have changed between the requests) are for the leader alone. A ready reply must have its
 * body by now. call: the one that it was made from. */
void flights_land(struct flights *flights, struct flight_seat *leader, struct api_reply *reply, struct call *call);

/* For shutdown, when no loop runs: calls landed of every follower, without a reply. */
void flights_abandon(struct flights *flights);

#endif
