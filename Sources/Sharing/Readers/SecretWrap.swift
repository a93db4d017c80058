public import ThicketCrypto
import ThicketPlatform
import ThicketProtocol

/// The secret of one epoch, sealed to one reader (`KeyWrap`).
public struct SecretWrap: Sendable, Hashable {
    /// The epoch of the secret.
    public let epoch: UInt32
    /// The recipient.
    public let user: String
    /// The recipient's keys: `PublicKeys.id`.
    public let keyID: String
    /// The sealed secret, 81 bytes.
    public let sealed: [UInt8]

    /// 1 ‖ epoch(4) ‖ key id(16) ‖ lp(user) ‖ the wrap(81).
    public var bytes: [UInt8] {
        [Self.form] + epoch.octets + (Hex.decode(keyID) ?? []) + UInt16(user.utf8.count).octets + Array(user.utf8)
            + sealed
    }

    private static let form: UInt8 = 1

    init(epoch: UInt32, user: String, keyID: String, sealed: [UInt8]) {
        (self.epoch, self.user, self.keyID, self.sealed) = (epoch, user, keyID, sealed)
    }

    /// Parses a wrap without opening it.
    /// - Throws: `malformed`.
    public init(parsing bytes: [UInt8]) throws(SharingError) {
        var fields = FieldReader(bytes)
        guard fields.skip([Self.form]), let epoch: UInt32 = fields.number(), epoch < ReaderLimits.epochsMax,
            let id = fields.take(ReaderList.keyIDBytes), let user = fields.text(),
            (1...Limits.userIDBytesMax).contains(user.utf8.count),
            let sealed = fields.take(KeyWrap.bytesCount), fields.isAtEnd
        else { throw .malformed }
        self.init(epoch: epoch, user: user, keyID: Hex.encode(id), sealed: sealed)
    }

    /// The context to which the wrap is bound. No node of a key tree has such a name, so wraps of the two kinds cannot
    /// be exchanged.
    static func place(_ bucket: SharedBucket, epoch: UInt32, _ reader: ListedReader) -> KeyWrap {
        KeyWrap(
            owner: bucket.owner, app: bucket.app, node: "bucket/" + bucket.bucket, epoch: epoch,
            recipient: reader.user, recipientKey: reader.keyID)
    }

    func isFor(_ reader: ListedReader) -> Bool {
        reader.isSame(as: ListedReader(user: user, keyID: keyID, rights: reader.rights))
    }

    /// Compares the encodings.
    public static func == (left: SecretWrap, right: SecretWrap) -> Bool { left.bytes == right.bytes }
    /// Uses the sealed bytes.
    public func hash(into hasher: inout Hasher) { hasher.combine(sealed) }
}

extension BucketSecrets {
    /// Seals the secrets to the readers of a verified list, and to no other account. A new reader gets all epochs: the
    /// object names depend on epoch 0, and existing values may be sealed under any epoch. An earlier reader gets only
    /// the epochs that are new.
    ///
    /// - Parameters:
    ///   - before: the list whose wraps already exist; nil: none exist.
    ///   - keys: the verified keys of the readers.
    /// - Throws: `SharingError`, before anything is sealed: when the secrets do not match the list's commitments, or
    ///   when the keys of any reader are not verified or differ from the list.
    public func wraps(
        for verified: VerifiedReaderList, after before: ReaderList? = nil, keys: VerifiedKeys
    ) throws(SharingError) -> [SecretWrap] {
        let list = verified.list
        guard list.bucket == bucket else { throw .otherBucket }
        try check(against: list)
        var receivers = [(reader: ListedReader, key: X25519.PublicKey)]()
        for reader in list.readers {
            guard let known = keys.newest(reader.user) else { throw .unverified(reader.user) }
            guard reader.has(known) else { throw .otherKeys(reader.user) }
            receivers.append((reader, known.encryption))
        }
        var wraps = [SecretWrap]()
        for (reader, key) in receivers {
            let had = before?.reader(reader.user)
            let first = had?.isSame(as: reader) == true ? (before?.epoch ?? 0) + 1 : 0
            guard first <= epoch else { continue }
            for epoch in first...epoch { wraps.append(try wrap(epoch, reader, key)) }
        }
        return wraps
    }

    private func check(against list: ReaderList) throws(SharingError) {
        for epoch in 0..<max(commitments.count, list.commitments.count) {
            guard commitments.indices.contains(epoch), list.commitments.indices.contains(epoch),
                commitments[epoch] == list.commitments[epoch]
            else { throw .notCommitted(epoch: UInt32(epoch)) }
        }
    }

    private func wrap(
        _ epoch: UInt32, _ reader: ListedReader, _ key: X25519.PublicKey
    ) throws(SharingError) -> SecretWrap {
        do throws(CryptoError) {
            let sealed = try SecretWrap.place(bucket, epoch: epoch, reader).seal(
                secret(Int(epoch)), to: key)
            return SecretWrap(epoch: epoch, user: reader.user, keyID: reader.keyID, sealed: sealed)
        } catch { throw .unusableKey }
    }

    /// The reader's side: opens all secrets to which a verified list commits.
    ///
    /// - Parameters:
    ///   - wraps: as received from the server; wraps for other readers are not tried.
    ///   - known: secrets that this reader has opened before.
    ///   - own: this account, with the keys that the list names.
    ///   - key: the secret half of its encryption key.
    /// - Throws: `notAReader`; `missing` or `notCommitted` with the first epoch concerned.
    public static func opened(
        _ wraps: [SecretWrap], for verified: VerifiedReaderList, known: BucketSecrets? = nil, as own: PublicKeys,
        with key: X25519.PrivateKey
    ) throws(SharingError) -> BucketSecrets {
        let list = verified.list
        guard key.publicKey == own.encryption else { throw .unusableKey }
        guard let reader = list.reader(own) else { throw .notAReader }
        guard known.map({ $0.bucket == list.bucket }) != false else { throw .otherBucket }
        var secrets = [SecureBytes]()
        for (epoch, commitment) in list.commitments.enumerated() {
            if let known, known.commitments.indices.contains(epoch) {
                guard known.commitments[epoch] == commitment else { throw .notCommitted(epoch: UInt32(epoch)) }
                secrets.append(known.secret(epoch))
                continue
            }
            let offered = wraps.filter { $0.epoch == epoch && $0.isFor(reader) }
            let place = SecretWrap.place(list.bucket, epoch: UInt32(epoch), reader)
            secrets.append(try opened(offered, place, commitment, key))
        }
        return try BucketSecrets(of: list.bucket, secrets: secrets)
    }

    private static func opened(
        _ wraps: [SecretWrap], _ place: KeyWrap, _ commitment: Digest256, _ key: X25519.PrivateKey
    ) throws(SharingError) -> SecureBytes {
        var isOtherSecret = false
        for wrap in wraps.prefix(ReaderLimits.wrapTriesMax) {
            // A wrap that does not open is ignored: any client may have stored it.
            guard let secret = try? place.open(wrap.sealed, with: key) else { continue }
            if try Self.commitment(of: secret) == commitment { return secret }
            isOtherSecret = true
        }
        throw isOtherSecret ? .notCommitted(epoch: place.epoch) : .missing(epoch: place.epoch)
    }
}
