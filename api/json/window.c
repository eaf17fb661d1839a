/* Printing through a window. */
#include "api/json/json.h"
#include "api/text.h"

#include <assert.h>
#include <string.h>

bool api_window_skip(struct api_window *window, uint64_t n)
{
    if (n > window->first || window->at > window->first - n)
        return false;
    window->at += n;
    return true;
}

void api_window_add(struct api_window *window, const char *bytes, size_t n)
{
    size_t before = 0;
    if (api_window_skip(window, n))
        return;
    if (window->at < window->first)
        before = (size_t)(window->first - window->at);
    size_t rest = n - before, room = window->room - window->n;
    memcpy(window->dst + window->n, bytes + before, rest < room ? rest : room);
    window->n += rest < room ? rest : room;
    window->at += n;
}

void api_window_put(struct api_window *window, const char *string) { api_window_add(window, string, strlen(string)); }

enum { CHUNK = 64, ESCAPED_MAX = 6 }; /* \u0001 */

/* The number of bytes, at most CHUNK, that ends with a whole character. */
static size_t chunk_bytes(const char *utf8, size_t n)
{
    size_t end = n < CHUNK ? n : CHUNK;
    while (end < n && end > 0 && ((unsigned char)utf8[end] & 0xc0) == 0x80)
        end--;
    return end;
}

void api_window_string(struct api_window *window, const char *utf8)
{
    char room[CHUNK * ESCAPED_MAX + 3]; /* quotes, and the NUL that vsnprintf writes */
    api_window_add(window, "\"", 1);
    for (size_t n = strlen(utf8), end; n > 0; utf8 += end, n -= end) {
        struct api_text text = {.bytes = room, .room = sizeof room, .max = sizeof room};
        end = chunk_bytes(utf8, n);
        api_text_string_n(&text, utf8, end);
        assert(text.state == API_TEXT_FINE);
        api_window_add(window, text.bytes + 1, text.n - 2);
    }
    api_window_add(window, "\"", 1);
}
