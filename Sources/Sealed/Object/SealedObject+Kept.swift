import ThicketCrypto
import ThicketPlatform
import ThicketProtocol

/// The stored state of a sealed object, besides the server's object and the bytes of the change in flight: with those
/// two the rest follows.
///
/// | key | meaning |
/// | --- | --- |
/// | `p` | the pending operation's transformed edit, missing when nothing is left of it |
/// | `l` | edits after it, composed |
/// | `i` | earlier incarnations, base64url |
/// | `x` | the problem that keeps the object read-only, `SealedIntegrity.word` |
/// | `r` | true: *keep mine* was chosen, and the server's object must be removed first |
/// | `n` | true: the server shows it in a newer shape; a number: operations of newer rules follow this position |
/// | `b` | the object that the draft grew from, missing where it is new |
/// | `m` | version of the list of readers for which a mark was requested, missing where none was |
/// | `w` | edits that come from setting the object as a whole: 1 `l`, 2 the pending operation, 3 both; missing: none |
/// | `g` | author and base of the newest operation given up before it was known whether it counts; missing: none |
public struct SealedKept: Sendable, Equatable {
    /// `p`: the pending operation's edit.
    public var pendingEdit: Edit?
    /// `l`: the edits after it.
    public var later: Edit?
    /// `i`: 16 bytes each, the newest last.
    public var pastIncarnations: [[UInt8]] = []
    /// `x`: the problem that waits for the user's choice.
    public var problem: SealedIntegrity?
    /// `r`: whether the server's object must be removed first.
    public var isReplacing = false
    /// `n`: whether the server shows a newer shape.
    public var isNewer = false
    /// `n`: the position after which operations of newer rules follow, at least 0; nil: the object has not stopped at
    /// any.
    public var stoppedAfter: Int?
    /// `b`: the object that the draft grew from.
    public var draftBase: JSONObject?
    /// `m`: the list version of the requested mark; 0: none.
    public var requestedMark = 0
    /// `g`: the operation that was given up.
    public var letGo: SealedLetGo?
    /// `w`: whether `later` comes from setting the object as a whole.
    public var isLaterWhole = false
    /// `w`: the same for the pending operation.
    public var isPendingWhole = false

    /// Nothing to store.
    public init() {}

    /// Whether nothing has to be stored.
    public var isEmpty: Bool { self == SealedKept() }

    /// Whether the object waits for a newer program.
    public var isStopped: Bool { isNewer || stoppedAfter != nil }

    /// Appends an edit to the others, exactly as `SealedObject.edit` does.
    /// - Throws: when the edit does not fit.
    public mutating func add(_ diff: ObjectDiff) throws(DiffError) {
        later = try SealedObject.composed(later, try Edit(.object(diff)))
    }

    /// The members of the table above.
    public var json: JSONObject {
        var object: JSONObject = [:]
        object["p"] = pendingEdit?.storedJSON
        object["l"] = later?.storedJSON
        if !pastIncarnations.isEmpty {
            object["i"] = .array(pastIncarnations.map { .string(Base64.encodeURL($0)) })
        }
        object["x"] = problem?.word.map { .string($0) }
        if isReplacing { object["r"] = true }
        if isNewer {
            object["n"] = true
        } else if let stoppedAfter {
            object["n"] = .number(JSONNumber(Int64(stoppedAfter)))
        }
        object["b"] = draftBase.map { .object($0) }
        if requestedMark > 0 { object["m"] = .number(JSONNumber(Int64(requestedMark))) }
        object["g"] = letGo?.json
        let whole: Int64 = (isLaterWhole ? 1 : 0) + (isPendingWhole ? 2 : 0)
        if whole > 0 { object["w"] = .number(JSONNumber(whole)) }
        return object
    }

    /// - Returns: nil when the object does not have the form of `json`.
    public init?(_ json: JSONObject) {
        do throws(DiffError) {
            pendingEdit = try json["p"].map { (edit) throws(DiffError) in try Edit(stored: edit) }
            later = try json["l"].map { (edit) throws(DiffError) in try Edit(stored: edit) }
        } catch { return nil }
        for text in json["i"]?.arrayValue ?? [] {
            guard let id = text.stringValue.flatMap({ Base64.decodeURL(Array($0.utf8)[...]) }),
                id.count == SealedLog.incarnationBytes
            else { return nil }
            pastIncarnations.append(id)
        }
        isReplacing = json["r"] == true
        isNewer = json["n"] == true
        if !isNewer, let place = json["n"] {
            guard let position = place.intValue.flatMap({ Int(exactly: $0) }), position >= 0 else { return nil }
            stoppedAfter = position
        }
        draftBase = json["b"]?.objectValue
        if let mark = json["m"] {
            guard let version = mark.intValue.flatMap({ Int(exactly: $0) }), version > 0 else { return nil }
            requestedMark = version
        }
        if let given = json["g"] {
            guard let letGo = SealedLetGo(given) else { return nil }
            self.letGo = letGo
        }
        if let whole = json["w"] {
            guard let bits = whole.intValue, (1...3).contains(bits) else { return nil }
            (isLaterWhole, isPendingWhole) = (bits & 1 != 0, bits & 2 != 0)
        }
        guard let word = json["x"]?.stringValue else { return }
        guard let problem = SealedIntegrity(word: word) else { return nil }
        self.problem = problem
    }
}

