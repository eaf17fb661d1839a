/* Owns the callback that tells the calling thread whether its work is still wanted. Each thread has its own, because
 * several clients may read from one plan and only one of them may disconnect. */

#include "core/numeric/numeric.h"

#include <stdlib.h>

static void (*on_wait)(void);

static _Thread_local struct {
    bool (*is_gone)(void *caller);
    void *caller;
    bool was_cancelled;
} watch;

void pe_watch(bool (*is_gone)(void *caller), void *caller)
{
    watch.is_gone = is_gone;
    watch.caller = caller;
    watch.was_cancelled = false;
}

bool pe_was_cancelled(void) { return watch.was_cancelled; }

bool pe_is_cancelled(void)
{
    if (!watch.was_cancelled && watch.is_gone)
        watch.was_cancelled = watch.is_gone(watch.caller);
    return watch.was_cancelled;
}

enum pe_status pe_cancelled(struct pe_failure *err)
{
    pe_fail(err, "", "cancelled: the client disconnected");
    return err->status = PE_CANCELLED;
}

/* Giving pages back to the system takes a tenth of a millisecond for each MiB. A shrinking realloc gives back the end.
 */
void pe_free_large(void *memory, size_t n_bytes)
{
    const size_t step = (size_t)32 << 20;
    while (memory && n_bytes > 2 * step) {
        void *rest = realloc(memory, n_bytes -= step);
        pe_is_cancelled();
        if (!rest)
            break;
        memory = rest;
    }
    free(memory);
}

bool pe_on_wait(void (*wait)(void))
{
    if (pe_is_settled())
        return false;
    on_wait = wait;
    return true;
}

void pe_wait(void)
{
    if (on_wait)
        on_wait();
}
