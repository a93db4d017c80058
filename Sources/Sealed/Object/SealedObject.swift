import ThicketProtocol

/// One sealed object on one device: the log as far as it was ordered, the operation that is on its way, and the edits
/// made meanwhile. What the app sees is the log, then those two, each carried over what has arrived.
///
/// Pure: bytes come in, events and bytes to send go out. Randomness is passed in.
public struct SealedObject: Sendable, Equatable {
    /// A sealed operation that was saved and sent. Its bytes never change under its id.
    public struct Pending: Sendable, Equatable {
        /// 16 bytes.
        public let changeID: [UInt8]
        public let sealed: [UInt8]
        /// Position that it was made on.
        public let base: Int
        /// Its edit, carried over all that arrived since; nil when nothing is left to do.
        public internal(set) var edit: Edit?
        /// The author that it names, where the object has another one since (`write(as:)`); nil: the object's.
        var sealedAs: AuthorID?
        /// All of it comes from setting the object as a whole.
        public internal(set) var isWhole: Bool = false
    }

    /// What this program is too old for.
    public enum Stop: Sendable, Equatable {
        /// The log goes on under rules that we do not know.
        case rules
        /// The server shows the object in a shape that we do not know (`SealedEntity.isNewer`).
        case shape
    }

    public internal(set) var author: AuthorID
    public internal(set) var log: SealedLog
    public internal(set) var pending: Pending?
    /// Edits behind the pending one, composed.
    public internal(set) var later: Edit? { didSet { if later == nil { isLaterWhole = false } } }
    /// All of `later` comes from setting the object as a whole, none from editing a place in it: what others have set
    /// to the same value is left as it is (docs/decisions/0086).
    public var isLaterWhole: Bool = false { didSet { if later == nil { isLaterWhole = false } } }
    /// What the app wanted by edits that are whole, before anything of others moved them; nil: nothing did. Not kept.
    var wanted: JSONValue?
    /// The log's object with the pending edit.
    var projected: JSONValue?
    /// The same with the later edits.
    var shown: JSONValue?
    /// What keeps the object read-only until the user has chosen; nothing is thrown away meanwhile.
    public internal(set) var problem: SealedIntegrity?
    /// Why nothing more of it is read before the program is a newer one; nil: nothing is in the way.
    public internal(set) var stop: Stop?
    /// The position behind which operations of newer rules were met last, which was told; nil: none were.
    var stoppedAfter: Int?
    /// The user chose *keep mine*: what the server holds must be removed before the draft is made.
    public internal(set) var isReplacing: Bool = false
    /// Incarnations that were there before this one, the newest last.
    public internal(set) var pastIncarnations: [[UInt8]] = []

    /// What the draft grew from, an incarnation that was there; nil: the draft is new, or there is none.
    public internal(set) var draftBase: JSONObject?
    /// The newest operation that was given up before it was known whether it counts; nil: none was, in this
    /// incarnation.
    var letGo: SealedLetGo?

    /// Version of the list of readers that a mark was asked for; 0: none ever was.
    var owedMark = 0

    /// - Parameter log: a new object, or one that was opened from a snapshot.
    public init(author: AuthorID, log: SealedLog) {
        self.author = author
        self.log = log
        projected = log.object.map { .object($0) }
        shown = projected
    }

    /// Read-only until the program is a newer one.
    public var isStopped: Bool { stop != nil }

    /// What the app sees; nil when the object is deleted.
    public var object: JSONObject? { shown?.objectValue }

    /// Whether there is anything that the log does not hold yet.
    public var hasEdits: Bool { pending?.edit != nil || later != nil }

    /// Whether a mark was asked for (`sealMark`) and the log does not stand under its list yet: `seal` makes it, until
    /// it does.
    public var owesMark: Bool { log.object != nil && log.list < owedMark }

    /// Whether the object was deleted by others and edited here: it must be made again, as a new incarnation.
    public var needsRecreation: Bool { log.object == nil && pending == nil && object != nil }
}

/// Why an edit of the app is not taken.
public enum SealedEditError: Error, Equatable, Sendable {
    /// The user must choose first, see `SealedObject.problem`; or the program must be a newer one, see `isStopped`.
    case readOnly
    /// There is no object to edit.
    case deleted
    /// The edit does not fit what the app sees.
    case doesNotFit(DiffError)
}

extension SealedObject {
    /// Takes an edit of the app, made on `object`.
    public mutating func edit(_ diff: ObjectDiff) throws(SealedEditError) {
        let edit: Edit
        do throws(DiffError) { edit = try Edit(.object(diff)) } catch { throw .doesNotFit(error) }
        try take(edit)
    }

    /// Takes the object that the app wants to see instead: the smallest edit that leads there.
    public mutating func edit(to target: JSONObject) throws(SealedEditError) {
        guard let object else { throw .deleted }
        try edit(JSONDiff.diff(from: object, to: target, keepsShortEqualities: true))
    }

    /// Deletes the object.
    public mutating func delete() throws(SealedEditError) { try take(.remove()) }

