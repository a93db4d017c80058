import ThicketCrypto
import ThicketProtocol
import ThicketServer
import ThicketTestSupport
import ThicketTreeShape

/// The client of a sweep over trees: chooses actions from a seed, and knows what each must do.
struct TreeSweepAuthor: Sendable {
    /// One action, each of which is acknowledged as a whole.
    enum Action: Sendable {
        /// - Parameter after: the state if it is made; nil: it must be refused.
        case batch(BatchID, body: [UInt8], after: TreeSweepState?)
        /// The same batch as in an earlier action, by that action's number.
        case again(Int)
        /// A blob in one request.
        case small(TreeSweepState.Content)
        case begin(TreeSweepState.Content)
        case part(BlobID, Int)
        case complete(BlobID)
        case abort(BlobID)
        /// A day passes; blobs and uploads that are not needed go, and nodes burn.
        case collect
        /// A clean stop and a start.
        case restart
    }

    /// Bytes of a part: the least that the server allows.
    static let partBytes = 1 << 20
    /// Milliseconds that pass with `collect`.
    static let dayPlus: Int64 = 25 * 3_600_000

    private(set) var state = TreeSweepState()
    private var random: SeededRandom
    private var names = 0
    private var begun = 0
    /// Actions that were batches and were made.
    private var made = [Int]()
    private(set) var number = 0

    init(seed: UInt64) { random = SeededRandom(seed: seed) }

    private mutating func roll(_ sides: Int) -> Int { Int(random.next() % UInt64(max(1, sides))) }
    private mutating func pick<Element>(_ list: [Element]) -> Element? { list.isEmpty ? nil : list[roll(list.count)] }

    // MARK: - Choosing

    /// - Parameter now: milliseconds since 1970.
    mutating func next(now: Int64) -> Action {
        let open = state.uploads.filter { !$0.value.isComplete }.keys.sorted()
        if let upload = open.last, roll(3) > 0 { return roll(12) == 0 ? .abort(upload) : go(on: upload) }
        switch roll(20) {
        case 0...2: return .small(content(80 + roll(3_000)))
        // Two parts; most bytes of a sweep are theirs.
        case 3 where begun < 2:
            begun += 1
            return .begin(content(Self.partBytes + 80 + roll(3_000)))
        case 4, 5: return pick(made).map { .again($0) } ?? batch(now)
        case 6: return .collect
        case 7: return .restart
        default: return batch(now)
        }
    }

    private mutating func go(on upload: BlobID) -> Action {
        guard let known = state.uploads[upload] else { return .collect }
        let missing = (1...known.content.parts).filter { !known.received.contains($0) }
        return pick(missing).map { .part(upload, $0) } ?? .complete(upload)
    }

    private mutating func content(_ length: Int) -> TreeSweepState.Content {
        var length = length
        // Not every length is that of sealed content.
        while RecordData.plainLength(sealed: UInt64(length)) == nil { length += 1 }
        return TreeSweepState.Content(seed: random.next(), length: length)
    }

    private mutating func batch(_ now: Int64) -> Action {
        var (draft, operations) = (state, [TreeOperation]())
        for _ in 0...roll(6) { if let operation = operation(&draft, now) { operations.append(operation) } }
        let id = BatchID.random { count in (0..<count).map { _ in UInt8(truncatingIfNeeded: random.next()) } }
        var isRefused = false
        if operations.isEmpty || roll(6) == 0, let bad = refusedOperation(draft) {
            operations.append(bad)
            isRefused = true
        }
        if operations.isEmpty, let operation = create(&draft, now) { operations.append(operation) }
        if roll(3) == 0 { operations += copies(&draft) }
        draft.refer(at: now)
        let body = JSONValue.object(TreeBatch(id: id, operations).object).serialized()
        return .batch(id, body: body, after: isRefused ? nil : draft)
    }