extension SealedObject {
    /// The state to store.
    public var kept: SealedKept {
        var kept = SealedKept()
        (kept.pendingEdit, kept.later) = (pending?.edit, later)
        (kept.pastIncarnations, kept.problem, kept.isReplacing) = (pastIncarnations, problem, isReplacing)
        (kept.draftBase, kept.isNewer) = (draftBase, stop == .shape)
        kept.requestedMark = log.list < requestedMark ? requestedMark : 0
        kept.letGo = letGo
        (kept.isLaterWhole, kept.isPendingWhole) = (isLaterWhole, pending?.isWhole == true)
        kept.stoppedAfter = stop == .rules ? log.position : nil
        return kept
    }

    /// An object that does not exist: not created yet, or removed.
    public static func absent(author: AuthorID, place: SealedPlace, appKey: String) -> SealedObject {
        let nobody = [UInt8](repeating: 0, count: SealedLog.incarnationBytes)
        var log = SealedLog(place: place, appKey: appKey, incarnation: nobody, object: [:])
        log.object = nil
        return SealedObject(author: author, log: log)
    }

    /// Restores the stored object.
    ///
    /// - Parameters:
    ///   - log: the log of the stored entity.
    ///   - pending: the sealed operation in flight.
    /// - Returns: nil when these do not belong together.
    public static func restored(
        author: AuthorID, log: SealedLog, pending: [UInt8]?, kept: SealedKept, with sealer: some Sealer
    ) -> SealedObject? {
        var object = SealedObject(author: author, log: log)
        (object.pastIncarnations, object.problem) = (kept.pastIncarnations, kept.problem)
        (object.isReplacing, object.draftBase) = (kept.isReplacing, kept.draftBase)
        object.requestedMark = kept.requestedMark
        object.letGo = kept.letGo
        if kept.isNewer { object.stop = .shape }
        // Where the log is at another position, those operations have been read.
        if kept.stoppedAfter == log.position { (object.stop, object.stoppedAfter) = (.rules, log.position) }
        if let sealed = pending {
            guard let opened = sealer.open(sealed, kind: .operation, position: 0),
                let operation: SealedOperation = try? .init(clear: opened.clear)
            else { return nil }
            object.pending = Pending(
                changeID: opened.id, sealed: sealed, base: operation.base, edit: kept.pendingEdit,
                sealedAs: operation.author == author ? nil : operation.author, isWhole: kept.isPendingWhole)
        }
        (object.later, object.isLaterWhole) = (kept.later, kept.isLaterWhole)
        do throws(DiffError) {
            if let edit = kept.pendingEdit { object.projected = try edit.apply(to: object.projected).value }
            object.shown = object.projected
            if let edit = kept.later { object.shown = try edit.apply(to: object.projected).value }
        } catch { return nil }
        return object
    }

    /// The server has removed the object after its tombstone, as expected. Later local edits are kept and create the
    /// object again.
    public mutating func removedAfterTombstone() {
        var gone = SealedObject.absent(author: author, place: log.place, appKey: log.appKey)
        (gone.pastIncarnations, gone.requestedMark) = (pastIncarnations, requestedMark)
        gone.remember(log.incarnation)
        if let object { (gone.later, gone.shown) = (.set(.object(object)), .object(object)) }
        self = gone
    }

    /// The draft as a new incarnation at position 0; nil without a draft.
    ///
    /// - Parameters:
    ///   - incarnation: 16 random bytes.
    ///   - list: version of the list of readers under which it is made, `Sealer.listVersion`.
    public func created(incarnation: [UInt8], list: Int = 0) -> SealedObject? {
        guard let object, needsRecreation else { return nil }
        var made = SealedObject(
            author: author,
            log: SealedLog(
                place: log.place, appKey: log.appKey, incarnation: incarnation, object: object, list: list))
        (made.pastIncarnations, made.draftBase, made.requestedMark) = (pastIncarnations, draftBase, requestedMark)
        return made
    }

    /// The server refused the creation: the object is a draft again. Its incarnation never existed, so it is not an
    /// earlier one; if the server still accepts it, from an older connection, it is treated like any other.
    public mutating func notCreated() {
        var draft = SealedObject.absent(author: author, place: log.place, appKey: log.appKey)
        (draft.pastIncarnations, draft.draftBase, draft.requestedMark) = (pastIncarnations, draftBase, requestedMark)
        (draft.shown, draft.later) = (shown, shown.map { .set($0) })
        self = draft
    }

    /// Reports a problem that only the client can detect, or a state that does not open: the object is read-only until
    /// the user has chosen.
    public mutating func report(_ integrity: SealedIntegrity) -> [SealedEvent] { [block(integrity)] }

    /// *Keep mine*: what the app sees becomes a draft of a new incarnation, which is sent once the server's object is
    /// removed. The old incarnation is remembered.
    public mutating func keepMine() {
        let mine = shown
        var draft = SealedObject.absent(author: author, place: log.place, appKey: log.appKey)
        (draft.pastIncarnations, draft.requestedMark) = (pastIncarnations, requestedMark)
        if log.incarnation.contains(where: { $0 != 0 }) { draft.remember(log.incarnation) }
        (draft.shown, draft.later, draft.isReplacing) = (mine, mine.map { .set($0) }, true)
        if mine != nil { draft.draftBase = log.object ?? draftBase }
        self = draft
    }

    /// The server's object is removed: the draft may be created.
    public mutating func hasReplaced() { isReplacing = false }

    /// Whether the newest operation with an effect is this device's tombstone.
    public var wasDeletedHere: Bool {
        guard log.object == nil else { return false }
        let newest = log.window.last { $0 != nil } ?? nil
        return newest?.author == author
    }

    /// Sets the app's key of an object that was not created yet.
    public mutating func name(_ appKey: String) {
        guard log.object == nil, log.appKey.isEmpty else { return }
        log = SealedObject.absent(author: author, place: log.place, appKey: appKey).log
    }
}
