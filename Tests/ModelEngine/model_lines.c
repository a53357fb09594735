// Drives the model engine by lines: each line on standard input is a call, each on standard output its answer.
//
//     model_lines FILE [SECONDS [BYTES]]      prints the description
//
// A line is a word and what it takes, with tabs between: `reduce TYPE ACTION`, `load STATE`, `apply PATCH`,
// `view NAME`, `migrate STATE VERSION`, `state`, `bytes`, `collect`.
// `time COUNT TYPE ACTION` reduces so often, keeps each change, and answers with microseconds of CPU time for each.

// For getline and strsep.
#define _GNU_SOURCE

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "CModelEngine.h"

static ModelText text(const char *bytes) { return (ModelText){bytes, strlen(bytes)}; }

static void print(ModelText answer) {
    fwrite(answer.bytes, 1, answer.length, stdout);
    fputc('\n', stdout);
    fflush(stdout);
}

static char *read_file(const char *path, size_t *length) {
    FILE *file = fopen(path, "rb");
    if (file == NULL) return NULL;
    char *bytes = malloc(1 << 22);
    *length = fread(bytes, 1, 1 << 22, file);
    fclose(file);
    return bytes;
}

static double cpu_microseconds(void) {
    struct timespec time;
    clock_gettime(CLOCK_PROCESS_CPUTIME_ID, &time);
    return (double)time.tv_sec * 1e6 + (double)time.tv_nsec / 1e3;
}

static double time_reductions(Model *model, int count, ModelText type, ModelText action) {
    double begun = cpu_microseconds();
    for (int index = 0; index < count; index += 1) {
        ModelText answer = model_reduce(model, type, action);
        if (strncmp(answer.bytes, "{\"patch\"", 8) != 0) {
            print(answer);
            exit(1);
        }
    }
    return (cpu_microseconds() - begun) / count;
}

int main(int count, char **arguments) {
    const char *missing = model_engine_open();
    size_t length = 0;
    char *source = count > 1 ? read_file(arguments[1], &length) : NULL;
    if (missing != NULL || source == NULL) {
        fprintf(stderr, "%s\n", missing ? missing : "model_lines FILE [SECONDS [BYTES]]");
        return 1;
    }
    const char *name = strrchr(arguments[1], '/');
    double seconds = count > 2 ? atof(arguments[2]) : 0.05;
    size_t bytes_max = count > 3 ? strtoul(arguments[3], NULL, 10) : 1 << 26;
    Model *model = model_make((ModelText){source, length}, name ? name + 1 : arguments[1], seconds, bytes_max);
    print(model_description(model));
    char *line = NULL;
    size_t size = 0;
    while (getline(&line, &size, stdin) > 0) {
        char *fields[4] = {"", "", "", ""}, *rest = line;
        line[strcspn(line, "\n")] = 0;
        for (int index = 0; index < 4 && rest != NULL; index += 1) fields[index] = strsep(&rest, "\t");
        const char *word = fields[0];
        char figure[64];
        if (strcmp(word, "reduce") == 0) print(model_reduce(model, text(fields[1]), text(fields[2])));
        else if (strcmp(word, "load") == 0) print(model_load(model, text(fields[1])));
        else if (strcmp(word, "apply") == 0) print(model_apply(model, text(fields[1])));
        else if (strcmp(word, "view") == 0) print(model_view(model, text(fields[1]), text(*fields[2] ? fields[2] : "{}")));
        else if (strcmp(word, "migrate") == 0) print(model_migrate(model, text(fields[1]), atof(fields[2])));
        else if (strcmp(word, "state") == 0) print(model_state(model));
        else if (strcmp(word, "collect") == 0) model_collect(model), print(text("{}"));
        else if (strcmp(word, "bytes") == 0) snprintf(figure, sizeof figure, "%zu", model_bytes(model)), print(text(figure));
        else if (strcmp(word, "time") == 0) {
            double each = time_reductions(model, atoi(fields[1]), text(fields[2]), text(fields[3]));
            snprintf(figure, sizeof figure, "%.2f", each);
            print(text(figure));
        } else return 2;
    }
    model_free(model);
    free(source);
    free(line);
    return 0;
}