    /// One operation, made in `draft`; nil if the chosen kind is not possible.
    private mutating func operation(_ draft: inout TreeSweepState, _ now: Int64) -> TreeOperation? {
        let nodes = draft.nodes.keys.sorted()
        guard nodes.count > 4, let node = pick(nodes), let old = draft.nodes[node] else { return create(&draft, now) }
        switch roll(12) {
        case 0...3: return nodes.count < 60 ? create(&draft, now) : nil
        case 4, 5:
            let branch = Set(draft.branch(node))
            guard let parent = place(in: draft), !branch.contains(where: { .node($0) == parent }) else { return nil }
            return put(node, &draft) { $0.parent = parent }
        case 6, 7:
            guard let tag = tag() else { return nil }
            return put(node, &draft) { $0.tag = tag }
        case 8:
            guard let blob = pick(draft.blobs.keys.sorted()) else { return nil }
            return put(node, &draft) { $0.blob = blob }
        case 9: return old.blob == nil ? nil : put(node, &draft) { $0.blob = nil }
        case 10:
            guard let leaf = nodes.first(where: { draft.children(of: .node($0)).isEmpty }),
                let version = draft.nodes.removeValue(forKey: leaf)?.version
            else { return nil }
            return .delete(leaf, source: version)
        default:
            let branch = draft.branch(node)
            guard branch.count < 12 else { return nil }
            for node in branch { draft.nodes[node] = nil }
            return .deleteTree(
                BranchRemoval(node, source: old.version, includesOutdated: true, includesUnknown: true))
        }
    }

    private mutating func create(_ draft: inout TreeSweepState, _ now: Int64) -> TreeOperation? {
        guard let parent = place(in: draft), let tag = tag() else { return nil }
        let node = NodeID.random { count in (0..<count).map { _ in UInt8(truncatingIfNeeded: random.next()) } }
        let burnTime = roll(15) == 0 ? now + Self.dayPlus / 2 : nil
        draft.nodes[node] = TreeSweepState.Node(
            parent: parent, tag: tag, version: 0, blob: roll(3) == 0 ? pick(draft.blobs.keys.sorted()) : nil,
            burnTime: burnTime)
        return put(node, &draft) { _ in }
    }

    private func put(
        _ node: NodeID, _ draft: inout TreeSweepState, _ change: (inout TreeSweepState.Node) -> Void
    ) -> TreeOperation? {
        guard var new = draft.nodes[node] else { return nil }
        let source = new.version
        change(&new)
        new.version += 1
        draft.nodes[node] = new
        let length = new.blob.flatMap { draft.blobs[$0]?.content.length }
        return .put(node, source: source, Self.record(new, source: source, length: length))
    }

    private mutating func place(in draft: TreeSweepState) -> NodeParent? {
        let places: [NodeParent] = [.trunk(.home), .trunk(.prefs)] + draft.nodes.keys.sorted().map { .node($0) }
        return pick(places.filter { draft.depth(of: $0) < 8 })
    }

    private mutating func tag() -> NodeTag? {
        names += 1
        return try? NodeTag(of: Array("name \(names)".utf8), salt: [])
    }

    /// A record of the form of records; nothing in it is sealed.
    private static func record(_ node: TreeSweepState.Node, source: Version, length: Int?) -> NodeRecord {
        let wrap = RecordWrap(.parent, sealed: [1] + [UInt8](repeating: 3, count: TreeLimits.parentWrapBytes - 1))
        let metadata = SealedMessage.extraBytes + TreeLimits.metadataStep
        var record = NodeRecord(
            parent: node.parent, tag: node.tag, epoch: 0, wraps: [wrap],
            commitment: [UInt8](repeating: 2, count: NodeKey.bytesCount),
            metadata: [1] + [UInt8](repeating: 4, count: metadata - 1), burnTime: node.burnTime, base: source)
        if let blob = node.blob, let length {
            record.data = .blob(DataID(UInt128(7)), length: UInt64(length), blob: blob)
        }
        return record
    }

