import ThicketCrypto
import ThicketPlatform
import ThicketProtocol

/// The texts of a note, UTF-8, in memory that is overwritten when the last reference is gone.
public struct NoteText: Sendable, Equatable {
    /// The title, UTF-8.
    public let title: SecureBytes
    /// The text below the title, UTF-8.
    public let info: SecureBytes

    /// A note of these two texts.
    public init(title: SecureBytes, info: SecureBytes) { (self.title, self.info) = (title, info) }

    /// The text of a field.
    public subscript(field: NoteField) -> SecureBytes { field == .title ? title : info }
}

/// The keys that open and seal the notes of one account.
public struct NoteKeys: Sendable {
    /// The account's id: notes of the newest format are bound to it.
    let user: String
    /// UTF-8; nil where notes of the old formats cannot be opened.
    let password: SecureBytes?
    /// 32 bytes; nil where the account has no notes of the newest format.
    let vaultSecret: SecureBytes?

    /// - Parameters:
    ///   - user: the account's id.
    ///   - password: UTF-8; nil: notes of the old formats cannot be opened.
    ///   - vaultSecret: 32 bytes; nil: new notes get the second format.
    public init(user: String, password: SecureBytes?, vaultSecret: SecureBytes? = nil) {
        (self.user, self.password, self.vaultSecret) = (user, password, vaultSecret)
    }

    /// The format of notes that are made with these keys.
    var format: NoteFormat { vaultSecret == nil ? .second : .sealed }

    // MARK: - Opening

    /// Opens one text of a note.
    /// - Parameter consents: the user has agreed to a large number of rounds.
    /// - Throws: `unreadable` for every fault of the sealed text; `needsConsent`, before any derivation, for more than
    ///   `NoteRounds.unaskedMax` rounds.
    func open(_ field: NoteField, of note: StoredNote, consents: Bool) throws(OnionError) -> SecureBytes {
        guard let sealed = note.sealed(field) else { throw .unreadable }
        switch note.format {
        case .unknown: throw .unreadable
        case .sealed:
            return try readable { () throws(CryptoError) in try seal(field, note.id).open(sealed) }
        case .first, .second:
            guard let rounds = note.rounds, let password else { throw .unreadable }
            guard rounds <= NoteRounds.unaskedMax || consents else { throw .needsConsent(rounds: rounds) }
            let message = try Self.message(sealed)
            // Writers of version 2 never used the old header, which truncates passwords.
            guard note.format == .first || message.first == RNCryptor.version else { throw .unreadable }
            let function: HashFunction = note.format == .first ? .sha512 : .sha1
            return try readable { () throws(CryptoError) in
                try RNCryptor.open(message, password: password, .init(function, rounds: rounds))
            }
        }
    }

    /// A base64 message in which other bytes may be between the letters.
    private static func message(_ text: [UInt8]) throws(OnionError) -> [UInt8] {
        let letters = text.filter { byte in
            switch byte {
            case 0x30...0x39, 0x41...0x5A, 0x61...0x7A: true
            case UInt8(ascii: "+"), UInt8(ascii: "/"), UInt8(ascii: "="): true
            default: false
            }
        }
        guard let message = Base64.decode(letters[...]) else { throw .unreadable }
        return message
    }

    private func readable(_ body: () throws(CryptoError) -> SecureBytes) throws(OnionError) -> SecureBytes {
        let text: SecureBytes
        do throws(CryptoError) { text = try body() } catch { throw .unreadable }
        // An invalid text would be shown as a different one, and saved as that.
        guard text.isUTF8 else { throw .unreadable }
        return text
    }

    /// A note as stored in its bucket, for users that inspect what a server stores. A very large number of rounds is
    /// not computed.
    /// - Returns: nil for an object that is not a note, since it has neither of the two texts.
    public func read(_ object: JSONObject, id: String) -> Result<NoteText, OnionError>? {
        let note = StoredNote(id: id, object: object)
        guard NoteField.allCases.contains(where: { note.sealed($0) != nil }) else { return nil }
        do throws(OnionError) {
            return .success(
                NoteText(
                    title: try open(.title, of: note, consents: false), info: try open(.info, of: note, consents: false)
                ))
        } catch {
            return .failure(error)
        }
    }

    // MARK: - Sealing

    /// The object that stores these texts: it replaces the old one completely, so that parts of two writers do not mix.
    /// - Parameter rounds: for the old formats.
    /// - Throws: `noKey`, `tooLong`.
    func seal(_ text: NoteText, id: String, _ format: NoteFormat, rounds: Int) throws(OnionError) -> JSONObject {
        var members: JSONObject = [:]
        for field in NoteField.allCases {
            let units = text[field].utf16Count
            guard units <= field.unitsMax else { throw .tooLong(field, units: units) }
            members[field.member] = .string(try seal(text[field], field, id, format, rounds))
        }
        members[StoredNote.Member.rounds] = .number(JSONNumber(Int64(rounds)))
        members[StoredNote.Member.version] = format.version
        return members
    }

    private func seal(
        _ text: SecureBytes, _ field: NoteField, _ id: String, _ format: NoteFormat, _ rounds: Int
    ) throws(OnionError) -> String {
        guard format == .sealed ? vaultSecret != nil : format != .unknown && password != nil else { throw .noKey }
        do throws(CryptoError) {
            if format == .sealed { return try seal(field, id).seal(text) }
            guard let password else { throw .openingFailed }
            let function: HashFunction = format == .first ? .sha512 : .sha1
            let message = try RNCryptor.seal(text, password: password, .init(function, rounds: rounds))
            return Self.lines(Base64.encode(message))
        } catch {
            // Only the keys can be out of bounds: rounds and lengths were checked.
            throw .noKey
        }
    }

    private func seal(_ field: NoteField, _ id: String) throws(CryptoError) -> NoteSeal {
        guard let vaultSecret else { throw .openingFailed }
        return try NoteSeal(
            vaultSecret: vaultSecret, userID: Array(user.utf8), noteID: Array(id.utf8), field: Array(field.member.utf8))
    }

    /// Lines of 64 letters, separated by CR LF, as the first notes app writes them.
    private static func lines(_ letters: String) -> String {
        let bytes: [UInt8] = Array(letters.utf8)
        var lines = [UInt8]()
        lines.reserveCapacity(bytes.count + bytes.count / 32 + 2)
        for (place, byte) in bytes.enumerated() {
            if place > 0, place % 64 == 0 { lines += [0x0D, 0x0A] }
            lines.append(byte)
        }
        return String(decoding: lines, as: UTF8.self)
    }
}
