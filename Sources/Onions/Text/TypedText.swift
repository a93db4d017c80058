/// A text with a limit while it is typed: a cursor, perhaps a selection, and the bound.
///
/// Positions and lengths are UTF-16 code units. Typed or pasted text replaces the selection, whose length counts as
/// free; of a text that does not fit, the beginning is inserted, but never a part of a character as the user sees it (a
/// Unicode grapheme cluster), also when it joins with the text before it. Deleting is always permitted, also in a text
/// that exceeds the limit.
public struct TypedText: Sendable, Equatable {
    /// Most UTF-16 code units.
    public let unitsMax: Int
    /// The whole text.
    public private(set) var text: String
    /// The position of the next insertion.
    public private(set) var cursor: Int
    /// The other end of the selection; nil without one.
    public private(set) var anchor: Int?
    /// Where typing began, if only typing has happened since.
    private var typedFrom: Int?
    /// A character that was typed in several parts and did not fit: its parts so far.
    private var cut = ""

    /// - Parameter text: used unchanged, even if it exceeds the limit. The cursor is at its end.
    public init(_ text: String = "", unitsMax: Int) {
        (self.text, self.unitsMax) = (text, max(0, unitsMax))
        cursor = text.utf16.count
    }

    /// UTF-16 code units of the text.
    public var units: Int { text.utf16.count }

    /// The selected range; empty without a selection.
    public var selection: Range<Int> {
        guard let anchor else { return cursor..<cursor }
        return min(anchor, cursor)..<max(anchor, cursor)
    }

    /// Replaces the selection by a text.
    /// - Returns: units of it that did not fit and were dropped.
    @discardableResult
    public mutating func insert(_ typed: String) -> Int {
        let (head, tail) = (part(0..<selection.lowerBound), part(selection.upperBound..<units))
        let kept = Self.fitting(typed, behind: head, room: unitsMax - head.utf16.count - tail.utf16.count)
        let dropped = typed.utf16.count - kept.utf16.count
        let place = head.utf16.count + kept.utf16.count
        text = String(head) + kept + tail
        // The typed text may join with its neighbours.
        cursor = boundary(atOrAfter: place)
        (anchor, typedFrom, cut) = (nil, nil, "")
        return dropped
    }

    /// As much of a text as fits: up to the end of a character, with characters counted as they are after `head`.
    private static func fitting(_ typed: String, behind head: Substring, room: Int) -> String {
        let whole = String(head) + typed
        let start = head.utf16.count
        var (sum, end) = (0, start)
        for character in whole {
            sum += character.utf16.count
            guard sum <= start + room else { break }
            end = max(start, sum)
        }
        let from: String.Index = whole.utf16.index(whole.startIndex, offsetBy: start)
        return String(whole[from..<whole.utf16.index(from, offsetBy: end - start)])
    }

    /// Types a part of a character, as keyboards and terminals send them one by one. If the rest of a character that
    /// was begun does not fit, its beginning is removed, too, and its later parts are ignored.
    /// - Returns: units that did not fit and were dropped, including those that had been typed before.
    @discardableResult
    public mutating func type(_ scalar: Unicode.Scalar) -> Int {
        let letter = String(Character(scalar))
        if !cut.isEmpty, selection.isEmpty, (cut + letter).count == 1 {
            cut += letter
            return letter.utf16.count
        }
        let from = typedFrom ?? selection.lowerBound
        var dropped = insert(letter)
        typedFrom = from
        guard dropped > 0 else { return 0 }
        let begun = boundary(before: cursor)..<cursor
        let character = String(part(begun)) + letter
        cut = letter
        if !begun.isEmpty, begun.lowerBound >= from, character.count == 1 {
            remove(begun)
            (typedFrom, cut) = (from, character)
            dropped += begun.count
        }
        return dropped
    }

    /// Removes the selection, else the character before the cursor.
    public mutating func deleteBackward() {
        remove(selection.isEmpty ? boundary(before: cursor)..<cursor : selection)
    }

    /// Removes the selection, else the character after the cursor.
    public mutating func deleteForward() {
        remove(selection.isEmpty ? cursor..<boundary(after: cursor) : selection)
    }

    // MARK: - Moving

    /// Moves the cursor left by a character.
    /// - Parameter selects: the passed character becomes selected.
    public mutating func moveLeft(selects: Bool = false) { move(to: boundary(before: cursor), selects: selects) }

    /// The same to the right.
    public mutating func moveRight(selects: Bool = false) { move(to: boundary(after: cursor), selects: selects) }

    /// Moves the cursor to a position, or to the next position after it where a character begins.
    public mutating func move(to place: Int, selects: Bool = false) {
        anchor = selects ? anchor ?? cursor : nil
        cursor = boundary(atOrAfter: min(max(0, place), units))
        (typedFrom, cut) = (nil, "")
        if anchor == cursor { anchor = nil }
    }

    /// Selects everything.
    public mutating func selectAll() {
        (anchor, cursor) = (units == 0 ? nil : 0, units)
        (typedFrom, cut) = (nil, "")
    }

    /// The part of the text between two positions where characters begin.
    public func part(_ range: Range<Int>) -> Substring { text[index(range.lowerBound)..<index(range.upperBound)] }

    // MARK: - Places

    private mutating func remove(_ range: Range<Int>) {
        text = String(part(0..<range.lowerBound)) + part(range.upperBound..<units)
        // The neighbours may join.
        cursor = boundary(atOrAfter: range.lowerBound)
        (anchor, typedFrom, cut) = (nil, nil, "")
    }

    private func index(_ place: Int) -> String.Index {
        text.utf16.index(text.startIndex, offsetBy: min(max(0, place), units))
    }

    private func boundary(before place: Int) -> Int {
        var sum = 0
        for character in text {
            let next = sum + character.utf16.count
            if next >= place { break }
            sum = next
        }
        return sum
    }

    private func boundary(after place: Int) -> Int {
        guard place < units else { return units }
        return boundary(atOrAfter: place + 1)
    }

    private func boundary(atOrAfter place: Int) -> Int {
        guard place > 0, place < units else { return min(max(0, place), units) }
        var sum = 0
        for character in text {
            if sum >= place { return sum }
            sum += character.utf16.count
        }
        return sum
    }

    /// Compares bytes: canonically equivalent strings are not the same text.
    public static func == (left: Self, right: Self) -> Bool {
        left.text.utf8.elementsEqual(right.text.utf8) && left.unitsMax == right.unitsMax && left.cursor == right.cursor
            && left.anchor == right.anchor
    }
}
