import ThicketCrypto

/// A note as one sees it without opening it.
public struct Onion: Sendable, Equatable, Identifiable {
    /// The key of its object.
    public let id: String
    /// Milliseconds since 1970, as whoever made it has said; 0 where nobody did.
    public let createdAt: Int64
    public let format: NoteFormat
    /// PBKDF2 rounds of the old formats; nil: no number that anybody uses, so the note is unreadable.
    public let rounds: Int?

    init(_ note: StoredNote) {
        (id, createdAt, format, rounds) = (note.id, note.createdAt, note.format, note.rounds)
    }

    /// Opening it takes so long that the user is asked first.
    public var needsConsent: Bool {
        (format == .first || format == .second) && rounds.map { $0 > NoteRounds.unaskedMax } ?? false
    }

    /// The order of lists: ascending by creation.
    static func precedes(_ left: Onion, _ right: Onion) -> Bool {
        (left.createdAt, left.id) < (right.createdAt, right.id)
    }
}

/// A note whose title was opened, or was not.
public struct OnionTitle: Sendable {
    public let onion: Onion
    public let title: Result<SecureBytes, OnionError>
}

/// What the server says of the user's notes.
public struct OnionStanding: Sendable, Equatable {
    /// Notes of a user who is not Pro.
    public static let freeMax = 10

    /// As many notes as they like.
    public let isPro: Bool
    /// What the operator wrote down when the user became Pro.
    public let receipt: String?
    /// Notes that there may be; nil: as many as come.
    public let notesMax: Int?

    public init(isPro: Bool = false, receipt: String? = nil, notesMax: Int? = OnionStanding.freeMax) {
        (self.isPro, self.receipt, self.notesMax) = (isPro, receipt, notesMax)
    }
}

/// What became of old notes at load.
public struct OnionMigration: Sendable, Equatable {
    /// Now of version 2.
    public var migrated: Int = 0
    /// Did not open, so they stay as they are.
    public var unreadable: Int = 0
    /// Ask for more rounds than are done unasked.
    public var awaitingConsent: Int = 0
    /// Were changed meanwhile, or the server did not take them.
    public var failed: Int = 0

    public init() {}
}
