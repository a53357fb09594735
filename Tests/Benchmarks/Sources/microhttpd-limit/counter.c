#include "limit.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

// The state is its version: every action adds one.
static uint64_t version;
static bool durable;
static bool is_ending;

// The answer to every GET of the present version; made when first asked for.
static struct MHD_Response *reading;
static uint64_t reading_version = UINT64_MAX;
static char reading_tag[32];

// The event of the present version, the same bytes for every stream.
static char event[256];
static size_t event_size;

struct stream {
    struct stream *previous, *next;
    struct MHD_Connection *connection;
    uint64_t told;
    bool is_suspended;
};

static struct request *parked;
static struct stream *streams;

void counter_start(bool is_durable) { durable = is_durable; }

// The fields that Storekeeper sends, too; NULL when there is no memory.
static struct MHD_Response *json(const char *text, size_t size, uint64_t at, const char *tag, const char *cache) {
    struct MHD_Response *response =
        MHD_create_response_from_buffer(size, (void *)text, MHD_RESPMEM_MUST_COPY);
    if (response == NULL) return NULL;
    char cursor[48];
    snprintf(cursor, sizeof cursor, "ueajdsi6oq5zowel.%llu", (unsigned long long)at);
    bool is_complete = MHD_add_response_header(response, "State-Cursor", cursor) == MHD_YES
        && MHD_add_response_header(response, "Cache-Control", cache) == MHD_YES
        && MHD_add_response_header(response, "Content-Type", "application/json") == MHD_YES
        && MHD_add_response_header(response, "X-Content-Type-Options", "nosniff") == MHD_YES
        && (tag == NULL || MHD_add_response_header(response, "ETag", tag) == MHD_YES);
    if (is_complete) return response;
    MHD_destroy_response(response);
    return NULL;
}

static void refresh_reading(void) {
    if (reading_version == version) return;
    if (reading != NULL) MHD_destroy_response(reading);
    char text[96];
    snprintf(reading_tag, sizeof reading_tag, "\"%026llu\"", (unsigned long long)version);
    int size = snprintf(
        text, sizeof text, "{\"value\":%llu,\"note\":\"as long as a small state is\"}",
        (unsigned long long)version);
    reading = json(text, (size_t)size, version, reading_tag, "private, no-cache");
    reading_version = version;
}

static enum MHD_Result answer(struct request *request, struct MHD_Response *response) {
    pass_moved = true;
    request->phase = QUEUED;
    return response == NULL ? MHD_NO : MHD_queue_response(request->connection, MHD_HTTP_OK, response);
}

static enum MHD_Result answer_reading(struct request *request) {
    refresh_reading();
    return answer(request, reading);
}

static enum MHD_Result answer_action(struct request *request, uint64_t at) {
    char text[96];
    int size = snprintf(
        text, sizeof text, "{\"cursor\":\"ueajdsi6oq5zowel.%llu\",\"version\":%llu,\"changed\":true}",
        (unsigned long long)at, (unsigned long long)at);
    struct MHD_Response *response = json(text, (size_t)size, at, NULL, "no-store");
    enum MHD_Result result = answer(request, response);
    if (response != NULL) MHD_destroy_response(response);
    return result;
}

// MARK: Those who wait

static void park(struct request *request) {
    request->phase = PARKED;
    request->previous = NULL;
    request->next = parked;
    if (parked != NULL) parked->previous = request;
    parked = request;
    MHD_suspend_connection(request->connection);
}

static void unpark(struct request *request) {
    if (request->previous != NULL) request->previous->next = request->next;
    else parked = request->next;
    if (request->next != NULL) request->next->previous = request->previous;
}

// One answer for all: each finds it when libmicrohttpd asks again, in the pass that follows.
static void wake_all(void) {
    while (parked != NULL) {
        struct request *request = parked;
        parked = request->next;
        if (parked != NULL) parked->previous = NULL;
        request->phase = WOKEN;
        pass_resumed = true;
        MHD_resume_connection(request->connection);
    }
    if (streams == NULL) return;
    int size = snprintf(
        event, sizeof event,
        "id: ueajdsi6oq5zowel.%llu\nevent: change\ndata: {\"version\":%llu,\"action\":{\"type\":\"counter/add\"},"
        "\"patch\":[{\"op\":\"replace\",\"path\":\"/counter/value\",\"value\":%llu}]}\n\n",
        (unsigned long long)version, (unsigned long long)version, (unsigned long long)version);
    event_size = (size_t)size;
    for (struct stream *stream = streams; stream != NULL; stream = stream->next) {
        if (!stream->is_suspended) continue;
        stream->is_suspended = false;
        pass_resumed = true;
        MHD_resume_connection(stream->connection);
    }
}

void counter_release_all(void) {
    is_ending = true;
    wake_all();
}

void counter_recorded(uint64_t at) {
    version = at;
    wake_all();
}

// MARK: Streams

