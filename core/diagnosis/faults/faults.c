/* The table of faults. */
#include "core/diagnosis/diagnosis.h"

#include <assert.h>
#include <string.h>

const char *const pe_fault_kind_names[PE_N_FAULT_KINDS] = {
    [PE_KIND_LAYOUT] = "layout",       [PE_KIND_SENSE] = "sense",
    [PE_KIND_POSITIONS] = "positions", [PE_KIND_WIDTH] = "width",
    [PE_KIND_SIZE] = "size",           [PE_KIND_LADDER] = "ladder",
    [PE_KIND_AXES] = "axes",           [PE_KIND_ARITHMETIC] = "arithmetic",
    [PE_KIND_SINUSOID] = "sinusoid",   [PE_KIND_BIAS] = "bias",
    [PE_KIND_PARAMETER] = "parameter", [PE_KIND_IDS] = "ids",
    [PE_KIND_FINDING] = "finding"};

/* ---- Findings that no hypothesis has ---- */

const struct pe_fault pe_fault_table_dtype = {
    FAULT_TEXT("table_dtype", "arithmetic", ARITHMETIC, 1, "table of lower precision",
               "The numbers are those of the configuration, rounded to a smaller dtype.",
               "The numbers were rounded to {found}; apart from that they are right."),
    .role = PE_ROLE_NARROW};
/* Of a grid or a run; of keys that are counted. */
static const char *const of_coordinates_f32[] = {
    ("The table was resized at coordinates computed in float32, as in most code: the largest difference is {largest}, "
     "in row {row}, which is what right code may lose."),
    ("Keys are counted in float32, as in most code: the largest difference is {largest}, in row {row}, which is what "
     "right code may lose."),
};
const struct pe_fault pe_fault_coordinates_f32 = {
    FAULT_TEXTS("coordinates_f32", "arithmetic", ARITHMETIC, 1, "float32 coordinates",
                "A table is read between its rows at coordinates that are computed in float32.", of_coordinates_f32),
    .role = PE_ROLE_NARROW_PLACES};
const struct pe_fault pe_fault_axes_moved = {
    FAULT_TEXT(
        "axes_moved", "axes", AXES, 2, "axes in another order",
        "The axes of the tensor are in an order that no configuration has.",
        "The axes of the tensor are in another order: axis i of what the configuration gives is axis found[i] of "
        "the tensor."),
    .role = PE_ROLE_AXES_MOVED};
const struct pe_fault pe_fault_sines_signed = {
    FAULT_TEXT("sines_signed", "sense", SENSE, 2, "sines with the rotation's minus",
               "The sine of the first channel of each pair has a minus.",
               "The sine of the first channel of each pair has a minus, as code needs it that adds the exchanged "
               "channels without one; `found` is how many columns the two are apart. With a rotation that has its own "
               "minus the sign is applied twice."),
    .role = PE_ROLE_SIGNED_SINES};
const struct pe_fault pe_fault_as_believed = {FAULT_TEXT("as_believed", "finding", FINDING, 0, "as configured",
                                                         "The configuration gives the tensor.",
                                                         "The tensor is what the configuration gives."),
                                              .role = PE_ROLE_AS_BELIEVED};
const struct pe_fault pe_fault_identified = {
    FAULT_TEXT("identified", "finding", FINDING, 0, "identified",
               "No configuration was sent; one that gives the tensor was found.",
               "No configuration was sent; the tensor is {found.summary}."),
    .role = PE_ROLE_IDENTIFIED};
const struct pe_fault pe_fault_undecided = {
    FAULT_TEXT("undecided", "finding", FINDING, 0, "undecided",
               "Two configurations give the tensor, but differ elsewhere.",
               "Candidate {candidate} gives the tensor too; a row at position {position} distinguishes them."),
    .role = PE_ROLE_UNDECIDED};
const struct pe_fault pe_fault_sides_differ = {
    FAULT_TEXT("sides_differ", "finding", FINDING, 0, "q and k differ", "Queries and keys are not rotated alike.",
               "q and k are not rotated alike, so scores no longer depend on the distance of their positions alone; "
               "`sides` describes each of them."),
    .role = PE_ROLE_SIDES_DIFFER};
const struct pe_fault pe_fault_uninitialised = {FAULT_TEXT("uninitialised", "finding", FINDING, 0,
                                                           "uninitialised memory",
                                                           "The frequencies look like uninitialised memory.",
                                                           "The frequencies look like uninitialised memory, as of a "
                                                           "buffer that was created empty and never filled: `found` "
                                                           "has the pair that cannot be right."),
                                                .role = PE_ROLE_UNINITIALISED};

/* Far; nearly the belief; nearly something else; too few numbers; the belief but for single numbers; then those of
 * enum pe_changed_how (../measure/changed.h). */
