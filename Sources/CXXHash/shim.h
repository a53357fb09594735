#pragma once
// Inlined, so that nothing of it has to be installed where the server runs.
#define XXH_INLINE_ALL
#include <xxhash.h>

// Inlining renames the library's functions by macros, which Swift does not see: this one has a name of its own.
static inline XXH128_hash_t storekeeper_hash(const void *bytes, size_t count) {
    return XXH3_128bits(bytes, count);
}

static inline uint64_t storekeeper_short_hash(const void *bytes, size_t count) { return XXH3_64bits(bytes, count); }
