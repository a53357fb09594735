internal import StateJSON

// A string that occurs in a text before it is written as twice its offset there and its size; any other as twice its size
// plus one and its bytes.

extension ByteWriter {
    mutating func places(of strings: [String], after mark: StaticString, in text: [UInt8]) {
        text.withUnsafeBufferPointer { text in
            var from = 0
            for var string in strings {
                let size = string.utf8.count
                if let place = text.end(of: mark, from: from), string.withUTF8({ text.has($0, at: place) }) {
                    number(place << 1)
                    number(size)
                    from = place + size
                } else {
                    number(size << 1 | 1)
                    string.withUTF8 { raw($0) }
                }
            }
        }
    }

    mutating func places(of pointers: ArraySlice<JSONPointer>, in patch: [UInt8]) {
        patch.withUnsafeBufferPointer { patch in
            var from = 0
            for pointer in pointers {
                if let place = patch.end(of: "\"path\":\"", from: from), let size = patch.size(of: pointer, at: place) {
                    number(place << 1)
                    number(size)
                    from = place + size
                } else {
                    var text = pointer.description
                    number(text.utf8.count << 1 | 1)
                    text.withUTF8 { raw($0) }
                }
            }
        }
    }
}

extension ByteReader {
    mutating func places(_ count: Int, in text: [UInt8]) throws(SegmentFault) -> [String] {
        var strings: [String] = []
        for _ in 0..<count {
            let start = try number()
            if start & 1 == 1 {
                guard start >> 1 <= UInt64(Int32.max) else { throw .malformed }
                strings.append(String(decoding: try raw(Int(start >> 1)), as: UTF8.self))
            } else {
                guard start >> 1 <= UInt64(text.count) else { throw .malformed }
                let size = try self.count(upTo: text.count - Int(start >> 1))
                strings.append(String(decoding: text[Int(start >> 1)..<Int(start >> 1) + size], as: UTF8.self))
            }
        }
        return strings
    }
}

extension UnsafeBufferPointer<UInt8> {
    /// Bounds the time for large texts.
    private static var searchMax: Int { 256 }

    fileprivate func end(of mark: StaticString, from offset: Int) -> Int? {
        let mark = UnsafeBufferPointer(start: mark.utf8Start, count: mark.utf8CodeUnitCount)
        let limit = Swift.min(count - mark.count, offset + Self.searchMax)
        var index = offset
        while index <= limit {
            if self[index] == mark[0], has(mark, at: index) { return index + mark.count }
            index += 1
        }
        return nil
    }

    fileprivate func has(_ other: Self, at offset: Int) -> Bool {
        guard other.count <= count - offset else { return false }
        for index in 0..<other.count where self[offset + index] != other[index] { return false }
        return true
    }

    /// Nil if it does not stand there, or needs escapes.
    fileprivate func size(of pointer: JSONPointer, at offset: Int) -> Int? {
        var end = offset
        for var token in pointer.tokens {
            guard end < count, self[end] == UInt8(ascii: "/") else { return nil }
            let size = token.withUTF8 { token -> Int? in
                let isPlain = !token.contains { $0 == UInt8(ascii: "/") || $0 == UInt8(ascii: "~") }
                return isPlain && has(token, at: end + 1) ? token.count : nil
            }
            guard let size else { return nil }
            end += 1 + size
        }
        return end - offset
    }
}
