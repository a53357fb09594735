#if canImport(Glibc)
    internal import Glibc
#else
    internal import Darwin
#endif

/// Which bytes in memory make the values of a type: where they are the same, two values are one.
///
/// `==` would not do: it may compare an ID only, and strings that are equal in Swift can have different bytes. Memory says
/// more, for types whose values are in it or in storage that is copied before it changes: numbers, strings, arrays, sets,
/// dictionaries, optionals and structs of these. An object can change in its place, so a type that may hold one has no shape;
/// neither have an enum with payloads that refer to storage and a struct with a mirror of its own. The bytes between the fields
/// do not count, because a copy need not have them.
struct ValueShape: Sendable {
    private let ranges: [Range<Int>]

    /// Finds the shape of a type by one of its values.
    ///
    /// - Returns: nil where the type has none, or where an empty part of the value does not tell what it can hold.
    init?<Value>(of value: Value) {
        guard let ranges = Self.ranges(of: value) else { return nil }
        self.ranges = ranges
    }

    /// The runs of elements that are the same in two arrays: those before the first difference, and behind it those at the same
    /// distance from the end.
    ///
    /// - Returns: ranges in the new array, in order, each with what leads from its indices to those in the old one.
    func equalRuns<Element>(_ old: [Element], _ new: [Element]) -> [(range: Range<Int>, shift: Int)] {
        old.withUnsafeBytes { oldBytes in
            new.withUnsafeBytes { newBytes in
                let stride = MemoryLayout<Element>.stride
                func isSame(_ oldIndex: Int, _ newIndex: Int) -> Bool {
                    guard let left = oldBytes.baseAddress, let right = newBytes.baseAddress else { return false }
                    return ranges.allSatisfy { range in
                        memcmp(
                            left + oldIndex * stride + range.lowerBound, right + newIndex * stride + range.lowerBound,
                            range.count) == 0
                    }
                }
                var prefix = 0
                while prefix < min(old.count, new.count), isSame(prefix, prefix) { prefix += 1 }
                var runs = prefix > 0 ? [(range: 0..<prefix, shift: 0)] : []
                let shift = old.count - new.count
                var index = max(prefix, prefix - shift)
                while index < new.count {
                    let start = index
                    while index < new.count, isSame(index + shift, index) { index += 1 }
                    if index > start { runs.append((start..<index, shift)) }
                    index += 1
                }
                return runs
            }
        }
    }

    private static func ranges<Value>(of value: Value) -> [Range<Int>]? {
        let whole = [0..<MemoryLayout<Value>.size]
        if Value.self == String.self { return whole }
        if let holder = value as? any ValueHolder { return holder.holdsValues || _isPOD(Value.self) ? whole : nil }
        let mirror = Mirror(reflecting: value)
        guard mirror.displayStyle == .struct, !(value is any CustomReflectable),
            let fields = fields(mirror, size: MemoryLayout<Value>.size)
        else { return _isPOD(Value.self) ? whole : nil }
        return fields
    }

    /// The ranges of the fields; nil where a field has no shape, or where they do not lie as Swift lays out the fields' types.
    private static func fields(_ mirror: Mirror, size: Int) -> [Range<Int>]? {
        var ranges: [Range<Int>] = []
        var offset = 0
        for child in mirror.children {
            guard let field = field(child.value) else { return nil }
            offset = (offset + field.alignment - 1) / field.alignment * field.alignment
            for range in field.ranges {
                let (start, end) = (offset + range.lowerBound, offset + range.upperBound)
                if let last = ranges.last, last.upperBound == start {
                    ranges[ranges.count - 1] = last.lowerBound..<end
                } else {
                    ranges.append(start..<end)
                }
            }
            offset += field.size
        }
        return offset == size ? ranges : nil
    }

    private static func field(_ value: Any) -> (ranges: [Range<Int>], size: Int, alignment: Int)? {
        func field<Value>(_ value: Value) -> (ranges: [Range<Int>], size: Int, alignment: Int)? {
            ranges(of: value).map { ($0, MemoryLayout<Value>.size, MemoryLayout<Value>.alignment) }
        }
        return _openExistential(value, do: field)
    }

    /// Whether a type has a shape, as far as one of its values tells, which is nil where there is none.
    fileprivate static func isValue<Value>(_ type: Value.Type, _ sample: Value?) -> Bool {
        if let sample { return ranges(of: sample) != nil }
        return Value.self == String.self || _isPOD(Value.self)
    }
}

/// An optional or a collection of the standard library.
private protocol ValueHolder {
    /// Whether what it holds has a shape, as far as it tells.
    var holdsValues: Bool { get }
}

extension Optional: ValueHolder {
    fileprivate var holdsValues: Bool { ValueShape.isValue(Wrapped.self, self) }
}

extension Array: ValueHolder {
    fileprivate var holdsValues: Bool { ValueShape.isValue(Element.self, first) }
}

extension Set: ValueHolder {
    fileprivate var holdsValues: Bool { ValueShape.isValue(Element.self, first) }
}

extension Dictionary: ValueHolder {
    fileprivate var holdsValues: Bool {
        ValueShape.isValue(Key.self, first?.key) && ValueShape.isValue(Value.self, first?.value)
    }
}
