/* The request that a picture was made from, with every default filled in. */
#ifndef API_FORMATS_RESOLVED_H
#define API_FORMATS_RESOLVED_H

#include "api/formats/picture.h"

/* Writes a JSON object in ASCII: the configuration, the sequence, and what the picture's form has come to, so that,
 * sent again, it gives the same picture. Tensors that were sent are not in it. zoom: 0 leaves it out. */
void api_resolved_print(struct api_text *text, const struct api_opening *opening, const struct api_picture *picture,
                        uint64_t zoom);

#endif
