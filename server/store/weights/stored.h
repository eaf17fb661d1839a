/* The stored weights and presets of this process, and the folder or bucket that the options name for them. */
#ifndef SERVER_STORE_WEIGHTS_STORED_H
#define SERVER_STORE_WEIGHTS_STORED_H

#include "server/process/options.h"
#include "server/store/weights/weights.h"

struct stored {
    struct weights *weights, *presets; /* owned */
    struct store *bucket; /* the store of weights with --store, which is also that of presets; owned by weights */
};

/* Opens both and reads what they hold. False: the log gives the reason; what has been opened is for stored_free all the
 * same.
 */
bool stored_open(struct stored *stored, const struct options *options);
bool stored_start(struct stored *stored); /* begins to refresh. False: no thread */
void stored_drain(struct stored *stored); /* requests wait for the store for a second at most from here on */
void stored_stop(
    struct stored *stored); /* call it before loops_free, which waits for jobs: one may wait for the store */
void stored_free(struct stored *stored); /* when nothing holds a stored file any more, see disposal_finish */

/* --store-sweep: prints what was removed of the bucket, to standard output. False: why not is on standard error. */
bool stored_sweep(const struct options *options);

#endif
