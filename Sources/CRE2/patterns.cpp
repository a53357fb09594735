#include "patterns.h"

#include <cstdio>
#include <memory>
#include <re2/re2.h>

struct storekeeper_pattern {
    re2::RE2 expression;
};

static re2::RE2::Options quiet() {
    re2::RE2::Options options;
    options.set_log_errors(false);
    return options;
}

storekeeper_pattern *storekeeper_pattern_make(const char *text, size_t length, char *fault, size_t capacity) {
    std::unique_ptr<storekeeper_pattern> made(new storekeeper_pattern{{re2::StringPiece(text, length), quiet()}});
    if (made->expression.ok()) return made.release();
    snprintf(fault, capacity, "%s", made->expression.error().c_str());
    return nullptr;
}

bool storekeeper_pattern_matches(const storekeeper_pattern *pattern, const char *text, size_t length) {
    return re2::RE2::PartialMatch(re2::StringPiece(text, length), pattern->expression);
}

void storekeeper_pattern_free(storekeeper_pattern *pattern) { delete pattern; }
