// For clocks and pthread_getcpuclockid.
#define _GNU_SOURCE

#include "CModelEngine.h"

#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "JavaScriptCore.h"
#include "prelude.h"
#include "watchdog.h"

// The functions of the prelude, by their names in `engine.js`.
#define PRELUDE_FUNCTIONS(_) \
    _(prepare) _(plain) _(script) _(syntaxFault) _(load) _(reduce) _(view) _(migrate) _(setState) _(state) _(follow) \
    _(abandon) _(fault)

struct Model {
    JSGroup group;
    JSContext context;
    // What the prelude does now: see `Phase`.
    unsigned char phase;
    double seconds;
    size_t bytesMax;
    // How often the time limit may still pass before the call ends.
    int allowance;
    bool hasTimedOut;
    Watched watched;
    char *description;
    size_t descriptionLength;
    char *answer;
    size_t answerSize;
    // The bytes of the answers since the garbage was last collected.
    size_t answered;
#define PRELUDE_MEMBER(name) JSValue name;
    PRELUDE_FUNCTIONS(PRELUDE_MEMBER)
};

enum { ALLOWANCE_OF_VIEWS = 9, ALLOWANCE_OF_LOADING = 99 };

/// A large answer is rare, so its buffer is not kept for small ones.
enum { KEPT_ANSWER_BYTES = 1 << 20, GARBAGE_BYTES = 4 << 20 };

const char *model_engine_open(void) { return javascriptcore_open(); }

/// The engine asks this in the thread of the call when the time is up. After a no it asks again only where the limit is set
/// anew.
static bool should_terminate(JSContext context, void *data) {
    (void)context;
    Model *model = data;
    if (model->phase == PHASE_OF_SETTLING || model->allowance-- > 0) {
        JSContextGroupSetExecutionTimeLimit(model->group, model->seconds, should_terminate, model);
        return false;
    }
    model->hasTimedOut = true;
    return true;
}

/// A string of the engine. It takes texts that end with a zero byte, so short ones are copied to the stack.
static JSValue make_string(Model *model, ModelText text) {
    char small[2048];
    char *copy = text.length < sizeof small ? small : malloc(text.length + 1);
    if (copy == NULL) abort();
    memcpy(copy, text.bytes, text.length);
    copy[text.length] = 0;
    JSText string = JSStringCreateWithUTF8CString(copy);
    if (copy != small) free(copy);
    JSValue value = JSValueMakeString(model->context, string);
    JSStringRelease(string);
    return value;
}

static JSText literal(const char *text) { return JSStringCreateWithUTF8CString(text); }

static ModelText constant(const char *text) { return (ModelText){text, strlen(text)}; }

static const char *const out_of_memory = "{\"fault\":{\"message\":\"the engine is out of memory\",\"engine\":true}}";
static const char *const too_large = "{\"fault\":{\"message\":\"the model makes too much at once\",\"size\":true}}";

/// The bytes of a value that is a text, in the model's buffer.
static ModelText take_text(Model *model, JSValue value, size_t bytesMax) {
    JSText string = JSValueToStringCopy(model->context, value, NULL);
    if (string == NULL) return constant(out_of_memory);
    if (JSStringGetLength(string) > bytesMax) {
        JSStringRelease(string);
        return constant(too_large);
    }
    size_t size = JSStringGetMaximumUTF8CStringSize(string);
    if (size > model->answerSize) {
        free(model->answer);
        model->answerSize = size < 4096 ? 4096 : size;
        model->answer = malloc(model->answerSize);
        if (model->answer == NULL) model->answerSize = 0;
    }
    size_t length = model->answer == NULL ? 0 : JSStringGetUTF8CString(string, model->answer, model->answerSize);
    JSStringRelease(string);
    model->answered += length;
    if (length == 0) return constant(out_of_memory);
    return length - 1 > bytesMax ? constant(too_large) : (ModelText){model->answer, length - 1};
}

