/* Maps elements to colour indices. */
#include "api/formats/format.h"

#include <math.h>
#include <stdlib.h>

/* ---- Chunks ---- */

/* Columns at least this far apart are computed one by one. */
enum { SPARSE_STEP = 64 };

static uint64_t count(const struct api_picture *p) { return p->height * p->width; }

/* Elements that are computed as one unit stay in one chunk, however few of them are visible. Otherwise a chunk contains
 * only visible elements: a part of a row, or many whole rows if every row is visible. */
static void choose_chunks(struct api_picture *p)
{
    size_t size = pe_dtype_size(p->output->dtype), fits = API_PIECE_BYTES / size;
    uint64_t rows = fits / p->width;
    rows -= rows > API_ROWS_UNIT ? rows % API_ROWS_UNIT : 0;
    p->step = p->width < fits ? p->width : fits;
    p->within = p->width;
    if (p->output->unit && p->output->unit <= API_UNIT_BYTES_MAX / size) {
        p->step = p->output->unit;
        p->within = p->output->period;
    } else if (!p->output->unit && p->col_step >= SPARSE_STEP) {
        p->step = 1;
    } else if (p->row_step == 1 && rows > 1) {
        p->step = rows * p->width;
        p->within = count(p);
    }
    if (!p->output->unit && p->output->most &&
        p->output->most < p->step) { /* so that a client that disconnects is noticed soon */
        p->step = p->output->most < p->width ? p->output->most : p->width;
        p->within = p->width;
    }
}

static void load(struct api_picture *p, uint64_t element)
{
    uint64_t base = element / p->within * p->within, at = (element - base) / p->step * p->step;
    uint64_t left = p->within - at < count(p) - base - at ? p->within - at : count(p) - base - at;
    p->chunk_first = base + at;
    p->chunk_n = left < p->step ? left : p->step;
    p->is_left = p->is_left || pe_is_cancelled();
    if (!p->is_left)
        api_source_fill(&p->source, 0, p->chunk_first, (size_t)p->chunk_n, p->chunk);
}

/* values = the row's elements at each column step. */
static void read_row(struct api_picture *p, size_t row)
{
    uint64_t element = row * p->row_step * p->width;
    size_t size = pe_dtype_size(p->output->dtype);
    for (size_t done = 0, n = 1; done < p->n_cols; done += n, element += n * p->col_step) {
        if (element - p->chunk_first >= p->chunk_n) /* huge also for an element before the chunk */
            load(p, element);
        if (p->is_left)
            return;
        uint64_t at = element - p->chunk_first, left = p->chunk_n - at;
        if (p->col_step == 1)
            n = left < p->n_cols - done ? (size_t)left : p->n_cols - done;
        pe_convert(PE_F64, p->values + done, p->output->dtype, p->chunk + at * size, n);
    }
}

/* ---- Its life ---- */

bool api_picture_init(struct api_picture *picture, const struct api_opening *opening, struct api_problem *problem)
{
    const struct api_source *source = &opening->source;
    if (api_source_count(source) == 0)
        return api_fail(problem, 406, "", "the answer has no tensor, so there is no picture of it; use format json");
    const struct pe_output *output = api_source_output(source, 0);
    *picture = (struct api_picture){.source = *source, .output = output, .row_step = 1, .col_step = 1};
    picture->height = output->rank > 1 ? output->shape[output->rank - 2] : 1;
    picture->width = output->rank > 0 ? output->shape[output->rank - 1] : 1;
    if (output->n_rows && output->row_len)
        return true;
    return api_fail(problem, 406, "", "%s has no elements, so there is no picture of it; use format json",
                    output->name);
}

void api_picture_drop(struct api_picture *picture)
{
    free(picture->values);
    free(picture->chunk);
}

bool api_picture_shrink(struct api_picture *picture, uint64_t row_step, uint64_t col_step, struct api_problem *problem)
{
    struct api_picture *p = picture;
    p->row_step = row_step;
    p->col_step = col_step;
    p->n_rows = (size_t)((p->height - 1) / row_step + 1);
    p->n_cols = (size_t)((p->width - 1) / col_step + 1);
    choose_chunks(p);
    uint64_t most = p->step < count(p) ? p->step : count(p);
    p->values = malloc(p->n_cols * sizeof *p->values);
    p->chunk = malloc((size_t)most * pe_dtype_size(p->output->dtype));
    return (p->values && p->chunk) || api_fail_memory(problem);
}

/* ---- Range and rows ---- */

static void measure_values(struct api_picture *p, double *least, double *greatest)
{
    for (size_t i = 0; i < p->n_rows; i++) {
        read_row(p, i);
        for (size_t j = 0; j < p->n_cols && !p->is_left; j++) {
            if (!isfinite(p->values[j]))
                continue;
            *least = p->values[j] < *least ? p->values[j] : *least;
            *greatest = p->values[j] > *greatest ? p->values[j] : *greatest;
        }
    }
}

/* A limit from the request may lie beyond all values; then the other limit is set to it. */
void api_picture_measure(struct api_picture *picture, const struct api_form *form)
{
    bool has_low = !isnan(form->vmin), has_high = !isnan(form->vmax);
    double least = HUGE_VAL, greatest = -HUGE_VAL;
    if (!has_low || !has_high)
        measure_values(picture, &least, &greatest);
    picture->has_range = (has_low && has_high) || least <= greatest;
    if (least > greatest)
        least = greatest = has_low ? form->vmin : has_high ? form->vmax : 0;
    picture->low = has_low ? form->vmin : has_high && form->vmax < least ? form->vmax : least;
    picture->high = has_high ? form->vmax : greatest > picture->low ? greatest : picture->low;
}

/* 1 + round(254 (value - low) / (high - low)), ties to even. No product is followed by an addition, so machines that
 * fuse the two round alike. If the span of the two doubles overflows, everything is halved first. */
static uint8_t index_of(const struct api_picture *p, double value)
{
    if (!isfinite(value))
        return 0;
    if (value <= p->low)
        return 1;
    if (value >= p->high)
        return API_COLOURS;
    double share = (value - p->low) / (p->high - p->low);
    if (isinf(p->high - p->low))
        share = (value / 2 - p->low / 2) / (p->high / 2 - p->low / 2);
    return (uint8_t)(1 + (int)nearbyint(share * (API_COLOURS - 1)));
}

void api_picture_row(struct api_picture *picture, size_t i, uint8_t *indices)
{
    picture->is_left = picture->is_left || pe_is_cancelled(); /* compressing rows takes long too */
    read_row(picture, i);
    for (size_t j = 0; j < picture->n_cols && !picture->is_left; j++)
        indices[j] = index_of(picture, picture->values[j]);
}

bool api_picture_check(const struct api_picture *picture, struct api_problem *problem)
{
    return (!picture->is_left && !pe_was_cancelled()) || api_fail_left(problem);
}
