#include "page.h"

// #embed is C23, which clang takes in every mode.
#pragma clang diagnostic ignored "-Wc23-extensions"

static const char access_js[] = {
#embed "files/access.js"
};
static const char api_js[] = {
#embed "files/api.js"
};
static const char app_js[] = {
#embed "files/app.js"
};
static const char bisect_js[] = {
#embed "files/bisect.js"
};
static const char chart_js[] = {
#embed "files/chart.js"
};
static const char client_d_ts[] = {
#embed "files/client.d.ts"
};
static const char client_js[] = {
#embed "files/client.js"
};
static const char client_py[] = {
#embed "files/client.py"
};
static const char commit_js[] = {
#embed "files/commit.js"
};
static const char compare_js[] = {
#embed "files/compare.js"
};
static const char diff_js[] = {
#embed "files/diff.js"
};
static const char dispatch_js[] = {
#embed "files/dispatch.js"
};
static const char docs_js[] = {
#embed "files/docs.js"
};
static const char dom_js[] = {
#embed "files/dom.js"
};
static const char edit_js[] = {
#embed "files/edit.js"
};
static const char export_js[] = {
#embed "files/export.js"
};
static const char find_js[] = {
#embed "files/find.js"
};
static const char follow_js[] = {
#embed "files/follow.js"
};
static const char forks_js[] = {
#embed "files/forks.js"
};
static const char form_js[] = {
#embed "files/form.js"
};
static const char help_js[] = {
#embed "files/help.js"
};
static const char history_js[] = {
#embed "files/history.js"
};
static const char hooks_js[] = {
#embed "files/hooks.js"
};
static const char index_html[] = {
#embed "files/index.html"
};
static const char json_js[] = {
#embed "files/json.js"
};
static const char list_js[] = {
#embed "files/list.js"
};
static const char live_js[] = {
#embed "files/live.js"
};
static const char markdown_js[] = {
#embed "files/markdown.js"
};
static const char model_js[] = {
#embed "files/model.js"
};
static const char notice_js[] = {
#embed "files/notice.js"
};
static const char operations_js[] = {
#embed "files/operations.js"
};
static const char pending_js[] = {
#embed "files/pending.js"
};
static const char picker_js[] = {
#embed "files/picker.js"
};
static const char place_js[] = {
#embed "files/place.js"
};
static const char restore_js[] = {
#embed "files/restore.js"
};
static const char state_js[] = {
#embed "files/state.js"
};
static const char status_js[] = {
#embed "files/status.js"
};
static const char style_css[] = {
#embed "files/style.css"
};
static const char table_js[] = {
#embed "files/table.js"
};
static const char tree_js[] = {
#embed "files/tree.js"
};
static const char views_js[] = {
#embed "files/views.js"
};
static const char welcome_js[] = {
#embed "files/welcome.js"
};

#define FILE_OF(name, bytes) {name, bytes, sizeof bytes}

static const storekeeper_page_file files[] = {
    FILE_OF("access.js", access_js),
    FILE_OF("api.js", api_js),
    FILE_OF("app.js", app_js),
    FILE_OF("bisect.js", bisect_js),
    FILE_OF("chart.js", chart_js),
    FILE_OF("client.d.ts", client_d_ts),
    FILE_OF("client.js", client_js),
    FILE_OF("client.py", client_py),
    FILE_OF("commit.js", commit_js),
    FILE_OF("compare.js", compare_js),
    FILE_OF("diff.js", diff_js),
    FILE_OF("dispatch.js", dispatch_js),
    FILE_OF("docs.js", docs_js),
    FILE_OF("dom.js", dom_js),
    FILE_OF("edit.js", edit_js),
    FILE_OF("export.js", export_js),
    FILE_OF("find.js", find_js),
    FILE_OF("follow.js", follow_js),
    FILE_OF("forks.js", forks_js),
    FILE_OF("form.js", form_js),
    FILE_OF("help.js", help_js),
    FILE_OF("history.js", history_js),
    FILE_OF("hooks.js", hooks_js),
    FILE_OF("index.html", index_html),
    FILE_OF("json.js", json_js),
    FILE_OF("list.js", list_js),
    FILE_OF("live.js", live_js),
    FILE_OF("markdown.js", markdown_js),
    FILE_OF("model.js", model_js),
    FILE_OF("notice.js", notice_js),
    FILE_OF("operations.js", operations_js),
    FILE_OF("pending.js", pending_js),
    FILE_OF("picker.js", picker_js),
    FILE_OF("place.js", place_js),
    FILE_OF("restore.js", restore_js),
    FILE_OF("state.js", state_js),
    FILE_OF("status.js", status_js),
    FILE_OF("style.css", style_css),
    FILE_OF("table.js", table_js),
    FILE_OF("tree.js", tree_js),
    FILE_OF("views.js", views_js),
    FILE_OF("welcome.js", welcome_js),
};

const storekeeper_page_file *storekeeper_page_files(size_t *count) {
    *count = sizeof files / sizeof *files;
    return files;
}
