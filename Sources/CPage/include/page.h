#ifndef STOREKEEPER_PAGE_H
#define STOREKEEPER_PAGE_H

#include <stddef.h>

/// A file inside the program; it is there as long as the process.
typedef struct {
    const char *name;
    const char *bytes;
    size_t length;
} storekeeper_page_file;

/// The files of the page and of the clients for JavaScript and Python.
///
/// - Parameter count: becomes their number.
const storekeeper_page_file *storekeeper_page_files(size_t *count);

/// A page of the documentation in Markdown, ended by a zero; its name is its path.
typedef struct {
    const char *name;
    const char *text;
} storekeeper_document;

/// The pages of the documentation.
///
/// - Parameter count: becomes their number.
const storekeeper_document *storekeeper_documents(size_t *count);

#endif
