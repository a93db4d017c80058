import ThicketCrypto
import ThicketProtocol

/// How a note is sealed (spec of the first notes app, and ours for new ones).
public enum NoteFormat: Sendable, Hashable {
    /// `onionVersion` absent or below 2: RNCryptor with PBKDF2 over HMAC-SHA-512, header 3 or 2.
    case first
    /// `onionVersion` 2: RNCryptor 3 as published.
    case second
    /// `onionVersion` 3: AES-256-GCM under the account's vault secret, bound to user, note and field.
    case sealed
    /// Made by a newer program, or by nobody's: is shown as unreadable and stays as it is.
    case unknown

    /// - Parameter version: `onionVersion` as it stands there; nil when it is absent.
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

    /// What `onionVersion` says of notes that are written; the first format is written as it was found, without one.
    var version: JSONValue? {
        switch self {
        case .first, .unknown: nil
        case .second: .number(JSONNumber(2))
        case .sealed: .number(JSONNumber(3))
        }
    }
}

/// PBKDF2 rounds that a note asks for. Whoever keeps the notes may have written the number.
public enum NoteRounds {
    /// Rounds of notes that are written; fewer are read, and raised with the next save.
    public static let usual = 10_000
    /// More are done only when the user says so: on one core, 1,000,000 take about 2 s for each key, and a note has
    /// four.
    public static let unaskedMax = 1_000_000
    /// More are never done.
    public static let most: Int = RNCryptor.roundsMax

    /// - Parameter stored: `iterations` as it stands there; nil when it is absent, which is `usual`.
    /// - Returns: nil for what is no whole number from 1 to `most`.
    static func read(_ stored: JSONValue?) -> Int? {
        guard let stored else { return usual }
        guard let rounds = stored.numberValue?.int64, rounds >= 1, rounds <= most else { return nil }
        return Int(rounds)
    }

    /// Rounds for the next save of a note that was read with these: never fewer than usual, never more than are done
    /// unasked.
    static func toWrite(after rounds: Int) -> Int { min(max(rounds, usual), unaskedMax) }
}

/// A note as the bucket has it: what is sealed, and what stands beside it.
package struct StoredNote: Sendable, Equatable {
    let id: String
    let object: JSONObject

    package init(id: String, object: JSONObject) { (self.id, self.object) = (id, object) }

    package var format: NoteFormat { NoteFormat(object[Member.version]) }
    /// nil: no number that anybody uses.
    package var rounds: Int? { NoteRounds.read(object[Member.rounds]) }
    /// Milliseconds since 1970; 0 where it does not say.
    package var createdAt: Int64 { object[Member.created].flatMap(NoteTime.milliseconds) ?? 0 }

    func sealed(_ field: NoteField) -> [UInt8]? { object[field.member]?.stringValue.map { Array($0.utf8) } }

    /// Whether a look at what is sealed would find the same.
    package func isSame(as other: StoredNote) -> Bool {
        for name in [NoteField.title.member, NoteField.info.member, Member.version, Member.rounds]
        where object[name] != other.object[name] { return false }
        return true
    }

    /// Members besides the texts. `attachments` is kept for sealed files, which come with stored blobs: this program
    /// neither writes nor removes it, nor any other member that it does not know.
    enum Member {
        static let version = "onionVersion"
        static let rounds = "iterations"
        static let owner = "userId"
        static let created = "createdAt"
        static let attachments = "attachments"
    }
}
