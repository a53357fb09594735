#ifndef STOREKEEPER_DOCUMENTS_H
#define STOREKEEPER_DOCUMENTS_H

#include <stddef.h>

/// The source of the OpenAPI document, `openapi.json`; it is there as long as the process.
///
/// - Parameter length: becomes the number of bytes.
const char *storekeeper_openapi(size_t *length);

#endif
