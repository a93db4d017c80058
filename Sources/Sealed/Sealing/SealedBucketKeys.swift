import ThicketCrypto

/// The keys of one sealed bucket: for the names that the server sees, and for sealing its objects.
public struct SealedBucketKeys: Sendable {
    /// The account that owns the bucket.
    public let owner: String
    /// The app's id.
    public let app: String
    /// The bucket's name.
    public let bucket: String
    /// The epoch used for sealing.
    public let epoch: UInt32
    /// Always from epoch 0, because names do not change with epochs.
    private let nameKey: SecureBytes
    /// By epoch: the output of HKDF's extract step for the seal key, so that an object's key needs only the expand
    /// step.
    private let sealRoots: [UInt32: SecureBytes]

    /// The secret of a bucket that is not shared: HKDF-SHA-256(vault secret, salt empty, info "thicket/bucket/1" ‖ 0 ‖
    /// lp(app) ‖ lp(bucket) ‖ epoch(4), 32 bytes).
    /// - Throws: `CryptoError.outOfBounds`, only for names beyond `Limits`.
    public static func secret(
        vault: SecureBytes, app: String, bucket: String, epoch: UInt32
    ) throws(CryptoError) -> SecureBytes {
        let info =
            Array("thicket/bucket/1".utf8) + [0] + lengthPrefixed(app.utf8) + lengthPrefixed(bucket.utf8)
            + epoch.bigEndianBytes
        return try HKDF.derive(.sha256, secret: vault, info: info)
    }

    /// - Parameter secrets: by epoch; epoch 0 is required, and the newest is used for sealing.
    /// - Throws: `CryptoError.outOfBounds(.key)` without a secret of epoch 0.
    public init(
        owner: String, app: String, bucket: String, secrets: [UInt32: SecureBytes]
    ) throws(CryptoError) {
        guard let first = secrets[0], let newest = secrets.keys.max() else {
            throw .outOfBounds(.key)
        }
        (self.owner, self.app, self.bucket, epoch) = (owner, app, bucket, newest)
        nameKey = try Self.key(first, "name")
        var sealRoots = [UInt32: SecureBytes]()
        for (epoch, secret) in secrets {
            let key = try Self.key(secret, "seal")
            sealRoots[epoch] = try HKDF.extract(.sha256, secret: key, salt: SecureBytes(copying: []))
        }
        self.sealRoots = sealRoots
    }

    private init(copying keys: SealedBucketKeys) {
        func own(_ text: String) -> String { String(decoding: Array(text.utf8), as: UTF8.self) }
        func own(_ key: SecureBytes) -> SecureBytes { key.part(0..<key.count) }
        (owner, app, bucket, epoch) = (own(keys.owner), own(keys.app), own(keys.bucket), keys.epoch)
        (nameKey, sealRoots) = (own(keys.nameKey), keys.sealRoots.mapValues(own))
    }

    /// A copy with separate memory, for a thread that opens many objects: threads that share keys contend for their
    /// reference counts.
    public var copied: SealedBucketKeys { SealedBucketKeys(copying: self) }

    /// HKDF, info "thicket/bucket-key/1" ‖ 0 ‖ label.
    private static func key(_ secret: SecureBytes, _ label: String) throws(CryptoError) -> SecureBytes {
        try HKDF.derive(.sha256, secret: secret, info: Array("thicket/bucket-key/1".utf8) + [0] + Array(label.utf8))
    }

    /// The key by which the server knows an object: lower-case base32 of the first 20 bytes of HMAC-SHA-256(name key,
    /// UTF-8 of the app's key).
    public func serverKey(of appKey: String) -> String {
        Base32.encode(Array(HMAC.code(.sha256, key: nameKey, Array(appKey.utf8)).prefix(Self.nameBytes)))
    }

    /// Bytes of the HMAC that form a server key.
    static let nameBytes = 20

    /// The place of an object in this bucket.
    public func place(serverKey: String) -> SealedPlace {
        SealedPlace(owner: owner, app: app, bucket: bucket, serverKey: serverKey)
    }

