/* All formats, in order of preference: the list is list.h. */
#include "api/formats/format.h"

#include <stdio.h>

#define FORMAT(name) extern const struct api_format api_format_##name;
#include "api/formats/list.h"
#undef FORMAT

const struct api_format *const api_formats[] = {
#define FORMAT(name) &api_format_##name,
#include "api/formats/list.h"
#undef FORMAT
};

const char *const api_format_names[] = {
#define FORMAT(name) #name,
#include "api/formats/list.h"
#undef FORMAT
    NULL,
};

const char *const api_reduce_names[] = {"sample", "mean", "min", "max", "absmax", NULL};

enum { N_FORMATS = sizeof api_formats / sizeof api_formats[0] };

size_t api_n_formats(void) { return N_FORMATS; }

void api_formats_print(char *out, size_t room)
{
    size_t used = 0;
    for (size_t i = 0; i < N_FORMATS && used < room; i++)
        used += (size_t)snprintf(out + used, room - used, "%s%s (%s)", i ? ", " : "", api_formats[i]->media_type,
                                 api_formats[i]->name);
}
