import ThicketCrypto

/// The visible data of a note that was not opened.
public struct Onion: Sendable, Equatable, Identifiable {
    /// The key of its object.
    public let id: String
    /// Milliseconds since 1970, as its author has written it; 0 where it is absent.
    public let createdAt: Int64
    /// How the note is sealed.
    public let format: NoteFormat
    /// PBKDF2 rounds of the old formats; nil: not a permitted number, so the note is unreadable.
    public let rounds: Int?

    init(_ note: StoredNote) {
        (id, createdAt, format, rounds) = (note.id, note.createdAt, note.format, note.rounds)
    }

    /// Opening the note takes so long that the user is asked first.
    public var needsConsent: Bool {
        (format == .first || format == .second) && rounds.map { $0 > NoteRounds.unaskedMax } ?? false
    }

    /// The order of lists: ascending by creation.
    static func precedes(_ left: Onion, _ right: Onion) -> Bool {
        (left.createdAt, left.id) < (right.createdAt, right.id)
    }
}

/// A note with its title, or the reason why the title did not open.
public struct OnionTitle: Sendable {
    /// The note.
    public let onion: Onion
    /// The title, UTF-8, or why it did not open.
    public let title: Result<SecureBytes, OnionError>
}

/// What the server reports about the user's notes.
public struct OnionStanding: Sendable, Equatable {
    /// Most notes of a user that is not Pro.
    public static let freeMax = 10

    /// The user may have any number of notes.
    public let isPro: Bool
    /// The operator's note from when the user became Pro.
    public let receipt: String?
    /// Most notes; nil: any number.
    public let notesMax: Int?

    /// - Parameter notesMax: most notes; nil: any number.
    public init(isPro: Bool = false, receipt: String? = nil, notesMax: Int? = OnionStanding.freeMax) {
        (self.isPro, self.receipt, self.notesMax) = (isPro, receipt, notesMax)
    }
}

/// The outcome of upgrading old notes at load.
public struct OnionMigration: Sendable, Equatable {
    /// Notes that have version 2 now.
    public var migrated = 0
    /// Notes that did not open, and stay unchanged.
    public var unreadable = 0
    /// Notes that need more rounds than are computed without consent.
    public var awaitingConsent = 0
    /// Notes that were changed meanwhile, or that the server refused.
    public var failed = 0

    /// All counts are zero.
    public init() {}
}
