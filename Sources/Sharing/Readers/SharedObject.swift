public import ThicketProtocol
public import ThicketSealed

/// What a shared object has to tell beside what sealed objects tell.
public enum SharedEvent: Sendable, Equatable {
    /// This account wrote the operation at this position, or the snapshot of it.
    case written(by: Author, SealedHeader.Kind, at: Int)
    /// Somebody put something there that counts for nothing.
    case uncounted(AuthorshipError, SealedHeader.Kind, at: Int)
    case object(SealedEvent)
}

/// Why a device has nothing of an object.
public enum SharedOpenError: Error, Equatable, Sendable {
    case held(SharedHold)
    /// The snapshot counts for nothing.
    case refused(AuthorshipError)
    case sealed(SealedOpenError)
    /// What was kept of the edits does not belong to what was kept of the object.
    case doesNotFit
}

/// One object of a shared bucket on one device: `SealedObject`, for which nothing is taken before it can be said of all
/// of it who wrote it. Give it the sealer that fits what the device knows of lists and secrets at the time.
public struct SharedObject: Sendable, Equatable {
    public internal(set) var object: SealedObject

    /// - Parameter object: one whose author is the sealer's writer (`AuthoredSealer.Writer.id`).
    public init(_ object: SealedObject) { self.object = object }

    /// Opens an object on a device that has nothing of it. The device believes the account that wrote the snapshot all
    /// that stands before it.
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

    /// Takes the operation that follows.
    /// - Throws: `SharedHold`; nothing has been taken then: give it again once what is lacking is there, or adopt the
    ///   object once its owner has said that there is no such list, and compacted it (`AuthoredSealer.knowingNewest`).
    public mutating func receive(_ sealed: [UInt8], with sealer: AuthoredSealer) throws(SharedHold) -> [SharedEvent] {
        var judged = JudgedSealer(sealer)
        try judged.judge(sealed, .operation, position: 0, at: object.log.position + 1, behind: object.log.list)
        let position = object.log.position
        let events = object.receive(sealed, with: judged)
        // Of what was not taken nothing is told: it does not stand there.
        return (object.log.position > position ? judged.events : []) + events.map { .object($0) }
    }

    /// Takes the object as the server shows it now.
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
        // Of what was there before it has told.
        let told = judged.events.filter { event in
            switch event {
            case .written(_, .operation, let at), .uncounted(_, .operation, let at):
                (object.log.incarnation != incarnation || at > position) && at <= object.log.position
            case .written(_, .snapshot, let at): object.log.incarnation != incarnation || at > position
            case .uncounted(_, .snapshot, _), .object: true
            }
        }
        return told + events.map { .object($0) }
    }

    /// Whether this very device has written the snapshot.
    private func isOwn(_ judged: JudgedSealer) -> Bool {
        guard case .written(let author, .snapshot, _)? = judged.events.first else { return false }
        return Authorship.authorID(keyID: author.reader.keyID, device: author.device) == object.author
    }

    /// Position of a snapshot of another incarnation whose author knew an older list than stands in the log here: the
    /// count of lists begins anew with it, and who was removed could begin it. nil: it is none.
    private func madeUnderOlderList(_ entity: SealedEntity, _ judged: JudgedSealer) -> Int? {
        guard object.problem == nil, !object.isStopped,
            case .written(let author, .snapshot, let position)? = judged.events.first, author.list < object.log.list,
            let text: String = entity.newest?.text,
            let theirs = SealedObject.log(
                of: SealedObject.bytes(of: text), at: position, object.log.place, judged)
        else { return nil }
        return theirs.incarnation == object.log.incarnation ? nil : position
    }

    /// Whether what is sealed here would count: not under another author than the sealer's writer (the account has
    /// other keys now), nor under an older list than the log has seen (the lists kept are older than the object).
    func maySeal(_ sealer: AuthoredSealer) -> Bool {
        sealer.maySeal && sealer.writerID == object.author && sealer.listVersion >= object.log.list
    }

    /// Takes an edit of the app.
    /// - Throws: `readOnly` also for an account that may only read.
    public mutating func edit(_ diff: ObjectDiff, with sealer: AuthoredSealer) throws(SealedEditError) {
        guard sealer.maySeal else { throw .readOnly }
        try object.edit(diff)
    }

    /// The next operation of the edits that wait, or the mark that is owed, as `SealedObject.seal`; nil also for who
    /// may not write, or no more, with another writer than the object's author, and with older lists than the log has
    /// seen: the edits stay.
    public mutating func seal(
        changeID: [UInt8], nonce: [UInt8], with sealer: AuthoredSealer
    ) -> SealedObject.Pending? {
        maySeal(sealer) ? object.seal(changeID: changeID, nonce: nonce, with: sealer) : nil
    }

    /// An operation that changes nothing and ends what older lists allow, as `SealedObject.sealMark`: after a removal,
    /// one for each object. Where it counts for nothing (`rebased`), `seal` makes it again, until the log's `list` is
    /// this one (`owesMark`).
    public mutating func sealMark(
        changeID: [UInt8], nonce: [UInt8], with sealer: AuthoredSealer
    ) -> SealedObject.Pending? {
        maySeal(sealer) ? object.sealMark(changeID: changeID, nonce: nonce, with: sealer) : nil
    }

    /// The server has the pending operation, and the log, read to its end, does not count it: as `SealedObject.refuse`.
    public mutating func refuse() -> [SharedEvent] { object.refuse().map { .object($0) } }

    /// The snapshot of what the log holds; nil for who may not write.
    public func sealedSnapshot(id: [UInt8], nonce: [UInt8], with sealer: AuthoredSealer) -> [UInt8]? {
        sealer.maySeal && sealer.listVersion >= object.log.list
            ? object.sealedSnapshot(id: id, nonce: nonce, with: sealer) : nil
    }
}

/// Opens what was looked at before, so that no signature is verified twice.
struct JudgedSealer: Sealer {
    private let sealer: AuthoredSealer
    private var opened = [[UInt8]: (id: [UInt8], clear: [UInt8])]()
    private(set) var events = [SharedEvent]()

    init(_ sealer: AuthoredSealer) { self.sealer = sealer }

    /// Looks at the newest snapshot of an object, and at all operations behind it.
    init(_ entity: SealedEntity, _ sealer: AuthoredSealer) throws(SharedHold) {
        self.init(sealer)
        guard let newest = entity.newest else { return }
        let snapshot = SealedObject.bytes(of: newest.text)
        try judge(snapshot, .snapshot, position: newest.position, at: newest.position)
        // The log says which list is over where.
        var log = SealedObject.log(of: snapshot, at: newest.position, sealer.place, self)
        for (index, text) in entity.tail.reversed().enumerated() {
            let sealed = SealedObject.bytes(of: text)
            try judge(
                sealed, .operation, position: 0, at: newest.position + 1 + index, behind: log?.list ?? 0)
            _ = log?.append(sealed, clear: open(sealed, kind: .operation, position: 0)?.clear)
        }
    }

    /// - Parameter list: that the log stands under there.
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

    /// What was not looked at, or refused, does not open, nor as another kind than it was looked at as: a snapshot may
    /// stand among the operations, too. Its position was looked at with it.
    func open(_ sealed: [UInt8], kind: SealedHeader.Kind, position: Int) -> (id: [UInt8], clear: [UInt8])? {
        SealedHeader(of: sealed)?.kind == kind ? opened[sealed] : nil
    }
}
