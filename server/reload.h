/* Reads again what may change while the server serves: after SIGHUP the tokens, the certificate and the stored files;
 * tokens and certificate also when their files have been replaced. */
#ifndef SERVER_RELOAD_H
#define SERVER_RELOAD_H

#include "server/process/replaced.h"
#include "server/shutdown.h"
#include "server/store/weights/stored.h"

/* A thing that is reloaded while the server keeps serving. */
struct reload_job {
    struct job job;
    struct reload *reload;
    bool is_at_work, is_wanted; /* is_wanted: reload once more afterwards */
};

struct reload {
    const struct options *options; /* borrowed, as are the next three */
    const struct stored *stored;
    const struct shutdown *shutdown;
    struct http_door *door;
    struct reload_job secrets, folder; /* secrets are tokens and certificate, folder the stored files */
    struct reload_job looking;         /* whether one of the secrets has been replaced */
    struct replaced files[3];          /* token file, certificate, key; used by the job that looks */
    bool is_replaced;                  /* its result */
    struct loop *loop;                 /* the first loop, as of reload_setup */
    struct loop_timer *look;
};

/* Notes which files of secrets there are; call it before they are read. Everything is borrowed until loops_free. */
void reload_init(struct reload *reload, const struct options *options, const struct stored *stored,
                 const struct shutdown *shutdown, struct http_door *door);

/* Handles SIGHUP on this loop, the first, from now on. False: no memory. */
bool reload_setup(struct reload *reload, struct loop *loop);

/* Looks for replaced files from now on, if tokens or a certificate are in use. */
void reload_start(struct reload *reload);

#endif
