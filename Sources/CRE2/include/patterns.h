#ifndef STOREKEEPER_PATTERNS_H
#define STOREKEEPER_PATTERNS_H

#include <stdbool.h>
#include <stddef.h>

// Regular expressions of RE2, whose interface is C++: a match takes time that grows with the text alone.
//
// Any thread may match an expression, also several at once.

#ifdef __cplusplus
extern "C" {
#endif

typedef struct storekeeper_pattern storekeeper_pattern;

/// Compiles an expression.
///
/// - Parameter fault: gets the reason where RE2 does not take it, cut to its capacity.
/// - Returns: NULL where RE2 does not take it.
storekeeper_pattern *storekeeper_pattern_make(const char *text, size_t length, char *fault, size_t capacity);

/// Whether an expression matches anywhere in a text.
bool storekeeper_pattern_matches(const storekeeper_pattern *pattern, const char *text, size_t length);

void storekeeper_pattern_free(storekeeper_pattern *pattern);

#ifdef __cplusplus
}
#endif

#endif
