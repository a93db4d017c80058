import ThicketCrypto
import ThicketProtocol
public import ThicketSealed

/// Seals and opens the values of one object of a shared bucket: signs what it seals, and opens only values signed by an
/// account with write permission. Code that uses `Sealer` can then treat the object like one of a private bucket.
///
/// For a removed account it still opens everything that the account could open before.
public struct AuthoredSealer: Sealer {
    /// The account and device that write.
    public struct Writer: Sendable {
        let account: SigningAccount
        let device: [UInt8]

        /// - Parameter device: 8 bytes, unique among the devices of the account.
        /// - Throws: `outOfBounds`.
        public init(_ account: SigningAccount, device: [UInt8]) throws(SharingError) {
            guard device.count == Authorship.deviceBytes else { throw .outOfBounds }
            (self.account, self.device) = (account, device)
        }

        /// The author id in this device's operations.
        public var id: AuthorID { Authorship.authorID(keyID: account.keys.id, device: device) }
    }

    /// The verdict on a sealed value.
    public enum Look: Sendable, Equatable {
        /// The value is valid: its author, its id and its clear text.
        case counts(Author, id: [UInt8], clear: [UInt8])
        /// The value is ignored, by every reader alike.
        case refused(AuthorshipError)
        /// No verdict is possible yet.
        case held(SharedHold)
    }

    /// Owner, app, bucket and server key of the object.
    public let place: SealedPlace
    private let bucketKeys: SealedBucketKeys
    private let inner: ObjectSealer
    /// The newest epoch whose secret this device has.
    private let epoch: UInt32
    private var lists: SharedBucketReader
    private let keys: VerifiedKeys
    private let writer: Writer?
    /// Whether the owner has stated that no list is newer than the newest one here.
    private var isNewest = false

    /// - Parameters:
    ///   - secrets: the secrets opened so far.
    ///   - lists: the reader lists that this device knows.
    ///   - writer: nil for a device that only reads.
    /// - Throws: `otherBucket`, `outOfBounds`; `notCommitted` when a secret differs from the newest list's commitment.
    public init(
        serverKey: String, secrets: BucketSecrets, lists: SharedBucketReader, keys: VerifiedKeys, writer: Writer?
    ) throws(SharingError) {
        guard secrets.bucket == lists.bucket else { throw .otherBucket }
        let said = lists.newest?.list.commitments ?? []
        for (epoch, pair) in zip(secrets.commitments, said).enumerated()
        where pair.0 != pair.1 { throw .notCommitted(epoch: UInt32(epoch)) }
        bucketKeys = try secrets.keys()
        do throws(CryptoError) { inner = try bucketKeys.sealer(serverKey: serverKey) } catch { throw .outOfBounds }
        place = bucketKeys.place(serverKey: serverKey)
        (epoch, self.lists, self.keys, self.writer) = (secrets.epoch, lists, keys, writer)
    }

    /// Version of the newest reader list known here; 0: none.
    public var listVersion: Int { Int(lists.version) }

    /// Whether values sealed by this device are valid: by the newest known list its account has write permission, and
    /// the device has the secret of that list's epoch.
    public var maySeal: Bool { signing != nil }

    /// The author id that operations must contain; nil for a device that only reads.
    var writerID: AuthorID? { writer?.id }

    /// The same sealer, with the owner's statement that no list is newer than the newest one known to this device. A
    /// value that names a later list or epoch is then not waited for but refused, as `noSuchList`. This repairs an
    /// object that is held because a value names an invented list: adopt it with this sealer and compact it at once;
    /// other devices, which cannot know the lists to be complete, continue from that snapshot.
    ///
    /// Use it only where all lists are known that the owner has made, on any device: otherwise it discards values that
    /// were legitimately written under a newer list, and devices that have accepted them report a snapshot that does
    /// not match.
    ///
    /// - Returns: nil unless this account is the owner, with the keys and the secret of the newest list.
    public var knowingNewest: AuthoredSealer? {
        guard let owner = signing?.writer.account.keys.user,
            owner.utf8.elementsEqual(lists.bucket.owner.utf8)
        else { return nil }
        var sealer = self
        sealer.isNewest = true
        return sealer
    }

    /// The author id; for a device that only reads, an id under which no device writes.
    var author: AuthorID { writer?.id ?? AuthorID(rawValue: 0) }

