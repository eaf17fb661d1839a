/* What the control groups of a process allow, read from copies of the system's files. */
#include "server/process/process.h"
#include "tests/support/cmocka.h"

#include <stdio.h>
#include <stdlib.h>

static char root[64];

static void run(const char *command) { assert_int_equal(system(command), 0); /* NOLINT: our own words only */ }

static void empty_root(void)
{
    char command[256];
    snprintf(command, sizeof command, "rm -rf '%s' && mkdir -p '%s/proc/self' '%s/sys/fs/cgroup'", root, root, root);
    run(command);
}

static void put(const char *name, const char *text)
{
    char command[1024];
    snprintf(command, sizeof command, "mkdir -p \"$(dirname '%s/%s')\" && printf '%s' >'%s/%s'", root, name, text, root,
             name);
    run(command);
}

void tests_begin(void)
{
    snprintf(root, sizeof root, "/tmp/posenc-groups-XXXXXX");
    assert_non_null(mkdtemp(root));
}

void tests_end(void)
{
    char command[128];
    snprintf(command, sizeof command, "rm -rf '%s'", root);
    assert_int_equal(system(command), 0);
}

TEST(without_files_there_is_no_limit)
{
    empty_root();
    assert_true(process_memory_limit(root) == UINT64_MAX);
    put("proc/self/cgroup", "0::/\\n");
    assert_true(process_memory_limit(root) == UINT64_MAX);
    put("sys/fs/cgroup/memory.max", "max\\n");
    assert_true(process_memory_limit(root) == UINT64_MAX);
    put("sys/fs/cgroup/memory.max", "");
    assert_true(process_memory_limit(root) == UINT64_MAX);
}

/* In a container the group is the root of what is mounted, whatever its path is outside. */
TEST(version_2_in_a_container)
{
    empty_root();
    put("sys/fs/cgroup/memory.max", "1073741824\\n");
    static const char *const paths[] = {"0::/\\n", "0::/../../kubepods/pod1\\n", "0::/system.slice/docker-1.scope\\n",
                                        "1:name=systemd:/x\\n0::/y\\n"};
    for (size_t i = 0; i < sizeof paths / sizeof *paths; i++) {
        put("proc/self/cgroup", paths[i]);
        assert_true(process_memory_limit(root) == 1 << 30);
    }
}

/* A service of systemd: its own limit, and that of its slice. */
TEST(the_least_of_all_groups_counts)
{
    empty_root();
    put("proc/self/cgroup", "0::/system.slice/posenc.service\\n");
    put("sys/fs/cgroup/system.slice/posenc.service/memory.max", "2147483648\\n");
    assert_true(process_memory_limit(root) == 2ULL << 30);
    put("sys/fs/cgroup/system.slice/memory.max", "536870912\\n");
    assert_true(process_memory_limit(root) == 512 << 20);
    put("sys/fs/cgroup/system.slice/posenc.service/memory.max", "max\\n");
    assert_true(process_memory_limit(root) == 512 << 20);
}

TEST(version_1)
{
    empty_root();
    put("proc/self/cgroup", "9:name=systemd:/\\n4:cpu,memory:/docker/1\\n3:memoryless:/z\\n0::/\\n");
    assert_true(process_memory_limit(root) == UINT64_MAX);
    put("sys/fs/cgroup/memory/memory.limit_in_bytes", "9223372036854771712\\n");
    assert_true(process_memory_limit(root) == 9223372036854771712ULL);
    put("sys/fs/cgroup/memory/docker/1/memory.limit_in_bytes", "1073741824\\n");
    assert_true(process_memory_limit(root) == 1 << 30);
    put("proc/self/cgroup", "3:memoryless:/docker/1\\nnonsense\\n:\\n");
    assert_true(process_memory_limit(root) == UINT64_MAX);
}

TEST(quotas)
{
    assert_int_equal(process_quota_parse("200000 100000"), 2);
    assert_int_equal(process_quota_parse("150000 100000"), 2);
    assert_int_equal(process_quota_parse("max 100000"), 0);
}
