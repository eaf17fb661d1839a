/* Bodies that are complete before they are sent, and stay in memory until they are read. The bytes of all such bodies
 * in the process are counted together, so that many slow readers of pictures cannot fill the memory. */
#include "api/formats/format.h"

#include <inttypes.h>
#include <stdatomic.h>
#include <stdlib.h>

static _Atomic uint64_t bytes_kept;

uint64_t api_pictures_bytes(void) { return atomic_load(&bytes_kept); }

struct finished {
    char *bytes;
    size_t n;
};

static void drop(void *self)
{
    struct finished *finished = self;
    atomic_fetch_sub(&bytes_kept, finished->n);
    free(finished->bytes);
}

static bool fail_room(const struct api_opening *opening, struct api_problem *problem)
{
    return api_fail(problem, 503, "",
                    "pictures that others have not read yet fill the %" PRIu64
                    " bytes for them (--buffer-memory); try again later",
                    opening->max_kept);
}

/* Called before a picture is drawn, to avoid drawing one that would be refused. */
bool api_finished_has_room(const struct api_opening *opening, struct api_problem *problem)
{
    uint64_t kept = atomic_load(&bytes_kept);
    return kept == 0 || kept < opening->max_kept || fail_room(opening, problem);
}

/* A single picture is never too large; otherwise a server with little memory could not send any. */
static bool add(const struct api_opening *opening, struct finished *finished, struct api_problem *problem)
{
    uint64_t before = atomic_fetch_add(&bytes_kept, finished->n);
    if (before == 0 || (before < opening->max_kept && finished->n <= opening->max_kept - before))
        return true;
    drop(finished);
    return fail_room(opening, problem);
}

static bool keep(struct api_opening *opening, char *bytes, size_t n, struct api_problem *problem)
{
    struct finished *finished = api_arena_alloc(opening->arena, sizeof *finished);
    if (!finished) {
        free(bytes);
        return api_fail_memory(problem);
    }
    *finished = (struct finished){bytes, n};
    if (!add(opening, finished, problem))
        return false;
    if (!api_arena_own(opening->arena, finished, drop))
        return api_fail_memory(problem);
    api_body_text(opening->stream, bytes, n);
    return true;
}

bool api_body_keep(struct api_opening *opening, struct api_text *text, struct api_problem *problem)
{
    if (text->state) {
        api_fail_text(problem, text);
        api_text_drop(text);
        return false;
    }
    char *bytes = realloc(text->bytes, text->n); /* growth leaves up to as much again unused */
    return keep(opening, bytes ? bytes : text->bytes, text->n, problem);
}
