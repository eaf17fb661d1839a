/* Position ids of image generators: text beside images that each count in their own way, a row for each model's code
 * (diffusers' pipelines, or the vendor's; deploy/README.md names the classes).
 *
 * What they share: text is numbered through all its segments, l = 0, 1, …, and images through the whole sequence,
 * k = 0, 1, …, unless a segment states its own number, as a reference image or a layer does. A grid is in patches as
 * they are sent, nothing is merged, and nothing continues from where the segment before it ended; but HunyuanImage 3
 * is a language model, whose images stand where the text has come to. */
#include "core/limits.h"
#include "core/sequence/sequence.h"

#include <math.h>

/* What a style sees: the whole sequence, and where it is. */
struct picture {
    double n_text, n_images; /* of the sequence */
    double reach;            /* the largest half of a side of any image */
    double text, image;      /* tokens of text before; number of the image */
    double start;            /* running number, hunyuan_image_3 */
    double h, w;             /* of the image, in patches */
};

struct image_style {
    unsigned n_axes;
    const char *first; /* what the first of three axes counts, or of four; the others are rows and columns, and text */
    bool is_one;       /* there is one image: no axis states which it is */
    bool is_still;     /* an image has one frame */
    bool is_placed;    /* where an image is depends on what is around it, so a grid alone is no image */
    void (*text)(const struct picture *p, double l, double *id);
    void (*patch)(const struct picture *p, double t, double y, double x, double *id);
};

static void put_ids(double *id, double a, double b, double c)
{
    id[0] = a;
    id[1] = b;
    id[2] = c;
}

static void still_text(const struct picture *p, double l, double *id) { (void)p, (void)l, put_ids(id, 0, 0, 0); }
static void first_text(const struct picture *p, double l, double *id) { (void)p, put_ids(id, l, 0, 0); }
static void after_first_text(const struct picture *p, double l, double *id) { (void)p, put_ids(id, l + 1, 0, 0); }
static void side_text(const struct picture *p, double l, double *id) { (void)p, put_ids(id, 0, l, l); }
static void running_text(const struct picture *p, double l, double *id) { (void)p, put_ids(id, l, l, l); }

/* Flux, Kontext: the second image and all after it say on axis 0 which they are. */
static void flux_patch(const struct picture *p, double t, double y, double x, double *id)
{
    (void)t, put_ids(id, p->image, y, x);
}

/* LongCat-Image: rows and columns begin behind 512 tokens of text, an editing pipeline's behind the text it has. */
static void longcat_patch(const struct picture *p, double t, double y, double x, double *id)
{
    enum { PADDED_TEXT = 512 };
    double first = p->n_images > 1 ? p->n_text : PADDED_TEXT;
    (void)t, put_ids(id, 1 + p->image, first + y, first + x);
}

/* Flux 2: four axes, the last for text; reference images stand ten apart on the first. */
static void flux2_text(const struct picture *p, double l, double *id)
{
    (void)p, put_ids(id, 0, 0, 0);
    id[3] = l;
}
static void flux2_patch(const struct picture *p, double t, double y, double x, double *id)
{
    (void)t, put_ids(id, 10 * p->image, y, x);
    id[3] = 0;
}

/* Qwen-Image: rows and columns from the middle, and text from where the largest image ends. */
static void qwen_text(const struct picture *p, double l, double *id)
{
    put_ids(id, p->reach + l, p->reach + l, p->reach + l);
}
static void qwen_patch(const struct picture *p, double t, double y, double x, double *id)
{
    put_ids(id, p->image + t, y - (p->h - floor(p->h / 2)), x - (p->w - floor(p->w / 2)));
}

/* Lumina 2: images follow the text on the first axis. */
static void lumina2_patch(const struct picture *p, double t, double y, double x, double *id)
{
    (void)t, put_ids(id, p->n_text, y, x);
}

/* Z-Image: the same, counted from 1, with the text filled up to a multiple of 32 tokens. */
static void z_image_patch(const struct picture *p, double t, double y, double x, double *id)
{
    (void)t, put_ids(id, 32 * ceil(p->n_text / 32) + 1, y, x);
}

/* Ideogram 4: all three axes of images begin at 65536. */
static void ideogram4_patch(const struct picture *p, double t, double y, double x, double *id)
{
    enum { FIRST = 65536 };
    (void)p, (void)t, put_ids(id, FIRST, FIRST + y, FIRST + x);
}

/* HunyuanImage 3: an image of w·h tokens from token L on is the middle of a square walk: its rows and columns are
 * around L + wh/2, and the next token is L + wh. */
static void hunyuan_patch(const struct picture *p, double t, double y, double x, double *id)
{
    double area = p->w * p->h;
    (void)t;
    put_ids(id, floor(p->start + (area - p->h) / 2) + y, floor(p->start + (area - p->w) / 2) + x, 0);
}
static void hunyuan_text(const struct picture *p, double l, double *id) { (void)l, put_ids(id, p->start, p->start, 0); }

