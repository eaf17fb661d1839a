/* The same picture for a terminal: two elements as a half block of two colours, or one element as a character, and a
 * line below that describes it. The picture is shrunk to the available columns by taking the first element of each
 * step, in rows as well. */
#include "api/formats/format.h"

#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

enum { COLUMNS_USUAL = 80 };

/* The character for a missing value, not one of the shades: maps hatch areas without data. */
static const char characters[] = " .:-=+*#%@";
static const char gap = '/';

struct drawing {
    struct api_picture picture;
    struct api_text out;
    int cmap;
    uint8_t *upper, *lower; /* indices of two rows */
    unsigned ink, paper;    /* colour indices set in the terminal now; 0: its default */
};

/* ---- Half blocks ---- */

/* Writes a colour only when it changes. which: 38 foreground, 48 background (ECMA-48's SGR, with 24 bits as ISO 8613-6
 * has them). */
static void set_colour(struct drawing *d, int which, unsigned *now, unsigned index)
{
    if (*now == index)
        return;
    *now = index;
    if (!index) {
        api_text_format(&d->out, "\033[%dm", which + 1);
        return;
    }
    struct api_colour c = api_colour(d->cmap, index - 1);
    api_text_format(&d->out, "\033[%d;2;%d;%d;%dm", which, c.red, c.green, c.blue);
}

static void put_blocks(struct drawing *d)
{
    for (size_t j = 0; j < d->picture.n_cols; j++) {
        /* The coloured half is drawn in the foreground; a transparent half shows the terminal's background. */
        set_colour(d, 48, &d->paper, d->upper[j] ? d->lower[j] : 0);
        if (d->upper[j] || d->lower[j])
            set_colour(d, 38, &d->ink, d->upper[j] ? d->upper[j] : d->lower[j]);
        api_text_put(&d->out, d->upper[j] ? "▀" : d->lower[j] ? "▄" : " ");
    }
    api_text_put(&d->out, "\033[0m\n");
    d->ink = d->paper = 0;
}

/* ---- The whole ---- */

static void put_rows(struct drawing *d, bool ascii)
{
    size_t n_together = ascii ? 1 : 2;
    for (size_t i = 0; i < d->picture.n_rows && !d->picture.is_left; i += n_together) {
        api_picture_row(&d->picture, i, d->upper);
        if (ascii) {
            enum { N = sizeof characters - 1 };
            char *line = api_text_room(&d->out, d->picture.n_cols);
            for (size_t j = 0; line && j < d->picture.n_cols; j++)
                line[j] = d->upper[j] ? characters[(d->upper[j] - 1) * N / API_COLOURS] : gap;
            d->out.n += line ? d->picture.n_cols : 0;
            api_text_put(&d->out, "\n");
            continue;
        }
        if (i + 1 < d->picture.n_rows)
            api_picture_row(&d->picture, i + 1, d->lower);
        else
            memset(d->lower, 0, d->picture.n_cols);
        put_blocks(d);
    }
}

static void put_steps(struct drawing *d)
{
    const struct api_picture *p = &d->picture;
    if (p->row_step > 1)
        api_text_format(&d->out, ", 1 row in %" PRIu64, p->row_step);
    if (p->col_step > 1)
        api_text_format(&d->out, ", 1 column in %" PRIu64, p->col_step);
}

static bool prepare(struct drawing *d, const struct api_form *form, struct api_problem *problem)
{
    uint64_t columns = (uint64_t)api_form_integer(form->columns, COLUMNS_USUAL);
    struct api_picture *p = &d->picture;
    if (!api_picture_shrink(p, (p->height - 1) / columns + 1, (p->width - 1) / columns + 1, problem))
        return false;
    d->upper = malloc(p->n_cols);
    d->lower = malloc(p->n_cols);
    return (d->upper && d->lower) || api_fail_memory(problem);
}

static bool open(struct api_request *request)
{
    const struct api_form *form = &request->form;
    struct drawing d = {.cmap = api_form_cmap(form)};
    if (form->ascii && form->cmap >= 0)
        return api_fail(&request->problem, 422, "/cmap",
                        "cmap has no meaning beside ascii: plain characters have no colours");
    api_text_init(&d.out, API_TEXT_MAX);
    bool fine = api_picture_init(&d.picture, request) && prepare(&d, form, &request->problem);
    if (fine) {
        api_picture_measure(&d.picture, form);
        put_rows(&d, form->ascii);
        /* "alibi bias [8,64,64] at [0], f32, from -31.5 to 0"; the scheme is that of the plan, if there is one */
        const struct api_picture *p = &d.picture;
        if (p->source.plan)
            api_text_format(&d.out, "%s ", pe_plan_scheme(p->source.plan)->name);
        api_text_format(&d.out, "%s ", p->output->name);
        api_text_shape(&d.out, p->output->shape, p->output->rank);
        for (unsigned i = 0; i + 2 < p->output->rank; i++)
            api_text_put(&d.out, i ? ",0" : " at [0");
        api_text_put(&d.out, p->output->rank > 2 ? "]" : "");
        api_text_format(&d.out, ", %s", pe_dtype_name(p->output->dtype));
        put_steps(&d);
        if (p->has_range)
            api_text_format(&d.out, ", from %.6g to %.6g\n", p->low, p->high);
        else
            api_text_put(&d.out, ", nothing finite\n");
        fine = api_picture_check(&d.picture, &request->problem);
    }
    api_picture_drop(&d.picture);
    free(d.upper);
    free(d.lower);
    if (fine)
        return api_body_keep(request, &d.out);
    api_text_drop(&d.out);
    return false;
}

static const char *const fields[] = {"cmap", "vmin", "vmax", "ascii", "columns", NULL};

const struct api_format api_format_text;
const struct api_format api_format_text = {
    .name = "text",
    .media_type = "text/plain",
    .content_type = "text/plain; charset=utf-8",
    .is_picture = true,
    .fields = fields,
    .open = open,
};

/* ---- TeX: of derivations alone, which print it themselves (api/endpoints/derive.c) ---- */

static bool refuse_tex(struct api_request *request)
{
    return api_fail(&request->problem, 406, "/format", "tex has the steps of /derive; tensors have no such form");
}

const struct api_format api_format_tex;
const struct api_format api_format_tex = {
    .name = "tex", .media_type = "application/x-tex", .is_picture = true, .open = refuse_tex};
