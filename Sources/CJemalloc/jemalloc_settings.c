#include "jemalloc_settings.h"

// What thousands of clients have needed for a moment goes back to the system within moments, by a thread of jemalloc's own.
// Two arenas: one for the loop, one for whoever else works.
const char *malloc_conf = "background_thread:true,dirty_decay_ms:100,muzzy_decay_ms:0,narenas:2";
