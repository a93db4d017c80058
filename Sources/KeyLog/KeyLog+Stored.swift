public import ThicketCrypto

// What a server does with a log that it has stored before.
extension KeyLog {
    /// Appends an entry that was checked before it was stored. Its signatures are not verified again: with them the
    /// start of a server would take a tenth of a millisecond for each entry.
    /// - Throws: `malformed`, `tooMany`; `otherApp`; `sequence` when it is not the user's next one.
    public mutating func restore(_ bytes: [UInt8]) throws(KeyLogError) {
        let entry = try KeyLogEntry(bytes)
        guard entry.app.utf8.elementsEqual(app.utf8) else {
            throw KeyLogError(.otherApp, "the entry is for the log of another app")
        }
        guard entry.sequence == UInt64(count(of: entry.user)) else {
            throw KeyLogError(.sequence, "entry \(entry.sequence) of a user follows \(count(of: entry.user)) entries")
        }
        append(entry)
    }

    /// Makes a head that was signed and stored before the newest one.
    /// - Throws: `otherLog` unless it is of the log's current state.
    public mutating func adopt(_ head: KeyLogHead) throws(KeyLogError) {
        guard agrees(with: head) else {
            throw KeyLogError(.otherLog, "the stored head does not match the stored entries")
        }
        newest = head
    }

    /// A head of the current state, signed although the one before may be recent: the log's key has changed.
    /// - Throws: `empty`; `malformed` for an invalid time.
    public mutating func resignedHead(time: UInt64, key: Ed25519.SigningKey) throws(KeyLogError) -> KeyLogHead {
        newest = nil
        return try head(time: time, key: key)
    }
}
