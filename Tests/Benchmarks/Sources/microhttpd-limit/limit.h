#pragma once

// The yardstick: the same conversations as Storekeeper's, with the least honest work behind them.
//
// main.c     the options, the daemon and the event loop
// counter.c  the requests: read, count, wait, follow
// recorder.c the disk: batches of actions, one transaction and one sync each, on a thread of its own
//
// Everything but the recorder's thread runs on the one loop thread, so nothing here is locked.

#include <microhttpd.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

enum { ACTION_BYTES_MAX = 480, BATCH_ACTIONS_MAX = 20000 };

// Where a request stands between its first call and its end.
enum phase {
    RECEIVING, // the head is in; the body may follow
    PARKED,    // a long-poll that waits for the next action, suspended
    WOKEN,     // a long-poll that is to be answered
    HELD,      // an action that is being recorded; left in the ready list of libmicrohttpd, not suspended
    RECORDED,  // an action that is on the disk
    QUEUED     // the answer is with libmicrohttpd
};

struct request {
    struct request *previous, *next; // among the parked
    struct MHD_Connection *connection;
    uint64_t version;
    uint32_t place; // in the batch
    uint32_t action_size;
    enum phase phase;
    bool is_post;
    char action[]; // only of a POST
};

// Loop-wide, in main.c.
extern bool pass_moved;      // the present pass has done something besides looking at held requests
extern bool pass_resumed;    // the present pass has resumed somebody, of which libmicrohttpd's timeout knows nothing
extern uint32_t held_count;  // requests in phase HELD

// counter.c

enum MHD_Result counter_handle(
    void *context, struct MHD_Connection *connection, const char *url, const char *method, const char *version,
    const char *upload, size_t *upload_size, void **request);
void counter_completed(
    void *context, struct MHD_Connection *connection, void **request, enum MHD_RequestTerminationCode code);
// Whether actions are answered only when the recorder has them on the disk.
void counter_start(bool is_durable);
// All actions up to this version are on the disk: tells those who wait.
void counter_recorded(uint64_t version);
// Lets go of all that are suspended, and suspends nobody any more: libmicrohttpd aborts when it is stopped with one.
void counter_release_all(void);

// recorder.c

// Opens the database and starts the thread, which writes to `bell` whenever a batch is on the disk.
bool recorder_start(const char *path, int bell);
// Takes an action into the batch that is being gathered; false when that is full.
bool recorder_take(struct request *request);
// The client has left before its action was recorded; the action is recorded all the same.
void recorder_forget(struct request *request);
// Hands the gathered batch to the thread, if there is one and the thread is free.
void recorder_submit(void);
// Marks the requests of a batch that has reached the disk, and tells the counter.
void recorder_collect(void);
void recorder_stop(void);
