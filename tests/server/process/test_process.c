/* What the control groups of a process allow, read from copies of the system's files. */
#include "server/process/process.h"
#include "tests/support/folder.h"

static void put(const char *name, const char *text)
{
    char command[300];
    snprintf(command, sizeof command, "mkdir -p \"$(dirname '%s')\"", path_of(name));
    assert_int_equal(system(command), 0); /* NOLINT: our own words only */
    write_file(name, text, strlen(text));
}

TEST_BETWEEN(without_files_there_is_no_limit, folder_make, folder_remove)
{
    assert_true(process_memory_limit(folder) == UINT64_MAX);
    put("proc/self/cgroup", "0::/\n");
    assert_true(process_memory_limit(folder) == UINT64_MAX);
    put("sys/fs/cgroup/memory.max", "max\n");
    assert_true(process_memory_limit(folder) == UINT64_MAX);
    put("sys/fs/cgroup/memory.max", "");
    assert_true(process_memory_limit(folder) == UINT64_MAX);
}

/* In a container the group is the root of what is mounted, whatever its path is outside. */
TEST_BETWEEN(version_2_in_a_container, folder_make, folder_remove)
{
    put("sys/fs/cgroup/memory.max", "1073741824\n");
    static const char *const paths[] = {"0::/\n", "0::/../../kubepods/pod1\n", "0::/system.slice/docker-1.scope\n",
                                        "1:name=systemd:/x\n0::/y\n"};
    for (size_t i = 0; i < sizeof paths / sizeof *paths; i++) {
        put("proc/self/cgroup", paths[i]);
        assert_true(process_memory_limit(folder) == 1 << 30);
    }
}

/* A service of systemd: its own limit, and that of its slice. */
TEST_BETWEEN(the_least_of_all_groups_counts, folder_make, folder_remove)
{
    put("proc/self/cgroup", "0::/system.slice/posenc.service\n");
    put("sys/fs/cgroup/system.slice/posenc.service/memory.max", "2147483648\n");
    assert_true(process_memory_limit(folder) == 2ULL << 30);
    put("sys/fs/cgroup/system.slice/memory.max", "536870912\n");
    assert_true(process_memory_limit(folder) == 512 << 20);
    put("sys/fs/cgroup/system.slice/posenc.service/memory.max", "max\n");
    assert_true(process_memory_limit(folder) == 512 << 20);
}

TEST_BETWEEN(version_1, folder_make, folder_remove)
{
    put("proc/self/cgroup", "9:name=systemd:/\n4:cpu,memory:/docker/1\n3:memoryless:/z\n0::/\n");
    assert_true(process_memory_limit(folder) == UINT64_MAX);
    put("sys/fs/cgroup/memory/memory.limit_in_bytes", "9223372036854771712\n");
    assert_true(process_memory_limit(folder) == 9223372036854771712ULL);
    put("sys/fs/cgroup/memory/docker/1/memory.limit_in_bytes", "1073741824\n");
    assert_true(process_memory_limit(folder) == 1 << 30);
    put("proc/self/cgroup", "3:memoryless:/docker/1\nnonsense\n:\n");
    assert_true(process_memory_limit(folder) == UINT64_MAX);
}

TEST(quotas)
{
    assert_int_equal(process_quota_parse("200000 100000\n"), 2);
    assert_int_equal(process_quota_parse("150000 100000"), 2);
    assert_int_equal(process_quota_parse("10000 100000\n"), 1);
    assert_int_equal(process_quota_parse("max 100000\n"), 0);
    assert_int_equal(process_quota_parse(""), 0);
    assert_true(process_n_cores() >= 1);
}
