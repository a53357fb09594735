#pragma once

#include "rule.hpp"
#include "values.hpp"

#include <deque>
#include <functional>
#include <memory>
#include <re2/re2.h>
#include <string>
#include <string_view>
#include <valijson/constraints/constraint_visitor.hpp>
#include <valijson/schema.hpp>
#include <vector>

namespace storekeeper {

/// The schemas that valijson has read, by number, and what their rules refer to. The first one is the whole.
struct Schemas {
    std::deque<valijson::Schema> schemas;
    std::vector<json> values;
    std::vector<std::unique_ptr<re2::RE2>> patterns;
};

/// One check of one value: it visits the constraints that valijson has read.
///
/// valijson's own visitor copies the way to a value at each step, runs std::regex, and has no bound in time or stack: a schema
/// with choices that refers to itself makes it look at a value in twice as many ways with each level.
class Checker final : public valijson::constraints::ConstraintVisitor {
public:
    /// Takes a fault: the way to a value, and a sentence.
    using Take = std::function<void(const std::vector<std::string> &way, const std::string &sentence)>;

    /// How many schemas deep a check goes: with 1 MiB of stack in a release build, and with 3 MiB in a debug build.
    static constexpr size_t depth_max = 4000;

    /// Makes a check that looks at no more than so many schemas.
    Checker(const Schemas &schemas, size_t steps_max) : schemas_(schemas), steps_max_(steps_max) {
        each_ = [this](const valijson::constraints::Constraint &constraint) { return constraint.accept(*this); };
    }

    /// Whether a value fits; it ends with the first fault.
    bool fits(const json &value) {
        most_ = 0;
        return run(schemas_.schemas.front(), value, nullptr) && !is_stopped_;
    }

    /// Gives the first faults of a value that does not fit, or the one by which the check was ended.
    size_t tell(const json &value, size_t most, const Take &take) {
        if (!is_stopped_) {
            steps_ = 0;
            most_ = most;
            run(schemas_.schemas.front(), value, nullptr);
        }
        for (const auto &[way, sentence] : faults_) take(way, sentence);
        return faults_.size();
    }

    bool visit(const AllOfConstraint &constraint) override {
        bool fits = true;
        constraint.applyToSubschemas([&](unsigned, const valijson::Subschema *schema) {
            fits = run(*schema, *value_, frame_) && fits;
            return fits || is_loud();
        });
        return fits;
    }

    bool visit(const AnyOfConstraint &constraint) override {
        size_t count = 0;
        bool fits = false;
        constraint.applyToSubschemas([&](unsigned, const valijson::Subschema *schema) {
            count += 1;
            fits = quietly(*schema, *value_);
            return !fits;
        });
        return fits || fault("fits none of the " + std::to_string(count) + " schemas of anyOf");
    }

    bool visit(const OneOfConstraint &constraint) override {
        size_t count = 0, fitting = 0;
        constraint.applyToSubschemas([&](unsigned, const valijson::Subschema *schema) {
            count += 1;
            fitting += quietly(*schema, *value_) ? 1 : 0;
            return fitting < 2;
        });
        if (fitting == 1) return true;
        if (fitting > 1) return fault("fits more than one of the schemas of oneOf");
        return fault("fits none of the " + std::to_string(count) + " schemas of oneOf");
    }

    bool visit(const NotConstraint &constraint) override {
        return !quietly(*constraint.getSubschema(), *value_) || fault("fits what the schema does not allow");
    }

    bool visit(const ConditionalConstraint &constraint) override {
        const valijson::Subschema *branch = quietly(*constraint.getIfSubschema(), *value_)
            ? constraint.getThenSubschema() : constraint.getElseSubschema();
        return branch == nullptr || run(*branch, *value_, frame_);
    }

    bool visit(const ContainsConstraint &constraint) override {
        if (!value_->is_array()) return true;
        for (const json &element : *value_) {
            if (quietly(*constraint.getSubschema(), element)) return true;
        }
        return fault("expected an element that fits the schema of contains");
    }

    bool visit(const DependenciesConstraint &constraint) override {
        if (!value_->is_object()) return true;
        bool fits = true;
        constraint.applyToPropertyDependencies([&](const auto &name, const auto &needed) {
            if (member(name) == nullptr) return true;
            for (const auto &other : needed) {
                if (member(other) != nullptr) continue;
                fits = fault_at(text(other), "is missing beside " + text(name));
            }
            return fits || is_loud();
        });
        if (!fits && !is_loud()) return false;
        constraint.applyToSchemaDependencies([&](const auto &name, const valijson::Subschema *schema) {
            if (member(name) != nullptr) fits = run(*schema, *value_, frame_) && fits;
            return fits || is_loud();
        });
        return fits;
    }

