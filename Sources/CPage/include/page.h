#ifndef STOREKEEPER_PAGE_H
#define STOREKEEPER_PAGE_H

#include <stddef.h>

/// A file inside the program; it is there as long as the process.
typedef struct {
    const char *name;
    const char *bytes;
    size_t length;
} storekeeper_page_file;

/// The files of the page and of the client for JavaScript.
///
/// - Parameter count: becomes their number.
const storekeeper_page_file *storekeeper_page_files(size_t *count);

#endif
