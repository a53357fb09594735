#pragma once

// The parts of libcurl 7.88 that Swift cannot import: curl_easy_setopt and curl_easy_getinfo are C variadic functions.
// Each wrapper takes one type of argument; the manual of libcurl states the type of each option.

#include <curl/curl.h>

static inline CURLcode curl_set_long(CURL *easy, CURLoption option, long value) {
    return curl_easy_setopt(easy, option, value);
}

static inline CURLcode curl_set_text(CURL *easy, CURLoption option, const char *value) {
    return curl_easy_setopt(easy, option, value);
}

// libcurl does not copy the list: the caller owns it and frees it after the handle.
static inline CURLcode curl_set_fields(CURL *easy, struct curl_slist *fields) {
    return curl_easy_setopt(easy, CURLOPT_HTTPHEADER, fields);
}

// Sets the function that takes the bytes of the body, and the last argument of that function.
static inline CURLcode curl_set_write(CURL *easy, curl_write_callback write, void *context) {
    CURLcode code = curl_easy_setopt(easy, CURLOPT_WRITEFUNCTION, write);
    return code == CURLE_OK ? curl_easy_setopt(easy, CURLOPT_WRITEDATA, context) : code;
}

// Returns the status of the newest response, or 0 before the first one.
static inline long curl_status(CURL *easy) {
    long status = 0;
    return curl_easy_getinfo(easy, CURLINFO_RESPONSE_CODE, &status) == CURLE_OK ? status : 0;
}
