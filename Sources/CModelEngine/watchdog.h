#ifndef STOREKEEPER_MODEL_WATCHDOG_H
#define STOREKEEPER_MODEL_WATCHDOG_H

#include <stdatomic.h>
#include <time.h>

#include "CModelEngine.h"

// What the engine cannot interrupt, such as a built-in function that runs for minutes, ends the process: a thread looks at all
// calls ten times a second, and at the processor time that their threads have used since.

/// What the prelude does; the engine is never interrupted while it settles a change of the state.
enum Phase { PHASE_OF_SETTLING = 2 };

/// A model's calls, as the watchdog sees them.
typedef struct Watched {
    struct Watched *next;
    const volatile unsigned char *phase;
    // Odd while a call runs.
    _Atomic unsigned long calls;
    _Atomic clockid_t clock;
    _Atomic double seconds;
    char name[128];
    // Only the watchdog uses these.
    unsigned long seen;
    double begun;
} Watched;

/// Begins to watch; the first call starts the watchdog.
void watchdog_add(Watched *watched, const volatile unsigned char *phase);

void watchdog_remove(Watched *watched);

/// Says what the next call runs, for the line in the log.
void watchdog_name(Watched *watched, ModelText name);

/// Begins a call, which may use so much processor time, and ten times as much while it settles a change.
void watchdog_begin(Watched *watched, double seconds);

void watchdog_end(Watched *watched);

#endif
