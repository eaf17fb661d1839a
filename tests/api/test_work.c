/* --max-work counts the work that is really done: a multiplication takes about as long in a part of an answer as in the
 * whole. */
#include "tests/api/ask.h"
#include "tests/support/rows.h"

#include <math.h>
#include <time.h>

static double cpu_now(void)
{
    struct timespec t;
    clock_gettime(CLOCK_THREAD_CPUTIME_ID, &t);
    return (double)t.tv_sec + (double)t.tv_nsec * 1e-9;
}

static struct api_reply *ask(const char *path, const char *json, uint64_t max_work)
{
    static struct api_host of_its_own;
    of_its_own = host;
    of_its_own.max_answer = UINT64_MAX;
    of_its_own.max_work = max_work;
    return post_to(&of_its_own, path, json);
}

/* The work that the refusal states. */
static double counted(const char *path, const char *json)
{
    struct answer a = gather(ask(path, json, 0));
    const char *number = strstr(a.body, "needs ");
    if (a.status != 413 || !number)
        fail_msg("%s: %d %.300s", json, a.status, a.body);
    double work = strtod(number + 6, NULL);
    answer_drop(&a);
    return work;
}

/* Seconds of the processor for all pieces; more than `most` are as good as these. */
static double spent_once(const char *path, const char *json, double most)
{
    double begun_at = cpu_now();
    struct api_reply *reply = ask(path, json, UINT64_MAX);
    if (reply->status != 200)
        fail_msg("%.200s: %d", json, reply->status);
    char *piece = piece_room(reply);
    for (uint64_t k = 0; k < reply->body->n_pieces && cpu_now() - begun_at < most; k++)
        api_reply_piece(reply, k, piece);
    free(piece);
    api_reply_free(reply);
    return cpu_now() - begun_at;
}

/* The least time of several tries, because other processes may disturb the machine. */
static double spent(const char *path, const char *json, double enough, double most)
{
    double best = HUGE_VAL;
    for (int i = 0; i < 5 && best > enough; i++)
        best = fmin(best, spent_once(path, json, most));
    return best;
}

enum { FACTOR = 4, N_WORDS = 2000, ROWS_MAX = 32 };

/* A row's request, with a part of the answer or without. Owned. */
static char *request_of(const json_t *row, const json_t *part)
{
    json_t *request = json_copy(json_object_get(row, "request"));
    if (part)
        json_object_update(request, (json_t *)(uintptr_t)part);
    char *text = row_request(request, N_WORDS, 100);
    json_decref(request);
    return text;
}

/* Seconds per multiplication: of the slowest plain answer, because a row that is only copied multiplies nothing.
 * Typical is one whose elements are computed one by one, by plain code. */
static double slowest_plain(const json_t *rows, double *speeds)
{
    double slowest = 0;
    size_t i;
    json_t *row;
    json_array_foreach(rows, i, row)
    {
        char *json = request_of(row, NULL);
        speeds[i] = spent(row_text(row, "path"), json, 0, HUGE_VAL) / counted(row_text(row, "path"), json);
        slowest = fmax(slowest, json_object_get(row, "is_typical") ? speeds[i] : 0);
        free(json);
    }
    return slowest;
}

TEST(test_parts_cost_what_is_counted)
{
    json_t *rows = rows_of("work"), *row, *part;
    double speeds[ROWS_MAX], slowest = slowest_plain(rows, speeds);
    size_t i, k;
    json_array_foreach(rows, i, row)
    {
        const char *path = row_text(row, "path");
        json_array_foreach(json_object_get(row, "parts"), k, part)
        {
            char *json = request_of(row, part);
            double work = counted(path, json), most = FACTOR * work * fmax(speeds[i], slowest);
            double seconds = spent(path, json, most, 3 * most + 0.1);
            if (seconds > most)
                fail_msg("%s, part %zu: %.3g multiplications take %.1f ms; allowed: %.1f", row_text(row, "id"), k, work,
                         seconds * 1e3, most * 1e3);
            free(json);
        }
    }
    json_decref(rows);
}

/* Both passes over the values count, and the one that vmin and vmax save does not. */
TEST(test_pictures_count_what_they_go_through)
{
    static const char plain[] = "{\"scheme\":\"floater\",\"dim\":64,\"len\":1000,\"seed\":1,\"format\":\"raw\"}";
    static const char measured[] = "{\"scheme\":\"floater\",\"dim\":64,\"len\":1000,\"seed\":1,\"format\":\"png\"}";
    static const char given[] =
        "{\"scheme\":\"floater\",\"dim\":64,\"len\":1000,\"seed\":1,\"format\":\"png\",\"vmin\":-1,\"vmax\":1}";
    double once = counted("/encode", plain);
    assert_true(counted("/encode", measured) > 2 * once);
    assert_true(counted("/encode", given) > once && counted("/encode", given) < 1.5 * once);
}
