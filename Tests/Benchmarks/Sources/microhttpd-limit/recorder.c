#include "limit.h"

#include <pthread.h>
#include <sqlite3.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

struct action {
    struct request *request; // NULL once its client has left; only the loop thread looks at it
    uint32_t size;
    char bytes[ACTION_BYTES_MAX];
};

struct batch {
    struct action actions[BATCH_ACTIONS_MAX];
    uint32_t count;
    uint64_t first_version;
};

// One is gathered by the loop while the thread writes the other.
static struct batch batches[2];
static struct batch *gathered = &batches[0];
static uint64_t last_version;
static bool is_writing; // the loop's: a batch is with the thread

// Guards what is below it.
static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static pthread_cond_t changed = PTHREAD_COND_INITIALIZER;
static struct batch *submitted;
static struct batch *written;
static bool must_end;

static sqlite3 *database;
static sqlite3_stmt *begin, *insert, *commit;
static pthread_t thread;
static int loop_bell;

static bool step(sqlite3_stmt *statement) {
    bool is_done = sqlite3_step(statement) == SQLITE_DONE;
    sqlite3_reset(statement);
    return is_done;
}

// One transaction, and with WAL and synchronous=FULL one sync.
static bool write_batch(const struct batch *batch) {
    if (!step(begin)) return false;
    for (uint32_t index = 0; index < batch->count; index++) {
        const struct action *action = &batch->actions[index];
        sqlite3_bind_int64(insert, 1, (sqlite3_int64)(batch->first_version + index));
        sqlite3_bind_blob(insert, 2, action->bytes, (int)action->size, SQLITE_STATIC);
        if (!step(insert)) return false;
    }
    return step(commit);
}

static void *write_batches(void *context) {
    (void)context;
    pthread_mutex_lock(&lock);
    for (;;) {
        while (submitted == NULL && !must_end) pthread_cond_wait(&changed, &lock);
        if (submitted == NULL) break;
        struct batch *batch = submitted;
        pthread_mutex_unlock(&lock);
        if (!write_batch(batch)) {
            // What cannot be recorded must not be answered, and a yardstick has no other answer.
            fprintf(stderr, "microhttpd-limit: %s\n", sqlite3_errmsg(database));
            _exit(1);
        }
        pthread_mutex_lock(&lock);
        submitted = NULL;
        written = batch;
        uint64_t one = 1;
        if (write(loop_bell, &one, sizeof one) != sizeof one) _exit(1);
    }
    pthread_mutex_unlock(&lock);
    return NULL;
}

bool recorder_start(const char *path, int bell) {
    loop_bell = bell;
    // One thread, one process: neither SQLite's mutexes nor its locks between processes are needed.
    int flags = SQLITE_OPEN_READWRITE | SQLITE_OPEN_CREATE | SQLITE_OPEN_NOMUTEX;
    return sqlite3_open_v2(path, &database, flags, NULL) == SQLITE_OK
        && sqlite3_exec(
               database,
               "PRAGMA locking_mode=EXCLUSIVE; PRAGMA journal_mode=WAL; PRAGMA synchronous=FULL;"
               "CREATE TABLE commits (version INTEGER PRIMARY KEY, action BLOB NOT NULL)",
               NULL, NULL, NULL)
        == SQLITE_OK
        && sqlite3_prepare_v2(database, "BEGIN IMMEDIATE", -1, &begin, NULL) == SQLITE_OK
        && sqlite3_prepare_v2(database, "INSERT INTO commits VALUES (?, ?)", -1, &insert, NULL) == SQLITE_OK
        && sqlite3_prepare_v2(database, "COMMIT", -1, &commit, NULL) == SQLITE_OK
        && pthread_create(&thread, NULL, write_batches, NULL) == 0;
}

bool recorder_take(struct request *request) {
    if (gathered->count == BATCH_ACTIONS_MAX) return false;
    request->place = gathered->count++;
    struct action *action = &gathered->actions[request->place];
    action->request = request;
    action->size = request->action_size;
    memcpy(action->bytes, request->action, request->action_size);
    return true;
}

void recorder_forget(struct request *request) {
    for (size_t index = 0; index < 2; index++) {
        struct action *action = &batches[index].actions[request->place];
        if (request->place < batches[index].count && action->request == request) action->request = NULL;
    }
}

void recorder_submit(void) {
    if (is_writing || gathered->count == 0) return;
    is_writing = true;
    gathered->first_version = last_version + 1;
    last_version += gathered->count;
    pthread_mutex_lock(&lock);
    submitted = gathered;
    pthread_cond_signal(&changed);
    pthread_mutex_unlock(&lock);
    gathered = gathered == &batches[0] ? &batches[1] : &batches[0];
}

void recorder_collect(void) {
    if (!is_writing) return;
    pthread_mutex_lock(&lock);
    struct batch *batch = written;
    written = NULL;
    pthread_mutex_unlock(&lock);
    if (batch == NULL) return;
    is_writing = false;
    for (uint32_t index = 0; index < batch->count; index++) {
        struct request *request = batch->actions[index].request;
        if (request == NULL) continue;
        held_count--;
        request->version = batch->first_version + index;
        request->phase = RECORDED;
    }
    uint64_t version = batch->first_version + batch->count - 1;
    batch->count = 0;
    counter_recorded(version);
}

void recorder_stop(void) {
    if (database == NULL) return;
    pthread_mutex_lock(&lock);
    must_end = true;
    pthread_cond_signal(&changed);
    pthread_mutex_unlock(&lock);
    pthread_join(thread, NULL);
    sqlite3_finalize(begin);
    sqlite3_finalize(insert);
    sqlite3_finalize(commit);
    sqlite3_close(database);
}
