/* The request that a picture was made from, with every default filled in. */
#ifndef API_FORMATS_RESOLVED_H
#define API_FORMATS_RESOLVED_H

#include "api/formats/picture.h"

/* Writes a JSON object in ASCII: the configuration, the sequence, and the resolved form of the picture. Sent as a
 * request, it returns the same picture. It does not contain the tensors of the request. zoom: 0 leaves it out. */
void api_resolved_print(struct api_text *text, const struct api_opening *opening, const struct api_picture *picture,
                        uint64_t zoom);

#endif