    bool visit(const SingularItemsConstraint &constraint) override {
        if (!value_->is_array()) return true;
        bool fits = true;
        const json::array_t &elements = value_->get_ref<const json::array_t &>();
        for (size_t index = 0; index < elements.size() && (fits || is_loud()); index += 1) {
            fits = run_element(*constraint.getItemsSubschema(), elements[index], index) && fits;
        }
        return fits;
    }

    bool visit(const LinearItemsConstraint &constraint) override {
        if (!value_->is_array()) return true;
        bool fits = true;
        const json::array_t &elements = value_->get_ref<const json::array_t &>();
        size_t index = 0;
        constraint.applyToItemSubschemas([&](unsigned, const valijson::Subschema *schema) {
            if (index == elements.size()) return false;
            fits = run_element(*schema, elements[index], index) && fits;
            index += 1;
            return fits || is_loud();
        });
        // valijson has no schema here where additionalItems is false.
        const valijson::Subschema *rest = constraint.getAdditionalItemsSubschema();
        for (; index < elements.size() && (fits || is_loud()); index += 1) {
            fits = (rest == nullptr ? fault_at(std::to_string(index), "the schema has no such element")
                                    : run_element(*rest, elements[index], index)) && fits;
        }
        return fits;
    }

    bool visit(const PropertiesConstraint &constraint) override {
        if (!value_->is_object()) return true;
        const json::object_t &members = value_->get_ref<const json::object_t &>();
        bool fits = true;
        std::vector<const json *> known;
        constraint.applyToProperties([&](const auto &name, const valijson::Subschema *schema) {
            const auto found = members.find(std::string_view(name.data(), name.size()));
            if (found == members.end()) return true;
            known.push_back(&found->second);
            fits = run_member(*schema, found->second, found->first) && fits;
            return fits || is_loud();
        });
        if (!fits && !is_loud()) return false;
        if (known.size() == members.size() && !has_patterns(constraint)) return fits;
        // Both are in the order of the names.
        auto next = known.begin();
        for (const auto &member : members) {
            bool is_known = next != known.end() && *next == &member.second;
            if (is_known) ++next;
            constraint.applyToPatternProperties([&](const auto &number, const valijson::Subschema *schema) {
                if (!matches(std::stoul(text(number)), member.first)) return true;
                is_known = true;
                fits = run_member(*schema, member.second, member.first) && fits;
                return fits || is_loud();
            });
            if (!is_known) {
                // valijson has no schema here where additionalProperties is false.
                const valijson::Subschema *rest = constraint.getAdditionalPropertiesSubschema();
                fits = (rest == nullptr ? fault_at(member.first, "the schema has no such member")
                                        : run_member(*rest, member.second, member.first)) && fits;
            }
            if (!fits && !is_loud()) return false;
        }
        return fits;
    }

    bool visit(const PropertyNamesConstraint &constraint) override {
        if (!value_->is_object()) return true;
        bool fits = true;
        for (const auto &member : value_->get_ref<const json::object_t &>()) {
            if (quietly(*constraint.getSubschema(), json(member.first))) continue;
            fits = fault_at(member.first, "the schema does not allow this name");
            if (!is_loud()) break;
        }
        return fits;
    }

    bool visit(const RequiredConstraint &constraint) override {
        if (!value_->is_object()) return true;
        bool fits = true;
        constraint.applyToRequiredProperties([&](const auto &name) {
            if (member(name) == nullptr) fits = fault_at(text(name), "is missing");
            return fits || is_loud();
        });
        return fits;
    }

    bool visit(const TypeConstraint &constraint) override {
        bool fits = false;
        constraint.applyToNamedTypes([&](TypeConstraint::JsonType type) {
            fits = is(*value_, type);
            return !fits;
        });
        if (fits || !is_loud()) return fits;
        std::string names;
        constraint.applyToNamedTypes([&](TypeConstraint::JsonType type) {
            names += (names.empty() ? "" : " or ") + std::string(name_of(type));
            return true;
        });
        return fault("expected " + names);
    }

    bool visit(const UniqueItemsConstraint &) override {
        size_t first = 0, second = 0;
        if (!value_->is_array() || !find_equal(*value_, first, second)) return true;
        return fault_at(std::to_string(second), "is the same as the element " + std::to_string(first));
    }

