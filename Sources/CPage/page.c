#include "page.h"

// #embed is C23, which clang takes in every mode.
#pragma clang diagnostic ignored "-Wc23-extensions"

static const char client_d_ts[] = {
#embed "files/client.d.ts"
};
static const char client_js[] = {
#embed "files/client.js"
};

#define FILE_OF(name, bytes) {name, bytes, sizeof bytes}

static const storekeeper_page_file files[] = {
    FILE_OF("client.d.ts", client_d_ts),
    FILE_OF("client.js", client_js),
};

const storekeeper_page_file *storekeeper_page_files(size_t *count) {
    *count = sizeof files / sizeof *files;
    return files;
}
