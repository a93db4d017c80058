#pragma once
#include <curl/curl.h>

// curl_easy_setopt and curl_easy_getinfo are variadic and not imported by Swift: one inline wrapper per argument type.

static inline CURLcode thicket_curl_set_long(CURL *handle, CURLoption option, long value) {
    return curl_easy_setopt(handle, option, value);
}
static inline CURLcode thicket_curl_set_offset(CURL *handle, CURLoption option, curl_off_t value) {
    return curl_easy_setopt(handle, option, value);
}
static inline CURLcode thicket_curl_set_string(CURL *handle, CURLoption option, const char *value) {
    return curl_easy_setopt(handle, option, value);
}
static inline CURLcode thicket_curl_set_pointer(CURL *handle, CURLoption option, void *value) {
    return curl_easy_setopt(handle, option, value);
}
static inline CURLcode thicket_curl_set_list(CURL *handle, CURLoption option, struct curl_slist *value) {
    return curl_easy_setopt(handle, option, value);
}
typedef size_t (*thicket_curl_write)(char *bytes, size_t size, size_t count, void *context);
static inline CURLcode thicket_curl_set_write(CURL *handle, CURLoption option, thicket_curl_write value) {
    return curl_easy_setopt(handle, option, value);
}
typedef int (*thicket_curl_progress)(
    void *context, curl_off_t download, curl_off_t downloaded, curl_off_t upload, curl_off_t uploaded);
static inline CURLcode thicket_curl_set_progress(CURL *handle, CURLoption option, thicket_curl_progress value) {
    return curl_easy_setopt(handle, option, value);
}
static inline CURLcode thicket_curl_get_long(CURL *handle, CURLINFO info, long *value) {
    return curl_easy_getinfo(handle, info, value);
}
static inline CURLcode thicket_curl_get_socket(CURL *handle, curl_socket_t *value) {
    return curl_easy_getinfo(handle, CURLINFO_ACTIVESOCKET, value);
}
// The result of a message is a member of a union.
static inline CURLcode thicket_curl_result(const CURLMsg *message) { return message->data.result; }
