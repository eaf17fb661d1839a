/* properties: how many of the five wishes of introductions to positional encodings an encoding fulfils. */
#include "core/analysis/parts/wishes.h"

static const struct {
    const char *name;
    pe_wish_fn *compute;
} wishes[] = {
    {"unique", pe_wish_unique},
    {"linear", pe_wish_linear},
    {"generalises", pe_wish_generalises},
    {"deterministic", pe_wish_deterministic},
    {"n_dimensional", pe_wish_n_dimensional},
};
enum { N_WISHES = sizeof wishes / sizeof wishes[0] };

static void put_number(struct pe_node *out, const char *name, double x)
{
    if (isnan(x))
        pe_put_null(out, name);
    else
        pe_put_real(out, name, x);
}

static void put_wish(struct pe_node *list, size_t i, const struct pe_wish *wish)
{
    struct pe_node *out = pe_put_object(list, wishes[i].name);
    if (wishes[i].compute == pe_wish_deterministic)
        pe_put_integer(out, "value", (int64_t)wish->value);
    else
        put_number(out, "value", wish->value);
    if (wishes[i].compute == pe_wish_unique)
        put_number(out, "length_change", wish->length_change);
    pe_put_boolean(out, "holds", wish->holds);
}

static const char *const details[] = {
    "{value} of the five wishes hold: {fulfilled}.",
    "None of the five wishes holds: {value}.",
};

static void put(const struct pe_analysis *study, struct pe_node *out, const struct pe_wish *found)
{
    int64_t n = 0;
    for (size_t i = 0; i < N_WISHES; i++)
        n += found[i].holds;
    pe_put_integer(out, "value", n);
    pe_put_null(out, "witness");
    struct pe_node *names = pe_put_list(out, "fulfilled");
    for (size_t i = 0; i < N_WISHES; i++)
        if (found[i].holds)
            pe_put_string(names, NULL, wishes[i].name);
    struct pe_node *list = pe_put_object(out, "wishes");
    for (size_t i = 0; i < N_WISHES; i++)
        put_wish(list, i, &found[i]);
    pe_put_detail(out, study->request->lang, details[n == 0]);
}

static enum pe_status compute(struct pe_analysis *study, struct pe_subject *subject, struct pe_node *out,
                              struct pe_error *err)
{
    struct pe_wish found[N_WISHES];
    enum pe_status status = PE_OK;
    for (size_t i = 0; !status && i < N_WISHES && !pe_was_cancelled(); i++)
        status = wishes[i].compute(study, subject, &found[i], err);
    if (!status && !pe_was_cancelled())
        put(study, out, found);
    return status;
}

static bool applies(const struct pe_analysis *study, const struct pe_subject *subject)
{
    (void)study;
    return subject->n_rows > 0 && subject->plan->seq.n_axes == 1;
}

const struct pe_metric pe_metric_properties;
const struct pe_metric pe_metric_properties = {
    .info =
        {
            .name = "properties",
            .about = {"five wishes",
                      "unique, linear in shifts, generalises to longer sequences, deterministic, n-dimensional"},
            .applies_to = "schemes with rows on one axis: absolute, rotary, and biases by distance",
            .work = "that of unique and of shift, and 9 n D",
            .details = details,
            .n_details = sizeof details / sizeof details[0],
        },
    .needs_rows = true,
    .is_of_kernels = true,
    .applies = applies,
    .cost = pe_wishes_cost,
    .compute = compute,
};
