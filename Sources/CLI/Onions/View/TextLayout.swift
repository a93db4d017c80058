/// A text in rows of a screen: broken at its line ends, and in a full row after the last space; within a word only if
/// it is longer than a row. Positions are UTF-16 code units, as in `TypedText`; columns are cells, of which some
/// characters take two.
struct TextLayout: Sendable {
    /// Cells of a scalar on the terminal: 0, 1 or 2; negative: the scalar must not be shown.
    typealias Width = @Sendable (Unicode.Scalar) -> Int

    struct Row: Sendable, Equatable {
        /// The visible text of the row.
        let shown: String
        /// The row's range in the text; a line end belongs to no row.
        let range: Range<Int>
    }

    /// At least one.
    let rows: [Row]
    private let text: String
    private let columns: Int
    private let width: Width

    /// - Parameter columns: at least 2, so that characters of two cells fit.
    init(_ text: String, columns: Int, width: @escaping Width) {
        (self.text, self.width, self.columns) = (text, width, max(2, columns))
        var rows = [Row]()
        var line = Line(start: 0)
        for character in text {
            if character.isNewline {
                rows.append(line.row)
                line = Line(start: line.end + character.utf16.count)
                continue
            }
            let piece = Self.shown(character, width)
            // Spaces after a full row stay in it invisibly, so that the next row begins with a word.
            let isSpace = character.isWhitespace && !Self.joining.contains(character)
            if !isSpace, line.cells + piece.cells > self.columns { rows.append(line.broken()) }
            // The part that was carried over may fill the row by itself.
            if !isSpace, line.cells + piece.cells > self.columns { rows.append(line.broken()) }
            let isSeen = line.cells + piece.cells <= self.columns
            line.add(isSeen ? piece : ("", 0), units: character.utf16.count, isSpace: isSpace)
        }
        self.rows = rows + [line.row]
    }

    /// Spaces at which a row must not end.
    private static let joining: Set<Character> = ["\u{A0}", "\u{2007}", "\u{202F}"]

    /// A row that is being filled.
    private struct Line {
        private struct Piece {
            let text: String
            let cells: Int
            let units: Int
        }

        private(set) var start: Int
        private var pieces = [Piece]()
        /// Pieces up to the last space.
        private var words = 0
        private(set) var cells = 0
        private(set) var end: Int

        init(start: Int) { (self.start, end) = (start, start) }

        var row: Row { Row(shown: pieces.map(\.text).joined(), range: start..<end) }

        mutating func add(_ piece: (text: String, cells: Int), units: Int, isSpace: Bool) {
            pieces.append(Piece(text: piece.text, cells: piece.cells, units: units))
            if isSpace { words = pieces.count }
            cells += piece.cells
            end += units
        }

        /// The row up to the last space, or all of it without one; the rest becomes the next row.
        mutating func broken() -> Row {
            let rest = words > 0 ? pieces[words...] : []
            var next = Line(start: end - rest.reduce(0) { $0 + $1.units })
            for piece in rest { next.add((piece.text, piece.cells), units: piece.units, isSpace: false) }
            pieces.removeLast(rest.count)
            end = next.start
            defer { self = next }
            return row
        }
    }

    /// A character as it is shown: one that would control the terminal, or change the direction of the text after it,
    /// becomes a dot.
    static func shown(_ character: Character, _ width: Width) -> (text: String, cells: Int) {
        if character == "\t" { return (" ", 1) }
        var cells = 0
        for scalar in character.unicodeScalars {
            let own = width(scalar)
            switch scalar.value {
            case 0x00..<0x20, 0x7F..<0xA0, 0x200E, 0x200F, 0x202A...0x202E, 0x2066...0x2069: return ("·", 1)
            default: if own < 0 { return ("·", 1) }
            }
            cells += own
        }
        // A combining mark without a base character takes a cell.
        return cells == 0 ? ("·", 1) : (String(character), cells)
    }

    /// Cells of a text in one row.
    static func cells(_ text: some StringProtocol, _ width: Width) -> Int {
        text.reduce(0) { $0 + shown($1, width).cells }
    }

    /// As much of a text as fits into the cells, shown as in rows.
    static func fitted(_ text: String, columns: Int, _ width: Width) -> String {
        var (result, cells): (String, Int) = ("", 0)
        for character in text {
            let piece: (text: String, cells: Int) = character.isNewline ? (" ", 1) : shown(character, width)
            guard cells + piece.cells <= columns else { break }
            result += piece.text
            cells += piece.cells
        }
        return result
    }

    /// A sentence in rows, broken between words, and within a word only if it is longer than a row.
    static func lines(_ text: String, columns: Int, _ width: @escaping Width) -> [String] {
        var lines = [String]()
        for word in text.split(whereSeparator: \.isWhitespace) {
            if let last = lines.last, cells(last, width) + 1 + cells(word, width) <= columns {
                lines[lines.count - 1] = last + " " + word
                continue
            }
            lines += TextLayout(String(word), columns: columns, width: width).rows.map(\.shown)
        }
        return lines
    }

    /// The row and the column of a position.
    func position(of place: Int) -> (row: Int, column: Int) {
        // A position at the end of a row that continues is the beginning of the next row.
        let row: Int = rows.lastIndex { $0.range.lowerBound <= place } ?? 0
        let start = rows[row].range.lowerBound
        return (row, min(columns, Self.cells(part(start..<max(start, place)), width)))
    }

    /// The position in a row that is at a column, or before it.
    func place(row: Int, column: Int) -> Int {
        let number = min(max(0, row), rows.count - 1)
        let row = rows[number]
        var (place, cells) = (row.range.lowerBound, 0)
        for character in part(row.range) {
            let own = Self.shown(character, width).cells
            if cells + own > column { break }
            cells += own
            place += character.utf16.count
        }
        return min(place, lastPlace(row: number))
    }

    /// The last position in a row: in a row that continues it is before the last character, since the position after
    /// that is in the next row.
    func lastPlace(row number: Int) -> Int {
        let range = rows[number].range
        guard number + 1 < rows.count, rows[number + 1].range.lowerBound == range.upperBound else {
            return range.upperBound
        }
        return range.upperBound - (part(range).last?.utf16.count ?? 0)
    }

    private func part(_ range: Range<Int>) -> Substring {
        let start: String.Index = text.utf16.index(text.startIndex, offsetBy: range.lowerBound)
        return text[start..<text.utf16.index(start, offsetBy: range.count)]
    }
}
