import ThicketProtocol

/// The operator's setting for encrypted notes in an app (`thicketd app notes`).
public enum AppNotes: Int64, Sendable, Hashable, CaseIterable {
    /// The app does not have notes: a bucket named `onions` is an ordinary bucket.
    case off = 0
    /// Each user has at most `NoteRule.freeMax` notes; a user that the operator marked as Pro has no limit.
    case on = 1
    /// As `on`, with every user treated as Pro.
    case pro = 2

    /// The word for this setting on the command line.
    public var word: String {
        switch self {
        case .off: "off"
        case .on: "on"
        case .pro: "pro"
        }
    }
}

/// The rule for one user's bucket of encrypted notes. The server cannot read a note; it counts notes and checks
/// lengths.
public enum NoteRule: Sendable, Hashable {
    /// An ordinary bucket.
    case none
    /// A bucket of at most `freeMax` notes.
    case free
    /// A bucket of notes without a limit.
    case pro

    /// Name of the notes bucket in each user's account.
    static let bucket = "onions"
    /// Maximum number of notes of a user without Pro.
    static let freeMax = 10
    /// Fields that hold sealed text, and the maximum length of the sealed text in ASCII letters. It follows from the
    /// longest clear text, 30 and 2,500 UTF-16 units of at most three bytes of UTF-8, after padding, base64 and line
    /// breaks.
    static let fields: [(name: String, lettersMax: Int)] = [("onionTitle", 222), ("onionInfo", 10_410)]

    /// The rule from the stored `AppNotes` value and the user's Pro flag. An unknown value counts as `off`.
    init(_ stored: Int64, isPro: Bool) {
        self =
            switch AppNotes(rawValue: stored) ?? .off {
            case .off: .none
            case .on: isPro ? .pro : .free
            case .pro: .pro
            }
    }

    /// Whether a bucket of this name holds encrypted notes in an app that has notes.
    static func isBucket(_ name: BucketName) -> Bool { name.text.utf8.elementsEqual(bucket.utf8) }

    /// Checks whether a note may be changed to `note`.
    /// - Throws: 413 for a field above its maximum length, unless the field was at least as long before.
    static func check(_ note: JSONObject, before: JSONObject?) throws(ChangeRejection) {
        for (name, lettersMax) in fields {
            guard let count = note[name]?.stringValue?.utf8.count, count > lettersMax,
                count > before?[name]?.stringValue?.utf8.count ?? 0
            else { continue }
            throw ChangeRejection(.tooLarge, "\(count) letters in \(name), the maximum is \(lettersMax)")
        }
    }
}
