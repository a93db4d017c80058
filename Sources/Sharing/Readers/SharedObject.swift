public import ThicketProtocol
public import ThicketSealed

/// Events of a shared object, in addition to those of sealed objects.
public enum SharedEvent: Sendable, Equatable {
    /// The author of the operation at this position, or of the snapshot of it.
    case written(by: Author, SealedHeader.Kind, at: Int)
    /// A value at this position is ignored, for this reason.
    case uncounted(AuthorshipError, SealedHeader.Kind, at: Int)
    /// An event of the sealed object.
    case object(SealedEvent)
}

/// The reason why a device cannot open or restore an object.
public enum SharedOpenError: Error, Equatable, Sendable {
    /// No verdict is possible yet.
    case held(SharedHold)
    /// The snapshot is not valid.
    case refused(AuthorshipError)
    /// The sealed object does not open.
    case sealed(SealedOpenError)
    /// The stored edits do not belong to the stored object.
    case doesNotFit
}

/// One object of a shared bucket on one device: a `SealedObject` that accepts a value only after the authors of all
/// values are verified. The caller passes a sealer with the lists and secrets that the device currently knows.
public struct SharedObject: Sendable, Equatable {
    /// The sealed object.
    public internal(set) var object: SealedObject

    /// - Parameter object: its author must be the sealer's writer (`AuthoredSealer.Writer.id`).
    public init(_ object: SealedObject) { self.object = object }

    /// Opens an object on a device that has no state of it. The device trusts the author of the snapshot for everything
    /// before it.
    public static func open(
        _ entity: SealedEntity, author: AuthorID, with sealer: AuthoredSealer
    ) throws(SharedOpenError) -> (object: SharedObject, events: [SharedEvent]) {
        let judged: JudgedSealer
        do throws(SharedHold) { judged = try JudgedSealer(entity, sealer) } catch { throw .held(error) }
        if case .uncounted(let error, .snapshot, _)? = judged.events.first { throw .refused(error) }
        do throws(SealedOpenError) {
            let (object, events) = try SealedObject.open(
                entity, author: author, place: sealer.place, with: judged)
            return (SharedObject(object), judged.events + events.map { .object($0) })
        } catch { throw .sealed(error) }
    }

    /// Processes the next operation.
    /// - Throws: `SharedHold`; the state is unchanged then. Pass the operation again when the missing information is
    ///   available, or adopt the object after its owner has stated that there is no such list and has compacted it
    ///   (`AuthoredSealer.knowingNewest`).
    public mutating func receive(_ sealed: [UInt8], with sealer: AuthoredSealer) throws(SharedHold) -> [SharedEvent] {
        var judged = JudgedSealer(sealer)
        try judged.judge(sealed, .operation, position: 0, at: object.log.position + 1, behind: object.log.list)
        let position = object.log.position
        let events = object.receive(sealed, with: judged)
        // An operation that was not accepted is not reported, because it is not part of the log.
        return (object.log.position > position ? judged.events : []) + events.map { .object($0) }
    }

    /// Accepts the object in the server's current state.
    /// - Throws: as `receive`.
    public mutating func adopt(
        _ entity: SealedEntity, with sealer: AuthoredSealer
    ) throws(SharedHold) -> [SharedEvent] {
        let judged = try JudgedSealer(entity, sealer)
        if let position = madeUnderOlderList(entity, judged) {
            return Array(judged.events.prefix(1)) + object.report(.snapshotMismatch(at: position)).map { .object($0) }
        }
        let (incarnation, position) = (object.log.incarnation, object.log.position)
        let events = object.adopt(entity, with: judged, byOthers: !isOwn(judged))
        // Values before this were reported earlier.
        let reported = judged.events.filter { event in
            switch event {
            case .written(_, .operation, let at), .uncounted(_, .operation, let at):
                (object.log.incarnation != incarnation || at > position) && at <= object.log.position
            case .written(_, .snapshot, let at): object.log.incarnation != incarnation || at > position
            case .uncounted(_, .snapshot, _), .object: true
            }
        }
        return reported + events.map { .object($0) }
    }

    /// Whether this device has written the snapshot.
    private func isOwn(_ judged: JudgedSealer) -> Bool {
        guard case .written(let author, .snapshot, _)? = judged.events.first else { return false }
        return Authorship.authorID(keyID: author.reader.keyID, device: author.device) == object.author
    }

    /// Position of a snapshot of another incarnation whose author knew an older list than the log here; nil otherwise.
    /// A new incarnation restarts the check of list versions, so a removed reader could otherwise create one.
    private func madeUnderOlderList(_ entity: SealedEntity, _ judged: JudgedSealer) -> Int? {
        guard object.problem == nil, !object.isStopped,
            case .written(let author, .snapshot, let position)? = judged.events.first, author.list < object.log.list,
            let text = entity.newest?.text,
            let theirs = SealedObject.log(
                of: SealedObject.bytes(of: text), at: position, object.log.place, judged)
        else { return nil }
        return theirs.incarnation == object.log.incarnation ? nil : position
    }

