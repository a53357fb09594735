#include "simdjson_shim.h"

#include <new>
#include <simdjson.h>

// Swift cannot import C++ templates: this file offers simdjson's parser as a handle, a status and two pointers.

// A parser with a larger capacity, in bytes, frees it before the next small document: one large body does not hold its memory
// for the life of the parser.
static const size_t kept_capacity = 1 << 20;

struct storekeeper_json_parser {
    simdjson::dom::parser parser;
    size_t depth_max;
};

static storekeeper_json_status status_of(simdjson::error_code error) {
    switch (error) {
    case simdjson::SUCCESS: return STOREKEEPER_JSON_OK;
    case simdjson::DEPTH_ERROR: return STOREKEEPER_JSON_TOO_DEEP;
    case simdjson::UTF8_ERROR: return STOREKEEPER_JSON_INVALID_UTF8;
    case simdjson::NUMBER_ERROR: return STOREKEEPER_JSON_NUMBER_OUT_OF_RANGE;
    case simdjson::EMPTY: return STOREKEEPER_JSON_EMPTY;
    case simdjson::MEMALLOC:
    case simdjson::CAPACITY: return STOREKEEPER_JSON_OUT_OF_MEMORY;
    default: return STOREKEEPER_JSON_MALFORMED;
    }
}

storekeeper_json_parser *storekeeper_json_parser_create(size_t depth_max) {
    auto *made = new (std::nothrow) storekeeper_json_parser();
    if (made == nullptr) return nullptr;
    made->depth_max = depth_max;
    if (made->parser.allocate(4096, depth_max) != simdjson::SUCCESS) {
        delete made;
        return nullptr;
    }
    return made;
}

void storekeeper_json_parser_destroy(storekeeper_json_parser *parser) { delete parser; }

storekeeper_json_status storekeeper_json_parse(storekeeper_json_parser *handle, const uint8_t *bytes, size_t count) {
    if (count > handle->parser.capacity() || handle->parser.capacity() > kept_capacity) {
        // parse() grows a parser with simdjson's default depth; allocate() takes the depth of this parser.
        size_t capacity = count > 4096 ? count : 4096;
        if (capacity > handle->parser.capacity() || count <= kept_capacity) {
            auto error = handle->parser.allocate(capacity, handle->depth_max);
            if (error != simdjson::SUCCESS) return status_of(error);
            handle->parser.doc = simdjson::dom::document();
        }
    }
    return status_of(handle->parser.parse(bytes, count, true).error());
}

const uint64_t *storekeeper_json_tape(const storekeeper_json_parser *handle) { return handle->parser.doc.tape.get(); }

const uint8_t *storekeeper_json_strings(const storekeeper_json_parser *handle) {
    return handle->parser.doc.string_buf.get();
}
