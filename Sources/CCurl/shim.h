#pragma once

// libcurl 7.88 or newer, opened at run time: a server that fetches nothing needs neither it nor its thirty libraries. Swift
// cannot import curl_easy_setopt and curl_easy_getinfo, which are C variadic functions: each wrapper takes one type of
// argument, and the manual of libcurl states the type of each option.

#include <curl/curl.h>
#include <dlfcn.h>

// Calls `each` with the name of each function in use, without its `curl_`.
#define CURL_FUNCTIONS(each) \
    each(global_init) each(slist_append) each(slist_free_all) \
    each(easy_init) each(easy_setopt) each(easy_getinfo) each(easy_strerror) each(easy_reset) each(easy_cleanup) \
    each(multi_init) each(multi_add_handle) each(multi_perform) each(multi_poll) each(multi_wakeup) \
    each(multi_info_read) each(multi_remove_handle) each(multi_strerror) each(multi_cleanup)

// The functions of an open libcurl, which any thread may call; the headers of libcurl have their types.
struct __attribute__((swift_attr("@Sendable"))) Curl {
#define CURL_MEMBER(name) __typeof__(&curl_##name) _Nonnull name;
    CURL_FUNCTIONS(CURL_MEMBER)
#undef CURL_MEMBER
};

// Finds libcurl and its functions. Returns NULL, and says in `fault` what the loader of the system says, where one is missing.
static inline const struct Curl *_Nullable curl_open(const char *_Nullable *_Nonnull fault) {
    static struct Curl curl;
    void *library = dlopen("libcurl.so.4", RTLD_NOW | RTLD_LOCAL);
#define CURL_FIND(name) \
    if (library != NULL) { \
        *(void **)&curl.name = dlsym(library, "curl_" #name); \
        if (curl.name == NULL) library = NULL; \
    }
    CURL_FUNCTIONS(CURL_FIND)
#undef CURL_FIND
    if (library == NULL) *fault = dlerror();
    return library == NULL ? NULL : &curl;
}

static inline CURLcode curl_set_long(struct Curl curl, CURL *easy, CURLoption option, long value) {
    return curl.easy_setopt(easy, option, value);
}

static inline CURLcode curl_set_text(struct Curl curl, CURL *easy, CURLoption option, const char *value) {
    return curl.easy_setopt(easy, option, value);
}

// libcurl copies the bytes.
static inline CURLcode curl_set_body(struct Curl curl, CURL *easy, const void *bytes, long count) {
    CURLcode code = curl.easy_setopt(easy, CURLOPT_POSTFIELDSIZE_LARGE, (curl_off_t)count);
    return code == CURLE_OK ? curl.easy_setopt(easy, CURLOPT_COPYPOSTFIELDS, bytes) : code;
}

// libcurl does not copy the list: the caller owns it and frees it after the handle.
static inline CURLcode curl_set_fields(struct Curl curl, CURL *easy, struct curl_slist *fields) {
    return curl.easy_setopt(easy, CURLOPT_HTTPHEADER, fields);
}

// Sets the function that takes the bytes of the body, and the last argument of that function.
static inline CURLcode curl_set_write(struct Curl curl, CURL *easy, curl_write_callback write, void *context) {
    CURLcode code = curl.easy_setopt(easy, CURLOPT_WRITEFUNCTION, write);
    return code == CURLE_OK ? curl.easy_setopt(easy, CURLOPT_WRITEDATA, context) : code;
}

// Sets the function that takes the lines of the head, and the last argument of that function.
static inline CURLcode curl_set_head(struct Curl curl, CURL *easy, curl_write_callback take, void *context) {
    CURLcode code = curl.easy_setopt(easy, CURLOPT_HEADERFUNCTION, take);
    return code == CURLE_OK ? curl.easy_setopt(easy, CURLOPT_HEADERDATA, context) : code;
}

// Sets the function that is asked before a request goes out on a connection, and the first argument of that function.
static inline CURLcode curl_set_ask(struct Curl curl, CURL *easy, curl_prereq_callback ask, void *context) {
    CURLcode code = curl.easy_setopt(easy, CURLOPT_PREREQFUNCTION, ask);
    return code == CURLE_OK ? curl.easy_setopt(easy, CURLOPT_PREREQDATA, context) : code;
}

// Returns the seconds that a field Retry-After asks for, whether it has them or a date; 0 without one.
static inline long curl_retry_after(struct Curl curl, CURL *easy) {
    curl_off_t seconds = 0;
    return curl.easy_getinfo(easy, CURLINFO_RETRY_AFTER, &seconds) == CURLE_OK ? seconds : 0;
}

// Returns the status of the newest response, or 0 before the first one.
static inline long curl_status(struct Curl curl, CURL *easy) {
    long status = 0;
    return curl.easy_getinfo(easy, CURLINFO_RESPONSE_CODE, &status) == CURLE_OK ? status : 0;
}
