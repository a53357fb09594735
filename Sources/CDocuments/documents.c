#include "documents.h"

// #embed is C23, which clang takes in every mode.
#pragma clang diagnostic ignored "-Wc23-extensions"

static const char openapi[] = {
#embed "openapi.json"
};

const char *storekeeper_openapi(size_t *length) {
    *length = sizeof openapi;
    return openapi;
}
