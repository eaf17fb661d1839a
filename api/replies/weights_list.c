/* Lists of stored weights, printed a part at a time. */
#include "api/replies/weights_list.h"
#include "api/inputs/tensor_table.h"
#include "api/json/window.h"

#include <stdio.h>
#include <stdlib.h>

struct listed {
    const struct api_weights *card; /* held */
    uint64_t end;                   /* offset of its text in the listing */
};

struct api_listing {
    const struct api_store *store;
    const char *begin, *end;
    uint64_t n_bytes;
    size_t n;
    struct listed files[];
};

/* ---- Printing ---- */

static void print_file(struct api_window *window, const struct api_weights *card)
{
    char head[2 * API_WEIGHT_NAME_MAX + API_SHA256_CHARS + 128]; /* a name has no character that needs escaping */
    int n = snprintf(head, sizeof head, "{\"name\":\"%s\",\"bytes\":%zu,\"sha256\":\"%s\",\"tensors\":{", card->name,
                     card->n_bytes, card->sha256);
    api_window_add(window, head, (size_t)n);
    api_tensors_print(card->tensors, window);
    api_window_put(window, "}}");
}

/* The file whose text contains the byte `first`, or ends just before it. */
static size_t place_of(const struct api_listing *listing, uint64_t first)
{
    size_t low = 0, high = listing->n;
    while (low < high) {
        size_t middle = low + (high - low) / 2;
        if (listing->files[middle].end <= first)
            low = middle + 1;
        else
            high = middle;
    }
    return low;
}

void api_listing_print(const struct api_listing *listing, uint64_t first, size_t n, char *dst)
{
    struct api_window window = {.first = first, .room = n, .dst = dst};
    size_t i = place_of(listing, first);
    if (i > 0)
        window.at = listing->files[i - 1].end;
    else
        api_window_put(&window, listing->begin);
    for (; i < listing->n && !api_window_is_full(&window); i++) {
        api_window_put(&window, i > 0 ? "," : "");
        print_file(&window, listing->files[i].card);
    }
    if (!api_window_is_full(&window))
        api_window_put(&window, listing->end);
}

uint64_t api_listing_bytes(const struct api_listing *listing) { return listing->n_bytes; }

/* ---- Lifetime ---- */

static void measure(struct api_listing *listing)
{
    struct api_window window = api_window_of_length();
    api_window_put(&window, listing->begin);
    for (size_t i = 0; i < listing->n; i++) {
        api_window_put(&window, i > 0 ? "," : "");
        print_file(&window, listing->files[i].card);
        listing->files[i].end = window.at;
    }
    api_window_put(&window, listing->end);
    listing->n_bytes = window.at;
}

/* Takes the cards. */
static struct api_listing *listing_new(const struct api_store *store, const struct api_weights *const *cards, size_t n,
                                       const char *begin, const char *end)
{
    struct api_listing *listing = malloc(sizeof *listing + n * sizeof *listing->files);
    for (size_t i = 0; i < n && !listing; i++)
        store->drop_card(store->self, cards[i]);
    if (!listing)
        return NULL;
    *listing = (struct api_listing){.store = store, .begin = begin, .end = end, .n = n};
    for (size_t i = 0; i < n; i++)
        listing->files[i].card = cards[i];
    measure(listing);
    return listing;
}

struct api_listing *api_listing_all(const struct api_store *store)
{
    const struct api_weights **cards = malloc((store ? store->files_max : 1) * sizeof *cards);
    if (!cards)
        return NULL;
    size_t n = store ? store->list(store->self, cards) : 0;
    struct api_listing *listing = listing_new(store, cards, n, "{\"weights\":[", "]}");
    free(cards);
    return listing;
}

struct api_listing *api_listing_one(const struct api_store *store, const struct api_weights *weights)
{
    store->hold_card(store->self, weights);
    return listing_new(store, &weights, 1, "", "");
}

void api_listing_free(struct api_listing *listing)
{
    for (size_t i = 0; listing && i < listing->n; i++)
        listing->store->drop_card(listing->store->self, listing->files[i].card);
    free(listing);
}
