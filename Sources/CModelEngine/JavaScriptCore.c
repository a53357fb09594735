// For setenv, and for MAP_ANONYMOUS.
#define _GNU_SOURCE

#include "JavaScriptCore.h"

#include <dlfcn.h>
#include <fcntl.h>
#include <pthread.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/mman.h>
#include <sys/resource.h>
#include <sys/wait.h>
#include <unistd.h>

#define JAVASCRIPTCORE_DEFINE(result, name, parameters) result(*name) parameters;
JAVASCRIPTCORE_FUNCTIONS(JAVASCRIPTCORE_DEFINE)

static const char *fault = NULL;
static pthread_once_t once = PTHREAD_ONCE_INIT;

static void find_library(void) {
    static const char *const names[] = {
        "libjavascriptcoregtk-4.1.so.0", "libjavascriptcoregtk-6.0.so.1", "libjavascriptcoregtk-4.0.so.18",
    };
    // Compiled code asks at each loop whether its time is up. Otherwise the engine interrupts it by a signal, and some loops, such
    // as one with `finally { continue }` in it, run on. The library reads this when it starts.
    setenv("JSC_usePollingTraps", "1", 0);
    void *library = NULL;
    for (size_t index = 0; library == NULL && index < sizeof names / sizeof *names; index += 1)
        // Its symbols stay its own: nothing of it takes the place of a function of this program.
        library = dlopen(names[index], RTLD_NOW | RTLD_LOCAL);
    if (library == NULL) {
        fault = "a model needs JavaScriptCore: apt-get install libjavascriptcoregtk-4.1-0";
        return;
    }
#define JAVASCRIPTCORE_FIND(result, name, parameters) \
    if ((*(void **)&name = dlsym(library, #name)) == NULL) fault = "this JavaScriptCore has no " #name;
    JAVASCRIPTCORE_FUNCTIONS(JAVASCRIPTCORE_FIND)
}

/// Starts as many engines as a server has, beside what else it may need, and ends the process.
_Noreturn static void try_engines(void) {
    static const int signals[] = {SIGABRT, SIGBUS, SIGILL, SIGSEGV, SIGTRAP};
    for (size_t index = 0; index < sizeof signals / sizeof *signals; index += 1) signal(signals[index], SIG_DFL);
    setrlimit(RLIMIT_CORE, &(struct rlimit){0, 0});
    dup2(open("/dev/null", O_WRONLY), STDERR_FILENO);
    if (mmap(NULL, (size_t)1 << 29, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0) == MAP_FAILED) _exit(1);
    find_library();
    for (int count = 0; fault == NULL && count < 4; count += 1) JSGlobalContextCreateInGroup(JSContextGroupCreate(), NULL);
    _exit(0);
}

/// Whether engines start within the limits of this process. The engine ends the process where it gets no memory, so another
/// process tries it.
static bool engines_start(void) {
    pid_t child = fork();
    if (child == 0) try_engines();
    int status = 0;
    return child > 0 && waitpid(child, &status, 0) == child && WIFEXITED(status) && WEXITSTATUS(status) == 0;
}

static void open_library(void) {
    static const struct {
        int resource;
        const char *name;
    } limits[] = {{RLIMIT_AS, "ulimit -v"}, {RLIMIT_DATA, "ulimit -d"}};
    static char sentence[400];
    for (size_t index = 0; index < sizeof limits / sizeof *limits; index += 1) {
        struct rlimit limit;
        if (getrlimit(limits[index].resource, &limit) != 0 || limit.rlim_cur == RLIM_INFINITY || engines_start()) continue;
        snprintf(
            sentence, sizeof sentence,
            "a model's engine does not start within `%s %llu` of this process: it reserves several gigabytes of addresses, of which "
            "it uses little; take this limit away, and bound the memory of a container or a service instead",
            limits[index].name, (unsigned long long)limit.rlim_cur / 1024);
        fault = sentence;
        return;
    }
    find_library();
}

const char *javascriptcore_open(void) {
    pthread_once(&once, open_library);
    return fault;
}
