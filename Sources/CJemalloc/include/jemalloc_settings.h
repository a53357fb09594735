#pragma once

// Read by jemalloc when the process starts, before anything of ours runs.
extern const char *malloc_conf;