    /// Whether a value sealed here would be valid: the sealer's writer must be the object's author (the account may
    /// have other keys now), and its list must not be older than the log's (the stored lists may be older than the
    /// object).
    func maySeal(_ sealer: AuthoredSealer) -> Bool {
        sealer.maySeal && sealer.writerID == object.author && sealer.listVersion >= object.log.list
    }

    /// Applies an edit of the app.
    /// - Throws: `readOnly` also for an account that may only read.
    public mutating func edit(_ diff: ObjectDiff, with sealer: AuthoredSealer) throws(SealedEditError) {
        guard sealer.maySeal else { throw .readOnly }
        try object.edit(diff)
    }

    /// The next operation for the waiting edits, or a mark that is due, as `SealedObject.seal`. nil also without write
    /// permission, with another writer than the object's author, and with older lists than the log has reached; the
    /// edits are kept.
    public mutating func seal(
        changeID: [UInt8], nonce: [UInt8], with sealer: AuthoredSealer
    ) -> SealedObject.Pending? {
        maySeal(sealer) ? object.seal(changeID: changeID, nonce: nonce, with: sealer) : nil
    }

    /// An operation without effect that ends the validity of older lists, as `SealedObject.sealMark`; after the removal
    /// of a reader, one is needed per object. If it is ignored (`rebased`), `seal` makes it again, until the log's
    /// `list` is this one (`needsMark`).
    public mutating func sealMark(
        changeID: [UInt8], nonce: [UInt8], with sealer: AuthoredSealer
    ) -> SealedObject.Pending? {
        maySeal(sealer) ? object.sealMark(changeID: changeID, nonce: nonce, with: sealer) : nil
    }

    /// Handles a pending operation that the server has and that the completely read log ignores: as
    /// `SealedObject.refuse`.
    public mutating func refuse() -> [SharedEvent] { object.refuse().map { .object($0) } }

    /// The snapshot of the log's content; nil without write permission.
    public func sealedSnapshot(id: [UInt8], nonce: [UInt8], with sealer: AuthoredSealer) -> [UInt8]? {
        sealer.maySeal && sealer.listVersion >= object.log.list
            ? object.sealedSnapshot(id: id, nonce: nonce, with: sealer) : nil
    }
}

/// Opens values that were verified before, so that no signature is verified twice.
struct JudgedSealer: Sealer {
    private let sealer: AuthoredSealer
    private var opened = [[UInt8]: (id: [UInt8], clear: [UInt8])]()
    private(set) var events = [SharedEvent]()

    init(_ sealer: AuthoredSealer) { self.sealer = sealer }

    /// Verifies the newest snapshot of an object, and all operations after it.
    init(_ entity: SealedEntity, _ sealer: AuthoredSealer) throws(SharedHold) {
        self.init(sealer)
        guard let newest = entity.newest else { return }
        let snapshot = SealedObject.bytes(of: newest.text)
        try judge(snapshot, .snapshot, position: newest.position, at: newest.position)
        // The log determines from which position on a list is superseded.
        var log = SealedObject.log(of: snapshot, at: newest.position, sealer.place, self)
        for (index, text) in entity.tail.reversed().enumerated() {
            let sealed = SealedObject.bytes(of: text)
            try judge(
                sealed, .operation, position: 0, at: newest.position + 1 + index, behind: log?.list ?? 0)
            _ = log?.append(sealed, clear: open(sealed, kind: .operation, position: 0)?.clear)
        }
    }

    /// - Parameter list: the list version that the log has reached at this position.
    mutating func judge(
        _ sealed: [UInt8], _ kind: SealedHeader.Kind, position: Int, at place: Int, behind list: Int = 0
    ) throws(SharedHold) {
        switch sealer.look(at: sealed, kind: kind, position: position) {
        case .counts(let author, let id, let clear):
            opened[sealed] = (id, clear)
            events.append(.written(by: author, kind, at: place))
        case .refused(let error): events.append(.uncounted(error, kind, at: place))
        case .held(let hold):
            guard let late = sealer.late(sealed, behind: list) else { throw hold }
            opened[sealed] = late
        }
    }

    var listVersion: Int { sealer.listVersion }

    func seal(_ clear: [UInt8], kind: SealedHeader.Kind, id: [UInt8], position: Int, nonce: [UInt8]) -> [UInt8] {
        sealer.seal(clear, kind: kind, id: id, position: position, nonce: nonce)
    }

    /// Values that were not verified, or were refused, do not open; nor do values verified as another kind, because a
    /// snapshot may occur among the operations. The position was checked during verification.
    func open(_ sealed: [UInt8], kind: SealedHeader.Kind, position: Int) -> (id: [UInt8], clear: [UInt8])? {
        SealedHeader(of: sealed)?.kind == kind ? opened[sealed] : nil
    }
}