    bool visit(const MaxItemsConstraint &constraint) override {
        return !value_->is_array() || at_most(value_->size(), constraint.getMaxItems(), "elements");
    }
    bool visit(const MinItemsConstraint &constraint) override {
        return !value_->is_array() || at_least(value_->size(), constraint.getMinItems(), "elements");
    }
    bool visit(const MaxPropertiesConstraint &constraint) override {
        return !value_->is_object() || at_most(value_->size(), constraint.getMaxProperties(), "members");
    }
    bool visit(const MinPropertiesConstraint &constraint) override {
        return !value_->is_object() || at_least(value_->size(), constraint.getMinProperties(), "members");
    }
    bool visit(const MaxLengthConstraint &constraint) override {
        return !value_->is_string() || at_most(length(*value_), constraint.getMaxLength(), "characters");
    }
    bool visit(const MinLengthConstraint &constraint) override {
        return !value_->is_string() || at_least(length(*value_), constraint.getMinLength(), "characters");
    }

    bool visit(const PolyConstraint &constraint) override {
        const Rule &rule = static_cast<const Rule &>(constraint);
        if (rule.kind == Rule::at) return run(schemas_.schemas[rule.number], *value_, frame_);
        if (rule.kind == Rule::pattern) {
            return !value_->is_string() || matches(rule.number, value_->get_ref<const std::string &>())
                || fault("failed to match the pattern " + schemas_.patterns[rule.number]->pattern());
        }
        const json &wanted = schemas_.values[rule.number];
        if (rule.kind == Rule::equals) return equal(*value_, wanted) || fault_of("expected ", wanted);
        if (rule.kind == Rule::one_of) {
            for (const json &value : wanted) {
                if (equal(*value_, value)) return true;
            }
            return fault_of("expected one of ", wanted);
        }
        if (!value_->is_number()) return true;
        switch (rule.kind) {
        case Rule::maximum: return compare(*value_, wanted) <= 0 || fault_of("expected at most ", wanted);
        case Rule::minimum: return compare(*value_, wanted) >= 0 || fault_of("expected at least ", wanted);
        case Rule::exclusive_maximum: return compare(*value_, wanted) < 0 || fault_of("expected less than ", wanted);
        case Rule::exclusive_minimum: return compare(*value_, wanted) > 0 || fault_of("expected more than ", wanted);
        default: return is_multiple(*value_, wanted) || fault_of("expected a multiple of ", wanted);
        }
    }

    // A rule stands for each of these, so that no schema has one.
    bool visit(const ConstConstraint &) override { return false; }
    bool visit(const EnumConstraint &) override { return false; }
    bool visit(const FormatConstraint &) override { return false; }
    bool visit(const MaximumConstraint &) override { return false; }
    bool visit(const MinimumConstraint &) override { return false; }
    bool visit(const MultipleOfDoubleConstraint &) override { return false; }
    bool visit(const MultipleOfIntConstraint &) override { return false; }
    bool visit(const PatternConstraint &) override { return false; }

private:
    /// A step of the way to a value: a member or an element of the one before it.
    struct Frame {
        const Frame *outer;
        const std::string *name;
        size_t index;
    };

    bool run(const valijson::Subschema &schema, const json &value, const Frame *frame) {
        if (is_stopped_) return false;
        steps_ += 1;
        if (steps_ > steps_max_) return stop(frame, "the schema has too many choices for a value of this size");
        if (depth_ == depth_max) return stop(frame, "is nested too deeply for its schema");
        if (schema.getAlwaysInvalid()) return fault_in(frame, "the schema allows no value here");
        const json *outer_value = value_;
        const Frame *outer_frame = frame_;
        value_ = &value;
        frame_ = frame;
        depth_ += 1;
        const bool fits = is_loud() ? schema.apply(each_) : schema.applyStrict(each_);
        depth_ -= 1;
        value_ = outer_value;
        frame_ = outer_frame;
        return fits;
    }

    bool run_member(const valijson::Subschema &schema, const json &value, const std::string &name) {
        const Frame frame{frame_, &name, 0};
        return run(schema, value, &frame);
    }

    bool run_element(const valijson::Subschema &schema, const json &value, size_t index) {
        const Frame frame{frame_, nullptr, index};
        return run(schema, value, &frame);
    }

