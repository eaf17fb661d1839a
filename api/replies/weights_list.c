/* Lists of stored files, printed a part at a time. */
#include "api/replies/weights_list.h"
#include "api/inputs/preset_file.h"
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
    void (*print)(struct api_window *window, const struct api_weights *card);
    const char *begin, *end; /* of the text, what stands around the files */
    size_t n_begin;
    bool has_more; /* begin has entries of its own */
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

static void print_preset(struct api_window *window, const struct api_weights *card)
{
    api_window_put(window, "{\"name\":\"");
    api_window_put(window, card->name);
    api_window_put(window, "\",");
    api_window_put(window, card->preset->members);
    api_window_put(window, "}");
}

static void print_entry(const struct api_listing *listing, size_t i, struct api_window *window)
{
    api_window_put(window, i > 0 || listing->has_more ? "," : "");
    listing->print(window, listing->files[i].card);
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
        api_window_add(&window, listing->begin, listing->n_begin);
    for (; i < listing->n && !api_window_is_full(&window); i++)
        print_entry(listing, i, &window);
    if (!api_window_is_full(&window))
        api_window_put(&window, listing->end);
}

uint64_t api_listing_bytes(const struct api_listing *listing) { return listing->n_bytes; }

/* ---- Lifetime ---- */

static void measure(struct api_listing *listing)
{
    struct api_window window = api_window_of_length();
    api_window_add(&window, listing->begin, listing->n_begin);
    for (size_t i = 0; i < listing->n; i++) {
        print_entry(listing, i, &window);
        listing->files[i].end = window.at;
    }
    api_window_put(&window, listing->end);
    listing->n_bytes = window.at;
}

/* Takes the cards; about has everything but the files. */
static struct api_listing *listing_new(const struct api_listing *about, const struct api_weights *const *cards,
                                       size_t n)
{
    struct api_listing *listing = malloc(sizeof *listing + n * sizeof *listing->files);
    for (size_t i = 0; i < n && !listing; i++)
        about->store->drop_card(about->store->self, cards[i]);
    if (!listing)
        return NULL;
    *listing = *about;
    listing->n = n;
    for (size_t i = 0; i < n; i++)
        listing->files[i].card = cards[i];
    measure(listing);
    return listing;
}

struct api_listing *api_listing_all(const struct api_store *store)
{
    static const char begin[] = "{\"weights\":[";
    const struct api_listing about = {
        .store = store, .print = print_file, .begin = begin, .n_begin = sizeof begin - 1, .end = "]}"};
    const struct api_weights **cards = malloc((store ? store->files_max : 1) * sizeof *cards);
    if (!cards)
        return NULL;
    size_t n = store ? store->list(store->self, cards) : 0;
    struct api_listing *listing = listing_new(&about, cards, n);
    free(cards);
    return listing;
}

struct api_listing *api_listing_one(const struct api_store *store, const struct api_weights *weights)
{
    const struct api_listing about = {.store = store, .print = print_file, .begin = "", .end = ""};
    store->hold_card(store->self, weights);
    return listing_new(&about, &weights, 1);
}

/* A release may bring a preset of the same name: the program's wins. Returns the number of the others. */
static size_t drop_hidden(const struct api_store *store, const struct api_weights **cards, size_t n)
{
    size_t n_left = 0;
    for (size_t i = 0; i < n; i++)
        if (pe_preset_find(cards[i]->name))
            store->drop_card(store->self, cards[i]);
        else
            cards[n_left++] = cards[i];
    return n_left;
}

struct api_listing *api_listing_presets(const struct api_store *store, const char *begin, size_t n_begin)
{
    const struct api_listing about = {
        .store = store, .print = print_preset, .begin = begin, .n_begin = n_begin, .has_more = true, .end = "]}"};
    const struct api_weights **cards = malloc(store->files_max * sizeof *cards);
    if (!cards)
        return NULL;
    size_t n = drop_hidden(store, cards, store->list(store->self, cards));
    struct api_listing *listing = listing_new(&about, cards, n);
    free(cards);
    return listing;
}

void api_listing_free(struct api_listing *listing)
{
    for (size_t i = 0; listing && i < listing->n; i++)
        listing->store->drop_card(listing->store->self, listing->files[i].card);
    free(listing);
}