static const char *const of_unexplained[] = {
    "No configuration that was tried gives the tensor; `ruled_out` lists the best of each kind.",
    "The tensor is nearly what you believe: the largest error is {nearest.max_error}, at "
    "{worst.output}[{worst.index}]. No mistake that was tried explains it.",
    "Nothing that was tried gives the tensor; the nearest is {nearest.codes}, with a largest error of "
    "{nearest.max_error}, at {worst.output}[{worst.index}].",
    "The tensor has {found.numbers} numbers that distinguish configurations (not 0 or 1, with three digits or more); "
    "to identify one without a configuration takes {found.needed}. Send more rows, a configuration, or the numbers "
    "that /diagnose/probe asks for.",
    "The tensor is what you believe but for single numbers: {worst.output}[{worst.index}] is {worst.found} in place of "
    "{worst.expected}, and no rounding makes one number so much less exact than those that are computed with it.",
    "The numbers are those of the configuration, cut off: {found.numbers} of them would be below {found.least} or "
    "above {found.most}.",
    "All numbers are those of the configuration, in another order: {found.value}, at {found.output}[{found.index}], is "
    "believed at {believed.output}[{believed.index}].",
    "The heads are those of the configuration, in another order: head i is its head {found.rule}; the first ones are "
    "{found.order}.",
    "The rows are those of the configuration, in another order: row i is its row {found.rule}; the first ones are "
    "{found.order}.",
    "The columns are those of the configuration, in another order: column i is its column {found.rule}; the first ones "
    "are {found.order}.",
    "The numbers are those of the configuration in another order of axes: they are stored as {found.rule} and read as "
    "{found.first} (h heads, n rows, d columns).",
    "Every number is {found.rule}, where x is the number of the configuration.",
    "In each head every number is {found.rule} with coefficients of the head's own, where x is the number of the "
    "configuration; in the first: {found.first}.",
    "In each row every number is {found.rule} with coefficients of the row's own, where x is the number of the "
    "configuration; in the first: {found.first}.",
    "In each column every number is {found.rule} with coefficients of the column's own, where x is the number of the "
    "configuration; in the first: {found.first}.",
    "Each row is that of the configuration, shifted and scaled to mean 0 and variance 1, as a layer norm does.",
    "Each column is that of the configuration, shifted and scaled to mean 0 and variance 1 over the rows.",
    "In each head the bias is {found.rule}, d the distance, with coefficients of the head's own; in the first: "
    "{found.first}. In the configuration it is a multiple of d.",
    "Each row of probabilities is that of the configuration times a number ({found.first} in the first), so it no "
    "longer "
    "sums to 1: something is done to it after the softmax, as where keys are hidden then.",
    "In each row every number is that of the configuration plus one number ({found.first} in the "
    "first), which a softmax over the keys does not see.",
    "Every number is that of the configuration times a factor of its row and one of its column, as of queries and keys "
    "that are normalised.",
    "The numbers are those of the configuration, rounded to multiples of {found.rule}.",
    "{found.numbers} numbers are 0 and the others are {found.value} times those of the configuration, as dropout "
    "leaves "
    "them.",
    "The numbers are those of the configuration with their bytes in reverse: the tensor has the other byte order.",
    "The columns sum to 1 and the rows do not: the softmax was taken over the queries, not over the keys.",
    "Each row of probabilities sums to {found.value}, not to 1.",
    "The numbers are those of the configuration under another mask: query i sees the keys j with {found.rule}. Query "
    "{found.query}, for one, sees keys {found.first}; in the configuration {believed}.",
    "The numbers are those of the configuration under another mask: query {found.query} is the first that sees other "
    "keys: {found.first}; in the configuration {believed}.",
    "Every number is {found.rule}, where x is the number of the configuration and q that before the rotation.",
    "The tensor less that before the rotation is the same in every head: something was added, as an absolute encoding "
    "is, "
    "and nothing was rotated.",
    "Turned back by the rotation of the configuration, every number is {found.rule}, where x is the number of the "
    "tensor "
    "before the rotation.",
    "Turned back by the rotation of the configuration, every number is {found.rule} with coefficients of each "
    "channel's "
    "own, where x is the number of the tensor before the rotation; in the first: {found.first}.",
    "Turned back by the rotation of the configuration, every number is that before the rotation times a factor of its "
    "row "
    "and one of its channel, as of a norm with weights that is applied before the rotation.",
    "Every row is that of the configuration times one orthogonal matrix, the same for all rows: its channels are "
    "mixed, as "
    "by a Hadamard transform.",
    "Every row is that of the configuration times one matrix, the same for all rows: its channels are mixed.",
    "Every number is {found.rule}.",
    "Along the rows every number is {found.rule}, where x is the number of the configuration, y that of the tensor and "
    "i the row.",
    "Along the columns every number is {found.rule}, where x is the number of the configuration, y that of the tensor "
    "and i the column.",
    "The first channel of each pair is {found.rule} and the second {found.first}, where q1 and q2 are those before the "
    "rotation, y1 and y2 those sent, c and s the cosine and the sine of the configuration.",
    "The phases are those of the configuration but for an error that grows with the angle, up to {found.rule} of it: "
    "positions, frequencies or angles were rounded to {found.first}.",
    "The phases are those of the configuration but for an error that grows with the angle within its turn, up to "
    "{found.rule} of it: the angles were reduced to one turn and then rounded to {found.first}.",
    "The buckets depend on the distance alone and are other ones at {found.numbers} distances. The nearest is "
    "{found.first} (key less query): bucket {found.rule}, in the configuration {believed}.",
    "The bias depends on the distance alone and is another one at {found.numbers} distances. The nearest is "
    "{found.first} (key less query): {found.rule}, in the configuration {believed}.",
    "Keys that the configuration hides have a weight, the same for all that a query does not see ({found.value} in "
    "query {found.query}): their scores were set to one number, as by a mask that is multiplied, and not to -inf.",
};

