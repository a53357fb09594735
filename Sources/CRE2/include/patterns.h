#ifndef STOREKEEPER_PATTERNS_H
#define STOREKEEPER_PATTERNS_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

// Regular expressions of RE2, whose interface is C++: a match takes time that grows with the text alone.
//
// Any thread may match an expression, also several at once.

#ifdef __cplusplus
extern "C" {
#endif

typedef struct storekeeper_pattern storekeeper_pattern;

/// Compiles an expression.
///
/// - Parameters:
///   - memory: the most bytes that the expression and its matches take.
///   - is_too_large: becomes true where the expression needs more.
///   - fault: gets the reason where RE2 does not take it, cut to its capacity.
/// - Returns: NULL where RE2 does not take it.
storekeeper_pattern *storekeeper_pattern_make(
    const char *text, size_t length, int64_t memory, bool *is_too_large, char *fault, size_t capacity
);

/// How many instructions an expression has.
int storekeeper_pattern_size(const storekeeper_pattern *pattern);

/// Whether an expression matches anywhere in a text.
bool storekeeper_pattern_matches(const storekeeper_pattern *pattern, const char *text, size_t length);

void storekeeper_pattern_free(storekeeper_pattern *pattern);

#ifdef __cplusplus
}
#endif

#endif
