/* A heat map of the first output as a PNG: one byte per pixel, with a palette of 255 colours and one transparent entry.
 * This is the only file that uses libpng (and zlib's version). The picture is drawn row by row when the answer is
 * opened, because its size in bytes is known only once it is complete.
 *
 * libpng reports errors by longjmp. The function that calls setjmp has no variables that it would leave indeterminate,
 * and running out of memory is the only reason to fail; memory is counted before (api/requests/memory.c).
 *
 * The resolved request is in the picture as a text (tEXt), so a picture can be asked for its numbers. Bytes depend on
 * zlib, hence its version is a part of the answer's tag. */
#include "api/formats/format.h"

#include <inttypes.h>
#include <png.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <zlib.h>

struct drawing {
    struct api_picture picture;
    uint64_t zoom;          /* pixels along each side of an element */
    uint64_t width, height; /* pixels of the whole */
    int cmap;
    struct api_legend legend;
    bool has_legend;
    struct api_text request; /* NUL-terminated; empty: none, or too long to be included */
    struct api_text out;
    uint8_t *indices, *pixels; /* a row of elements, and of pixels */
    png_structp png;
    png_infop info;
};

/* ---- What libpng calls ---- */

static void on_error(png_structp png, png_const_charp message)
{
    (void)message;
    png_longjmp(png, 1);
}

static void on_warning(png_structp png, png_const_charp message) { (void)png, (void)message; }

static void on_bytes(png_structp png, png_bytep bytes, size_t n)
{
    api_text_add(png_get_io_ptr(png), (const char *)bytes, n);
}

static void on_flush(png_structp png) { (void)png; }

static png_voidp on_take(png_structp png, png_alloc_size_t n)
{
    (void)png;
    return malloc(n);
}

static void on_give(png_structp png, png_voidp bytes)
{
    (void)png;
    free(bytes);
}

/* ---- The file ---- */

static void write_head(struct drawing *d)
{
    png_set_IHDR(d->png, d->info, (png_uint_32)d->width, (png_uint_32)d->height, 8, PNG_COLOR_TYPE_PALETTE,
                 PNG_INTERLACE_NONE, PNG_COMPRESSION_TYPE_DEFAULT, PNG_FILTER_TYPE_DEFAULT);
    png_set_sRGB(d->png, d->info, PNG_sRGB_INTENT_PERCEPTUAL);
    /* Viewers that ignore transparency show white there. */
    png_color palette[1 + API_COLOURS] = {{0xff, 0xff, 0xff}};
    for (unsigned i = 0; i < API_COLOURS; i++) {
        struct api_colour colour = api_colour(d->cmap, i);
        palette[1 + i] = (png_color){colour.red, colour.green, colour.blue};
    }
    const png_byte transparent = 0;
    png_set_PLTE(d->png, d->info, palette, 1 + API_COLOURS);
    png_set_tRNS(d->png, d->info, &transparent, 1, NULL);
    if (d->request.n) {
        char key[] = "posenc";
        png_text text = {.compression = PNG_TEXT_COMPRESSION_NONE, .key = key, .text = d->request.bytes};
        text.text_length = strlen(d->request.bytes);
        png_set_text(d->png, d->info, &text, 1);
    }
    png_write_info(d->png, d->info);
}

static void write_row(struct drawing *d, size_t row)
{
    api_picture_row(&d->picture, row, d->indices);
    for (size_t j = 0; j < d->picture.n_cols; j++)
        memset(d->pixels + j * d->zoom, d->indices[j], d->zoom);
    for (uint64_t i = 0; i < d->zoom; i++)
        png_write_row(d->png, d->pixels);
}

static void write_legend(struct drawing *d)
{
    for (unsigned i = 0; i < API_LEGEND_DOTS; i++) {
        api_legend_row(&d->legend, i, d->pixels, (size_t)d->width);
        for (size_t j = 0; j < d->legend.scale; j++)
            png_write_row(d->png, d->pixels);
    }
}

/* Has no variables that longjmp could leave indeterminate. False: libpng has failed because memory ran out; it has no
 * other reason to fail on this input. */
static bool write_all(struct drawing *d)
{
    if (setjmp(png_jmpbuf(d->png)))
        return false;
    png_set_write_fn(d->png, &d->out, on_bytes, on_flush);
    png_set_compression_level(d->png, API_PICTURE_COMPRESSION);
    png_set_filter(d->png, PNG_FILTER_TYPE_BASE, PNG_FILTER_NONE); /* filters do not help: indices are not quantities */
    write_head(d);
    for (size_t i = 0; i < d->picture.n_rows && !d->picture.is_left; i++)
        write_row(d, i);
    if (d->picture.is_left)
        return true;
    if (d->has_legend)
        write_legend(d);
    png_write_end(d->png, NULL);
    return true;
}

static bool write_png(struct drawing *d, struct api_problem *problem)
{
    d->png = png_create_write_struct_2(PNG_LIBPNG_VER_STRING, NULL, on_error, on_warning, NULL, on_take, on_give);
    d->info = d->png ? png_create_info_struct(d->png) : NULL;
    bool fine = d->info && write_all(d);
    png_destroy_write_struct(&d->png, &d->info);
    return fine || api_fail_memory(problem);
}

