/* Requests that a worker is answering. An equal request that arrives meanwhile joins the flight and gets the same
 * reply, so that a picture is drawn once if a thousand clients ask for it at one time. All loops share it. */
#ifndef SERVER_KEPT_FLIGHTS_H
#define SERVER_KEPT_FLIGHTS_H

#include "api/api.h"
#include "server/cache/call_copy.h"
#include "server/loop/jobs.h"

struct flights;
struct flight;

/* Of one request; embedded in what owns it. */
struct flight_seat {
    struct jobs_call landed; /* posted to jobs; set its fire and jobs before flights_join */
    struct jobs *jobs;
    struct api_reply *reply; /* an owner more of the flight's, or NULL: answer the request yourself */
    struct call_copy *copy;  /* what the reply borrows from: the leader's, or held with the reply; drop it after that */
    bool may_join;           /* without a reply: others may still share one (this flight was given up) */
    struct flight *flight;   /* private */
    struct flight_seat *next;
};

enum flights_role {
    FLIGHTS_ALONE,  /* too long to compare, or no memory */
    FLIGHTS_LEADS,  /* answer it, then call flights_land */
    FLIGHTS_FOLLOWS /* landed will be called, once */
};

struct flights *flights_new(void);          /* NULL: no memory */
void flights_free(struct flights *flights); /* NULL is accepted */

/* Any thread; everything of call is copied. */
enum flights_role flights_join(struct flights *flights, const struct api_call *call, struct flight_seat *seat);

/* The leader's reply, NULL if it has given up. It is shared only if it is repeatable: others (of stored weights, which
 * may have changed between the requests) are for the leader alone. A light one must have its body by now, any other
 * must have been made from the call of leader->copy. */
void flights_land(struct flights *flights, struct flight_seat *leader, struct api_reply *reply);

/* At the end, with no loop running: calls landed of every follower, without a reply. */
void flights_abandon(struct flights *flights);

#endif
