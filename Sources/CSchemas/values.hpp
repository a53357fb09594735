#pragma once

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <functional>
#include <nlohmann/json.hpp>
#include <string>
#include <unordered_map>
#include <vector>

// JSON values as JSON Schema compares them: numbers by their value, whatever they are spelled like.
//
// Whole numbers of 64 bits are exact. Others are doubles.

namespace storekeeper {

using json = nlohmann::json;

inline __int128 whole_of(const json &number) {
    return number.is_number_unsigned() ? static_cast<__int128>(number.get<uint64_t>())
                                       : static_cast<__int128>(number.get<int64_t>());
}

/// -1, 0 or 1: whether a whole number is less than a double, equal or more.
inline int compare_whole(__int128 whole, double other) {
    // Beyond every whole number of 64 bits, and within what the cast below can hold.
    if (other >= 1e20) return -1;
    if (other <= -1e20) return 1;
    const double floor = std::floor(other);
    const auto rounded = static_cast<__int128>(floor);
    if (whole != rounded) return whole < rounded ? -1 : 1;
    return other > floor ? -1 : 0;
}

/// -1, 0 or 1: whether a number is less than another, equal or more.
inline int compare(const json &left, const json &right) {
    if (left.is_number_float() && right.is_number_float()) {
        const double a = left.get<double>(), b = right.get<double>();
        return a < b ? -1 : a > b ? 1 : 0;
    }
    if (left.is_number_float()) return -compare_whole(whole_of(right), left.get<double>());
    if (right.is_number_float()) return compare_whole(whole_of(left), right.get<double>());
    const __int128 a = whole_of(left), b = whole_of(right);
    return a < b ? -1 : a > b ? 1 : 0;
}

/// Whether a number has no fraction: 1.0 has none.
inline bool is_whole(const json &number) {
    if (!number.is_number_float()) return true;
    const double value = number.get<double>();
    return std::isfinite(value) && value == std::floor(value);
}

/// Whether two values are equal; it recurses as deep as both are nested.
inline bool equal(const json &left, const json &right) {
    if (left.is_number() && right.is_number()) return compare(left, right) == 0;
    if (left.type() != right.type()) return false;
    if (left.is_array()) {
        return left.size() == right.size() && std::equal(left.begin(), left.end(), right.begin(), equal);
    }
    if (left.is_object()) {
        // The members are in the order of their names.
        const auto &a = left.get_ref<const json::object_t &>(), &b = right.get_ref<const json::object_t &>();
        return a.size() == b.size() && std::equal(a.begin(), a.end(), b.begin(), [](const auto &one, const auto &other) {
            return one.first == other.first && equal(one.second, other.second);
        });
    }
    return left == right;
}

/// A hash that equal values have in common.
inline size_t hash(const json &value) {
    size_t sum = value.is_number() ? 1 : static_cast<size_t>(value.type()) + 2;
    const auto add = [&](size_t next) { sum = (sum ^ next) * 0x9E3779B97F4A7C15ull + (sum >> 29); };
    if (value.is_number()) {
        // Each number has one nearest double; 0 and -0 are equal and have different bits.
        const double number = value.get<double>();
        add(std::hash<double>()(number == 0 ? 0 : number));
    } else if (value.is_string()) {
        add(std::hash<std::string>()(value.get_ref<const std::string &>()));
    } else if (value.is_boolean()) {
        add(value.get<bool>());
    } else if (value.is_array()) {
        for (const json &element : value) add(hash(element));
    } else if (value.is_object()) {
        for (const auto &member : value.get_ref<const json::object_t &>()) {
            add(std::hash<std::string>()(member.first));
            add(hash(member.second));
        }
    }
    return sum;
}

/// The indices of the first two elements that are equal; O(n).
inline bool find_equal(const json &array, size_t &first, size_t &second) {
    std::unordered_multimap<size_t, size_t> known;
    known.reserve(array.size());
    for (size_t index = 0; index < array.size(); index += 1) {
        const size_t hashed = hash(array[index]);
        const auto [begin, end] = known.equal_range(hashed);
        for (auto found = begin; found != end; ++found) {
            if (!equal(array[found->second], array[index])) continue;
            first = found->second;
            second = index;
            return true;
        }
        known.emplace(hashed, index);
    }
    return false;
}

/// The digits of a number without zeros behind them, and the power of ten that they are multiplied by.
struct Decimal {
    unsigned __int128 digits = 0;
    int exponent = 0;

    /// The shortest spelling that is the number has at most 20 digits.
    explicit Decimal(const json &number) {
        bool is_fraction = false;
        const std::string text = number.dump();
        for (size_t index = 0; index < text.size(); index += 1) {
            const char c = text[index];
            if (c == '.') is_fraction = true;
            if (c == 'e' || c == 'E') {
                exponent += std::stoi(text.substr(index + 1));
                break;
            }
            if (c < '0' || c > '9') continue;
            digits = digits * 10 + static_cast<unsigned>(c - '0');
            if (is_fraction) exponent -= 1;
        }
        while (digits != 0 && digits % 10 == 0) {
            digits /= 10;
            exponent += 1;
        }
    }
};

/// Whether a number is a multiple of another one that is more than 0: of their digits, so 0.0075 is one of 0.0001.
inline bool is_multiple(const json &number, const json &divisor) {
    const Decimal value(number), unit(divisor);
    if (value.digits == 0) return true;
    unsigned __int128 rest = value.digits % unit.digits;
    for (int power = value.exponent - unit.exponent; power > 0 && rest != 0; power -= 1) rest = rest * 10 % unit.digits;
    if (value.exponent >= unit.exponent) return rest == 0;
    unsigned __int128 scaled = unit.digits;
    for (int power = unit.exponent - value.exponent; power > 0; power -= 1) {
        if (scaled > value.digits) return false;
        scaled *= 10;
    }
    return value.digits % scaled == 0;
}

}  // namespace storekeeper
