extension Unicode.Scalar {
    /// How messages name a character: "'/'", "a blank", "U+00E9". Only printable ASCII is shown as itself; other
    /// characters may be invisible, or change what a terminal shows.
    public var named: String {
        if self == " " { return "a blank" }
        if isASCII, value > 0x20, value != 0x7F { return "'\(self)'" }
        let digits = String(value, radix: 16, uppercase: true)
        return "U+" + String(repeating: "0", count: max(0, 4 - digits.count)) + digits
    }

    /// Whether the character is invisible at the end of a text: white space, controls, and characters that only format
    /// others. Variation selectors count as visible: they change the emoji or ideograph before them.
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
    /// Checks a text as the name of a new user. In addition to the rules for every user name, an invisible character at
    /// the start or at the end is refused, because the name would look like another one. Existing users with such names
    /// keep them.
    ///
    /// - Returns: the rest of the sentence that begins with the name, or nil if the name is valid. It shows at most one
    ///   character of the name.
    public static func problem(asNew text: String, bytesMax: Int = Limits.userIDBytesMax) -> String? {
        if let problem = problem(of: text, bytesMax: bytesMax) { return problem }
        let scalars = text.unicodeScalars
        if let first = scalars.first, first.isUnseen { return "begins with \(first.named); leave it out" }
        if let last = scalars.last, last.isUnseen {
            return "ends with \(last.named) (character \(scalars.count)); leave it out"
        }
        return nil
    }

    /// Checks a text as the name of a user that may exist already. The result is as in `problem(asNew:bytesMax:)`.
    public static func problem(of text: String, bytesMax: Int = Limits.userIDBytesMax) -> String? {
        do throws(IdentifierError) { _ = try UserID(text) } catch { return error.problem }
        let count = text.utf8.count
        return count <= bytesMax ? nil : IdentifierError.tooLong(count, most: bytesMax)
    }
}
