/* SPDX-License-Identifier: Apache-2.0 */
/*
 * os_posix_info.c - what the machine and its control groups grant to this process (Linux).
 *
 * A limit may sit at the group of the process or at any group above it, so all levels are asked and
 * the smallest answer holds. Where the files lie, for a group /a/b:
 *
 *   version 2   /proc/self/cgroup "0::/a/b"         /sys/fs/cgroup/a/b/{cpu.max,memory.max}
 *   version 1   /proc/self/cgroup "4:memory:/a/b"   /sys/fs/cgroup/memory/a/b/memory.limit_in_bytes
 *
 * Inside a container /a/b may be a path of the host that cannot be seen; then only the upper levels
 * answer, and the uppermost is the container's own group.
 *
 * A file that is missing or odd means "no limit known". What the machine has is asked for, too, and
 * that question fails if nobody answers it.
 */
#define _GNU_SOURCE /* for what Linux has beyond POSIX */
#include "base/os/os_posix.h"

#include "base/str.h"

#include <errno.h>
#include <fcntl.h>
#include <sched.h>
#include <sys/resource.h>
#include <unistd.h>

/* --------------------------------------------------------------------------- small system files */

/* The beginning of a file as a C string. Returns an errno; what was read before is there then. */
static int read_text(const char *path, char *text, size_t text_bytes) {
    size_t length = 0;
    const int fd = open(path, O_RDONLY | O_CLOEXEC);
    int error = fd < 0 ? errno : 0;
    if (fd >= 0) {
        while (length + 1 < text_bytes) {
            const ssize_t got = read(fd, text + length, text_bytes - 1 - length);
            if (got < 0 && errno == EINTR) continue;
            if (got < 0) error = errno;
            if (got <= 0) break;
            length += (size_t)got;
        }
        close(fd);
    }
    text[length] = 0;
    return error;
}

/* The digits at text, behind blanks, as a number; false if there are none or too many ("max",
 * "-1"). */
static bool leading_number(const char *text, uint64_t *out) {
    while (*text == ' ' || *text == '\t') text++;
    size_t n = 0;
    while (text[n] >= '0' && text[n] <= '9') n++;
    return tg_parse_uint64(text, n, out);
}

/* The number behind a word that begins a line: "MemTotal:   16303124 kB". */
static bool number_after(const char *text, const char *word, uint64_t *out) {
    const size_t length = strlen(word);
    for (const char *line = text; line; line = strchr(line, '\n')) {
        if (*line == '\n') line++;
        if (strncmp(line, word, length) == 0) return leading_number(line + length, out);
        if (!*line) break;
    }
    return false;
}

/* ------------------------------------------------------------------------------- control groups */

#define PATH_BYTES 1024

typedef struct group {
    char root[64];         /* where the controller is mounted */
    char path[PATH_BYTES]; /* of the process below it; "" at the root */
    bool v2;
} group;

/* Is word one of the names in a comma-separated list of n bytes? */
static bool list_has(const char *list, size_t n, const char *word) {
    const size_t length = strlen(word);
    for (size_t i = 0; i < n;) {
        size_t end = i;
        while (end < n && list[end] != ',') end++;
        if (end - i == length && memcmp(list + i, word, length) == 0) return true;
        i = end + 1;
    }
    return false;
}

/*
 * One line "id:controllers:path". True if it decides: a controller lives in one hierarchy only, so
 * a line of version 1 that names it has precedence over the unnamed one of version 2.
 */
static bool read_group_line(const char *line, const char *controller, group *out) {
    const char *names = strchr(line, ':');
    const char *path = names ? strchr(names + 1, ':') : NULL;
    if (!path) return false;
    names++;
    const size_t n_names = (size_t)(path - names);
    const bool v1 = list_has(names, n_names, controller);
    if (!v1 && n_names > 0) return false;
    out->v2 = !v1;
    snprintf(out->root, sizeof out->root, "/sys/fs/cgroup%s%s", v1 ? "/" : "",
             v1 ? controller : "");
    /* "/" is the root, and so is a path too long to be kept: then only the root answers. */
    const size_t length = strlen(path + 1);
    const bool keep = length > 1 && length < sizeof out->path;
    memcpy(out->path, path + 1, keep ? length + 1 : 0);
    if (!keep) out->path[0] = 0;
    return v1;
}

/* Finds the group that governs a controller ("cpu", "memory"); false if there are none. */
static bool find_group(const char *controller, group *out) {
    char text[4096];
    read_text("/proc/self/cgroup", text, sizeof text);
    out->root[0] = 0;
    for (char *line = text; *line;) {
        char *end = strchr(line, '\n');
        if (end) *end = 0;
        if (read_group_line(line, controller, out) || !end) break;
        line = end + 1;
    }
    return out->root[0] != 0;
}

/* Goes one level up, by cutting the path; false above the root, whose path is empty. */
static bool group_up(group *g) {
    char *slash = strrchr(g->path, '/');
    if (!slash) return false;
    *slash = 0;
    return true;
}

/* A file of the group at its present level. */
static const char *group_text(const group *g, const char *file, char *text, size_t text_bytes) {
    char path[sizeof g->root + sizeof g->path + 64];
    snprintf(path, sizeof path, "%s%s/%s", g->root, g->path, file);
    read_text(path, text, text_bytes);
    return text;
}

/* ----------------------------------------------------------------------------------- processors */

