#pragma once

// Without it valijson ends the process where it finds a fault.
#define VALIJSON_USE_EXCEPTIONS 1

#include <cstddef>
#include <new>
#include <string>
#include <valijson/adapters/nlohmann_json_adapter.hpp>
#include <valijson/constraint_builder.hpp>
#include <valijson/constraints/concrete_constraints.hpp>
#include <vector>

namespace storekeeper {

/// A constraint of our own in place of one of valijson's; its value is a number in a list of the schema.
class Rule : public valijson::constraints::PolyConstraint {
public:
    enum Kind {
        /// What `$ref` is: the schema with this number.
        at,
        /// With the expression of this number, in RE2: valijson's `pattern` is std::regex, whose recursion overflows the stack.
        pattern,
        /// With the value of this number: valijson's limits are doubles, and it divides by 0.
        maximum,
        minimum,
        exclusive_maximum,
        exclusive_minimum,
        multiple_of,
        equals,
        one_of,
    };

    Rule(Kind kind, size_t number) : kind(kind), number(number) {}

    const Kind kind;
    const size_t number;

    /// Never called: `Checker` visits the rule.
    bool validate(
        const valijson::adapters::Adapter &, const std::vector<std::string> &,
        valijson::ValidationResults *) const override {
        return false;
    }

private:
    valijson::constraints::Constraint *cloneInto(void *place) const override { return new (place) Rule(*this); }
    size_t sizeOf() const override { return sizeof(Rule); }
};

/// Makes the rules of a keyword for valijson's parser.
class RuleBuilder : public valijson::ConstraintBuilder {
public:
    explicit RuleBuilder(Rule::Kind kind) : kind_(kind) {}

    valijson::constraints::Constraint *make(const valijson::adapters::Adapter &number) const override {
        return new Rule(kind_, static_cast<size_t>(number.asInteger()));
    }

private:
    const Rule::Kind kind_;
};

}  // namespace storekeeper
