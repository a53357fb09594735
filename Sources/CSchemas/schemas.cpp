#include "schemas.h"

#include <cmath>
#include <cstdlib>
#include <cstring>
#include <memory>
#include <new>
#include <string>
#include <vector>

// Without it valijson ends the process where it finds a fault.
#define VALIJSON_USE_EXCEPTIONS 1

#include <nlohmann/json.hpp>
#include <re2/re2.h>
#include <valijson/adapters/nlohmann_json_adapter.hpp>
#include <valijson/constraint_builder.hpp>
#include <valijson/constraints/concrete_constraints.hpp>
#include <valijson/schema.hpp>
#include <valijson/schema_parser.hpp>
#include <valijson/validation_results.hpp>
#include <valijson/validator.hpp>

namespace {

/// Makes whole numbers of those that are spelled with a fraction or an exponent: 1.0 is an integer.
void make_whole(nlohmann::json &value) {
    if (value.is_structured()) {
        for (nlohmann::json &inner : value) make_whole(inner);
        return;
    }
    if (!value.is_number_float()) return;
    const double number = value.get<double>();
    if (number == std::floor(number) && std::fabs(number) < 9.2e18) value = static_cast<int64_t>(number);
}

/// A value; it is discarded where the text is no JSON. The parser does not recurse.
nlohmann::json parsed(const char *text, size_t length) {
    nlohmann::json value = nlohmann::json::parse(text, text + length, nullptr, false);
    make_whole(value);
    return value;
}

std::shared_ptr<const re2::RE2> compiled(const std::string &pattern) {
    re2::RE2::Options options;
    options.set_log_errors(false);
    return std::make_shared<const re2::RE2>(pattern, options);
}

/// `pattern`, in RE2: its time is linear in the text.
class PatternConstraint : public valijson::constraints::PolyConstraint {
public:
    explicit PatternConstraint(std::shared_ptr<const re2::RE2> expression) : expression_(std::move(expression)) {}

    bool validate(
        const valijson::adapters::Adapter &target, const std::vector<std::string> &context,
        valijson::ValidationResults *results) const override {
        if (!target.isString() || re2::RE2::PartialMatch(target.asString(), *expression_)) return true;
        if (results) results->pushError(context, "Failed to match the pattern " + expression_->pattern());
        return false;
    }

private:
    valijson::constraints::Constraint *cloneInto(void *place) const override { return new (place) PatternConstraint(*this); }
    size_t sizeOf() const override { return sizeof(PatternConstraint); }

    std::shared_ptr<const re2::RE2> expression_;
};

class PatternBuilder : public valijson::ConstraintBuilder {
public:
    valijson::constraints::Constraint *make(const valijson::adapters::Adapter &value) const override {
        return new PatternConstraint(compiled(value.asString()));
    }
};

/// Gives a fault with its way, `[name]` by `[name]` behind the root.
void tell(
    void *context, storekeeper_schema_fault fault, const std::vector<std::string> &way, const std::string &sentence) {
    std::vector<const char *> names;
    std::vector<size_t> lengths;
    for (size_t index = 1; index < way.size(); index += 1) {
        const std::string &step = way[index];
        const bool is_bracketed = step.size() >= 2 && step.front() == '[' && step.back() == ']';
        names.push_back(step.data() + (is_bracketed ? 1 : 0));
        lengths.push_back(step.size() - (is_bracketed ? 2 : 0));
    }
    fault(context, names.size(), names.data(), lengths.data(), sentence.c_str());
}

}  // namespace

struct storekeeper_schema {
    valijson::Schema schema;
};

storekeeper_schema *storekeeper_schema_make(
    const char *text, size_t length, void *context, storekeeper_schema_fault fault) {
    try {
        const nlohmann::json document = parsed(text, length);
        if (document.is_discarded()) {
            tell(context, fault, {}, "the schema is no JSON");
            return nullptr;
        }
        auto made = std::make_unique<storekeeper_schema>();
        valijson::SchemaParser parser(valijson::SchemaParser::kDraft7);
        // The parser deletes its builders.
        parser.addConstraintBuilder(STOREKEEPER_SCHEMA_PATTERN, new PatternBuilder);
        valijson::adapters::NlohmannJsonAdapter adapter(document);
        parser.populateSchema(adapter, made->schema);
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
        const nlohmann::json document = parsed(text, length);
        if (document.is_discarded()) {
            tell(context, fault, {}, "the value is no JSON, or has a number beyond 64 bits");
            return 1;
        }
        const valijson::adapters::NlohmannJsonAdapter adapter(document);
        // Nearly every value fits, and to find that out costs less without a list of faults.
        valijson::Validator first;
        if (first.validate(schema->schema, adapter, nullptr)) return 0;
        valijson::Validator second;
        valijson::ValidationResults results;
        second.validate(schema->schema, adapter, &results);
        const size_t count = results.numErrors();
        valijson::ValidationResults::Error error;
        for (size_t index = 0; index < most && results.popError(error); index += 1)
            tell(context, fault, error.context, error.description);
        if (count == 0) tell(context, fault, {}, "the value does not fit");
        return count == 0 ? 1 : count;
    } catch (const std::exception &error) {
        tell(context, fault, {}, error.what());
        return 1;
    }
}

char *storekeeper_pattern_fault(const char *text, size_t length) {
    const auto expression = compiled(std::string(text, length));
    return expression->ok() ? nullptr : strdup(expression->error().c_str());
}

void storekeeper_free(char *sentence) { free(sentence); }

void storekeeper_schema_free(storekeeper_schema *schema) { delete schema; }
