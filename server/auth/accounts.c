/* Owns the quotas: parsing them, the amounts left, and the time at which more is available.
 *
 * A quota such as work=30/m is a bucket that refills evenly (token bucket; RFC 2697 has the arithmetic): a client may
 * use a minute's worth at once and then waits. Requests are charged for the processor time that they really took, known
 * only afterwards, so an amount may fall below zero; the next request then waits until it is above. A refusal names the
 * quota and the second at which to try again, rather than letting the client guess. */
#define _GNU_SOURCE
#include "server/auth/auth.h"

#include "core/inside.h"
#include "server/loop/loop.h"

#include <ctype.h>
#include <math.h>
#include <pthread.h>
#include <stdlib.h>
#include <string.h>

enum { RETRY_S_MAX = 1000000000 }; /* 30 years */

enum quota { QUOTA_REQUESTS, QUOTA_WORK, QUOTA_STREAMS, N_QUOTAS };

static const char *const quota_names[N_QUOTAS] = {"requests", "work", "streams"};

struct allowance {
    double left; /* below 0: overdrawn, since work is charged after it is done */
    uint64_t at; /* ns; the time at which left was correct */
};

struct account {
    struct account *next;
    char name[TOKENS_NAME_MAX + 1];
    uint64_t client;
    pthread_mutex_t lock; /* protects all fields below */
    struct quotas quotas;
    struct allowance requests, work;
    uint64_t n_requests, n_streams, n_refused[N_QUOTAS], work_ns;
};

/* ---- Reading --------------------------------------------------------------------------------------------------- */

static bool number_parse(const char *text, double *value, const char **rest)
{
    char *end;
    if (!isdigit((unsigned char)*text))
        return false; /* strtod takes signs, blanks, "inf" and "0x1" */
    size_t n = strspn(text, "0123456789.");
    *value = strtod(text, &end);
    *rest = end;
    return end == text + n && *value > 0 && *value <= 1e12;
}

static bool rate_parse(const char *text, struct rate *rate)
{
    static const struct {
        const char *text;
        double seconds;
    } periods[] = {{"/s", 1}, {"/m", 60}, {"/h", 3600}};
    const char *rest;
    double most;
    if (rate->most > 0 || !number_parse(text, &most, &rest))
        return false;
    for (size_t i = 0; i < sizeof periods / sizeof *periods; i++)
        if (strcmp(rest, periods[i].text) == 0)
            *rate = (struct rate){most, periods[i].seconds};
    return rate->most > 0;
}

bool quotas_parse(const char *word, struct quotas *quotas)
{
    const char *equals = strchr(word, '='), *rest;
    size_t n = equals ? (size_t)(equals - word) : 0;
    double streams;
    if (n == 8 && memcmp(word, "requests", n) == 0) /* less than one would never allow any request */
        return rate_parse(equals + 1, &quotas->requests) && quotas->requests.most >= 1;
    if (n == 4 && memcmp(word, "work", n) == 0)
        return rate_parse(equals + 1, &quotas->work);
    if (n != 7 || memcmp(word, "streams", n) != 0 || quotas->streams || !number_parse(equals + 1, &streams, &rest))
        return false;
    quotas->streams = (uint64_t)streams;
    return !*rest && streams >= 1 && streams == floor(streams);
}

/* ---- Accounts -------------------------------------------------------------------------------------------------- */

struct account *accounts_open(struct account **list, size_t n_max, const char *name)
{
    size_t n = 0;
    for (struct account *account = *list; account; account = account->next, n++)
        if (strcmp(account->name, name) == 0)
            return account;
    struct account *account = n < n_max ? calloc(1, sizeof *account) : NULL;
    if (!account)
        return NULL;
    snprintf(account->name, sizeof account->name, "%s", name);
    pthread_mutex_init(&account->lock, NULL);
    account->client = n + 1; /* client addresses are 64 mixed bits, so they will not collide with these numbers */
    account->next = *list;
    *list = account;
    return account;
}

void accounts_free(struct account *list)
{
    for (struct account *next; list; list = next) {
        next = list->next;
        pthread_mutex_destroy(&list->lock);
        free(list);
    }
}

const char *account_name(const struct account *account) { return account->name; }

uint64_t account_client(const struct account *account) { return account->client; }

static bool is_same_rate(const struct rate *a, const struct rate *b)
{
    return fabs(a->most - b->most) <= 0 && fabs(a->period_s - b->period_s) <= 0;
}

/* A rate that changes starts again with its full amount. */
static void set_rate(struct rate *rate, struct allowance *allowance, const struct rate *new_rate)
{
    if (!is_same_rate(rate, new_rate))
        *allowance = (struct allowance){new_rate->most, clock_now()};
    *rate = *new_rate;
}

void account_set_quotas(struct account *account, const struct quotas *quotas)
{
    pthread_mutex_lock(&account->lock);
    set_rate(&account->quotas.requests, &account->requests, &quotas->requests);
    set_rate(&account->quotas.work, &account->work, &quotas->work);
    account->quotas.streams = quotas->streams;
    pthread_mutex_unlock(&account->lock);
}

/* ---- Using ----------------------------------------------------------------------------------------------------- */

static void refill(struct allowance *allowance, const struct rate *rate)
{
    uint64_t now = clock_now();
    double full = allowance->left + (double)(now - allowance->at) / (double)CLOCK_SECOND * rate->most / rate->period_s;
    allowance->left = full < rate->most ? full : rate->most;
    allowance->at = now;
}

