/// Reads figures from the text files of Linux and from `/metrics`.
package enum Facts {
    /// The number of kibibytes after a name in the form of `/proc/<pid>/status` and `/proc/meminfo`, such as `VmRSS:  1234 kB`.
    package static func kibibytes(_ name: String, in text: String) -> Double? {
        value(name, in: text)?.split(separator: " ").first.flatMap { Double($0) }
    }

    /// The text behind `name` and a colon or an equals sign, without the blanks and quotes around it.
    package static func value(_ name: String, in text: String) -> String? {
        for line in text.split(separator: "\n") {
            guard let mark = line.firstIndex(where: { $0 == ":" || $0 == "=" }),
                trimmed(line[..<mark]) == name
            else { continue }
            return trimmed(line[line.index(after: mark)...])
        }
        return nil
    }

    /// The value of a gauge or counter without labels in Prometheus' text format.
    package static func metric(_ name: String, in text: String) -> Double? {
        text.split(separator: "\n").first { $0.hasPrefix(name + " ") }?.split(separator: " ").last.flatMap {
            Double($0)
        }
    }

    private static func trimmed(_ text: Substring) -> String {
        let isMargin: (Character) -> Bool = { $0 == " " || $0 == "\t" || $0 == "\"" }
        let head = text.drop(while: isMargin)
        return String(head.prefix(head.count - head.reversed().prefix(while: isMargin).count))
    }
}
