import ThicketCrypto
import ThicketPlatform
import ThicketProtocol
import ThicketSealed

/// A sealed object as the server holds it, as JSON: an accepted object is written as it was read, and every compaction
/// of it gives an object of the same position.
public func fuzzSealedEntity(_ bytes: [UInt8]) {
    guard let object = (try? JSONValue(parsing: bytes))?.objectValue else { return }
    _ = SealedEntity.looksSealed(object)
    guard let entity = try? SealedEntity(object) else {
        precondition((try? SealedShape.check(object: object)) == nil, "no check takes what is no such object")
        return
    }
    precondition((try? SealedEntity(entity.object)) == entity, "what is written is read")
    guard let newest = entity.newest?.position else { preconditionFailure("there is a snapshot") }
    precondition(entity.position == newest + entity.tail.count, "the tail stands behind the newest snapshot")
    for position in [newest, newest + 1, entity.position, entity.position + 1] {
        guard let diff = entity.compaction("AQEA", at: position) else {
            precondition(position <= newest || position > entity.position, "any position of the tail can be compacted")
            continue
        }
        guard let after = try? JSONDiff.apply(diff, to: entity.object),
            let compacted = try? SealedEntity(after)
        else { preconditionFailure("a compaction fits the object it was made of") }
        precondition(compacted.position == entity.position, "it forgets no operation")
        precondition(compacted.newest?.position == position, "its snapshot counts")
    }
}

/// The change of a sealed bucket that a client sends: behind a letter, `0:c:`'s JSON. A change that the shape accepts
/// carries only sealed values.
public func fuzzSealedChange(_ bytes: [UInt8]) {
    guard case .channel(_, .change(let change))? = try? ClientMessage(parsing: Array("0:c:".utf8) + bytes),
        let shape = try? SealedShape.check(change)
    else { return }
    switch shape {
    case .creation(let snapshot):
        precondition((try? SealedShape.check(snapshot, .snapshot)) != nil, "a creation's snapshot is sealed")
    case .insertion(let operation):
        let header = try? SealedShape.check(operation, .operation)
        precondition(
            header.map { Hex.encode($0.id).utf8.elementsEqual(change.ccid.utf8) } == true, "its id is the ccid")
    case .compaction(let compaction):
        precondition((try? SealedShape.check(compaction.snapshot, .snapshot)) != nil, "its snapshot is sealed")
        guard let older = compaction.removedSnapshots.last else { preconditionFailure("it removes a snapshot") }
        precondition(compaction.position - older == compaction.removedTail.count, "it removes what it covers")
    case .removal: break
    }
}

/// A sealed value: bytes 0 and 1 choose the flipped bit; the rest is used as a clear text and as a foreign sealed
/// value.
public func fuzzSealedValue(_ bytes: [UInt8]) {
    guard bytes.count >= 2, let sealer = realSealer else { return }
    let text = Array(bytes[2...])
    for kind: SealedHeader.Kind in [.snapshot, .operation] {
        precondition(sealer.open(text, kind: kind, position: 0) == nil, "nobody seals without the key")
        let position = kind == .snapshot ? Int(bytes[0]) : 0
        let id = [UInt8](repeating: bytes[1], count: SealedValue.idBytes)
        let sealed = sealer.seal(text, kind: kind, id: id, position: position, nonce: Array(id.prefix(12)))
        let opened = sealer.open(sealed, kind: kind, position: position)
        precondition(opened?.clear == text && opened?.id == id, "what is sealed opens")
        precondition(sealer.open(sealed, kind: kind, position: position + 1) == nil, "at its position only")
        precondition((try? SealedShape.check(Base64.encodeURL(sealed), kind)) != nil, "the server takes it")
        var flipped = sealed
        let bit = (Int(bytes[0]) << 8 | Int(bytes[1])) % (flipped.count * 8)
        flipped[bit / 8] ^= 1 << UInt8(bit % 8)
        precondition(sealer.open(flipped, kind: kind, position: position) == nil, "a flipped bit is noticed")
    }
}

/// The clear form of an operation, from a device that may write anything: two devices that read it end equal.
public func fuzzSealedOperation(_ bytes: [UInt8]) {
    var listed = startLog(list: 3)
    let named = SealedOperation.list(clear: bytes)
    let expected = SealedLog.Verdict.void(named == nil ? .malformed : .olderList)
    if named.map({ $0 < 3 }) ?? true {
        precondition(
            listed.append([1], clear: bytes) == expected, "under an older list nothing is waited for or believed")
    }
    guard let read = try? SealedOperation(clear: bytes) else { return }
    if read.content != .unreadable {
        precondition((try? SealedOperation(clear: read.clearBytes())) == read, "what is written is read")
    }
    let (sealer, start) = (PlainSealer(), startLog())
    guard let head = start.chain[0] else { preconditionFailure("a chain has its beginning") }
    var operation = read
    (operation.base, operation.head, operation.incarnation) = (0, head, start.incarnationTag)
    operation.author = AuthorID(rawValue: 7)
    // As its author wrote it, so that an unreadable operation stays unreadable.
    let clear = read.content == .unreadable ? bytes : operation.clearBytes()
    let foreign = sealer.seal(clear, kind: .operation, id: identifier(1), position: 0, nonce: [])
    var (mine, theirs) = (
        SealedObject(author: AuthorID(rawValue: 3), log: start), SealedObject(author: AuthorID(rawValue: 9), log: start)
    )
    guard let edit = ownEdit, (try? mine.edit(edit)) != nil,
        let own = mine.seal(changeID: identifier(2), nonce: [], with: sealer)
    else { preconditionFailure("the own edit fits") }
    for sealed in [foreign, own.sealed] {
        _ = mine.receive(sealed, with: sealer)
        _ = theirs.receive(sealed, with: sealer)
        precondition(mine.isConsistent && theirs.isConsistent, "what is shown follows from the log")
    }
    precondition(mine.log == theirs.log, "two devices read the same")
    guard mine.log.position > 0 else { return }
    let snapshot = SealedSnapshot.clearBytes(of: mine.log)
    let again = SealedSnapshot.log(clear: snapshot, place: fixedPlace, position: mine.log.position)
    precondition(again == mine.log, "a snapshot holds the log")
}

