#include "CModelEngine.h"
#include "prelude.h"

#include <stdlib.h>
#include <string.h>

// #embed is C23, which clang takes in every mode.
#pragma clang diagnostic ignored "-Wc23-extensions"

static const char realm[] = {
#embed "files/realm.js"
};
static const char drafts[] = {
#embed "files/drafts.js"
};
static const char patches[] = {
#embed "files/patches.js"
};
static const char toolkit[] = {
#embed "files/toolkit.js"
};
static const char entities[] = {
#embed "files/entities.js"
};
static const char source[] = {
#embed "files/source.js"
};
static const char engine[] = {
#embed "files/engine.js"
};

char *model_prelude(void) {
    static const char head[] = "(function(phase){'use strict';\n", tail[] = "})";
    static const struct {
        const char *bytes;
        size_t length;
    } pieces[] = {
        {head, sizeof head - 1},     {drafts, sizeof drafts}, {patches, sizeof patches}, {toolkit, sizeof toolkit},
        {entities, sizeof entities}, {realm, sizeof realm},   {source, sizeof source},   {engine, sizeof engine},
        {tail, sizeof tail},
    };
    size_t length = 0;
    for (size_t index = 0; index < sizeof pieces / sizeof *pieces; index += 1) length += pieces[index].length;
    char *text = malloc(length);
    if (text == NULL) return NULL;
    char *end = text;
    for (size_t index = 0; index < sizeof pieces / sizeof *pieces; index += 1) {
        memcpy(end, pieces[index].bytes, pieces[index].length);
        end += pieces[index].length;
    }
    return text;
}

const char *model_types(void) {
    static const char types[] = {
#embed "files/model.d.ts"
        , 0};
    return types;
}
