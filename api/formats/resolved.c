/* The resolved request as JSON, for a reader who has a picture and wants its numbers. */
#include "api/formats/format.h"

#include <inttypes.h>
#include <string.h>

/* The fields of the sequence, except those that the configuration repeats. */
static bool is_of_sequence(const struct api_request *request, const char *name)
{
    return pe_param_find(pe_sequence_params(), name) &&
           !api_member_find(pe_plan_config(request->opening.source.plan), name);
}

/* Fields that name a model. */
static bool is_of_model(const struct api_request *request, const char *name)
{
    static const char *const names[] = {"preset", "hf_config", "gguf", "said", "layer_type", NULL};
    (void)request;
    return api_is_among(names, name);
}

static size_t add_fields(struct api_text *text, const struct api_request *request,
                         bool (*is_one)(const struct api_request *, const char *))
{
    size_t n = 0;
    for (size_t i = 0; i < request->n_fields; i++)
        if (request->fields[i].value.kind != PE_NULL && is_one(request, request->fields[i].name)) {
            api_text_name(text, request->fields[i].name);
            api_text_value(text, &request->fields[i].value);
            n++;
        }
    return n;
}

/* null: not stated. */
static void add_integer(struct api_text *text, int64_t x)
{
    api_text_name(text, NULL);
    if (x == PE_UNSET_INT)
        api_text_put(text, "null");
    else
        api_text_integer(text, x);
}

static void add_cut(struct api_text *text, const struct pe_cut *cut)
{
    if (cut->is_index) {
        add_integer(text, cut->start);
        return;
    }
    api_text_open(text, NULL, '[');
    add_integer(text, cut->start);
    add_integer(text, cut->stop);
    add_integer(text, cut->step);
    api_text_close(text, ']');
}

/* The slice of the picture's output, which is then the only one. The first slice that applies counts, as in the
 * core. */
static void add_slice(struct api_text *text, const struct api_form *form, const char *output)
{
    size_t at = 0;
    while (at < form->n_slices && form->slices[at].output && strcmp(form->slices[at].output, output) != 0)
        at++;
    if (at == form->n_slices)
        return;
    const struct pe_slice *slice = &form->slices[at];
    api_text_open(text, "slice", '[');
    for (unsigned i = 0; i < slice->n_cuts; i++)
        add_cut(text, &slice->cuts[i]);
    api_text_close(text, ']');
    if (form->reduce != PE_REDUCE_SAMPLE)
        api_text_member(text, "reduce", api_reduce_names[form->reduce]);
}

static void add_form(struct api_text *text, const struct api_request *request, const struct api_picture *picture,
                     uint64_t zoom)
{
    api_text_member(text, "format", request->opening.stream->format->name);
    if (pe_dtype_is_real(picture->output->dtype))
        api_text_member(text, "dtype", pe_dtype_name(picture->output->dtype));
    api_text_open(text, "outputs", '[');
    api_text_member(text, NULL, picture->output->name);
    api_text_close(text, ']');
    add_slice(text, &request->form, picture->output->name);
    api_text_member(text, "cmap", api_cmap_names[api_form_cmap(&request->form)]);
    if (zoom)
        api_text_count(text, "zoom", (int64_t)zoom);
    if (request->form.legend)
        api_text_flag(text, "legend", true);
    if (!picture->has_range)
        return;
    api_text_name(text, "vmin");
    api_text_real(text, picture->low);
    api_text_name(text, "vmax");
    api_text_real(text, picture->high);
}

/* tEXt is Latin-1, so characters beyond ASCII are escaped; in our JSON they occur only in strings. */
static void add_ascii(struct api_text *text, const struct api_text *from)
{
    for (const char *p = from->bytes, *end = p + from->n; p < end;) {
        const char *start = p;
        /* The code point at *p, which is valid UTF-8; moves *p past it. */
        uint8_t lead = (uint8_t)*p++;
        unsigned n_more = lead < 0x80 ? 0 : lead < 0xe0 ? 1 : lead < 0xf0 ? 2 : 3;
        uint32_t code = n_more ? lead & (0x3fU >> n_more) : lead;
        while (n_more-- > 0)
            code = code << 6 | ((uint8_t)*p++ & 0x3f);
        if (code < 0x80)
            api_text_add(text, start, 1);
        else if (code < 0x10000)
            api_text_format(text, "\\u%04" PRIx32, code);
        else
            api_text_format(text, "\\u%04" PRIx32 "\\u%04" PRIx32, 0xd7c0 + (code >> 10), 0xdc00 + (code & 0x3ff));
    }
}

void api_resolved_print(struct api_text *text, const struct api_request *request, const struct api_picture *picture,
                        uint64_t zoom)
{
    struct api_text json;
    api_text_init(&json, text->max);
    api_text_add(&json, request->opening.config, request->opening.config_bytes - 1); /* without its closing brace */
    /* A model may define the sequence, e.g. Swin's window; then the field that names the model defines it again. */
    if (add_fields(&json, request, is_of_sequence) == 0)
        add_fields(&json, request, is_of_model);
    add_form(&json, request, picture, zoom);
    api_text_put(&json, "}");
    if (json.state)
        text->state = json.state;
    else
        add_ascii(text, &json);
    api_text_drop(&json);
}
