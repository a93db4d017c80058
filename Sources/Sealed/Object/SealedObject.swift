import ThicketProtocol

/// One sealed object on one device: the ordered log, the pending operation, and the edits made meanwhile. The app sees
/// the log with both applied, each transformed over what has arrived.
///
/// Pure: bytes come in, events and bytes to send go out. Randomness is passed in.
public struct SealedObject: Sendable, Equatable {
    /// A sealed operation that was saved and sent. Its bytes never change under its id.
    public struct Pending: Sendable, Equatable {
        /// The change's ccid, 16 bytes.
        public let changeID: [UInt8]
        /// The sealed bytes.
        public let sealed: [UInt8]
        /// Position on which it was made.
        public let base: Int
        /// Its edit, transformed over all that arrived since; nil when nothing is left to do.
        public internal(set) var edit: Edit?
        /// The author that it names, where the object's author has changed since (`write(as:)`); nil: the object's
        /// author.
        var sealedAs: AuthorID?
        /// Whether all of it comes from setting the object as a whole.
        public internal(set) var isWhole = false
    }

    /// Why this program is too old for the object.
    public enum Stop: Sendable, Equatable {
        /// The log continues under unknown rules.
        case rules
        /// The server shows the object in an unknown shape (`SealedEntity.isNewer`).
        case shape
    }

    /// The author of this device's operations.
    public internal(set) var author: AuthorID
    /// The ordered operations and their result.
    public internal(set) var log: SealedLog
    /// The operation in flight; nil: none.
    public internal(set) var pending: Pending?
    /// Edits after the pending one, composed.
    public internal(set) var later: Edit? { didSet { if later == nil { isLaterWhole = false } } }
    /// Whether all of `later` comes from setting the object as a whole, and none from editing a place in it: values
    /// that others have set to the same value are then left unchanged (docs/decisions/0086).
    public var isLaterWhole = false { didSet { if later == nil { isLaterWhole = false } } }
    /// The object that the app wanted by whole edits, before others' edits moved them; nil: none did. Not stored.
    var wanted: JSONValue?
    /// The log's object with the pending edit applied.
    var projected: JSONValue?
    /// The same with the later edits applied.
    var shown: JSONValue?
    /// The problem that keeps the object read-only until the user has chosen; nothing is discarded meanwhile.
    public internal(set) var problem: SealedIntegrity?
    /// Why reading has stopped until the program is updated; nil: it has not.
    public internal(set) var stop: Stop?
    /// The last reported position after which operations of newer rules were found; nil: none.
    var stoppedAfter: Int?
    /// The user chose *keep mine*: the server's object must be removed before the draft is created.
    public internal(set) var isReplacing = false
    /// Earlier incarnations of the key, the newest last.
    public internal(set) var pastIncarnations: [[UInt8]] = []

    /// The object that the draft grew from, of an earlier incarnation; nil: the draft is new, or no draft exists.
    public internal(set) var draftBase: JSONObject?
    /// The newest operation given up before it was known whether it counts; nil: none in this incarnation.
    var letGo: SealedLetGo?

    /// Version of the list of readers for which a mark was requested; 0: never.
    var requestedMark = 0

    /// - Parameter log: a new object, or one opened from a snapshot.
    public init(author: AuthorID, log: SealedLog) {
        self.author = author
        self.log = log
        projected = log.object.map { .object($0) }
        shown = projected
    }

    /// Read-only until the program is updated.
    public var isStopped: Bool { stop != nil }

    /// The object that the app sees; nil when it is deleted.
    public var object: JSONObject? { shown?.objectValue }

    /// Whether edits exist that the log does not hold yet.
    public var hasEdits: Bool { pending?.edit != nil || later != nil }

    /// Whether a mark was requested (`sealMark`) and the log is not under its list yet: `seal` then makes it.
    public var needsMark: Bool { log.object != nil && log.list < requestedMark }

    /// Whether others deleted the object and it was edited here: it must be created again, as a new incarnation.
    public var needsRecreation: Bool { log.object == nil && pending == nil && object != nil }
}

/// Why an edit of the app is refused.
public enum SealedEditError: Error, Equatable, Sendable {
    /// The user must choose first, see `SealedObject.problem`; or the program must be updated, see `isStopped`.
    case readOnly
    /// The object to edit does not exist.
    case deleted
    /// The edit does not fit what the app sees.
    case doesNotFit(DiffError)
}

