/* A relation in words: whose positions they are, then the sentence of its row; and scalings, whose members are words of
 * the configuration. */
#include "core/diagnosis/diagnosis.h"
#include "core/diagnosis/naming/relations.h"

#include <stdio.h>
#include <string.h>

/* What an axis counts in an image generator's ids; else what the axes of two and of three coordinates usually are. */
static const char *name_of(const struct pe_diagnosis *d, enum pe_lang lang, unsigned axis, unsigned n_axes)
{
    static const char *const of_three[] = {"time", "height", "width"};
    const struct pe_sequence *seq = &d->belief.model->plan->seq;
    const char *own = seq->has_segments ? pe_position_style_axis(seq->blocks.rules.style, axis) : NULL;
    return own           ? pe_text_in(lang, own)
           : n_axes == 3 ? pe_text_in(lang, of_three[axis])
           : n_axes == 2 ? pe_text_in(lang, of_three[axis + 1])
                         : "";
}

/* "Axis 0 (time), Axis 2 (width)". */
static void write_axes(const struct pe_diagnosis *d, enum pe_lang lang, const struct pe_named *named, char *text,
                       size_t room)
{
    size_t n = 0;
    text[0] = '\0';
    for (unsigned a = 0; a < named->n_axes; a++) {
        if (!(named->axes & 1U << a) || n + 2 >= room)
            continue;
        const char *name = name_of(d, lang, a, named->n_axes);
        if (n)
            n += (size_t)snprintf(text + n, room - n, "%s", pe_text_in(lang, ", "));
        n += *name ? (size_t)snprintf(text + n, room - n, pe_text_in(lang, "Axis %u (%s)"), a, name)
                   : (size_t)snprintf(text + n, room - n, pe_text_in(lang, "Axis %u"), a);
    }
}

/* The believed last step of an axis, axis_scale/axis_divisor. */
static double step_of(const struct pe_diagnosis *d, unsigned axis, double *scale, double *divisor)
{
    const char *const names[] = {"axis_scale", "axis_divisor"};
    double *out[] = {scale, divisor};
    for (size_t i = 0; i < 2; i++) {
        const struct pe_value *v = pe_edit_value(d, NULL, names[i]);
        bool is_there = v && v->kind == PE_ARRAY && v->array.rank == 1 && axis < v->array.shape[0];
        *out[i] = is_there ? pe_element(v->array.dtype, v->array.data, axis) : 1;
    }
    return *scale / *divisor;
}

/* A factor of time that rates of videos give. */
static void add_rate(enum pe_lang lang, const struct pe_named *named, char *text, size_t room)
{
    static const double rates[] = {8, 12, 15, 16, 25, 30, 48, 50, 60};
    size_t used = strlen(text);
    bool is_time = named->n_axes == 3 && named->axes == 1;
    for (size_t i = 0; is_time && used + 1 < room && i < sizeof rates / sizeof *rates; i++)
        if (fabs(named->related.found * rates[i] - 24) < 1e-9 * 24)
            snprintf(text + used, room - used,
                     pe_text_in(lang, " It is 24/%.0f, as frames per second of a model and of a video give it."),
                     rates[i]);
}

/* A factor that is a believed last step, which was left out or was applied twice. */
static void add_step(const struct pe_diagnosis *d, enum pe_lang lang, const struct pe_named *named, char *text,
                     size_t room)
{
    double scale, divisor, step, found = named->related.found;
    unsigned axis = 0;
    while (!(named->axes & 1U << axis))
        axis++;
    step = step_of(d, axis, &scale, &divisor);
    bool is_left_out = fabs(found * step - 1) < 1e-9, is_twice = fabs(found - step) < 1e-9 * fabs(step);
    size_t used = strlen(text);
    if (step == 1)
        add_rate(lang, named, text, room);
    else if (used + 1 < room && (is_left_out || is_twice))
        snprintf(text + used, room - used,
                 pe_text_in(lang, is_left_out ? " Its axis_scale/axis_divisor, %.10g/%.10g, was left out."
                                              : " Its axis_scale/axis_divisor, %.10g/%.10g, was applied twice."),
                 scale, divisor);
}

/* "pi/180"; NULL: a factor without a name. */
static const char *name_of_factor(const struct pe_named *named)
{
    return pe_factor_name(named->related.found, (double)NAN, (double)NAN, 1e-6);
}

/* Which segment the first row is of that is another one. */
static void add_segment(const struct pe_diagnosis *d, enum pe_lang lang, const struct pe_named *named, char *text,
                        size_t room)
{
    const struct pe_sequence *seq = &d->belief.model->plan->seq;
    static const char *const types[] = {"text", "image", "video", "audio", "audio_in_video"};
    size_t used = strlen(text), i = 0;
    uint64_t end = 0;
    while (i < seq->blocks.n && (end += seq->blocks.at[i].n) <= named->related.row)
        i++;
    if (seq->has_segments && i < seq->blocks.n && used + 1 < room)
        snprintf(text + used, room - used, pe_text_in(lang, " This row is of segment %zu, %s."), i,
                 pe_text_in(lang, types[seq->blocks.at[i].type]));
}

