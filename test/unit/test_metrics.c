/* Mirrors src/incus/metrics.c. */
#include "incus/metrics.h"
#include "unit.h"

#include <string.h>

static const char text[] =
    "# HELP incus_cpu_seconds_total The total number of CPU time used in seconds.\n"
    "incus_cpu_seconds_total{cpu=\"0\",mode=\"system\",name=\"a\",project=\"default\",type=\"container\"} 1.5\n"
    "incus_cpu_seconds_total{cpu=\"1\",mode=\"user\",name=\"a\",project=\"default\",type=\"container\"} 2\n"
    "incus_cpu_seconds_total{cpu=\"1\",mode=\"idle\",name=\"a\",project=\"default\",type=\"container\"} 100\n"
    "incus_memory_MemTotal_bytes{name=\"a\",type=\"container\"} 1000\n"
    "incus_memory_MemAvailable_bytes{name=\"a\",type=\"container\"} 2.5e+02\n"
    "incus_memory_MemTotal_bytes{name=\"b\"} 1000\n"
    "incus_memory_MemAvailable_bytes{name=\"b\"} 1001\n"
    "incus_network_receive_bytes_total{device=\"lo\",name=\"a\"} 7\n"
    "incus_network_receive_bytes_total{device=\"eth0\",name=\"a\"} 30\n"
    "incus_network_receive_bytes_total{device=\"eth1\",name=\"a\"} 12\n"
    "incus_procs_total{name=\"b\"} 8\n"
    "incus_uptime_seconds 4\n";

static void adds_up_what_belongs_together(void **state)
{
    struct metrics metrics;
    metrics_parse(text, strlen(text), &metrics);
    assert_int_equal(metrics.count, 2);
    const struct metrics_instance *a = metrics_find(&metrics, "a");
    assert_non_null(a);
    assert_true(a->cpu_seconds == 3.5);
    assert_true(a->memory_used == 750);
    assert_true(a->network_in == 42);
    assert_true(a->network_out < 0 && a->processes < 0);
    const struct metrics_instance *b = metrics_find(&metrics, "b");
    assert_non_null(b);
    assert_true(b->memory_used < 0); /* more free than there is: unknown */
    assert_true(b->processes == 8);
    assert_null(metrics_find(&metrics, "c"));
    metrics_reset(&metrics);
    assert_int_equal(metrics.count, 0);
}

static void passes_over_what_it_does_not_know(void **state)
{
    static const char *const lines[] = {
        "",
        "{",
        "}",
        "incus_procs_total",
        "incus_procs_total{",
        "incus_procs_total{name=\"a\"}",
        "incus_procs_total{name=\"a\"} ",
        "incus_procs_total{name=\"a\"} x",
        "incus_procs_total{name=\"a\"} NaN",
        "incus_procs_total{name=\"a\"} -1",
        "incus_procs_total{name=\"a} 1",
        "incus_procs_total{name=} 1",
        "incus_procs_total{} 1",
        "incus_procs_total{project=\"a\"} 1",
        "incus_procs_total_more{name=\"a\"} 1",
        "} incus_procs_total{name=\"a\" 1",
    };
    for (size_t i = 0; i < ARRAY_LENGTH(lines); i++) {
        struct metrics metrics;
        metrics_parse(lines[i], strlen(lines[i]), &metrics);
        assert_int_equal(metrics.count, 0);
        metrics_reset(&metrics);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(adds_up_what_belongs_together),
        cmocka_unit_test(passes_over_what_it_does_not_know),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