extension SealedObject {
    /// Takes an edit of the app, made on `object`.
    public mutating func edit(_ diff: ObjectDiff) throws(SealedEditError) {
        let edit: Edit
        do throws(DiffError) { edit = try Edit(.object(diff)) } catch { throw .doesNotFit(error) }
        try apply(edit)
    }

    /// Takes the object that the app wants instead: the smallest edit that leads to it.
    public mutating func edit(to target: JSONObject) throws(SealedEditError) {
        guard let object else { throw .deleted }
        try edit(JSONDiff.diff(from: object, to: target, keepsShortEqualities: true))
    }

    /// Deletes the object.
    public mutating func delete() throws(SealedEditError) { try apply(.remove()) }

    private mutating func apply(_ edit: Edit) throws(SealedEditError) {
        guard problem == nil, !isStopped else { throw .readOnly }
        guard shown != nil else { throw .deleted }
        do throws(DiffError) {
            let after = try edit.apply(to: shown).value
            // Nothing remains of an object that was never sent.
            later = after == nil && projected == nil ? nil : try Self.composed(later, edit)
            (shown, wanted) = (after, nil)
            if after == nil { draftBase = nil }
        } catch { throw .doesNotFit(error) }
    }

    /// Creates an object where the app sees none: a new one, or a deleted one again (`needsRecreation`).
    public mutating func create(_ object: JSONObject) throws(SealedEditError) {
        guard problem == nil, !isStopped else { throw .readOnly }
        guard shown == nil else { return try edit(to: object) }
        (later, shown) = (.set(.object(object)), .object(object))
    }

    /// Drops pending and later edits, for edits that the server refuses.
    public mutating func discardEdits() {
        letPendingGo()
        (pending, later) = (nil, nil)
        projected = log.object.map { .object($0) }
        shown = projected
    }

    /// One edit with the effect of both.
    static func composed(_ first: Edit?, _ second: Edit?) throws(DiffError) -> Edit? {
        guard let first else { return second }
        guard let second else { return first }
        guard let both = try JSONDiff.compose(first.replacing, second.replacing) else { return nil }
        let edit = try Edit(both)
        return edit.isEmpty ? nil : edit
    }

    /// Makes the next operation from the waiting edits if none is in flight; without edits it makes a requested mark.
    ///
    /// - Parameters:
    ///   - changeID: 16 random bytes, the change's ccid.
    ///   - nonce: 12 random bytes.
    /// - Returns: the operation, to be saved before it is sent; nil when nothing is to be sent, or may be sent.
    public mutating func seal(changeID: [UInt8], nonce: [UInt8], with sealer: some Sealer) -> Pending? {
        sealEdit(changeID: changeID, nonce: nonce, with: sealer)
            ?? sealRequestedMark(changeID: changeID, nonce: nonce, with: sealer)
    }

    private mutating func sealEdit(changeID: [UInt8], nonce: [UInt8], with sealer: some Sealer) -> Pending? {
        guard pending == nil, problem == nil, !isStopped, !needsRecreation, let edit = later else { return nil }
        let isWhole = isLaterWhole
        (later, wanted) = (nil, nil)
        // A whole object that is set again after others have edited it is sent as an edit of their version.
        let candidate =
            if case .set(let whole, _) = edit { Self.difference(from: projected, to: whole) } else { edit }
        // Applied to the object, `+` and `r` are distinguished, and parts that change nothing are dropped.
        guard let outcome = try? candidate?.apply(to: projected), let edit = outcome.edit,
            let head = log.chain[log.position]
        else {
            showLogObject()
            return nil
        }
        // If an operation names a list although the bucket belongs to one account, later ones must name it too in order
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

    /// Makes an operation that changes nothing. It puts the log under the newest list of readers, so that later
    /// operations under an older list do not count. From now on the mark is requested (`needsMark`): while it cannot be
    /// made or does not count, `seal` makes it, until any operation has put the log under that list.
    ///
    /// - Parameters: as in `seal`.
    /// - Returns: as in `seal`; nil also where the log is already under that list, and for a deleted object.
    public mutating func sealMark(changeID: [UInt8], nonce: [UInt8], with sealer: some Sealer) -> Pending? {
        requestedMark = max(requestedMark, sealer.listVersion)
        return sealRequestedMark(changeID: changeID, nonce: nonce, with: sealer)
    }

    private mutating func sealRequestedMark(changeID: [UInt8], nonce: [UInt8], with sealer: some Sealer) -> Pending? {
        guard pending == nil, problem == nil, !isStopped, needsMark, sealer.listVersion >= requestedMark,
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
