/// The data of a server-sent event, in lines of a bounded length.
///
/// Compact JSON has no line break, so one `data:` line could hold any value; but readers have a longest line, aiohttp's
/// 512 KiB. A reader joins the lines of an event with line feeds (the HTML standard, section 9.2.6), which are white
/// space between two tokens of JSON.
enum EventData {
    /// From this length on, a line ends behind the next comma between two members or elements.
    static let lineBytesMax = 128 << 10

    /// Compact JSON as the content of `data:` lines, without the first `data: `; a longer string stays in one line.
    ///
    /// The cost is O(n) in the size of the text.
    static func lines(of json: ArraySlice<UInt8>) -> [UInt8] {
        var lines: [UInt8] = []
        lines.reserveCapacity(json.count + json.count / lineBytesMax * 8)
        var (begin, isInString, isEscaped) = (json.startIndex, false, false)
        for index in json.indices {
            let byte = json[index]
            if isInString {
                if isEscaped {
                    isEscaped = false
                } else if byte == UInt8(ascii: "\\") {
                    isEscaped = true
                } else if byte == UInt8(ascii: "\"") {
                    isInString = false
                }
            } else if byte == UInt8(ascii: "\"") {
                isInString = true
            } else if byte == UInt8(ascii: ","), index - begin >= lineBytesMax {
                lines += json[begin...index]
                lines += "\ndata: ".utf8
                begin = index + 1
            }
        }
        return lines + json[begin...]
    }
}