const struct pe_fault pe_fault_unexplained = {FAULT_TEXTS("unexplained", "finding", FINDING, 0, "unexplained",
                                                          "No configuration that was tried gives the tensor.",
                                                          of_unexplained),
                                              .role = PE_ROLE_UNEXPLAINED};

/* ---- The table ---- */

static const struct pe_fault *const rows[] = {
#define FAULT(name) &pe_fault_##name,
#include "core/diagnosis/faults/list.h"
#undef FAULT
};

enum { N_FAULTS = sizeof rows / sizeof *rows };

size_t pe_n_faults(void) { return N_FAULTS; }

const struct pe_fault_info *pe_fault_at(size_t i)
{
    assert(i < N_FAULTS);
    return &rows[i]->info;
}

const struct pe_fault *pe_fault_row(size_t i)
{
    assert(i < N_FAULTS);
    return rows[i];
}

const struct pe_fault *pe_fault_of(enum pe_role role)
{
    size_t i = 0;
    while (rows[i]->role != role)
        i++;
    return rows[i];
}

const struct pe_fault *pe_fault_that_is(struct pe_transformed transform)
{
    size_t i = 0;
    while (!rows[i]->transforms || rows[i]->transforms->what != transform.what ||
           rows[i]->transforms->to != transform.to)
        i++;
    return rows[i];
}

enum pe_fault_kind pe_fault_kind_of(size_t i) { return rows[i]->kind; }

int pe_fault_surprise(size_t i) { return rows[i]->surprise; }

bool pe_fault_applies(const struct pe_diagnosis *d, size_t i)
{
    const struct pe_fault *fault = rows[i];
    const char *scheme = d->belief.inheritance->scheme->info.name;
    const struct pe_evidence_kind *kind = d->evidence.kind;
    unsigned bit = 1U << kind->id;
    return (!fault->evidence || fault->evidence & (bit | kind->like)) && !(fault->not_of & bit) &&
           (!fault->schemes || pe_is_among(fault->schemes, scheme));
}

/* ---- The field that a fault changes ---- */

/* Lists are never: a rule that has some is shown whole. */
static bool is_equal(const struct pe_value *a, const struct pe_value *b)
{
    return a && b ? a->kind != PE_ARRAY && pe_value_same(a, b) : a == b;
}

static const struct pe_value *member(const struct pe_value *object, const char *name)
{
    return object ? pe_field_find(object->object.fields, object->object.n, name) : NULL;
}

/* The only member that differs between two objects of one type; NULL: there are several. */
static const char *only_member(const struct pe_value *found, const struct pe_value *believed)
{
    const char *name = NULL;
    if (found->kind != PE_OBJECT || !believed || believed->kind != PE_OBJECT)
        return NULL;
    if (!is_equal(member(found, "type"), member(believed, "type")))
        return NULL;
    for (size_t i = 0; i < found->object.n; i++) {
        const struct pe_field *field = &found->object.fields[i];
        if (is_equal(&field->value, member(believed, field->name)))
            continue;
        if (name)
            return NULL;
        name = field->name;
    }
    return name;
}

static void set_change(struct pe_change *change, const char *name, const struct pe_value *found,
                       const struct pe_value *believed)
{
    *change = (struct pe_change){.found = found, .believed = believed};
    pe_pointer_join(change->pointer, sizeof change->pointer, "", name);
    const char *inner = found ? only_member(found, believed) : NULL;
    if (!inner)
        return;
    char outer[PE_POINTER_MAX];
    memcpy(outer, change->pointer, sizeof outer);
    pe_pointer_join(change->pointer, sizeof change->pointer, outer, inner);
    change->found = member(found, inner);
    change->believed = member(believed, inner);
}

