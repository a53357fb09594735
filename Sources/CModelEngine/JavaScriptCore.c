// For setenv.
#define _POSIX_C_SOURCE 200809L

#include "JavaScriptCore.h"

#include <dlfcn.h>
#include <pthread.h>
#include <stdlib.h>

#define JAVASCRIPTCORE_DEFINE(result, name, parameters) result(*name) parameters;
JAVASCRIPTCORE_FUNCTIONS(JAVASCRIPTCORE_DEFINE)

static const char *fault = NULL;
static pthread_once_t once = PTHREAD_ONCE_INIT;

static void open_library(void) {
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

const char *javascriptcore_open(void) {
    pthread_once(&once, open_library);
    return fault;
}
