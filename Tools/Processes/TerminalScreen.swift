/// The screen of a terminal: the part of xterm that ncurses uses (`infocmp xterm-256color`).
///
/// A program that draws on a screen may send a text in any pieces and in any order, so its output differs from what a
/// user sees. Colours and the like are ignored. Unknown sequences are recorded in `unknown`, and no wait for the screen
/// succeeds then. That is one reason for our own code: Debian's libvterm silently drops modes and escapes that it does
/// not know. The other: every machine that builds the tests would need that library.
public struct TerminalScreen: Sendable {
    public static let rowsUsual = 24
    public static let columnsUsual = 80
    /// Largest number of recorded sequences.
    static let unknownMax = 20

    /// Private modes that are only recorded here: cursor keys, blinking, visible cursor, meta key, pastes.
    private static let modesWithoutEffect: Set<Int> = [1, 12, 25, 1034, 2004]
    private static let (wrapping, alternate, pastes): (Int, Int, Int) = (7, 1049, 2004)

    /// A cell is a letter with its marks, a blank, or empty: the right half of a wide letter.
    private var cells: [[String]]
    let columns: Int
    public private(set) var cursor: (row: Int, column: Int) = (0, 0)
    /// A letter is in the last column, and the next one will begin a row.
    private var isPastEnd = false
    private var scrolled: ClosedRange<Int>
    private var saved: (row: Int, column: Int) = (0, 0)
    /// The rows that are shown again when the program leaves the alternate screen.
    private var main: [[String]] = []
    private var last: Unicode.Scalar = " "
    /// Private modes that are on.
    private(set) var modes: Set<Int> = [Self.wrapping, 25]
    private var inserts = false
    /// The first sequences that this model does not know, as text.
    public internal(set) var unknown: [String] = []
    /// A sequence or a letter whose end has not arrived.
    var pending: [UInt8] = []

    public init(rows: Int = rowsUsual, columns: Int = columnsUsual) {
        (self.columns, scrolled) = (columns, 0...rows - 1)
        cells = Array(repeating: Array(repeating: " ", count: columns), count: rows)
    }

    /// The text of each row, without blanks at its end.
    public var rows: [String] { cells.indices.map(row) }

    /// Whether one of the rows has a text.
    public func shows(_ text: String) -> Bool { rows.contains { $0.contains(text) } }

    /// Whether a program uses the alternate screen, after which the earlier screen comes back.
    public var isAlternate: Bool { modes.contains(Self.alternate) }
    /// Whether pasted text is sent between marks.
    public var marksPastes: Bool { modes.contains(Self.pastes) }

    func row(_ number: Int) -> String {
        cells[number][..<((cells[number].lastIndex { $0 != " " } ?? -1) + 1)].joined()
    }

    // MARK: - Letters

    mutating func put(_ letter: Unicode.Scalar) {
        let width = Self.cells(of: letter)
        guard width > 0 else { return mark(letter) }
        if isPastEnd || cursor.column + width > columns {
            cursor.column = columns - width
            if modes.contains(Self.wrapping) {
                cursor.column = 0
                lineFeed()
            }
        }
        if inserts { insertCells(width) }
        overwrite(cursor.row, cursor.column, width == 2 ? [String(letter), ""] : [String(letter)])
        isPastEnd = cursor.column + width == columns
        cursor.column = min(columns - 1, cursor.column + width)
        last = letter
    }

    mutating func putAgain(_ times: Int) { for _ in 0..<times { put(last) } }

    /// Puts an accent on the letter before the cursor.
    private mutating func mark(_ accent: Unicode.Scalar) {
        var column = isPastEnd ? cursor.column : cursor.column - 1
        if column > 0, cells[cursor.row][column].isEmpty { column -= 1 }
        if column >= 0 { cells[cursor.row][column].unicodeScalars.append(accent) }
    }

    /// Replaces cells; a wide letter that loses one half is erased.
    private mutating func overwrite(_ row: Int, _ column: Int, _ new: [String]) {
        let end: Int = column + new.count
        if column < columns, cells[row][column].isEmpty { cells[row][column - 1] = " " }
        if end < columns, cells[row][end].isEmpty { cells[row][end] = " " }
        cells[row].replaceSubrange(column..<end, with: new)
    }

    /// The number of cells of a letter, as `wcwidth` for the texts of tests.
    private static func cells(of letter: Unicode.Scalar) -> Int {
        switch letter.properties.generalCategory {
        case .nonspacingMark, .enclosingMark: return 0
        case .format where letter != "\u{AD}": return 0
        default: break
        }
        let wide: [ClosedRange<UInt32>] = [
            0x1100...0x115F, 0x2E80...0x303E, 0x3041...0xA4CF, 0xAC00...0xD7A3, 0xF900...0xFAFF, 0xFE30...0xFE6F,
            0xFF00...0xFF60, 0xFFE0...0xFFE6, 0x1F300...0x1F64F, 0x1F900...0x1F9FF, 0x20000...0x3FFFD,
        ]
        return wide.contains { $0.contains(letter.value) } ? 2 : 1
    }

