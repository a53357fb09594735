#ifndef STOREKEEPER_JAVASCRIPTCORE_H
#define STOREKEEPER_JAVASCRIPTCORE_H

#include <stdbool.h>
#include <stddef.h>

// The functions of JavaScriptCore's C API that the engine calls, as its headers declare them. The headers are not needed,
// because the library is opened at run time; some of these are exported without being in an installed header.

typedef const void *JSGroup;
typedef const void *JSContext;
typedef const void *JSValue;
typedef const void *JSText;
typedef bool (*JSShouldTerminate)(JSContext context, void *data);
typedef void (*JSBytesDeallocator)(void *bytes, void *data);

#define JAVASCRIPTCORE_FUNCTIONS(_) \
    _(JSGroup, JSContextGroupCreate, (void)) \
    _(void, JSContextGroupRelease, (JSGroup group)) \
    _(void, JSContextGroupSetExecutionTimeLimit, (JSGroup group, double seconds, JSShouldTerminate callback, void *data)) \
    _(JSContext, JSGlobalContextCreateInGroup, (JSGroup group, void *globalClass)) \
    _(void, JSGlobalContextRelease, (JSContext context)) \
    _(void, JSGlobalContextSetEvalEnabled, (JSContext context, bool isEnabled, JSText message)) \
    _(bool, JSCheckScriptSyntax, (JSContext context, JSText script, JSText url, int line, JSValue *exception)) \
    _(JSValue, JSEvaluateScript, (JSContext context, JSText script, JSValue this, JSText url, int line, JSValue *exception)) \
    _(JSValue, JSObjectCallAsFunction, \
      (JSContext context, JSValue function, JSValue this, size_t count, const JSValue values[], JSValue *exception)) \
    _(JSValue, JSObjectGetProperty, (JSContext context, JSValue object, JSText name, JSValue *exception)) \
    _(JSValue, JSObjectMakeTypedArrayWithBytesNoCopy, \
      (JSContext context, int type, void *bytes, size_t length, JSBytesDeallocator deallocator, void *data, JSValue *exception)) \
    _(JSValue, JSValueMakeString, (JSContext context, JSText text)) \
    _(JSValue, JSValueMakeNumber, (JSContext context, double number)) \
    _(double, JSValueToNumber, (JSContext context, JSValue value, JSValue *exception)) \
    _(JSText, JSValueToStringCopy, (JSContext context, JSValue value, JSValue *exception)) \
    _(void, JSValueProtect, (JSContext context, JSValue value)) \
    _(JSText, JSStringCreateWithUTF8CString, (const char *text)) \
    _(size_t, JSStringGetLength, (JSText text)) \
    _(size_t, JSStringGetMaximumUTF8CStringSize, (JSText text)) \
    _(size_t, JSStringGetUTF8CString, (JSText text, char *buffer, size_t size)) \
    _(void, JSStringRelease, (JSText text)) \
    _(void, JSSynchronousGarbageCollectForDebugging, (JSContext context)) \
    _(JSValue, JSGetMemoryUsageStatistics, (JSContext context))

#define JAVASCRIPTCORE_DECLARE(result, name, parameters) extern result(*name) parameters;
JAVASCRIPTCORE_FUNCTIONS(JAVASCRIPTCORE_DECLARE)

enum { JSTypedArrayUint8 = 3 };

/// Opens the library; NULL, or a sentence. The first call sets an environment variable, so it is made while no other thread
/// reads those.
const char *javascriptcore_open(void);

#endif
