import ThicketCommandLine
import ThicketProtocol

/// JSON formatted for reading and editing: two spaces per level, one member a line, a line feed at the end. Numbers
/// keep their spelling, members their order.
enum Pretty {
    static func bytes(_ value: JSONValue) -> [UInt8] {
        var writer = JSONWriter()
        write(value, level: 0, &writer)
        writer.raw("\n")
        return writer.bytes
    }

    static func text(_ value: JSONValue) -> String { String(decoding: bytes(value), as: UTF8.self) }

    private static func write(_ value: JSONValue, level: Int, _ writer: inout JSONWriter) {
        switch value {
        case .array(let elements) where !elements.isEmpty:
            writer.raw("[\n")
            for (place, element) in elements.enumerated() {
                indent(level + 1, &writer)
                write(element, level: level + 1, &writer)
                writer.raw(place < elements.count - 1 ? ",\n" : "\n")
            }
            indent(level, &writer)
            writer.raw("]")
        case .object(let object) where !object.isEmpty:
            writer.raw("{\n")
            let pairs = object.pairs
            for (place, pair) in pairs.enumerated() {
                indent(level + 1, &writer)
                writer.write(string: pair.key)
                writer.raw(": ")
                write(pair.value, level: level + 1, &writer)
                writer.raw(place < pairs.count - 1 ? ",\n" : "\n")
            }
            indent(level, &writer)
            writer.raw("}")
        default: writer.write(value)
        }
    }

    private static func indent(_ level: Int, _ writer: inout JSONWriter) {
        writer.bytes.append(contentsOf: repeatElement(0x20, count: 2 * level))
    }
}

extension Screen {
    /// One line of at most so many characters, with an ellipsis where text is left out.
    static func line(_ text: String, columns: Int) -> String {
        var result = ""
        var count = 0
        for character in text {
            guard count < columns else { return String(result.dropLast()) + "…" }
            result.append(character == "\n" || character == "\t" || character == "\r\n" ? " " : character)
            count += 1
        }
        return Terminal.isTerminal(Terminal.standardOutput) ? safe(result) : result
    }

    /// One line of JSON for a person.
    static func line(_ value: JSONValue, columns: Int) -> String { line(value.serializedText, columns: columns) }
}