    /// The sealer for the values of one object: HKDF(seal key, info "thicket/sealed-object/1" ‖ 0 ‖ lp(server key)).
    /// - Throws: `CryptoError.outOfBounds`, only for a key beyond `Limits`.
    public func sealer(serverKey: String) throws(CryptoError) -> ObjectSealer {
        let info = Self.sealInfo(serverKey: serverKey)
        var ciphers = [UInt32: AEAD]()
        for (epoch, root) in sealRoots {
            ciphers[epoch] = try AEAD(SealedValue.suite, key: HKDF.expand(.sha256, key: root, info: info))
        }
        return ObjectSealer(place: place(serverKey: serverKey), epoch: epoch, ciphers: ciphers)
    }

    static func sealInfo(serverKey: String) -> [UInt8] {
        Array("thicket/sealed-object/1".utf8) + [0] + lengthPrefixed(serverKey.utf8)
    }

    /// Opens the snapshots of many objects on one thread.
    package func snapshotOpener() -> SnapshotOpener {
        SnapshotOpener(nameKey: nameKey, sealRoots: sealRoots, place: place(serverKey:))
    }
}

/// Seals and opens the values of one object. The place, kind, id and position are authenticated.
public struct ObjectSealer: Sealer {
    private let place: [UInt8]
    private let epoch: UInt32
    private let ciphers: [UInt32: AEAD]

    init(place: SealedPlace, epoch: UInt32, ciphers: [UInt32: AEAD]) {
        (self.place, self.epoch, self.ciphers) = (place.prefixed, epoch, ciphers)
    }

    private static let label: [UInt8] = Array("thicket/sealed/1".utf8) + [0]
    /// Offset of H in the authenticated data.
    static let headerPlace: Int = label.count

    /// "thicket/sealed/1" ‖ 0 ‖ H ‖ lp(owner) ‖ lp(app) ‖ lp(bucket) ‖ lp(server key) ‖ n(8).
    static func data(_ header: [UInt8], _ place: [UInt8], _ position: Int) -> [UInt8] {
        label + header + place + UInt64(position).bigEndianBytes
    }

    /// Seals a clear text with the newest epoch's key.
    /// - Parameters:
    ///   - id: 16 bytes.
    ///   - nonce: 12 random bytes: each object and epoch has its own key, so 2^32 seals are not reached.
    public func seal(
        _ clear: [UInt8], kind: SealedHeader.Kind, id: [UInt8], position: Int, nonce: [UInt8]
    ) -> [UInt8] {
        precondition(id.count == SealedValue.idBytes, "an id has 16 bytes")
        guard let cipher = ciphers[epoch], let number: AEADNonce = try? .init(nonce),
            let padded = SealedValue.padding(kind).pad(clear)
        else { preconditionFailure("a nonce has 12 bytes, and a clear text fewer than 2^31") }
        let header = SealedHeader(kind: kind, epoch: epoch, id: id).bytes
        return header + nonce + cipher.seal(padded, nonce: number, data: Self.data(header, place, position))
    }

    /// Opens a value of any known epoch; nil when anything is wrong.
    public func open(_ sealed: [UInt8], kind: SealedHeader.Kind, position: Int) -> (id: [UInt8], clear: [UInt8])? {
        let body = SealedValue.headerBytes + AEADSuite.nonceBytes
        guard position >= 0, sealed.count >= SealedValue.frameBytes,
            let header = SealedHeader(of: sealed), header.kind == kind, let cipher = ciphers[header.epoch],
            let nonce: AEADNonce = try? .init(sealed[SealedValue.headerBytes..<body]),
            let padded: [UInt8] = try? cipher.open(
                Array(sealed[body...]), nonce: nonce,
                data: Self.data(Array(sealed[..<SealedValue.headerBytes]), place, position)),
            let clear = SealedValue.padding(kind).unpad(padded)
        else { return nil }
        return (id: header.id, clear: clear)
    }
}