static ssize_t read_stream(void *context, uint64_t position, char *buffer, size_t size) {
    (void)position;
    struct stream *stream = context;
    if (is_ending) return MHD_CONTENT_READER_END_OF_STREAM;
    if (stream->told == version || event_size == 0 || event_size > size) {
        // Returning 0 without suspending would spin.
        stream->is_suspended = true;
        MHD_suspend_connection(stream->connection);
        return 0;
    }
    pass_moved = true;
    stream->told = version;
    memcpy(buffer, event, event_size);
    return (ssize_t)event_size;
}

static void free_stream(void *context) {
    struct stream *stream = context;
    if (stream->previous != NULL) stream->previous->next = stream->next;
    else streams = stream->next;
    if (stream->next != NULL) stream->next->previous = stream->previous;
    free(stream);
}

static enum MHD_Result answer_stream(struct request *request) {
    struct stream *stream = calloc(1, sizeof *stream);
    if (stream == NULL) return MHD_NO;
    stream->connection = request->connection;
    stream->told = version;
    struct MHD_Response *response =
        MHD_create_response_from_callback(MHD_SIZE_UNKNOWN, 512, read_stream, stream, free_stream);
    if (response == NULL) {
        free(stream);
        return MHD_NO;
    }
    stream->next = streams;
    if (streams != NULL) streams->previous = stream;
    streams = stream;
    MHD_add_response_header(response, "Content-Type", "text/event-stream");
    MHD_add_response_header(response, "Cache-Control", "no-store");
    MHD_add_response_header(response, "X-Content-Type-Options", "nosniff");
    enum MHD_Result result = answer(request, response);
    MHD_destroy_response(response);
    return result;
}

// MARK: Requests

static enum MHD_Result get(struct request *request) {
    struct MHD_Connection *connection = request->connection;
    const char *accept = MHD_lookup_connection_value(connection, MHD_HEADER_KIND, "Accept");
    if (accept != NULL && strcmp(accept, "text/event-stream") == 0) return answer_stream(request);
    const char *tag = MHD_lookup_connection_value(connection, MHD_HEADER_KIND, "If-None-Match");
    if (tag != NULL && MHD_lookup_connection_value(connection, MHD_GET_ARGUMENT_KIND, "wait") != NULL) {
        refresh_reading();
        if (!is_ending && strcmp(tag, reading_tag) == 0) {
            pass_moved = true;
            park(request);
            return MHD_YES;
        }
    }
    return answer_reading(request);
}

static enum MHD_Result post(struct request *request) {
    if (durable) {
        if (!recorder_take(request)) return MHD_NO;
        pass_moved = true;
        held_count++;
        request->phase = HELD;
        return MHD_YES;
    }
    version++;
    enum MHD_Result result = answer_action(request, version);
    if (parked != NULL || streams != NULL) wake_all();
    return result;
}

enum MHD_Result counter_handle(
    void *context, struct MHD_Connection *connection, const char *url, const char *method, const char *http_version,
    const char *upload, size_t *upload_size, void **place) {
    (void)context;
    (void)http_version;
    struct request *request = *place;
    if (request == NULL) {
        // The head. Answering here would close the connection afterwards.
        pass_moved = true;
        bool is_post = strcmp(method, "POST") == 0;
        if (strcmp(url, is_post ? "/v1/actions" : "/v1/state/counter") != 0) return MHD_NO;
        request = malloc(sizeof *request + (is_post ? ACTION_BYTES_MAX : 0));
        if (request == NULL) return MHD_NO;
        request->connection = connection;
        request->phase = RECEIVING;
        request->is_post = is_post;
        request->action_size = 0;
        *place = request;
        return MHD_YES;
    }
    switch (request->phase) {
    case RECEIVING:
        if (*upload_size == 0) return request->is_post ? post(request) : get(request);
        if (!request->is_post || request->action_size + *upload_size > ACTION_BYTES_MAX) return MHD_NO;
        memcpy(request->action + request->action_size, upload, *upload_size);
        request->action_size += (uint32_t)*upload_size;
        *upload_size = 0;
        pass_moved = true;
        return MHD_YES;
    case HELD:
        // Without an answer and without a suspension libmicrohttpd asks again in the next pass: four system calls
        // and a walk over all suspended connections cheaper than suspending.
        return MHD_YES;
    case RECORDED:
        return answer_action(request, request->version);
    case WOKEN:
        return answer_reading(request);
    case PARKED:
    case QUEUED:
        return MHD_NO;
    }
    return MHD_NO;
}

void counter_completed(
    void *context, struct MHD_Connection *connection, void **place, enum MHD_RequestTerminationCode code) {
    (void)context;
    (void)connection;
    (void)code;
    struct request *request = *place;
    if (request == NULL) return;
    pass_moved = true;
    if (request->phase == PARKED) unpark(request);
    if (request->phase == HELD) {
        held_count--;
        recorder_forget(request);
    }
    free(request);
    *place = NULL;
}
