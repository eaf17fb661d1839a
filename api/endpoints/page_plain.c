/* Decompresses the files of the page, each once. */
#include "api/endpoints/page_plain.h"

#include <stdatomic.h>
#include <stdlib.h>
#include <zlib.h>

enum { GZIP_WINDOW = 16 + MAX_WBITS }; /* 16: with the header and the checksum of gzip */

static bool inflate_all(const struct api_page_file *file, char *plain)
{
    z_stream z = {.next_in = (Bytef *)(uintptr_t)file->gzip,
                  .avail_in = (uInt)file->n_gzip,
                  .next_out = (Bytef *)plain,
                  .avail_out = (uInt)file->n_bytes};
    if (inflateInit2(&z, GZIP_WINDOW) != Z_OK)
        return false;
    bool is_whole = inflate(&z, Z_FINISH) == Z_STREAM_END && z.total_out == file->n_bytes;
    inflateEnd(&z);
    return is_whole;
}

/* If two threads decompress it at the same time, the bytes of only one are stored. */
const char *api_page_plain(const struct api_page_file *file)
{
    char *there = atomic_load(file->plain);
    if (there)
        return there;
    char *made = malloc(file->n_bytes + 1); /* one more, as a file may be empty */
    if (made && inflate_all(file, made) && atomic_compare_exchange_strong(file->plain, &there, made))
        return made;
    free(made);
    return there;
}
