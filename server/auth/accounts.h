/* The quotas of each name of the token file, and their use so far. Other folders use tokens.h. */
#ifndef SERVER_WHO_ACCOUNTS_H
#define SERVER_WHO_ACCOUNTS_H

#include "server/auth/tokens.h"

/* An amount per period, refilled evenly: a client that has made no request for a period may use all of it at once. */
struct rate {
    double most; /* 0: no limit */
    double period_s;
};

struct quotas {
    struct rate requests, work; /* work: seconds of computing */
    uint64_t streams;           /* at the same time; 0: no limit */
};

/* Parses "requests=100/s", "work=30/m" or "streams=4" into quotas. False: the word is none of these, or is given
 * twice. */
bool quotas_parse(const char *word, struct quotas *quotas);

/* The account of a name, created at the head of the list if it does not exist. NULL: no memory, or there are n_max
 * already. */
struct account *accounts_open(struct account **list, size_t n_max, const char *name);
void account_set_quotas(struct account *account, const struct quotas *quotas);
void accounts_print(struct account *list, FILE *out);
void accounts_free(struct account *list); /* NULL is accepted */

#endif
