import ThicketCrypto
import ThicketProtocol

/// How a note is sealed (by the specification of the first notes app, and by Thicket's for new notes).
public enum NoteFormat: Sendable, Hashable {
    /// `onionVersion` absent or below 2: RNCryptor with PBKDF2 over HMAC-SHA-512, header 3 or 2.
    case first
    /// `onionVersion` 2: RNCryptor 3 as published.
    case second
    /// `onionVersion` 3: AES-256-GCM with the account's vault secret, bound to user, note and field.
    case sealed
    /// A version of a newer program, or an invalid one: shown as unreadable and never changed.
    case unknown

    /// - Parameter version: the stored `onionVersion`; nil when it is absent.
    init(_ version: JSONValue?) {
        guard let version, version != .null else {
            self = .first
            return
        }
        guard let number = version.numberValue?.double else {
            self = .unknown
            return
        }
        self = number < 2 ? .first : number < 3 ? .second : number == 3 ? .sealed : .unknown
    }

    /// The `onionVersion` of written notes; the first format is written as it was found, without one.
    var version: JSONValue? {
        switch self {
        case .first, .unknown: nil
        case .second: .number(JSONNumber(2))
        case .sealed: .number(JSONNumber(3))
        }
    }
}

/// The PBKDF2 rounds that a note asks for. The number is untrusted: the server stores it.
public enum NoteRounds {
    /// Rounds of written notes; notes with fewer are read, and raised by the next save.
    public static let usual = 10_000
    /// More rounds need the user's consent: on one core, 1,000,000 take about 2 s for each key, and a note has four.
    public static let unaskedMax = 1_000_000
    /// More are never computed.
    public static let most: Int = RNCryptor.roundsMax

    /// - Parameter stored: the stored `iterations`; nil when it is absent, which means `usual`.
    /// - Returns: nil for a value that is not a whole number from 1 to `most`.
    static func read(_ stored: JSONValue?) -> Int? {
        guard let stored else { return usual }
        guard let rounds = stored.numberValue?.int64, rounds >= 1, rounds <= most else { return nil }
        return Int(rounds)
    }

    /// Rounds for the next save of a note that was read with these: at least `usual`, at most `unaskedMax`.
    static func toWrite(after rounds: Int) -> Int { min(max(rounds, usual), unaskedMax) }
}

/// A note as stored in the bucket: the sealed texts and the other members.
package struct StoredNote: Sendable, Equatable {
    let id: String
    let object: JSONObject

    package init(id: String, object: JSONObject) { (self.id, self.object) = (id, object) }

    package var format: NoteFormat { NoteFormat(object[Member.version]) }
    /// nil: not a permitted number.
    package var rounds: Int? { NoteRounds.read(object[Member.rounds]) }
    /// Milliseconds since 1970; 0 when it is absent.
    package var createdAt: Int64 { object[Member.created].flatMap(NoteTime.milliseconds) ?? 0 }

    func sealed(_ field: NoteField) -> [UInt8]? { object[field.member]?.stringValue.map { Array($0.utf8) } }

    /// Whether the sealed texts and their parameters are equal.
    package func isSame(as other: StoredNote) -> Bool {
        for name in [NoteField.title.member, NoteField.info.member, Member.version, Member.rounds]
        where object[name] != other.object[name] { return false }
        return true
    }

    /// Members besides the texts. `attachments` is reserved for sealed files, which come with stored blobs: this
    /// program neither writes nor removes it, nor any other member that it does not know.
    enum Member {
        static let version = "onionVersion"
        static let rounds = "iterations"
        static let owner = "userId"
        static let created = "createdAt"
        static let attachments = "attachments"
    }
}
