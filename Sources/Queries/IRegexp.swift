internal import StateJSON

/// Regular expressions of RFC 9485 (I-Regexp), as RE2 spells them.
///
/// RE2 takes more than the standard allows. What it takes in addition is refused here, so that every server of the standard
/// gives the same answers.
struct IRegexp: Hashable, Sendable {
    private let text: ExactText

    enum Compiled: Sendable {
        case pattern(Pattern)
        /// The text is not of the standard, by which it then matches nothing.
        case unreadable
        case tooLarge
    }

    /// The most instructions of RE2 in the patterns of a filter: some milliseconds to compile, and about 16 bytes each.
    ///
    /// A class such as `\p{L}` has a thousand, and `\p{L}{20}` has it twenty times.
    static let sizeMax = 20_000
    /// The memory in which a pattern of this size and its matches have room.
    private static let memoryMax = 512 << 10

    init?(_ text: String, isWhole: Bool) {
        guard let translated = Self.translated(text) else { return nil }
        self.text = ExactText(isWhole ? "\\A(?:\(translated))\\z" : translated)
    }

    /// Compiles the expression, which takes up to some hundred milliseconds for a long one.
    func compiled() -> Compiled {
        do throws(Pattern.Fault) {
            let pattern = try Pattern(text.text, memoryMax: Self.memoryMax)
            return pattern.size <= Self.sizeMax ? .pattern(pattern) : .tooLarge
        } catch {
            return error.isTooLarge ? .tooLarge : .unreadable
        }
    }

    private static let escapable = Set("()*+-.?[\\]^{|}nrt".unicodeScalars)
    private static let quantifiers = Set("*+?".unicodeScalars)

    private static func translated(_ text: String) -> String? {
        let characters = Array(text.unicodeScalars)
        var translated = String.UnicodeScalarView()
        var (index, canRepeat) = (0, false)
        while index < characters.count {
            let character = characters[index]
            switch character {
            case ".":
                translated += "[^\\n\\r]".unicodeScalars
                canRepeat = true
            case "\\":
                guard let escape = escape(in: characters, at: index) else { return nil }
                translated += characters[index..<escape]
                index = escape - 1
                canRepeat = true
            case "[":
                guard let end = classEnd(in: characters, from: index) else { return nil }
                translated += characters[index..<end]
                index = end - 1
                canRepeat = true
            case "*", "+", "?":
                guard canRepeat else { return nil }
                translated.append(character)
                canRepeat = false
            case "{":
                guard canRepeat, let end = quantityEnd(in: characters, from: index) else { return nil }
                translated += characters[index..<end]
                index = end - 1
                canRepeat = false
            case "(":
                guard index + 1 >= characters.count || !quantifiers.contains(characters[index + 1]) else { return nil }
                translated += "(?:".unicodeScalars
                canRepeat = false
            case ")":
                translated.append(character)
                canRepeat = true
            case "|":
                translated.append(character)
                canRepeat = false
            case "]", "}": return nil
            default:
                translated.append(character)
                canRepeat = true
            }
            index += 1
        }
        return String(translated)
    }

    private static func escape(in characters: [Unicode.Scalar], at start: Int) -> Int? {
        guard start + 1 < characters.count else { return nil }
        let escaped = characters[start + 1]
        if escapable.contains(escaped) { return start + 2 }
        guard escaped == "p" || escaped == "P", start + 2 < characters.count, characters[start + 2] == "{",
            let end = characters[start...].firstIndex(of: "}"), (start + 4...start + 5).contains(end)
        else { return nil }
        return end + 1
    }

    private static func classEnd(in characters: [Unicode.Scalar], from start: Int) -> Int? {
        var index = start + 1
        if index < characters.count, characters[index] == "^" { index += 1 }
        let first = index
        while index < characters.count {
            switch characters[index] {
            case "]": return index > first ? index + 1 : nil
            case "[": return nil
            case "\\":
                guard let end = escape(in: characters, at: index) else { return nil }
                index = end
            case "-":
                // First, last, or between the two ends of a range.
                let isLast = index + 1 < characters.count && characters[index + 1] == "]"
                guard index == first || isLast || index + 1 < characters.count && characters[index + 1] != "-" else {
                    return nil
                }
                index += 1
            default: index += 1
            }
        }
        return nil
    }

    private static func quantityEnd(in characters: [Unicode.Scalar], from start: Int) -> Int? {
        guard let end = characters[start...].firstIndex(of: "}") else { return nil }
        let parts = characters[(start + 1)..<end].split(separator: ",", omittingEmptySubsequences: false)
        let areNumbers = parts.allSatisfy { $0.allSatisfy { ("0"..."9").contains($0) } }
        guard areNumbers, parts.count <= 2, parts.first?.isEmpty == false else { return nil }
        return end + 1
    }
}
