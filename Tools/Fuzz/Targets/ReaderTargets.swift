import ThicketCrypto
import ThicketSealed
import ThicketSharing

/// A signed list of readers, as a server shows it: each has one form, and its successors pass the check of successors.
public func fuzzReaderList(_ bytes: [UInt8]) {
    guard let signed: SignedReaderList = try? .init(parsing: bytes) else { return }
    let list: ReaderList = signed.list
    precondition(signed.bytes == bytes, "what is read is written, byte for byte")
    precondition(list.readers.count <= ReaderLimits.readersMax && list.version <= ReaderLimits.listsMax, "bounds")
    precondition(list.owner?.rights == .writes, "the owner writes")
    precondition((try? list.check(follows: list)) == nil, "no list follows itself")
    let nobody: VerifiedKeys = .init { _ in nil }
    precondition((try? VerifiedReaderList(signed, of: list.bucket, by: nobody)) == nil, "nobody has verified anything")
    guard let next: ReaderList = try? list.next(readers: list.readers) else {
        precondition(list.version == ReaderLimits.listsMax, "the same readers may go on")
        return
    }
    precondition((try? next.check(follows: list)) != nil && next.epoch == list.epoch, "it follows")
    guard let owner: ListedReader = list.owner, list.readers.count > 1 else { return }
    precondition((try? list.next(readers: [owner])) == nil, "nobody is removed without an epoch")
}

/// A wrap of a secret, as a server shows it.
public func fuzzSecretWrap(_ bytes: [UInt8]) {
    guard let wrap: SecretWrap = try? .init(parsing: bytes) else { return }
    precondition(wrap.bytes == bytes, "what is read is written, byte for byte")
    precondition(wrap.sealed.count == KeyWrap.bytesCount && wrap.epoch < ReaderLimits.epochsMax, "bounds")
}

/// A device's kept knowledge of a bucket's readers.
public func fuzzSharedReader(_ bytes: [UInt8]) {
    guard var reader: SharedBucketReader = try? .init(unverified: bytes) else { return }
    precondition(reader.saved == bytes, "what is read is written, byte for byte")
    precondition((0..<reader.version).allSatisfy { reader.list($0 + 1)?.version == $0 + 1 }, "without gaps")
    let nobody: VerifiedKeys = .init { _ in nil }
    let isRestored: Bool = (try? SharedBucketReader(saved: bytes, keys: nobody)) != nil
    precondition(isRestored == (reader.lists.isEmpty && reader.fork == nil), "nobody has verified anything")
    let (before, shown): (SharedBucketReader, [SignedReaderList]) = (reader, reader.lists)
    let verdict: SharedBucketReader.Verdict = reader.accept(shown, keys: nobody)
    precondition(reader == before, "nothing new was shown")
    if reader.fork == nil { precondition(verdict == .known, "all of it is known") }
}

/// A value that a member may have sealed in a shared bucket: the bytes are the clear text, without a valid signature.
public func fuzzAuthoredText(_ bytes: [UInt8]) {
    if let authorship = Authorship(before: bytes) {
        precondition(authorship.bytes == Array(bytes.prefix(Authorship.bytesCount)), "what is read is written")
    }
    guard let (plain, sealer): (ObjectSealer, AuthoredSealer) = fixedSealers else {
        preconditionFailure("the list and the secret are good")
    }
    for kind: SealedHeader.Kind in [.operation, .snapshot] {
        let sealed: [UInt8] = plain.seal(
            bytes, kind: kind, id: .init(repeating: 1, count: 16), position: 0, nonce: .init(repeating: 2, count: 12))
        switch sealer.look(at: sealed, kind: kind, position: 0) {
        case .counts: preconditionFailure("nobody has signed this")
        case .refused(.doesNotOpen): preconditionFailure("it opens")
        case .refused, .held: break
        }
        precondition(sealer.open(sealed, kind: kind, position: 0) == nil, "and so it does not count")
    }
    switch sealer.look(at: bytes, kind: .operation, position: 0) {
    case .counts: preconditionFailure("nobody has sealed this")
    case .refused, .held: break
    }
}

/// Sealers of a bucket of one account, whose secret and list are always the same.
private let fixedSealers: (ObjectSealer, AuthoredSealer)? = {
    func secret(_ byte: UInt8) -> SecureBytes { SecureBytes(copying: .init(repeating: byte, count: 32)) }
    guard let signing: Ed25519.SigningKey = try? .init(seed: secret(1)),
        let opening: X25519.PrivateKey = try? .init(secret(2)),
        let keys: PublicKeys = try? .init(user: "o", identity: signing.verifyingKey, encryption: opening.publicKey),
        let account: SigningAccount = try? .init(keys, identity: signing),
        let bucket: SharedBucket = try? .init(owner: "o", app: "a", bucket: "b"),
        let secrets: BucketSecrets = try? .init(of: bucket, secret: secret(3)),
        let list: ReaderList = try? .init(
            bucket: bucket, version: 1, previous: .zero, commitments: secrets.commitments,
            readers: [ListedReader(keys, .writes)]),
        let signed: SignedReaderList = try? .init(list, signedBy: account)
    else { return nil }
    let verified = VerifiedKeys { $0.utf8.elementsEqual("o".utf8) ? keys : nil }
    var lists = SharedBucketReader(bucket: bucket)
    guard case .accepted = lists.accept([signed], keys: verified),
        let plain = try? secrets.keys().sealer(serverKey: "aaaa"),
        let sealer: AuthoredSealer = try? .init(
            serverKey: "aaaa", secrets: secrets, lists: lists, keys: verified, writer: nil)
    else { return nil }
    return (plain, sealer)
}()
