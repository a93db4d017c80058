import ThicketCrypto
import ThicketPlatform
import ThicketProtocol
import ThicketSealed

/// A sealed object as the server holds it, as JSON: what is taken is written as it was read, and every compaction that it
/// makes leads to an object of the same position.
public func fuzzSealedEntity(_ bytes: [UInt8]) {
    guard let object: JSONObject = (try? JSONValue(parsing: bytes))?.objectValue else { return }
    _ = SealedEntity.looksSealed(object)
    guard let entity: SealedEntity = try? SealedEntity(object) else {
        precondition((try? SealedShape.check(object: object)) == nil, "no check takes what is no such object")
        return
    }
    precondition((try? SealedEntity(entity.object)) == entity, "what is written is read")
    guard let newest: Int = entity.newest?.position else { preconditionFailure("there is a snapshot") }
    precondition(entity.position == newest + entity.tail.count, "the tail stands behind the newest snapshot")
    for position: Int in [newest, newest + 1, entity.position, entity.position + 1] {
        guard let diff: ObjectDiff = entity.compaction("AQEA", at: position) else {
            precondition(position <= newest || position > entity.position, "any position of the tail can be compacted")
            continue
        }
        guard let after: JSONObject = try? JSONDiff.apply(diff, to: entity.object),
            let compacted: SealedEntity = try? SealedEntity(after)
        else { preconditionFailure("a compaction fits the object it was made of") }
        precondition(compacted.position == entity.position, "it forgets no operation")
        precondition(compacted.newest?.position == position, "its snapshot counts")
    }
}

/// The change of a sealed bucket that a client sends: behind a letter, `0:c:`'s JSON. What the shape takes carries sealed
/// values and nothing else.
public func fuzzSealedChange(_ bytes: [UInt8]) {
    guard case .channel(_, .change(let change))? = try? ClientMessage(parsing: Array("0:c:".utf8) + bytes),
        let shape: SealedShape.Change = try? SealedShape.check(change)
    else { return }
    switch shape {
    case .creation(let snapshot):
        precondition((try? SealedShape.check(snapshot, .snapshot)) != nil, "a creation's snapshot is sealed")
    case .insertion(let operation):
        let header: SealedHeader? = try? SealedShape.check(operation, .operation)
        precondition(
            header.map { Hex.encode($0.id).utf8.elementsEqual(change.ccid.utf8) } == true, "its id is the ccid")
    case .compaction(let compaction):
        precondition((try? SealedShape.check(compaction.snapshot, .snapshot)) != nil, "its snapshot is sealed")
        guard let older: Int = compaction.removedSnapshots.last else { preconditionFailure("it removes a snapshot") }
        precondition(compaction.position - older == compaction.removedTail.count, "it removes what it covers")
    case .removal: break
    }
}

/// A sealed value: bytes 0 and 1 say which bit is flipped, the rest is a clear text, and what somebody else may have sealed.
public func fuzzSealedValue(_ bytes: [UInt8]) {
    guard bytes.count >= 2, let sealer: ObjectSealer = realSealer else { return }
    let text: [UInt8] = Array(bytes[2...])
    for kind: SealedHeader.Kind in [.snapshot, .operation] {
        precondition(sealer.open(text, kind: kind, position: 0) == nil, "nobody seals without the key")
        let position: Int = kind == .snapshot ? Int(bytes[0]) : 0
        let id: [UInt8] = .init(repeating: bytes[1], count: SealedValue.idBytes)
        let sealed: [UInt8] = sealer.seal(text, kind: kind, id: id, position: position, nonce: Array(id.prefix(12)))
        let opened: (id: [UInt8], clear: [UInt8])? = sealer.open(sealed, kind: kind, position: position)
        precondition(opened?.clear == text && opened?.id == id, "what is sealed opens")
        precondition(sealer.open(sealed, kind: kind, position: position + 1) == nil, "at its position only")
        precondition((try? SealedShape.check(Base64.encodeURL(sealed), kind)) != nil, "the server takes it")
        var flipped: [UInt8] = sealed
        let bit: Int = (Int(bytes[0]) << 8 | Int(bytes[1])) % (flipped.count * 8)
        flipped[bit / 8] ^= 1 << UInt8(bit % 8)
        precondition(sealer.open(flipped, kind: kind, position: position) == nil, "a flipped bit is noticed")
    }
}