    /// Whether a value fits a schema, whose faults are nobody's.
    bool quietly(const valijson::Subschema &schema, const json &value) {
        const size_t most = most_;
        most_ = 0;
        const bool fits = run(schema, value, frame_);
        most_ = most;
        return fits;
    }

    /// Whether faults are still taken; otherwise the first one ends the check.
    bool is_loud() const { return faults_.size() < most_; }

    bool fault(const std::string &sentence) { return fault_in(frame_, sentence); }

    bool fault_at(const std::string &name, const std::string &sentence) {
        const Frame frame{frame_, &name, 0};
        return fault_in(&frame, sentence);
    }

    /// A fault with a value of the schema in its sentence, where that is short.
    bool fault_of(const char *start, const json &wanted) {
        if (!is_loud()) return false;
        std::string text = wanted.dump(-1, ' ', false, json::error_handler_t::replace);
        return fault(start + (text.size() <= 200 ? text : "what the schema has"));
    }

    bool fault_in(const Frame *frame, const std::string &sentence) {
        if (!is_loud()) return false;
        std::vector<std::string> way;
        for (; frame != nullptr; frame = frame->outer) {
            way.push_back(frame->name != nullptr ? *frame->name : std::to_string(frame->index));
        }
        std::reverse(way.begin(), way.end());
        faults_.emplace_back(std::move(way), sentence);
        return false;
    }

    /// Ends the check, of which this is a fault, also within a schema whose faults are nobody's.
    bool stop(const Frame *frame, const char *sentence) {
        const size_t most = most_;
        most_ = faults_.size() + 1;
        fault_in(frame, sentence);
        most_ = most;
        is_stopped_ = true;
        return false;
    }

    bool at_most(uint64_t count, uint64_t limit, const char *of_what) {
        return count <= limit || fault("expected at most " + std::to_string(limit) + " " + of_what);
    }

    bool at_least(uint64_t count, uint64_t limit, const char *of_what) {
        return count >= limit || fault("expected at least " + std::to_string(limit) + " " + of_what);
    }

    bool matches(size_t number, const std::string &text) const {
        return re2::RE2::PartialMatch(text, *schemas_.patterns[number]);
    }

    template <typename Name> const json *member(const Name &name) const {
        const json::object_t &members = value_->get_ref<const json::object_t &>();
        const auto found = members.find(std::string_view(name.data(), name.size()));
        return found == members.end() ? nullptr : &found->second;
    }

    template <typename Name> static std::string text(const Name &name) { return std::string(name.data(), name.size()); }

    static bool has_patterns(const PropertiesConstraint &constraint) {
        bool has_one = false;
        constraint.applyToPatternProperties([&](const auto &, const valijson::Subschema *) {
            has_one = true;
            return false;
        });
        return has_one;
    }

    /// The characters of Unicode.
    static uint64_t length(const json &value) {
        const std::string &text = value.get_ref<const std::string &>();
        return static_cast<uint64_t>(
            std::count_if(text.begin(), text.end(), [](char c) { return (static_cast<unsigned char>(c) & 0xC0) != 0x80; }));
    }

    static bool is(const json &value, TypeConstraint::JsonType type) {
        switch (type) {
        case TypeConstraint::kArray: return value.is_array();
        case TypeConstraint::kBoolean: return value.is_boolean();
        case TypeConstraint::kInteger: return value.is_number() && is_whole(value);
        case TypeConstraint::kNull: return value.is_null();
        case TypeConstraint::kNumber: return value.is_number();
        case TypeConstraint::kObject: return value.is_object();
        case TypeConstraint::kString: return value.is_string();
        default: return true;
        }
    }

    static const char *name_of(TypeConstraint::JsonType type) {
        switch (type) {
        case TypeConstraint::kArray: return "array";
        case TypeConstraint::kBoolean: return "boolean";
        case TypeConstraint::kInteger: return "integer";
        case TypeConstraint::kNull: return "null";
        case TypeConstraint::kNumber: return "number";
        case TypeConstraint::kObject: return "object";
        case TypeConstraint::kString: return "string";
        default: return "any";
        }
    }

    const Schemas &schemas_;
    const size_t steps_max_;
    std::function<bool(const valijson::constraints::Constraint &)> each_;
    const json *value_ = nullptr;
    const Frame *frame_ = nullptr;
    size_t steps_ = 0;
    size_t depth_ = 0;
    size_t most_ = 0;
    bool is_stopped_ = false;
    std::vector<std::pair<std::vector<std::string>, std::string>> faults_;
};

}  // namespace storekeeper
