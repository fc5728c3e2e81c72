/* Cores: how many there are to be had under quotas of control groups, which are played in a folder, and who is bound to
 * which. */
#define _GNU_SOURCE /* nftw */
#include "testing.h"

#include "base/cores.h"
#include "faulty_files.h"

#include <ftw.h>
#include <sys/stat.h>

static const char *root; /* of a machine that is played */

static void put(const char *path, const char *text)
{
    char whole[512];
    snprintf(whole, sizeof whole, "%s/%s", root, path);
    for (char *at = whole + strlen(root) + 1; (at = strchr(at, '/')); *at++ = '/') {
        *at = 0;
        mkdir(whole, 0700);
    }
    FILE *file = fopen(whole, "w");
    assert_non_null(file);
    fputs(text, file);
    fclose(file);
}

static void begin(const char *groups)
{
    root = scratch_folder();
    put("proc/self/cgroup", groups);
}

static int all_cores(void)
{
    return twi_find_cores("/nowhere").count;
}

static int drop(const char *path, const struct stat *about, int kind, struct FTW *place)
{
    (void)about, (void)kind, (void)place;
    return remove(path);
}

static void assert_cores(int count, bool limited)
{
    twi_cores cores = twi_find_cores(root);
    assert_int_equal(cores.count, count);
    assert_int_equal(cores.limited, limited);
    nftw(root, drop, 8, FTW_DEPTH | FTW_PHYS);
}

static void without_quotas_all_cores_of_the_mask_are_to_be_had(void **state)
{
    (void)state;
    begin("0::/\n");
    put("sys/fs/cgroup/cpu.max", "max 100000\n");
    assert_cores(all_cores(), false);
    begin("4:memory:/\n1:cpu,cpuacct:/\n");
    put("sys/fs/cgroup/cpu/cpu.cfs_quota_us", "-1\n");
    put("sys/fs/cgroup/cpu/cpu.cfs_period_us", "100000\n");
    assert_cores(all_cores(), false);
    begin("not a line of cgroups\n");
    assert_cores(all_cores(), false);
}

static void a_quota_limits_the_cores(void **state)
{
    (void)state;
    begin("0::/\n"); /* as a container sees itself */
    put("sys/fs/cgroup/cpu.max", "50000 100000\n");
    assert_cores(1, true);
    begin("0::/\n");
    put("sys/fs/cgroup/cpu.max", "9000000 100000\n");
    assert_cores(all_cores() < 90 ? all_cores() : 90, all_cores() > 90);
    begin("3:cpuset:/\n1:cpu,cpuacct:/\n");
    put("sys/fs/cgroup/cpu/cpu.cfs_quota_us", "100000\n");
    put("sys/fs/cgroup/cpu/cpu.cfs_period_us", "100000\n");
    assert_cores(1, all_cores() > 1);
}

static void quotas_of_the_groups_around_count_too(void **state)
{
    (void)state;
    begin("0::/user.slice/job\n");
    put("sys/fs/cgroup/user.slice/cpu.max", "100000 100000\n");
    put("sys/fs/cgroup/user.slice/job/cpu.max", "max 100000\n");
    assert_cores(1, all_cores() > 1);
    begin("2:cpu:/jobs/7\n");
    put("sys/fs/cgroup/cpu/jobs/cpu.cfs_quota_us", "100000\n");
    put("sys/fs/cgroup/cpu/jobs/cpu.cfs_period_us", "100000\n");
    put("sys/fs/cgroup/cpu/jobs/7/cpu.cfs_quota_us", "-1\n");
    put("sys/fs/cgroup/cpu/jobs/7/cpu.cfs_period_us", "100000\n");
    assert_cores(1, all_cores() > 1);
}

static void a_group_that_is_seen_from_inside_alone_is_found(void **state)
{
    (void)state;
    begin("1:cpu,cpuacct:/docker/8a7e\n"); /* what the host calls it, which is not there */
    put("sys/fs/cgroup/cpu/cpu.cfs_quota_us", "100000\n");
    put("sys/fs/cgroup/cpu/cpu.cfs_period_us", "100000\n");
    assert_cores(1, all_cores() > 1);
}

static void who_divides_a_mask_is_bound_and_who_divides_a_quota_is_not(void **state)
{
    (void)state;
    twi_core_share share = twi_share_cores((twi_cores){8, false}, 3, 1);
    assert_int_equal(share.threads, 2);
    assert_int_equal(share.first, 2);
    assert_int_equal(share.bound, 2);
    share = twi_share_cores((twi_cores){8, true}, 3, 1);
    assert_int_equal(share.threads, 2);
    assert_int_equal(share.bound, 0);
    share = twi_share_cores((twi_cores){8, false}, 1, 0);
    assert_int_equal(share.threads, 8);
    assert_int_equal(share.bound, 0);
    share = twi_share_cores((twi_cores){2, false}, 5, 4);
    assert_int_equal(share.threads, 1);
    assert_int_equal(share.bound, 0);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(without_quotas_all_cores_of_the_mask_are_to_be_had),
        cmocka_unit_test(a_quota_limits_the_cores),
        cmocka_unit_test(quotas_of_the_groups_around_count_too),
        cmocka_unit_test(a_group_that_is_seen_from_inside_alone_is_found),
        cmocka_unit_test(who_divides_a_mask_is_bound_and_who_divides_a_quota_is_not),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
