/* Numbers as programs print them. The first byte chooses the form: a field, a member of `tensors`, data with a shape. A
 * text is refused with a sentence, or is a tensor with as many numbers as its shape has; gaps lie inside it, digits
 * leave something finite open; and a text of numbers that were printed in full is what JSON has of them. */
#include "api/inputs/inputs.h"
#include "api/limits.h"
#include "api/operations.h"
#include "tests/fuzz/laws.h"

#include <math.h>

static void check_print(const struct pe_print *print, const struct pe_tensor *t)
{
    REQUIRE(print->half >= 0 && isfinite(print->half) && (print->half > 0 || print->has_gaps));
    for (unsigned a = 0; print->has_gaps && a < t->rank; a++)
        REQUIRE(print->gaps[a].from <= print->gaps[a].to && print->gaps[a].to <= t->shape[a]);
}

static void check_tensor(const struct pe_value *v)
{
    uint64_t n;
    double sum = 0;
    REQUIRE(v->kind == PE_ARRAY && v->array.rank > 0 && v->array.rank <= PE_RANK_MAX);
    REQUIRE(pe_shape_count(v->array.shape, v->array.rank, &n) && n > 0);
    for (uint64_t i = 0; i < n; i++) /* every number is there to be read */
        sum += pe_real_at(&(struct pe_reals){v->array, n}, i);
    (void)sum;
    if (v->print)
        check_print(v->print, &v->array);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    static const char *const begins[] = {"\"cos\":", "\"tensors\":{\"x\":", "\"cos\":{\"shape\":[5,7],\"data\":",
                                         "\"cos\":{\"dtype\":\"bf16\",\"shape\":[6],\"data\":"};
    static const char *const ends[] = {"}", "}}", "}}", "}}"};
    static const struct api_route route = {.takes_prints = true};
    static struct api_request request;
    struct api_problem problem;
    struct api_text text;
    if (size == 0)
        return 0;
    size_t form = *data % 4;
    api_text_init(&text, 1 << 20);
    api_text_format(&text, "{%s", begins[form]);
    api_text_string_n(&text, (const char *)data + 1, size - 1);
    api_text_put(&text, ends[form]);
    api_request_init(&request, PE_ENCODE);
    request.route = &route;
    if (api_json_read(&request, text.bytes, text.n, "", &problem) && api_printed_take(&request, &problem)) {
        const struct pe_value *v = api_request_find(&request, form == 1 ? "tensors" : "cos");
        check_tensor(form == 1 ? api_member_find(v, "x") : v);
    } else {
        REQUIRE(problem.status >= 400 && problem.status < 500 && *problem.error.detail);
    }
    api_request_drop(&request);
    api_text_drop(&text);
    return 0;
}
