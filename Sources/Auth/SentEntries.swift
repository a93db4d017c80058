import ThicketKeyLog
import ThicketPlatform
import ThicketProtocol

/// Entries of the key log in the body of a request (decision 0066).
///
/// An account may have one for its user's id and one for the handle of its name, with the same keys, so that a device
/// that looks up either finds the same keys.
public enum SentEntries {
    /// Entries of one request: a change of keys has two, and a client that was offline for long sends several.
    public static let countMax = 16
    /// Entries of a new account.
    static let newCountMax = 2

    /// Parses the member `entries`.
    /// - Returns: nil when the body does not have it.
    static func read(_ body: AccountBody, max: Int) throws(AccountRefusal) -> [KeyLogEntry]? {
        guard body.has("entries") else { return nil }
        let texts = body.texts("entries", max: max)
        guard let texts, !texts.isEmpty else { throw .badRequest("entries is a list of 1 to \(max) texts") }
        var entries = [KeyLogEntry]()
        for text in texts {
            guard let bytes = Base64.decodeURL(Array(text.utf8)[...]) else {
                throw .badRequest("an entry is not base64url")
            }
            do throws(KeyLogError) { entries.append(try KeyLogEntry(bytes)) } catch { throw .badEntry(error) }
        }
        return entries
    }

    /// The entries with which an account is made: the first ones of its user and, optionally, of its name; for a name
    /// that an account has had before, a reset.
    /// - Parameter name: nil for a user without one.
    /// - Returns: empty when the body has none.
    static func firsts(
        _ body: AccountBody, of user: String, named name: String?, app: String, now: Int64
    ) throws(AccountRefusal) -> [KeyLogEntry] {
        let entries = try read(body, max: newCountMax) ?? []
        do throws(KeyLogError) {
            for (place, entry) in entries.enumerated() {
                let handle = try name.map { (name) throws(KeyLogError) in
                    try KeyLogHandle.name(KeyLogHandle.folded(name), app: app)
                }
                try expect(entry, of: place == 0 ? user : handle, app)
                // Keys of an earlier account with this name may be in the log; the directory checks what follows them.
                if place == 0 || entry.kind == .first { try entry.check(after: nil) }
                if entry.kind == .rotation {
                    throw KeyLogError(.sequence, "a new account has no keys before it that could sign a rotation")
                }
                try expectPast(entry, now)
                guard entries[0].hasKeys(of: entry) else {
                    throw KeyLogError(.sameKeys, "the entries of the user and of its name have different keys")
                }
            }
        } catch { throw .badEntry(error) }
        return entries
    }

    /// The entry with which a partner's user begins again after its data was erased, or begins.
    static func first(
        _ body: AccountBody, ofEntity user: String, app: String, now: Int64
    ) throws(AccountRefusal) -> [KeyLogEntry] {
        let entries = try read(body, max: 1) ?? []
        do throws(KeyLogError) {
            for entry in entries {
                try expect(entry, of: user, app)
                try expectPast(entry, now)
                // The directory, which knows the user's entries, checks whether a reset follows them.
                if entry.kind == .rotation {
                    throw KeyLogError(.sequence, "the first bundle has no keys before it that could sign a rotation")
                }
                if entry.kind == .first { try entry.check(after: nil) }
            }
        } catch { throw .badEntry(error) }
        return entries
    }

    private static func expect(_ entry: KeyLogEntry, of user: String?, _ app: String) throws(KeyLogError) {
        guard entry.app.utf8.elementsEqual(app.utf8) else {
            throw KeyLogError(.otherApp, "the entry is for the log of another app")
        }
        guard let user, entry.user.utf8.elementsEqual(user.utf8) else {
            throw KeyLogError(.otherUser, "the entry is not of the account's user or of the handle of its name")
        }
    }

    /// - Parameter now: milliseconds since 1970.
    /// - Throws: `time` for an entry from the future.
    public static func expectPast(_ entry: KeyLogEntry, _ now: Int64) throws(KeyLogError) {
        guard entry.validFrom <= UInt64(max(0, now)) + KeyLogLimits.skewMilliseconds else {
            throw KeyLogError(.time, "the entry is valid from a future time: is the device's clock right?")
        }
    }
}

extension KeyLogEntry {
    /// Whether both entries have the same two keys.
    public func hasKeys(of other: KeyLogEntry) -> Bool {
        keys.identity == other.keys.identity && keys.encryption == other.keys.encryption
    }
}

extension AccountBody {
    /// A list of texts, of `max` at most; nil when it is missing or has anything else.
    func texts(_ name: String, max: Int) -> [String]? {
        guard let node = object?[name], node.kind == .array, node.count <= max else { return nil }
        var texts = [String]()
        for element in node.elements {
            guard let text = element.string else { return nil }
            texts.append(text)
        }
        return texts
    }
}

extension SentEntries {
    /// The entries of a request to the key log.
    /// - Parameter body: JSON with the member `entries`.
    /// - Returns: the entries, or the answer to a body without usable ones.
    public static func read(_ body: [UInt8]) -> Result<[KeyLogEntry], RefusedEntries> {
        do throws(AccountRefusal) {
            guard let entries = try read(try AccountBody(body), max: countMax) else {
                throw .badRequest("entries is required")
            }
            return .success(entries)
        } catch {
            return .failure(RefusedEntries(answer: AccountAnswer.refusal(error, .json)))
        }
    }

    /// The answer to an entry that is refused.
    public static func answer(_ refusal: KeyLogError) -> HTTPResponse {
        AccountAnswer.refusal(.badEntry(refusal), .json)
    }
}

/// Why the entries of a request cannot be used.
public struct RefusedEntries: Error {
    /// The answer to the request.
    public let answer: HTTPResponse
}
