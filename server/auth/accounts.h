/* The quotas of each name of the token file, and their use so far. tokens.h is the interface for other folders. */
#ifndef SERVER_WHO_ACCOUNTS_H
#define SERVER_WHO_ACCOUNTS_H

#include "server/auth/tokens.h"

/* An amount per period, refilled evenly: a client that was silent for a period may use all of it at once. */
struct rate {
    double most; /* 0: no limit */
    double period_s;
};

struct quotas {
    struct rate requests, work; /* work: seconds of computing */
    uint64_t streams;           /* at one time; 0: no limit */
};

/* Reads "requests=100/s", "work=30/m" or "streams=4" into quotas. False: it is none of these, or given twice. */
bool quotas_parse(const char *word, struct quotas *quotas);

/* The account of a name, made at the head of the list if there is none. NULL: no memory, or there are n_max. */
struct account *accounts_open(struct account **list, size_t n_max, const char *name);
void account_set_quotas(struct account *account, const struct quotas *quotas);
void accounts_print(struct account *list, FILE *out);
void accounts_free(struct account *list); /* NULL is accepted */

#endif
