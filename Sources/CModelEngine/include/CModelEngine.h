#ifndef STOREKEEPER_MODEL_ENGINE_H
#define STOREKEEPER_MODEL_ENGINE_H

#include <stdbool.h>
#include <stddef.h>

// Models: states and reducers in JavaScript, run by JavaScriptCore, which is opened at run time.
//
// A `Model` is one JavaScript context in a group of its own, with a copy of the state. One thread at a time calls it.
//
// Every call that returns a `ModelText` answers with one JSON object. It has what the call documents, or instead
//
//     {"fault":{"message","file"?,"line"?,"column"?,"source"?,"pointer"?,"timeout"?,"size"?,"engine"?}}
//
// where the model has done something wrong: `source` is the line of the file, and `pointer` the place in the state. After
// a fault that the model itself has thrown the state is what it was before the call. After any other one the model is not
// used again: `timeout` is true where the time was up, `size` where the answer would be too large, and `engine` where the
// stack or the memory was full, or the engine failed.
//
// What is in an answer is what the model's file says, and clients have a part in it: only that it is JSON is certain, with
// texts of valid UTF-8, and nested as deeply as the file likes. Any answer can have `"console":[{"level","text"}]`: what the
// model has written since the answer before.
//
// The bytes of an answer belong to the model, and are there until the next call with it.

typedef struct Model Model;

/// UTF-8 without a zero byte inside.
typedef struct {
    const char *bytes;
    size_t length;
} ModelText;

/// Opens the engine's library, once for the process. The first call sets an environment variable, so it is made while no other
/// thread reads the environment.
///
/// - Returns: NULL, or a sentence that names the package that is missing.
const char *model_engine_open(void);

/// The types for TypeScript of what a file can import, for editors. It needs no engine.
const char *model_types(void);

/// Makes a context and loads a model's file into it. `model_engine_open` has to have succeeded.
///
/// - Parameters:
///   - name: the file's name in faults.
///   - seconds: how much CPU time a call to `model_reduce` has; `model_view` has ten times that, and everything else a hundred
///     times. On a busy machine the end can come later by the same time. A built-in function that runs long is not interrupted.
///   - bytes_max: how large an answer of `model_reduce` and `model_view` may be, which are what clients cause.
/// - Returns: a model, also where the file has a fault, which `model_description` then is; NULL without memory.
Model *model_make(ModelText source, const char *name, double seconds, size_t bytes_max);

/// What the file declares:
///
///     {"version":number|null,"migrates":bool,"slices":[{"name","mount":pointer,"schema":...|null}],
///      "actions":[{"type","schema":...|null,"slice":name|null}],"views":[{"name","reads",
///      "parameters":schema|null,"subject":bool}],"initial":state}
///
/// or a fault; then no other call but `model_free` is allowed. `name` is null for a reducer of the whole state without a
/// name; an action that no slice declares has the slice null.
ModelText model_description(const Model *model);

/// Sets the model's copy of the state, in time linear in the state. Without it the copy
/// is the initial state. `{}`.
ModelText model_load(Model *model, ModelText state);

/// Runs the reducers of one action.
///
///     {"patch":[operations of RFC 6902: add, remove, replace]} or {"rejected":{"code","detail","pointer"?}}
///
/// The patch has been applied to the copy.
///
/// - Parameters:
///   - type: what the process says of itself where it has to end.
///   - action: a JSON object: what the reducer sees, with `type`, `payload` and `meta`. Each text that the engine takes has its
///     price, so it is one.
ModelText model_reduce(Model *model, ModelText type, ModelText action);

/// Applies a patch that was computed elsewhere, all of it or nothing; the cost is that of what it changes. `{}`.
ModelText model_apply(Model *model, ModelText patch);

/// The value of a view: {"value":...}.
///
/// - Parameter context: {"parameters":{...},"subject":text?}, of which the view gets what it takes.
ModelText model_view(Model *model, ModelText name, ModelText context);

/// What the file's `migrate` makes of a state of another version: {"state":...}. The model's copy stays as it is.
ModelText model_migrate(Model *model, ModelText state, double version);

/// The model's copy: {"state":...}, in time linear in the state.
ModelText model_state(Model *model);

/// The bytes of the context's heap, and of what belongs to it. Garbage that is not collected yet counts. The engine walks the
/// heap for it, 9 ms with 100,000 entities, so it is no call for every action.
size_t model_bytes(Model *model);

/// The resident bytes of this process; 0 where they are not known. That is cheap to ask, and no engine has more.
size_t model_process_bytes(void);

/// Collects the garbage of the context, in time linear in the state.
void model_collect(Model *model);

/// Ends the use of an answer: the memory of a large one is freed, and after each 4 MiB of answers the garbage is collected, in
/// time linear in the state.
void model_answered(Model *model);

void model_free(Model *model);

#endif