/// Calls a function of the prelude. Those throw nothing, so an exception is the end of the time, of the stack or of the memory.
static ModelText call(Model *model, JSValue function, size_t count, const JSValue values[], int allowance) {
    JSValue exception = NULL;
    // The answers to the calls of clients are bounded, and those for the operator are not.
    bool isBounded = function == model->reduce || function == model->view;
    // The watchdog reads it on its own thread.
    __atomic_store_n(&model->phase, 0, __ATOMIC_RELAXED);
    model->allowance = allowance;
    model->hasTimedOut = false;
    watchdog_begin(&model->watched, model->seconds * (allowance + 1) * 10);
    JSValue result = JSObjectCallAsFunction(model->context, function, NULL, count, values, &exception);
    watchdog_end(&model->watched);
    if (result != NULL && exception == NULL) return take_text(model, result, isBounded ? model->bytesMax : SIZE_MAX);
    bool hasTimedOut = model->hasTimedOut;
    model->allowance = ALLOWANCE_OF_LOADING;
    JSObjectCallAsFunction(model->context, model->abandon, NULL, 0, NULL, NULL);
    if (hasTimedOut) return constant("{\"fault\":{\"message\":\"the time limit of the model is over\",\"timeout\":true}}");
    JSValue described = JSObjectCallAsFunction(model->context, model->fault, NULL, 1, &exception, NULL);
    if (described == NULL) return constant("{\"fault\":{\"message\":\"the engine failed\",\"engine\":true}}");
    return take_text(model, described, SIZE_MAX);
}

