#pragma once
#include <stddef.h>
#include <stdint.h>

#ifdef __cplusplus
extern "C" {
#endif

// A parser and the one document it holds. Not thread-safe: one owner at a time.
typedef struct storekeeper_json_parser storekeeper_json_parser;

// The errors that Swift tells apart; every other error of simdjson is MALFORMED.
typedef enum {
    STOREKEEPER_JSON_OK = 0,
    STOREKEEPER_JSON_MALFORMED = 1,
    STOREKEEPER_JSON_TOO_DEEP = 2,
    STOREKEEPER_JSON_INVALID_UTF8 = 3,
    STOREKEEPER_JSON_NUMBER_OUT_OF_RANGE = 4,
    STOREKEEPER_JSON_EMPTY = 5,
    STOREKEEPER_JSON_OUT_OF_MEMORY = 6,
} storekeeper_json_status;

// Both return NULL when there is no memory.
storekeeper_json_parser *storekeeper_json_parser_create(size_t depth_max);
void storekeeper_json_parser_destroy(storekeeper_json_parser *parser);

// Parses a whole document; the bytes are copied, so they need no padding and need not outlive the call.
storekeeper_json_status storekeeper_json_parse(storekeeper_json_parser *parser, const uint8_t *bytes, size_t count);

// The document as simdjson's tape (https://github.com/simdjson/simdjson/blob/master/doc/tape.md) and its string buffer.
// Valid until the next parse or the parser's end.
const uint64_t *storekeeper_json_tape(const storekeeper_json_parser *parser);
const uint8_t *storekeeper_json_strings(const storekeeper_json_parser *parser);

#ifdef __cplusplus
}
#endif