/* Fields of the sequence that the edit removes are null in it. */
static const struct pe_value *set_or_null(const struct pe_value *value)
{
    return value && value->kind != PE_NULL ? value : NULL;
}

static const struct pe_value *believed_layers(struct pe_diagnosis *d)
{
    enum { NAME = 64 };
    char *room = pe_values_room(d->values, NAME);
    const char *name = room ? pe_layers_believed(d, room, NAME) : NULL;
    return name ? pe_values_keep(d->values, (struct pe_value){.kind = PE_STRING, .string = name}) : NULL;
}

/* Of the kernel that the belief has; NULL: that has none. */
static const struct pe_value *usual_cubic_a(struct pe_diagnosis *d)
{
    struct pe_edit nothing;
    pe_edit_init(&nothing);
    for (unsigned kind = 0; pe_resample_words[kind]; kind++) {
        double a = pe_resample_cubic_a((enum pe_resample_kind)kind);
        if (pe_edit_is_word(d, &nothing, "interpolate", pe_resample_words[kind]) && !isnan(a))
            return pe_values_keep(d->values, (struct pe_value){.kind = PE_REAL, .real = a});
    }
    return NULL;
}

/* What a field is where the belief leaves it out: the factor that its scaling gives, the start of its sequence and the
 * order of its grid. */
static const struct pe_value *usual(struct pe_diagnosis *d, const char *name)
{
    const struct pe_tensor *t = &d->evidence.tensors[0];
    const struct pe_model *model = d->belief.model;
    int64_t x = 0;
    if (pe_same(name, "attention_factor") && model && model->columns)
        return pe_values_keep(d->values, (struct pe_value){.kind = PE_REAL, .real = model->columns[0].ah});
    if (pe_same(name, "tensor_layout"))
        return pe_values_keep(d->values, (struct pe_value){.kind = PE_STRING, .string = "bhnd"});
    if (pe_same(name, "layer_type"))
        return believed_layers(d);
    if (pe_same(name, "order"))
        return pe_values_keep(d->values, (struct pe_value){.kind = PE_STRING, .string = "row_major"});
    if (pe_same(name, "interpolate_offset"))
        return pe_values_keep(d->values, (struct pe_value){.kind = PE_REAL, .real = 0});
    if (pe_same(name, "cubic_a"))
        return usual_cubic_a(d);
    if (!pe_same(name, "offset") && !pe_same(name, "q_offset"))
        return NULL;
    if (pe_same(name, "q_offset") && t->rank >= 2) /* of [num_heads, q_len, k_len] */
        x = (int64_t)t->shape[t->rank - 1] - (int64_t)t->shape[t->rank - 2];
    return pe_values_keep(d->values, (struct pe_value){.kind = PE_INTEGER, .integer = d->evidence.is_turned ? -x : x});
}

/* The first of the fault's own fields whose value differs from the belief's. */
static bool find_field(struct pe_diagnosis *d, const struct pe_edit *edit, unsigned fault, struct pe_change *change)
{
    struct pe_edit nothing;
    pe_edit_init(&nothing);
    for (size_t i = 0; i < edit->n_fields; i++) {
        const char *name = edit->fields[i].name;
        const struct pe_value *found = set_or_null(pe_edit_value(d, edit, name));
        const struct pe_value *believed = set_or_null(pe_edit_value(d, &nothing, name));
        believed = believed ? believed : usual(d, name);
        if (edit->by[i] != fault || edit->fields[i].value.kind == PE_NULL || is_equal(found, believed))
            continue;
        set_change(change, name, found, believed);
        return true;
    }
    return false;
}

/* A field that the edit removes, or that no edit sets. */
static void set_removed(struct pe_diagnosis *d, const struct pe_edit *edit, const char *name, struct pe_change *change)
{
    for (size_t i = 0; i < edit->n_fields; i++)
        if (pe_same(edit->fields[i].name, name) && edit->fields[i].value.kind == PE_NULL)
            change->believed = set_or_null(pe_edit_value(d, NULL, name));
    pe_pointer_join(change->pointer, sizeof change->pointer, "", name);
}

/* A transform concerns the tensor itself. */
void pe_fault_change(struct pe_diagnosis *d, const struct pe_edit *edit, const struct pe_fault *fault, unsigned i,
                     struct pe_change *change)
{
    *change = (struct pe_change){"", NULL, NULL};
    /* The layout that it sets is only a part of it. */
    bool is_order = edit->transforms.channels.order && fault->is_of_tensor && fault->kind == PE_KIND_LAYOUT;
    const char *own = fault->pointer;
    if (own && *own)
        set_removed(d, edit, own, change);
    else if (own || is_order || !find_field(d, edit, i, change))
        pe_pointer_join(change->pointer, sizeof change->pointer, "",
                        pe_evidence_name(&d->evidence, d->evidence.n_tensors - 1));
}
