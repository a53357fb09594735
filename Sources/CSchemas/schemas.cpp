#include "schemas.h"

#include "checker.hpp"

#include <cstdlib>
#include <cstring>
#include <memory>
#include <string>
#include <valijson/schema_parser.hpp>
#include <vector>

using storekeeper::Checker;
using storekeeper::json;
using storekeeper::Rule;
using storekeeper::RuleBuilder;

namespace {

std::unique_ptr<re2::RE2> compiled(const std::string &pattern) {
    re2::RE2::Options options;
    options.set_log_errors(false);
    return std::make_unique<re2::RE2>(pattern, options);
}

void tell(
    void *context, storekeeper_schema_fault fault, const std::vector<std::string> &way, const std::string &sentence) {
    std::vector<const char *> names;
    std::vector<size_t> lengths;
    for (const std::string &step : way) {
        names.push_back(step.data());
        lengths.push_back(step.size());
    }
    fault(context, names.size(), names.data(), lengths.data(), sentence.c_str());
}

void add_rules(valijson::SchemaParser &parser) {
    const std::pair<const char *, Rule::Kind> keywords[] = {
        {"@at", Rule::at},
        {"@pattern", Rule::pattern},
        {"@maximum", Rule::maximum},
        {"@minimum", Rule::minimum},
        {"@exclusiveMaximum", Rule::exclusive_maximum},
        {"@exclusiveMinimum", Rule::exclusive_minimum},
        {"@multipleOf", Rule::multiple_of},
        {"@const", Rule::equals},
        {"@enum", Rule::one_of},
    };
    // The parser deletes its builders.
    for (const auto &[keyword, kind] : keywords) parser.addConstraintBuilder(keyword, new RuleBuilder(kind));
}

}  // namespace

struct storekeeper_schema {
    storekeeper::Schemas all;
};

storekeeper_schema *storekeeper_schema_make(
    const char *text, size_t length, void *context, storekeeper_schema_fault fault) {
    try {
        const json document = json::parse(text, text + length);
        auto made = std::make_unique<storekeeper_schema>();
        valijson::SchemaParser parser(valijson::SchemaParser::kDraft7);
        add_rules(parser);
        for (const json &schema : document.at("schemas")) {
            // The schemas in it are references of ours, so that valijson resolves none: it takes schemas for each other whose
            // ways have the same text, and recurses through all of them.
            made->all.schemas.emplace_back();
            parser.populateSchema(valijson::adapters::NlohmannJsonAdapter(schema), made->all.schemas.back());
        }
        for (const json &value : document.at("values")) made->all.values.push_back(value);
        for (const json &pattern : document.at("patterns")) {
            made->all.patterns.push_back(compiled(pattern.get<std::string>()));
        }
        return made.release();
    } catch (const std::exception &error) {
        tell(context, fault, {}, error.what());
        return nullptr;
    }
}

size_t storekeeper_schema_check(
    const storekeeper_schema *schema, const char *text, size_t length, size_t most, void *context,
    storekeeper_schema_fault fault) {
    try {
        const json value = json::parse(text, text + length, nullptr, false);
        if (value.is_discarded()) {
            tell(context, fault, {}, "the value is no JSON, or has a number beyond 64 bits");
            return 1;
        }
        // A schema without choices looks at each value a few times.
        Checker checker(schema->all, 1000000 + 16 * length);
        // Nearly every value fits, and to find that out costs less without a list of faults.
        if (checker.fits(value)) return 0;
        return checker.tell(value, most == 0 ? 1 : most, [&](const auto &way, const std::string &sentence) {
            tell(context, fault, way, sentence);
        });
    } catch (const std::exception &error) {
        tell(context, fault, {}, error.what());
        return 1;
    }
}

char *storekeeper_pattern_fault(const char *text, size_t length) {
    try {
        const auto expression = compiled(std::string(text, length));
        return expression->ok() ? nullptr : strdup(expression->error().c_str());
    } catch (const std::exception &error) {
        return strdup(error.what());
    }
}

void storekeeper_free(char *sentence) { free(sentence); }

void storekeeper_schema_free(storekeeper_schema *schema) { delete schema; }