    private mutating func take(_ edit: Edit) throws(SealedEditError) {
        guard problem == nil, !isStopped else { throw .readOnly }
        guard shown != nil else { throw .deleted }
        do throws(DiffError) {
            let after = try edit.apply(to: shown).value
            // Nothing is left of what nobody else has seen.
            later = after == nil && projected == nil ? nil : try Self.composed(later, edit)
            (shown, wanted) = (after, nil)
            if after == nil { draftBase = nil }
        } catch { throw .doesNotFit(error) }
    }

    /// Makes an object where the app sees none: a new one, or a deleted one again (`needsRecreation`).
    public mutating func create(_ object: JSONObject) throws(SealedEditError) {
        guard problem == nil, !isStopped else { throw .readOnly }
        guard shown == nil else { return try edit(to: object) }
        (later, shown) = (.set(.object(object)), .object(object))
    }

    /// Gives up what the log does not hold: pending and later edits. For edits that the server does not take.
    public mutating func discardEdits() {
        letPendingGo()
        (pending, later) = (nil, nil)
        projected = log.object.map { .object($0) }
        shown = projected
    }

    /// One edit that does both.
    static func composed(_ first: Edit?, _ second: Edit?) throws(DiffError) -> Edit? {
        guard let first else { return second }
        guard let second else { return first }
        guard let both = try JSONDiff.compose(first.replacing, second.replacing) else { return nil }
        let edit = try Edit(both)
        return edit.isEmpty ? nil : edit
    }

    /// Makes the next operation of the edits that wait, if none is on its way; without edits the mark that is owed.
    ///
    /// - Parameters:
    ///   - changeID: 16 random bytes, the change's ccid.
    ///   - nonce: 12 random bytes.
    /// - Returns: what must be saved before it is sent; nil when there is nothing to send, or nothing may be sent.
    public mutating func seal(changeID: [UInt8], nonce: [UInt8], with sealer: some Sealer) -> Pending? {
        sealEdit(changeID: changeID, nonce: nonce, with: sealer)
            ?? sealOwedMark(changeID: changeID, nonce: nonce, with: sealer)
    }

    private mutating func sealEdit(changeID: [UInt8], nonce: [UInt8], with sealer: some Sealer) -> Pending? {
        guard pending == nil, problem == nil, !isStopped, !needsRecreation, let edit = later else { return nil }
        let isWhole = isLaterWhole
        (later, wanted) = (nil, nil)
        // A whole object that stands again where others have edited it since is told as an edit of theirs.
        let told =
            if case .set(let whole, _) = edit { Self.difference(from: projected, to: whole) } else { edit }
        // With what it meets, `+` and `r` are told apart, and what changes nothing falls away.
        guard let outcome = try? told?.apply(to: projected), let edit = outcome.edit,
            let head = log.chain[log.position]
        else {
            settle()
            return nil
        }
        // Where something names a list all the same in a bucket of one account, what comes behind it must name it, too,
        // to count.
        let operation = SealedOperation(
            base: log.position, head: head, incarnation: log.incarnationTag, author: author,
            list: max(sealer.listVersion, log.list), content: outcome.value == nil ? .tombstone : .edit(edit))
        let sealed = sealer.seal(
            operation.clearBytes(), kind: .operation, id: changeID, position: 0, nonce: nonce)
        let made = Pending(
            changeID: changeID, sealed: sealed, base: log.position, edit: edit, isWhole: isWhole)
        pending = made
        projected = outcome.value
        return made
    }

    /// Makes an operation that changes nothing. It puts the log under the newest list of readers, so that nothing
    /// counts any more that somebody writes under an older one. It is owed from now on (`owesMark`): where it cannot be
    /// made yet, or counts for nothing, `seal` makes it, until the log stands under that list, by whatever operation.
    ///
    /// - Parameters: as `seal`.
    /// - Returns: as `seal`; nil also where the log stands under that list, and for an object that is deleted.
    public mutating func sealMark(changeID: [UInt8], nonce: [UInt8], with sealer: some Sealer) -> Pending? {
        owedMark = max(owedMark, sealer.listVersion)
        return sealOwedMark(changeID: changeID, nonce: nonce, with: sealer)
    }

    private mutating func sealOwedMark(changeID: [UInt8], nonce: [UInt8], with sealer: some Sealer) -> Pending? {
        guard pending == nil, problem == nil, !isStopped, owesMark, sealer.listVersion >= owedMark,
            let nothing: Edit = try? .init(.object(ObjectDiff())), let head: Head = log.chain[log.position]
        else { return nil }
        let operation = SealedOperation(
            base: log.position, head: head, incarnation: log.incarnationTag, author: author, list: sealer.listVersion,
            content: .edit(nothing))
        let sealed = sealer.seal(
            operation.clearBytes(), kind: .operation, id: changeID, position: 0, nonce: nonce)
        let made = Pending(changeID: changeID, sealed: sealed, base: log.position, edit: nil)
        pending = made
        return made
    }
}