    /// A message to all receivers. Signatures are not part of the sweep.
    private mutating func copies(_ draft: inout TreeSweepState) -> [TreeOperation] {
        let node = NodeID.random { count in (0..<count).map { _ in UInt8(truncatingIfNeeded: random.next()) } }
        let copies = TreeSweepState.receivers.compactMap { name -> TreeOperation? in
            guard let user = try? UserID(name),
                let signature = try? RecordSignature(pending: TreeSweepServer.owner(), keyID: "k")
            else { return nil }
            let place = TreeSweepState.Node(parent: .trunk(.inbox), tag: NodeTag(inInbox: node), version: 0)
            var record = Self.record(place, source: 0, length: nil)
            let sealed = [1] + [UInt8](repeating: 3, count: KeyWrap.bytesCount - 1)
            (record.wraps, record.signature) = ([RecordWrap(.user(user, keyID: "k"), sealed: sealed)], signature)
            return .copy(TreeCopy(node, to: user, record))
        }
        draft.delivered.insert(node)
        return copies
    }

    /// An operation that the server must refuse after the others: a cycle, a taken name, an old version, a missing
    /// parent or blob.
    private mutating func refusedOperation(_ draft: TreeSweepState) -> TreeOperation? {
        guard let node = pick(draft.nodes.keys.sorted()), var new = draft.nodes[node] else { return nil }
        let source = new.version
        var length: Int?
        switch roll(5) {
        case 0: new.parent = .node(pick(draft.branch(node)) ?? node)
        case 1:
            guard let other = draft.nodes.sorted(by: { $0.key < $1.key }).first(where: { $0.key != node })?.value,
                !draft.branch(node).contains(where: { .node($0) == other.parent })
            else { return nil }
            (new.parent, new.tag) = (other.parent, other.tag)
        case 2: return .put(node, source: source + 1, Self.record(new, source: source + 1, length: nil))
        case 3: new.parent = .node(NodeID(UInt128(number) + 1))
        default: (new.blob, length) = (BlobID(UInt128(number) + 1), 80)
        }
        return .put(node, source: source, Self.record(new, source: source, length: length))
    }

    // MARK: - Answers

    /// The action was done.
    /// - Parameter id: of the upload or blob that it began.
    mutating func done(_ action: Action, id: BlobID?, now: Int64) {
        switch action {
        case .batch(_, _, let after?):
            state = after
            made.append(number)
        case .batch, .again, .restart: break
        case .small(let content):
            if let id {
                state.blobs[id] = TreeSweepState.Blob(content: content, orphaned: now)
                state.uploads[id] = TreeSweepState.Upload(content: content, time: now, received: [1], isComplete: true)
            }
        case .begin(let content): if let id { state.uploads[id] = TreeSweepState.Upload(content: content, time: now) }
        case .part(let upload, let number): state.uploads[upload]?.received.insert(number)
        case .complete(let upload):
            guard let content = state.uploads[upload]?.content else { break }
            state.uploads[upload]?.isComplete = true
            state.uploads[upload]?.time = now
            state.blobs[upload] = TreeSweepState.Blob(content: content, orphaned: now)
        case .abort(let upload): state.uploads[upload] = nil
        case .collect: collect(now)
        }
        number += 1
    }

    private mutating func collect(_ now: Int64) {
        state.blobs = state.blobs.filter { $0.value.orphaned.map { $0 > now - BlobSweep.orphanAge } ?? true }
        state.uploads = state.uploads.filter { $0.value.time > now - BlobSweep.uploadAge }
        // Blobs of what burns are collected a day later.
        let due = state.nodes.filter { ($0.value.burnTime ?? .max) <= now }.keys
        for node in due { for gone in state.branch(node) { state.nodes[gone] = nil } }
        state.refer(at: now)
    }
}
