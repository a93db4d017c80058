import ThicketProtocol

/// What an app's operator says of encrypted notes in it (`thicketd app notes`).
public enum AppNotes: Int64, Sendable, Hashable, CaseIterable {
    /// The app is no notes app: a bucket of that name is like any other.
    case off = 0
    /// Users have `NoteRule.freeMax` notes; those whom the operator made Pro, as many as they like.
    case on = 1
    /// The same, and everybody is Pro.
    case pro = 2

    /// As operators write it.
    public var word: String {
        switch self {
        case .off: "off"
        case .on: "on"
        case .pro: "pro"
        }
    }
}

/// What holds for one user's bucket of encrypted notes. The server reads no note; it counts them and looks at lengths.
public enum NoteRule: Sendable, Hashable {
    /// It is a bucket like any other.
    case none
    /// Notes, of which there may be `freeMax`.
    case free
    /// Notes, as many as come.
    case pro

    /// The bucket of notes in each user's account.
    static let bucket = "onions"
    /// Notes of a user who is not Pro.
    static let freeMax = 10
    /// Fields that hold sealed text, and the letters of it that the longest clear text takes: 30 and 2,500 UTF-16
    /// units, of three bytes of UTF-8 at most, padded, in base64 and in lines.
    static let fields: [(name: String, lettersMax: Int)] = [("onionTitle", 222), ("onionInfo", 10_410)]

    init(_ stored: Int64, isPro: Bool) {
        self =
            switch AppNotes(rawValue: stored) ?? .off {
            case .off: .none
            case .on: isPro ? .pro : .free
            case .pro: .pro
            }
    }

    static func isBucket(_ name: BucketName) -> Bool { name.text.utf8.elementsEqual(bucket.utf8) }

    /// Whether a note may become this.
    /// - Throws: 413 for a field that is longer than any note's, unless it was as long before.
    static func check(_ note: JSONObject, before: JSONObject?) throws(ChangeRejection) {
        for (name, lettersMax) in fields {
            guard let count = note[name]?.stringValue?.utf8.count, count > lettersMax,
                count > before?[name]?.stringValue?.utf8.count ?? 0
            else { continue }
            throw ChangeRejection(.tooLarge, "\(count) letters in \(name), the most is \(lettersMax)")
        }
    }
}