/// The clear form of a snapshot, from a device that may write anything.
public func fuzzSealedSnapshot(_ bytes: [UInt8]) {
    let named = (try? JSONValue(parsing: bytes, maxDepth: SealedLimits.clearDepthMax))?["n"]?.intValue
    guard let position = named.flatMap(Int.init(exactly:)),
        var log = SealedSnapshot.log(clear: bytes, place: fixedPlace, position: position)
    else { return }
    precondition(log.position == position && log.window.count <= SealedLimits.windowPositions, "bounds")
    let again = SealedSnapshot.log(
        clear: SealedSnapshot.clearBytes(of: log), place: fixedPlace, position: position)
    precondition(again == log, "what is written is read")
    guard let head = log.chain[position], let edit = ownEdit,
        let whole = try? Edit(.object(edit))
    else { return }
    let operation = SealedOperation(
        base: position, head: head, incarnation: log.incarnationTag, author: AuthorID(rawValue: 7),
        content: .edit(whole))
    let verdict = log.append([1], clear: operation.clearBytes())
    if verdict.isAppended { precondition(log.position == position + 1, "an operation that is taken has a position") }
}

/// The object `heads`, which every device of the bucket writes.
public func fuzzSealedHeads(_ bytes: [UInt8]) {
    guard let content = (try? JSONValue(parsing: bytes))?.objectValue else { return }
    let log = startLog()
    let name = fixedPlace.serverKey
    let found = SealedHeads.findings(
        in: content, log: { $0.utf8.elementsEqual(name.utf8) ? log : nil }, isDeleted: { $0.utf8.count % 2 == 0 })
    precondition(found.count <= content.count, "one finding an entry")
    let edit = SealedHeads.edit(of: content, for: [log])
    guard !edit.isEmpty else { return }
    guard let edited = try? JSONDiff.apply(edit, to: content) else { preconditionFailure("the edit fits") }
    let left = SealedHeads.findings(in: edited, log: { _ in log }, isDeleted: { _ in true })
    precondition(!left.contains { $0.serverKey.utf8.elementsEqual(name.utf8) }, "what is told is true")
}

/// The state that a device keeps beside a sealed object.
public func fuzzSealedKept(_ bytes: [UInt8]) {
    guard let json = (try? JSONValue(parsing: bytes, maxDepth: SealedLimits.clearDepthMax))?.objectValue,
        let kept = SealedKept(json)
    else { return }
    precondition(SealedKept(kept.json) == kept, "what is written is read")
    let object: SealedObject? = .restored(
        author: AuthorID(rawValue: 3), log: startLog(), pending: nil, kept: kept, with: PlainSealer())
    // Without a change in flight there is no pending edit.
    guard kept.pendingEdit == nil, let object else { return }
    precondition(object.isConsistent, "what is shown follows from what is kept")
}

/// Does not encrypt, so that the rules are tested and not the cipher.
private struct PlainSealer: Sealer {
    func seal(_ clear: [UInt8], kind: SealedHeader.Kind, id: [UInt8], position: Int, nonce: [UInt8]) -> [UInt8] {
        [kind.rawValue] + id + clear
    }

    func open(_ sealed: [UInt8], kind: SealedHeader.Kind, position: Int) -> (id: [UInt8], clear: [UInt8])? {
        guard sealed.count >= 17, sealed[0] == kind.rawValue else { return nil }
        return (id: Array(sealed[1..<17]), clear: Array(sealed[17...]))
    }
}

private let fixedPlace = SealedPlace(owner: "o", app: "a", bucket: "b", serverKey: "aaaa")

private let realSealer = {
    let secret = SecureBytes(copying: (0..<32).map { UInt8($0) })
    let keys: SealedBucketKeys? = try? .init(owner: "o", app: "a", bucket: "b", secrets: [0: secret])
    return try? keys?.sealer(serverKey: "aaaa")
}()

private let ownEdit = (try? JSONValue(parsing: Array(#"{"own":{"o":"+","v":1}}"#.utf8)))
    .flatMap { try? ObjectDiff($0) }

private func identifier(_ byte: UInt8) -> [UInt8] { .init(repeating: byte, count: 16) }

/// A log whose object has a member of every kind that an edit may change.
private func startLog(list: Int = 0) -> SealedLog {
    SealedLog(
        place: fixedPlace, appKey: "key", incarnation: identifier(5),
        object: ["t": "hello 🙂", "n": 1, "l": ["x", 2, ["y": "abc"]], "o": ["s": "text", "p": nil]], list: list)
}