static void write_sentence(const struct pe_diagnosis *d, enum pe_lang lang, const struct pe_named *named,
                           bool is_factor, char *text, size_t room)
{
    char axes[160];
    const char *sentence = pe_text_in(lang, named->relation->text);
    if (named->axes == (1U << named->n_axes) - 1)
        snprintf(text, room, "%s", sentence);
    else {
        write_axes(d, lang, named, axes, sizeof axes);
        snprintf(text, room, pe_text_in(lang, "%s: %s"), axes, sentence);
    }
    if (is_factor)
        add_step(d, lang, named, text, room);
    size_t used = strlen(text);
    if (is_factor && name_of_factor(named) && used + 1 < room)
        snprintf(text + used, room - used, pe_text_in(lang, " It is %s."), name_of_factor(named));
    if (strstr(named->relation->text, "{row}"))
        add_segment(d, lang, named, text, room);
}

/* A factor as a ratio of small integers; false: it is none, or a whole number. */
static bool write_ratio(double factor, char *text, size_t room)
{
    enum { DENOMINATORS = 64 };
    for (int below = 2; below <= DENOMINATORS; below++) {
        double above = nearbyint(factor * below);
        if (factor == nearbyint(factor) || fabs(factor * below - above) > 1e-9 * fabs(above))
            continue;
        snprintf(text, room, "%.0f/%d", above, below);
        return true;
    }
    return false;
}

void pe_named_put(struct pe_diagnosis *d, const struct pe_named *named, struct pe_node *node)
{
    const char *texts[PE_N_LANGS];
    char text[PE_N_LANGS][600], ratio[32];
    const struct pe_related *r = &named->related;
    bool is_factor = pe_relation_is_factor(named->relation),
         is_ratio = strstr(named->relation->text, "{meaning}") && write_ratio(r->found, ratio, sizeof ratio);
    int64_t axes[PE_AXES_MAX];
    size_t n = 0;
    for (enum pe_lang lang = 0; lang < PE_N_LANGS; lang++) {
        write_sentence(d, lang, named, is_factor, text[lang], sizeof text[lang]);
        texts[lang] = text[lang];
    }
    for (unsigned a = 0; a < named->n_axes; a++)
        if (named->axes & 1U << a)
            axes[n++] = a;
    pe_put_real(node, "found", r->found);
    if (named->word)
        pe_put_string(node, "believed", named->word);
    else
        pe_put_real(node, "believed", r->believed);
    if (strstr(named->relation->text, "{row}"))
        pe_put_integer(node, "row", (int64_t)r->row);
    if (named->n_axes > 1)
        pe_put_integers(node, "axes", axes, n);
    pe_put_string_or_null(node, "meaning", is_ratio ? ratio : is_factor ? name_of_factor(named) : NULL);
    pe_put_details(node, d->request->lang, texts);
}

/* ---- Scalings ---- */

/* "yarn, factor 8, original_max_position_embeddings 4096". */
static void write_scaling(enum pe_lang lang, const struct pe_value *scaling, char *text, size_t room)
{
    size_t used = 0;
    bool is_given = scaling && scaling->kind == PE_OBJECT;
    snprintf(text, room, "%s", is_given ? "" : pe_text_in(lang, "none"));
    for (size_t i = 0; is_given && i < scaling->object.n && used + 1 < room; i++) {
        const struct pe_field *f = &scaling->object.fields[i];
        const char *before = used ? ", " : "";
        double x = pe_value_number(&f->value);
        if (pe_is_among("type|rope_type", f->name) && f->value.kind == PE_STRING)
            used += (size_t)snprintf(text + used, room - used, "%s%s", before, f->value.string);
        else if (f->value.kind == PE_BOOLEAN)
            used += (size_t)snprintf(text + used, room - used, "%s%s %s", before, f->name,
                                     f->value.boolean ? "true" : "false");
        else if (!isnan(x))
            used += (size_t)snprintf(text + used, room - used, "%s%s %.10g", before, f->name, x);
    }
}

bool pe_scalings_put(const struct pe_diagnosis *d, struct pe_node *node, const struct pe_value *found,
                     const struct pe_value *believed)
{
    enum { ROOM = 320 };
    const char *texts[PE_N_LANGS];
    char text[PE_N_LANGS][2 * ROOM + 80], sides[2][ROOM];
    if (!found || found->kind != PE_OBJECT || !pe_field_find(found->object.fields, found->object.n, "type"))
        return false;
    for (enum pe_lang lang = 0; lang < PE_N_LANGS; lang++) {
        write_scaling(lang, found, sides[0], ROOM);
        write_scaling(lang, believed, sides[1], ROOM);
        snprintf(text[lang], sizeof text[lang], pe_text_in(lang, "The scaling is %s; that of the configuration is %s."),
                 sides[0], sides[1]);
        texts[lang] = text[lang];
    }
    pe_put_details(node, d->request->lang, texts);
    return true;
}