/// The clear form of an operation, from a device that may write anything: two devices that read it end with the same.
public func fuzzSealedOperation(_ bytes: [UInt8]) {
    var listed: SealedLog = startLog(list: 3)
    let named: Int? = SealedOperation.list(clear: bytes)
    let expected: SealedLog.Verdict = .void(named == nil ? .malformed : .olderList)
    if named.map({ $0 < 3 }) ?? true {
        precondition(
            listed.append([1], clear: bytes) == expected, "under an older list nothing is waited for or believed")
    }
    guard let read: SealedOperation = try? SealedOperation(clear: bytes) else { return }
    if read.content != .unreadable {
        precondition((try? SealedOperation(clear: read.clearBytes())) == read, "what is written is read")
    }
    let (sealer, start): (PlainSealer, SealedLog) = (PlainSealer(), startLog())
    guard let head: Head = start.chain[0] else { preconditionFailure("a chain has its beginning") }
    var operation: SealedOperation = read
    (operation.base, operation.head, operation.incarnation) = (0, head, start.incarnationTag)
    operation.author = AuthorID(rawValue: 7)
    // As its author wrote it, so that what cannot be read stays so.
    let clear: [UInt8] = read.content == .unreadable ? bytes : operation.clearBytes()
    let foreign: [UInt8] = sealer.seal(clear, kind: .operation, id: identifier(1), position: 0, nonce: [])
    var (mine, theirs): (SealedObject, SealedObject) = (
        SealedObject(author: AuthorID(rawValue: 3), log: start), SealedObject(author: AuthorID(rawValue: 9), log: start)
    )
    guard let edit: ObjectDiff = ownEdit, (try? mine.edit(edit)) != nil,
        let own: SealedObject.Pending = mine.seal(changeID: identifier(2), nonce: [], with: sealer)
    else { preconditionFailure("the own edit fits") }
    for sealed: [UInt8] in [foreign, own.sealed] {
        _ = mine.receive(sealed, with: sealer)
        _ = theirs.receive(sealed, with: sealer)
        precondition(mine.isConsistent && theirs.isConsistent, "what is shown follows from the log")
    }
    precondition(mine.log == theirs.log, "two devices read the same")
    guard mine.log.position > 0 else { return }
    let snapshot: [UInt8] = SealedSnapshot.clearBytes(of: mine.log)
    let again: SealedLog? = SealedSnapshot.log(clear: snapshot, place: fixedPlace, position: mine.log.position)
    precondition(again == mine.log, "a snapshot holds the log")
}

/// The clear form of a snapshot, from a device that may write anything.
public func fuzzSealedSnapshot(_ bytes: [UInt8]) {
    let named: Int64? = (try? JSONValue(parsing: bytes, maxDepth: SealedLimits.clearDepthMax))?["n"]?.intValue
    guard let position: Int = named.flatMap(Int.init(exactly:)),
        var log: SealedLog = SealedSnapshot.log(clear: bytes, place: fixedPlace, position: position)
    else { return }
    precondition(log.position == position && log.window.count <= SealedLimits.windowPositions, "bounds")
    let again: SealedLog? = SealedSnapshot.log(
        clear: SealedSnapshot.clearBytes(of: log), place: fixedPlace, position: position)
    precondition(again == log, "what is written is read")
    guard let head: Head = log.chain[position], let edit: ObjectDiff = ownEdit,
        let whole: Edit = try? Edit(.object(edit))
    else { return }
    let operation: SealedOperation = .init(
        base: position, head: head, incarnation: log.incarnationTag, author: AuthorID(rawValue: 7),
        content: .edit(whole))
    let verdict: SealedLog.Verdict = log.append([1], clear: operation.clearBytes())
    if verdict.isTaken { precondition(log.position == position + 1, "an operation that is taken has a position") }
}

