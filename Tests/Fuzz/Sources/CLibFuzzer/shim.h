#pragma once

#include <stddef.h>
#include <stdint.h>

// Runs libFuzzer with the arguments of a command line; it calls `run` with each input.
int LLVMFuzzerRunDriver(int *count, char ***arguments, int (*run)(const uint8_t *bytes, size_t count));