/* Processors' worth of time at one level; false if it sets no limit. */
static bool level_quota(const group *g, double *cpus) {
    char text[128];
    uint64_t quota, period;
    if (g->v2) { /* "max 100000" or "150000 100000": microseconds of each period */
        const char *space = strchr(group_text(g, "cpu.max", text, sizeof text), ' ');
        if (!space || !leading_number(text, &quota) || !leading_number(space, &period))
            return false;
    } else if (!leading_number(group_text(g, "cpu.cfs_quota_us", text, sizeof text), &quota) ||
               !leading_number(group_text(g, "cpu.cfs_period_us", text, sizeof text), &period)) {
        return false;
    }
    if (quota == 0 || period == 0) return false;
    *cpus = (double)quota / (double)period;
    return true;
}

/* The least over all levels; 0 if none of them sets a limit. */
static double cpu_quota(void) {
    group g;
    double least = 0;
    if (!find_group("cpu", &g)) return 0;
    do {
        double cpus;
        if (level_quota(&g, &cpus) && (least == 0 || cpus < least)) least = cpus;
    } while (group_up(&g));
    return least;
}

/*
 * A quota of 1.5 makes 2 threads: two that are stopped a quarter of the time beat one. Affinity
 * that cannot be read (more processors than cpu_set_t has bits) counts as "all".
 */
void tg_os_cpus_get(tg_os_cpus *out) {
    const long online = sysconf(_SC_NPROCESSORS_ONLN);
    out->online = online > 0 ? (unsigned)online : 1;
    cpu_set_t set;
    out->affinity = out->online;
    if (sched_getaffinity(0, sizeof set, &set) == 0 && CPU_COUNT(&set) > 0)
        out->affinity = (unsigned)CPU_COUNT(&set);
    out->quota = cpu_quota();
    out->usable = out->affinity;
    if (out->quota > 0 && out->quota < out->affinity) {
        const unsigned whole = (unsigned)out->quota;
        out->usable = whole < out->quota || whole == 0 ? whole + 1 : whole;
    }
}

/* x86 has a "model name" for each processor, the first of which will do; ARM kernels have none. */
void tg_os_cpu_name(char *out, size_t out_bytes) {
    char text[4096];
    read_text("/proc/cpuinfo", text, sizeof text);
    const char *name = strstr(text, "model name");
    const char *colon = name ? strchr(name, ':') : NULL;
    size_t n = 0;
    if (colon) {
        name = colon + 1;
        while (*name == ' ') name++;
        while (name[n] && name[n] != '\n') n++;
    }
    if (n == 0) {
        name = "unknown";
        n = strlen(name);
    }
    snprintf(out, out_bytes, "%.*s", (int)n, name);
}

/* --------------------------------------------------------------------------------------- memory */

/* Limit and use of one level; false if it sets no limit. File pages that were not used lately are
 * given up by the kernel before anybody is refused memory, so they do not count. */
static bool level_memory(const group *g, uint64_t *limit, uint64_t *used) {
    char text[64], stat[4096]; /* of some 2 KB */
    const char *limit_file = g->v2 ? "memory.max" : "memory.limit_in_bytes";
    const char *used_file = g->v2 ? "memory.current" : "memory.usage_in_bytes";
    if (!leading_number(group_text(g, limit_file, text, sizeof text), limit)) return false;
    if (!leading_number(group_text(g, used_file, text, sizeof text), used)) *used = 0;
    uint64_t idle = 0;
    group_text(g, "memory.stat", stat, sizeof stat);
    if (number_after(stat, g->v2 ? "inactive_file " : "total_inactive_file ", &idle))
        *used -= idle < *used ? idle : *used;
    return true;
}

/* Limits beyond the memory of the machine are no limits. Room is asked at every level, since a
 * neighbour may have used up what a level above us grants to both. */
tg_status tg_os_memory_get(tg_ctx *ctx, tg_os_memory *out) {
    char text[512]; /* both are in the first three lines */
    uint64_t total_kib, available_kib;
    const int error = read_text("/proc/meminfo", text, sizeof text);
    if (error) return tg_posix_fail(ctx, "/proc/meminfo", "to read it", error);
    if (!number_after(text, "MemTotal:", &total_kib) ||
        !number_after(text, "MemAvailable:", &available_kib)) {
        return tg_fail(ctx, TG_E_IO, "/proc/meminfo: want MemTotal and MemAvailable, have neither");
    }
    *out =
        (tg_os_memory) { .total_bytes = total_kib * 1024, .available_bytes = available_kib * 1024 };
    const uint64_t machine_bytes = out->total_bytes;
    group g;
    if (!find_group("memory", &g)) return TG_OK;
    do {
        uint64_t limit, used;
        /* Version 1 writes "no limit" as a number near 2^63. */
        if (!level_memory(&g, &limit, &used) || limit >= machine_bytes) continue;
        const uint64_t room = limit > used ? limit - used : 0;
        if (out->limit_bytes == 0 || limit < out->limit_bytes) out->limit_bytes = limit;
        if (limit < out->total_bytes) out->total_bytes = limit;
        if (room < out->available_bytes) out->available_bytes = room;
    } while (group_up(&g));
    return TG_OK;
}

uint64_t tg_os_peak_rss_bytes(void) {
    struct rusage use;
    if (getrusage(RUSAGE_SELF, &use)) return 0;
    return (uint64_t)use.ru_maxrss * 1024; /* Linux counts in KiB */
}
