/* Prints the table of model_types, or of classes of diffusers, from their rows, as Markdown: type_table [classes]. */
#include "core/models/hf/hf.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static const char *const kinds[] = {
#define KIND(ID, name, read, text) [PE_HF_##ID] = text,
#define TRAIT(member, name, text, source)
#include "core/models/hf/list.h"
#undef KIND
#undef TRAIT
};

/* What the row's traits are, where the usual code is replaced by another: of the order of layers and of scores each by
 * itself, and the others. */
static void print_traits(const struct pe_hf_model *row, const char *of)
{
#define KIND(ID, name, read, text)
#define TRAIT(member, name, text, source)                                                                              \
    if (row->member == pe_hf_##name &&                                                                                 \
        (strcmp(#member, of) == 0 || (!*of && strcmp(#member, "second") != 0 && strcmp(#member, "scores") != 0)))      \
        printf("%s", text);
#include "core/models/hf/list.h"
#undef KIND
#undef TRAIT
}

/* The type has a dot or an exponent if the value is a real number. */
static void print_value(const struct pe_value *v)
{
    char text[32] = "";
    if (v->kind == PE_REAL)
        snprintf(text, sizeof text, "%.10g", v->real);
    if (v->kind == PE_REAL)
        printf("%s%s", text, strpbrk(text, ".e") ? "" : ".0");
    else if (v->kind == PE_INTEGER)
        printf("%lld", (long long)v->integer);
    else if (v->kind == PE_BOOLEAN)
        printf(v->boolean ? "true" : "false");
    else if (v->kind == PE_NULL)
        printf("null");
    else if (v->kind == PE_STRING)
        for (const char *c = v->string; *c; c++)
            printf(*c == '|' ? ", " : "%c", *c);
    for (uint64_t i = 0; v->kind == PE_ARRAY && i < v->array.shape[0]; i++)
        printf("%s%g%s", i ? "," : "[", ((const double *)v->array.data)[i], i + 1 == v->array.shape[0] ? "]" : "");
}

/* "a=1 b.c=2" */
static void print_fields(const struct pe_field *fields, size_t n, const char *object)
{
    for (size_t i = 0; i < n; i++) {
        if (fields[i].value.kind == PE_OBJECT) {
            print_fields(fields[i].value.object.fields, fields[i].value.object.n, fields[i].name);
        } else {
            printf("%s%s%s=", object, *object ? "." : "", fields[i].name);
            print_value(&fields[i].value);
        }
        printf(i + 1 < n ? " " : "");
    }
}

/* "a|b" as "a, b"; a bar would end the table's cell. */
static void print_names(const char *names)
{
    for (; *names; names++)
        printf(*names == '|' ? ", " : "%c", *names);
}

static void print_pairs(const char *before, const char *names)
{
    if (!names)
        return;
    printf("%s", before);
    print_names(names);
}

static void print_gives(const struct pe_hf_model *row)
{
    for (size_t i = 0; i < row->gives.n; i++) {
        printf(", %s ", row->gives.fields[i].name);
        print_value(&row->gives.fields[i].value);
    }
    print_pairs("; only if ", row->rope_if);
}

static void print_rotary(const struct pe_hf_model *row)
{
    bool is_latent = pe_hf_has_default(row, "qk_rope_head_dim");
    printf(" %s", row->layout ? row->layout : is_latent ? "interleaved" : "half");
    print_pairs(", channels ", row->channels);
    print_gives(row);
}

/* Of a class: how the head is shared among axes, and how segments are counted. */
static void print_grid(const struct pe_hf_model *row)
{
    print_pairs(", ", row->layout);
    if (row->axes)
        printf(", axes %.*s", (int)strcspn(row->axes, ":"), row->axes);
    print_gives(row);
    print_pairs(", position_style ", row->position_style);
}

/* The object, its type if it states none, and what holds without it. */
static void print_nested(const struct pe_hf_model *row)
{
    print_names(row->inner);
    print_pairs(", else ", row->inner_type);
    print_pairs("; without it ", row->without);
}

/* Where the config does not list its layers. */
static void print_turns(const struct pe_hf_model *row)
{
    print_pairs("; mixes ", row->mixed);
    if (!row->period)
        return;
    printf(", the second %s", row->second ? "" : "the last of each period");
    print_traits(row, "second");
    printf(", %s", row->period);
}

static void print_what(const struct pe_hf_model *row)
{
    printf("%s%s", kinds[row->kind], row->kind == PE_HF_OTHER ? row->positions : "");
    if (row->send)
        printf("; send %s", row->send);
    if (row->kind == PE_HF_NESTED)
        print_nested(row);
    if (row->kind == PE_HF_ROPE)
        print_rotary(row);
    if (row->is_class && row->kind != PE_HF_ROPE)
        print_grid(row);
    print_pairs("; layer types ", row->layers);
    print_pairs("; none in ", row->none);
    print_turns(row);
    print_pairs("; refused with ", row->refuses);
    print_pairs("; needs one of ", row->needs);
    print_traits(row, "");
}

static void print_scores(const struct pe_hf_model *row)
{
    bool is_elsewhere = row->kind == PE_HF_NESTED || row->kind == PE_HF_PARTS;
    printf("%s", row->scale ? row->scale : is_elsewhere ? "" : "not read");
    print_pairs("; cap ", row->cap);
    print_pairs("; sinks ", row->sinks);
    print_traits(row, "scores");
}

static int by_name(const void *a, const void *b)
{
    return strcmp((*(const struct pe_hf_model *const *)a)->types, (*(const struct pe_hf_model *const *)b)->types);
}

int main(int argc, char **argv)
{
    bool of_classes = argc > 1 && strcmp(argv[1], "classes") == 0;
    static const struct pe_hf_model *rows[2000];
    size_t n = 0;
    for (size_t i = 0; n < sizeof rows / sizeof *rows && i < pe_n_hf_type_rows; i++)
        if (pe_hf_type_rows[i].is_class == of_classes)
            rows[n++] = &pe_hf_type_rows[i];
    qsort(rows, n, sizeof *rows, by_name);
    printf("| %s | positions | scores | the class's values for missing fields | read in %s |\n|---|---|---|---|---|\n",
           of_classes ? "class" : "model_type",
           of_classes ? "diffusers' models/transformers/" : "transformers' models/");
    for (size_t i = 0; i < n; i++) {
        printf("| ");
        print_names(rows[i]->types);
        printf(" | ");
        print_what(rows[i]);
        printf(" | ");
        print_scores(rows[i]);
        printf(" | ");
        print_fields(rows[i]->fields.fields, rows[i]->fields.n, "");
        printf(" | %s%s |\n", rows[i]->source, rows[i]->certainty == PE_UNVERIFIED ? " (unverified)" : "");
    }
    return 0;
}
