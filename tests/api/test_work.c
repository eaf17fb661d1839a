/* --max-work counts the work that is really done: a multiplication takes about as long in a part of an answer as in the
 * whole. */
#include "tests/api/ask.h"

#include <math.h>
#include <stdio.h>
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
    struct api_call call = {.method = "POST", .path = path, .body = json, .body_bytes = strlen(json)};
    return api_answer(&of_its_own, &call);
}

/* The work that the refusal states. */
static double counted(const char *path, const char *json)
{
    struct answer a = gather(ask(path, json, 0));
    const char *number = strstr(a.body, "takes ");
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
    char *piece = aligned_alloc(64, (reply->body->piece_max + 64) / 64 * 64);
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

/* {plain[,part]}, where TOKENS stands for two thousand words. */
static void print_request(char *json, size_t room, const char *plain, const char *part)
{
    const char *tokens = strstr(plain, "TOKENS");
    size_t n = (size_t)snprintf(json, room, "{%.*s", (int)(tokens ? tokens - plain : (long)strlen(plain)), plain);
    for (int i = 0; tokens && i < 2000; i++)
        n += (size_t)snprintf(json + n, room - n, "%s\"%d\"%s", i ? "," : "[", i % 100, i == 1999 ? "]" : "");
    snprintf(json + n, room - n, "%s%s%s}", tokens ? tokens + 6 : "", part ? "," : "", part ? part : "");
}

enum { PARTS_MAX = 10, FACTOR = 4 };

static const struct {
    const char *path, *plain;
    bool is_typical; /* its elements are computed one by one, by plain code */
    const char *parts[PARTS_MAX];
} cases[] = {
    {"/encode",
     "\"scheme\":\"sinusoidal\",\"dim\":512,\"len\":40000,\"format\":\"raw\"",
     false,
     {"\"slice\":[[null,null,40000],null],\"reduce\":\"mean\"", "\"slice\":[null,[null,null,512]],\"reduce\":\"max\"",
      "\"slice\":[[null,null,100],[null,null,100]],\"reduce\":\"absmax\"", "\"slice\":[null,[null,null,2]]",
      "\"slice\":[null,[null,null,60]]", "\"slice\":[null,[null,null,100]]", "\"slice\":[null,5]",
      "\"slice\":[[null,null,3],null]", "\"slice\":[null,[null,2]]"}},
    {"/encode",
     "\"scheme\":\"rope\",\"head_dim\":4,\"form\":\"matrix\",\"len\":200000,\"format\":\"raw\"",
     false,
     {"\"slice\":[[null,null,200000]],\"reduce\":\"mean\"", "\"slice\":[null,0,1,0]",
      "\"slice\":[null,[null,null,2],[null,null,2],[null,null,2]],\"reduce\":\"min\""}},
    {"/encode",
     "\"scheme\":\"xpos\",\"head_dim\":64,\"len\":4000,\"format\":\"raw\",\"outputs\":[\"scale\"]",
     false,
     {"\"slice\":[[null,null,4000],null],\"reduce\":\"mean\"", "\"slice\":[null,5]", "\"slice\":[null,[null,null,8]]"}},
    {"/encode",
     "\"scheme\":\"alibi\",\"num_heads\":4,\"len\":2048,\"format\":\"raw\",\"outputs\":[\"bias\"]",
     false,
     {"\"slice\":[null,[null,null,2048],null],\"reduce\":\"max\"",
      "\"slice\":[null,null,[null,null,2048]],\"reduce\":\"max\"", "\"slice\":[null,null,3]",
      "\"slice\":[null,[null,null,64],[null,null,64]],\"reduce\":\"mean\"", "\"slice\":[null,null,[null,null,100]]",
      "\"slice\":[[null,null,4]],\"reduce\":\"mean\""}},
    {"/encode",
     "\"scheme\":\"floater\",\"dim\":64,\"len\":2000,\"seed\":1,\"format\":\"raw\"",
     true,
     {"\"slice\":[[null,null,2000],null],\"reduce\":\"max\"", "\"slice\":[null,5]", "\"slice\":[[null,null,7],null]",
      "\"slice\":[-1]"}},
    {"/encode",
     "\"scheme\":\"recursive\",\"dim\":16,\"len\":100000,\"seed\":1,\"format\":\"raw\"",
     true,
     {"\"slice\":[[null,null,100000],null],\"reduce\":\"max\"", "\"slice\":[null,5]",
      "\"slice\":[[null,null,1000],[null,null,4]],\"reduce\":\"mean\"", "\"slice\":[-1]"}},
    {"/encode",
     "\"scheme\":\"swinv2\",\"grid\":[40,40],\"num_heads\":4,\"seed\":1,\"format\":\"raw\",\"outputs\":[\"bias\"]",
     false,
     {"\"slice\":[null,[null,null,1600],null],\"reduce\":\"max\"", "\"slice\":[null,null,5]",
      "\"slice\":[null,null,[null,null,1600]],\"reduce\":\"max\""}},
    {"/encode",
     "\"scheme\":\"sinusoidal\",\"style\":\"detr\",\"dim\":512,\"grid\":[100,100],\"format\":\"raw\",\"channels_"
     "first\":true",
     false,
     {"\"slice\":[[null,null,512]],\"reduce\":\"mean\"",
      "\"slice\":[null,[null,null,100],[null,null,100]],\"reduce\":\"max\"", "\"slice\":[null,null,7]",
      "\"slice\":[[null,null,8],[null,null,8]]"}},
    {"/attention",
     "\"scheme\":\"alibi\",\"tokens\":TOKENS,\"num_heads\":4,\"dim\":64,\"seed\":1,\"format\":\"raw\"",
     false,
     {"\"slice\":[null,[null,null,2000],null],\"reduce\":\"max\"", "\"slice\":[[null,null,4]],\"reduce\":\"mean\"",
      "\"slice\":[null,null,[null,null,2000]],\"reduce\":\"max\"",
      "\"slice\":[[null,null,3],[null,null,2000],[null,null,2000]],\"reduce\":\"mean\"", "\"slice\":[null,null,3]",
      "\"slice\":[null,[null,null,3],null]", "\"slice\":[null,[null,null,5],[null,null,5]],\"reduce\":\"mean\"",
      "\"slice\":[null,[null,null,150],[null,null,2]],\"reduce\":\"min\"", "\"slice\":[null,null,[null,null,100]]"}},
    {"/attention",
     "\"scheme\":\"rope\",\"tokens\":TOKENS,\"num_heads\":4,\"dim\":64,\"seed\":1,\"format\":\"raw\",\"outputs\":["
     "\"output\"],\"tensor_layout\":\"bnhd\"",
     false,
     {"\"slice\":[[null,null,2000]],\"reduce\":\"max\"", "\"slice\":[null,null,3]",
      "\"slice\":[null,[null,null,4]],\"reduce\":\"mean\""}},
    {"/attention",
     "\"scheme\":\"cope\",\"npos_max\":8,\"tokens\":TOKENS,\"num_heads\":2,\"dim\":8,\"seed\":1,\"format\":\"raw\","
     "\"outputs\":[\"row_entropy\"]",
     false,
     {"\"slice\":[[null,null,2]],\"reduce\":\"mean\"", "\"slice\":[null,[null,null,2000]],\"reduce\":\"max\"",
      "\"slice\":[null,7]"}},
};

enum { N_CASES = sizeof cases / sizeof *cases };

static char json[1 << 16];

/* Seconds per multiplication: of the slowest plain answer, because a row that is only copied multiplies nothing. */
static double slowest_plain(double *speeds)
{
    double slowest = 0;
    for (size_t i = 0; i < N_CASES; i++) {
        print_request(json, sizeof json, cases[i].plain, NULL);
        speeds[i] = spent(cases[i].path, json, 0, HUGE_VAL) / counted(cases[i].path, json);
        slowest = fmax(slowest, cases[i].is_typical ? speeds[i] : 0);
    }
    return slowest;
}

TEST(test_parts_cost_what_is_counted)
{
    double speeds[N_CASES], slowest = slowest_plain(speeds);
    for (size_t i = 0; i < N_CASES; i++)
        for (size_t k = 0; cases[i].parts[k]; k++) {
            print_request(json, sizeof json, cases[i].plain, cases[i].parts[k]);
            double work = counted(cases[i].path, json), most = FACTOR * work * fmax(speeds[i], slowest);
            double seconds = spent(cases[i].path, json, most, 3 * most + 0.1);
            if (seconds > most)
                fail_msg("%.60s, %s: %.3g multiplications take %.1f ms; allowed: %.1f", cases[i].plain,
                         cases[i].parts[k], work, seconds * 1e3, most * 1e3);
        }
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