/// Evaluates the prelude, and finds its functions.
static bool make_prelude(Model *model) {
    char *text = model_prelude();
    if (text == NULL) return false;
    JSText script = literal(text), url = literal("storekeeper");
    free(text);
    JSValue function = JSEvaluateScript(model->context, script, NULL, url, 1, NULL);
    JSStringRelease(script);
    JSStringRelease(url);
    if (function == NULL) return false;
    JSValue phase = JSObjectMakeTypedArrayWithBytesNoCopy(model->context, JSTypedArrayUint8, &model->phase, 1, NULL, NULL, NULL);
    JSValue functions = JSObjectCallAsFunction(model->context, function, NULL, 1, &phase, NULL);
    if (functions == NULL) return false;
    // The object keeps its functions.
    JSValueProtect(model->context, functions);
    JSText name;
#define PRELUDE_FIND(member) \
    name = literal(#member); \
    model->member = JSObjectGetProperty(model->context, functions, name, NULL); \
    JSStringRelease(name);
    PRELUDE_FUNCTIONS(PRELUDE_FIND)
    return true;
}

/// The string that a function of the prelude returns.
static JSText text_of(Model *model, JSValue function) {
    return JSValueToStringCopy(model->context, JSObjectCallAsFunction(model->context, function, NULL, 0, NULL, NULL), NULL);
}

/// Loads the file; the answer is the description, or a fault.
static ModelText load(Model *model, ModelText source, const char *name) {
    JSValue arguments[] = {
        make_string(model, source), make_string(model, constant(name)),
        JSValueMakeNumber(model->context, (double)model->bytesMax),
    };
    ModelText prepared = call(model, model->prepare, 3, arguments, ALLOWANCE_OF_LOADING);
    if (strcmp(prepared.bytes, "{}") != 0) return prepared;
    JSText plain = text_of(model, model->plain), script = text_of(model, model->script), url = literal(name);
    JSValue function = NULL, exception = NULL;
    // The file alone first: in the function around it, a bracket too many would be a fault behind the file's end.
    if (JSCheckScriptSyntax(model->context, plain, url, 1, &exception))
        function = JSEvaluateScript(model->context, script, NULL, url, 1, &exception);
    JSStringRelease(plain);
    JSStringRelease(script);
    JSStringRelease(url);
    if (function == NULL) return call(model, model->syntaxFault, 1, &exception, ALLOWANCE_OF_LOADING);
    return call(model, model->load, 1, &function, ALLOWANCE_OF_LOADING);
}

Model *model_make(ModelText source, const char *name, double seconds, size_t bytes_max) {
    Model *model = calloc(1, sizeof *model);
    if (model == NULL) return NULL;
    model->seconds = seconds;
    model->bytesMax = bytes_max;
    model->allowance = ALLOWANCE_OF_LOADING;
    watchdog_add(&model->watched, &model->phase);
    model->group = JSContextGroupCreate();
    JSContextGroupSetExecutionTimeLimit(model->group, seconds, should_terminate, model);
    model->context = JSGlobalContextCreateInGroup(model->group, NULL);
    JSText message = literal("a model has no eval and no Function");
    JSGlobalContextSetEvalEnabled(model->context, false, message);
    JSStringRelease(message);
    ModelText found = constant("{\"fault\":{\"message\":\"the engine does not start\"}}");
    if (make_prelude(model)) found = load(model, source, name);
    model->description = malloc(found.length + 1);
    if (model->description == NULL) {
        model_free(model);
        return NULL;
    }
    memcpy(model->description, found.bytes, found.length);
    model->description[found.length] = 0;
    model->descriptionLength = found.length;
    return model;
}

ModelText model_description(const Model *model) { return (ModelText){model->description, model->descriptionLength}; }

ModelText model_load(Model *model, ModelText state) {
    JSValue arguments[] = {make_string(model, state)};
    return call(model, model->setState, 1, arguments, ALLOWANCE_OF_LOADING);
}

ModelText model_reduce(Model *model, ModelText type, ModelText action) {
    JSValue arguments[] = {make_string(model, action)};
    watchdog_name(&model->watched, type);
    return call(model, model->reduce, 1, arguments, 0);
}

ModelText model_apply(Model *model, ModelText patch) {
    JSValue arguments[] = {make_string(model, patch)};
    return call(model, model->follow, 1, arguments, ALLOWANCE_OF_LOADING);
}

ModelText model_view(Model *model, ModelText name, ModelText context) {
    JSValue arguments[] = {make_string(model, name), make_string(model, context)};
    watchdog_name(&model->watched, name);
    return call(model, model->view, 2, arguments, ALLOWANCE_OF_VIEWS);
}

ModelText model_migrate(Model *model, ModelText state, double version) {
    JSValue arguments[] = {make_string(model, state), JSValueMakeNumber(model->context, version)};
    return call(model, model->migrate, 2, arguments, ALLOWANCE_OF_LOADING);
}

ModelText model_state(Model *model) { return call(model, model->state, 0, NULL, ALLOWANCE_OF_LOADING); }

size_t model_bytes(Model *model) {
    static const char *const members[] = {"heapSize", "extraMemorySize"};
    JSValue statistics = JSGetMemoryUsageStatistics(model->context);
    double bytes = 0;
    for (size_t index = 0; index < sizeof members / sizeof *members; index += 1) {
        JSText name = literal(members[index]);
        double number = JSValueToNumber(model->context, JSObjectGetProperty(model->context, statistics, name, NULL), NULL);
        if (number > 0) bytes += number;
        JSStringRelease(name);
    }
    return (size_t)bytes;
}

size_t model_process_bytes(void) {
    FILE *file = fopen("/proc/self/statm", "r");
    if (file == NULL) return 0;
    unsigned long pages = 0;
    if (fscanf(file, "%*u %lu", &pages) != 1) pages = 0;
    fclose(file);
    return pages * (size_t)sysconf(_SC_PAGESIZE);
}

void model_collect(Model *model) {
    model->answered = 0;
    // JSGarbageCollect asks a timer for it, which no thread of ours runs.
    JSSynchronousGarbageCollectForDebugging(model->context);
}

void model_answered(Model *model) {
    if (model->answerSize > KEPT_ANSWER_BYTES) {
        free(model->answer);
        model->answer = NULL;
        model->answerSize = 0;
    }
    // Left alone, the engine collects when its garbage is tens of megabytes, more the more memory the machine has.
    if (model->answered > GARBAGE_BYTES) model_collect(model);
}

void model_free(Model *model) {
    watchdog_remove(&model->watched);
    JSGlobalContextRelease(model->context);
    JSContextGroupRelease(model->group);
    free(model->description);
    free(model->answer);
    free(model);
}
