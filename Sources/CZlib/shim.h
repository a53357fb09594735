#pragma once

// The parts of zlib that Swift cannot import: deflateInit2 is a macro.

#include <zlib.h>

// Begins a gzip stream (RFC 1952): 15 bits of window, and 16 for the header and trailer of gzip.
static inline int gzip_begin(z_stream *stream, int level) {
    return deflateInit2(stream, level, Z_DEFLATED, 15 + 16, 8, Z_DEFAULT_STRATEGY);
}
