#include "patterns.h"

#include <cstdio>
#include <memory>
#include <re2/re2.h>

struct storekeeper_pattern {
    re2::RE2 expression;
};

storekeeper_pattern *storekeeper_pattern_make(
    const char *text, size_t length, int64_t memory, bool *is_too_large, char *fault, size_t capacity
) {
    re2::RE2::Options options;
    options.set_log_errors(false);
    options.set_max_mem(memory);
    std::unique_ptr<storekeeper_pattern> made(new storekeeper_pattern{{re2::StringPiece(text, length), options}});
    if (made->expression.ok()) return made.release();
    *is_too_large = made->expression.error_code() == re2::RE2::ErrorPatternTooLarge;
    snprintf(fault, capacity, "%s", made->expression.error().c_str());
    return nullptr;
}

bool storekeeper_pattern_matches(const storekeeper_pattern *pattern, const char *text, size_t length) {
    return re2::RE2::PartialMatch(re2::StringPiece(text, length), pattern->expression);
}

int storekeeper_pattern_size(const storekeeper_pattern *pattern) { return pattern->expression.ProgramSize(); }

void storekeeper_pattern_free(storekeeper_pattern *pattern) { delete pattern; }
