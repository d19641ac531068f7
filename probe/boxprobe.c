/* The instrument's table of subcommands, one row each, and the frame around a run: its budget and its one line.
 * What a subcommand does is in the file of its name; nothing but this file writes to stdout or ends the process.
 */
#include "request.h"
#include "subcommands.h"

#include <fcntl.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/time.h>
#include <unistd.h>

#ifndef PROBE_VERSION
#define PROBE_VERSION "unversioned"
#endif

enum { EXIT_VERDICT = 0, EXIT_NO_VERDICT = 1, EXIT_USAGE = 2, GRACE_MS = 500 };

static const struct subcommand *const subcommands[] = {
    &subcommand_connect,    &subcommand_udp,    &subcommand_icmp,      &subcommand_icmp_error, &subcommand_protocols,
    &subcommand_arp,        &subcommand_dns,    &subcommand_resolve,   &subcommand_dhcp,       &subcommand_ipv6,
    &subcommand_raw,        &subcommand_spoof,  &subcommand_multicast, &subcommand_flows,      &subcommand_listen,
    &subcommand_interfaces, &subcommand_routes, &subcommand_identity,
};

/* The line that the alarm writes. These three are the only mutable state outside a function: a signal handler has
 * nothing else to read. */
static char last_words[160];
static volatile sig_atomic_t last_words_size;
static volatile sig_atomic_t spoken;

static void on_alarm(int signal_number)
{
    /* A stdout that nobody reads must not hold us: the second alarm has the default action and kills. */
    (void)signal(SIGALRM, SIG_DFL);
    (void)alarm(1);
    if (!spoken) {
        ssize_t written = write(STDOUT_FILENO, last_words, (size_t)last_words_size);
        (void)written;
    }
    _exit(EXIT_NO_VERDICT);
}

static void arm_budget(const char *probe, int timeout_ms)
{
    int milliseconds = timeout_ms + GRACE_MS;
    struct itimerval timer = {
        .it_value = {.tv_sec = milliseconds / 1000, .tv_usec = (milliseconds % 1000) * 1000L},
    };
    struct sigaction action = {.sa_handler = on_alarm, .sa_flags = SA_NODEFER};

    last_words_size =
        snprintf(last_words, sizeof(last_words),
                 "{\"probe\":\"%s\",\"verdict\":\"error\",\"errno\":62,\"errno_name\":\"ETIME\",\"ms\":%d,"
                 "\"why\":\"the budget ran out\",\"evidence\":{}}\n",
                 probe, milliseconds);
    (void)sigaction(SIGALRM, &action, NULL);
    (void)setitimer(ITIMER_REAL, &timer, NULL);
}

/* A closed 0, 1 or 2 would be the first socket, and its peer would read our answer. */
static void hold_standard_descriptors(void)
{
    int fd;

    do {
        fd = open("/dev/null", O_RDWR | O_CLOEXEC);
    } while (fd >= 0 && fd <= STDERR_FILENO);
    if (fd > STDERR_FILENO) {
        (void)close(fd);
    }
}

static int print_usage(FILE *stream)
{
    (void)fprintf(stream, "usage: box-probe SUBCOMMAND [ARGUMENT...] [--flag VALUE...]\n"
                          "       box-probe SUBCOMMAND --help | --version\n"
                          "Prints one line of JSON: verdict, errno, ms, evidence.\n\n");
    for (size_t i = 0; i < sizeof(subcommands) / sizeof(subcommands[0]); i++) {
        (void)fprintf(stream, "  %-11s %s\n", subcommands[i]->name, subcommands[i]->summary);
    }
    return stream == stdout ? EXIT_VERDICT : EXIT_USAGE;
}

static int print_help(const struct subcommand *subcommand)
{
    (void)printf("usage: box-probe %s %s\n%s\n\n", subcommand->name, subcommand->arguments, subcommand->summary);
    for (const struct flag *flag = subcommand->flags; flag && flag->name; flag++) {
        (void)printf("  %s%s%-*s %s\n", flag->name, flag->value ? " " : "",
                     (int)(24 - strlen(flag->name) - (flag->value ? 1 : 0)), flag->value ? flag->value : "",
                     flag->help);
    }
    (void)printf("  --timeout MS             the whole run's budget (%d)\n"
                 "  --token TEXT             the word in each payload, instead of a random one\n",
                 subcommand->timeout_ms);
    return EXIT_VERDICT;
}

static int finish(const struct outcome *outcome, const char *probe, int64_t started_us)
{
    struct jsonline line CLEANUP_JSONLINE = {0};
    size_t at = 0;

    outcome_write(outcome, probe, deadline_now_us() - started_us, &line);
    spoken = 1;
    line.data[line.size++] = '\n'; /* in the place of the NUL */
    while (at < line.size) {
        ssize_t written = write(STDOUT_FILENO, line.data + at, line.size - at);
        if (written <= 0) {
            return EXIT_NO_VERDICT;
        }
        at += (size_t)written;
    }
    if (outcome->usage) {
        (void)fprintf(stderr, "box-probe: %s\n", outcome->why);
        return EXIT_USAGE;
    }
    return outcome->verdict == VERDICT_ERROR ? EXIT_NO_VERDICT : EXIT_VERDICT;
}

static int run(const struct subcommand *subcommand, int argc, char **argv)
{
    struct outcome outcome CLEANUP_OUTCOME = {.verdict = VERDICT_ERROR, .why = "no verdict was reached"};
    struct request request;
    int64_t started_us = deadline_now_us();

    if (request_parse(subcommand, argc, argv, &request, &outcome) == 0) {
        arm_budget(subcommand->name, request.timeout_ms);
        jsonline_text(&outcome.evidence, "token", request.token);
        (void)subcommand->run(&request, &outcome);
    }
    return finish(&outcome, subcommand->name, started_us);
}

int main(int argc, char **argv)
{
    hold_standard_descriptors();
    (void)signal(SIGPIPE, SIG_IGN);
    if (argc < 2) {
        return print_usage(stderr);
    }
    if (strcmp(argv[1], "--version") == 0) {
        (void)printf("box-probe %s\n", PROBE_VERSION);
        return EXIT_VERDICT;
    }
    if (strcmp(argv[1], "--help") == 0 || strcmp(argv[1], "help") == 0) {
        return print_usage(stdout);
    }
    for (size_t i = 0; i < sizeof(subcommands) / sizeof(subcommands[0]); i++) {
        if (strcmp(argv[1], subcommands[i]->name) != 0) {
            continue;
        }
        if (argc > 2 && strcmp(argv[2], "--help") == 0) {
            return print_help(subcommands[i]);
        }
        return run(subcommands[i], argc - 2, argv + 2);
    }
    (void)fprintf(stderr, "box-probe: no subcommand \"%s\"\n", argv[1]);
    return print_usage(stderr);
}