    /// The writing account and device.
    var writing: (keys: PublicKeys, device: [UInt8])? { writer.map { ($0.account.keys, $0.device) } }

    /// Whether this account wrote the value on this device, with any of its keys.
    func isOwn(_ author: Author) -> Bool {
        guard let (keys, device) = writing else { return false }
        return author.reader.user.utf8.elementsEqual(keys.user.utf8) && author.device == device
    }

    /// A copy that ignores a fork of the lists, for values that were accepted and stored before the fork was found.
    var beforeFork: AuthoredSealer {
        var sealer = self
        sealer.lists.fork = nil
        return sealer
    }

    /// Whether `appKey` is a valid key and belongs to this object.
    func isNamed(_ appKey: String) -> Bool {
        guard (try? EntityKey(appKey)) != nil else { return false }
        return bucketKeys.serverKey(of: appKey).utf8.elementsEqual(place.serverKey.utf8)
    }

    private var signing: (writer: Writer, list: ReaderList, place: Int)? {
        guard lists.fork == nil, let writer, let list = lists.newest?.list, list.epoch == epoch,
            let reader = list.reader(writer.account.keys), reader.rights == .writes,
            let place = list.place(of: reader.user)
        else { return nil }
        return (writer, list, place)
    }

    /// As `ObjectSealer`, with the authorship before the clear text. Precondition: `maySeal`.
    public func seal(
        _ clear: [UInt8], kind: SealedHeader.Kind, id: [UInt8], position: Int, nonce: [UInt8]
    ) -> [UInt8] {
        guard let (writer, list, place) = signing else {
            preconditionFailure("sealing needs write permission in the newest list: see maySeal")
        }
        let said = Authorship.Statement(
            place: self.place, kind: kind, position: position, id: id, clear: clear)
        let fields = said.fields(list, list.readers[place], writer.device)
        guard let signature = try? writer.account.identity.signature(for: .author, fields) else {
            preconditionFailure("all names are within Limits")
        }
        let authorship = Authorship(
            list: list.version, digest: list.digest, place: place, device: writer.device, signature: signature)
        return inner.seal(authorship.bytes + clear, kind: kind, id: id, position: position, nonce: nonce)
    }

    /// The clear text of a valid value; nil for any other verdict.
    public func open(_ sealed: [UInt8], kind: SealedHeader.Kind, position: Int) -> (id: [UInt8], clear: [UInt8])? {
        guard case .counts(_, let id, let clear) = look(at: sealed, kind: kind, position: position) else { return nil }
        return (id: id, clear: clear)
    }

    /// Opens a value and verifies its author.
    public func look(at sealed: [UInt8], kind: SealedHeader.Kind, position: Int) -> Look {
        do throws(Outcome) { return try judged(sealed, kind, position) } catch { return error.look }
    }

    /// Opens an operation that names an older list than the log has already reached. Such an operation is ignored
    /// regardless of its author, so it is not held for the author's keys, which may never be available again.
    /// - Parameter version: the list version that the log has reached.
    /// - Returns: nil for any other value.
    func late(_ sealed: [UInt8], behind version: Int) -> (id: [UInt8], clear: [UInt8])? {
        guard lists.fork == nil, let header = SealedHeader(of: sealed),
            let opened = inner.open(sealed, kind: .operation, position: 0),
            let authorship = Authorship(before: opened.clear), authorship.list < version,
            let list = lists.list(authorship.list), list.digest == authorship.digest,
            list.epoch == header.epoch
        else { return nil }
        let clear = Array(opened.clear.dropFirst(Authorship.bytesCount))
        return SealedOperation.list(clear: clear) == Int(list.version) ? (opened.id, clear) : nil
    }

    /// Ends a verification early.
    private enum Outcome: Error {
        case refused(AuthorshipError)
        case held(SharedHold)

        var look: Look {
            switch self {
            case .refused(let error): .refused(error)
            case .held(let hold): .held(hold)
            }
        }
    }

