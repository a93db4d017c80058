extension Unicode.Scalar {
    /// What messages call a character: "'/'", "a blank", "U+00E9". The character itself only where it is printable
    /// ASCII: others may be invisible, or move what a terminal shows.
    public var named: String {
        if self == " " { return "a blank" }
        if isASCII, value > 0x20, value != 0x7F { return "'\(self)'" }
        let digits = String(value, radix: 16, uppercase: true)
        return "U+" + String(repeating: "0", count: max(0, 4 - digits.count)) + digits
    }

    /// Whether the character leaves no mark at the end of a text: white space, controls, and what only steers others.
    /// Variation selectors do leave one, behind emoji and ideographs.
    var isUnseen: Bool {
        if properties.isVariationSelector { return false }
        if properties.isWhitespace || properties.isDefaultIgnorableCodePoint { return true }
        switch properties.generalCategory {
        case .control, .format, .lineSeparator, .paragraphSeparator, .spaceSeparator: return true
        default: return value == 0x2800  // The braille pattern without a dot.
        }
    }
}

extension UserID {
    /// What is wrong with a text as the name of a user who is not there yet: beside what no name may hold, a character
    /// at an end that is not seen there, with which the name would look like another one. Users who are called so keep
    /// their names.
    ///
    /// - Returns: the rest of the sentence that begins with the name; nil: nothing is wrong. Of the name it holds one
    ///   character.
    public static func problem(asNew text: String, bytesMax: Int = Limits.userIDBytesMax) -> String? {
        if let problem = problem(of: text, bytesMax: bytesMax) { return problem }
        let scalars = text.unicodeScalars
        if let first = scalars.first, first.isUnseen { return "begins with \(first.named); leave it out" }
        if let last = scalars.last, last.isUnseen {
            return "ends with \(last.named) (character \(scalars.count)); leave it out"
        }
        return nil
    }

    /// The same of a name that a user may have already.
    public static func problem(of text: String, bytesMax: Int = Limits.userIDBytesMax) -> String? {
        do throws(IdentifierError) { _ = try UserID(text) } catch { return error.problem }
        let count = text.utf8.count
        return count <= bytesMax ? nil : IdentifierError.tooLong(count, most: bytesMax)
    }
}
