/// The text that `dL` edits: each element as compact JSON and a line feed, in the form of JavaScript's
/// `JSON.stringify`.
enum ListText {
    /// One line per element, with its line feed.
    static func lines(of list: [JSONValue]) -> [[UInt16]] {
        list.map { element in
            var writer = JSONWriter()
            write(element, to: &writer)
            writer.raw("\n")
            return writer.bytes.withUnsafeBufferPointer { UTF16Text.units(of: $0) }
        }
    }

    private static func write(_ value: JSONValue, to writer: inout JSONWriter) {
        switch value {
        case .null, .bool, .string: writer.write(value)
        case .number(let number): writer.raw(Array(number.javaScriptForm.utf8))
        case .array(let elements):
            writer.raw("[")
            for (place, element) in elements.enumerated() {
                if place > 0 { writer.raw(",") }
                write(element, to: &writer)
            }
            writer.raw("]")
        case .object(let object):
            writer.raw("{")
            for (place, pair) in inScriptOrder(object.pairs).enumerated() {
                if place > 0 { writer.raw(",") }
                writer.write(string: pair.key)
                writer.raw(":")
                write(pair.value, to: &writer)
            }
            writer.raw("}")
        }
    }

    /// JavaScript lists keys that look like array indexes first, in ascending order.
    private static func inScriptOrder(_ pairs: [JSONObject.Pair]) -> [JSONObject.Pair] {
        let numbered = pairs.compactMap { pair in
            arrayIndex(pair.key).map { (index: $0, pair: pair) }
        }
        if numbered.isEmpty { return pairs }
        return numbered.sorted { $0.index < $1.index }.map(\.pair) + pairs.filter { arrayIndex($0.key) == nil }
    }

    private static func arrayIndex(_ key: String) -> UInt32? {
        guard (1...10).contains(key.utf8.count), key.utf8.allSatisfy({ (0x30...0x39).contains($0) }) else { return nil }
        guard key.utf8.count == 1 || key.utf8.first != 0x30, let index = UInt32(key) else { return nil }
        return index < .max ? index : nil
    }

    /// The list after the edit. Elements whose line is not touched stay unchanged, to the last digit of their numbers.
    static func apply(_ delta: TextDelta, to list: [JSONValue], depth: Int) throws(DiffError) -> [JSONValue] {
        try listDelta(delta, base: list).apply(to: list, depth: depth)
    }

    /// The edit by whole elements; lines that are changed in part are deleted and inserted as new elements.
    static func listDelta(_ delta: TextDelta, base: [JSONValue]) throws(DiffError) -> ListDelta {
        let lines = lines(of: base)
        guard delta.sourceLength == lines.reduce(0, { $0 + $1.count }) else {
            let length = lines.reduce(0) { $0 + $1.count }
            throw DiffError(.delta(.lengthMismatch(delta: delta.sourceLength, text: length)))
        }
        var reader = LineReader(lines)
        for operation in delta.operations { reader.apply(operation) }
        reader.finish()
        var result = ListDelta()
        for part in reader.parts {
            switch part {
            case .kept(let count): result.retain(count)
            case .changed(let count, let text):
                for _ in 0..<count { result.append(.delete) }
                for line in split(text) {
                    if let element = try parse(line) { result.append(.insert(element)) }
                }
            }
        }
        return result
    }

    /// The edit as `dL` on the text of `base`. Inserted numbers are written with all digits, not in JavaScript's form,
    /// which would round them.
    static func delta(_ edit: ListDelta, base: [JSONValue]) throws(DiffError) -> TextDelta {
        let lines = lines(of: base)
        var result = TextDelta()
        var place = 0
        for step in edit.steps {
            if case .insert(let value) = step {
                result.insert(line(of: value))
                continue
            }
            let count = if case .retain(let count) = step { count } else { 1 }
            guard count <= lines.count - place else { throw DiffError(.badIndex, path: [String(place)]) }
            for line in lines[place..<(place + count)] {
                if case .retain = step { result.retain(line.count) } else { result.delete(line.count) }
            }
            if case .edit(let operation) = step {
                let value = try JSONDiff.edit(base[place], by: operation, depth: 0)
                result.insert(line(of: value))
            }
            place += count
        }
        for line in lines[place...] { result.retain(line.count) }
        return result
    }

    private static func line(of value: JSONValue) -> [UInt16] {
        value.serialized().withUnsafeBufferPointer { UTF16Text.units(of: $0) } + [0x0A]
    }

    private static func split(_ text: [UInt16]) -> [ArraySlice<UInt16>] {
        var lines = [ArraySlice<UInt16>]()
        var start = 0
        for (place, unit) in text.enumerated() where unit == 0x0A {
            lines.append(text[start...place])
            start = place + 1
        }
        if start < text.count { lines.append(text[start...]) }
        return lines
    }

    /// Nil for an empty line.
    private static func parse(_ line: ArraySlice<UInt16>) throws(DiffError) -> JSONValue? {
        let units = Array(line.last == 0x0A ? line.dropLast() : line)
        if units.isEmpty { return nil }
        guard let text = UTF16Text.string(of: units) else { throw DiffError(.delta(.splitSurrogate)) }
        do throws(JSONError) { return try JSONValue(parsing: text) } catch { throw DiffError(.badLine) }
    }
}

/// Splits a text delta where whole lines are untouched on both sides of the cut.
private struct LineReader {
    enum Part {
        /// A number of lines that stay unchanged.
        case kept(Int)
        /// A number of lines that are replaced by a text of whole lines.
        case changed(Int, [UInt16])
    }

    private(set) var parts = [Part]()
    private let lines: [[UInt16]]
    /// The current line and the units of it that were read.
    private var line = 0
    private var column = 0
    /// First line of the current part, its new text, and whether that differs from the old text.
    private var firstLine = 0
    private var text = [UInt16]()
    private var isChanged = false

    init(_ lines: [[UInt16]]) { self.lines = lines }

    mutating func apply(_ operation: TextOperation) {
        switch operation {
        case .retain(let count): walk(count, keeping: true)
        case .delete(let count): walk(count, keeping: false)
        case .insert(let units):
            isChanged = true
            text.append(contentsOf: units)
            close()
        }
    }

    mutating func finish() {
        if isChanged { parts.append(.changed(line - firstLine, text)) }
    }

    private mutating func walk(_ count: Int, keeping: Bool) {
        var left = count
        while left > 0, line < lines.count {
            let part = min(left, lines[line].count - column)
            if keeping { text.append(contentsOf: lines[line][column..<(column + part)]) } else { isChanged = true }
            left -= part
            column += part
            if column == lines[line].count {
                line += 1
                column = 0
                close()
            }
        }
    }

    /// Ends the part if both texts are at the end of a line.
    private mutating func close() {
        guard column == 0, text.isEmpty || text.last == 0x0A else { return }
        if isChanged {
            parts.append(.changed(line - firstLine, text))
        } else if line > firstLine {
            parts.append(.kept(line - firstLine))
        }
        firstLine = line
        text = []
        isChanged = false
    }
}