    private func judged(_ sealed: [UInt8], _ kind: SealedHeader.Kind, _ position: Int) throws(Outcome) -> Look {
        guard lists.fork == nil else { throw .held(.forked) }
        guard let header = SealedHeader(of: sealed), header.kind == kind,
            header.epoch < ReaderLimits.epochsMax
        else { throw .refused(.doesNotOpen) }
        guard let newest = lists.newest?.list else { throw .held(.list(1)) }
        guard header.epoch <= newest.epoch else {
            throw isNewest ? .refused(.noSuchList(nil)) : .held(.epoch(header.epoch))
        }
        guard header.epoch <= epoch else { throw .held(.secret(header.epoch)) }
        guard let opened = inner.open(sealed, kind: kind, position: position) else {
            throw .refused(.doesNotOpen)
        }
        guard let authorship = Authorship(before: opened.clear) else { throw .refused(.unsigned) }
        let text = Array(opened.clear.dropFirst(Authorship.bytesCount))
        let said = Authorship.Statement(
            place: place, kind: kind, position: position, id: opened.id, clear: text)
        let list = try list(of: authorship, header.epoch, newest, said)
        let reader = try author(authorship, list, said)
        try check(said, reader, authorship)
        return .counts(
            Author(reader: reader, device: authorship.device, list: authorship.list), id: opened.id, clear: text)
    }

    /// The list under which the author wrote.
    private func list(
        of authorship: Authorship, _ epoch: UInt32, _ newest: ReaderList, _ said: Authorship.Statement
    ) throws(Outcome) -> ReaderList {
        guard authorship.list <= newest.version else {
            // Epochs never decrease, so no future list has an older epoch than the newest list.
            guard epoch == newest.epoch else { throw .refused(.otherEpoch) }
            guard authorship.list <= ReaderLimits.listsMax else { throw .refused(.otherList) }
            guard isNewest else { throw .held(.list(authorship.list)) }
            throw .refused(.noSuchList(inventor(authorship, newest, said)))
        }
        guard let list = lists.list(authorship.list), list.digest == authorship.digest else {
            throw .refused(.otherList)
        }
        guard list.epoch == epoch else { throw .refused(.otherEpoch) }
        return list
    }

    /// The signer of a value that names a non-existent list, among the readers that have the secret; nil if none of
    /// them signed it.
    private func inventor(
        _ authorship: Authorship, _ newest: ReaderList, _ said: Authorship.Statement
    ) -> String? {
        newest.readers.first { reader in
            let fields = said.fields(authorship.list, authorship.digest, reader, authorship.device)
            return keys.keys(reader)?.identity.isSignature(authorship.signature, for: .author, fields) == true
        }?.user
    }

    private func author(
        _ authorship: Authorship, _ list: ReaderList, _ said: Authorship.Statement
    ) throws(Outcome) -> ListedReader {
        guard list.readers.indices.contains(authorship.place) else { throw .refused(.notAReader) }
        let reader = list.readers[authorship.place]
        guard let known = keys.keys(reader) else {
            throw .held(.keys(user: reader.user, keyID: reader.keyID))
        }
        let fields = said.fields(list, reader, authorship.device)
        guard known.identity.isSignature(authorship.signature, for: .author, fields) else {
            throw .refused(.badSignature(reader.user))
        }
        guard reader.rights == .writes else { throw .refused(.mayNotWrite(reader.user)) }
        return reader
    }

    /// The statements in the clear text must match what its author has signed; for the list this holds even under
    /// unknown future rules. Clear text that is not an operation is passed on, because the log handles it.
    private func check(
        _ said: Authorship.Statement, _ reader: ListedReader, _ authorship: Authorship
    ) throws(Outcome) {
        switch said.kind {
        case .operation:
            if let operation: SealedOperation = try? .init(clear: said.clear),
                operation.author != Authorship.authorID(keyID: reader.keyID, device: authorship.device)
            {
                throw .refused(.otherDevice(reader.user))
            }
            if let list = SealedOperation.list(clear: said.clear), list != authorship.list {
                throw .refused(.otherList)
            }
        case .snapshot:
            // A snapshot cannot be written under an older list than the operations in it; and a new object begins at
            // its author's list, so that a reader that the author has removed cannot write the first operation.
            guard let list = SealedSnapshot.list(clear: said.clear), list <= authorship.list,
                said.position > 0 || list == authorship.list
            else { throw .refused(.otherList) }
            // A reader with the keys could write any name into a snapshot and present one object as another.
            guard let name = SealedSnapshot.appKey(clear: said.clear), isNamed(name) else {
                throw .refused(.otherName(reader.user))
            }
        }
    }
}
