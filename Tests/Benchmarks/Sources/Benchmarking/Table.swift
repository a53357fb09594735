/// A table for plain text and Markdown; each column is as wide as its widest cell.
package struct Table: Equatable, Sendable {
    private var rows: [[String]]

    /// Makes a table with the headings of its columns.
    package init(_ headings: [String]) {
        rows = [headings]
    }

    /// Adds a row; a nil cell is a dash, and a column with dashes only is left out.
    package mutating func add(_ cells: [String?]) {
        precondition(cells.count == rows[0].count, "a row has a cell for each heading")
        rows.append(cells.map { $0 ?? "-" })
    }

    /// The same table in Markdown.
    package var markdown: String {
        let lines = rows.map { row in "| \(columns.map { row[$0] }.joined(separator: " | ")) |" }
        let rule = "|" + columns.map { _ in " --- |" }.joined()
        return ([lines[0], rule] + lines.dropFirst()).joined(separator: "\n")
    }

    private var columns: [Int] {
        rows[0].indices.filter { column in
            rows.count == 1 || rows.dropFirst().contains { $0[column] != "-" }
        }
    }

    /// The table as lines of text; the first column is left-aligned, the others are right-aligned.
    package var text: String {
        let columns = columns
        let widths = columns.map { column in rows.map { $0[column].count }.max() ?? 0 }
        return rows.map { row in
            let cells = zip(columns, widths).enumerated().map { index, column in
                let cell = row[column.0]
                let padding = String(repeating: " ", count: column.1 - cell.count)
                return index == 0 ? cell + padding : padding + cell
            }
            let line = cells.joined(separator: "  ")
            return "  " + line.prefix(line.count - line.reversed().prefix { $0 == " " }.count)
        }.joined(separator: "\n")
    }
}
