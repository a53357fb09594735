#ifndef STOREKEEPER_SCHEMAS_H
#define STOREKEEPER_SCHEMAS_H

#include <stddef.h>

// JSON Schema, draft 7, by valijson, whose interface is C++ templates. `pattern` runs in RE2.
//
// A schema that was made is not changed by checks: any thread may check with it, also several at once.

#ifdef __cplusplus
extern "C" {
#endif

typedef struct storekeeper_schema storekeeper_schema;

/// Takes a fault: the way to the value at fault, as names and indices, and a sentence.
typedef void (*storekeeper_schema_fault)(
    void *context, size_t depth, const char *const names[], const size_t lengths[], const char *sentence);

/// The keyword that stands for `pattern`: valijson's own would run std::regex, whose recursion overflows the stack.
#define STOREKEEPER_SCHEMA_PATTERN "storekeeper:pattern"

/// Makes a schema of its JSON, which has no `pattern`, `patternProperties`, `format`, `$id` and no reference to elsewhere.
///
/// - Returns: NULL where it has a fault, which `fault` then takes, without a way.
storekeeper_schema *storekeeper_schema_make(const char *text, size_t length, void *context, storekeeper_schema_fault fault);

/// Checks a JSON text, which is well formed and not deeper than a thousand levels.
///
/// - Returns: how many faults there are; `fault` takes the first `most` of them.
size_t storekeeper_schema_check(
    const storekeeper_schema *schema, const char *text, size_t length, size_t most, void *context,
    storekeeper_schema_fault fault);

/// Why RE2 does not take an expression; NULL where it does. The caller frees the sentence.
char *storekeeper_pattern_fault(const char *text, size_t length);

/// Frees a sentence.
void storekeeper_free(char *sentence);

void storekeeper_schema_free(storekeeper_schema *schema);

#ifdef __cplusplus
}
#endif

#endif
