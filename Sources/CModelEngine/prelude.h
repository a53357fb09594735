#ifndef STOREKEEPER_PRELUDE_H
#define STOREKEEPER_PRELUDE_H

/// The JavaScript of the engine as one script, whose value is a function of the byte that says what may be interrupted and
/// returns the functions that the engine calls. The caller frees it.
char *model_prelude(void);

#endif
