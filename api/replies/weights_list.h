/* The stored weights or presets as JSON: all files, or the one that a PUT has stored. The text may be many times as
 * long as any request, so it is never complete in memory: each piece is printed on demand, from cards of the files that
 * existed when the answer began. */
#ifndef API_WEIGHTS_LIST_H
#define API_WEIGHTS_LIST_H

#include "api/api.h"

struct api_listing;

struct api_listing *api_listing_all(const struct api_store *store); /* NULL: no memory; store NULL: nothing is stored */
/* A listing of one file, without brackets; holds a card of the file. */
struct api_listing *api_listing_one(const struct api_store *store, const struct api_weights *weights);
/* The stored presets after others: begin, of n_begin bytes, is a list of at least one without its "]}", and lasts. */
struct api_listing *api_listing_presets(const struct api_store *store, const char *begin, size_t n_begin);
void api_listing_free(struct api_listing *listing); /* NULL is accepted */

uint64_t api_listing_bytes(const struct api_listing *listing);
/* Writes the n bytes from `first` on, all of them within the listing. Any thread; cannot fail. */
void api_listing_print(const struct api_listing *listing, uint64_t first, size_t n, char *dst);

#endif