/// The object `heads`, which every device of the bucket writes.
public func fuzzSealedHeads(_ bytes: [UInt8]) {
    guard let content: JSONObject = (try? JSONValue(parsing: bytes))?.objectValue else { return }
    let log: SealedLog = startLog()
    let name: String = fixedPlace.serverKey
    let found: [SealedHeads.Finding] = SealedHeads.findings(
        in: content, log: { $0.utf8.elementsEqual(name.utf8) ? log : nil }, isDeleted: { $0.utf8.count % 2 == 0 })
    precondition(found.count <= content.count, "one finding an entry")
    let edit: ObjectDiff = SealedHeads.edit(of: content, for: [log])
    guard !edit.isEmpty else { return }
    guard let told: JSONObject = try? JSONDiff.apply(edit, to: content) else { preconditionFailure("the edit fits") }
    let left: [SealedHeads.Finding] = SealedHeads.findings(in: told, log: { _ in log }, isDeleted: { _ in true })
    precondition(!left.contains { $0.serverKey.utf8.elementsEqual(name.utf8) }, "what is told is true")
}

/// What a device keeps beside a sealed object.
public func fuzzSealedKept(_ bytes: [UInt8]) {
    guard let json: JSONObject = (try? JSONValue(parsing: bytes, maxDepth: SealedLimits.clearDepthMax))?.objectValue,
        let kept: SealedKept = SealedKept(json)
    else { return }
    precondition(SealedKept(kept.json) == kept, "what is written is read")
    let object: SealedObject? = .restored(
        author: AuthorID(rawValue: 3), log: startLog(), pending: nil, kept: kept, with: PlainSealer())
    // Without a change in flight there is no pending edit.
    guard kept.pendingEdit == nil, let object else { return }
    precondition(object.isConsistent, "what is shown follows from what is kept")
}

/// Seals nothing, so that the rules are tried and not the cipher.
private struct PlainSealer: Sealer {
    func seal(_ clear: [UInt8], kind: SealedHeader.Kind, id: [UInt8], position: Int, nonce: [UInt8]) -> [UInt8] {
        [kind.rawValue] + id + clear
    }

    func open(_ sealed: [UInt8], kind: SealedHeader.Kind, position: Int) -> (id: [UInt8], clear: [UInt8])? {
        guard sealed.count >= 17, sealed[0] == kind.rawValue else { return nil }
        return (id: Array(sealed[1..<17]), clear: Array(sealed[17...]))
    }
}

private let fixedPlace: SealedPlace = .init(owner: "o", app: "a", bucket: "b", serverKey: "aaaa")

private let realSealer: ObjectSealer? = {
    let secret: SecureBytes = .init(copying: (0..<32).map { UInt8($0) })
    let keys: SealedBucketKeys? = try? .init(owner: "o", app: "a", bucket: "b", secrets: [0: secret])
    return try? keys?.sealer(serverKey: "aaaa")
}()

private let ownEdit: ObjectDiff? = (try? JSONValue(parsing: Array(#"{"own":{"o":"+","v":1}}"#.utf8)))
    .flatMap { try? ObjectDiff($0) }

private func identifier(_ byte: UInt8) -> [UInt8] { .init(repeating: byte, count: 16) }

/// Something of every kind that an edit may be about.
private func startLog(list: Int = 0) -> SealedLog {
    SealedLog(
        place: fixedPlace, appKey: "key", incarnation: identifier(5),
        object: ["t": "hello 🙂", "n": 1, "l": ["x", 2, ["y": "abc"]], "o": ["s": "text", "p": nil]], list: list)
}
