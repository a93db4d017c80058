import ThicketCrypto
import ThicketProtocol
public import ThicketSealed

/// Seals and opens the values of one object of a shared bucket: signs what it seals, and opens only what somebody has
/// signed who might write it. To everything behind `Sealer` an object is then like one of a private bucket.
///
/// For a removed account it opens what it could open before.
public struct AuthoredSealer: Sealer {
    /// Who writes here.
    public struct Writer: Sendable {
        let account: SigningAccount
        let device: [UInt8]

        /// - Parameter device: 8 bytes, other ones for each device of the account.
        /// - Throws: `outOfBounds`.
        public init(_ account: SigningAccount, device: [UInt8]) throws(SharingError) {
            guard device.count == Authorship.deviceBytes else { throw .outOfBounds }
            (self.account, self.device) = (account, device)
        }

        /// The id that operations name.
        public var id: AuthorID { Authorship.authorID(keyID: account.keys.id, device: device) }
    }

    /// What became of a sealed value.
    public enum Look: Sendable, Equatable {
        case counts(Author, id: [UInt8], clear: [UInt8])
        case refused(AuthorshipError)
        case held(SharedHold)
    }

    public let place: SealedPlace
    private let bucketKeys: SealedBucketKeys
    private let inner: ObjectSealer
    /// The newest epoch that can be opened here.
    private let epoch: UInt32
    private var lists: SharedBucketReader
    private let keys: VerifiedKeys
    private let writer: Writer?
    /// The owner says that no list is newer than the newest one here.
    private var isNewest = false

    /// - Parameters:
    ///   - secrets: as far as they were opened.
    ///   - lists: what this device knows of who reads.
    ///   - writer: nil for a device that only reads.
    /// - Throws: `otherBucket`, `outOfBounds`; `notCommitted` for another secret than the newest list says.
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

    public var listVersion: Int { Int(lists.version) }

    /// Whether what this device seals counts: its account may write by the newest list that it knows, and it has that
    /// list's secret.
    public var maySeal: Bool { signing != nil }

    /// The id that operations have to name; nil for a device that only reads.
    var writerID: AuthorID? { writer?.id }

    /// The same for the bucket's owner to say that no list is newer than the newest that this device knows. What names
    /// a list or an epoch to come is then not waited for: it counts for nothing, as `noSuchList`. For an object that is
    /// held by what somebody has invented: adopt it with this sealer and compact it at once; the other devices, which
    /// cannot know, go on from that snapshot.
    ///
    /// Only where all lists are known that the owner has made, on whatever device: what somebody has truly written
    /// under another one is given up by it, and who has taken it is told of a snapshot that does not fit.
    ///
    /// - Returns: nil for everybody but the owner, with the keys and the secret of the newest list.
    public var knowingNewest: AuthoredSealer? {
        guard let owner = signing?.writer.account.keys.user,
            owner.utf8.elementsEqual(lists.bucket.owner.utf8)
        else { return nil }
        var sealer = self
        sealer.isNewest = true
        return sealer
    }

    /// The same, and for a device that only reads one under which nobody writes anything.
    var author: AuthorID { writer?.id ?? AuthorID(rawValue: 0) }

    /// The account that writes here, and its device.
    var writing: (keys: PublicKeys, device: [UInt8])? { writer.map { ($0.account.keys, $0.device) } }

    /// Whether this account wrote it on this device, under whichever of its keys.
    func isOwn(_ author: Author) -> Bool {
        guard let (keys, device) = writing else { return false }
        return author.reader.user.utf8.elementsEqual(keys.user.utf8) && author.device == device
    }

    /// As if the owner had not signed two lists: for what was taken before that was found, and kept.
    var beforeFork: AuthoredSealer {
        var sealer = self
        sealer.lists.fork = nil
        return sealer
    }

    /// Whether an app may use this key, and it is the object's.
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

    /// As `ObjectSealer`, with the author in front. Who may not write seals nothing: ask `maySeal`.
    public func seal(
        _ clear: [UInt8], kind: SealedHeader.Kind, id: [UInt8], position: Int, nonce: [UInt8]
    ) -> [UInt8] {
        guard let (writer, list, place) = signing else {
            preconditionFailure("only who may write by the newest list seals: see maySeal")
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

    public func open(_ sealed: [UInt8], kind: SealedHeader.Kind, position: Int) -> (id: [UInt8], clear: [UInt8])? {
        guard case .counts(_, let id, let clear) = look(at: sealed, kind: kind, position: position) else { return nil }
        return (id: id, clear: clear)
    }

    /// Opens a value and looks who wrote it.
    public func look(at sealed: [UInt8], kind: SealedHeader.Kind, position: Int) -> Look {
        do throws(Outcome) { return try judged(sealed, kind, position) } catch { return error.look }
    }

    /// Opens an operation that names an older list than its log stands under. It counts for nothing, whoever wrote it:
    /// nobody's keys are waited for, who may have left long ago.
    /// - Parameter version: of the list that the log stands under.
    /// - Returns: nil for all else.
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

    /// Why a look ends early.
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

    /// The list that the author wrote under.
    private func list(
        of authorship: Authorship, _ epoch: UInt32, _ newest: ReaderList, _ said: Authorship.Statement
    ) throws(Outcome) -> ReaderList {
        guard authorship.list <= newest.version else {
            // Epochs never go back: no list to come has an older one than the newest.
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

    /// Who has signed what names a list that is not there: one of those who have the secret that it is sealed with, if
    /// anybody has.
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

    /// What the text says of itself must be what its author has signed, the list also under rules that are not known
    /// here. Text that is no operation is left to the log, which knows what to do with it.
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
            // Nobody has seen operations under a list and writes under an older one; and a new object begins at its
            // author's, so that nobody writes there first whom that one has removed.
            guard let list = SealedSnapshot.list(clear: said.clear), list <= authorship.list,
                said.position > 0 || list == authorship.list
            else { throw .refused(.otherList) }
            // Who has the keys may write any name into it, and show one object as another.
            guard let name = SealedSnapshot.appKey(clear: said.clear), isNamed(name) else {
                throw .refused(.otherName(reader.user))
            }
        }
    }
}
