#pragma once
// Inlined, so that nothing of it has to be installed where the server runs.
#define XXH_INLINE_ALL
#include <xxhash.h>
