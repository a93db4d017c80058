extension Differ {
    /// Compares line by line first, then each replaced block unit by unit.
    mutating func lineMode(_ source: Units, _ target: Units) -> [DiffSegment] {
        budget.spend((source.count + target.count) * Self.stepsPerUnitOfLines)
        var table = LineTable()
        let sourceLines = table.number(source, linesMax: LineTable.sourceLinesMax)
        let targetLines = table.number(target, linesMax: LineTable.linesMax)
        var segments = sourceLines.withUnsafeBufferPointer { source in
            targetLines.withUnsafeBufferPointer { diff(source, $0, byLines: false) }
        }
        for place in segments.indices { segments[place].units = table.text(of: segments[place].units) }
        TextDiff.cleanupSemantic(&segments)
        return refined(segments)
    }

    /// Steps per unit for finding the lines, distinguishing them and restoring their text.
    private static let stepsPerUnitOfLines = 6

    /// Compares the text deleted and inserted between two equalities again, unit by unit.
    private mutating func refined(_ segments: [DiffSegment]) -> [DiffSegment] {
        var result = [DiffSegment]()
        var run = [DiffSegment]()
        for segment in segments + [DiffSegment(.equal, [])] {
            guard segment.kind == .equal else {
                run.append(segment)
                continue
            }
            if run.contains(where: { $0.kind == .delete }), run.contains(where: { $0.kind == .insert }) {
                let (deleted, inserted) = (TextDiff.source(of: run), TextDiff.target(of: run))
                result += deleted.withUnsafeBufferPointer { deleted in
                    inserted.withUnsafeBufferPointer { diff(deleted, $0, byLines: false) }
                }
            } else {
                result += run
            }
            result.append(segment)
            run = []
        }
        result.removeLast()
        return result
    }
}

/// Numbers lines, so that whole lines can be compared as if they were units.
private struct LineTable {
    /// Most different lines of the source; the rest of the text counts as one line, as in the reference.
    static let sourceLinesMax = 40_000
    /// Most different lines of both texts.
    static let linesMax = 65_535

    /// A line in its text, compared by its units.
    private struct Line: Hashable {
        let units: Units

        static func == (left: Line, right: Line) -> Bool { UnitSearch.areEqual(left.units, right.units) }
        func hash(into hasher: inout Hasher) { hasher.combine(bytes: UnsafeRawBufferPointer(units)) }
    }

    private var numbers = [Line: UInt16](minimumCapacity: linesUsual)
    /// Different lines for which memory is reserved at the start.
    private static let linesUsual = 48
    /// Lines by number, from 1.
    private var lines = [Units(start: nil, count: 0)]

    mutating func number(_ text: Units, linesMax: Int) -> [UInt16] {
        var result = [UInt16]()
        var start = 0
        while start < text.count {
            var end = start
            while end < text.count, text[end] != 0x0A { end += 1 }
            end = min(end + 1, text.count)
            if lines.count == linesMax, numbers[Line(units: text.part(start, end))] == nil { end = text.count }
            result.append(number(of: text.part(start, end)))
            start = end
        }
        return result
    }

    private mutating func number(of line: Units) -> UInt16 {
        let fresh = UInt16(truncatingIfNeeded: lines.count)
        // A single lookup finds or inserts the line.
        func found(_ number: inout UInt16) -> UInt16 { number }
        let number = found(&numbers[Line(units: line), default: fresh])
        if number == fresh { lines.append(line) }
        return number
    }

    func text(of numbers: [UInt16]) -> [UInt16] {
        var result = [UInt16]()
        for number in numbers { result.append(contentsOf: lines[Int(number)]) }
        return result
    }
}
