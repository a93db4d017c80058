extension JSONError {
    /// The problem and its place, as a message to the author of the text: "a repeated key (line 2, column 5)". Contains
    /// nothing of the text.
    ///
    /// - Parameters:
    ///   - bytes: the text that was read. Columns are counted in bytes.
    ///   - depthMax: levels of nesting that the reader of the text accepts.
    public func explanation(in bytes: [UInt8], depthMax: Int = Limits.jsonDepthMax) -> String {
        if bytes.starts(with: Self.byteOrderMark) {
            return "it begins with a byte order mark (line 1, column 1): send or save it as UTF-8 without one"
        }
        if bytes.isEmpty { return "it is empty (line 1, column 1)" }
        let before = bytes.prefix(offset)
        let line = before.reduce(1) { $1 == 0x0A ? $0 + 1 : $0 }
        let column = before.count - (before.lastIndex(of: 0x0A).map { $0 + 1 } ?? 0) + 1
        return "\(problem(depthMax)) (line \(line), column \(column))"
    }

    /// U+FEFF in UTF-8.
    public static let byteOrderMark: [UInt8] = [0xEF, 0xBB, 0xBF]

    private func problem(_ depthMax: Int) -> String {
        switch kind {
        case .unexpectedByte: "an unexpected character"
        case .unexpectedEnd: "it ends too early"
        case .trailingBytes: "more text follows after its end"
        case .duplicateKey: "a repeated key"
        case .tooDeep: "nested deeper than \(depthMax) levels"
        case .loneSurrogate: "half of a surrogate pair"
        case .invalidUTF8: "it is not UTF-8"
        case .invalidNumber: "a number that is not valid in JSON"
        case .invalidEscape: "an escape that is not valid in JSON"
        case .controlCharacter: "a control character inside a string; write it as an escape"
        case .tooManyElements, .tooLarge: "it is too large"
        }
    }
}
