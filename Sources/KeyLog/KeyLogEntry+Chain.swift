public import ThicketCrypto

/// The rules for consecutive entries, and the creation of entries.
extension KeyLogEntry {
    /// Checks whether this entry may follow `last`; nil: whether it may be a first entry. Server and devices apply the
    /// same rules.
    ///
    /// - Throws: `otherApp`, `otherUser`, `sequence`, `previous`, `time`, `sameKeys`, `signature`.
    public func check(after last: KeyLogEntry?) throws(KeyLogError) {
        guard let last else {
            guard kind == .first else {
                throw KeyLogError(.sequence, "the user has no entry that this one could follow")
            }
            return try checkSignatures(last: nil)
        }
        guard app.utf8.elementsEqual(last.app.utf8) else {
            throw KeyLogError(.otherApp, "the entry is for another app than the previous one")
        }
        guard user.utf8.elementsEqual(last.user.utf8) else {
            throw KeyLogError(.otherUser, "the entry is of another user than the previous one")
        }
        guard sequence == last.sequence + 1 else {
            throw KeyLogError(.sequence, "entry \(sequence) of a user follows entry \(last.sequence)")
        }
        guard previous == last.hash else {
            throw KeyLogError(.previous, "the entry does not name the actual previous entry")
        }
        guard validFrom >= last.validFrom else {
            throw KeyLogError(.time, "the entry is valid from an earlier time than the previous one")
        }
        guard keys != last.keys else {
            throw KeyLogError(.sameKeys, "the entry repeats the user's current keys")
        }
        try checkSignatures(last: last.keys.identity)
    }

    private func checkSignatures(last: Ed25519.VerifyingKey?) throws(KeyLogError) {
        let signed = fields.octets
        guard keys.identity.isSignature(signature, for: .key, signed) else {
            throw KeyLogError(.signature, "the entry is not signed by its own key")
        }
        guard kind == .rotation else { return }
        guard let last, let previousSignature,
            last.isSignature(previousSignature, for: .key, signed)
        else { throw KeyLogError(.signature, "the entry is not signed by the previous key") }
    }

    /// A user's first entry.
    /// - Parameter validFrom: milliseconds since 1970.
    /// - Throws: `malformed` for invalid names.
    public static func first(
        app: String, user: String, identity: Ed25519.SigningKey, encryption: X25519.PublicKey, validFrom: UInt64
    ) throws(KeyLogError) -> KeyLogEntry {
        let fields = Fields(
            app: app, keys: try publicKeys(user, identity, encryption), sequence: 0, validFrom: validFrom, kind: .first)
        return try made(fields, identity, last: nil)
    }

    /// The next entry, signed with the previous identity key.
    /// - Parameters:
    ///   - identity: the new identity key, or the same one when only the encryption key changes.
    ///   - last: the identity key of this entry. An entry signed with any other key is refused.
    ///   - validFrom: milliseconds since 1970; if it is before this entry's time, this entry's time is used.
    public func rotated(
        to identity: Ed25519.SigningKey, encryption: X25519.PublicKey, signedBy last: Ed25519.SigningKey,
        validFrom: UInt64
    ) throws(KeyLogError) -> KeyLogEntry {
        try Self.made(try next(.rotation, identity, encryption, validFrom), identity, last: last)
    }

    /// The next entry when the key of this one is lost. The server accepts it only with authorisation, and every
    /// contact of the user must confirm the new keys.
    public func reset(
        to identity: Ed25519.SigningKey, encryption: X25519.PublicKey, validFrom: UInt64
    ) throws(KeyLogError) -> KeyLogEntry {
        try Self.made(try next(.reset, identity, encryption, validFrom), identity, last: nil)
    }

    private func next(
        _ kind: Kind, _ identity: Ed25519.SigningKey, _ encryption: X25519.PublicKey, _ validFrom: UInt64
    ) throws(KeyLogError) -> Fields {
        Fields(
            app: app, keys: try Self.publicKeys(user, identity, encryption), sequence: sequence + 1,
            // A clock that was wrong once must not end a chain.
            validFrom: max(validFrom, self.validFrom), kind: kind, previous: hash)
    }

    static func made(
        _ fields: Fields, _ identity: Ed25519.SigningKey, last: Ed25519.SigningKey?
    ) throws(KeyLogError) -> KeyLogEntry {
        let octets = fields.octets
        let (signature, previous): ([UInt8], [UInt8]?)
        do throws(CryptoError) {
            signature = try identity.signature(for: .key, octets)
            previous = try last.map { last throws(CryptoError) in try last.signature(for: .key, octets) }
        } catch { throw KeyLogError(.malformed, "an entry cannot be signed: \(error)") }
        return try KeyLogEntry(fields, signature: signature, previousSignature: previous)
    }

    private static func publicKeys(
        _ user: String, _ identity: Ed25519.SigningKey, _ encryption: X25519.PublicKey
    ) throws(KeyLogError) -> PublicKeys {
        do throws(CryptoError) {
            return try PublicKeys(user: user, identity: identity.verifyingKey, encryption: encryption)
        } catch { throw KeyLogError(.malformed, "the user's name is too long: \(error)") }
    }
}
