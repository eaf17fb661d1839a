/* GET /cmaps: the colours of pictures, so that a client can draw the same ones. */
#include "api/formats/format.h"
#include "api/routes.h"

static void add_map(struct api_text *text, int cmap)
{
    api_text_put(text, "{\"name\":");
    api_text_string(text, api_cmap_names[cmap]);
    api_text_put(text, ",\"colors\":[");
    for (unsigned i = 0; i < API_COLOURS; i++) {
        struct api_colour colour = api_colour(cmap, i);
        api_text_format(text, "%s\"#%02x%02x%02x\"", i ? "," : "", colour.red, colour.green, colour.blue);
    }
    api_text_put(text, "]}");
}

static void print(struct api_text *text, const void *about)
{
    (void)about;
    api_text_put(text, "{\"cmaps\":[");
    for (int cmap = 0; api_cmap_names[cmap]; cmap++) {
        api_text_add(text, ",", cmap > 0);
        add_map(text, cmap);
    }
    api_text_put(text, "]}");
}

struct api_reply *api_cmaps(struct api_request *request)
{
    static struct api_document document = {.print = print};
    return api_reply_document(&document, NULL, request->call, "no-cache");
}