/* ---- Its measures ---- */

enum { SIDE_MAX = API_PICTURE_SIDE_MAX, SIDE_USUAL = 512 };

static bool fail_side(const struct drawing *d, uint64_t longer, const struct api_form *form,
                      struct api_problem *problem)
{
    const struct api_picture *p = &d->picture;
    bool fits_alone = longer <= SIDE_MAX / d->zoom;
    const char *help = fits_alone       ? "leave the legend out"
                       : d->zoom > 1    ? "give a smaller zoom"
                       : p->source.plan ? "ask for a part of it by slice, or for the format text, which shrinks it"
                                        : "ask for the format text, which shrinks it, or for the numbers";
    return api_fail(problem, 413,
                    fits_alone    ? "/legend"
                    : d->zoom > 1 ? "/zoom"
                                  : "",
                    "the picture of %s, %" PRIu64 " by %" PRIu64 " elements, zoom %" PRIu64
                    "%s, has a side of more than %d pixels; %s",
                    p->output->name, p->height, p->width, d->zoom, form->legend ? pe_text(", and a legend") : "",
                    SIDE_MAX, pe_text(help));
}

static bool choose_zoom(struct drawing *d, const struct api_form *form, struct api_problem *problem)
{
    uint64_t longer = d->picture.height > d->picture.width ? d->picture.height : d->picture.width;
    uint64_t usual = longer > SIDE_USUAL ? 1 : (SIDE_USUAL + longer / 2) / longer;
    d->zoom = (uint64_t)api_form_integer(form->zoom, (int64_t)usual);
    if (longer > SIDE_MAX / d->zoom)
        return fail_side(d, longer, form, problem);
    d->width = d->picture.width * d->zoom;
    d->height = d->picture.height * d->zoom;
    uint64_t legend = form->legend ? API_LEGEND_DOTS * api_legend_scale(longer * d->zoom) : 0;
    return d->height + legend <= SIDE_MAX || fail_side(d, longer, form, problem);
}

/* Called once the range is known: without a range there is no legend. */
static void add_legend(struct drawing *d)
{
    size_t scale = api_legend_scale(d->width > d->height ? d->width : d->height);
    api_legend_init(&d->legend, d->cmap, d->picture.low, d->picture.high, scale);
    uint64_t width = api_legend_width(&d->legend);
    d->has_legend = true;
    d->width = width > d->width ? width : d->width;
    d->height += API_LEGEND_DOTS * scale;
}

static bool take_rows(struct drawing *d, struct api_problem *problem)
{
    d->indices = malloc(d->picture.n_cols);
    d->pixels = calloc((size_t)d->width, 1); /* transparent where a legend is wider than the picture */
    return (d->indices && d->pixels) || api_fail_memory(problem);
}

/* Readers refuse long texts (libpng: 8 MB), and a list of a million positions has no use in a picture, so a long text
 * is left out. */
static bool print_request(struct drawing *d, struct api_request *request)
{
    if (!request->opening.source.plan)
        return true;
    api_resolved_print(&d->request, request, &d->picture, d->zoom);
    api_text_add(&d->request, "", 1);
    if (d->request.state == API_TEXT_NO_MEMORY)
        return api_fail_memory(&request->problem);
    d->request.n = d->request.state ? 0 : d->request.n;
    return true;
}

static bool open(struct api_request *request)
{
    struct drawing d = {.cmap = api_form_cmap(&request->form)};
    api_text_init(&d.request, API_PICTURE_TEXT_MAX);
    api_text_init(&d.out, API_PICTURE_BYTES_MAX);
    bool fine = api_picture_init(&d.picture, request) && choose_zoom(&d, &request->form, &request->problem) &&
                api_picture_shrink(&d.picture, 1, 1, &request->problem);
    if (fine) {
        api_picture_measure(&d.picture, &request->form);
        if (request->form.legend && d.picture.has_range)
            add_legend(&d);
        fine = api_picture_check(&d.picture, &request->problem) && take_rows(&d, &request->problem) &&
               print_request(&d, request) && write_png(&d, &request->problem) &&
               api_picture_check(&d.picture, &request->problem);
    }
    api_picture_drop(&d.picture);
    api_text_drop(&d.request);
    free(d.indices);
    free(d.pixels);
    if (fine)
        return api_body_keep(request, &d.out);
    api_text_drop(&d.out);
    return false;
}

/* Another version of zlib may compress the same pixels to other bytes. */
static const char *maker(void)
{
    static _Thread_local char versions[64];
    snprintf(versions, sizeof versions, "libpng %s zlib %s", png_get_libpng_ver(NULL), zlibVersion());
    return versions;
}

static const char *const fields[] = {"cmap", "vmin", "vmax", "zoom", "legend", NULL};

const struct api_format api_format_png;
const struct api_format api_format_png = {
    .name = "png",
    .media_type = "image/png",
    .is_picture = true,
    .maker = maker,
    .fields = fields,
    .open = open,
};
