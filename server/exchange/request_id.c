/* Owns the ids of requests that have none. */
#include "server/exchange/exchange.h"

/* Sixteen hexadecimal digits from a mixed counter: unique in this process, and very likely among processes. */
void exchange_make_id(struct http *http, char *id)
{
    uint64_t z = http->id_seed + 0x9e3779b97f4a7c15u * ++http->n_ids;
    z = (z ^ (z >> 30)) * 0xbf58476d1ce4e5b9u;
    z = (z ^ (z >> 27)) * 0x94d049bb133111ebu;
    z ^= z >> 31;
    for (int i = 15; i >= 0; i--, z >>= 4) /* printf takes half a microsecond for it */
        id[i] = "0123456789abcdef"[z & 15];
    id[16] = '\0';
}