static const char *period_name(const struct rate *rate)
{
    return pe_text(rate->period_s > 60 ? "hour" : rate->period_s > 1 ? "minute" : "second");
}

/* Called when less than `least` is left: states which quota, how much is left, and when enough will be available. */
static bool refuse(struct account *account, enum quota quota, double least, char *detail, size_t n, uint64_t *retry_s)
{
    const struct rate *rate = quota == QUOTA_WORK ? &account->quotas.work : &account->quotas.requests;
    const struct allowance *allowance = quota == QUOTA_WORK ? &account->work : &account->requests;
    double wait =
        (least - allowance->left) * rate->period_s / rate->most; /* for a rate near 0 the wait exceeds any integer */
    wait = wait < RETRY_S_MAX ? wait : RETRY_S_MAX;
    *retry_s = (uint64_t)ceil(wait > 1 ? wait : 1);
    account->n_refused[quota]++;
    snprintf(detail, n,
             pe_text("the token of %s may use %.12g %s a %s (%s= in --token-file); left: %.2f; a request would take "
                     "%s; there is enough in %.1f s"),
             account->name, rate->most, pe_text(quota == QUOTA_WORK ? "seconds of computing" : "requests"),
             period_name(rate), quota_names[quota], allowance->left,
             quota == QUOTA_WORK ? pe_text("what it computes, counted as it does") : "1", wait);
    return false;
}

static bool admit(struct account *account, char *detail, size_t n, uint64_t *retry_s)
{
    const struct quotas *quotas = &account->quotas;
    if (quotas->work.most > 0) {
        refill(&account->work, &quotas->work);
        if (account->work.left <= 0)
            return refuse(account, QUOTA_WORK, 0, detail, n, retry_s);
    }
    if (quotas->requests.most > 0) {
        refill(&account->requests, &quotas->requests);
        if (account->requests.left < 1)
            return refuse(account, QUOTA_REQUESTS, 1, detail, n, retry_s);
        account->requests.left--;
    }
    account->n_requests++;
    return true;
}

bool account_admit(struct account *account, char *detail, size_t n_detail, uint64_t *retry_s)
{
    pthread_mutex_lock(&account->lock);
    bool is_admitted = admit(account, detail, n_detail, retry_s);
    pthread_mutex_unlock(&account->lock);
    return is_admitted;
}

bool account_begin_stream(struct account *account, char *detail, size_t n_detail, uint64_t *retry_s)
{
    pthread_mutex_lock(&account->lock);
    uint64_t most = account->quotas.streams;
    bool has_room = most == 0 || account->n_streams < most;
    account->n_streams += has_room;
    account->n_refused[QUOTA_STREAMS] += !has_room;
    pthread_mutex_unlock(&account->lock);
    if (has_room)
        return true;
    *retry_s = 1;
    snprintf(detail, n_detail,
             pe_text("the token of %s may receive %llu long answers at a time (streams= in --token-file); left: 0; "
                     "this would be one more"),
             account->name, (unsigned long long)most);
    return false;
}

void account_end_stream(struct account *account)
{
    pthread_mutex_lock(&account->lock);
    account->n_streams--;
    pthread_mutex_unlock(&account->lock);
}

void account_charge(struct account *account, uint64_t work_ns)
{
    pthread_mutex_lock(&account->lock);
    account->work_ns += work_ns;
    if (account->quotas.work.most > 0) {
        refill(&account->work, &account->quotas.work);
        account->work.left -= (double)work_ns / (double)CLOCK_SECOND;
    }
    pthread_mutex_unlock(&account->lock);
}

/* ---- Text ------------------------------------------------------------------------------------------------------ */

/* Names consist of letters, digits and . _ -, so they need no escapes. Lines of one metric family are together. */
static void print_family(struct account *list, FILE *out, int family)
{
    static const char *const heads[] = {
        "# HELP posenc_token_requests_total Requests admitted, by name of the token file.\n"
        "# TYPE posenc_token_requests_total counter\n",
        "# HELP posenc_token_streams Answers being streamed, by name of the token file.\n"
        "# TYPE posenc_token_streams gauge\n",
        "# HELP posenc_token_compute_seconds_total Time spent computing, by name of the token file.\n"
        "# TYPE posenc_token_compute_seconds_total counter\n",
        "# HELP posenc_token_refused_total Requests over a quota, by name of the token file.\n"
        "# TYPE posenc_token_refused_total counter\n",
    };
    fputs(heads[family], out);
    for (struct account *a = list; a; a = a->next) {
        pthread_mutex_lock(&a->lock);
        if (family == 0)
            fprintf(out, "posenc_token_requests_total{token=\"%s\"} %llu\n", a->name,
                    (unsigned long long)a->n_requests);
        if (family == 1)
            fprintf(out, "posenc_token_streams{token=\"%s\"} %llu\n", a->name, (unsigned long long)a->n_streams);
        if (family == 2)
            fprintf(out, "posenc_token_compute_seconds_total{token=\"%s\"} %.17g\n", a->name,
                    (double)a->work_ns / (double)CLOCK_SECOND);
        for (int q = 0; family == 3 && q < N_QUOTAS; q++)
            fprintf(out, "posenc_token_refused_total{token=\"%s\",quota=\"%s\"} %llu\n", a->name, quota_names[q],
                    (unsigned long long)a->n_refused[q]);
        pthread_mutex_unlock(&a->lock);
    }
}

void accounts_print(struct account *list, FILE *out)
{
    for (int family = 0; family < 4; family++)
        print_family(list, out, family);
}