    // MARK: - The cursor

    /// Moves the cursor to a place, or as near as the screen allows; nil: unchanged.
    mutating func move(row: Int? = nil, column: Int? = nil) {
        cursor.row = min(max(0, row ?? cursor.row), cells.count - 1)
        cursor.column = min(max(0, column ?? cursor.column), columns - 1)
        isPastEnd = false
    }

    /// Moves the cursor up or down; it does not leave the scrolling rows.
    mutating func climb(_ count: Int) {
        let (low, high) = (
            cursor.row >= scrolled.lowerBound ? scrolled.lowerBound : 0,
            cursor.row <= scrolled.upperBound ? scrolled.upperBound : cells.count - 1
        )
        move(row: min(max(low, cursor.row + count), high))
    }

    mutating func lineFeed() {
        if cursor.row == scrolled.upperBound { scroll(1) } else { move(row: cursor.row + 1) }
        isPastEnd = false
    }

    mutating func reverseLineFeed() {
        if cursor.row == scrolled.lowerBound { scroll(-1) } else { move(row: cursor.row - 1) }
        isPastEnd = false
    }

    mutating func saveCursor() { saved = cursor }
    mutating func restoreCursor() { move(row: saved.row, column: saved.column) }

    // MARK: - Erasing and shifting

    /// `part`: 0 from the cursor on, 1 up to it, 2 all. False for any other.
    mutating func eraseInRow(_ part: Int) -> Bool {
        switch part {
        case 0: eraseCells(columns - cursor.column)
        case 1: overwrite(cursor.row, 0, blanks(cursor.column + 1))
        case 2: overwrite(cursor.row, 0, blanks(columns))
        default: return false
        }
        isPastEnd = false
        return true
    }

    /// The same for the whole screen. 3: the rows that have scrolled out, which this model does not keep.
    mutating func eraseScreen(_ part: Int) -> Bool {
        guard part != 3 else { return true }
        guard eraseInRow(part) else { return false }
        let others =
            part == 0 ? cursor.row + 1..<cells.count : part == 1 ? 0..<cursor.row : 0..<cells.count
        for row in others { cells[row] = blanks(columns) }
        return true
    }

    mutating func eraseCells(_ count: Int) {
        overwrite(cursor.row, cursor.column, blanks(min(count, columns - cursor.column)))
        isPastEnd = false
    }

    mutating func insertCells(_ wanted: Int) {
        let count = min(wanted, columns - cursor.column)
        overwrite(cursor.row, cursor.column, [])
        overwrite(cursor.row, columns - count, blanks(count))
        cells[cursor.row].removeLast(count)
        cells[cursor.row].insert(contentsOf: blanks(count), at: cursor.column)
        isPastEnd = false
    }

    mutating func deleteCells(_ wanted: Int) {
        let count = min(wanted, columns - cursor.column)
        eraseCells(count)
        cells[cursor.row].removeSubrange(cursor.column..<cursor.column + count)
        cells[cursor.row] += blanks(count)
    }

    /// Inserts rows at the cursor, or removes rows from the cursor on if the count is negative.
    mutating func insertRows(_ count: Int) {
        guard scrolled.contains(cursor.row) else { return }
        scroll(-count, cursor.row...scrolled.upperBound)
        move(column: 0)
    }

    /// Scrolls rows up, or down if the count is negative.
    mutating func scroll(_ count: Int, _ rows: ClosedRange<Int>? = nil) {
        let rows = rows ?? scrolled
        let away = min(abs(count), rows.count)
        var kept = Array(cells[rows])
        if count > 0 { kept.removeFirst(away) } else { kept.removeLast(away) }
        kept.insert(
            contentsOf: Array(repeating: blanks(columns), count: away), at: count > 0 ? kept.count : 0)
        cells.replaceSubrange(rows, with: kept)
    }

    /// Sets the rows that scroll, counted from 1. False: no such rows.
    mutating func setScrolled(_ first: Int, _ last: Int) -> Bool {
        guard 1 <= first, first < last, last <= cells.count else { return false }
        scrolled = first - 1...last - 1
        move(row: 0, column: 0)
        return true
    }

    var rowCount: Int { cells.count }

    private func blanks(_ count: Int) -> [String] { Array(repeating: " ", count: count) }

    // MARK: - Modes

    mutating func setInserts(_ isOn: Bool) { inserts = isOn }

    /// False for an unknown mode.
    mutating func set(_ mode: Int, _ isOn: Bool) -> Bool {
        guard Self.modesWithoutEffect.contains(mode) || mode == Self.wrapping || mode == Self.alternate else {
            return false
        }
        let changes = modes.contains(mode) != isOn
        if isOn { modes.insert(mode) } else { modes.remove(mode) }
        guard mode == Self.alternate, changes else { return true }
        if isOn {
            saveCursor()
            main = cells
            cells = Array(repeating: blanks(columns), count: cells.count)
        } else {
            cells = main
            restoreCursor()
        }
        return true
    }
}