static const struct image_style styles[] = {
#define STYLE(name, n, first_, text_, patch_, ...)                                                                     \
    [PE_##name - PE_FLUX] = {.n_axes = n, .first = first_, .text = text_, .patch = patch_, __VA_ARGS__}
    STYLE(FLUX, 3, "image", still_text, flux_patch, .is_still = true),
    STYLE(FLUX2, 4, "image", flux2_text, flux2_patch, .is_still = true),
    STYLE(QWEN_IMAGE, 3, "image", qwen_text, qwen_patch, ),
    STYLE(LUMINA2, 3, "text", first_text, lumina2_patch, .is_one = true, .is_still = true),
    STYLE(Z_IMAGE, 3, "text", after_first_text, z_image_patch, .is_one = true, .is_still = true, .is_placed = true),
    STYLE(IDEOGRAM4, 3, "time", running_text, ideogram4_patch, .is_one = true, .is_still = true, .is_placed = true),
    STYLE(OVIS_IMAGE, 3, "image", side_text, flux_patch, .is_still = true),
    STYLE(LONGCAT_IMAGE, 3, "image", side_text, longcat_patch, .is_still = true, .is_placed = true),
    STYLE(HUNYUAN_IMAGE_3, 2, NULL, hunyuan_text, hunyuan_patch, .is_still = true, .is_placed = true),
#undef STYLE
};

bool pe_position_style_is_placed(enum pe_position_style style)
{
    return pe_position_style_is_image(style) && styles[style - PE_FLUX].is_placed;
}

enum pe_status pe_position_style_check_image(enum pe_position_style style, uint64_t frames, size_t before,
                                             bool has_number, const char *at, struct pe_failure *err)
{
    const struct image_style *s = pe_position_style_is_image(style) ? &styles[style - PE_FLUX] : NULL;
    if (s && s->is_still && frames > 1)
        return pe_fail_at(err, at, "grid", "grid has %llu frames; an image of position_style \"%s\" has one",
                          (unsigned long long)frames, pe_position_styles[style]);
    if (s && s->is_one && before)
        return pe_fail(
            err, at,
            "position_style \"%s\" has one image, since the axes do not identify an image; this is a second one",
            pe_position_styles[style]);
    if (s && s->is_one && has_number)
        return pe_fail_at(err, at, "image", "image is not used by position_style \"%s\"", pe_position_styles[style]);
    return PE_OK;
}

const char *pe_position_style_axis(enum pe_position_style style, unsigned axis)
{
    static const char *const others[] = {"height", "width", "text"};
    const struct image_style *s = pe_position_style_is_image(style) ? &styles[style - PE_FLUX] : NULL;
    return !s || !s->first ? NULL : axis == 0 ? s->first : others[axis - 1];
}

unsigned pe_position_style_axes(enum pe_position_style style)
{
    return pe_position_style_is_image(style) ? styles[style - PE_FLUX].n_axes : 3;
}

/* The sums that styles ask for, of the whole sequence. */
static struct picture survey(const struct pe_segment_list *list)
{
    struct picture p = {.n_text = 0};
    for (size_t i = 0; i < list->n; i++) {
        const struct pe_segment_block *b = &list->at[i];
        p.n_text += b->type == PE_TEXT ? (double)b->n : 0;
        p.n_images += b->type == PE_IMAGE;
        p.reach =
            b->type == PE_IMAGE ? fmax(p.reach, fmax(floor((double)b->rows / 2), floor((double)b->cols / 2))) : p.reach;
    }
    return p;
}

static void place_block(const struct image_style *style, struct picture *p, const struct pe_segment_block *b,
                        double *const *ids, uint64_t first)
{
    double id[PE_SEGMENT_AXES_MAX] = {0};
    p->h = (double)b->rows;
    p->w = (double)b->cols;
    for (uint64_t i = 0; i < b->n; i++) {
        if (b->type == PE_TEXT)
            style->text(p, p->text, id);
        else
            style->patch(p, (double)(i / (b->rows * b->cols)), (double)(i % (b->rows * b->cols) / b->cols),
                         (double)(i % b->cols), id);
        for (unsigned a = 0; a < style->n_axes; a++)
            ids[a][first + i] = id[a];
        p->text += b->type == PE_TEXT;
        p->start += b->type == PE_TEXT;
    }
    p->start += b->type == PE_IMAGE ? (double)b->n : 0;
}

void pe_segments_lay_images(const struct pe_segment_list *list, double *const *ids)
{
    const struct image_style *style = &styles[list->rules.style - PE_FLUX];
    struct picture p = survey(list);
    double n_images = 0;
    uint64_t at = 0;
    for (size_t i = 0; i < list->n; i++) {
        const struct pe_segment_block *b = &list->at[i];
        p.image = b->has_number ? (double)b->number : n_images;
        n_images += b->type == PE_IMAGE;
        place_block(style, &p, b, ids, at);
        at += b->n;
    }
}
