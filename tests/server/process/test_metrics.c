/* The figures of /metrics: each counts for itself, by label, in histograms that are cumulative. The form of the text is
 * tested over a socket, tests/http/guides/test_metrics.py. */
#include "server/process/process.h"
#include "tests/support/cmocka.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static char *page(void)
{
    size_t n = 0;
    char *text = metrics_print(&n);
    assert_non_null(text);
    assert_int_equal(strlen(text), n);
    assert_int_equal(text[n - 1], '\n');
    return text;
}

static double value(const char *text, const char *series)
{
    char start[256];
    snprintf(start, sizeof start, "\n%s ", series);
    const char *found = strstr(text, start);
    if (!found)
        fail_msg("no %s", series);
    return found ? strtod(found + strlen(start), NULL) : 0;
}

TEST(simple_rows)
{
    metrics_add(METRICS_CONNECTIONS, 3);
    metrics_add(METRICS_CONNECTIONS, -1);
    metrics_set(METRICS_POOL_BYTES, 4096);
    metrics_add(METRICS_REJECTED_QUEUE, 1);
    metrics_setup("1.2", "a\"b\\c\nd", "avx2"); /* a label may hold anything */
    char *text = page();
    assert_true(value(text, "posenc_connections") == 2);
    assert_true(value(text, "posenc_buffer_bytes") == 4096);
    assert_true(value(text, "posenc_rejected_total{reason=\"queue\"}") == 1);
    assert_true(value(text, "posenc_build_info{version=\"1.2\",commit=\"a\\\"b\\\\c\\nd\",isa=\"avx2\"}") == 1);
    assert_true(value(text, "process_resident_memory_bytes") > 1e5);
    assert_true(value(text, "process_open_fds") >= 3);
    assert_true(value(text, "process_start_time_seconds") > 1.6e9);
    free(text);
}

/* Each counted figure stands on its own line, and on no other's. */
TEST(each_figure_has_its_line)
{
    static const char *const series[] = {
#define COUNTED(ID, name, type, labels, help) [METRICS_##ID] = name labels,
#define READ(...)
#include "server/process/metrics_list.h"
#undef COUNTED
#undef READ
    };
    for (int id = 0; id < METRICS_N_IDS; id++)
        metrics_set((enum metrics_id)id, 1000 + id);
    char *text = page();
    for (int id = 0; id < METRICS_N_IDS; id++)
        assert_true(value(text, series[id]) == 1000 + id);
    free(text);
}

TEST(requests_are_counted_by_label)
{
    struct metrics_request request = {.route = "/rotate",
                                      .scheme = "rope",
                                      .format = "npy",
                                      .status = 200,
                                      .total_ns = 2000000,
                                      .work_ns = 1500000000,
                                      .n_bytes = 300};
    metrics_request(&request);
    request.total_ns = 70000000000u;
    request.n_bytes = 1;
    metrics_request(&request);
    request.status = 422;
    metrics_request(&request);
    char *text = page();
    assert_true(value(text, "posenc_requests_total{route=\"/rotate\",scheme=\"rope\",status=\"200\"}") == 2);
    assert_true(value(text, "posenc_requests_total{route=\"/rotate\",scheme=\"rope\",status=\"422\"}") == 1);
    assert_true(value(text, "posenc_request_seconds_bucket{route=\"/rotate\",le=\"0.001\"}") == 0);
    assert_true(value(text, "posenc_request_seconds_bucket{route=\"/rotate\",le=\"0.005\"}") == 1);
    assert_true(value(text, "posenc_request_seconds_bucket{route=\"/rotate\",le=\"60\"}") == 1);
    assert_true(value(text, "posenc_request_seconds_bucket{route=\"/rotate\",le=\"+Inf\"}") == 3);
    assert_true(value(text, "posenc_request_seconds_count{route=\"/rotate\"}") == 3);
    assert_true(value(text, "posenc_answer_bytes_bucket{route=\"/rotate\",le=\"256\"}") == 2);
    assert_true(value(text, "posenc_answer_bytes_bucket{route=\"/rotate\",le=\"1048576\"}") == 3);
    assert_true(value(text, "posenc_answer_bytes_sum{route=\"/rotate\"}") == 302);
    assert_true(value(text, "posenc_output_bytes_total{format=\"npy\"}") == 302);
    assert_true(value(text, "posenc_compute_seconds_total{scheme=\"rope\"}") >= 4.5);
    free(text);
}

TEST(the_list_of_labels_is_bounded)
{
    static char names[1000][8];
    for (int i = 0; i < 1000; i++) {
        snprintf(names[i], sizeof names[i], "s%d", i);
        metrics_request(
            &(struct metrics_request){.route = names[i], .scheme = names[i], .format = names[i], .status = 200});
    }
    char *text = page();
    assert_true(value(text, "posenc_requests_total{route=\"other\",scheme=\"other\",status=\"200\"}") > 400);
    assert_true(value(text, "posenc_request_seconds_count{route=\"other\"}") > 900);
    assert_non_null(strstr(text, "posenc_output_bytes_total{format=\"other\"}"));
    free(text);
}
