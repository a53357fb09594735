#pragma once

// What Swift cannot import of libcurl 7.88: curl_easy_setopt and curl_easy_getinfo are C variadic functions. Each
// wrapper is for one type of argument; libcurl's manual says of each option which type it takes.

#include <curl/curl.h>

static inline CURLcode curl_set_long(CURL *easy, CURLoption option, long value) {
    return curl_easy_setopt(easy, option, value);
}

static inline CURLcode curl_set_text(CURL *easy, CURLoption option, const char *value) {
    return curl_easy_setopt(easy, option, value);
}

// libcurl does not copy the list: it stays with the caller, who frees it after the handle.
static inline CURLcode curl_set_fields(CURL *easy, struct curl_slist *fields) {
    return curl_easy_setopt(easy, CURLOPT_HTTPHEADER, fields);
}

// Where the bytes of a body go: a function and the pointer that is its last argument.
static inline CURLcode curl_set_write(CURL *easy, curl_write_callback write, void *context) {
    CURLcode code = curl_easy_setopt(easy, CURLOPT_WRITEFUNCTION, write);
    return code == CURLE_OK ? curl_easy_setopt(easy, CURLOPT_WRITEDATA, context) : code;
}

// The status of the newest response, 0 before there is one.
static inline long curl_status(CURL *easy) {
    long status = 0;
    return curl_easy_getinfo(easy, CURLINFO_RESPONSE_CODE, &status) == CURLE_OK ? status : 0;
}
