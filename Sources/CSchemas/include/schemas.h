#ifndef STOREKEEPER_SCHEMAS_H
#define STOREKEEPER_SCHEMAS_H

#include <stddef.h>

// JSON Schema, draft 7, as valijson reads it, whose interface is C++ templates. Patterns run in RE2.
//
// A schema that was made is not changed by checks: any thread may check with it, also several at once.

#ifdef __cplusplus
extern "C" {
#endif

typedef struct storekeeper_schema storekeeper_schema;

/// Takes a fault: the way to the value at fault, as names and indices, and a sentence.
typedef void (*storekeeper_schema_fault)(
    void *context, size_t depth, const char *const names[], const size_t lengths[], const char *sentence);

/// Makes a schema of the JSON that `SchemaWalk` has made of one: `schemas`, of which the first is the whole, and the `values` and
/// `patterns` to which they refer by number. A schema in a schema is true, false or `{"@at": number}`.
///
/// - Returns: NULL where it has a fault, which `fault` then takes, without a way.
storekeeper_schema *storekeeper_schema_make(const char *text, size_t length, void *context, storekeeper_schema_fault fault);

/// Checks a JSON text, which is not deeper than a thousand levels.
///
/// The time has a bound, which grows with the text, and so has the stack; a value that is beyond either does not fit.
///
/// - Returns: how many faults `fault` has taken, at most `most` and at least one; 0 where the value fits.
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
